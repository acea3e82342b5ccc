/* Draws of a machine's numbers, and shifts of one of them, by a walk over the tables of its files.
 *
 * draw_walk() visits every sourced number of GPU, node and cluster (and of a second kind of node)
 * through the field tables, so a number that is added to a table is drawn without a line here. What
 * a visitor knows of a number is its key and the id of its parameter; nothing is remembered between
 * numbers. Equal draws of one parameter in two files come from that: the random stream is made of
 * seed, key and id, so it gives the same normal wherever it is asked.
 *
 * A number of a fit is row i of the Cholesky factor times the independent normals of parameters 0
 * to i, each from its stream. A machine that has only some of a fit's parameters gets the values
 * that it would have beside all of them.
 *
 * Subtle: a spread follows from the value before the move, so moving a number twice is not the same
 * as moving it by the sum. A table's bounds clip what is drawn; a clipped number is no longer
 * log-normal. */
#include "hw/draw.h"

#include "base/digest.h"
#include "base/rng.h"
#include "base/vec.h"
#include "hw/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ENTITY_PARAMETER = 1000 }; /* apart from what runs draw (exec/state.h) */

struct drawing {
    const struct hw_fits *fits;
    uint64_t seed;
};

static uint64_t draw_digest_text(uint64_t digest, const char *text)
{
    for (; *text; text++)
        digest = digest_word(digest, (unsigned char)*text);
    return digest;
}

/* One standard normal. The stream depends on names alone, never on the order of the visits. */
static double normal(uint64_t seed, const char *key, const char *id)
{
    struct rng_stream stream = rng_stream(
        seed, ENTITY_PARAMETER, draw_digest_text(draw_digest_text(DIGEST_INIT, key), id));
    return rng_gaussian(&stream, 1);
}

static uint64_t draw_mix(uint64_t seed, uint64_t draw)
{
    return digest_word(digest_word(DIGEST_INIT, seed), draw);
}

double hw_draw_normal(const char *key, const char *parameter, uint64_t seed, uint64_t draw)
{
    return normal(draw_mix(seed, draw), key, parameter);
}

/* The parameter's place in a fit, or -1. */
static int draw_find(const struct hw_fit *fit, const char *key, const char *id)
{
    for (int i = 0; i < fit->n; i++)
        if (strcmp(fit->keys[i], key) == 0 && strcmp(fit->ids[i], id) == 0)
            return i;
    return -1;
}

/* A row of the Cholesky factor times independent draws, one a parameter: whichever of them a
 * machine has, each is drawn as if all were there. */
static double standard(const struct drawing *drawing, const char *key, const char *id)
{
    for (int f = 0; f < drawing->fits->n; f++) {
        const struct hw_fit *fit = &drawing->fits->list[f];
        int row = draw_find(fit, key, id);
        double sum = 0;
        for (int i = 0; i <= row; i++)
            sum += fit->factor[row * fit->n + i] * normal(drawing->seed, fit->keys[i], fit->ids[i]);
        if (row >= 0)
            return sum;
    }
    return normal(drawing->seed, key, id);
}

static bool is_speed(enum dimension dimension)
{
    return dimension == DIM_FRACTION || dimension == DIM_SECONDS || dimension == DIM_BYTES_PER_S ||
           dimension == DIM_FLOP_PER_S;
}

static double default_spread(struct quantity q, const struct config_field *field)
{
    if (!is_speed(field->dimension))
        return 0;
    return q.kind == QUANTITY_ASSUMED    ? DRAW_ASSUMED
           : q.kind == QUANTITY_MEASURED ? DRAW_MEASURED
                                         : 0;
}

static bool draw_is_share(const struct config_field *field)
{
    return field->dimension == DIM_FRACTION && field->max == 1;
}

/* Not of nothing, nor of all there is. */
static bool has_scale(struct quantity q, const struct config_field *field)
{
    return q.value > 0 && (!draw_is_share(field) || q.value < 1) && q.kind != QUANTITY_UNSET;
}

/* One standard deviation, of the logarithm or of that of share / (1 - share); 0: it is not drawn.
 * For a share s, the derivative of log(s / (1 - s)) is 1 / (s (1 - s)): hence the division by 1 -
 * value. */
static double spread_of(struct quantity q, const struct config_field *field)
{
    if (!has_scale(q, field))
        return 0;
    if (q.std_error > 0)
        return q.std_error / q.value / (draw_is_share(field) ? 1 - q.value : 1);
    return default_spread(q, field);
}

/* Adds `moved` to the logarithm, or to the logit of a share. */
static void draw_move(struct quantity *q, const struct config_field *field, double moved)
{
    if (draw_is_share(field))
        q->value = 1 / (1 + (1 - q->value) / q->value * exp(-moved));
    else
        q->value *= exp(moved);
    if (field->min != 0 || field->max != 0)
        q->value = fmin(fmax(q->value, field->min), field->max);
}

/* Every number of a table, with the names of the sections above it: "gemm.bf16". */
typedef void (*visitor)(
    void *self, struct quantity *q, const struct config_field *field, const char *section);

/* The section's path is built on the stack. Of the visitors only list_one() reads it. */
static void draw_walk(
    void *into, const struct config_table *table, const char *section, visitor visit, void *self)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        void *at = (unsigned char *)into + field->offset;
        char below[128];
        int length = snprintf(below, sizeof below, "%s.%s", section, field->key);
        BUG_IF(length >= (int)sizeof below, "%s.%s", section, field->key);
        if (field->type == FIELD_SECTION)
            draw_walk(at, field->section, below, visit, self);
        else if (field->type == FIELD_SOURCED)
            visit(self, at, field, section);
    }
}

static void walk_all(struct hw *hw, visitor visit, void *self)
{
    draw_walk(&hw->gpu, &hw_gpu_table, "gpu", visit, self);
    draw_walk(&hw->node, &hw_node_table, "node", visit, self);
    draw_walk(&hw->cluster, &hw_cluster_table, "cluster", visit, self);
}

static void draw_one(
    void *self, struct quantity *q, const struct config_field *field, const char *section)
{
    const struct drawing *drawing = self;
    (void)section;
    if (has_scale(*q, field))
        draw_move(
            q, field, spread_of(*q, field) * standard(drawing, field->key, quantity_parameter(*q)));
}

void hw_draw_quantity(struct quantity *q, const struct config_field *field,
    const struct hw_fits *fits, uint64_t seed, uint64_t draw)
{
    struct drawing drawing = {fits, draw_mix(seed, draw)};
    draw_one(&drawing, q, field, "");
}

void hw_draw(struct hw *hw, const struct hw_fits *fits, uint64_t seed, uint64_t draw)
{
    struct drawing drawing = {fits, draw_mix(seed, draw)};
    walk_all(hw, draw_one, &drawing);
    hw_derive(hw);
}

/* ---- one parameter at a time ---- */

struct listing {
    VEC(struct hw_parameter) found;
    struct arena *arena;
};

static bool draw_is(const struct hw_parameter *parameter, const char *key, const char *id)
{
    return strcmp(parameter->key, key) == 0 && strcmp(parameter->id, id) == 0;
}

/* A parameter may stand in several places; only the first is listed, and hw_shift() moves all of
 * them. */
static void list_one(
    void *self, struct quantity *q, const struct config_field *field, const char *section)
{
    struct listing *listing = self;
    double spread = spread_of(*q, field);
    const char *id = spread > 0 ? quantity_parameter(*q) : NULL;
    for (int i = 0; i < listing->found.n && id; i++)
        if (draw_is(&listing->found.at[i], field->key, id))
            return;
    if (id)
        vec_push(&listing->found,
            (struct hw_parameter){arena_printf(listing->arena, "%s.%s", section, field->key),
                field->key, id, *q, field->dimension, spread,
                spread * (draw_is_share(field) ? 1 - q->value : 1)});
}

int hw_parameters(const struct hw_parameter **out, const struct hw *hw, struct arena *arena)
{
    struct hw copy = *hw;
    struct listing listing = {.arena = arena};
    walk_all(&copy, list_one, &listing);
    int n = listing.found.n;
    vec_keep(*out, &listing.found, arena);
    return n;
}

struct shift {
    const struct hw_parameter *parameter;
    double by;
};

static void shift_one(
    void *self, struct quantity *q, const struct config_field *field, const char *section)
{
    const struct shift *shift = self;
    double spread = spread_of(*q, field);
    (void)section;
    if (spread > 0 && draw_is(shift->parameter, field->key, quantity_parameter(*q)))
        draw_move(q, field, spread * shift->by);
}

void hw_shift(struct hw *hw, const struct hw_parameter *parameter, double by)
{
    walk_all(hw, shift_one, &(struct shift){parameter, by});
    hw_derive(hw);
}

/* Entry (a, b) of L times its transpose, from the Cholesky factor L that is kept in place of the
 * correlations. */
double hw_correlation(
    const struct hw_fits *fits, const struct hw_parameter *a, const struct hw_parameter *b)
{
    if (draw_is(a, b->key, b->id))
        return 1;
    for (int f = 0; f < fits->n; f++) {
        const struct hw_fit *fit = &fits->list[f];
        int row = draw_find(fit, a->key, a->id), other = draw_find(fit, b->key, b->id);
        double sum = 0;
        for (int i = 0; row >= 0 && other >= 0 && i <= (row < other ? row : other); i++)
            sum += fit->factor[row * fit->n + i] * fit->factor[other * fit->n + i];
        if (row >= 0 && other >= 0)
            return sum;
    }
    return 0;
}
