/* nanotron's data parallelism, what goes before its messages, and how its blocks go to stages. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "compiled.h"

/* small_llama (../shapes.h), q, k and v apart: 9 tensors in each of 3 blocks, embedding, norm,
 * head. */
enum { N_TENSORS = 3 * 9 + 3, RANKS = 8 };
/* The loss and the barrier, a number each. */
#define NUMBERS (2 * 4.0)

static struct strategy_options nanotron_of(int64_t zero_stage)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.kind = STRATEGY_NANOTRON;
    options.train.optimizer_impl = OPTIMIZER_FUSED;
    options.train.attention = ATTENTION_FLASH;
    options.nanotron.zero_stage = zero_stage;
    return options;
}

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static bool named_so(const char *name, const char *whole)
{
    return strcmp(name, whole) == 0;
}

/* Ops of all programs. */
static int named(const struct plan *plan, const char *end)
{
    int n = 0;
    for (int p = 0; p < plan->n_programs; p++)
        for (int i = 0; i < plan->programs[p].ops.n; i++)
            n += ends_with(plan->programs[p].ops.at[i].name, end);
    return n;
}

/* Gradients travel in FP32, 4 bytes each once a step, however small buckets are; the first is 1
 * MiB, which holds all of this model. Of two micro-batches each adds every gradient to the FP32
 * buffer; DDP copies into and out of its buckets in the last one only. */
static void ddp_reduces_in_fp32(void **state)
{
    (void)state;
    for (int accum = 1; accum <= 2; accum++) {
        struct strategy_options options = nanotron_of(0);
        struct compiled compiled;
        options.train.grad_accum = accum;
        options.nanotron.ddp_bucket_cap_bytes = 1;
        compile(&compiled, &options, &small_llama, RANKS);
        assert_true(bytes_of(&compiled.plan, COLL_ALL_REDUCE) ==
                    4 * (double)compiled.model.params + NUMBERS);
        assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), 1 + 2);
        assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), 0);
        assert_int_equal(named(&compiled.plan, "/fp32_grad.add_"), accum * N_TENSORS);
        assert_int_equal(named(&compiled.plan, "/copy_to_bucket"), N_TENSORS);
        assert_int_equal(named(&compiled.plan, "/copy_from_bucket"), N_TENSORS);
        drop(&compiled);
    }
}

/* A bucket closes when its BF16 gradients reach the cap: of the head, 128,000 bytes, alone; then
 * nine tensors of a block, 2 x (64 x 64 + 2 x 32 x 64 + 64 x 64 + 3 x 160 x 64 + 2 x 64) bytes, and
 * so on. Here the first bucket's 1 MiB is never reached, so a larger vocabulary: 2 x 64 x 10,000
 * bytes close it. */
static void buckets_close_when_full(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    struct strategy_options options = nanotron_of(0);
    struct compiled compiled;
    shape.vocab = 10000;
    options.nanotron.ddp_bucket_cap_bytes = 1;
    compile(&compiled, &options, &shape, RANKS);
    assert_int_equal(named(&compiled.plan, "bucket_hook"),
        N_TENSORS); /* the head closes the first, then each one */
    drop(&compiled);
    options.nanotron.ddp_bucket_cap_bytes = 1e9;
    compile(&compiled, &options, &shape, RANKS);
    assert_int_equal(named(&compiled.plan, "bucket_hook"), 2);
    drop(&compiled);
}

/* All gradients in one all_reduce, and all weights, in 16 bits, in one all_gather, for which the
 * host makes a view for each tensor of each rank and of the input, then a view and a copy of each
 * tensor of each rank. */
static void zero_1_gathers_slices(void **state)
{
    (void)state;
    struct strategy_options options = nanotron_of(1);
    struct compiled compiled;
    options.host.view_s = 1e-6;
    options.host.kernel_issue_s = 10e-6;
    compile(&compiled, &options, &small_llama, RANKS);
    const struct plan_program *program = &compiled.plan.programs[0];
    double host_s = 0, expected = N_TENSORS * ((2 * RANKS + 1) * 1e-6 + RANKS * 10e-6);
    for (int i = 0; i < program->ops.n; i++)
        if (strncmp(program->ops.at[i].name, "all_gather_coalesced/", 21) == 0 &&
            program->ops.at[i].kind == OP_HOST)
            host_s += (double)program->ops.at[i].host_s;
    assert_true(host_s > 0.999 * expected);
    assert_true(host_s < 1.001 * expected);
    assert_true(
        bytes_of(&compiled.plan, COLL_ALL_REDUCE) == 4 * (double)compiled.model.params + NUMBERS);
    assert_true(bytes_of(&compiled.plan, COLL_ALL_GATHER) == 2 * (double)compiled.model.params);
    assert_int_equal(named(&compiled.plan, "/copy_to_bucket"), 0);
    drop(&compiled);
}

static double host_seconds(const struct strategy_options *options, int ranks, int *collectives)
{
    struct compiled compiled;
    double sum_s = 0;
    compile(&compiled, options, &small_llama, ranks);
    for (int i = 0; i < compiled.plan.programs[0].ops.n; i++)
        sum_s += (double)compiled.plan.programs[0].ops.at[i].host_s;
    *collectives = count(&compiled.plan, COLL_ALL_REDUCE) + count(&compiled.plan, COLL_ALL_GATHER);
    drop(&compiled);
    return sum_s;
}

/* Every collective of a group of 8 costs the host 8 checks more, or a part of each where the 8
 * ranks are a node; of 16 ranks on two nodes 8 and 8 parts. */
static void collectives_are_checked_by_rank(void **state)
{
    (void)state;
    struct strategy_options options = nanotron_of(1), checked = options;
    int collectives;
    checked.host.collective_check_s = 1;
    double none_s = host_seconds(&options, RANKS, &collectives);
    assert_true(
        fabs(host_seconds(&checked, RANKS, &collectives) - none_s - RANKS * collectives) < 1e-3);
    checked.host.collective_check_in_node = 0.75;
    assert_true(fabs(host_seconds(&checked, RANKS, &collectives) - none_s -
                     0.75 * RANKS * collectives) < 1e-3);
    none_s = host_seconds(&options, 2 * RANKS, &collectives);
    assert_true(fabs(host_seconds(&checked, 2 * RANKS, &collectives) - none_s -
                     1.75 * RANKS * collectives) < 1e-3);
}

/* ZeRO-1's all_gather_coalesced holds all weights twice more, in BF16: a flat part of each rank and
 * its own, and the flat tensor that these are gathered into. Nothing of it is left over. */
static void zero_1_gathers_beside_the_weights(void **state)
{
    (void)state;
    struct strategy_options options = nanotron_of(1);
    struct compiled compiled;
    compile(&compiled, &options, &small_llama, RANKS);
    const struct plan_program *program = &compiled.plan.programs[0];
    int64_t bytes = 0, weights = 2 * compiled.model.params;
    for (int i = 0; i < program->buffers.n; i++)
        if (named_so(program->buffers.at[i].name, "all_gather_coalesced/flat") ||
            named_so(program->buffers.at[i].name, "all_gather/flat"))
            bytes += program->buffers.at[i].bytes;
    assert_true(bytes >= 2 * weights + weights / RANKS);
    assert_true(bytes <= 2 * weights + weights / RANKS + RANKS + 1); /* parts are rounded up */
    drop(&compiled);
}

/* Two stages, three micro-batches: forward go two descriptions of two messages, the mask and the
 * activation; backward one description and the gradient. Each is sent and received; the host waits
 * for what is described to it. */
static void messages_are_described(void **state)
{
    (void)state;
    for (int described = 0; described < 2; described++) {
        struct model_shape shape = small_llama;
        struct strategy_options options = nanotron_of(1);
        struct compiled compiled;
        shape.n_layers = 4;
        options.train.grad_accum = 3;
        options.parallelism.pipeline = 2;
        options.parallelism.batch_p2p_sync = false;
        options.parallelism.p2p_metadata = described;
        options.parallelism.p2p_poll_s = 0.1;
        compile(&compiled, &options, &shape, RANKS);
        assert_int_equal(
            named(&compiled.plan, "send_forward"), 3 * (described ? 2 + 1 + 2 + 1 : 1));
        assert_int_equal(
            named(&compiled.plan, "recv_forward"), 3 * (described ? 2 + 1 + 2 + 1 : 1));
        assert_int_equal(named(&compiled.plan, "send_backward"), 3 * (described ? 2 + 1 : 1));
        assert_int_equal(named(&compiled.plan, "metadata/to_python"), described ? 3 * (4 + 2) : 0);
        assert_int_equal(named(&compiled.plan, "metadata/sleep"), described ? 2 * 3 * (4 + 2) : 0);
        drop(&compiled);
    }
}

/* Blocks of 4 d^2 + 3 d d_ff = 67,108,864 + 176,160,768 elements and a head of 131,072 x 4,096,
 * 2.207 blocks, are 34.207 blocks in all. Of 2 stages the first ends with the block that passes
 * 17.10, the 18th; of 4 they end behind 8.55, 17.10 and 25.66: 9, 18, 26. Of 32 each but three ends
 * with the first block that it gets, as that passes 1.069 a stage; from the 30th on none is left.
 */
static void blocks_go_by_their_costs(void **state)
{
    (void)state;
    struct model_shape shape = {.name = "8b",
        .family = MODEL_LLAMA,
        .d_model = 4096,
        .d_ff = 14336,
        .d_kv = 128,
        .n_heads = 32,
        .n_kv_heads = 32,
        .n_layers = 32,
        .vocab = 131072,
        .rotary_share = 1,
        .gated_ffn = true,
        .fused_projections = true};
    const struct {
        int stages, blocks[4];
    } cases[] = {{2, {18, 14}}, {4, {9, 9, 8, 6}}};
    struct arena arena = ARENA_INIT;
    struct model model;
    struct hw hw = test_hw();
    model_build(&model, &shape, &arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strategy_options options = nanotron_of(1);
        options.parallelism.pipeline = cases[i].stages;
        options.parallelism.partition_method = PARTITION_COMPUTE_COSTS;
        struct job job = strategy_job(&options, &model, &hw, 8);
        for (int s = 0; s < cases[i].stages; s++)
            assert_int_equal(strategy_stage(&job, s, &arena).chunks[0].n, cases[i].blocks[s]);
    }
    struct strategy_options options = nanotron_of(1);
    options.parallelism.pipeline = 32;
    options.parallelism.partition_method = PARTITION_COMPUTE_COSTS;
    struct job job = strategy_job(&options, &model, &hw, 32);
    for (int s = 0; s < 32; s++)
        assert_int_equal(strategy_stage(&job, s, &arena).chunks[0].n, s == 0 || s == 14 || s == 28
                                                                          ? 2
                                                                      : s < 28 ? 1
                                                                               : 0);
    arena_release(&arena);
}

/* A head as large as 30 blocks: of 4 stages the first has all 4 blocks, the next two none, the last
 * the head. They hand on what they get, in both directions, and have nothing to reduce, gather or
 * update. */
static void stages_without_blocks_hand_on(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    struct strategy_options options = nanotron_of(1);
    struct compiled compiled;
    shape.vocab = 20000;
    shape.n_layers = 4;
    options.train.grad_accum = 3;
    options.parallelism.pipeline = 4;
    options.parallelism.partition_method = PARTITION_COMPUTE_COSTS;
    compile(&compiled, &options, &shape, RANKS);
    assert_int_equal(named(&compiled.plan, "send_forward"), 3 * 3);
    assert_int_equal(named(&compiled.plan, "recv_forward"), 3 * 3);
    assert_int_equal(named(&compiled.plan, "send_backward"), 3 * 3);
    assert_int_equal(named(&compiled.plan, "recv_backward"), 3 * 3);
    assert_int_equal(
        named(&compiled.plan, "weights/all_gather"), 2); /* of the first and the last stage */
    assert_int_equal(named(&compiled.plan, "fp32_grads/all_reduce"), 2);
    for (int p = 1; p <= 2; p++) {
        assert_true(compiled.plan.programs[p].model_flop == 0);
        for (int i = 0; i < compiled.plan.programs[p].buffers.n; i++)
            assert_true(strcmp(compiled.plan.programs[p].buffers.at[i].name, "fp32_grads") != 0);
    }
    drop(&compiled);
}

static void costs_decide_alone(void **state)
{
    (void)state;
    struct strategy_options options = nanotron_of(1);
    options.train.grad_accum = 4;
    options.parallelism.pipeline = 2;
    options.parallelism.partition_method = PARTITION_COMPUTE_COSTS;
    options.parallelism.first_layers = 1;
    refuse_model(&small_llama, test_hw(), &options, "compute_costs decides");
    options.parallelism.first_layers = 0;
    options.parallelism.pipeline = 4;
    refuse_model(&small_llama, test_hw(), &options, "4 stages share 3 blocks; take 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ddp_reduces_in_fp32),
        cmocka_unit_test(buckets_close_when_full),
        cmocka_unit_test(zero_1_gathers_slices),
        cmocka_unit_test(collectives_are_checked_by_rank),
        cmocka_unit_test(messages_are_described),
        cmocka_unit_test(zero_1_gathers_beside_the_weights),
        cmocka_unit_test(blocks_go_by_their_costs),
        cmocka_unit_test(stages_without_blocks_hand_on),
        cmocka_unit_test(costs_decide_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
