/* Small models laid out as segments, for tests of programs. Include after cmocka.h. */
#ifndef FLOPCAST_TESTS_MODEL_PROGRAMS_H
#define FLOPCAST_TESTS_MODEL_PROGRAMS_H

#include "../shapes.h"

#include <string.h>

enum { BATCH = 2, LENGTH = 24, DECODER_LENGTH = 8 };

static inline struct model_workload workload(
    const struct model_shape *shape, enum dtype storage, enum attention_kernel attention)
{
    return (struct model_workload){.micro_batch = BATCH,
        .seq_len = model_sample_tokens(shape) > 0 ? model_sample_tokens(shape) : LENGTH,
        .decoder_seq_len = shape->family == MODEL_T5 ? DECODER_LENGTH : 0,
        .math = storage,
        .storage = storage,
        .attention = (int)attention,
        .loss_fp32 = true};
}

struct run {
    enum kernel_fusion fusion;
    struct arena arena;
    struct model model;
    struct model_segments segments;
};

enum format { FORMAT_BF16, FORMAT_FP32, FORMAT_AUTOCAST, FORMAT_COUNT };

/* A rank's part. */
static inline struct run run_part(const struct model_shape *shape, enum format format,
    enum attention_kernel attention, enum kernel_fusion fusion,
    const struct model_parallel *parallel)
{
    struct run r = {.fusion = fusion, .arena = ARENA_INIT};
    struct model whole;
    struct model_workload w =
        workload(shape, format == FORMAT_FP32 ? DTYPE_FP32 : DTYPE_BF16, attention);
    w.fusion = (int)fusion;
    w.autocast = format == FORMAT_AUTOCAST;
    w.parallel = *parallel;
    model_build(&whole, shape, &r.arena);
    model_shard(&r.model, &whole, parallel, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    return r;
}

static inline struct run run_as(const struct model_shape *shape, enum format format,
    enum attention_kernel attention, enum kernel_fusion fusion)
{
    return run_part(shape, format, attention, fusion, &(struct model_parallel){0});
}

static inline struct run run(
    const struct model_shape *shape, enum dtype storage, enum attention_kernel attention)
{
    return run_as(
        shape, storage == DTYPE_FP32 ? FORMAT_FP32 : FORMAT_BF16, attention, FUSION_EAGER);
}

static inline int count(const struct model_op *kernels, int n, const char *part)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += strstr(kernels[i].name, part) != NULL;
    return found;
}

static inline const struct model_program *block(const struct run *r, int layer)
{
    for (int i = 0; i < r->segments.n; i++)
        if (r->segments.at[i].kind == SEGMENT_BLOCK && r->segments.at[i].layer == layer)
            return r->segments.at[i].program;
    fail_msg("no block is layer %d", layer);
    return NULL;
}

#endif
