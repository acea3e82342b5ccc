/* Tables of a framework's settings applied, setting by setting.
 *
 * A rule has names (blanks between, '*' at the end for all that begin so), a kind, a key of ours
 * and words. The first rule that fits a name holds, so a name must stand before a '*' that
 * covers it. rules_apply() decides the setting's fate at once where one setting is enough
 * (numbers, words, switches); shapes and facts are only checked, and the framework's finish
 * function says what they become. rules_visit() walks a document: each leaf is a setting with a
 * dotted name, an empty mapping is "{}".
 *
 * What is subtle: a value that is not in the file ("auto", ${NAME} without a default) is open,
 * not wrong, if the rule wants a value. ${NAME:-default} is its default. Numbers go up to 2^53,
 * as JSON and Python write them (5e8, 500_000_000). */
#include "exchange/rules.h"

#include "scenario/scenario.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct rule *rules_find(const struct rules *rules, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < rules->n; i++)
        for (const char *at = rules->list[i].names; *at;
             at += strcspn(at, " "), at += strspn(at, " ")) {
            size_t one = strcspn(at, " ");
            bool below = at[one - 1] == '*';
            if (below ? length >= one - 1 && strncmp(at, name, one - 1) == 0
                      : length == one && strncmp(at, name, one) == 0)
                return &rules->list[i];
        }
    return NULL;
}

const char *rules_ours(const char *words, const char *value, struct arena *arena)
{
    size_t n = strlen(value);
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t length = strcspn(at, "= ");
        if (length == n && strncmp(at, value, n) == 0)
            return arena_printf(arena, "%.*s", (int)strcspn(at + length + 1, " "), at + length + 1);
    }
    return NULL;
}

const char *rules_word(const char **at, struct arena *arena)
{
    *at += strspn(*at, " ~");
    size_t n = strcspn(*at, " ");
    const char *word = n > 0 ? arena_printf(arena, "%.*s", (int)n, *at) : NULL;
    *at += n;
    return word;
}

const char *rules_theirs(const char *words, const char *ours, struct arena *arena)
{
    for (const char *word; (word = rules_word(&words, arena));)
        if (strcmp(word + strcspn(word, "=") + 1, ours) == 0)
            return arena_printf(arena, "%.*s", (int)strcspn(word, "="), word);
    return NULL;
}

/* The left sides of "theirs=ours theirs=ours". */
static const char *theirs(const char *words, struct arena *arena)
{
    char *text = arena_strdup(arena, words), *to = text;
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t length = strcspn(at, "= ");
        to += to > text ? (*to = ' ', 1) : 0;
        memmove(to, at, length);
        to += length;
    }
    *to = '\0';
    return text;
}

static bool rules_listed(const char *words, const char *value)
{
    size_t n = strlen(value);
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == n && strncmp(at, value, n) == 0)
            return true;
    return false;
}

/* Whole numbers, also as JSON and Python write large ones: 5e8, 500_000_000. */
static bool rules_whole_number(const char *text, int64_t *out)
{
    char plain[64], *end = NULL;
    size_t n = 0;
    for (; *text && n + 1 < sizeof plain; text++)
        if (*text != '_')
            plain[n++] = *text;
    plain[n] = '\0';
    double value = strtod(plain, &end);
    if (n == 0 || *end || *text || value != floor(value) || fabs(value) > 0x1p53)
        return false;
    *out = (int64_t)value;
    return true;
}

/* The first word: behind an argument's value stands whatever follows on its line. */
static const char *rules_first_word(const char *value, struct arena *arena)
{
    return arena_printf(arena, "%.*s", (int)strcspn(value, " "), value);
}

static enum status take_int(struct configuration *config, const struct rule *rule,
    struct configuration_setting *setting, struct diag *diag)
{
    const char *word = rules_first_word(setting->value, config->arena);
    int64_t number = 0;
    if (!rules_whole_number(word, &number))
        return diag_input(
            diag, setting->value_at, "%s is '%s'; a whole number is wanted", setting->name, word);
    if (rule->kind == RULE_MODEL) {
        put_model(config, rule->key, number_text(config, number), setting);
        return STATUS_OK;
    }
    size_t offset = 0;
    const struct config_field *field = config_field_at(&scenario_table, rule->key, &offset);
    bool limited = field->min != 0 || field->max != 0;
    if (limited && ((double)number < field->min || (double)number > field->max))
        return diag_input(diag, setting->value_at, "%s is %lld; %s is from %.0f to %.0f",
            setting->name, (long long)number, rule->key, field->min, field->max);
    put_setting(config, rule->key, number_text(config, number), setting);
    return STATUS_OK;
}

static enum status rules_take_bool(struct configuration *config, const struct rule *rule,
    struct configuration_setting *setting, struct diag *diag)
{
    const char *value = setting->bare ? "true" : rules_first_word(setting->value, config->arena);
    if (!rules_listed("true false", value))
        return diag_input(
            diag, setting->value_at, "%s is '%s'; true or false is wanted", setting->name, value);
    put_setting(config, rule->key, value, setting);
    return STATUS_OK;
}

static void take_words(
    struct configuration *config, const struct rule *rule, struct configuration_setting *setting)
{
    const char *value = rules_first_word(setting->value, config->arena);
    const char *ours = rules_ours(rule->words, value, config->arena);
    if (ours)
        put_setting(config, rule->key, ours, setting);
    else
        setting_refuse(
            setting, arena_printf(config->arena, "'%s' has no counterpart; simulated are: %s",
                         value, theirs(rule->words, config->arena)));
}

static enum status rules_take_number(struct configuration *config, const struct rule *rule,
    struct configuration_setting *setting, struct diag *diag)
{
    const char *word = rules_first_word(setting->value, config->arena);
    char *end = NULL;
    double number = strtod(word, &end);
    if (end == word || *end || !isfinite(number))
        return diag_input(
            diag, setting->value_at, "%s is '%s'; a number is wanted", setting->name, word);
    put_setting(config, rule->key, arena_printf(config->arena, "%.9g", number), setting);
    return STATUS_OK;
}

void assume(struct configuration *config, const char *sentence)
{
    for (int i = 0; i < config->assumptions.n; i++)
        if (strcmp(config->assumptions.at[i], sentence) == 0)
            return;
    vec_push(&config->assumptions, sentence);
}

bool value_is_off(const char *value)
{
    static const char *const off[] = {"false", "null", "none", "0", "[]", "{}", ""};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (strcmp(off[i], value) == 0)
            return true;
    return false;
}

static void take_untouched(
    struct configuration *config, const struct rule *rule, struct configuration_setting *setting)
{
    bool off = !setting->bare && value_is_off(setting->value);
    if (rule->kind == RULE_ASIDE)
        setting_aside(setting, rule->words);
    else if (off)
        setting_aside(setting, "off");
    else if (rule->kind == RULE_REFUSED)
        setting_refuse(setting, rule->words);
    else {
        setting_aside(setting, "nearly none; see what is assumed");
        assume(config, arena_printf(config->arena, "%s: %s", rule->key ? rule->key : setting->name,
                           rule->words));
        setting->key = NULL;
    }
}

static void take_fact(
    struct configuration *config, const struct rule *rule, struct configuration_setting *setting)
{
    if (rule->words && *rule->words != '~' && !rules_listed(rule->words, setting->value))
        setting_refuse(setting, arena_printf(config->arena, "known are: %s", rule->words));
}

/* The value is not in the file: "auto", or a variable of a script that is set elsewhere. */
static bool is_open(const struct configuration_setting *setting, const struct rule *rule)
{
    bool valued = rule->kind == RULE_INT || rule->kind == RULE_NUMBER || rule->kind == RULE_BOOL ||
                  rule->kind == RULE_WORDS || rule->kind == RULE_MODEL;
    bool kept = rule->kind == RULE_SHAPE || (rule->kind == RULE_FACT && rule->key);
    return setting->unset ? valued || kept
                          : valued && strcmp(setting->value, "auto") == 0 &&
                                !strstr(rule->words ? rule->words : "", "auto=");
}

enum status rules_apply(struct configuration *config, const struct rules *rules,
    struct configuration_setting *setting, struct diag *diag)
{
    const struct rule *rule = rules_find(rules, setting->name);
    if (!rule)
        return STATUS_OK;
    setting->key = rule->kind == RULE_MODEL || rule->kind == RULE_SHAPE ? "model"
                   : rule->kind == RULE_MADE                            ? NULL
                                                                        : rule->key;
    if (is_open(setting, rule)) {
        setting->fate = FATE_OPEN;
        setting->words = setting->unset ? arena_printf(config->arena,
                                              "the file does not say what %s is", setting->unset)
                                        : "auto: the trainer that is not in this file decides";
        return STATUS_OK;
    }
    if (setting->unset && rule->kind != RULE_ASIDE && rule->kind != RULE_SLIGHT &&
        rule->kind != RULE_OTHER) {
        setting_refuse(setting,
            arena_printf(config->arena, "the file does not say what %s is", setting->unset));
        return STATUS_OK;
    }
    switch (rule->kind) {
    case RULE_INT:
    case RULE_MODEL:
        return take_int(config, rule, setting, diag);
    case RULE_NUMBER:
        return rules_take_number(config, rule, setting, diag);
    case RULE_BOOL:
        return rules_take_bool(config, rule, setting, diag);
    case RULE_WORDS:
        take_words(config, rule, setting);
        break;
    case RULE_SET:
        put_setting(config, rule->key, rule->words, setting);
        break;
    case RULE_SHAPE:
    case RULE_FACT:
    case RULE_MADE:
        take_fact(config, rule, setting);
        break;
    case RULE_HELD:
        if (rules_listed(rule->words, setting->value))
            setting_aside(setting, "simulated so");
        else
            setting_refuse(setting, arena_printf(config->arena, "simulated as %s", rule->words));
        break;
    case RULE_ASIDE:
    case RULE_SLIGHT:
    case RULE_REFUSED:
        take_untouched(config, rule, setting);
        break;
    case RULE_OTHER:
        if (!setting->bare && value_is_off(setting->value))
            setting_aside(setting, "off");
        else
            return diag_input(diag, setting->at,
                "%s is of %s, which is not simulated; scenarios/models and 'flopcast help models' "
                "have what is",
                setting->name, rule->words);
        break;
    }
    return STATUS_OK;
}

int64_t times(int64_t a, int64_t b)
{
    const double most = 0x1p53;
    double product = (double)a * (double)b;
    return (int64_t)(product > most ? most : product < -most ? -most : product);
}

int64_t model_ranks(const struct configuration *config)
{
    return times(
        times(put_int(config, "parallelism.tensor", 1), put_int(config, "parallelism.pipeline", 1)),
        put_int(config, "parallelism.context", 1));
}

/* A list as "[1, 2]"; of what is in it only scalars. */
static const char *list_text(struct configuration *config, struct config_node list)
{
    const char *text = "";
    for (int i = 0; i < config_count(list); i++)
        text = arena_printf(
            config->arena, "%s%s%s", text, i ? "," : "", config_text(config_item(list, i)));
    return arena_printf(config->arena, "[%s]", text);
}

static const char *value_text(struct configuration *config, struct config_node node)
{
    switch (config_kind(node)) {
    case CONFIG_SCALAR:
        return arena_strdup(config->arena, config_text(node));
    case CONFIG_SEQUENCE:
        return list_text(config, node);
    case CONFIG_MAPPING:
        return "{}";
    case CONFIG_NULL:
    case CONFIG_NONE:
        break;
    }
    return "null";
}

/* ${NAME:-default} and ${NAME:default} are their defaults, which the environment may overrule;
 * *unset: a variable without one. */
static const char *rules_expand(struct configuration *config, const char *text, const char **unset)
{
    const char *out = "";
    for (const char *at = strstr(text, "${"); at; at = strstr(text, "${")) {
        const char *name = at + 2, *end = strchr(name, '}');
        if (!end)
            break;
        size_t n = strcspn(name, ":}");
        const char *value = name + n < end ? name + n + 1 : end;
        value += value < end && *value == '-';
        if (name + n == end)
            *unset = arena_printf(config->arena, "%.*s", (int)n, name);
        out = arena_printf(
            config->arena, "%s%.*s%.*s", out, (int)(at - text), text, (int)(end - value), value);
        text = end + 1;
    }
    return *out ? arena_printf(config->arena, "%s%s", out, text) : text;
}

struct walk {
    struct configuration *config;
    const char *file;
    const char *but;
    apply_setting *apply;
    void *self;
    enum status worst;
    struct diag *diag;
};

static struct source_pos rules_place(const struct walk *walk, struct config_node node)
{
    struct source_pos at = config_pos(node);
    at.file = walk->file; /* the document's own goes with it */
    return at;
}

static void exchange_rules_visit(struct walk *walk, const char *prefix, struct config_node mapping)
{
    struct configuration *config = walk->config;
    for (int i = 0; i < config_count(mapping); i++) {
        struct config_node key = config_key(mapping, i), value = config_item(mapping, i);
        const char *name =
            arena_printf(config->arena, "%s%s%s", prefix, *prefix ? "." : "", config_text(key));
        if (!*prefix && walk->but && strcmp(name, walk->but) == 0)
            continue;
        if (config_kind(value) == CONFIG_MAPPING && config_count(value) > 0) {
            exchange_rules_visit(walk, name, value);
            continue;
        }
        struct configuration_setting setting = {.name = name,
            .value = value_text(config, value),
            .at = rules_place(walk, key),
            .value_at = rules_place(walk, value)};
        setting.value = rules_expand(config, setting.value, &setting.unset);
        enum status status = walk->apply(config, &setting, walk->self, walk->diag);
        walk->worst = status == STATUS_OK ? walk->worst : status;
        vec_push(&config->settings, setting);
    }
}

enum status rules_visit(struct configuration *config, struct config_node mapping, const char *file,
    const char *but, apply_setting *apply, void *self, struct diag *diag)
{
    struct walk walk = {config, file, but, apply, self, STATUS_OK, diag};
    if (config_kind(mapping) != CONFIG_MAPPING)
        return diag_input(
            diag, rules_place(&walk, mapping), "a configuration is an object of names and values");
    exchange_rules_visit(&walk, "", mapping);
    return walk.worst;
}

static enum status apply_rules(struct configuration *config, struct configuration_setting *setting,
    void *self, struct diag *diag)
{
    return rules_apply(config, self, setting, diag);
}

enum status rules_apply_document(struct configuration *config, const struct config_doc *doc,
    const struct rules *rules, struct diag *diag)
{
    struct config_node root = config_root(doc);
    struct rules table = *rules;
    return rules_visit(config, root, arena_strdup(config->arena, config_pos(root).file), NULL,
        apply_rules, &table, diag);
}

enum status rules_apply_file(
    struct configuration *config, const char *path, const struct rules *rules, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, path, diag);
    if (status == STATUS_OK)
        status = rules_apply_document(config, doc, rules, diag);
    config_free(doc);
    return status;
}

int64_t setting_int(
    struct configuration *config, const char *name, int64_t otherwise, struct diag *diag)
{
    const struct configuration_setting *setting = setting_find(config, name);
    if (!setting || strcmp(setting->value, "auto") == 0 ||
        (setting->words && setting->fate == FATE_NOT_UNDERSTOOD))
        return otherwise;
    int64_t number = 0;
    const char *word = rules_first_word(setting->value, config->arena);
    if (rules_whole_number(word, &number))
        return number;
    diag_input(
        diag, setting->value_at, "%s is '%s'; a whole number is wanted", setting->name, word);
    return otherwise;
}
