/* A scenario file and what is given from outside become a list of points.
 *
 * Steps, in scenario_load_from(): read the file (a model alone becomes a scenario of that model);
 * keep its plain state; put each --set or cell in, which replaces a swept key's list or assigns a
 * value; check the sweep; then build the points one after the other. A point starts as a copy of
 * the settings, gets its values of the sweep, then its input files, then what follows from both
 * (lengths, micro-batch), then its checks. Errors of the text end the load before points are built,
 * because each point would repeat them.
 *
 * Every value's origin is pushed to a list of paths, and the last origin of a path is the one that
 * holds. Documents live until the end of the load, as a sweep keeps nodes of them; texts are copied
 * to the arena.
 *
 * Subtle: a strategy may be a word (zero3, FULL_SHARD) that stands for a strategy and one setting.
 * It is resolved for each point, after the sweep, by strategy_word_take(). What differs from the
 * plain file decides whether published figures still are of this run (changed.c); that loads the
 * file a second time, without what was given. */
#include "scenario/sure.h"
#include "scenario/file.h"

#include "base/files.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A load in progress. Documents live until its end: a sweep keeps nodes of them. */
struct loader {
    const char *file;
    struct arena *arena;
    struct diag diag;
    struct scenario_file read;
    struct config_origins origins;
    struct sweep sweep;
    struct inputs inputs;
    VEC(struct config_doc *) docs;
    struct scenario plain; /* the file's, before anything from outside */
    struct sweep plain_sweep;
    const char *changed; /* what is given from outside and differs from it: names; NULL: nothing */
};

struct config_origin scenario_origin(const struct scenario_point *point, const char *path)
{
    for (int i = point->origins.list.n - 1; i >= 0; i--)
        if (strcmp(point->origins.list.at[i].path, path) == 0)
            return point->origins.list.at[i];
    return (struct config_origin){path, {.file = point->file}, ORIGIN_DEFAULT};
}

struct scenario scenario_default(void)
{
    struct scenario options = {.strategy = strategy_default_options(),
        .exec = exec_default_options(),
        .goodput = goodput_default_options()};
    options.cluster.given = hw_nothing_given();
    options.strategy.train.attention = -1; /* the GPU decides */
    return options;
}

/* The list of assumptions as one text, a line each. */
static const char *join_assumptions(struct config_node list, struct arena *arena, struct diag *diag)
{
    if (config_kind(list) != CONFIG_SEQUENCE) {
        diag_input(
            diag, config_pos(list), "'assumptions' is a list of sentences: lines of '- text'");
        return NULL;
    }
    const char *text = NULL;
    for (int i = 0; i < config_count(list); i++) {
        struct config_node item = config_item(list, i);
        if (config_kind(item) != CONFIG_SCALAR)
            diag_input(diag, config_pos(item),
                "an assumption is one sentence; put it in quotes where it holds ': '");
        text = text ? arena_printf(arena, "%s\n%s", text, config_text(item))
                    : arena_strdup(arena, config_text(item));
    }
    return text;
}

/* The document goes, the file's name stays. */
static struct source_pos scenario_load_place_of(struct config_node node, const char *file)
{
    struct source_pos at = config_pos(node);
    at.file = file;
    return at;
}

/* A list of texts, or of pairs: in YAML "- cluster.gpus=8: 9250 tokens/s" is one. */
static void take_measured(struct loader *loader, struct scenario_set *set)
{
    struct config_node list = loader->read.measured;
    if (config_kind(list) != CONFIG_SEQUENCE) {
        diag_input(&loader->diag, config_pos(list),
            "'measured' is a list: lines of '- SETTINGS: VALUE UNIT', as in '- cluster.gpus=8: "
            "9250 tokens/s'");
        return;
    }
    set->n_measured = config_count(list);
    set->measured = ARENA_ARRAY(loader->arena, struct scenario_measured, set->n_measured);
    for (int i = 0; i < set->n_measured; i++) {
        struct config_node item = config_item(list, i), value = item;
        const char *settings = NULL;
        if (config_kind(item) == CONFIG_MAPPING && config_count(item) == 1) {
            settings = config_text(config_key(item, 0));
            value = config_item(item, 0);
        }
        if (config_kind(value) != CONFIG_SCALAR)
            diag_input(
                &loader->diag, config_pos(item), "one measurement is '- SETTINGS: VALUE UNIT'");
        else
            set->measured[i] = (struct scenario_measured){
                settings ? arena_printf(loader->arena, "%s: %s", settings, config_text(value))
                         : arena_strdup(loader->arena, config_text(value)),
                scenario_load_place_of(item, loader->file)};
    }
}

void scenario_warn_measured(const struct scenario_set *set, const char *who, struct diag *diag)
{
    if (set->n_measured > 0)
        diag_warn(diag, set->measured[0].at,
            "'measured' shifts what flopcast run, tune, whatif and goodput say; %s says what is "
            "simulated",
            who);
}

/* Each is swept in the file. */
static void check_readings(struct loader *loader)
{
    const char *at = loader->read.options.published.readings;
    while (*at) {
        int n = (int)strcspn(at, ", ");
        bool swept = n == 0;
        for (int i = 0; i < loader->sweep.keys.n && !swept; i++) {
            const char *path = loader->sweep.keys.at[i].path;
            swept = strncmp(path, at, (size_t)n) == 0 && path[n] == '\0';
        }
        if (!swept)
            diag_input(&loader->diag, (struct source_pos){.file = loader->file},
                "published.readings: '%.*s' is not in the file's 'sweep'; name settings that are",
                n, at);
        at += n + (at[n] != '\0');
    }
}

/* A model where a scenario is expected: all else comes from outside (--set). One sequence at once,
 * and one step after another one, which a step without noise needs no more of. */
static void read_model(struct loader *loader)
{
    struct scenario *options = &loader->read.options;
    const char *slash = strrchr(loader->file, '/'), *name = slash ? slash + 1 : loader->file;
    const char *end = slash && strcmp(name, "config.json") == 0 ? slash : strrchr(name, '.');
    name = end == slash ? loader->file : name;
    options->name = end ? arena_printf(loader->arena, "%.*s", (int)(end - name), name) : name;
    options->description = "a model, with what the command line says";
    options->model_path = loader->file;
    options->strategy.train.micro_batch = 1;
    options->exec.steps = options->exec.warmup_steps = 1;
}

/* A path that is there as it is; else a folder's config.json, or a model's short name. */
static const char *scenario_load_find_file(const char *path, struct arena *arena)
{
    struct stat there;
    bool folder = stat(path, &there) == 0 && S_ISDIR(there.st_mode);
    const char *config = arena_printf(arena, "%s/config.json", path);
    if (folder && access(config, R_OK) == 0)
        return config;
    const char *model = files_find(arena, FILES_MODELS, path);
    return !files_holder(arena, path) && files_holder(arena, model) ? model
                                                                    : arena_strdup(arena, path);
}

/* Another kind of file of the project, by the keys that it has; then nothing of it is worth
 * reading. is_model: that kind, which is no mistake. */
static bool is_other_file(struct config_node root, bool *is_model, struct diag *diag)
{
    const struct {
        const struct config_table *table;
        const char *remedy;
    } kinds[] = {
        {&hw_gpu_table, "nodes name it; `flopcast topology` shows it"},
        {&hw_node_table, "clusters name it; `flopcast topology` shows it"},
        {&hw_cluster_table,
            "scenarios name it under 'cluster: {topology: FILE}'; `flopcast topology` shows it"},
        {&model_shape_table, NULL},
        {&stack_table, "scenarios name it under 'stack: FILE'"},
        {&sure_table, "it says how sure predictions are; every command reads it by itself"},
    };
    int best = -1, most = config_fit(root, &scenario_file_table);
    for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++) {
        bool hugging_face =
            kinds[i].table == &model_shape_table && config_find(root, "model_type").doc;
        int known = hugging_face ? config_count(root) : config_fit(root, kinds[i].table);
        if (known <= most)
            continue;
        most = known;
        best = i;
    }
    *is_model = best >= 0 && kinds[best].table == &model_shape_table;
    if (best >= 0 && !*is_model)
        diag_input(diag, config_pos(root), "this file has the keys of %s, not of a scenario; %s",
            kinds[best].table->what, kinds[best].remedy);
    return best >= 0;
}

bool scenario_is_model(const char *path)
{
    struct arena arena = ARENA_INIT;
    struct diag unsaid = DIAG_INIT;
    struct config_doc *doc = NULL;
    bool is_model = false;
    if (config_load_kind(&doc, FILES_SCENARIOS, scenario_load_find_file(path, &arena), &unsaid) ==
        STATUS_OK)
        is_other_file(config_root(doc), &is_model, &unsaid);
    config_free(doc);
    arena_release(&arena);
    return is_model;
}

static void scenario_load_read_file(struct loader *loader)
{
    struct config_doc *doc = NULL;
    if (config_load_kind(&doc, FILES_SCENARIOS, loader->file, &loader->diag) != STATUS_OK)
        return;
    vec_push(&loader->docs, doc);
    bool is_model = false;
    if (is_other_file(config_root(doc), &is_model, &loader->diag)) {
        if (is_model)
            read_model(loader);
        return;
    }
    config_read(config_root(doc), &scenario_file_table, &loader->read, loader->arena,
        &loader->origins, &loader->diag);
    if (loader->read.sweep.doc)
        sweep_read(&loader->sweep, loader->read.sweep, loader->arena, &loader->diag);
    if (loader->read.options.published.readings)
        check_readings(loader);
    if (loader->read.assumptions.doc)
        loader->read.options.assumptions =
            join_assumptions(loader->read.assumptions, loader->arena, &loader->diag);
}

const char *scenario_override_name(
    const struct scenario_override *override, const char *name, struct arena *arena)
{
    return name ? arena_strdup(arena, name) : arena_printf(arena, "--set %s", override->key);
}

enum status scenario_override_parse(struct config_doc **out,
    const struct scenario_override *override, const char *name, struct diag *diag)
{
    *out = NULL;
    if (!*override->value)
        return diag_input(diag, (struct source_pos){.file = name}, "no value; write one after '='");
    enum status status = config_parse(out, name, override->value, strlen(override->value), diag);
    if (status != STATUS_OK &&
        strchr("*&!%@`", *override->value)) /* what means something to YAML */
        diag_input(diag, (struct source_pos){.file = name},
            "a text that begins with '%c' is quoted twice, for the shell and for YAML: '%s=\"%s\"'",
            *override->value, override->key, override->value);
    if (status == STATUS_OK)
        config_set_origin(*out, ORIGIN_COMMAND_LINE);
    return status;
}

/* What makes GPUs, hosts and networks vary (exec_noise_is_on()), all of it: --set noise=off. */
static void turn_noise_off(struct loader *loader, struct sweep_key off)
{
    static const char *const paths[] = {"noise.gpu_speed_spread", "noise.gpu_speed_spread_below",
        "noise.kernel_jitter", "noise.network_jitter", "noise.host_jitter", "noise.straggler_share",
        "noise.host_pause", "noise.host_pause_interval"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        bool time = strncmp(paths[i], "noise.host_pause", strlen("noise.host_pause")) == 0;
        const char *zero = time ? "0 s" : "0";
        struct config_doc *doc = NULL;
        BUG_IF(config_parse(&doc, off.at.file, zero, strlen(zero), &loader->diag) != STATUS_OK,
            "'%s' is no number", zero);
        config_set_origin(doc, config_origin_kind(off.values));
        vec_push(&loader->docs, doc);
        sweep_override(&loader->sweep,
            (struct sweep_key){.path = paths[i], .at = off.at, .values = config_root(doc)},
            &loader->read.options, loader->arena, &loader->origins, &loader->diag);
    }
}

static void apply_override(struct loader *loader, const struct scenario_override *override,
    const char *name, enum origin_kind kind)
{
    struct config_doc *doc = NULL;
    name = scenario_override_name(override, name, loader->arena);
    if (scenario_override_parse(&doc, override, name, &loader->diag) != STATUS_OK)
        return;
    config_set_origin(doc, kind);
    vec_push(&loader->docs, doc);
    struct sweep_key key = {
        .path = scenario_key_path(arena_strdup(loader->arena, override->key), loader->arena),
        .at = {.file = name},
        .values = config_root(doc)};
    loader->changed =
        changed_setting(&loader->plain, &loader->plain_sweep, &key, loader->changed, loader->arena);
    if (strcmp(key.path, "noise") == 0 && strcmp(config_text(key.values), "off") == 0) {
        turn_noise_off(loader, key);
        return;
    }
    const struct strategy_word *word =
        strcmp(key.path, "strategy") == 0 ? strategy_word(config_text(key.values)) : NULL;
    if (word)
        sweep_drop(&loader->sweep, word->path);
    sweep_override(
        &loader->sweep, key, &loader->read.options, loader->arena, &loader->origins, &loader->diag);
}

static const struct config_origin *scenario_load_find_origin(
    const struct config_origins *origins, const char *path)
{
    for (int i = origins->list.n - 1; i >= 0; i--)
        if (strcmp(origins->list.at[i].path, path) == 0)
            return &origins->list.at[i];
    return NULL;
}

/* Kinds from STRATEGY_COUNT on are words. The setting is assigned in a copy first, to be able to
 * leave it as it is: one from the command line outranks a word in the file, and two from one place
 * that differ are an error. */
void strategy_word_take(struct scenario *options, const char *prefix,
    struct config_origins *origins, struct arena *arena, struct diag *diag)
{
    if (options->strategy.kind < STRATEGY_COUNT)
        return;
    const struct strategy_word *word = &strategy_words[options->strategy.kind - STRATEGY_COUNT];
    const struct config_origin *said = scenario_load_find_origin(
                                   origins, arena_printf(arena, "%sstrategy", prefix)),
                               *given;
    const char *path = arena_printf(arena, "%s%s", prefix, word->path);
    struct config_doc *doc = NULL;
    struct scenario with = *options;
    size_t at = 0;
    const struct config_field *field = config_field_at(&scenario_table, word->path, &at);
    BUG_IF(!said ||
               config_parse(&doc, word->word, word->value, strlen(word->value), diag) != STATUS_OK,
        "'%s' is no word for a strategy", word->word);
    with.strategy.kind = (int)word->kind;
    config_assign(
        word->path, said->at, config_root(doc), &scenario_table, &with, arena, NULL, diag);
    config_free(doc);
    with.strategy.kind = (int)word->kind;
    given = scenario_load_find_origin(origins, path);
    const char *other = config_value_text(field, (const char *)options + at, arena);
    bool differs = given && strcmp(other, word->value) != 0;
    if (differs && given->kind == said->kind)
        diag_input(diag, given->at,
            "'%s' is %s, but strategy '%s' means %s; leave one of the two out", word->path, other,
            word->word, word->value);
    options->strategy.kind = (int)word->kind;
    if (differs && said->kind == ORIGIN_FILE) /* the other one is from the command line */
        return;
    config_copy(options, &with, word->path, &scenario_table);
    vec_push(&origins->list, ((struct config_origin){path, said->at, said->kind}));
}

enum status scenario_set_option(struct scenario_point *point,
    const struct scenario_override *override, const char *name, struct arena *arena,
    struct diag *diag)
{
    struct config_doc *doc = NULL;
    struct config_origins said = {0};
    struct diag own = DIAG_INIT;
    struct source_pos at = {.file = scenario_override_name(override, name, arena)};
    if (scenario_override_parse(&doc, override, at.file, &own) == STATUS_OK)
        config_assign(scenario_key_path(override->key, arena), at, config_root(doc),
            &scenario_table, &point->options, arena, &said, &own);
    config_free(doc);
    if (own.worst == STATUS_OK)
        strategy_word_take(&point->options, "", &said, arena, &own);
    vec_free(&said.list);
    diag_merge(diag, &own);
    return own.worst;
}

void scenario_keep_origins(struct config_origins *origins, struct arena *arena)
{
    vec_fit(&origins->list);
    arena_take(arena, origins->list.at);
}

/* T5's decoder sees as many tokens as its encoder where the scenario does not say; an image has its
 * own number. */
static void default_lengths(struct scenario_point *point)
{
    struct train_options *train = &point->options.strategy.train;
    if (point->model.shape.family == MODEL_T5 && train->decoder_seq_len == 0)
        train->decoder_seq_len = train->seq_len;
    if (train->seq_len == 0)
        train->seq_len = model_sample_tokens(&point->model.shape);
}

static void fit_micro_batch(struct scenario_point *point, struct diag *diag)
{
    struct train_options *train = &point->options.strategy.train;
    int64_t given = train->micro_batch;
    if (strategy_fit_micro_batch(train))
        diag_warn(diag, scenario_origin(point, "train.device_batch").at,
            "train.micro_batch of %lld is more than train.device_batch, and is taken to be %lld, "
            "too",
            (long long)given, (long long)train->micro_batch);
}

/* The last step of a loaded point: works out what it leaves open (lengths, a micro-batch beyond the
 * device's batch) and checks all of it. */
static void resolve_point(struct scenario_point *point, struct diag *diag)
{
    default_lengths(point);
    strategy_share_batch(&point->options.strategy, point->options.cluster.gpus);
    fit_micro_batch(point, diag);
    scenario_check(point, diag);
}

enum status scenario_prepare(struct scenario_point *point, struct diag *diag)
{
    struct noise_field noise[NOISE_FIELDS];
    inputs_noise(noise, point);
    for (int i = 0; i < NOISE_FIELDS; i++)
        if (quantity_is_set(noise[i].cluster) &&
            scenario_origin(point, noise[i].path).kind == ORIGIN_DEFAULT)
            *noise[i].value = noise[i].cluster.value;
    resolve_point(point, diag);
    return diag->worst;
}

/* The order is that of the head: values, then files, then what follows from them. */
static void load_point(
    struct loader *loader, int i, struct scenario_point *point, struct diag *diag)
{
    point->file = loader->file;
    point->options = loader->read.options;
    for (int j = 0; j < loader->origins.list.n; j++)
        vec_push(&point->origins.list, loader->origins.list.at[j]);
    sweep_assign(&loader->sweep, i, &point->options, loader->arena, &point->origins);
    strategy_word_take(&point->options, "", &point->origins, loader->arena, diag);
    point->gpus_at = scenario_origin(point, "cluster.gpus").at;
    check_given(point, diag);
    if (diag->n_errors == 0 && inputs_load(&loader->inputs, point, loader->arena, diag)) {
        resolve_point(point, diag);
        load_events(point, loader->arena, diag);
    }
    scenario_keep_origins(&point->origins, loader->arena);
}

static void load_points(struct loader *loader, struct scenario_set *set)
{
    set->n_points = sweep_points(&loader->sweep);
    set->points = ARENA_ARRAY(loader->arena, struct scenario_point, set->n_points);
    for (int i = 0; i < set->n_points && loader->diag.n_errors <= DIAG_MAX_ERRORS; i++) {
        struct diag diag = DIAG_INIT;
        load_point(loader, i, &set->points[i], &diag);
        diag_merge(&loader->diag, &diag);
    }
    if (loader->diag.n_errors == 0)
        warn_unread(set->points, set->n_points, &loader->diag);
}

/* The title is of the file. A model alone has none. */
static void say_changed(struct loader *loader)
{
    struct scenario *options = &loader->read.options;
    if (loader->changed && options->description && loader->plain.cluster.topology)
        options->description = arena_printf(
            loader->arena, "%s (other here: %s)", options->description, loader->changed);
}

static void compare_with_plain(struct loader *loader, struct scenario_set *set)
{
    struct scenario_set plain = {0};
    struct diag unsaid = DIAG_INIT; /* a file may be whole only with what is given */
    bool any = false;
    for (int i = 0; i < set->n_points; i++)
        any = any || set->points[i].published.found;
    if (any && scenario_load(&plain, loader->file, NULL, 0, loader->arena, &unsaid) == STATUS_OK)
        published_leave_out(set, &plain, loader->arena);
}

enum status scenario_load(struct scenario_set *out, const char *path,
    const struct scenario_override *overrides, int n_overrides, struct arena *arena,
    struct diag *diag)
{
    return scenario_load_from(
        out, path, overrides, NULL, ORIGIN_COMMAND_LINE, n_overrides, arena, diag);
}

enum status scenario_load_from(struct scenario_set *out, const char *path,
    const struct scenario_override *overrides, const char *const *names, enum origin_kind kind,
    int n_overrides, struct arena *arena, struct diag *diag)
{
    struct loader *loader = xcalloc(1, sizeof *loader);
    loader->file = scenario_load_find_file(path, arena);
    loader->arena = arena;
    loader->read.options = scenario_default();
    scenario_load_read_file(loader);
    loader->plain = loader->read.options;
    for (int i = 0; i < loader->sweep.keys.n; i++)
        vec_push(&loader->plain_sweep.keys, loader->sweep.keys.at[i]);
    if (loader->docs.n) /* the file could be read */
        for (int i = 0; i < n_overrides; i++)
            apply_override(loader, &overrides[i], names ? names[i] : NULL, kind);
    sweep_check(&loader->sweep, arena, &loader->diag);
    struct scenario_set set = {.file = loader->file};
    say_changed(loader);
    if (loader->read.measured.doc)
        take_measured(loader, &set);
    if (loader->diag.n_errors == 0) /* what follows would only repeat what is wrong with the text */
        load_points(loader, &set);
    enum status status = loader->diag.worst;
    if (status == STATUS_OK && loader->changed && kind == ORIGIN_COMMAND_LINE)
        compare_with_plain(loader, &set);
    if (status == STATUS_OK)
        *out = set;
    diag_merge(diag, &loader->diag);
    inputs_release(&loader->inputs);
    for (int i = 0; i < loader->docs.n; i++)
        config_free(loader->docs.at[i]);
    vec_free(&loader->docs);
    vec_free(&loader->sweep.keys);
    vec_free(&loader->plain_sweep.keys);
    vec_free(&loader->origins.list);
    free(loader);
    return status;
}
