/* ZeRO-3's gathers by the year, on small_gpt (../shapes.h): what is gathered when, and what the
 * host pays a rank. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "compiled.h"

#include <string.h>

/* Two embeddings; in each of 3 blocks 4 matrices and 8 vectors; 2 vectors of the last norm. */
enum { MATRICES = 2 + 3 * 4, VECTORS = 3 * 8 + 2 };

/* Matrices are sharded, vectors (at most 256 elements) stay whole. */
static struct strategy_options zero_3(int fetch)
{
    struct strategy_options options = zero_of(3);
    options.zero.stage3_fetch = fetch;
    options.zero.stage3_param_persistence_threshold = 257;
    options.zero.stage3_prefetch_bucket_size = 0;
    return options;
}

static double host_s_of(const struct plan *plan, const char *name)
{
    double sum = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        if (strcmp(plan->programs[0].ops.at[i].name, name) == 0)
            sum += (double)plan->programs[0].ops.at[i].host_s;
    return sum;
}

static int named(const struct plan *plan, const char *name)
{
    int n = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        n += strcmp(plan->programs[0].ops.at[i].name, name) == 0;
    return n;
}

/* 27 gathers of matrices (test_plans.c, zero_3_gathers_what_is_used), and the vectors after the
 * step: each alone, or all at once. Gradients: all in one bucket, or each alone. */
static void collectives_by_the_year(void **state)
{
    (void)state;
    for (int fetch = 0; fetch < FETCH_COUNT; fetch++) {
        struct strategy_options options = zero_3(fetch);
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 8);
        bool blocking = fetch == FETCH_BLOCKING;
        assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), 27 + (blocking ? 1 : VECTORS));
        assert_int_equal(
            count(&compiled.plan, COLL_REDUCE_SCATTER), blocking ? MATRICES + VECTORS : 1);
        /* each gather, or the end of backward alone */
        assert_int_equal(named(&compiled.plan, "synchronize") > STREAM_COUNT, blocking);
        /* the gradients' norm is as old as ZeRO: a slice of each tensor */
        assert_int_equal(named(&compiled.plan, "grad_norm/norm"), MATRICES + VECTORS);
        drop(&compiled);
    }
}

/* Seconds a rank: trace: a view for each gradient. blocking: a view and a copy for each gradient,
 * each gather and each whole parameter. */
static void what_the_host_pays_a_rank(void **state)
{
    (void)state;
    for (int fetch = 0; fetch < FETCH_COUNT; fetch++) {
        double paid[2];
        struct strategy_options options = zero_3(fetch);
        for (int large = 0; large < 2; large++) {
            struct compiled compiled;
            compile(&compiled, &options, &small_gpt, large ? 64 : 8);
            paid[large] = host_s_of(&compiled.plan, "fetch_sub_module") +
                          host_s_of(&compiled.plan, "reduce_scatter/slices") +
                          host_s_of(&compiled.plan, "persistent_parameters/copy");
            drop(&compiled);
        }
        double view_s = options.host.view_s, copy_s = options.host.backward_issue_s;
        double once = fetch == FETCH_BLOCKING ? (27 + MATRICES + 2 * VECTORS) * (view_s + copy_s)
                                              : (MATRICES + VECTORS) * view_s;
        assert_near((paid[1] - paid[0]) / (64 - 8), once,
            1e-6 * once); /* a plan keeps host costs as float */
    }
}

/* DeepSpeed's coordinator keeps an event of each gather, not of each use, and the host waits for
 * the oldest where two others and that of now are kept. */
static void each_gather_is_waited_for_once(void **state)
{
    (void)state;
    struct strategy_options options = zero_3(FETCH_TRACE);
    struct compiled compiled;
    compile(&compiled, &options, &small_gpt, 8);
    int gathers = count(&compiled.plan, COLL_ALL_GATHER) - VECTORS;
    assert_int_equal(named(&compiled.plan, "ongoing_fetch_events"), gathers - 3);
    drop(&compiled);
}

/* With a bucket of one element each use brings the next matrix along, which is one gather each as
 * before, except for the first; the bucket that holds a block's four (12 d^2 = 49,152) makes fewer.
 * Nothing is gathered ahead while as many are live as may be, be it none. */
static void prefetch_ends_at_the_bucket_or_the_live(void **state)
{
    (void)state;
    const struct {
        int64_t bucket, live;
        bool fewer;
    } cases[] = {{1, 1000000000, false}, {49152, 1000000000, true}, {49152, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strategy_options options = zero_3(FETCH_TRACE);
        options.zero.stage3_prefetch_bucket_size = cases[i].bucket;
        options.zero.stage3_max_live_parameters = cases[i].live;
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 8);
        int gathers = count(&compiled.plan, COLL_ALL_GATHER) - VECTORS;
        if (cases[i].fewer)
            assert_in_range(gathers, 27 / 4, 26);
        else
            assert_in_range(
                gathers, 26, 27); /* the head, needed again at once, may have come as a prefetch */
        drop(&compiled);
    }
}

/* What is released is no longer live: more than all matrices (1000 x 64, 32 x 64, three times 12
 * d^2: 213,504 elements) can never be, so a limit of those and a bucket changes nothing, though a
 * step gathers the blocks' matrices twice and the others once at least, 360,960 elements. */
static void released_parameters_are_not_live(void **state)
{
    (void)state;
    int gathers[2];
    for (int i = 0; i < 2; i++) {
        struct strategy_options options = zero_3(FETCH_TRACE);
        options.zero.stage3_prefetch_bucket_size = 49152;
        options.zero.stage3_max_live_parameters = i ? 213504 + 49152 : 1000000000;
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 8);
        gathers[i] = count(&compiled.plan, COLL_ALL_GATHER);
        drop(&compiled);
    }
    assert_int_equal(gathers[1], gathers[0]);
}

/* Bytes of buffers with this name. */
static double bytes_named(const struct plan *plan, const char *name)
{
    double sum = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        if (plan->programs[0].ops.at[i].kind == OP_ALLOC &&
            strcmp(plan->programs[0].ops.at[i].name, name) == 0)
            sum += (double)plan->programs[0].buffers.at[plan->programs[0].ops.at[i].index].bytes;
    return sum;
}

/* stage3.py of 0.6 and later (__add_grad_to_ipg_bucket, __avg_scatter_grads) works on gradients on
 * a separate stream when overlap_comm is on (null is on): copies into the bucket run there. All
 * gradients (16 bits) are joined in another order for the one reduce_scatter, in a buffer of as
 * many bytes (reduce_scatter_coalesced); before 0.6 none are. */
static void gradients_have_a_separate_stream(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct strategy_options options = zero_3(i == 2 ? FETCH_BLOCKING : FETCH_TRACE);
        options.zero.overlap_comm = i == 1 ? OVERLAP_FALSE : OVERLAP_NULL;
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 8);
        const struct plan *plan = &compiled.plan;
        int copies = 0;
        for (int o = 0; o < plan->programs[0].ops.n; o++) {
            if (!strstr(plan->programs[0].ops.at[o].name, "/copy_to_bucket"))
                continue;
            assert_int_equal(
                plan->programs[0].ops.at[o].stream, i == 0 ? STREAM_POST : STREAM_COMPUTE);
            copies++;
        }
        assert_int_equal(copies, MATRICES + VECTORS);
        double joined = i < 2 ? 2 * (double)compiled.model.params : 0;
        assert_true(bytes_named(plan, "tensor_partition_flat_buffer") == joined);
        drop(&compiled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_by_the_year),
        cmocka_unit_test(what_the_host_pays_a_rank),
        cmocka_unit_test(gradients_have_a_separate_stream),
        cmocka_unit_test(each_gather_is_waited_for_once),
        cmocka_unit_test(prefetch_ends_at_the_bucket_or_the_live),
        cmocka_unit_test(released_parameters_are_not_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
