/* Hill climbing on imports. A draft is options and comments; its value is what it gives when it is
 * imported: how many settings differ from the point's, then how many comments it takes. It begins
 * with comments alone, one for each setting that the trainer's defaults do not give. Then every
 * rule of the table is asked what its option would be for the settings that it makes, and the
 * option stays where the draft becomes better with it and without their comments. */
#include "exchange/emit.h"

#include "base/digest.h"
#include "exchange/emit_file.h"
#include "exchange/rules.h"
#include "model/model.h"
#include "scenario/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct emitter {
    enum configuration_format format;
    struct scenario_point target;
    struct emit_draft draft;
    const struct importer *importer;
    struct arena *arena;
    char *file; /* where a draft's import lies, to be loaded */
};

bool emit_can(enum configuration_format format, const struct scenario_point *point)
{
    const struct strategy_options *strategy = &point->options.strategy;
    if (format == CONFIGURATION_MEGATRON)
        return strategy->kind == STRATEGY_MEGATRON;
    bool fsdp = format == CONFIGURATION_TORCHTITAN || format == CONFIGURATION_AUTOMODEL;
    return fsdp && strategy->kind == STRATEGY_FSDP && strategy->fsdp.version == 2 &&
           strategy->fsdp.sharding_strategy != NO_SHARD;
}

/* ---- what a draft gives ---- */

/* Not of a step: names, where files lie, what is compared. */
static bool is_left_out(const char *path)
{
    static const char *const out[] = {"name", "description", "assumptions", "model", "stack",
        "cluster.topology", "force", "published", "goodput", "sweep"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (strcmp(path, out[i]) == 0)
            return true;
    return false;
}

struct leaves {
    const struct scenario *target, *other; /* other NULL: nothing is known of it */
    struct arena *arena;
    VEC(struct emit_said) differ; /* the target's values */
};

/* Leaves of the table of settings, by the texts of their values. */
static void emit_compare(
    struct leaves *leaves, const struct config_table *table, size_t offset, const char *prefix)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *path = !*prefix || !*field->key
                               ? arena_printf(leaves->arena, "%s%s", prefix, field->key)
                               : arena_printf(leaves->arena, "%s.%s", prefix, field->key);
        size_t at = offset + field->offset;
        const char *mine = (const char *)leaves->target + at;
        if (is_left_out(path))
            continue;
        if (field->type == FIELD_SECTION ||
            (field->type == FIELD_OVERRIDES && config_is_given(field, mine))) {
            emit_compare(leaves, field->section, at, path);
            continue;
        }
        if (field->type == FIELD_OVERRIDES ||
            (field->type == FIELD_SOURCED && !config_is_given(field, mine)))
            continue;
        const char *value = config_value_text(field, mine, leaves->arena);
        if (!leaves->other ||
            strcmp(value,
                config_value_text(field, (const char *)leaves->other + at, leaves->arena)) != 0)
            vec_push(&leaves->differ, ((struct emit_said){path, value}));
    }
}

static void apply_options(
    struct configuration *config, const struct emitter *emitter, struct diag *diag)
{
    for (int i = 0; i < emitter->draft.options.n; i++) {
        const struct emit_option *option = &emitter->draft.options.at[i];
        struct configuration_setting setting = {.name = option->name,
            .value = option->bare ? "" : option->value,
            .bare = option->bare,
            .at = {"the draft", i + 1, 1},
            .value_at = {"the draft", i + 1, 1}};
        rules_apply(config, &emitter->importer->rules, &setting, diag);
        vec_push(&config->settings, setting);
    }
}

/* The draft, imported. */
static void emit_import(
    struct configuration *config, const struct emitter *emitter, struct diag *diag)
{
    static const struct configuration_given given = {.name = "emitted"};
    config->given = &given;
    config->has[emitter->format] = true;
    config->importers[emitter->format] = emitter->importer;
    apply_options(config, emitter, diag);
    for (int i = 0; i < emitter->draft.said.n; i++)
        configuration_say(config, emitter->draft.said.at[i].key, emitter->draft.said.at[i].value,
            (struct source_pos){"the draft", i + 1, 1}, diag);
    if (diag->worst == STATUS_OK)
        configuration_finish(config, &given, diag);
}

/* A file of this run alone, in $TMPDIR. */
static enum status emit_make_file(struct emitter *emitter, struct diag *diag)
{
    const char *given = getenv("TMPDIR"), *folder = given && *given ? given : "/tmp";
    emitter->file = arena_printf(emitter->arena, "%s/flopcast-emit-XXXXXX", folder);
    int file = mkstemp(emitter->file);
    if (file < 0)
        return diag_io(diag, (struct source_pos){.file = folder},
            "cannot write a draft there: %s; set TMPDIR to a folder with room", strerror(errno));
    close(file);
    return STATUS_OK;
}

/* As `flopcast scenario import` writes it, and `flopcast run` reads it. */
static enum status emit_load(struct scenario_set *set, const struct emitter *emitter,
    const struct configuration *config, struct arena *arena, struct diag *diag)
{
    FILE *out = fopen(emitter->file, "w");
    if (!out)
        return diag_io(diag, (struct source_pos){.file = emitter->file}, "cannot write a draft");
    configuration_write(out, config, NULL);
    fclose(out);
    return scenario_load(set, emitter->file, NULL, 0, arena, diag);
}

/* What a stack makes of the GPU is no setting. */
static uint64_t digest_hardware(const struct hw *hw)
{
    uint64_t digest = config_digest_values(DIGEST_INIT, &hw_gpu_table, &hw->gpu);
    return config_digest_values(digest, &hw_node_table, &hw->node);
}

enum { WORST = 1 << 30, A_SETTING = 1 << 16, A_COMMENT = 1 << 8 };

/* The fewer settings differ, the better; then the fewer comments, and options that become
 * nothing. 0: it gives the point by options alone. differ: its settings that are not given;
 * NULL: not asked. same: whether it is the point, whatever the settings say. Each call imports
 * the whole draft and loads what it gives, by way of a file, which is what a search spends its
 * time on. */
static int emit_value_of(const struct emitter *emitter, struct leaves *differ, bool *same)
{
    struct arena scratch = ARENA_INIT;
    struct configuration config = {.arena = &scratch};
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    struct leaves own = {
        .target = &emitter->target.options, .arena = differ ? emitter->arena : &scratch};
    emit_import(&config, emitter, &diag);
    bool whole = diag.worst == STATUS_OK && config.missing.n == 0 &&
                 configuration_count(&config, FATE_NOT_UNDERSTOOD) == 0 &&
                 emit_load(&set, emitter, &config, &scratch, &diag) == 0 && set.points;
    int value = WORST;
    if (whole) {
        own.other = &set.points[0].options;
        emit_compare(&own, &scenario_table, 0, "");
        bool other = digest_hardware(&emitter->target.hw) != digest_hardware(&set.points[0].hw);
        value = (own.differ.n + other) * A_SETTING + emitter->draft.said.n * A_COMMENT +
                config.settings.n - configuration_count(&config, FATE_TAKEN);
    }
    if (whole && same) {
        struct model_shape *shape = &set.points[0].model.shape;
        shape->name = emitter->target.model.shape.name; /* of a config.json both have its path */
        shape->source = emitter->target.model.shape.source;
        *same = scenario_digest_inputs(&emitter->target) == scenario_digest_inputs(&set.points[0]);
    }
    if (differ && whole) {
        differ->differ.n = 0;
        for (int i = 0; i < own.differ.n; i++)
            vec_push(&differ->differ, own.differ.at[i]);
    }
    vec_free(&own.differ);
    configuration_free(&config);
    arena_release(&scratch);
    return value;
}

/* ---- options of a setting ---- */

static const char *value_at(const struct emitter *emitter, const char *path)
{
    size_t at = 0;
    const struct config_field *field = config_field_at(&scenario_table, path, &at);
    return config_value_text(field, (const char *)&emitter->target.options + at, emitter->arena);
}

/* The numbers by which trainers say some settings: of data parallelism the ranks, or copies; of
 * chunks their blocks. */
static int64_t emit_number_of(const struct emitter *emitter, const char *path)
{
    const struct scenario *options = &emitter->target.options;
    const struct parallelism_options *parallel = &options->strategy.parallelism;
    int64_t context = model_context_ranks(&parallel->model),
            data = options->cluster.gpus /
                   (model_tensor_ranks(&parallel->model) * context * parallel->pipeline);
    int64_t group = options->strategy.fsdp.sharding_group_size;
    group = group > 0 ? group / context : hw_gpus_per_node(&emitter->target.hw) / context;
    int64_t chunks = parallel->pipeline * parallel->virtual_stages,
            blocks = model_blocks(&emitter->target.model);
    if (strcmp(path, "fsdp.sharding_strategy") == 0)
        return group > 0 ? data / group : 0;
    if (strcmp(path, "fsdp.sharding_group_size") == 0)
        return group;
    if (strcmp(path, "cluster.gpus") == 0)
        return data;
    return strcmp(path, "parallelism.virtual") == 0 ? (blocks + chunks - 1) / chunks : 0;
}

struct candidates {
    VEC(struct emit_option) list;
};

static void emit_add(struct candidates *out, const char *name, const char *value, bool bare)
{
    if (bare || *value)
        vec_push(&out->list, ((struct emit_option){name, value, bare}));
}

/* What it may be, of a fact that the importer's finish function makes the setting of. */
static void add_facts(struct candidates *out, const struct emitter *emitter,
    const struct rule *rule, const char *name, const char *key)
{
    const char *value = value_at(emitter, key), *words = rule->words ? rule->words : "";
    int64_t number = emit_number_of(emitter, key), gpus = emitter->target.options.cluster.gpus,
            each = hw_gpus_per_node(&emitter->target.hw);
    for (const char *word; (word = rules_word(&words, emitter->arena));)
        emit_add(out, name, word, false);
    if (rule->words)
        return;
    if (number > 0)
        emit_add(out, name, arena_printf(emitter->arena, "%lld", (long long)number), false);
    if (strcmp(key, "cluster.gpus") == 0 && gpus % each == 0)
        emit_add(out, name, arena_printf(emitter->arena, "%lld", (long long)(gpus / each)), false);
    if (strcmp(value, "true") == 0)
        emit_add(out, name, "", true);
    else if (*value && strspn(value, "0123456789") == strlen(value))
        emit_add(out, name, value, false);
}

/* The options that a rule may have for one of the settings that it makes. */
static void find_candidates(struct candidates *out, const struct emitter *emitter,
    const struct rule *rule, const char *name, const char *key)
{
    const char *value = value_at(emitter, key);
    switch (rule->kind) {
    case RULE_INT:
    case RULE_NUMBER:
    case RULE_BOOL:
        emit_add(out, name, value, false);
        break;
    case RULE_WORDS: {
        const char *theirs = rules_theirs(rule->words, value, emitter->arena);
        emit_add(out, name, theirs ? theirs : "", false);
        break;
    }
    case RULE_SET:
        if (strcmp(rule->words, value) == 0)
            emit_add(out, name, "", true);
        break;
    case RULE_FACT:
    case RULE_MADE:
        add_facts(out, emitter, rule, name, key);
        break;
    case RULE_MODEL:
    case RULE_SHAPE:
    case RULE_HELD:
    case RULE_ASIDE:
    case RULE_SLIGHT:
    case RULE_REFUSED:
    case RULE_OTHER:
        break;
    }
}

/* ---- climbing ---- */

static int find_said(const struct emit_draft *draft, const char *key)
{
    for (int i = 0; i < draft->said.n; i++)
        if (strcmp(draft->said.at[i].key, key) == 0)
            return i;
    return -1;
}

static struct emit_said unsay(struct emit_draft *draft, int i)
{
    struct emit_said said = draft->said.at[i];
    for (int k = i + 1; k < draft->said.n; k++)
        draft->said.at[k - 1] = draft->said.at[k];
    draft->said.n--;
    return said;
}

/* With the option and without the comments of what it makes, one of them or all: kept where that is
 * better. always: kept where it is no worse. */
static bool try_option(
    struct emitter *emitter, struct emit_option option, const char *keys, bool always, int *best)
{
    struct emit_draft *draft = &emitter->draft;
    VEC(struct emit_said) gone = {0};
    vec_push(&draft->options, option);
    for (const char *key; (key = rules_word(&keys, emitter->arena));)
        if (find_said(draft, key) >= 0)
            vec_push(&gone, unsay(draft, find_said(draft, key)));
    int n = gone.n, value = emit_value_of(emitter, NULL, NULL);
    for (int i = 0; n > 1 && i < n && value >= *best; i++) { /* all but one */
        vec_push(&draft->said, gone.at[i]);
        value = emit_value_of(emitter, NULL, NULL);
        if (value >= *best)
            draft->said.n--;
    }
    bool better = value < *best || (always && value == *best);
    if (!better) {
        for (int i = 0; i < n; i++)
            vec_push(&draft->said, gone.at[i]);
        value = always && n > 0 ? emit_value_of(emitter, NULL, NULL) : value;
        better = value <= *best && always;
    }
    draft->options.n -= !better;
    *best = better ? value : *best;
    vec_free(&gone);
    return better;
}

/* What a reader looks for stands in the file, the trainer's default or not. */
static bool emit_is_wanted(const char *key)
{
    static const char *const wanted[] = {
        "train.micro_batch", "train.seq_len", "train.activation_checkpointing", "train.optimizer"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strcmp(wanted[i], key) == 0)
            return true;
    return false;
}

/* The first of a rule's names that is one; "" where all are patterns. */
static const char *emit_first_name(const struct rule *rule, struct arena *arena)
{
    const char *names = rule->names;
    for (const char *name; (name = rules_word(&names, arena));)
        if (!strchr(name, '*'))
            return name;
    return "";
}

static void climb_rule(struct emitter *emitter, const struct rule *rule, int *best)
{
    const char *name = emit_first_name(rule, emitter->arena), *keys = rule->key ? rule->key : "";
    bool of_experts = strstr(name, "moe") || strstr(name, "expert");
    bool done = !*name || (of_experts && emitter->target.model.shape.moe.experts == 0);
    for (int i = 0; i < emitter->draft.options.n; i++)
        done = done || strcmp(emitter->draft.options.at[i].name, name) == 0;
    for (const char *key; !done && (key = rules_word(&keys, emitter->arena));) {
        struct candidates candidates = {0};
        bool wanted = emit_is_wanted(key);
        if (strcmp(key, "model") == 0 || (find_said(&emitter->draft, key) < 0 && !wanted))
            continue;
        find_candidates(&candidates, emitter, rule, name, key);
        for (int i = 0; i < candidates.list.n && !done; i++)
            done = try_option(emitter, candidates.list.at[i], rule->key, wanted, best);
        vec_free(&candidates.list);
    }
}

/* ---- the model, and how many GPUs ---- */

/* Flopcast's own name of a file, else its path. */
static const char *emit_name_of(
    const struct emitter *emitter, enum files_kind kind, const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path,
               *dot = strrchr(file, '.');
    const char *stem =
        arena_printf(emitter->arena, "%.*s", (int)(dot ? dot - file : (long)strlen(file)), file);
    const char *own = files_find(emitter->arena, kind, stem);
    return strcmp(own, path) == 0 ? stem : files_name_from(emitter->arena, NULL, path);
}

static void emit_say(struct emitter *emitter, const char *key, const char *value)
{
    vec_push(&emitter->draft.said, ((struct emit_said){key, value}));
}

/* By a name that the trainer knows. */
static void climb_model(struct emitter *emitter, int *best)
{
    struct called called = called_load(emitter->arena);
    const char *ours = emitter->draft.said.at[find_said(&emitter->draft, "model")].value;
    bool done = false;
    size_t before = strlen(CALLED_TORCHTITAN);
    for (int i = 0; i < called.list.n && !done; i++) {
        const char *theirs = called.list.at[i].theirs, *slash = strchr(theirs, '/');
        bool flavor = strncmp(theirs, CALLED_TORCHTITAN, before) == 0;
        if (strcmp(called.list.at[i].ours, ours) != 0 || !slash ||
            flavor != (emitter->format == CONFIGURATION_TORCHTITAN))
            continue;
        struct emit_option one = {"model.config.pretrained_model_name_or_path", theirs, false};
        if (flavor) {
            size_t n = strcspn(theirs + before, "/");
            vec_push(&emitter->draft.options,
                ((struct emit_option){"model.name",
                    arena_printf(emitter->arena, "%.*s", (int)n, theirs + before), false}));
            one = (struct emit_option){"model.flavor", theirs + before + n + 1, false};
        }
        done = try_option(emitter, one, "model", false, best);
        emitter->draft.options.n -= flavor && !done;
    }
    vec_free(&called.list);
}

/* torchrun's. */
static void climb_torchrun(struct emitter *emitter, int *best)
{
    int64_t gpus = emitter->target.options.cluster.gpus,
            each = hw_gpus_per_node(&emitter->target.hw);
    each = gpus < each ? gpus : each;
    const char *nodes = arena_printf(emitter->arena, "%lld", (long long)(gpus / each));
    vec_push(&emitter->draft.options, ((struct emit_option){"--nnodes", nodes, false}));
    const char *processes = arena_printf(emitter->arena, "%lld", (long long)each);
    if (gpus % each != 0 ||
        !try_option(emitter, (struct emit_option){"--nproc-per-node", processes, false},
            "cluster.gpus", false, best))
        emitter->draft.options.n--;
}

/* ---- the whole ---- */

/* Comments for all that the trainer's defaults, and the stack, do not give. */
static int emit_begin(struct emitter *emitter)
{
    const struct scenario *target = &emitter->target.options;
    struct leaves plain = {.target = target, .arena = emitter->arena};
    static const char *const needed[] = {
        "cluster.gpus", "train.micro_batch", "train.seq_len", "strategy"};
    emit_say(emitter, "model", emit_name_of(emitter, FILES_MODELS, target->model_path));
    emit_say(emitter, "cluster.topology",
        emit_name_of(emitter, FILES_CLUSTERS, target->cluster.topology));
    emit_say(emitter, "stack",
        target->stack_path ? emit_name_of(emitter, FILES_STACKS, target->stack_path) : "none");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        emit_say(emitter, needed[i], value_at(emitter, needed[i]));
    int best = emit_value_of(emitter, &plain, NULL);
    if (best == WORST) /* it does not go together without more */
        emit_compare(&plain, &scenario_table, 0, "");
    for (bool more = true; more;) { /* of one comment other defaults may follow */
        more = false;
        for (int i = 0; i < plain.differ.n; i++)
            if (*plain.differ.at[i].value &&
                find_said(&emitter->draft, plain.differ.at[i].key) < 0) {
                emit_say(emitter, plain.differ.at[i].key, plain.differ.at[i].value);
                more = true;
            }
        best = emit_value_of(emitter, &plain, NULL);
    }
    vec_free(&plain.differ);
    return best;
}

/* Comments without which the file says the same. */
static void drop_idle(struct emitter *emitter, int *best)
{
    struct emit_draft *draft = &emitter->draft;
    for (int i = draft->said.n - 1; i >= 0; i--) {
        struct emit_said said = unsay(draft, i);
        int value = emit_value_of(emitter, NULL, NULL);
        if (value < *best) {
            *best = value;
            continue;
        }
        vec_push(&draft->said, said);
        for (int k = draft->said.n - 1; k > i; k--)
            draft->said.at[k] = draft->said.at[k - 1];
        draft->said.at[i] = said;
    }
}

/* What makes the layout is no comment. */
static enum status emit_check(const struct emitter *emitter, struct diag *diag)
{
    static const char *const layout[] = {"strategy", "fsdp.version", "fsdp.sharding_strategy",
        "train.micro_batch", "train.device_batch", "train.activation_checkpointing",
        "parallelism.tensor", "parallelism.context", "parallelism.pipeline", "parallelism.virtual",
        "parallelism.expert"};
    const struct source_pos at = {.file = configuration_format_names[emitter->format]};
    struct leaves differ = {0};
    bool same = false;
    emit_value_of(emitter, &differ, &same);
    if (!same)
        diag_input(diag, at, "its options, and comments, do not give the same job%s%s%s%s",
            differ.differ.n ? ": " : "", differ.differ.n ? differ.differ.at[0].key : "",
            differ.differ.n ? "=" : "", differ.differ.n ? differ.differ.at[0].value : "");
    vec_free(&differ.differ);
    if (!same)
        return STATUS_INPUT;
    for (size_t i = 0; i < sizeof layout / sizeof *layout; i++) {
        int k = find_said(&emitter->draft, layout[i]);
        if (k >= 0)
            return diag_input(
                diag, at, "it has no option for %s=%s", layout[i], emitter->draft.said.at[k].value);
    }
    return STATUS_OK;
}

/* The same program in the trainers' words: fully_shard has no SHARD_GRAD_OP; a step's sequences are
 * said of all GPUs. */
static void take_as_trainers(struct scenario_point *point, enum configuration_format format)
{
    struct strategy_options *strategy = &point->options.strategy;
    struct fsdp_options *fsdp = &strategy->fsdp;
    struct train_options *train = &strategy->train;
    bool fsdp2 = strategy->kind == STRATEGY_FSDP && fsdp->version == 2,
         kept = fsdp->sharding_strategy == SHARD_GRAD_OP ||
                fsdp->sharding_strategy == HYBRID_SHARD_ZERO2;
    if (fsdp2 && kept && fsdp->reshard_after_forward != RESHARD_ALWAYS) {
        fsdp->sharding_strategy =
            fsdp->sharding_strategy == SHARD_GRAD_OP ? FULL_SHARD : HYBRID_SHARD;
        fsdp->reshard_after_forward = RESHARD_NEVER;
    }
    if (format == CONFIGURATION_TORCHTITAN && fsdp->reduce_dtype == REDUCE_PARAM_DTYPE &&
        (train->precision == PRECISION_BF16_MIXED || train->precision == PRECISION_FP8_MIXED))
        fsdp->reduce_dtype = REDUCE_BF16;
    if (train->global_batch > 0 || train->device_batch > 0 || train->grad_accum == 1)
        return;
    train->global_batch = train->micro_batch * train->grad_accum *
                          strategy_data_ranks(&strategy->parallelism, point->options.cluster.gpus);
    train->grad_accum = 1;
    strategy_share_batch(strategy, point->options.cluster.gpus);
}

enum status emit_configuration(FILE *out, enum configuration_format format,
    const struct scenario_point *point, const char *title, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct configuration opened = {.arena = &arena};
    const struct importer *importer = importer_open(&opened, format, diag);
    struct emitter emitter = {
        .format = format, .target = *point, .importer = importer, .arena = &arena};
    BUG_IF(
        !emit_can(format, point), "%s has not this strategy", configuration_format_names[format]);
    enum status status = importer ? emit_make_file(&emitter, diag) : STATUS_INPUT;
    if (status != STATUS_OK) {
        arena_release(&arena);
        return status;
    }
    take_as_trainers(&emitter.target, format);
    for (int i = 0; i < importer->n_begins; i++)
        vec_push(&emitter.draft.options,
            ((struct emit_option){importer->begins[i].key, importer->begins[i].value, false}));
    int best = emit_begin(&emitter);
    if (format == CONFIGURATION_MEGATRON)
        climb_torchrun(&emitter, &best);
    else
        climb_model(&emitter, &best);
    for (int before = WORST + 1; best < before;) { /* options may need one another */
        before = best;
        for (int i = 0; i < importer->rules.n; i++)
            climb_rule(&emitter, &importer->rules.list[i], &best);
    }
    drop_idle(&emitter, &best);
    if (format == CONFIGURATION_MEGATRON)
        emit_shape(&emitter.draft, importer, &emitter.target.model.shape, &arena);
    status = emit_check(&emitter, diag);
    if (status == STATUS_OK)
        emit_write(out, format, &emitter.draft, title);
    unlink(emitter.file);
    vec_free(&emitter.draft.options);
    vec_free(&emitter.draft.said);
    arena_release(&arena);
    return status;
}
