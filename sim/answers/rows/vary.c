/* Which settings differ between the points of a sweep, found by walking the table of all
 * settings.
 *
 * vary_walk() compares each field of every point's options with the first point's, as record cells,
 * so that unset quantities and missing names are equal to each other; what differs is kept as
 * path, field and offset, from which texts, cells and assignments are made. The cost is fields
 * times points.
 *
 * What is subtle: vary_find_unnamed() leaves out what a point's name has anyway (model,
 * strategy, micro-batch, GPUs), and the batch of a GPU where a global one is given, from which
 * it follows. vary_find_all() looks for differences inside each set, not between sets. Paths are
 * shown by their last two parts. */
#include "rows/vary.h"

#include <inttypes.h>
#include <string.h>

static const void *vary_at(const struct scenario *scenario, size_t offset)
{
    return (const char *)scenario + offset;
}

static struct record_cell cell_of(
    const char *path, const struct config_field *field, const void *value)
{
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_PATH:
        return cell_text(path, *(const char *const *)value);
    case FIELD_INT:
        return cell_int(path, *(const int64_t *)value);
    case FIELD_NUMBER:
        return cell_real(path, true, *(const double *)value);
    case FIELD_BOOL:
        return cell_text(path, *(const bool *)value ? "true" : "false");
    case FIELD_ENUM:
        return cell_text(path,
            *(const int *)value < 0 ? NULL : field->names[*(const int *)value]); /* not given */
    case FIELD_SOURCED: {
        struct quantity quantity = *(const struct quantity *)value;
        return cell_real(path, quantity_is_set(quantity), quantity.value);
    }
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
    case FIELD_NODE:
        break;
    }
    return cell_text(path, NULL);
}

static bool vary_same(const struct config_field *field, const void *a, const void *b)
{
    struct record_cell one = cell_of("", field, a), other = cell_of("", field, b);
    return one.kind == other.kind && one.integer == other.integer && one.real == other.real &&
           (one.text == other.text ||
               (one.text && other.text && strcmp(one.text, other.text) == 0));
}

bool vary_differs(
    const struct vary_option *option, const struct scenario *a, const struct scenario *b)
{
    return !vary_same(option->field, vary_at(a, option->offset), vary_at(b, option->offset));
}

static void vary_walk(struct vary *out, const struct scenario_set *set,
    const struct config_table *table, const char *prefix, size_t base, struct arena *arena)
{
    for (int f = 0; f < table->n_fields; f++) {
        const struct config_field *field = &table->fields[f];
        const char *path = arena_printf(arena, "%s%s", prefix, field->key);
        size_t offset = base + field->offset;
        if (field->type == FIELD_SECTION || field->type == FIELD_OVERRIDES) {
            vary_walk(out, set, field->section,
                *field->key ? arena_printf(arena, "%s.", path) : path, offset, arena);
            continue;
        }
        const struct scenario *first = &set->points[0].options;
        bool differs = false;
        for (int i = 1; i < set->n_points && !differs; i++)
            differs =
                !vary_same(field, vary_at(first, offset), vary_at(&set->points[i].options, offset));
        if (differs)
            vec_push(&out->options, (struct vary_option){path, field, offset});
    }
}

void vary_find(struct vary *out, const struct scenario_set *set, struct arena *arena)
{
    *out = (struct vary){0};
    vary_walk(out, set, &scenario_table, "", 0, arena);
}

void vary_find_all(struct vary *out, const struct scenario_set *sets, int n, struct arena *arena)
{
    *out = (struct vary){0};
    for (int i = 0; i < n; i++) {
        struct vary own;
        vary_find(&own, &sets[i], arena);
        for (int o = 0; o < own.options.n; o++) {
            bool known = false;
            for (int k = 0; k < out->options.n; k++)
                known = known || strcmp(out->options.at[k].path, own.options.at[o].path) == 0;
            if (!known)
                vec_push(&out->options, own.options.at[o]);
        }
        vec_free(&own.options);
    }
}

static bool vary_is_named(const char *path)
{
    static const char *const named[] = {"model", "strategy", "fsdp.sharding_strategy",
        "deepspeed.zero_optimization.stage", "train.micro_batch", "cluster.gpus"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(path, named[i]) == 0)
            return true;
    return false;
}

void vary_find_unnamed(struct vary *out, const struct scenario_set *set, struct arena *arena)
{
    struct vary all;
    vary_find(&all, set, arena);
    *out = (struct vary){0};
    bool shared_out = set->points[0].options.strategy.train.global_batch >
                      0; /* then each GPU's batch follows from it */
    for (int i = 0; i < all.options.n; i++)
        if (!vary_is_named(all.options.at[i].path) &&
            !(shared_out && strcmp(all.options.at[i].path, "train.device_batch") == 0))
            vec_push(&out->options, all.options.at[i]);
    vec_free(&all.options);
}

const char *vary_text(
    const struct vary_option *option, const struct scenario *scenario, struct arena *arena)
{
    return config_value_text(option->field, vary_at(scenario, option->offset), arena);
}

struct record_cell vary_cell(const struct vary_option *option, const struct scenario *scenario)
{
    return cell_of(option->path, option->field, vary_at(scenario, option->offset));
}

const char *vary_short(
    const struct vary_option *option, const struct scenario *scenario, struct arena *arena)
{
    const char *text = vary_text(option, scenario, arena), *from = text + strlen(text);
    for (int slashes = 0; option->field->type == FIELD_PATH && from > text; from--)
        if (from[-1] == '/' && ++slashes == 2)
            return from;
    return text;
}

const char *vary_name(
    const struct vary *vary, const struct scenario_point *point, struct arena *arena)
{
    const char *name = arena_printf(arena, "%s %s, batch %" PRId64, point->model.shape.name,
        strategy_label(&point->options.strategy), point->options.strategy.train.micro_batch);
    for (int i = 0; i < vary->options.n; i++)
        name = arena_printf(arena, "%s, %s %s", name, vary->options.at[i].path,
            vary_short(&vary->options.at[i], &point->options, arena));
    return name;
}

const char *vary_assignments(
    const struct vary *vary, const struct scenario_point *point, struct arena *arena)
{
    const char *text = "";
    for (int i = 0; i < vary->options.n; i++)
        text = arena_printf(arena, "%s%s%s=%s", text, i ? "; " : "", vary->options.at[i].path,
            vary_text(&vary->options.at[i], &point->options, arena));
    return text;
}

enum status vary_refuse_several(
    const struct scenario_set *set, const char *wants_one, struct arena *arena, struct diag *diag)
{
    struct vary vary;
    const char *text = "";
    if (set->n_points == 1)
        return STATUS_OK;
    vary_find(&vary, set, arena);
    for (int i = 0; i < vary.options.n; i++) {
        const struct vary_option *option = &vary.options.at[i];
        text = arena_printf(arena, "%s --set %s=%s", text, option->path,
            vary_text(option, &set->points[0].options, arena));
    }
    vec_free(&vary.options);
    return diag_input(diag, (struct source_pos){.file = set->file},
        "%d points, but %s; set what is swept to one value, as in%s", set->n_points, wants_one,
        text);
}
