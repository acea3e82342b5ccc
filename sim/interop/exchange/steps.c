/* What several settings say together, as far as it is data: the steps of a framework's file, one
 * after the other. A step looks at what stands before it, so that their order is part of what they
 * say: who is taken is not left aside later, and what is left aside is not refused. */
#include "exchange/rules.h"

#include "model/model.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const char model_prefix[] = "model.";

static bool is_of_model(const char *key)
{
    return strncmp(key, model_prefix, strlen(model_prefix)) == 0;
}

/* Whether a name is a key of the scenario or of the model, and its value; NULL: nothing gives it. A
 * degree that nothing gives is 1. */
static bool find_key(const struct configuration *config, const char *name, const char **value)
{
    size_t offset = 0;
    bool model = is_of_model(name) &&
                 config_field_find(&model_shape_table, name + strlen(model_prefix), &offset);
    if (!model && !config_field_find(&scenario_table, name, &offset))
        return false;
    *value = model ? put_model_find(config, name + strlen(model_prefix)) : put_find(config, name);
    if (!*value && strncmp(name, "parallelism.", strlen("parallelism.")) == 0)
        *value = "1";
    return true;
}

/* One of "a|b|c*". */
static bool matches_any(const char *patterns, const char *value, struct arena *arena)
{
    for (const char *at = patterns;; at++) {
        size_t n = strcspn(at, "|");
        if (fnmatch(arena_printf(arena, "%.*s", (int)n, at), value, 0) == 0)
            return true;
        at += n;
        if (!*at)
            return false;
    }
}

/* The first of "a|b" that the files have. */
static struct configuration_setting *find_first(struct configuration *config, const char *names)
{
    for (const char *at = names;; at++) {
        size_t n = strcspn(at, "|");
        struct configuration_setting *setting =
            setting_find(config, arena_printf(config->arena, "%.*s", (int)n, at));
        at += n;
        if (setting || !*at)
            return setting;
    }
}

/* One condition, without '!' in front: NAME, NAME?, NAME=PATTERNS, NAME!=PATTERNS, NAME>NUMBER;
 * without a name it is the step's setting. */
static bool steps_holds(
    struct configuration *config, const char *condition, const struct configuration_setting *own)
{
    size_t n = strcspn(condition, "?=!>");
    const char *name = arena_printf(config->arena, "%.*s", (int)n, condition),
               *rest = condition + n, *value = NULL;
    const struct configuration_setting *setting = n == 0 ? own : NULL;
    if (n > 0 && !find_key(config, name, &value))
        setting = find_first(config, name);
    if (setting)
        value = setting->value;
    bool differs = *rest == '!';
    rest += differs;
    if (!value || !*rest)
        return differs || (value && !*rest);
    if (*rest == '?')
        return setting && !setting->words;
    if (*rest == '>')
        return strtod(value, NULL) > strtod(rest + 1, NULL);
    return matches_any(rest + 1, value, config->arena) != differs;
}

static bool meets(
    struct configuration *config, const char *when, const struct configuration_setting *own)
{
    for (const char *condition; when && (condition = rules_word(&when, config->arena));) {
        bool negated = *condition == '!';
        if (steps_holds(config, condition + negated, own) == negated)
            return false;
    }
    return true;
}

static void put_key(struct configuration *config, const char *key, const char *text,
    struct configuration_setting *setting)
{
    if (is_of_model(key))
        put_model(config, key + strlen(model_prefix), text, setting);
    else
        put_setting(config, key, text, setting);
}

/* "key=text key=text", or the words for the one key. */
static void set_keys(
    struct configuration *config, const struct step *step, struct configuration_setting *setting)
{
    const char *words = step->words;
    if (step->key)
        put_key(config, step->key, words, setting);
    for (const char *word; !step->key && (word = rules_word(&words, config->arena));) {
        size_t n = strcspn(word, "=");
        put_key(config, arena_printf(config->arena, "%.*s", (int)n, word), word + n + 1, setting);
    }
}

/* A sentence of the step; {} is the setting's value. */
static const char *steps_step_sentence(
    struct configuration *config, const char *words, const struct configuration_setting *setting)
{
    const char *value = setting ? strstr(words, "{}") : NULL;
    return value ? arena_printf(config->arena, "%.*s%s%s", (int)(value - words), words,
                       setting->value, value + 2)
                 : words;
}

static void steps_take_setting(struct configuration *config, const struct step *step,
    struct configuration_setting *setting, struct diag *diag)
{
    const char *text = NULL;
    switch (step->kind) {
    case STEP_TAKE:
        text =
            step->words ? rules_ours(step->words, setting->value, config->arena) : setting->value;
        if (text)
            put_key(config, step->key, text, setting);
        break;
    case STEP_SET:
        set_keys(config, step, setting);
        break;
    case STEP_INT:
        put_key(config, step->key,
            number_text(
                config, setting_int(config, setting->name, strtoll(step->words, NULL, 10), diag)),
            setting);
        break;
    case STEP_NUMBER:
        put_key(config, step->key,
            arena_printf(config->arena, "%.6g", strtod(setting->value, NULL)), setting);
        break;
    case STEP_ASIDE:
        setting_aside(setting, step->words);
        break;
    case STEP_REFUSED:
        setting_refuse(setting, step->words);
        break;
    case STEP_ASSUME:
        assume(config, steps_step_sentence(config, step->words, setting));
        break;
    case STEP_ASSUMED:
    case STEP_REMOVED:
    case STEP_CALL:
        break;
    }
}

static void call_step(struct configuration *config, const char *name,
    const struct importer *importer, struct diag *diag)
{
    const struct importer_call *call = importer->calls;
    while (call->name && strcmp(call->name, name) != 0)
        call++;
    if (call->name)
        call->call(config, diag);
    else
        diag_input(diag, (struct source_pos){.file = importer->path},
            "there is nothing to call by the name '%.80s'", name);
}

/* A step of no setting. */
static void take_step(struct configuration *config, const struct importer *importer,
    const struct step *step, struct diag *diag)
{
    const char *key = step->key;
    if (!meets(config, step->when, NULL))
        return;
    if (step->kind == STEP_CALL)
        call_step(config, step->words, importer, diag);
    else if (step->kind == STEP_ASSUME)
        assume(config, step->words);
    else if (step->kind == STEP_ASSUMED && is_of_model(key))
        put_model(config, key + strlen(model_prefix), step->words, NULL);
    else if (step->kind == STEP_ASSUMED)
        put_assumed(config, key, step->words, step->why);
    else if (step->kind == STEP_REMOVED && is_of_model(key))
        put_model_remove(config, key + strlen(model_prefix));
    else if (step->kind == STEP_REMOVED)
        put_remove(config, key);
}

static void take_step_of(
    struct configuration *config, const struct step *step, const char *name, struct diag *diag)
{
    size_t n = strlen(name);
    struct configuration_setting *one = name[n - 1] == '*' ? NULL : find_first(config, name);
    if (one && meets(config, step->when, one))
        steps_take_setting(config, step, one, diag);
    for (int i = 0; i < config->settings.n && name[n - 1] == '*'; i++) {
        one = &config->settings.at[i];
        if (strncmp(one->name, name, n - 1) == 0 && meets(config, step->when, one))
            steps_take_setting(config, step, one, diag);
    }
}

void importer_follow(struct configuration *config, enum configuration_format format,
    const char *name, struct diag *diag)
{
    const struct importer *importer = importer_of(config, format);
    int k = 0;
    while (k < importer->n_steps && strcmp(importer->steps[k].name, name) != 0)
        k++;
    for (int i = 0; k < importer->n_steps && i < importer->steps[k].n; i++) {
        const struct step *step = &importer->steps[k].list[i];
        const char *names = step->names;
        if (!names)
            take_step(config, importer, step, diag);
        for (const char *one; names && (one = rules_word(&names, config->arena));)
            take_step_of(config, step, one, diag);
    }
}
