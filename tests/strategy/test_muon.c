/* Muon: FLOP, bytes, states and communication in closed form; who gets which matrix. */
#include "strategy/muon.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

enum { GPUS = 8, VECTORS = 256 + 576, BLOCKS = 3 };

/* A block of small_gpt, in x out. */
static const struct optimizer_tensor matrices[] = {{.rows = 64, .cols = 192, .matrices = 1},
    {.rows = 64, .cols = 64, .matrices = 1}, {.rows = 64, .cols = 256, .matrices = 1},
    {.rows = 256, .cols = 64, .matrices = 1}};
enum { N = sizeof matrices / sizeof *matrices };

/* Five times 2 m^2 n + 2 m^3 + 2 m^2 n with m = 64 of each of them. */
static double flop_of_blocks(void)
{
    const double m = 64, n[] = {192, 64, 256, 256};
    double flop = 0;
    for (int i = 0; i < N; i++)
        flop += 5 * (2 * m * m * n[i] + 2 * m * m * m + 2 * m * m * n[i]);
    return BLOCKS * flop;
}

static struct strategy_options muon_of(int kind)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.kind = kind;
    options.train.precision = PRECISION_FP32;
    options.train.optimizer = OPTIMIZER_MUON;
    return options;
}

struct work {
    double flop, bytes;
    int kernels;
};

/* Of the kernels of this kind whose name begins so. */
static struct work work_of(const struct plan *plan, int kind, const char *name)
{
    struct work sum = {0};
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        if (op->kind != OP_KERNEL || strncmp(op->name, name, strlen(name)) != 0)
            continue;
        const struct kernel_work *work = &plan->kernels.at[op->index];
        if ((int)work->kind != kind)
            continue;
        sum.flop += work->flop;
        sum.bytes += work->read_bytes + work->write_bytes;
        sum.kernels++;
    }
    return sum;
}

/* Bytes of an m x n matrix: Newton-Schulz reads and writes 2 (read X twice, write A) + ... as addmm
 * does it: gram: 2 mn + mm; gram_update: mm + mm, copied, then 3 mm + mm; update: mn + mn, copied,
 * then mm + 2 mn + mn. BF16, five times; norm mn + 1, clamp 1 + 1, div_ 2 mn once. In FP32: 3 + 3
 * elements of the two lerps, 1 of the cast and a BF16 one, 2 of mul_, 2 of add_ and a BF16 one. */
static void orthogonalisation_moves(void **state)
{
    (void)state;
    struct compiled compiled;
    struct strategy_options options = muon_of(STRATEGY_SINGLE_DEVICE);
    compile(&compiled, &options, &small_gpt, 1);
    struct work gemm = work_of(&compiled.plan, KERNEL_GEMM, "optimizer/muon/"),
                passes = work_of(&compiled.plan, KERNEL_OPTIMIZER, "optimizer/muon/");
    const double m = 64, n[] = {192, 64, 256, 256};
    double multiplied = 0, streamed = 0;
    for (int i = 0; i < N; i++) {
        multiplied +=
            BLOCKS * 2 * 5 * ((2 * m * n[i] + m * m) + 4 * m * m + (m * m + 3 * m * n[i]));
        streamed +=
            BLOCKS * (2 * 5 * (2 * m * m + 2 * m * n[i]) + 2 * (m * n[i] + 1 + 2 + 2 * m * n[i]) +
                         m * n[i] * (4 * (6 + 1 + 2 + 2) + 2 + 2));
    }
    assert_true(gemm.flop == flop_of_blocks());
    assert_true(gemm.bytes == multiplied);
    assert_int_equal(gemm.kernels, BLOCKS * N * 15);
    assert_true(passes.bytes == streamed);
    assert_int_equal(passes.kernels, BLOCKS * N * (3 + 3 + 10 + 2));
    drop(&compiled);
}

static double kept_states(const struct plan *plan)
{
    const struct plan_program *program = &plan->programs[0];
    double bytes = 0;
    for (int i = 0; i < program->setup.n; i++)
        if (program->buffers.at[program->setup.at[i]].category == HBM_OPTIMIZER)
            bytes += (double)program->buffers.at[program->setup.at[i]].bytes;
    for (int i = 0; i < program->ops.n; i++)
        if (program->ops.at[i].kind == OP_KEEP)
            bytes += (double)program->buffers.at[program->ops.at[i].index].bytes;
    return bytes;
}

/* One moment of matrices, AdamW's two of the rest; of FSDP an eighth. The tables, 66,048 and 128,
 * are the root's. */
static void one_moment_of_matrices(void **state)
{
    (void)state;
    const double elements = BLOCKS * 49152, rest = 66048 + 128 + BLOCKS * (256 + 576);
    static const struct {
        int kind, gpus;
    } cases[] = {{STRATEGY_SINGLE_DEVICE, 1}, {STRATEGY_DDP, GPUS}, {STRATEGY_FSDP, GPUS}};
    for (int i = 0; i < 3; i++) {
        struct compiled compiled;
        struct strategy_options options = muon_of(cases[i].kind);
        double ranks = cases[i].kind == STRATEGY_FSDP ? GPUS : 1;
        compile(&compiled, &options, &small_gpt, cases[i].gpus);
        assert_true(kept_states(&compiled.plan) == (4 * elements + 8 * rest) / ranks);
        drop(&compiled);
    }
}

static double gathered(const struct plan *plan, const char *name)
{
    double bytes = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        if (op->kind == OP_COLLECTIVE && strcmp(op->name, name) == 0)
            bytes += plan->collectives.at[op->index].bytes;
    }
    return bytes;
}

/* Each of FSDP's ranks gathers every update in BF16 and orthogonalises all. */
static void fsdp_gathers_whole_matrices(void **state)
{
    (void)state;
    struct compiled compiled;
    struct strategy_options options = muon_of(STRATEGY_FSDP);
    compile(&compiled, &options, &small_gpt, GPUS);
    assert_true(
        gathered(&compiled.plan, "optimizer/muon/update/all_gather") == 2.0 * BLOCKS * 49152);
    assert_true(work_of(&compiled.plan, KERNEL_GEMM, "optimizer/muon/").flop == flop_of_blocks());
    drop(&compiled);
}

/* Twelve matrices, six of 64 x 256, three of 64 x 192, three of 64 x 64, to eight ranks: the last
 * lap is backwards, so that the rank with a 64 x 192, the eighth, gets the ninth, one of 64 x 192,
 * too, and those before it the small ones. */
static void distributed_ranks_share(void **state)
{
    (void)state;
    const double two = muon_flop(matrices[0]) * 2, elements = BLOCKS * 49152;
    struct compiled compiled;
    struct strategy_options options = muon_of(STRATEGY_FSDP);
    options.train.muon_distributed = true;
    compile(&compiled, &options, &small_gpt, GPUS);
    assert_true(work_of(&compiled.plan, KERNEL_GEMM, "optimizer/muon/").flop == two);
    assert_true(gathered(&compiled.plan, "optimizer/muon/update/all_to_all") == 2.0 * 2 * 64 * 192);
    assert_true(
        gathered(&compiled.plan, "optimizer/muon/update/all_to_all_back") == 2.0 * 2 * 64 * 192);
    drop(&compiled);
    options.kind = STRATEGY_DDP;
    compile(&compiled, &options, &small_gpt, GPUS);
    assert_true(work_of(&compiled.plan, KERNEL_GEMM, "optimizer/muon/").flop == two);
    assert_true(gathered(&compiled.plan, "optimizer/muon/params/all_gather") == 4 * elements);
    drop(&compiled);
    options.kind = STRATEGY_MEGATRON;
    options.train.precision = PRECISION_BF16_MIXED;
    compile(&compiled, &options, &small_gpt, GPUS);
    assert_true(work_of(&compiled.plan, KERNEL_GEMM, "optimizer/muon/").flop == two);
    assert_true(gathered(&compiled.plan, "optimizer/muon/params/all_gather") ==
                2.0 * (double)compiled.model.params);
    drop(&compiled);
    options.train.muon_distributed = false;
    compile(&compiled, &options, &small_gpt, GPUS);
    assert_true(work_of(&compiled.plan, KERNEL_GEMM, "optimizer/muon/").flop == flop_of_blocks());
    assert_true(gathered(&compiled.plan, "optimizer/muon/params/all_gather") == 0);
    drop(&compiled);
}

/* Experts are matrices one upon another: 8 of 96 x 64 and 8 of 64 x 48 in each of two blocks. */
static void experts_are_matrices(void **state)
{
    (void)state;
    struct compiled compiled;
    struct strategy_options options = muon_of(STRATEGY_SINGLE_DEVICE);
    compile(&compiled, &options, &small_moe, 1);
    int experts = 0;
    for (int t = 0; t < compiled.model.n_tensors; t++) {
        struct optimizer_tensor tensor =
            muon_tensor(&compiled.model, OPTIMIZER_MUON, &compiled.model.tensors[t]);
        if (tensor.matrices < 2)
            continue;
        bool up = tensor.cols == 64;
        assert_int_equal(tensor.matrices, 8);
        assert_true(muon_flop(tensor) == 8 * 5 *
                                             (up ? 4 * 64. * 64 * 96 + 2 * 64. * 64 * 64
                                                 : 4 * 48. * 48 * 64 + 2 * 48. * 48 * 48));
        experts++;
    }
    assert_int_equal(experts, 4);
    drop(&compiled);
}

/* No rank has less than its share, the busiest at most one matrix more; all matrices are someone's.
 */
static void the_busiest_has_its_share(void **state)
{
    (void)state;
    for (int ranks = 1; ranks < 40; ranks++) {
        struct optimizer_tensor dealt[N + 1] = {{.rows = 2880, .cols = 64, .matrices = 30}};
        memcpy(dealt + 1, matrices, sizeof matrices);
        double all = muon_flop(dealt[0]), own = 0, largest = muon_flop(matrices[2]);
        for (int i = 0; i < N; i++)
            all += muon_flop(matrices[i]);
        int n = muon_deal(dealt, N + 1, ranks);
        for (int i = 0; i < n; i++)
            own += muon_flop(dealt[i]);
        assert_true(own * ranks >= all * (1 - 1e-12) && own <= all / ranks + 2 * largest);
    }
}

static void what_it_is_not_with(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct strategy_options options = muon_of(STRATEGY_DEEPSPEED);
    refuse_plan(
        hw, &options, "muon is simulated with strategy ddp, fsdp, megatron and single_device");
    options = muon_of(STRATEGY_MEGATRON);
    options.train.precision = PRECISION_BF16_MIXED;
    options.megatron.use_distributed_optimizer = true;
    refuse_plan(hw, &options, "take train.muon_distributed: true in its place");
    options = muon_of(STRATEGY_FSDP);
    options.fsdp.cpu_offload = true;
    refuse_plan(hw, &options, "muon steps on the GPU");
    options = muon_of(STRATEGY_DDP);
    hw.gpu.gemm[DTYPE_BF16].peak.value = 0;
    hw.gpu.gemm[DTYPE_BF16].peak.kind = QUANTITY_UNSET;
    refuse_plan(hw, &options, "muon multiplies in BF16, which GPU 'test' cannot");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orthogonalisation_moves),
        cmocka_unit_test(one_moment_of_matrices),
        cmocka_unit_test(fsdp_gathers_whole_matrices),
        cmocka_unit_test(distributed_ranks_share),
        cmocka_unit_test(experts_are_matrices),
        cmocka_unit_test(the_busiest_has_its_share),
        cmocka_unit_test(what_it_is_not_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
