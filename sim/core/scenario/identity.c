/* A point's identity: a digest of every value that its result depends on, and of the program.
 *
 * The digest goes over copies of the settings, the model's shape and the hardware's tables, from
 * which names, paths and whatever a step does not read were taken out (digest_point). Tables are
 * walked by config_digest(), so a new setting counts as soon as it is a field. What is no field
 * must be put in by hand: mean_documents is. Two digests that start differently make 128 bits.
 *
 * Subtle: whatever changes a result and is not in here makes a kept result of another point pass
 * for this one's. Whatever is in here and changes nothing only costs a simulation. When in doubt it
 * goes in.
 *
 * scenario_curve() is coarser: everything but the GPU count, as text, to find points of one scaling
 * curve. */
#include "scenario/identity.h"

#include "base/build.h"
#include "base/digest.h"
#include "scenario/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Two digests with different starts: 64 bits alone would let one of some 10^9 points pass for
 * another. */
enum { DIGESTS = 2 };

static void digest_begin(uint64_t digests[DIGESTS])
{
    for (int i = 0; i < DIGESTS; i++)
        digests[i] = digest_word(digest_word(DIGEST_INIT, (uint64_t)i), build_digest());
}

static void identity_write_text(struct scenario_identity *out, const uint64_t digests[DIGESTS])
{
    snprintf(out->text, sizeof out->text, "%016" PRIx64 "%016" PRIx64, digests[0], digests[1]);
}

/* The last word tells NULL from an empty text. */
static uint64_t identity_digest_text(uint64_t digest, const char *text)
{
    for (size_t i = 0; text && text[i]; i++)
        digest = digest_word(digest, (unsigned char)text[i]);
    return digest_word(digest, text != NULL);
}

static uint64_t identity_digest_number(uint64_t digest, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return digest_word(digest, bits);
}

typedef uint64_t digest_table(uint64_t digest, const struct config_table *table, const void *from);

/* Every value that is put in. */
static uint64_t digest_point(
    uint64_t digest, const struct scenario_point *point, digest_table *fold)
{
    struct scenario options = point->options;
    struct hw_cluster cluster = point->hw.cluster;
    struct hw_node node = point->hw.node;
    struct hw_gpu gpu = point->hw.gpu;
    options.name = options.description = options.assumptions = NULL;
    options.model_path = options.stack_path = options.cluster.topology = NULL;
    options.cluster.given = (struct hw){0}; /* what is given stands in the hardware */
    options.force = false;                  /* it stands in the model */
    options.published = (struct scenario_published_options){0};
    options.goodput = (struct goodput_options){0}; /* a step does not read it */
    cluster.node_path = node.gpu_path = NULL;
    cluster.extends = node.extends = gpu.extends = NULL; /* read, it is there */
    digest = fold(digest, &scenario_table, &options);
    if (options.exec.mean_documents &&
        document_options_vary(&options.strategy.train.documents)) /* no setting */
        digest = digest_word(digest, 1);
    digest = fold(digest, &model_shape_table, &point->model.shape);
    digest = fold(digest, &hw_cluster_table, &cluster);
    digest = fold(digest, &hw_node_table, &node);
    return fold(digest, &hw_gpu_table, &gpu);
}

void scenario_identify(struct scenario_identity *out, const struct scenario_point *point)
{
    uint64_t digests[DIGESTS];
    digest_begin(digests);
    for (int i = 0; i < DIGESTS; i++)
        digests[i] = digest_point(digests[i], point, config_digest);
    identity_write_text(out, digests);
}

static uint64_t digest_uncertainty(uint64_t digest, const struct scenario_uncertainty *uncertainty)
{
    for (int i = 0; i < uncertainty->fits.n; i++) {
        const struct hw_fit *fit = &uncertainty->fits.list[i];
        digest = digest_word(digest, (uint64_t)fit->n);
        for (int k = 0; k < fit->n; k++)
            digest = identity_digest_text(identity_digest_text(digest, fit->keys[k]), fit->ids[k]);
        for (int row = 0; row < fit->n; row++)
            for (int column = 0; column <= row; column++)
                digest = identity_digest_number(digest, fit->factor[row * fit->n + column]);
    }
    return digest;
}

void scenario_identify_samples(struct scenario_identity *out, const struct scenario_point *point,
    const struct scenario_uncertainty *uncertainty)
{
    uint64_t digests[DIGESTS];
    digest_begin(digests);
    for (int i = 0; i < DIGESTS; i++)
        digests[i] = sample_digest_left(digest_uncertainty(digests[i], uncertainty), point);
    identity_write_text(out, digests);
}

uint64_t scenario_digest_inputs(const struct scenario_point *point)
{
    return digest_point(DIGEST_INIT, point, config_digest_values);
}

struct scenario_result scenario_summary(const struct scenario_result *result)
{
    struct scenario_result out = *result;
    out.exec.memory.oom_op = NULL;
    out.exec.programs = NULL;
    out.exec.timeline = NULL;
    out.exec.spans = NULL;
    out.exec.host_spans = NULL;
    out.exec.n_programs = out.exec.n_timeline = out.exec.n_spans = out.exec.n_host_spans = 0;
    return out;
}

uint64_t scenario_digest_label(uint64_t digest, const struct scenario_point *point)
{
    const struct scenario_published *published = &point->published;
    digest = config_digest(digest, &scenario_table, &point->options);
    digest = identity_digest_text(
        identity_digest_text(digest_word(digest, published->found), published->id),
        published->source);
    digest = identity_digest_number(digest, published->tflops_per_gpu);
    digest = identity_digest_number(digest, published->peak_allocated_bytes);
    digest = identity_digest_number(digest, published->peak_reserved_bytes);
    return digest_word(digest, published->oom);
}

uint64_t scenario_curve(const struct scenario *options)
{
    /* The printed form leaves out padding, pointers and origins, and follows the table when options
     * are added. */
    struct scenario alike = *options;
    alike.cluster.gpus = 0;
    if (alike.strategy.train.global_batch > 0) /* each rank's share of it follows from the GPUs */
        alike.strategy.train.device_batch = 0;
    char *text = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&text, &n);
    config_write_json(out, &scenario_table, &alike, NULL);
    fclose(out);
    uint64_t digest = DIGEST_INIT;
    for (size_t i = 0; i < n; i++)
        digest = digest_word(digest, (unsigned char)text[i]);
    free(text);
    return digest;
}
