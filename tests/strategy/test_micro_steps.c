/* Plans of several micro-steps: what is repeated in each, what happens once, and how the last one
 * may differ. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

/* Five sequences in micro-batches of two: two whole ones and one of a single sequence, which
 * gathers and reduces as much; flop and tokens go with the sequences. Three in micro-batches of
 * four: one micro-step. */
static void the_last_micro_batch_is_what_is_left(void **state)
{
    (void)state;
    for (int kind = 0; kind < STRATEGY_COUNT; kind++) {
        int ranks = kind == STRATEGY_SINGLE_DEVICE ? 1 : 8;
        struct compiled whole, rest;
        struct strategy_options options = options_of(FULL_SHARD);
        options.kind = kind;
        if (kind == STRATEGY_INTERNEVO)
            options.train.precision = PRECISION_BF16_MASTER;
        compile(&whole, &options, &small_t5, ranks);
        options.train.device_batch = 5;
        assert_int_equal(strategy_batch(&options.train).micro_batches, 3);
        assert_int_equal(strategy_batch(&options.train).last, 1);
        compile(&rest, &options, &small_t5, ranks);
        assert_true(rest.plan.programs[0].model_flop == 2.5 * whole.plan.programs[0].model_flop);
        assert_true(rest.plan.tokens == 2.5 * whole.plan.tokens && rest.plan.samples == 5 * ranks);
        if (kind == STRATEGY_FSDP)
            assert_int_equal(
                count(&rest.plan, COLL_ALL_GATHER), 3 * count(&whole.plan, COLL_ALL_GATHER));
        drop(&rest);
        options.train.micro_batch = 4;
        options.train.device_batch = 3;
        compile(&rest, &options, &small_t5, ranks);
        assert_true(rest.plan.programs[0].model_flop == 1.5 * whole.plan.programs[0].model_flop &&
                    rest.plan.samples == 3 * ranks);
        drop(&rest);
        drop(&whole);
    }
}

/* Bytes that FSDP's units hold, of parameters and of gradients that were not reduced yet, when the
 * host comes to the forward pass of the second micro-step. */
static double gathered_between_micro_steps(const struct plan *plan)
{
    double live = 0;
    int passes = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        passes += strcmp(op->name, "root/pre_forward") == 0;
        if (passes == 2)
            return live;
        if ((op->kind != OP_ALLOC && op->kind != OP_FREE) ||
            plan->programs[0].buffers.at[op->index].category != HBM_GATHERED)
            continue;
        live +=
            (op->kind == OP_ALLOC ? 1 : -1) * (double)plan->programs[0].buffers.at[op->index].bytes;
    }
    fail_msg("one micro-step");
    return 0;
}

/* Under no_sync only the last micro-step communicates gradients, whole ones wait for it in 16 bits.
 * Gathers happen in each, unless FSDP1 keeps what it gathered: SHARD_GRAD_OP does, so 6 units are
 * gathered once and are there between micro-steps; fully_shard lets go of it. */
static void no_sync_reduces_once(void **state)
{
    (void)state;
    static const struct {
        int sharding, version, gathers;
        bool no_sync;
        double bytes; /* of a parameter, between micro-steps */
    } cases[] = {
        {FULL_SHARD, 1, 4 * 11, false, 0},
        {FULL_SHARD, 1, 4 * 11, true, 2},
        {SHARD_GRAD_OP, 1, 4 * 6, false, 0},
        {SHARD_GRAD_OP, 1, 6, true, 2 + 2},
        {SHARD_GRAD_OP, 2, 4 * 6, true, 2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct compiled compiled;
        struct strategy_options options = options_of(cases[c].sharding);
        options.train.grad_accum = 4;
        options.fsdp.no_sync = cases[c].no_sync;
        options.fsdp.version = cases[c].version;
        compile(&compiled, &options, &small_t5, 8);
        char why[256] = "";
        if (!plan_check(&compiled.plan, why, sizeof why))
            fail_msg("case %zu: %s", c, why);
        assert_int_equal(count(&compiled.plan, COLL_REDUCE_SCATTER), cases[c].no_sync ? 6 : 4 * 6);
        assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), cases[c].gathers);
        double all = (double)compiled.model.params;
        assert_true(gathered_between_micro_steps(&compiled.plan) == cases[c].bytes * all);
        drop(&compiled);
    }
}

static int last_before(const struct plan *plan, int op, int stream)
{
    while (--op >= 0)
        if ((plan->programs[0].ops.at[op].kind == OP_KERNEL ||
                plan->programs[0].ops.at[op].kind == OP_COLLECTIVE) &&
            plan->programs[0].ops.at[op].stream == stream)
            break;
    return op;
}

static bool waits_for(const struct plan *plan, const struct plan_op *op, plan_wait wait)
{
    for (int w = 0; w < op->n_waits; w++)
        if (plan->programs[0].waits.at[op->first_wait + w] == wait)
            return true;
    return false;
}

/* The root's forward pass makes the unshard stream wait for all that was computed before
 * (_wait_for_computation_stream): in the first micro-step for the optimizer of the step before, in
 * the others for the backward pass and for the reductions that end it. Without a cast it is the
 * all-gather that waits. */
static void each_forward_pass_waits_for_the_backward_pass_before(void **state)
{
    (void)state;
    for (int casts = 0; casts < 2; casts++) {
        struct strategy_options options = options_of(FULL_SHARD);
        struct compiled compiled;
        options.train.grad_accum = 3;
        options.train.precision = casts ? PRECISION_BF16_MIXED : PRECISION_FP32;
        compile(&compiled, &options, &small_t5, 8);
        const struct plan *plan = &compiled.plan;
        int passes = 0, last = last_before(plan, plan->programs[0].ops.n, STREAM_COMPUTE);
        for (int i = 0; i < plan->programs[0].ops.n; i++) {
            const struct plan_op *op = &plan->programs[0].ops.at[i];
            if (strcmp(op->name, casts ? "root/cast_shard" : "root/all_gather") != 0)
                continue;
            int begun = last_before(plan, i, STREAM_COMPUTE),
                reduced = last_before(plan, i, STREAM_POST);
            assert_true(waits_for(plan, op, passes++ ? begun : PLAN_PREVIOUS_STEP + last));
            assert_true(reduced < 0 || waits_for(plan, op, reduced));
        }
        assert_int_equal(passes, 3);
        drop(&compiled);
    }
}

/* Llama of 24 tokens. In micro-batches of two sequences, 48 rows, the blocks multiply in FP8, and
 * of what is left, one sequence, in BF16: 24 is no multiple of 16. In micro-batches of three it is
 * the other way round. The two have other tensors in memory. Each micro-step gathers what a step of
 * its kernels alone does: ZeRO-3 sees their order of use. */
static void check_other_kernels(
    struct strategy_options options, int ranks, int64_t micro_batch, int64_t left)
{
    struct compiled first, last, both;
    char why[256] = "";
    options.train.micro_batch = left;
    compile(&last, &options, &small_llama, ranks);
    options.train.micro_batch = micro_batch;
    compile(&first, &options, &small_llama, ranks);
    options.train.device_batch = micro_batch + left;
    compile(&both, &options, &small_llama, ranks);
    if (!plan_check(&both.plan, why, sizeof why))
        fail_msg("%s: %s", strategy_label(&options), why);
    assert_true(both.plan.programs[0].model_flop ==
                first.plan.programs[0].model_flop + last.plan.programs[0].model_flop);
    assert_int_equal(count(&both.plan, COLL_ALL_GATHER),
        count(&first.plan, COLL_ALL_GATHER) + count(&last.plan, COLL_ALL_GATHER));
    drop(&both);
    drop(&last);
    drop(&first);
}

static void the_last_micro_batch_may_have_other_kernels(void **state)
{
    (void)state;
    for (int kind = 0; kind < STRATEGY_COUNT; kind++) {
        struct strategy_options options = options_of(FULL_SHARD);
        if (kind == STRATEGY_INTERNEVO) /* has no FP8 */
            continue;
        options.kind = kind;
        options.train.seq_len = 24;
        options.train.precision = PRECISION_FP8_MIXED;
        options.zero.stage = 3;
        options.zero.stage3_param_persistence_threshold = 0;
        options.zero.stage3_max_reuse_distance = 3000;
        int ranks = kind == STRATEGY_SINGLE_DEVICE ? 1 : 8;
        check_other_kernels(options, ranks, 2, 1);
        check_other_kernels(options, ranks, 3, 2);
    }
}

/* By grad_accum or by device_batch. */
static void micro_steps_have_a_limit(void **state)
{
    (void)state;
    struct strategy_options options = options_of(FULL_SHARD);
    options.train.device_batch = 2 * STRATEGY_MAX_MICRO_STEPS + 1;
    refuse_plan(test_hw(), &options,
        "2049 micro-steps of 2 sequences in an optimizer step, of which at most 2048 are "
        "simulated; use a larger 'train.micro_batch' or a smaller batch");
    options.train.device_batch = 0;
    options.train.grad_accum = STRATEGY_MAX_MICRO_STEPS + 1;
    refuse_plan(test_hw(), &options, "2049 micro-steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_micro_batch_is_what_is_left),
        cmocka_unit_test(the_last_micro_batch_may_have_other_kernels),
        cmocka_unit_test(no_sync_reduces_once),
        cmocka_unit_test(each_forward_pass_waits_for_the_backward_pass_before),
        cmocka_unit_test(micro_steps_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
