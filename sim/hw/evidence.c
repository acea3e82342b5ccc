#include "hw/evidence.h"

#include "hw/table.h"

/* From bad to good. */
static int grade(struct quantity q)
{
    return q.kind == QUANTITY_UNSET ? 0 : q.kind == QUANTITY_ASSUMED ? 1 : 2;
}

static bool comparable(const struct config_field *field)
{
    bool factor = field->dimension == DIM_NONE && field->min == 0; /* what is counted begins with 1 */
    return field->type == FIELD_SOURCED &&
           (field->dimension == DIM_FRACTION || field->dimension == DIM_SECONDS || factor);
}

static const struct quantity *at(const struct hw *hw, size_t offset)
{
    return (const struct quantity *)(const void *)((const char *)hw + offset);
}

static struct quantity *in(struct hw *hw, size_t offset)
{
    return (struct quantity *)(void *)((char *)hw + offset);
}

struct walk {
    struct hw_unlikes *out;
    const struct hw *const *machines, *const *given;
    struct arena *arena;
};

static void look(const struct walk *walk, const struct config_table *table, const char *prefix, size_t base)
{
    for (int f = 0; f < table->n_fields; f++) {
        const struct config_field *field = &table->fields[f];
        const char *key = arena_printf(walk->arena, "%s%s", prefix, field->key);
        size_t offset = base + field->offset;
        if (field->type == FIELD_SECTION && field->section != &hw_gpu_power_table)
            look(walk, field->section, arena_printf(walk->arena, "%s.", key), offset);
        if (!comparable(field))
            continue;
        struct quantity a = *at(walk->machines[0], offset), b = *at(walk->machines[1], offset);
        bool chosen = quantity_is_set(*at(walk->given[0], offset)) || quantity_is_set(*at(walk->given[1], offset));
        bool same = a.value == b.value && quantity_is_set(a) == quantity_is_set(b);
        if (grade(a) != grade(b) && !chosen && !same)
            vec_push(&walk->out->list, (struct hw_unlike){key, field, offset, {a, b}});
    }
}

void hw_unlike(
    struct hw_unlikes *out, const struct hw *const machines[2], const struct hw *const given[2], struct arena *arena)
{
    const struct walk walk = {out, machines, given, arena};
    *out = (struct hw_unlikes){0};
    look(&walk, &hw_gpu_table, "gpu.", offsetof(struct hw, gpu));
    look(&walk, &hw_node_table, "cluster.node.", offsetof(struct hw, node));
    look(&walk, &hw_cluster_table, "cluster.", offsetof(struct hw, cluster));
}

void hw_even_out(struct hw *a, struct hw *b, const struct hw_unlike *unlike)
{
    int better = grade(unlike->of[1]) > grade(unlike->of[0]);
    *in(better == 1 ? a : b, unlike->offset) = unlike->of[better];
    hw_derive(better == 1 ? a : b);
}

const char *hw_unlike_text(const struct hw_unlike *unlike, int machine, struct arena *arena)
{
    struct quantity q = unlike->of[machine];
    char text[64];
    if (!quantity_is_set(q))
        return "none";
    quantity_format(text, sizeof text, q.value, unlike->field->dimension);
    return arena_printf(arena, "%s (%s)", text, hw_kind_name(q.kind));
}
