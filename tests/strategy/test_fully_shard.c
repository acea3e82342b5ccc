/* FSDP2 against FSDP1: the same collectives, other copies. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

#include <string.h>

static double traffic_of(const struct plan *plan, const char *suffix)
{
    double bytes = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const char *at = strrchr(plan->programs[0].ops.at[i].name, '/');
        if (plan->programs[0].ops.at[i].kind == OP_KERNEL && at && strcmp(at + 1, suffix) == 0) {
            const struct kernel_work *work = &plan->kernels.at[plan->programs[0].ops.at[i].index];
            bytes += work->read_bytes + work->write_bytes;
        }
    }
    return bytes;
}

/* fully_shard communicates as FULL_SHARD does. It copies what is gathered, 2 + 2 bytes an element,
 * forward all of it and backward the blocks, and gradients into the reduction's format once, 2 + 4;
 * FSDP1 puts them together (2 + 2), casts (2 + 4), divides (4 + 4). Both keep FP32 shards.
 * Unsharded there is nothing to copy. */
static void fully_shard_copies_parameter_by_parameter(void **state)
{
    (void)state;
    struct compiled one, two;
    struct strategy_options options = options_of(FULL_SHARD);
    options.fsdp.reduce_dtype = REDUCE_FP32;
    compile(&one, &options, &small_t5, 8);
    options.fsdp.version = 2;
    compile(&two, &options, &small_t5, 8);
    double all = (double)two.model.params, blocks = all - (double)two.model.layers[0].params;
    assert_int_equal(count(&two.plan, COLL_ALL_GATHER), count(&one.plan, COLL_ALL_GATHER));
    assert_true(bytes_of(&two.plan, COLL_ALL_GATHER) == bytes_of(&one.plan, COLL_ALL_GATHER));
    assert_true(
        bytes_of(&two.plan, COLL_REDUCE_SCATTER) == bytes_of(&one.plan, COLL_REDUCE_SCATTER));
    assert_true(traffic_of(&two.plan, "copy_out") == 4 * (all + blocks));
    assert_true(traffic_of(&two.plan, "copy_in") == 6 * all);
    assert_true(traffic_of(&two.plan, "cat_grads") + traffic_of(&two.plan, "predivide") == 0);
    assert_true(traffic_of(&one.plan, "cat_grads") + traffic_of(&one.plan, "cast_grad") +
                    traffic_of(&one.plan, "predivide") ==
                18 * all);
    assert_true(traffic_of(&one.plan, "copy_out") == 0);
    drop(&one);
    drop(&two);
    compile(&two, &options, &small_t5, 1);
    assert_true(traffic_of(&two.plan, "copy_out") + traffic_of(&two.plan, "copy_in") == 0);
    drop(&two);
}

/* FSDP1 divides the shard, too, as it was reduced: read and written in 2 bytes before the cast to
 * FP32, or in 4 where there is none. NCCL divides for fully_shard. 8 ranks: by 4, then by 2; 2
 * ranks: by 2, then by nothing. */
static void fsdp1_divides_before_and_after(void **state)
{
    (void)state;
    for (int fp32 = 0; fp32 < 2; fp32++)
        for (int version = 1; version <= 2; version++) {
            struct compiled compiled;
            struct strategy_options options = options_of(FULL_SHARD);
            options.fsdp.reduce_dtype = fp32 ? REDUCE_FP32 : REDUCE_PARAM_DTYPE;
            options.fsdp.version = version;
            compile(&compiled, &options, &small_t5, 8);
            double all = version == 1 ? (double)compiled.model.params : 0,
                   wire = fp32 ? 4 + 4 : 2 + 2;
            assert_true(traffic_of(&compiled.plan, "predivide") == wire * all);
            assert_true(traffic_of(&compiled.plan, "postdivide") == wire * all / 8);
            drop(&compiled);
            compile(&compiled, &options, &small_t5, 2);
            assert_true(traffic_of(&compiled.plan, "predivide") == wire * all);
            assert_true(traffic_of(&compiled.plan, "postdivide") == 0);
            drop(&compiled);
            compile(&compiled, &options, &small_t5, 1);
            assert_true(traffic_of(&compiled.plan, "predivide") +
                            traffic_of(&compiled.plan, "postdivide") ==
                        0);
            drop(&compiled);
        }
}

/* small_gpt on 8 GPUs under fully_shard; to be dropped. */
static const struct plan *fully_shard(struct compiled *compiled)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.fsdp.version = 2;
    compile(compiled, &options, &small_gpt, 8);
    return &compiled->plan;
}

/* fully_shard needs no record_stream: parameters are copied out on the compute stream, which frees
 * them (0 waits); the input of a reduce-scatter, copied in there, is kept (reduce_scatter_state)
 * until the compute stream has been made to wait for it, before the next one is made or when
 * backward ends. So each but the last is waited for by the copy_in that follows. Three blocks and
 * the root: 7 sets of parameters (the root's for both passes), 4 inputs. */
static void fully_shard_frees_on_the_compute_stream(void **state)
{
    (void)state;
    struct compiled compiled;
    const struct plan *plan = fully_shard(&compiled);
    int params = 0, inputs = 0, waited = 0;
    plan_wait reduced = PLAN_NO_OP;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        const char *at = strrchr(op->name, '/'), *name = at ? at + 1 : op->name;
        bool is_param = strcmp(name, "params") == 0,
             is_input = strcmp(name, "reduce_scatter_input") == 0;
        if (op->kind == OP_FREE && (is_param || is_input)) {
            assert_int_equal(op->n_waits, 0);
            params += is_param;
            inputs += is_input;
        }
        for (int w = 0; w < op->n_waits && strcmp(name, "copy_in") == 0; w++)
            waited +=
                reduced != PLAN_NO_OP && plan->programs[0].waits.at[op->first_wait + w] == reduced;
        if (strcmp(name, "reduce_scatter") == 0)
            reduced = i;
    }
    assert_int_equal(params, 2 * 3 + 1);
    assert_int_equal(inputs, 3 + 1);
    assert_int_equal(waited, inputs - 1);
    drop(&compiled);
}

static int first_named(const struct plan *plan, enum op_kind kind, const char *name)
{
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        if (plan->programs[0].ops.at[i].kind == kind &&
            strcmp(plan->programs[0].ops.at[i].name, name) == 0)
            return i;
    return -1;
}

/* fully_shard holds the host nowhere. In forward what was gathered is kept until the next unit's is
 * about to be copied out; only then the streams of gathers are made to wait for the older copy. So
 * block 1's gather, issued after block 0's copy, waits for the root's copy, not for block 0's. */
static void gathers_wait_for_the_copy_before_the_last(void **state)
{
    (void)state;
    struct compiled compiled;
    const struct plan *plan = fully_shard(&compiled);
    assert_int_equal(first_named(plan, OP_HOST_WAIT, "limit_all_gathers"), -1);
    assert_int_equal(first_named(plan, OP_HOST, "limit_all_gathers"), -1);
    int root = first_named(plan, OP_KERNEL, "root/copy_out"),
        begins = first_named(plan, OP_KERNEL, "transformer.h.1/cast_shard");
    assert_true(0 <= root && root < begins);
    assert_int_equal(plan->programs[0].ops.at[begins].n_waits, 1);
    assert_int_equal(plan->programs[0].waits.at[plan->programs[0].ops.at[begins].first_wait], root);
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        if (plan->programs[0].ops.at[i].kind == OP_FREE &&
            strstr(plan->programs[0].ops.at[i].name, "/unsharded_flat_param"))
            assert_int_equal(plan->programs[0].ops.at[i].n_waits, 0);
    drop(&compiled);
}

/* The last op of this kind and name before `end`, or -1. */
static int last_named(const struct plan *plan, int end, enum op_kind kind, const char *name)
{
    while (--end >= 0)
        if (plan->programs[0].ops.at[end].kind == kind &&
            strcmp(plan->programs[0].ops.at[end].name, name) == 0)
            break;
    return end;
}

/* FSDP1's _post_backward_hook runs when autograd has joined the flat gradient: reshard, the gather
 * of BACKWARD_POST, the reduction. It holds what autograd computed, of which FP32 reduction makes a
 * copy, to its end; then it goes to the post-backward stream, which has been made to wait for the
 * reduction. */
static void the_order_of_fsdp1s_post_backward_hook(void **state)
{
    (void)state;
    struct compiled compiled;
    struct strategy_options options = options_of(FULL_SHARD);
    options.fsdp.backward_prefetch = BACKWARD_POST;
    options.fsdp.reduce_dtype = REDUCE_FP32;
    compile(&compiled, &options, &small_gpt, 8);
    const struct plan *plan = &compiled.plan;
    int n = plan->programs[0].ops.n,
        joined = last_named(plan, n, OP_KERNEL, "transformer.h.1/cat_grads");
    int hook = last_named(plan, n, OP_HOST, "transformer.h.1/post_backward");
    int freed = last_named(plan, n, OP_FREE, "transformer.h.1/unsharded_flat_param");
    int next = last_named(plan, n, OP_COLLECTIVE, "transformer.h.0/all_gather");
    int reduced = last_named(plan, n, OP_COLLECTIVE, "transformer.h.1/reduce_scatter");
    assert_true(0 <= joined && joined < hook && hook < freed && freed < next && next < reduced);
    int given_up = last_named(plan, n, OP_FREE, "transformer.h.1/flat_grad");
    const struct plan_op *op = &plan->programs[0].ops.at[given_up];
    assert_int_equal(op->n_waits, 1);
    plan_wait wait = plan->programs[0].waits.at[op->first_wait];
    assert_true(reduced < wait && plan->programs[0].ops.at[wait].stream == STREAM_POST);
    drop(&compiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fully_shard_copies_parameter_by_parameter),
        cmocka_unit_test(fsdp1_divides_before_and_after),
        cmocka_unit_test(the_order_of_fsdp1s_post_backward_hook),
        cmocka_unit_test(fully_shard_frees_on_the_compute_stream),
        cmocka_unit_test(gathers_wait_for_the_copy_before_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
