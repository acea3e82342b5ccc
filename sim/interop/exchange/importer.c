/* A framework's file of data, scenarios/import/FRAMEWORK.yaml, by config's tables. What a kind of
 * rule needs is one table here; a key is looked up in the tables of scenarios and models, so that a
 * word that is spelled wrongly is an error of the file, with its place, and not of whoever imports
 * a configuration. */
#include "exchange/rules.h"

#include "model/model.h"

#include <string.h>

static const char *const kind_names[] = {[RULE_INT] = "int",
    [RULE_NUMBER] = "number",
    [RULE_BOOL] = "bool",
    [RULE_WORDS] = "words",
    [RULE_SET] = "set",
    [RULE_MODEL] = "model",
    [RULE_SHAPE] = "shape",
    [RULE_FACT] = "fact",
    [RULE_MADE] = "made",
    [RULE_HELD] = "held",
    [RULE_ASIDE] = "aside",
    [RULE_SLIGHT] = "slight",
    [RULE_REFUSED] = "refused",
    [RULE_OTHER] = "other",
    [RULE_OTHER + 1] = NULL};

/* Whether the kind has a key, and words: it must, it may, or it cannot. */
enum part { NEVER, MAY, MUST };
static const struct {
    enum part key, words;
} kind_parts[] = {[RULE_INT] = {MUST, NEVER},
    [RULE_NUMBER] = {MUST, NEVER},
    [RULE_BOOL] = {MUST, NEVER},
    [RULE_WORDS] = {MUST, MUST},
    [RULE_SET] = {MUST, MUST},
    [RULE_MODEL] = {MUST, NEVER},
    [RULE_SHAPE] = {NEVER, MAY},
    [RULE_FACT] = {MAY, MAY},
    [RULE_MADE] = {MUST, MAY},
    [RULE_HELD] = {NEVER, MUST},
    [RULE_ASIDE] = {NEVER, MUST},
    [RULE_SLIGHT] = {MAY, MUST},
    [RULE_REFUSED] = {NEVER, MUST},
    [RULE_OTHER] = {NEVER, MUST}};

static const struct config_field rule_fields[] = {
    {CONFIG_FIELD("names", FIELD_STRING, struct rule, names, "The settings' names."),
        .required = true},
    {CONFIG_FIELD("kind", FIELD_ENUM, struct rule, kind, "What they become."), .required = true,
        .names = kind_names},
    {CONFIG_FIELD("key", FIELD_STRING, struct rule, key, "Of the scenario, or of the model.")},
    {CONFIG_FIELD("words", FIELD_STRING, struct rule, words, "Which values, or why.")},
};
static const struct config_table rule_table = CONFIG_TABLE("a rule", rule_fields);

static const struct config_field other_fields[] = {
    {CONFIG_FIELD("name", FIELD_STRING, struct importer_other, name, "A part of a name, or keys."),
        .required = true},
    {CONFIG_FIELD("what", FIELD_STRING, struct importer_other, what, "What it is."),
        .required = true},
    {CONFIG_FIELD("model", FIELD_STRING, struct importer_other, model, "What --model may name.")},
};
static const struct config_table other_table = CONFIG_TABLE("what is not read", other_fields);

static const char *const step_names[] = {[STEP_TAKE] = "take",
    [STEP_SET] = "set",
    [STEP_INT] = "int",
    [STEP_NUMBER] = "number",
    [STEP_ASIDE] = "aside",
    [STEP_REFUSED] = "refused",
    [STEP_ASSUME] = "assume",
    [STEP_ASSUMED] = "assumed",
    [STEP_REMOVED] = "removed",
    [STEP_CALL] = "call",
    [STEP_CALL + 1] = NULL};

static const struct {
    enum part names, key, words, why;
} step_parts[] = {[STEP_TAKE] = {MUST, MUST, MAY, NEVER},
    [STEP_SET] = {MUST, MAY, MUST, NEVER},
    [STEP_INT] = {MUST, MUST, MUST, NEVER},
    [STEP_NUMBER] = {MUST, MUST, NEVER, NEVER},
    [STEP_ASIDE] = {MUST, NEVER, MUST, NEVER},
    [STEP_REFUSED] = {MUST, NEVER, MUST, NEVER},
    [STEP_ASSUME] = {MAY, NEVER, MUST, NEVER},
    [STEP_ASSUMED] = {NEVER, MUST, MUST, MAY},
    [STEP_REMOVED] = {NEVER, MUST, NEVER, NEVER},
    [STEP_CALL] = {NEVER, NEVER, MUST, NEVER}};

static const struct config_field step_fields[] = {
    {CONFIG_FIELD("names", FIELD_STRING, struct step, names, "The settings that it is of.")},
    {CONFIG_FIELD("when", FIELD_STRING, struct step, when, "Conditions.")},
    {CONFIG_FIELD("kind", FIELD_ENUM, struct step, kind, "What becomes of it."), .required = true,
        .names = step_names},
    {CONFIG_FIELD(
        "key", FIELD_STRING, struct step, key, "Of the scenario, or model.KEY of the model.")},
    {CONFIG_FIELD("words", FIELD_STRING, struct step, words, "Which values, or why.")},
    {CONFIG_FIELD("why", FIELD_STRING, struct step, why, "Why a default is assumed.")},
};
static const struct config_table step_table = CONFIG_TABLE("a step", step_fields);

struct importer_file {
    struct config_node rules, megatron, torchtitan, steps, others, begins, renamed;
};
#define PART(key_, help_) CONFIG_FIELD(#key_, FIELD_NODE, struct importer_file, key_, help_)
static const struct config_field file_fields[] = {
    {PART(rules, "What each setting becomes."), .required = true},
    {PART(megatron, "The same of keys that are added to Megatron-LM.")},
    {PART(torchtitan, "The same of keys that are added to torchtitan.")},
    {PART(steps, "What several settings say together.")},
    {PART(others, "Jobs and files that are not read.")},
    {PART(begins, "What a written file has in any case.")},
    {PART(renamed, "Keys that arguments call otherwise.")},
};
static const struct config_table file_table = CONFIG_TABLE("an importer", file_fields);

/* of: "a rule of kind int" */
static bool importer_check_part(enum part wanted, const char *text, const char *part,
    const char *of, struct source_pos at, struct diag *diag)
{
    if ((wanted == MUST && !text) || (wanted == NEVER && text))
        diag_input(diag, at, "%s %s '%s'", of, wanted == MUST ? "needs" : "has no", part);
    return wanted != NEVER && text;
}

static void importer_check_key(const char *key, bool model, struct source_pos at, struct diag *diag)
{
    size_t offset = 0;
    if (!config_field_find(model ? &model_shape_table : &scenario_table, key, &offset))
        diag_input(diag, at, "'%.80s' is no setting of a %s", key, model ? "model" : "scenario");
}

static void check_rule(
    const struct rule *rule, struct config_node node, struct arena *arena, struct diag *diag)
{
    const char *of = arena_printf(arena, "a rule of kind %s", kind_names[rule->kind]),
               *keys = rule->key;
    struct source_pos at = config_pos(node);
    importer_check_part(kind_parts[rule->kind].words, rule->words, "words", of, at, diag);
    if (importer_check_part(kind_parts[rule->kind].key, rule->key, "key", of, at, diag) &&
        rule->kind != RULE_SLIGHT)
        for (const char *key; (key = rules_word(&keys, arena));)
            importer_check_key(
                key, rule->kind == RULE_MODEL, config_pos(config_find(node, "key")), diag);
}

static struct rules read_rules(struct config_node node, struct arena *arena, struct diag *diag)
{
    struct rules rules = {0};
    int before = diag->n_errors;
    rules.list = config_read_list(node, &rule_table, sizeof *rules.list, &rules.n, arena, diag);
    for (int i = 0; i < rules.n && diag->n_errors == before; i++)
        check_rule(&rules.list[i], config_item(node, i), arena, diag);
    return rules;
}

static void check_step(
    const struct step *step, struct config_node node, struct arena *arena, struct diag *diag)
{
    static const char model[] = "model.";
    const char *of = arena_printf(arena, "a step of kind %s", step_names[step->kind]),
               *words = step->words;
    struct source_pos at = config_pos(node);
    bool ours = step->key && strncmp(step->key, model, strlen(model)) == 0;
    importer_check_part(step_parts[step->kind].names, step->names, "names", of, at, diag);
    importer_check_part(step_parts[step->kind].words, step->words, "words", of, at, diag);
    importer_check_part(step_parts[step->kind].why, step->why, "why", of, at, diag);
    if (importer_check_part(step_parts[step->kind].key, step->key, "key", of, at, diag))
        importer_check_key(step->key + (ours ? strlen(model) : 0), ours,
            config_pos(config_find(node, "key")), diag);
    for (const char *word;
         step->kind == STEP_SET && !step->key && (word = rules_word(&words, arena));)
        importer_check_key(arena_printf(arena, "%.*s", (int)strcspn(word, "="), word), false,
            config_pos(config_find(node, "words")), diag);
}

static const struct steps *read_steps(
    struct config_node mapping, int *n, struct arena *arena, struct diag *diag)
{
    *n = config_count(mapping);
    struct steps *steps = ARENA_ARRAY(arena, struct steps, *n);
    for (int i = 0; i < *n; i++) {
        struct config_node node = config_item(mapping, i);
        int before = diag->n_errors;
        steps[i].name = arena_strdup(arena, config_text(config_key(mapping, i)));
        steps[i].list =
            config_read_list(node, &step_table, sizeof *steps[i].list, &steps[i].n, arena, diag);
        for (int k = 0; k < steps[i].n && diag->n_errors == before; k++)
            check_step(&steps[i].list[k], config_item(node, k), arena, diag);
    }
    return steps;
}

static const struct importer_pair *read_pairs(
    struct config_node mapping, int *n, struct arena *arena)
{
    *n = config_count(mapping);
    struct importer_pair *pairs = ARENA_ARRAY(arena, struct importer_pair, *n);
    for (int i = 0; i < *n; i++)
        pairs[i] = (struct importer_pair){arena_strdup(arena, config_text(config_key(mapping, i))),
            arena_strdup(arena, config_text(config_item(mapping, i)))};
    return pairs;
}

static struct importer *importer_load(const char *path, struct arena *arena, struct diag *diag)
{
    struct importer *importer = ARENA_NEW(arena, struct importer);
    importer->path = path;
    struct importer_file file = {0};
    struct config_doc *doc = NULL;
    struct diag own = DIAG_INIT;
    if (config_load(&doc, path, &own) == STATUS_OK &&
        config_read(config_root(doc), &file_table, &file, arena, NULL, &own) == STATUS_OK) {
        importer->rules = read_rules(file.rules, arena, &own);
        importer->megatron = read_rules(file.megatron, arena, &own);
        importer->torchtitan = read_rules(file.torchtitan, arena, &own);
        importer->steps = read_steps(file.steps, &importer->n_steps, arena, &own);
        importer->others = config_read_list(
            file.others, &other_table, sizeof *importer->others, &importer->n_others, arena, &own);
        importer->begins = read_pairs(file.begins, &importer->n_begins, arena);
        importer->renamed = read_pairs(file.renamed, &importer->n_renamed, arena);
    }
    config_free(doc);
    bool whole = own.worst == STATUS_OK;
    diag_merge(diag, &own);
    return whole ? importer : NULL;
}

const struct importer *importer_open(
    struct configuration *config, enum configuration_format format, struct diag *diag)
{
    static const struct importer_call *const calls[] = {[CONFIGURATION_DEEPSPEED] = deepspeed_calls,
        [CONFIGURATION_ACCELERATE] = accelerate_calls,
        [CONFIGURATION_TORCHTITAN] = torchtitan_calls,
        [CONFIGURATION_MEGATRON] = megatron_calls,
        [CONFIGURATION_AUTOMODEL] = automodel_calls,
        [CONFIGURATION_PRIMUS] = primus_calls};
    const char *path =
        files_own(config->arena, arena_printf(config->arena, "scenarios/import/%s.yaml",
                                     configuration_format_names[format]));
    struct importer *importer =
        config->importers[format] ? NULL : importer_load(path, config->arena, diag);
    if (importer) {
        importer->calls = calls[format];
        config->importers[format] = importer;
    }
    return config->importers[format];
}

const struct importer *importer_of(
    const struct configuration *config, enum configuration_format format)
{
    BUG_IF(!config->importers[format], "%s was not opened", configuration_format_names[format]);
    return config->importers[format];
}
