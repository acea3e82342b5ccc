/* Files of a trainer to a scenario: what was read, what it became, what is missing.
 *
 * Each format has a reader, which adds settings with a fate, and steps for what several settings
 * say together. Settings become puts: a path with its text and where it comes from, each path once.
 * A put of higher rank replaces one of lower: files, then comments '# flopcast:', then the command
 * line. configuration_finish() marks repeated settings, puts what was given, runs the steps from
 * the last format to the first (DeepSpeed's batch needs the degrees of the others), gives every
 * setting that is left its fate, and lists what is missing.
 *
 * What is subtle: what is said beside the files goes in before the steps, so these see
 * it and do not overrule it. The scenario is written in the order of scenario_table. Text from
 * files goes into YAML comments with control characters replaced (put_words()). */
#include "exchange/configuration.h"

#include "base/files.h"
#include "base/utf8.h"
#include "exchange/rules.h"
#include "model/model.h"
#include "scenario/scenario.h"

#include <stdlib.h>
#include <string.h>

const char *const configuration_format_names[] = {
    "deepspeed", "accelerate", "torchtitan", "megatron", "automodel", "primus", NULL};

static bool configuration_ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), tail = strlen(suffix);
    return n >= tail && strcmp(path + n - tail, suffix) == 0;
}

enum configuration_format configuration_format_of(const char *path)
{
    return configuration_ends_in(path, ".json") ? CONFIGURATION_DEEPSPEED
           : configuration_ends_in(path, ".yaml") || configuration_ends_in(path, ".yml")
               ? CONFIGURATION_ACCELERATE
           : configuration_ends_in(path, ".toml") ? CONFIGURATION_TORCHTITAN
                                                  : CONFIGURATION_MEGATRON;
}

static enum status (*const readers[])(struct configuration *, const char *, struct diag *) = {
    [CONFIGURATION_DEEPSPEED] = deepspeed_read,
    [CONFIGURATION_ACCELERATE] = accelerate_read,
    [CONFIGURATION_TORCHTITAN] = torchtitan_read,
    [CONFIGURATION_MEGATRON] = megatron_read,
    [CONFIGURATION_AUTOMODEL] = automodel_read,
    [CONFIGURATION_PRIMUS] = primus_read,
};

/* Whose YAML it is, by its keys. */
static enum configuration_format owner_of(const char *path)
{
    struct config_doc *doc = NULL;
    struct diag unread = DIAG_INIT;
    enum configuration_format format = CONFIGURATION_ACCELERATE;
    if (config_load(&doc, path, &unread) == STATUS_OK) {
        struct config_node root = config_root(doc);
        bool steps = config_find(root, "step_scheduler").doc != NULL;
        if (config_find(root, "modules").doc &&
            (config_find(root, "work_group").doc || config_find(root, "exp_name").doc))
            format = CONFIGURATION_PRIMUS;
        else if (steps && (config_find(root, "recipe").doc || config_find(root, "model").doc))
            format = CONFIGURATION_AUTOMODEL;
    }
    config_free(doc);
    return format;
}

enum status configuration_say(struct configuration *out, const char *key, const char *value,
    struct source_pos at, struct diag *diag)
{
    struct scenario scratch = scenario_default();
    struct config_doc *doc = NULL;
    key = scenario_key_path(key, out->arena);
    enum status status = config_parse(&doc, at.file, value, strlen(value), diag);
    if (status == STATUS_OK) {
        config_set_origin(doc, ORIGIN_COMMAND_LINE);
        status = config_assign(
            key, at, config_root(doc), &scenario_table, &scratch, out->arena, NULL, diag);
    }
    config_free(doc);
    const char *from = arena_printf(out->arena, "%s:%d:%d # flopcast", at.file, at.line, at.column);
    vec_push(&out->said, ((struct configuration_said){key, value, from}));
    return status;
}

/* The comments that say a setting. */
static enum status read_comments(struct configuration *out, const char *path, struct diag *diag)
{
    static const char before[] = "# flopcast: ";
    char *text = NULL;
    size_t n = 0;
    struct source_pos at = {path, 1, 1};
    enum status status = config_read_file(&text, &n, FILES_ANY, path, diag);
    for (const char *line = text; status == STATUS_OK && line; at.line++) {
        size_t length = strcspn(line, "\r\n"), key = strcspn(line, "=\r\n");
        bool says = strncmp(line, before, strlen(before)) == 0;
        if (says && (key == length || key <= strlen(before)))
            status =
                diag_input(diag, at, "'# flopcast:' says a setting of a scenario, as KEY=VALUE");
        else if (says)
            status = configuration_say(out,
                arena_printf(
                    out->arena, "%.*s", (int)(key - strlen(before)), line + strlen(before)),
                arena_printf(out->arena, "%.*s", (int)(length - key - 1), line + key + 1), at,
                diag);
        line = strchr(line + length, '\n');
        line = line ? line + 1 : NULL;
    }
    free(text);
    return status;
}

enum status configuration_read(struct configuration *out, const char *path,
    enum configuration_format format, struct diag *diag)
{
    format = format == CONFIGURATION_ACCELERATE ? owner_of(path) : format;
    out->has[format] = true;
    path = arena_strdup(out->arena, path);
    bool both = format == CONFIGURATION_PRIMUS; /* a front of these two */
    if (!importer_open(out, format, diag) ||
        (both && (!importer_open(out, CONFIGURATION_MEGATRON, diag) ||
                     !importer_open(out, CONFIGURATION_TORCHTITAN, diag))))
        return STATUS_INPUT;
    enum status status = readers[format](out, path, diag);
    return status == STATUS_OK ? read_comments(out, path, diag) : status;
}

/* ---- settings ---- */

static struct configuration_setting *configuration_last_of(
    struct configuration *config, const char *name)
{
    for (int i = config->settings.n - 1; i >= 0; i--)
        if (strcmp(config->settings.at[i].name, name) == 0)
            return &config->settings.at[i];
    return NULL;
}

struct configuration_setting *setting_find(struct configuration *config, const char *name)
{
    struct configuration_setting *setting = configuration_last_of(config, name);
    return setting && setting->fate != FATE_OPEN ? setting : NULL;
}

struct configuration_setting *setting_open(struct configuration *config, const char *name)
{
    struct configuration_setting *setting = configuration_last_of(config, name);
    return setting && setting->fate == FATE_OPEN ? setting : NULL;
}

/* Its value; otherwise where there is none. */
static const char *setting_value(
    struct configuration *config, const char *name, const char *otherwise)
{
    const struct configuration_setting *setting = setting_find(config, name);
    return setting ? setting->value : otherwise;
}

bool setting_is(struct configuration *config, const char *name, const char *value)
{
    return strcmp(setting_value(config, name, ""), value) == 0;
}

void setting_aside(struct configuration_setting *setting, const char *words)
{
    if (!setting || setting->fate == FATE_TAKEN)
        return;
    setting->fate = FATE_ASIDE;
    setting->words = words;
}

void setting_refuse(struct configuration_setting *setting, const char *why)
{
    if (!setting || setting->fate != FATE_NOT_UNDERSTOOD)
        return;
    setting->words = why;
}

/* ---- what is put into scenario and model ---- */

const char *number_text(struct configuration *config, int64_t number)
{
    return arena_printf(config->arena, "%lld", (long long)number);
}

/* What is said beside the trainer's own settings holds, whatever these do. */
static bool is_given(const struct configuration_put *put)
{
    return put->by != PUT_FILES;
}

static const struct configuration_put *found(
    const struct configuration_put *list, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].path, key) == 0)
            return &list[i];
    return NULL;
}

static void exchange_configuration_put(
    struct configuration *config, bool model, struct configuration_put put)
{
    put.path = arena_strdup(config->arena, put.path);
    put.text = arena_strdup(config->arena, put.text);
    for (int i = 0; i < (model ? config->model.n : config->puts.n); i++) {
        struct configuration_put *at = model ? &config->model.at[i] : &config->puts.at[i];
        if (strcmp(at->path, put.path) == 0) {
            if (put.by >= at->by)
                *at = put;
            return;
        }
    }
    if (model)
        vec_push(&config->model, put);
    else
        vec_push(&config->puts, put);
}

static const char *origin_of(struct configuration *config, const struct configuration_setting *from)
{
    return arena_printf(
        config->arena, "%s:%d:%d %s", from->at.file, from->at.line, from->at.column, from->name);
}

static const char *who_says(const struct configuration_put *put)
{
    return put->by == PUT_GIVEN ? "the command line says it" : "a comment '# flopcast:' says it";
}

static void put_from(struct configuration *config, bool model, const char *key, const char *text,
    struct configuration_setting *from)
{
    const struct configuration_put *before =
        model ? NULL : found(config->puts.at, config->puts.n, key);
    if (before && is_given(before)) {
        setting_aside(from, who_says(before));
        return;
    }
    const char *words = arena_printf(config->arena, "%s: %s", key, text);
    from->words = from->fate == FATE_TAKEN && from->words
                      ? arena_printf(config->arena, "%s, %s", from->words, words)
                      : words;
    from->fate = FATE_TAKEN;
    exchange_configuration_put(
        config, model, (struct configuration_put){key, text, origin_of(config, from), PUT_FILES});
}

void put_setting(struct configuration *config, const char *key, const char *text,
    struct configuration_setting *from)
{
    put_from(config, false, key, text, from);
}

void put_model(struct configuration *config, const char *key, const char *text,
    struct configuration_setting *from)
{
    if (from)
        put_from(config, true, key, text, from);
    else
        exchange_configuration_put(
            config, true, (struct configuration_put){key, text, NULL, PUT_FILES});
}

void put_assumed(struct configuration *config, const char *key, const char *text, const char *why)
{
    const struct configuration_put *before = found(config->puts.at, config->puts.n, key);
    if (before && is_given(before))
        return;
    exchange_configuration_put(
        config, false, (struct configuration_put){key, text, NULL, PUT_FILES});
    if (why)
        vec_push(&config->assumptions, arena_printf(config->arena, "%s: %s, %s", key, text, why));
}

void put_remove(struct configuration *config, const char *key)
{
    int kept = 0;
    for (int i = 0; i < config->puts.n; i++)
        if (strcmp(config->puts.at[i].path, key) != 0)
            config->puts.at[kept++] = config->puts.at[i];
    config->puts.n = kept;
}

const char *put_find(const struct configuration *config, const char *key)
{
    const struct configuration_put *put = found(config->puts.at, config->puts.n, key);
    return put ? put->text : NULL;
}

void put_model_remove(struct configuration *config, const char *key)
{
    int kept = 0;
    for (int i = 0; i < config->model.n; i++)
        if (strcmp(config->model.at[i].path, key) != 0)
            config->model.at[kept++] = config->model.at[i];
    config->model.n = kept;
}

const char *put_model_find(const struct configuration *config, const char *key)
{
    const struct configuration_put *put = found(config->model.at, config->model.n, key);
    return put ? put->text : NULL;
}

int64_t put_int(const struct configuration *config, const char *key, int64_t otherwise)
{
    const char *text = put_find(config, key);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

/* ---- what several settings say together ---- */

static void configuration_missing(struct configuration *config, const char *key, const char *remedy)
{
    size_t n = strlen(key);
    bool listed = put_find(config, key) != NULL;
    for (int i = 0; i < config->missing.n; i++)
        listed |= strncmp(config->missing.at[i], key, n) == 0 && config->missing.at[i][n] == ':';
    if (!listed)
        vec_push(&config->missing, arena_printf(config->arena, "%s: %s", key, remedy));
}

/* A part of the model that only the user can say. */
static void put_model_open(
    struct configuration *config, const struct configuration_setting *setting)
{
    config->model.n = 0; /* half a model is none */
    configuration_missing(config, "model",
        arena_printf(config->arena, "--model NAME; %s: %s", setting->name, setting->words));
}

static void put_given(
    struct configuration *config, const char *key, const char *text, const char *option)
{
    if (text)
        exchange_configuration_put(
            config, false, (struct configuration_put){key, text, option, PUT_GIVEN});
}

static void configuration_check_gpus(
    struct configuration *config, const struct configuration_given *given)
{
    int64_t ranks = model_ranks(config), gpus = put_int(config, "cluster.gpus", 0);
    if (given->gpus > 0 || ranks < 1 || gpus == 0 || gpus % ranks == 0)
        return;
    /* A script's number of nodes is mostly a placeholder. */
    vec_push(&config->missing, arena_printf(config->arena,
                                   "cluster.gpus: --gpus N, a multiple of the %lld that hold a "
                                   "copy of the model; the files say %lld",
                                   (long long)ranks, (long long)gpus));
}

static void put_all_given(struct configuration *config, const struct configuration_given *given)
{
    char gpus[32];
    snprintf(gpus, sizeof gpus, "%d", given->gpus);
    for (int i = 0; i < config->said.n; i++)
        exchange_configuration_put(config, false,
            (struct configuration_put){config->said.at[i].key, config->said.at[i].value,
                config->said.at[i].from, PUT_COMMENT});
    put_given(config, "name", given->name, NULL);
    put_given(config, "model", given->model, "--model");
    put_given(config, "cluster.topology", given->topology, "--topology");
    put_given(config, "cluster.gpus", given->gpus > 0 ? gpus : NULL, "--gpus");
    put_given(config, "stack", given->stack, "--stack");
    for (int i = 0; i < given->n_sets; i++)
        put_given(config, scenario_key_path(given->sets[i].key, config->arena),
            given->sets[i].value, "--set");
}

/* Of settings of one name the last one holds. */
static void mark_repeated(struct configuration *config)
{
    for (int i = 0; i < config->settings.n; i++)
        if (configuration_last_of(config, config->settings.at[i].name) != &config->settings.at[i])
            config->settings.at[i].fate = FATE_ASIDE,
            config->settings.at[i].words = "given again later";
}

/* The files leave it open: the user says it, or another file does, or it is missing. */
static void close_open(struct configuration *config, struct configuration_setting *setting)
{
    const char *key = setting->key ? setting->key : "";
    const struct configuration_put *put = found(config->puts.at, config->puts.n, key);
    if (put) {
        setting->fate = FATE_ASIDE;
        setting->words = arena_printf(config->arena, "%s is %s%s", key, put->text,
            put->by == PUT_GIVEN ? ", as the command line says" : "");
        return;
    }
    if (strcmp(key, "model") == 0)
        put_model_open(config, setting);
    else
        configuration_missing(
            config, key, arena_printf(config->arena, "--set %s=VALUE; %s", key, setting->words));
}

/* Taken, and then the command line said another value of its key, or another model. */
static bool is_overruled(const struct configuration_setting *setting)
{
    return setting->fate == FATE_TAKEN &&
           (strcmp(setting->key, "model") == 0 || !strstr(setting->words, ", "));
}

/* What the command line says stands above what the files do; what is not understood is assumed not
 * to be there. */
static void close_settings(struct configuration *config)
{
    for (int i = 0; i < config->settings.n; i++) {
        struct configuration_setting *setting = &config->settings.at[i];
        const struct configuration_put *put =
            setting->key ? found(config->puts.at, config->puts.n, setting->key) : NULL;
        if (setting->fate == FATE_OPEN)
            close_open(config, setting);
        else if (put && is_given(put) &&
                 (setting->fate == FATE_NOT_UNDERSTOOD || is_overruled(setting)))
            setting->fate = FATE_ASIDE, setting->words = who_says(put);
        if (setting->fate == FATE_NOT_UNDERSTOOD)
            assume(
                config, arena_printf(config->arena, "not understood: %s%s%s%s%s%s", setting->name,
                            setting->bare ? "" : " = ", setting->value, setting->words ? " (" : "",
                            setting->words ? setting->words : "", setting->words ? ")" : ""));
    }
}

int configuration_count(const struct configuration *config, enum configuration_fate fate)
{
    int n = 0;
    for (int i = 0; i < config->settings.n; i++)
        n += config->settings.at[i].fate == fate;
    return n;
}

enum status configuration_finish(
    struct configuration *config, const struct configuration_given *given, struct diag *diag)
{
    mark_repeated(config);
    put_all_given(config, given);
    /* In this order: what DeepSpeed makes of a batch depends on the degrees that others state. */
    for (int f = CONFIGURATION_FORMAT_COUNT - 1; f >= 0; f--)
        if (config->has[f])
            importer_follow(config, (enum configuration_format)f, "finish", diag);
    close_settings(config);
    const char *stack = put_find(config, "stack");
    if (stack && strcmp(stack, "none") == 0)
        put_remove(config, "stack");
    if (!configuration_has_model(config))
        configuration_missing(
            config, "model", "--model NAME"); /* unless a name that is not known says more */
    configuration_missing(config, "cluster.topology", "--topology NAME");
    configuration_missing(config, "cluster.gpus", "--gpus N");
    configuration_missing(config, "train.micro_batch", "--micro-batch B");
    configuration_missing(config, "train.seq_len", "--seq-len T");
    configuration_check_gpus(config, given);
    return diag->worst;
}

int64_t model_width(struct configuration *config)
{
    const char *width = put_model_find(config, "d_model"), *name = put_find(config, "model");
    struct model_shape shape = {0};
    struct diag unread = DIAG_INIT;
    if (!name)
        return width ? strtoll(width, NULL, 10) : 0;
    const char *path = files_find(config->arena, FILES_MODELS, name);
    return model_load(&shape, path, true, config->arena, &unread) == STATUS_OK ? shape.d_model : 0;
}

bool model_named(struct configuration *config, struct model_shape *shape)
{
    const char *name = put_find(config, "model");
    struct diag unread = DIAG_INIT;
    return name && model_load(shape, files_find(config->arena, FILES_MODELS, name), true,
                       config->arena, &unread) == STATUS_OK;
}

int64_t model_blocks_named(struct configuration *config)
{
    struct model_shape shape = {0};
    return model_named(config, &shape) ? shape.n_layers : 0;
}

bool configuration_has_model(const struct configuration *config)
{
    return !put_find(config, "model") && put_model_find(config, "d_model") &&
           put_model_find(config, "vocab");
}

void configuration_free(struct configuration *config)
{
    vec_free(&config->settings);
    vec_free(&config->puts);
    vec_free(&config->said);
    vec_free(&config->model);
    vec_free(&config->assumptions);
    vec_free(&config->missing);
}

/* What a file of the user's says cannot end the comment: control characters and what is no UTF-8
 * are written as '?'. */
static void put_words(FILE *out, const char *text)
{
    const char *end = text + strlen(text);
    for (size_t bytes; text < end; text += bytes) {
        uint32_t c = 0;
        bytes = utf8_character(text, (size_t)(end - text), &c);
        if (bytes == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
            (c & 0xfffe) == 0xfffe)
            fputc('?', out);
        else
            fwrite(text, 1, bytes, out);
        bytes = bytes > 0 ? bytes : 1;
    }
}

static void configuration_put_line(
    FILE *out, int depth, const char *key, const struct configuration_put *put, bool quoted)
{
    fprintf(out, "%*s%s: ", 2 * depth, "", key);
    bool yaml = is_given(put) && *put->text == '"'; /* as --set takes it */
    if (quoted && !yaml)
        json_write_string(out, put->text);
    else
        fputs(put->text, out);
    if (put->from) {
        fputs(" # ", out);
        put_words(out, put->from);
    }
    fputc('\n', out);
}

/* The puts below a section, in the order of its table. */
static void put_section(FILE *out, const struct configuration *config,
    const struct config_table *table, const char *prefix, int depth)
{
    for (int f = 0; f < table->n_fields; f++) {
        const struct config_field *field = &table->fields[f];
        char path[160];
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", field->key);
        size_t n = strlen(path);
        bool begun = false;
        for (int i = 0; i < config->puts.n; i++) {
            const struct configuration_put *put = &config->puts.at[i];
            bool below = strncmp(put->path, path, n) == 0 && put->path[n] == '.';
            if ((field->type == FIELD_SECTION || field->type == FIELD_OVERRIDES) && below &&
                !begun) {
                fprintf(out, "%*s%s:\n", 2 * depth, "", field->key);
                put_section(out, config, field->section, path, depth + 1);
                begun = true;
            } else if (field->type == FIELD_OVERRIDES && !*field->key &&
                       !begun) { /* its keys stand beside this one */
                put_section(out, config, field->section, prefix, depth);
                begun = true;
            } else if (strcmp(put->path, path) == 0 && field->type != FIELD_SECTION) {
                configuration_put_line(out, depth, field->key, put,
                    field->type == FIELD_STRING || field->type == FIELD_PATH);
            }
        }
    }
}

void configuration_write(FILE *out, const struct configuration *config, const char *model_file)
{
    fputs("# By `flopcast scenario import`. Behind each setting: where it comes from; without: a "
          "default of the framework, see assumptions.\n",
        out);
    for (int i = 0; i < config->missing.n; i++) {
        fputs("# missing: ", out);
        put_words(out, config->missing.at[i]);
        fputc('\n', out);
    }
    if (model_file) {
        fputs("model: ", out);
        json_write_string(out, model_file);
        fputc('\n', out);
    }
    put_section(out, config, &scenario_table, "", 0);
    if (config->assumptions.n > 0)
        fputs("assumptions:\n", out);
    for (int i = 0; i < config->assumptions.n; i++) {
        fputs("  - ", out);
        json_write_string(out, config->assumptions.at[i]);
        fputc('\n', out);
    }
}

void configuration_write_model(FILE *out, const struct configuration *config, const char *name)
{
    fputs("# By `flopcast scenario import`.\nname: ", out);
    json_write_string(out, name);
    fputs("\nsource: \"arguments of Megatron-LM; without a place behind it: its default\"\n", out);
    static const char *const sections[] = {"", "moe.", "mla."};
    for (int s = 0; s < 3; s++) {
        size_t n = strlen(sections[s]);
        bool begun = s == 0;
        for (int i = 0; i < config->model.n; i++) {
            const struct configuration_put *put = &config->model.at[i];
            if (s == 0 ? strchr(put->path, '.') != NULL : strncmp(put->path, sections[s], n) != 0)
                continue;
            if (!begun)
                fprintf(out, "%.*s:\n", (int)n - 1, sections[s]);
            begun = true;
            configuration_put_line(out, s > 0, put->path + n, put, false);
        }
    }
}
