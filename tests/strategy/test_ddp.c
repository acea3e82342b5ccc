/* DDP on several GPUs, on one, and the module without it. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "compiled.h"

/* Once a step, before forward: small_resnet has a norm in its stem (8 channels), three in each of 6
 * blocks and one in each of 4 shortcuts: 8 + 2 (8 + 8 + 16) + 16, 8 + 8 + 32 + 32, 2 (16 + 16 + 64)
 * + 64, 32 + 32 + 128 + 128 = 744 channels, of which mean and variance go in FP32; and 23 counters
 * of 8 bytes. */
static void ddp_broadcasts_statistics(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_DDP;
    options.train.grad_accum = 3;
    for (int i = 0; i < 3; i++) {
        int gpus = i ? 8 : 1;
        options.ddp.broadcast_buffers = i < 2;
        bool sends = i == 1;
        struct compiled compiled;
        compile(&compiled, &options, &small_resnet, gpus);
        assert_int_equal(count(&compiled.plan, COLL_BROADCAST), sends ? 2 : 0);
        assert_true(bytes_of(&compiled.plan, COLL_BROADCAST) == (sends ? 2 * 4 * 744 + 23 * 8 : 0));
        drop(&compiled);
    }
}

static int kernels(const struct plan *plan, const char *name)
{
    int n = 0;
    for (int o = 0; o < plan->programs[0].ops.n; o++)
        n += plan->programs[0].ops.at[o].kind == OP_KERNEL &&
             strstr(plan->programs[0].ops.at[o].name, name);
    return n;
}

/* One rank's reducer copies every gradient into its bucket and back, and statistics into what it
 * broadcasts (two formats) and back (mean, variance and a counter for each of 23 norms), as eight
 * do; the module alone does neither. */
static void one_rank_goes_through_all_of_it(void **state)
{
    (void)state;
    static const int kinds[] = {STRATEGY_DDP, STRATEGY_DDP, STRATEGY_SINGLE_DEVICE},
                     ranks[] = {8, 1, 1};
    for (int i = 0; i < 3; i++) {
        struct strategy_options options = options_of(NO_SHARD);
        options.kind = kinds[i];
        struct compiled compiled;
        compile(&compiled, &options, &small_resnet, ranks[i]);
        bool ddp = kinds[i] == STRATEGY_DDP;
        assert_int_equal(
            kernels(&compiled.plan, "/copy_to_bucket"), ddp ? compiled.model.n_tensors : 0);
        assert_int_equal(
            kernels(&compiled.plan, "/copy_from_bucket"), ddp ? compiled.model.n_tensors : 0);
        assert_int_equal(kernels(&compiled.plan, "/flatten"), ddp ? 2 : 0);
        assert_int_equal(kernels(&compiled.plan, "running_statistics/copy"), ddp ? 2 * 23 : 0);
        assert_int_equal(kernels(&compiled.plan, "num_batches_tracked/copy"), ddp ? 23 : 0);
        assert_int_equal(compiled.plan.collectives.n > 0, ranks[i] > 1);
        drop(&compiled);
    }
}

/* Reducer::finalize_backward goes through the buckets in the order in which they were sent: the
 * compute stream waits for one, copies its gradients out of it, then comes to the next. So the
 * first copy of every bucket waits for its reduction, and no other copy waits. */
static void buckets_are_emptied_one_by_one(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_DDP;
    options.ddp.first_bucket_bytes = 1024;
    options.ddp.bucket_cap_bytes = 4096;
    struct compiled compiled;
    compile(&compiled, &options, &small_resnet, 8);
    const struct plan *plan = &compiled.plan;
    int reduced[256], n_reduced = 0, waited = 0, copies = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        if (op->kind == OP_COLLECTIVE && strstr(op->name, "/all_reduce")) {
            assert_true(n_reduced < 256);
            reduced[n_reduced++] = i;
        }
        if (op->kind != OP_KERNEL || !strstr(op->name, "/copy_from_bucket"))
            continue;
        copies++;
        if (op->n_waits == 0)
            continue;
        assert_int_equal(op->n_waits, 1);
        assert_int_equal(plan->programs[0].waits.at[op->first_wait], reduced[waited++]);
    }
    assert_true(n_reduced > 2);
    assert_int_equal(waited, n_reduced);
    assert_int_equal(copies, compiled.model.n_tensors);
    drop(&compiled);
}

/* Bytes of gradients outside the buckets, at their fullest. */
static double most_gradients(const struct plan *plan)
{
    double live = 0, most = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        if ((op->kind != OP_ALLOC && op->kind != OP_FREE) ||
            plan->programs[0].buffers.at[op->index].category != HBM_GRADIENTS)
            continue;
        live +=
            (op->kind == OP_ALLOC ? 1 : -1) * (double)plan->programs[0].buffers.at[op->index].bytes;
        most = live > most ? live : most;
    }
    return most;
}

/* mark_variable_ready_dense copies a gradient into its bucket in either case, because
 * zero_grad(set_to_none=True) makes autograd bring a new tensor; gradient_as_bucket_view then lets
 * go of it and copies nothing back. Under no_sync nothing is copied, so that all gradients (FP32)
 * wait for the last micro-step outside the buckets. */
static void gradients_as_views_of_buckets(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool views = i & 1, accumulates = i & 2;
        struct strategy_options options = options_of(NO_SHARD);
        options.kind = STRATEGY_DDP;
        options.ddp.gradient_as_bucket_view = views;
        options.train.grad_accum = accumulates ? 2 : 1;
        struct compiled compiled;
        compile(&compiled, &options, &small_resnet, 8);
        double all = 4 * (double)compiled.model.params, largest = 0;
        for (int t = 0; t < compiled.model.n_tensors; t++)
            if (4 * (double)compiled.model.tensors[t].numel > largest)
                largest = 4 * (double)compiled.model.tensors[t].numel;
        assert_int_equal(kernels(&compiled.plan, "/copy_to_bucket"), compiled.model.n_tensors);
        assert_int_equal(
            kernels(&compiled.plan, "/copy_from_bucket"), views ? 0 : compiled.model.n_tensors);
        assert_true(most_gradients(&compiled.plan) == (views && !accumulates ? largest : all));
        drop(&compiled);
    }
}

/* FP16: GradScaler.step reads on the host whether a gradient overflowed (_maybe_opt_step), unless
 * the optimizer looks itself, on the GPU: PyTorch's fused ones do (_step_supports_amp_scaling).
 * BF16 goes without a scaler. */
static void a_scaler_reads_found_inf(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * OPTIMIZER_IMPL_COUNT; i++) {
        struct strategy_options options = options_of(NO_SHARD);
        options.kind = STRATEGY_DDP;
        options.train.optimizer_impl = i / 2;
        options.train.precision = i % 2 ? PRECISION_FP16_MIXED : PRECISION_BF16_MIXED;
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 8);
        int waits = 0;
        for (int o = 0; o < compiled.plan.programs[0].ops.n; o++)
            waits +=
                compiled.plan.programs[0].ops.at[o].kind == OP_HOST_WAIT &&
                strcmp(compiled.plan.programs[0].ops.at[o].name, "optimizer/found_inf.item") == 0;
        assert_int_equal(waits, i % 2 && i / 2 != OPTIMIZER_FUSED);
        drop(&compiled);
    }
}

static double moved(const struct plan *plan, const char *name)
{
    double bytes = 0;
    for (int o = 0; o < plan->programs[0].ops.n; o++) {
        const struct plan_op *op = &plan->programs[0].ops.at[o];
        if (op->kind != OP_KERNEL || !strstr(op->name, name))
            continue;
        bytes += plan->kernels.at[op->index].read_bytes + plan->kernels.at[op->index].write_bytes;
    }
    return bytes;
}

/* The training loop of PyTorch 1.4's benchmark, in FP32: a gradient is added to what is there (two
 * read, one written), the buckets are divided where they lie (one, one), SGD adds the weights to
 * the gradients (two, one). Each passes all parameters once; none does by default. */
static void pytorch_1_4_passes_gradients_three_times_more(void **state)
{
    (void)state;
    for (int old = 0; old < 2; old++) {
        struct strategy_options options = options_of(NO_SHARD);
        options.kind = STRATEGY_DDP;
        options.train.precision = PRECISION_FP32;
        options.train.optimizer = OPTIMIZER_SGD_MOMENTUM;
        options.train.optimizer_impl = OPTIMIZER_FOR_LOOP;
        options.train.weight_decay = options.ddp.divide_buckets = old;
        options.ddp.zero_grad = !old;
        struct compiled compiled;
        compile(&compiled, &options, &small_resnet, 8);
        double bytes = old * 4.0 * (double)compiled.model.params;
        assert_true(moved(&compiled.plan, "/accumulate_grad") == 3 * bytes);
        assert_true(moved(&compiled.plan, "bucket/div_") == 2 * bytes);
        assert_true(moved(&compiled.plan, "optimizer/grad.add") == 3 * bytes);
        assert_int_equal(
            kernels(&compiled.plan, "/accumulate_grad"), old * compiled.model.n_tensors);
        assert_int_equal(
            kernels(&compiled.plan, "optimizer/grad.add"), old * compiled.model.n_tensors);
        drop(&compiled);
    }
}

static void a_module_alone_takes_one_gpu(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_SINGLE_DEVICE;
    refuse_plan(test_hw(), &options, "not on 8; take strategy: ddp, or cluster.gpus: 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ddp_broadcasts_statistics),
        cmocka_unit_test(one_rank_goes_through_all_of_it),
        cmocka_unit_test(buckets_are_emptied_one_by_one),
        cmocka_unit_test(gradients_as_views_of_buckets),
        cmocka_unit_test(a_scaler_reads_found_inf),
        cmocka_unit_test(pytorch_1_4_passes_gradients_three_times_more),
        cmocka_unit_test(a_module_alone_takes_one_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
