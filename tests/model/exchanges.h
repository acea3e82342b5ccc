/* A rank's part of a small model, and what it exchanges with the others of AXIS_TP. Include after
 * cmocka.h. */
#ifndef FLOPCAST_TESTS_MODEL_EXCHANGES_H
#define FLOPCAST_TESTS_MODEL_EXCHANGES_H

#include "programs.h"

static inline struct run shard_of(const struct model_shape *shape, struct model_workload w)
{
    struct run r = {.arena = ARENA_INIT};
    struct model whole;
    model_build(&whole, shape, &r.arena);
    assert_null(model_shard_wrong(shape, &w, &r.arena));
    model_shard(&r.model, &whole, &w.parallel, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    return r;
}

static inline struct run shard(const struct model_shape *shape, struct model_parallel parallel)
{
    struct model_workload w = workload(shape, DTYPE_BF16, ATTENTION_NAIVE);
    w.parallel = parallel;
    return shard_of(shape, w);
}

/* Collectives of a kind over AXIS_TP with these bytes; each is waited for. */
static inline int exchanges(const struct model_op *ops, int n, enum coll_kind kind, double bytes)
{
    int found = 0, begun = 0, waits = 0;
    for (int i = 0; i < n; i++) {
        begun += ops[i].kind == MODEL_COMM;
        waits += ops[i].kind == MODEL_WAIT;
        if (ops[i].kind == MODEL_COMM && ops[i].comm.kind == kind && ops[i].comm.bytes == bytes) {
            assert_int_equal(ops[i].comm.axes, 1 << AXIS_TP);
            found++;
        }
    }
    assert_int_equal(begun, waits);
    return found;
}

static inline int all_exchanges(const struct model_op *ops, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += ops[i].kind == MODEL_COMM;
    return found;
}

#endif
