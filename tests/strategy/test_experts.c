/* What a plan makes of a mixture of experts: exchanges between the ranks that share them, and waits
 * of the host. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../near.h"
#include "compiled.h"

/* Four ranks that share small_moe's eight experts, each of them `tensor` ranks; each expert whole,
 * or cut over `cut`. */
static void compile_cut(struct compiled *out, const struct strategy_options *options,
    const struct hw *hw, int tensor, int cut, int shard)
{
    const int size[AXIS_COUNT] = {[AXIS_EP] = 4, [AXIS_TP] = tensor, [AXIS_DP_SHARD] = shard};
    struct diag diag = DIAG_INIT;
    struct model whole;
    const char *bad = NULL;
    *out = (struct compiled){.arena = ARENA_INIT};
    const struct model_parallel parallel = {
        .tensor = tensor, .sequence = tensor > 1, .expert = 4, .expert_tensor = cut};
    model_build(&whole, &small_moe, &out->arena);
    model_shard(&out->model, &whole, &parallel, &out->arena);
    struct job job = strategy_job(options, &out->model, hw, 1);
    job.workload.parallel = parallel;
    assert_true(mesh_build(&job.mesh, size, mesh_order_default, &bad));
    assert_int_equal(
        strategy_compile(&out->plan, &job, (struct source_pos){0}, &out->arena, &diag), STATUS_OK);
    char why[256];
    if (!plan_check(&out->plan, why, sizeof why))
        fail_msg("%s", why);
}

static void compile_sharded(struct compiled *out, const struct strategy_options *options,
    const struct hw *hw, int tensor, int shard)
{
    compile_cut(out, options, hw, tensor, 0, shard);
}

static void compile_shared(
    struct compiled *out, const struct strategy_options *options, const struct hw *hw, int tensor)
{
    compile_sharded(out, options, hw, tensor, 1);
}

static int ops(const struct plan *plan, int kind, const char *name)
{
    int n = 0;
    for (int o = 0; o < plan->programs[0].ops.n; o++)
        n += plan->programs[0].ops.at[o].kind == kind &&
             strstr(plan->programs[0].ops.at[o].name, name);
    return n;
}

/* Two blocks of three have experts. Each sends rows and probabilities twice forward less combine's
 * probabilities, and as often backward, over the four ranks; recomputation sends again what forward
 * did, and the host waits again. */
static void ranks_exchange_rows(void **state)
{
    (void)state;
    for (int checkpointed = 0; checkpointed < 2; checkpointed++) {
        struct strategy_options options = options_of(NO_SHARD);
        struct hw hw = test_hw();
        struct compiled compiled;
        options.kind = STRATEGY_SINGLE_DEVICE;
        options.train.activation_checkpointing = checkpointed ? CHECKPOINT_FULL : CHECKPOINT_NONE;
        options.train.checkpoint_early_stop = false;
        compile_shared(&compiled, &options, &hw, 1);
        int forward = 1 + checkpointed;
        assert_int_equal(ops(&compiled.plan, OP_COLLECTIVE, "all_to_all"), 2 * (3 * forward + 3));
        assert_int_equal(ops(&compiled.plan, OP_COLLECTIVE, "all_gather"), 2 * forward);
        assert_int_equal(ops(&compiled.plan, OP_HOST_WAIT, "tolist"), 2 * forward);
        assert_int_equal(
            compiled.plan.groups.at[compiled.plan.collectives.at[0].group].ranks.size, 4);
        drop(&compiled);
    }
}

/* Whether the first op of that kind and name waits for one of the other. */
static bool op_waits_for(
    const struct plan_program *program, int kind, const char *name, const char *awaited)
{
    for (int o = 0; o < program->ops.n; o++) {
        const struct plan_op *op = &program->ops.at[o];
        if (op->kind != kind || !strstr(op->name, name))
            continue;
        for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++)
            if (program->waits.at[w] < program->ops.n &&
                strstr(program->ops.at[program->waits.at[w]].name, awaited))
                return true;
        return false;
    }
    return false;
}

static bool waits_for(const struct plan_program *program, const char *name, const char *awaited)
{
    return op_waits_for(program, OP_KERNEL, name, awaited);
}

/* The shared expert's second half has a collective of tensor parallelism, which begins after the
 * combine on a stream of another group and ends before: what adds rows up waits for the combine
 * nevertheless; so in backward. */
static void a_wait_is_for_its_own_exchange(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    struct hw hw = test_hw();
    struct compiled compiled;
    options.kind = STRATEGY_SINGLE_DEVICE;
    options.train.moe_shared_expert_overlap = true;
    compile_shared(&compiled, &options, &hw, 2);
    const struct plan_program *program = &compiled.plan.programs[0];
    assert_true(waits_for(program, "mlp.unpermute.zero", "mlp.combine/all_to_all"));
    assert_true(waits_for(program, "mlp.sort_chunks", "mlp.dispatch_probs/all_to_all"));
    assert_true(waits_for(program, "mlp.restore_chunks.dgrad", "mlp.combine.dgrad/all_to_all"));
    drop(&compiled);
}

/* Experts that are cut: what has come by an exchange is gathered over the ranks of each, what they
 * sum is sent back. No kernel lies between, so each collective waits for the other group's before
 * it, in backward too. */
static void exchanges_of_two_groups_take_turns(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    struct hw hw = test_hw();
    struct compiled compiled;
    options.kind = STRATEGY_SINGLE_DEVICE;
    compile_cut(&compiled, &options, &hw, 2, 2, 1);
    static const char *const pairs[][2] = {
        {"mlp.gather_rows/all_gather", "mlp.dispatch_probs/all_to_all"},
        {"mlp.combine/all_to_all", "mlp.scatter_rows/reduce_scatter"},
        {"mlp.scatter_rows.dgrad/all_gather", "mlp.combine.dgrad/all_to_all"},
        {"mlp.dispatch.dgrad/all_to_all", "mlp.gather_rows.dgrad/reduce_scatter"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_true(
            op_waits_for(&compiled.plan.programs[0], OP_COLLECTIVE, pairs[i][0], pairs[i][1]));
    drop(&compiled);
}

/* The host waits for the look-up of each of eight experts. */
static void a_loop_stops_the_host(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    struct compiled compiled;
    options.kind = STRATEGY_SINGLE_DEVICE;
    options.train.expert_kernels = EXPERTS_LOOP;
    compile(&compiled, &options, &small_moe, 1);
    assert_int_equal(ops(&compiled.plan, OP_HOST_WAIT, "nonzero"), 2 * 8);
    assert_int_equal(compiled.plan.collectives.n, 0);
    drop(&compiled);
}

/* Adapters go beside linear layers, of which experts' stacks are none: q, k, v, o of 3 blocks, 3
 * matrices of the dense one, router, shared expert's 3 and its gate of the others. */
static void adapters_leave_experts_alone(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model, adapted;
    model_build(&model, &small_moe, &arena);
    model_adapt(&adapted, &model, 4, NULL, &arena);
    assert_int_equal(adapted.n_tensors - model.n_tensors, 2 * (3 * 4 + 3 + 2 * (1 + 3 + 1)));
    assert_string_equal(model_unknown_target(&model, "experts", &arena), "experts");
    struct strategy_options options = options_of(NO_SHARD);
    struct compiled compiled;
    options.kind = STRATEGY_SINGLE_DEVICE;
    options.train.lora_rank = 4;
    compile(&compiled, &options, &small_moe, 1);
    assert_int_equal(ops(&compiled.plan, OP_KERNEL, "experts.down_proj.dgrad"), 2);
    assert_int_equal(ops(&compiled.plan, OP_KERNEL, "experts.down_proj.wgrad"), 0);
    drop(&compiled);
    arena_release(&arena);
}

static double host_of(const struct plan *plan, const char *name)
{
    const struct plan_program *program = &plan->programs[0];
    for (int o = 0; o < program->ops.n; o++)
        if (program->ops.at[o].kind == OP_KERNEL && strstr(program->ops.at[o].name, name))
            return (double)program->ops.at[o].host_s;
    fail_msg("no %s", name);
    return 0;
}

/* A rank has two of eight experts. The second one's kernel takes 7 us more of each grouped GEMM,
 * and its gradient is an operation of autograd, 5 us. A dense GEMM is one kernel. In FP8 as in
 * BF16. */
static void each_expert_is_started(void **state)
{
    (void)state;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        struct strategy_options options = options_of(NO_SHARD);
        struct hw hw = test_hw();
        struct compiled compiled;
        options.kind = STRATEGY_SINGLE_DEVICE;
        options.train.fusion = FUSION_TRANSFORMER_ENGINE;
        options.train.precision = fp8 ? PRECISION_FP8_MIXED : PRECISION_BF16_MIXED;
        options.host.expert_launch_s = 7e-6;
        compile_shared(&compiled, &options, &hw, 1);
        assert_near(
            host_of(&compiled.plan, "mlp.experts.gate_up_proj"), 10e-6 + (fp8 ? 0 : 7e-6), 1e-11);
        assert_near(host_of(&compiled.plan, "mlp.experts.swiglu"), 10e-6, 1e-11);
        assert_near(host_of(&compiled.plan, "mlp.experts.down_proj.dgrad"), 5e-6 + 7e-6, 1e-11);
        assert_near(
            host_of(&compiled.plan, "mlp.experts.down_proj.wgrad"), 5e-6 + 7e-6 + 5e-6, 1e-11);
        assert_near(host_of(&compiled.plan, "self_attn.o_proj.wgrad"), 5e-6, 1e-11);
        drop(&compiled);
    }
}

static int recomputed(const struct plan *plan, const char *name)
{
    int n = 0;
    for (int o = 0; o < plan->programs[0].ops.n; o++)
        n += plan->programs[0].ops.at[o].kind == OP_KERNEL &&
             plan->programs[0].ops.at[o].phase == PHASE_RECOMPUTE &&
             strstr(plan->programs[0].ops.at[o].name, name);
    return n;
}

/* Bytes of activations that are there when the first op of another phase than forward comes. */
static int64_t held_for_backward(const struct plan *plan)
{
    const struct plan_program *program = &plan->programs[0];
    int64_t held = 0;
    bool begun = false;
    for (int o = 0; o < program->ops.n; o++) {
        const struct plan_op *op = &program->ops.at[o];
        begun |= op->phase == PHASE_FORWARD;
        if (begun && op->phase != PHASE_FORWARD)
            break;
        if ((op->kind == OP_ALLOC || op->kind == OP_FREE) &&
            program->buffers.at[op->index].category == HBM_ACTIVATIONS)
            held += (op->kind == OP_ALLOC ? 1 : -1) * program->buffers.at[op->index].bytes;
    }
    return held;
}

/* Of two blocks with experts: `moe` sends and waits again, in the phase of recomputation, and
 * nothing of it is held between the passes; `moe_act` and `layernorm` run their kernel again. Model
 * FLOP stay, `moe` adds those of its products. */
static void parts_are_recomputed(void **state)
{
    (void)state;
    static const struct {
        const char *modules;
        int all_to_alls, waits, swiglus, norms;
    } cases[] = {{NULL, 6, 1, 0, 0}, {"moe", 9, 2, 1, 0}, {"moe_act", 6, 1, 1, 0},
        {"layernorm", 6, 1, 0, 1}, {"moe_act,layernorm", 6, 1, 1, 1}};
    int64_t held[5];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strategy_options options = options_of(NO_SHARD);
        struct hw hw = test_hw();
        struct compiled compiled;
        options.kind = STRATEGY_SINGLE_DEVICE;
        options.train.fusion = FUSION_TRANSFORMER_ENGINE;
        options.train.recompute_modules = cases[i].modules;
        compile_shared(&compiled, &options, &hw, 1);
        assert_int_equal(
            ops(&compiled.plan, OP_COLLECTIVE, "all_to_all"), 2 * cases[i].all_to_alls);
        assert_int_equal(ops(&compiled.plan, OP_HOST_WAIT, "tolist"), 2 * cases[i].waits);
        assert_int_equal(recomputed(&compiled.plan, "experts.swiglu"), 2 * cases[i].swiglus);
        assert_int_equal(recomputed(&compiled.plan, "input_layernorm"), 3 * cases[i].norms);
        held[i] = held_for_backward(&compiled.plan);
        drop(&compiled);
    }
    for (size_t i = 1; i < sizeof cases / sizeof *cases; i++)
        assert_true(held[i] < held[0]);
    assert_true(held[4] < held[2] && held[4] < held[3]);
}

/* Of DeepSeek's three blocks, of which the first is dense: products of a part that run again, and
 * bytes that a token does not hold. A dense block's feed-forward layer holds four rows of its width
 * (gate, its SiLU, up, their product), so does the shared expert; latent attention holds queries
 * and keys of 4 x 24, and of kv_b_proj values of 4 x 12 with keys of 4 x 16 beside them. */
static void parts_of_deepseek_are_recomputed(void **state)
{
    (void)state;
    enum { TOKENS = 2 * 32, BLOCKS = 3, MOE_BLOCKS = 2, BF16 = 2 };
    static const struct {
        const char *modules, *product;
        int times;
        int64_t elements; /* of a token */
    } cases[] = {{NULL, "_proj", 0, 0},
        {"mla_up_proj", "kv_b_proj", BLOCKS, (int64_t)BLOCKS * 4 * (24 + 24 + 16 + 12)},
        {"mla_up_proj", "q_b_proj", BLOCKS, (int64_t)BLOCKS * 4 * (24 + 24 + 16 + 12)},
        {"mlp", "mlp.gate_proj", BLOCKS - MOE_BLOCKS, (int64_t)(BLOCKS - MOE_BLOCKS) * 4 * 160},
        {"shared_experts", "shared_experts.up_proj", MOE_BLOCKS, (int64_t)MOE_BLOCKS * 4 * 48}};
    int64_t held = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strategy_options options = options_of(NO_SHARD);
        struct compiled compiled;
        options.kind = STRATEGY_SINGLE_DEVICE;
        options.train.precision = PRECISION_BF16_MIXED;
        options.train.attention = ATTENTION_FLASH;
        options.train.recompute_modules = cases[i].modules;
        compile(&compiled, &options, &small_deepseek, 1);
        held = i == 0 ? held_for_backward(&compiled.plan) : held;
        assert_int_equal(recomputed(&compiled.plan, cases[i].product), cases[i].times);
        assert_int_equal(
            held - held_for_backward(&compiled.plan), TOKENS * BF16 * cases[i].elements);
        drop(&compiled);
    }
}

/* FSDP on eight ranks of which four share the experts: two hold the same. A block gathers its
 * experts over those two, 2 of 8 with 3 d 48 elements each, and the rest over all; as many bytes
 * are scattered. The experts are waited for by their product, not by what comes before it. */
static void fsdp_shards_experts_over_those_that_hold_them(void **state)
{
    (void)state;
    struct strategy_options options = options_of(FULL_SHARD);
    struct hw hw = test_hw();
    struct compiled compiled;
    compile_sharded(&compiled, &options, &hw, 1, 2);
    const double experts = 2.0 * 3 * 64 * 48, bytes = 2;
    int gathers = 0, scatters = 0, rest = 0;
    for (int c = 0; c < compiled.plan.collectives.n; c++) {
        const struct plan_collective *at = &compiled.plan.collectives.at[c];
        struct mesh_group ranks = compiled.plan.groups.at[at->group].ranks;
        bool gather = at->kind == COLL_ALL_GATHER && ranks.size == 2,
             scatter = at->kind == COLL_REDUCE_SCATTER;
        rest += at->kind == COLL_ALL_GATHER && ranks.size == 8;
        if (!gather && !(scatter && ranks.size == 2))
            continue;
        assert_int_equal(ranks.stride, 4);
        assert_true(at->bytes == experts * bytes);
        gathers += gather;
        scatters += scatter;
    }
    assert_int_equal(gathers, 2 * 2); /* two blocks, forward and backward */
    assert_int_equal(scatters, 2);
    assert_int_equal(
        rest, 1 + 2 * 3); /* the root once, three blocks twice; counts of tokens are EP's */
    const struct plan_program *program = &compiled.plan.programs[0];
    assert_true(waits_for(program, "mlp.experts.gate_up_proj", "all_gather"));
    assert_false(waits_for(program, "mlp.gate", "all_to_all"));
    drop(&compiled);
}

static double kept(const struct plan_program *program, enum hbm_category category)
{
    double bytes = 0;
    for (int i = 0; i < program->setup.n; i++) {
        const struct plan_buffer *buffer = &program->buffers.at[program->setup.at[i]];
        bytes += buffer->category == category ? (double)buffer->bytes : 0;
    }
    return bytes;
}

/* Megatron on 8 ranks, all of which hold the same dense parameters; four share the experts, so two
 * hold the same ones. The distributed optimizer cuts each kind over those that hold it, 12 bytes an
 * element beside BF16 parameters (docs/user-guide/features/dist_optimizer.md: 6 + 12/D). Gradients
 * are FP32, and each kind is reduced over those. */
static void megatron_cuts_each_kind_over_those_that_hold_it(void **state)
{
    (void)state;
    const double experts = 2.0 * 2 * 3 * 64 * 48; /* two blocks, two of eight experts */
    for (int shared = 0; shared < 2; shared++) {
        struct strategy_options options = options_of(NO_SHARD);
        struct hw hw = test_hw();
        struct compiled compiled;
        options.kind = STRATEGY_MEGATRON;
        options.train.precision = PRECISION_BF16_MIXED;
        options.megatron.use_distributed_optimizer = shared;
        options.megatron.grad_reduce_in_fp32 = true;
        compile_sharded(&compiled, &options, &hw, 1, 2);
        const double dense = (double)compiled.model.params - experts;
        const struct plan *plan = &compiled.plan;
        assert_true(kept(&plan->programs[0], HBM_OPTIMIZER) ==
                    12 * (shared ? ceil(dense / 8) + ceil(experts / 2) : dense + experts));
        double bytes[2] = {0};
        for (int c = 0; c < plan->collectives.n; c++) {
            const struct plan_collective *at = &plan->collectives.at[c];
            int ranks = plan->groups.at[at->group].ranks.size;
            if (at->kind != (shared ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE) || at->bytes < 1000)
                continue;
            assert_true(ranks == 8 || ranks == 2);
            bytes[ranks == 2] += at->bytes;
        }
        assert_true(bytes[0] == 4 * dense && bytes[1] == 4 * experts);
        drop(&compiled);
    }
}

/* param_and_grad_buffer.py: a bucket is multiplied by its factor where that is not 1. Sums are
 * divided by the 8 dense ranks, in experts' buckets too. With average_in_collective NCCL divides by
 * the ranks of the group: dense ones have 1 left, experts 2 / 8; without expert parallelism experts
 * have 1, too. One rank divides by 1. */
static void megatron_scales_what_nccl_does_not_average(void **state)
{
    (void)state;
    static const struct {
        bool average;
        int ranks; /* that share the experts */
        int scaled[2];
    } cases[] = {{false, 4, {1, 1}}, {true, 4, {0, 1}}, {true, 1, {0, 0}}, {false, 1, {0, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strategy_options options = options_of(NO_SHARD);
        struct hw hw = test_hw();
        struct compiled compiled;
        options.kind = STRATEGY_MEGATRON;
        options.train.precision = PRECISION_BF16_MIXED;
        options.megatron.grad_reduce_in_fp32 = true;
        options.megatron.average_in_collective = cases[i].average;
        if (cases[i].ranks > 1)
            compile_sharded(&compiled, &options, &hw, 1, 2);
        else
            compile(&compiled, &options, &small_moe, 1);
        const struct plan_program *program = &compiled.plan.programs[0];
        const double experts = 3.0 * 64 * 48 * 2 * 8 / cases[i].ranks,
                     dense = (double)compiled.model.params - experts;
        int scaled[2] = {0};
        for (int o = 0; o < program->ops.n; o++) {
            const struct plan_op *op = &program->ops.at[o];
            const char *slash = strchr(op->name, '/');
            if (op->kind != OP_KERNEL || !slash || strcmp(slash, "/scale") != 0 ||
                op->name[0] != 'b')
                continue;
            const struct kernel_work *work = &compiled.plan.kernels.at[op->index];
            assert_true(work->read_bytes == work->write_bytes);
            assert_true(work->read_bytes == 4 * dense || work->read_bytes == 4 * experts);
            scaled[work->read_bytes == 4 * experts]++;
        }
        assert_int_equal(scaled[0], cases[i].scaled[0]);
        assert_int_equal(scaled[1], cases[i].scaled[1]);
        drop(&compiled);
    }
}

/* Exchanges beside which the compute stream has a kernel that needs nothing of them: between what
 * they wait for and what waits for them. */
static int covered(const struct plan *plan)
{
    const struct plan_program *program = &plan->programs[0];
    int n = 0, *since = xcalloc((size_t)program->ops.n,
                   sizeof *since); /* by op: kernels up to it, or to what it awaits */
    for (int o = 0, kernels = 0; o < program->ops.n; o++) {
        const struct plan_op *op = &program->ops.at[o];
        bool computes = op->kind == OP_KERNEL && op->stream == STREAM_COMPUTE;
        for (int w = 0; w < op->n_waits; w++) {
            plan_wait wait = program->waits.at[op->first_wait + w];
            if (wait >= PLAN_PREVIOUS_STEP)
                continue;
            const struct plan_op *waited = &program->ops.at[wait];
            since[o] = since[wait] > since[o] ? since[wait] : since[o];
            bool exchanged = waited->kind == OP_COLLECTIVE &&
                             plan->collectives.at[waited->index].serves == PARALLEL_EXPERT;
            n += computes && exchanged && kernels > since[wait];
        }
        if (computes)
            since[o] = ++kernels;
    }
    free(since);
    return n;
}

/* overlap_moe_expert_parallel_comm: the same kernels and exchanges. Of three micro-batches two
 * pairs are merged, of two blocks with experts. Forward and backward, their kernels wait twice for
 * what goes to experts, once for what returns. */
static void merged_passes_exchange_beside_each_other(void **state)
{
    (void)state;
    enum { MICRO_BATCHES = 3, PAIRS = MICRO_BATCHES - 1, BLOCKS = 2, WAITS = 2 * 3 };
    struct strategy_options options = options_of(NO_SHARD);
    const struct hw hw = test_hw();
    struct compiled plain, merged;
    options.kind = STRATEGY_MEGATRON;
    options.train.grad_accum = MICRO_BATCHES;
    compile_shared(&plain, &options, &hw, 1);
    options.megatron.overlap_moe_expert_parallel_comm = true;
    compile_shared(&merged, &options, &hw, 1);
    assert_int_equal(merged.plan.collectives.n, plain.plan.collectives.n);
    assert_int_equal(merged.plan.kernels.n, plain.plan.kernels.n);
    assert_int_equal(ops(&merged.plan, OP_KERNEL, ""), ops(&plain.plan, OP_KERNEL, ""));
    assert_true(merged.plan.programs[0].hardware_flop == plain.plan.programs[0].hardware_flop);
    assert_int_equal(covered(&plain.plan), 0);
    assert_int_equal(covered(&merged.plan), PAIRS * BLOCKS * WAITS);
    drop(&plain);
    drop(&merged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_exchange_rows),
        cmocka_unit_test(a_wait_is_for_its_own_exchange),
        cmocka_unit_test(exchanges_of_two_groups_take_turns),
        cmocka_unit_test(each_expert_is_started),
        cmocka_unit_test(a_loop_stops_the_host),
        cmocka_unit_test(parts_are_recomputed),
        cmocka_unit_test(parts_of_deepseek_are_recomputed),
        cmocka_unit_test(fsdp_shards_experts_over_those_that_hold_them),
        cmocka_unit_test(adapters_leave_experts_alone),
        cmocka_unit_test(megatron_cuts_each_kind_over_those_that_hold_it),
        cmocka_unit_test(megatron_scales_what_nccl_does_not_average),
        cmocka_unit_test(merged_passes_exchange_beside_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
