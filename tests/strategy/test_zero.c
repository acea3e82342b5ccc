/* What DeepSpeed's ZeRO compiles to: counts derived from its rules. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

#include <math.h>
#include <string.h>

/* Stages 1 and 2: every gradient is reduced once (16 bits), every weight gathered once after the
 * step: what DDP's all-reduce moves (a reduce-scatter and an all-gather), as the ZeRO paper (arXiv
 * 1910.02054, section 7) says; half as much again where DeepSpeed all-reduces its buckets
 * (use_multi_rank_bucket_allreduce), which stage 3 knows nothing of. With buckets of one element
 * every tensor is reduced alone. The norm of the gradients is an all_reduce of 8 bytes. */
static void zero_volumes(void **state)
{
    (void)state;
    enum { NORM_BYTES = 8 };
    for (int64_t stage = 1; stage <= 3; stage++)
        for (int whole = 0; whole < 2; whole++) {
            struct strategy_options options = zero_of(stage);
            options.zero.use_multi_rank_bucket_allreduce = whole;
            struct compiled compiled;
            compile(&compiled, &options, &small_gpt, 8);
            double all = 2 * (double)compiled.model.params;
            bool reduces_whole = whole && stage < 3;
            assert_true(bytes_of(&compiled.plan, COLL_REDUCE_SCATTER) == (reduces_whole ? 0 : all));
            assert_true(bytes_of(&compiled.plan, COLL_ALL_REDUCE) ==
                        NORM_BYTES + (reduces_whole ? all : 0));
            assert_int_equal(count(&compiled.plan, COLL_REDUCE_SCATTER), !reduces_whole);
            if (stage < 3)
                assert_true(bytes_of(&compiled.plan, COLL_ALL_GATHER) == all);
            drop(&compiled);
            options.zero.reduce_bucket_size = 1;
            compile(&compiled, &options, &small_gpt, 8);
            int n = compiled.model.n_tensors;
            assert_int_equal(count(&compiled.plan, COLL_REDUCE_SCATTER), reduces_whole ? 0 : n);
            assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), 1 + (reduces_whole ? n : 0));
            drop(&compiled);
        }
}

/* Tensors of small_gpt: what is larger than a bucket is reduced from where it lies, in every stage.
 * A matrix of the MLP just fits. */
static void large_gradients_are_not_copied(void **state)
{
    (void)state;
    for (int64_t stage = 1; stage <= 3; stage++) {
        struct strategy_options options = zero_of(stage);
        options.zero.reduce_bucket_size = (int64_t)small_gpt.d_model * small_gpt.d_ff;
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 8);
        int fit = 0, copied = 0;
        for (int t = 0; t < compiled.model.n_tensors; t++)
            fit += compiled.model.tensors[t].numel <= options.zero.reduce_bucket_size;
        for (int i = 0; i < compiled.plan.programs[0].ops.n; i++)
            copied += strstr(compiled.plan.programs[0].ops.at[i].name, "/copy_to_bucket") != NULL;
        assert_int_equal(fit, compiled.model.n_tensors - 1); /* all but the embedding */
        assert_int_equal(copied, fit);
        drop(&compiled);
    }
}

/* Bytes of this category at their fullest, without buffers of this name and what lives for the
 * whole run. */
static double most_of(const struct plan *plan, int category, const char *name)
{
    double live = 0, most = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        if ((op->kind != OP_ALLOC && op->kind != OP_FREE) ||
            plan->programs[0].buffers.at[op->index].category != category ||
            strcmp(op->name, name) == 0)
            continue;
        live +=
            (op->kind == OP_ALLOC ? 1 : -1) * (double)plan->programs[0].buffers.at[op->index].bytes;
        most = live > most ? live : most;
    }
    return most;
}

/* contiguous_gradients: a gradient that has been copied into the bucket is given up, so that
 * besides the owned part (an eighth, kept to the step) there is never more than the embedding's,
 * which waits from the head for the lookup (they are tied), and the largest of a block's beside it
 * (16 bits). Stage 1 copies in the last micro-step only, and without overlap_comm after its
 * backward pass (reduce_gradients); before that all gradients add up. The buckets are as large as
 * reduce_bucket_size, however small the model: two in stages 1 and 2 with overlap_comm, one in
 * stage 3. */
static void gradients_are_given_up_for_the_bucket(void **state)
{
    (void)state;
    for (int64_t stage = 1; stage <= 3; stage++)
        for (int i = 0; i < 4; i++) {
            struct strategy_options options = zero_of(stage);
            bool overlaps = i & 1, accumulates = i & 2;
            options.zero.overlap_comm = overlaps ? OVERLAP_TRUE : OVERLAP_FALSE;
            options.train.grad_accum = accumulates ? 2 : 1;
            struct compiled compiled;
            compile(&compiled, &options, &small_gpt, 8);
            double all = 2 * (double)compiled.model.params,
                   embedding = 2 * (double)(small_gpt.vocab * small_gpt.d_model),
                   largest = 2 * (double)(small_gpt.d_ff * small_gpt.d_model);
            double fp32_grads = 4 * (double)compiled.model.params / 8, owned = 0, buckets = 0;
            for (int b = 0; b < compiled.plan.programs[0].buffers.n; b++) {
                const struct plan_buffer *buffer = &compiled.plan.programs[0].buffers.at[b];
                owned += strcmp(buffer->name, "owned_grads") == 0 ? (double)buffer->bytes : 0;
                buckets += strcmp(buffer->name, "ipg_buckets") == 0 ? (double)buffer->bytes : 0;
            }
            assert_true(owned == all / 8);
            assert_true(buckets == (overlaps && stage < 3 ? 2 : 1) * 2 * 5e8);
            double most = most_of(&compiled.plan, HBM_GRADIENTS, "owned_grads"),
                   want = embedding + largest;
            if (stage == 1 && (accumulates || !overlaps))
                want = all;
            assert_true(most == (want > fp32_grads ? want : fp32_grads));
            drop(&compiled);
        }
}

static int ops_named(const struct plan *plan, const char *name)
{
    int n = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        n += strcmp(plan->programs[0].ops.at[i].name, name) == 0;
    return n;
}

/* The host waits for the GPU when gradients have been reduced
 * (independent_gradient_partition_epilogue: stage 3, and overlap_comm), which stage 1 does once and
 * the others in each micro-step; and always for the norm of the gradients before the step
 * (get_grad_norm_direct): an eighth of the tensors, rounded up, or in stage 3 a slice of each,
 * widened to FP64 and summed up. */
static void where_the_host_of_zero_waits(void **state)
{
    (void)state;
    for (int64_t stage = 1; stage <= 3; stage++)
        for (int overlaps = 0; overlaps < 2; overlaps++) {
            struct strategy_options options = zero_of(stage);
            options.zero.overlap_comm = overlaps ? OVERLAP_TRUE : OVERLAP_FALSE;
            options.train.grad_accum = 3;
            struct compiled compiled;
            compile(&compiled, &options, &small_gpt, 8);
            int streams = 3, waits = overlaps || stage == 3 ? (stage == 1 ? 1 : 3) : 0;
            int n = compiled.model.n_tensors;
            assert_int_equal(ops_named(&compiled.plan, "synchronize"), streams * waits);
            assert_int_equal(ops_named(&compiled.plan, "grad_norm/item"), 1);
            assert_int_equal(
                ops_named(&compiled.plan, "grad_norm/double"), stage == 3 ? n : (n + 7) / 8);
            assert_int_equal(ops_named(&compiled.plan, "optimizer/unscale_and_clip_grads"), 1);
            drop(&compiled);
        }
}

/* On one GPU nothing is reduced: gradients go to the host when the kernels that made them have
 * ended. */
static void gradients_leave_when_they_are_made(void **state)
{
    (void)state;
    struct strategy_options options = zero_of(2);
    options.zero.offload_optimizer = true;
    struct compiled compiled;
    compile(&compiled, &options, &small_gpt, 1);
    const struct plan_program *program = &compiled.plan.programs[0];
    int last = -1, copies = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (strstr(op->name, "owned_grads/device_to_host")) {
            assert_int_equal(op->n_waits, 1);
            assert_int_equal(program->waits.at[op->first_wait], last);
            copies++;
        }
        last = op->kind == OP_KERNEL && op->stream == STREAM_COMPUTE ? i : last;
    }
    assert_true(copies > 0);
    drop(&compiled);
}

/* Bytes that kernels whose name ends so move. */
static double moved_by(const struct plan *plan, const char *end)
{
    double bytes = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        const char *at = strstr(op->name, end);
        if (op->kind == OP_KERNEL && at && strlen(at) == strlen(end))
            bytes +=
                plan->kernels.at[op->index].read_bytes + plan->kernels.at[op->index].write_bytes;
    }
    return bytes;
}

/* The second and the third of three micro-steps add their gradients to those before: two are read,
 * one is written, 2 bytes an element. Whole ones where they stay on the GPU (stage 1, and one GPU),
 * else an eighth, rounded up. */
static void gradients_add_up(void **state)
{
    (void)state;
    for (int64_t stage = 1; stage <= 3; stage++)
        for (int gpus = 1; gpus <= 8; gpus += 7) {
            struct strategy_options options = zero_of(stage);
            options.train.grad_accum = 3;
            struct compiled compiled;
            compile(&compiled, &options, &small_gpt, gpus);
            double passes = 2 * 3 * 2, all = (double)compiled.model.params;
            bool whole = stage == 1 || gpus == 1;
            assert_true(moved_by(&compiled.plan, "/accumulate_grad") == (whole ? passes * all : 0));
            assert_true(moved_by(&compiled.plan, "owned_grads/add_") ==
                        (whole ? 0 : passes * ceil(all / gpus)));
            drop(&compiled);
        }
}

/* Stage 3 gathers matrices in forward and for dgrad in backward: 4 a block, twice. The embedding,
 * tied to the head, is looked up in, is the head in forward and again, as the very next use, in the
 * head's dgrad: two gathers. The position embedding is looked up in once. All this with nothing
 * kept for reuse and no prefetch. */
static void zero_3_gathers_what_is_used(void **state)
{
    (void)state;
    struct strategy_options options = zero_of(3);
    options.zero.stage3_prefetch_bucket_size = 0;
    struct compiled compiled;
    compile(&compiled, &options, &small_gpt, 8);
    assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), 3 * 4 * 2 + 2 + 1);
    drop(&compiled);
    /* Kept while the next use is near: one gather each in the whole step. */
    options.zero.stage3_max_reuse_distance = 1000000000;
    compile(&compiled, &options, &small_gpt, 8);
    assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), 3 * 4 + 1 + 1);
    drop(&compiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_volumes),
        cmocka_unit_test(large_gradients_are_not_copied),
        cmocka_unit_test(gradients_are_given_up_for_the_bucket),
        cmocka_unit_test(where_the_host_of_zero_waits),
        cmocka_unit_test(gradients_leave_when_they_are_made),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(zero_3_gathers_what_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
