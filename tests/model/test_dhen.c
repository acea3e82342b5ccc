/* DHEN: parameters and flop in closed form, and what its tables move: bytes of lookups, of the
 * exchange, of memory. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "../shapes.h"
#include "kernel_named.h"

enum { BATCH = 5 };
/* small_dhen */
static const double m = 16, d = 32, ff = 48, in = 24, pooling = 10, layers = 3;

struct run {
    struct arena arena;
    struct model model;
    struct model_segments segments;
};

static struct run run(const struct model_shape *shape, enum dtype storage, int fusion)
{
    struct run r = {.arena = ARENA_INIT};
    struct model_workload w = {.micro_batch = BATCH,
        .seq_len = model_sample_tokens(shape),
        .math = storage,
        .storage = storage,
        .fusion = fusion};
    model_build(&r.model, shape, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    assert_int_equal(model_tokens(&r.model, &w), BATCH); /* throughput is in samples */
    return r;
}

/* One module at a time beside norm and shortcut. A matrix of r x c has r c + r parameters and costs
 * 2 r c flop a row. */
static void modules_are_their_closed_forms(void **state)
{
    (void)state;
    const double sample = m * d, mlp = 2 * ff * d;
    const struct {
        bool linear, dot, attention, convolution, cross;
        double params, flop; /* of a layer; flop of a sample */
    } cases[] = {
        {.linear = true, .params = m * m + m, .flop = 2 * m * m * d},
        {.dot = true,
            .params = m * m * ff + ff + ff * sample + sample,
            .flop = 2 * m * m * d + 2 * m * m * ff + 2 * ff * sample},
        {.attention = true,
            .params = 4 * (d * d + d) + mlp + ff + d + 4 * d,
            .flop = m * (8 * d * d + 2 * mlp) + 4 * m * m * d},
        {.convolution = true, .params = 9 + 1, .flop = 2 * 9 * sample},
        {.cross = true, .params = sample * sample + sample, .flop = 2 * sample * sample},
    };
    double params = 0, flop = 0;
    const double root = in * ff + ff + ff * d + d + sample * ff + ff + ff + 1;
    const double root_flop = 2 * (in * ff + ff * d + sample * ff + ff);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_shape shape = small_dhen;
        shape.dhen.linear = cases[i].linear, shape.dhen.dot = cases[i].dot,
        shape.dhen.attention = cases[i].attention;
        shape.dhen.convolution = cases[i].convolution, shape.dhen.cross = cases[i].cross;
        struct run r = run(&shape, DTYPE_BF16, FUSION_EAGER);
        assert_near((double)r.model.params, root + layers * (cases[i].params + 2 * d), 0);
        assert_near(
            model_forward_flop(&r.segments), BATCH * (root_flop + layers * cases[i].flop), 0);
        params += cases[i].params, flop += cases[i].flop;
        arena_release(&r.arena);
    }
    struct run all = run(&small_dhen, DTYPE_BF16, FUSION_EAGER);
    assert_near((double)all.model.params, root + layers * (params + 2 * d), 0);
    assert_near(model_block_forward_flop(&all.segments), BATCH * layers * flop, 0);
    arena_release(&all.arena);
}

/* m - 1 features of a sample come out of tables in FP16: pooling rows of d each with an id of 8
 * bytes, a sum of d in the storage format, which crosses the network once each way. Row-wise
 * Adagrad reads and writes rows and a float each. */
static void assert_all_to_all(const struct model_op *op, double bytes)
{
    assert_int_equal(op->kind, MODEL_COMM);
    assert_int_equal(op->comm.kind, COLL_ALL_TO_ALL);
    assert_int_equal(op->comm.axes, AXES_DP);
    assert_near(op->comm.bytes, bytes, 0);
}

static void check_tables(enum dtype storage, int fusion)
{
    struct run r = run(&small_dhen, storage, fusion);
    const struct model_program *p = r.segments.at[0].program;
    const double rows = BATCH * (m - 1) * pooling,
                 pooled = BATCH * (m - 1) * d * (double)dtype_bytes(storage);
    const struct model_op *lookup = kernel_named(p->forward, p->n_forward, "tables");
    assert_near(lookup->work.read_bytes, rows * (2 * d + 8), 0);
    assert_near(lookup->work.write_bytes, pooled, 0);
    assert_all_to_all(lookup + 1, pooled);
    assert_int_equal(kernel_named(p->forward, p->n_forward, "features")[-1].kind, MODEL_WAIT);
    const struct model_op *update = kernel_named(p->backward, p->n_backward, "tables.update");
    assert_near(update->work.read_bytes, pooled + rows * (2 * d + 8 + 4), 0);
    assert_near(update->work.write_bytes, rows * (2 * d + 4), 0);
    assert_true(update[-1].kind == MODEL_WAIT && update == &p->backward[p->n_backward - 1]);
    assert_all_to_all(kernel_named(p->backward, p->n_backward, "features.dgrad") + 1, pooled);
    int ops = 0;
    for (int i = 0; i < r.segments.n; i++) {
        p = r.segments.at[i].program;
        for (int k = 0; k < p->n_forward + p->n_backward; k++)
            ops += (k < p->n_forward ? &p->forward[k] : &p->backward[k - p->n_forward])->kind !=
                   MODEL_KERNEL;
    }
    assert_int_equal(ops, 2 * 2); /* each way, one and its wait */
    arena_release(&r.arena);
}

static void tables_move_rows_and_features(void **state)
{
    (void)state;
    check_tables(DTYPE_BF16, FUSION_EAGER);
    check_tables(DTYPE_FP32, FUSION_EAGER);
    check_tables(DTYPE_BF16, FUSION_INDUCTOR); /* the exchange splits what inductor fuses */
}

/* 10^6 elements over 3 ranks: 333,334 of 2 or 4 bytes; rows of 32: 31,250, a third of them 10,417
 * sums of 4 bytes. */
static void ranks_share_the_tables(void **state)
{
    (void)state;
    struct model_shape shape = small_dhen;
    assert_int_equal(model_table_bytes(&shape, 3), 333334 * 2);
    assert_int_equal(model_table_state_bytes(&shape, 3), 10417 * 4);
    shape.dhen.tables.format = TABLES_FP32;
    assert_int_equal(model_table_bytes(&shape, 3), 333334 * 4);
    assert_int_equal(model_table_bytes(&small_gpt, 1), 0);
    assert_int_equal(model_table_state_bytes(&small_gpt, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_are_their_closed_forms),
        cmocka_unit_test(tables_move_rows_and_features),
        cmocka_unit_test(ranks_share_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
