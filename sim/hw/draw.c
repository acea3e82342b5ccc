#include "hw/draw.h"

#include "base/digest.h"
#include "base/rng.h"
#include "hw/table.h"

#include <math.h>
#include <string.h>

enum { ENTITY_PARAMETER = 1000 }; /* apart from what runs draw (exec/state.h) */

struct drawing {
    const struct hw_fits *fits;
    uint64_t seed;
};

static uint64_t digest_text(uint64_t digest, const char *text)
{
    for (; *text; text++)
        digest = digest_word(digest, (unsigned char)*text);
    return digest;
}

static double normal(uint64_t seed, const char *key, const char *id)
{
    struct rng_stream stream = rng_stream(seed, ENTITY_PARAMETER, digest_text(digest_text(DIGEST_INIT, key), id));
    return rng_gaussian(&stream, 1);
}

static uint64_t mix(uint64_t seed, uint64_t draw)
{
    return digest_word(digest_word(DIGEST_INIT, seed), draw);
}

double hw_draw_normal(const char *key, const char *parameter, uint64_t seed, uint64_t draw)
{
    return normal(mix(seed, draw), key, parameter);
}

/* The parameter's place in a fit, or -1. */
static int find(const struct hw_fit *fit, const char *key, const char *id)
{
    for (int i = 0; i < fit->n; i++)
        if (strcmp(fit->keys[i], key) == 0 && strcmp(fit->ids[i], id) == 0)
            return i;
    return -1;
}

/* A row of the Cholesky factor times independent draws, one a parameter: whichever of them a machine has, each is drawn
 * as if all were there. */
static double standard(const struct drawing *drawing, const char *key, const char *id)
{
    for (int f = 0; f < drawing->fits->n; f++) {
        const struct hw_fit *fit = &drawing->fits->list[f];
        int row = find(fit, key, id);
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
    return q.kind == QUANTITY_ASSUMED ? DRAW_ASSUMED : q.kind == QUANTITY_MEASURED ? DRAW_MEASURED : 0;
}

static void draw_one(struct quantity *q, const struct config_field *field, const struct drawing *drawing)
{
    bool share = field->dimension == DIM_FRACTION && field->max == 1, known = q->std_error > 0;
    if (q->value <= 0 || (share && q->value >= 1) || q->kind == QUANTITY_UNSET)
        return; /* nothing, or all of it: no scale to vary it on */
    double spread = known ? q->std_error / q->value / (share ? 1 - q->value : 1) : default_spread(*q, field);
    double moved = spread * standard(drawing, field->key, quantity_parameter(*q));
    if (share)
        q->value = 1 / (1 + (1 - q->value) / q->value * exp(-moved));
    else
        q->value *= exp(moved);
    if (field->min != 0 || field->max != 0)
        q->value = fmin(fmax(q->value, field->min), field->max);
}

static void draw_table(void *into, const struct config_table *table, const struct drawing *drawing)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        void *at = (unsigned char *)into + field->offset;
        if (field->type == FIELD_SECTION)
            draw_table(at, field->section, drawing);
        else if (field->type == FIELD_SOURCED)
            draw_one(at, field, drawing);
    }
}

void hw_draw(struct hw *hw, const struct hw_fits *fits, uint64_t seed, uint64_t draw)
{
    struct drawing drawing = {fits, mix(seed, draw)};
    draw_table(&hw->gpu, &hw_gpu_table, &drawing);
    draw_table(&hw->node, &hw_node_table, &drawing);
    draw_table(&hw->cluster, &hw_cluster_table, &drawing);
    hw_derive(hw);
}
