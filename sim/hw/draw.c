#include "hw/draw.h"

#include "base/digest.h"
#include "base/rng.h"
#include "hw/table.h"

#include <math.h>
#include <string.h>

enum { ENTITY_PARAMETER = 1000 }; /* apart from what runs draw (exec/state.h) */

static uint64_t digest_text(uint64_t digest, const char *text)
{
    for (; *text; text++)
        digest = digest_word(digest, (unsigned char)*text);
    return digest;
}

static uint64_t digest_double(uint64_t digest, double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return digest_word(digest, word);
}

static void draw_one(struct quantity *q, const struct config_field *field, uint64_t seed)
{
    uint64_t name = digest_text(DIGEST_INIT, field->key);
    name = digest_double(digest_double(name, q->value), q->std_error);
    struct rng_stream stream = rng_stream(seed, ENTITY_PARAMETER, digest_text(name, q->source));
    q->value += q->std_error * rng_gaussian(&stream, 1);
    if (field->min != 0 || field->max != 0)
        q->value = fmin(fmax(q->value, field->min), field->max);
}

static void draw_table(void *into, const struct config_table *table, uint64_t seed)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        void *at = (unsigned char *)into + field->offset;
        if (field->type == FIELD_SECTION)
            draw_table(at, field->section, seed);
        else if (field->type == FIELD_SOURCED && ((struct quantity *)at)->kind == QUANTITY_FITTED)
            draw_one(at, field, seed);
    }
}

void hw_draw(struct hw *hw, uint64_t seed, uint64_t draw)
{
    uint64_t mixed = digest_word(digest_word(DIGEST_INIT, seed), draw);
    draw_table(&hw->gpu, &hw_gpu_table, mixed);
    draw_table(&hw->node, &hw_node_table, mixed);
    draw_table(&hw->cluster, &hw_cluster_table, mixed);
}
