/* What tests of experts begin with: small_moe and small_deepseek laid out, and what their programs
 * send. */
#ifndef FLOPCAST_TESTS_MODEL_EXPERTS_H
#define FLOPCAST_TESTS_MODEL_EXPERTS_H

#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "kernel_named.h"
#include "programs.h"

/* small_moe and small_deepseek */
__attribute__((unused)) static const double b = BATCH, s = LENGTH, d = 64, v = 1000, k = 2, E = 8,
                                            f = 48, n = 4;
__attribute__((unused)) static const double tokens = (double)BATCH * LENGTH;

struct laid_out {
    struct arena arena;
    struct model model;
    struct model_segments segments;
    const struct model_program *experts; /* the last block */
};

static inline void lay_out(struct laid_out *r, struct model_shape shape, struct model_workload w)
{
    struct model whole;
    *r = (struct laid_out){.arena = ARENA_INIT};
    const char *wrong = model_shard_wrong(&shape, &w, &r->arena);
    if (wrong)
        fail_msg("%s", wrong);
    model_build(&whole, &shape, &r->arena);
    model_shard(&r->model, &whole, &w.parallel, &r->arena);
    model_segments(&r->segments, &r->model, &w, &r->arena);
    r->experts = r->segments.at[shape.n_layers].program;
}

static inline struct model_workload shared_by(int64_t ranks, double imbalance)
{
    struct model_workload w = workload(&small_moe, DTYPE_BF16, ATTENTION_FLASH);
    w.parallel.expert = ranks;
    w.expert_imbalance = imbalance;
    return w;
}

static inline const struct model_op *next_comm(const struct model_op *ops, int count, int *at)
{
    for (; *at < count; ++*at)
        if (ops[*at].kind == MODEL_COMM)
            return &ops[(*at)++];
    fail_msg("no communication is left");
    return NULL;
}

struct sent {
    const char *name;
    enum coll_kind kind;
    unsigned axes;
    double bytes;
};

static inline void assert_sends(
    const struct model_op *ops, int count, const struct sent *expected, int n_expected)
{
    int at = 0, found = 0;
    for (int i = 0; i < n_expected; i++) {
        const struct model_op *op = next_comm(ops, count, &at);
        assert_string_equal(op->name, expected[i].name);
        assert_int_equal(op->comm.kind, expected[i].kind);
        assert_int_equal(op->comm.axes, expected[i].axes);
        assert_near(op->comm.bytes, expected[i].bytes, 0);
    }
    for (int i = 0; i < count; i++)
        found += ops[i].kind == MODEL_COMM;
    assert_int_equal(found, n_expected);
}

enum { EP = 1 << AXIS_EP, TP = 1 << AXIS_TP };
#define SENDS(ops, n_ops, expected)                                                                \
    assert_sends(ops, n_ops, expected, (int)(sizeof(expected) / sizeof *(expected)))

#endif
