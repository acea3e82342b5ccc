/* Arguments of a model's shape, by the same climb as emit.c's: an argument stays where the shape
 * that the importer makes of all of them has fewer keys that differ, or needs one sentence of
 * assumption less. Tried are all arguments of the table that describe models, with every number
 * of the shape.
 *
 * emit_shape_begin() puts what every shape has. Then each round tries each remaining argument
 * alone, with each word of its rule or each number, keeps the best value if it helps, and the
 * rounds end when one brings nothing. A differing key counts A_KEY times a sentence. What is
 * subtle: every trial is a whole import, so the importer is the only place that knows what
 * arguments mean. If no draft gives a shape at all, all of these arguments are taken back. */
#include "exchange/emit_file.h"

#include "exchange/rules.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

struct shaper {
    struct emit_draft *draft;
    const struct importer *importer;
    const struct model_shape *shape;
    struct arena *arena;
    VEC(const char *) numbers; /* of the shape, each once */
    const char *differ;        /* keys, of the last that was asked for; NULL: none */
};

/* Not of the shape: what it is called, by whom. */
static bool emit_shape_is_name(const char *path)
{
    return strcmp(path, "name") == 0 || strcmp(path, "source") == 0 || strcmp(path, "assumed") == 0;
}

/* other NULL: gathers numbers. How many keys differ. */
static int emit_shape_compare(struct shaper *shaper, const struct config_table *table,
    size_t offset, const char *prefix, const struct model_shape *other, struct arena *arena)
{
    int n = 0;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *path = arena_printf(arena, "%s%s%s", prefix, *prefix ? "." : "", field->key);
        size_t at = offset + field->offset;
        if (field->type == FIELD_SECTION) {
            n += emit_shape_compare(shaper, field->section, at, path, other, arena);
            continue;
        }
        const char *value = config_value_text(field, (const char *)shaper->shape + at, arena);
        if (!other && *value && strspn(value, "0123456789") == strlen(value)) {
            bool known = strcmp(value, "0") == 0;
            for (int k = 0; k < shaper->numbers.n; k++)
                known = known || strcmp(shaper->numbers.at[k], value) == 0;
            if (!known)
                vec_push(&shaper->numbers, value);
            if (strcmp(path, "sliding_window") == 0 &&
                strcmp(value, "0") != 0) /* keys to the left, without its own */
                vec_push(
                    &shaper->numbers, arena_printf(arena, "%lld,0", strtoll(value, NULL, 10) - 1));
        }
        if (!other || emit_shape_is_name(path) ||
            strcmp(value, config_value_text(field, (const char *)other + at, arena)) == 0)
            continue;
        n++;
        shaper->differ =
            shaper->differ ? arena_printf(arena, "%s, %s", shaper->differ, path) : path;
    }
    return n;
}

enum { SHAPE_WORST = 1 << 30, A_KEY = 1 << 10 };

/* As emit.c's: 0: the shape, without an assumption. differ: its keys go there. */
static int emit_shape_value_of(struct shaper *shaper, const char **differ)
{
    struct arena scratch = ARENA_INIT;
    struct configuration config = {.arena = &scratch};
    const struct configuration_given given = {.name = "emitted"};
    struct diag diag = DIAG_INIT;
    struct model_shape shape = {0};
    char *text = NULL;
    size_t n = 0;
    config.given = &given;
    config.has[CONFIGURATION_MEGATRON] = true;
    config.importers[CONFIGURATION_MEGATRON] = shaper->importer;
    for (int i = 0; i < shaper->draft->options.n; i++) {
        const struct emit_option *option = &shaper->draft->options.at[i];
        struct configuration_setting setting = {.name = option->name,
            .value = option->bare ? "" : option->value,
            .bare = option->bare,
            .at = {"", 1, 1}};
        rules_apply(&config, &shaper->importer->rules, &setting, &diag);
        vec_push(&config.settings, setting);
    }
    if (diag.worst == STATUS_OK)
        configuration_finish(&config, &given, &diag);
    int value = SHAPE_WORST;
    FILE *out = xmemstream(&text, &n);
    configuration_write_model(out, &config, "emitted");
    fclose(out);
    bool whole = diag.worst == STATUS_OK && configuration_count(&config, FATE_NOT_UNDERSTOOD) == 0;
    shaper->differ = NULL;
    if (whole && configuration_has_model(&config) &&
        model_parse(&shape, "emitted", text, n, &scratch, &diag) == STATUS_OK)
        value = A_KEY * emit_shape_compare(shaper, &model_shape_table, 0, "", &shape, &scratch) +
                config.assumptions.n;
    if (differ)
        *differ = shaper->differ ? arena_strdup(shaper->arena, shaper->differ) : NULL;
    free(text);
    configuration_free(&config);
    arena_release(&scratch);
    return value;
}

static void emit_shape_put(struct shaper *shaper, const char *name, const char *value)
{
    vec_push(&shaper->draft->options, ((struct emit_option){name, value, !*value}));
}

static bool has_option(const struct shaper *shaper, const char *name)
{
    for (int i = 0; i < shaper->draft->options.n; i++)
        if (strcmp(shaper->draft->options.at[i].name, name) == 0)
            return true;
    return false;
}

/* The argument alone, with a word of its rule, or with a number: the best of them, if it is better.
 */
static void climb_name(struct shaper *shaper, const struct rule *rule, const char *name, int *best)
{
    const char *words = rule->words ? rule->words : "", *found = NULL;
    VEC(const char *) values = {0};
    for (const char *word; (word = rules_word(&words, shaper->arena));)
        vec_push(&values, word);
    if (!rule->words) {
        vec_push(&values, "");
        for (int i = 0; i < shaper->numbers.n; i++)
            vec_push(&values, shaper->numbers.at[i]);
    }
    for (int i = 0; i < values.n; i++) {
        emit_shape_put(shaper, name, values.at[i]);
        int value = emit_shape_value_of(shaper, NULL);
        shaper->draft->options.n--;
        found = value < *best ? values.at[i] : found;
        *best = value < *best ? value : *best;
    }
    if (found)
        emit_shape_put(shaper, name, found);
    vec_free(&values);
}

/* What every shape has, dropout, and the two that make its family (megatron_model.c). */
static void emit_shape_begin(struct shaper *shaper)
{
    static const char *const by_family[MODEL_FAMILY_COUNT] = {
        [MODEL_LLAMA] = "rope", [MODEL_NEOX] = "rope", [MODEL_GPT] = "learned_absolute"};
    const char *positions = by_family[shaper->shape->family];
    for (int i = 0; i < shaper->importer->rules.n; i++) {
        const struct rule *rule = &shaper->importer->rules.list[i];
        const char *names = rule->names;
        size_t at = 0;
        if (rule->kind != RULE_MODEL)
            continue;
        const struct config_field *field = config_field_at(&model_shape_table, rule->key, &at);
        const char *value =
            config_value_text(field, (const char *)shaper->shape + at, shaper->arena);
        if (strcmp(value, "0") != 0)
            emit_shape_put(shaper, rules_word(&names, shaper->arena), value);
    }
    size_t at = 0;
    const struct config_field *field = config_field_at(&model_shape_table, "dropout", &at);
    const char *dropout = config_value_text(field, (const char *)shaper->shape + at, shaper->arena);
    emit_shape_put(shaper, "--hidden-dropout", dropout);
    emit_shape_put(shaper, "--attention-dropout", dropout);
    if (positions)
        emit_shape_put(shaper, "--position-embedding-type", positions);
    if (shaper->shape->family == MODEL_LLAMA)
        emit_shape_put(shaper, "--swiglu", "");
}

void emit_shape(struct emit_draft *draft, const struct importer *importer,
    const struct model_shape *shape, struct arena *arena)
{
    struct shaper shaper = {.draft = draft, .importer = importer, .shape = shape, .arena = arena};
    int own = draft->options.n;
    emit_shape_compare(&shaper, &model_shape_table, 0, "", NULL, arena);
    emit_shape_begin(&shaper);
    int best = SHAPE_WORST;
    for (int before = SHAPE_WORST + 1; best > 0 && best < before;) {
        before = best;
        for (int i = 0; i < importer->rules.n; i++) {
            const struct rule *rule = &importer->rules.list[i];
            const char *names = rule->kind == RULE_SHAPE ? rule->names : "";
            for (const char *name; best > 0 && (name = rules_word(&names, arena));)
                if (!strchr(name, '*') && !has_option(&shaper, name))
                    climb_name(&shaper, rule, name, &best);
        }
    }
    emit_shape_value_of(&shaper, &draft->unsaid);
    if (best == SHAPE_WORST) { /* a family that arguments do not give */
        draft->options.n = own;
        draft->unsaid = "its shape";
    }
    vec_free(&shaper.numbers);
}
