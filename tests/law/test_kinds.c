/* Jobs on nodes of two kinds. Where both kinds are the same, the job is one on a single kind, whatever the strategy;
 * one rank of each kind does for all; the slower kind decides, and by speed it computes on fewer samples. */
#include "../scenario/workspace.h"

#include "exec/exec.h"
#include "plan/plan.h"
#include "scenario/energy.h"

#include <math.h>

#define SCENARIO                                                                                                       \
    "name: kinds\n"                                                                                                    \
    "model: small.json\n"                                                                                              \
    "cluster: {topology: h100-8x400g, gpus: 32}\n"                                                                     \
    "train: {micro_batch: 4, seq_len: 512, precision: bf16_mixed}\n"                                                   \
    "strategy: fsdp\n"                                                                                                 \
    "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0, straggler_share: 0}\n"          \
    "run: {steps: 1, warmup_steps: 1}\n"

/* Wide enough that kernels, not the host, take the time of a step. */
static const char small_json[] = "{\"model_type\": \"gpt2\", \"n_embd\": 4096, \"n_layer\": 2, \"n_head\": 32, "
                                 "\"vocab_size\": 8000, \"n_positions\": 1024}\n";

static int enter(void **state)
{
    if (enter_workspace(state) != 0)
        return -1;
    write_text("small.json", small_json);
    return 0;
}

struct run {
    struct loaded *loaded;
    struct arena arena;
    struct scenario_result result;
};

static struct run *simulate(const struct scenario_override *overrides, int n)
{
    struct run *run = xcalloc(1, sizeof *run);
    struct diag diag = DIAG_INIT;
    run->loaded = load_text(SCENARIO, overrides, n);
    if (run->loaded->status != STATUS_OK)
        fail_msg("%s", run->loaded->diag.text);
    if (scenario_simulate(&run->result, &run->loaded->set.points[0], &run->arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(run->result.exec.status, EXEC_OK);
    return run;
}
#define RUN(...)                                                                                                       \
    simulate((const struct scenario_override[]){__VA_ARGS__},                                                          \
        (int)(sizeof((const struct scenario_override[]){__VA_ARGS__}) / sizeof(struct scenario_override)))

static void end(struct run *run)
{
    arena_release(&run->arena);
    unload(run->loaded);
    free(run);
}

#define DGX_H100                                                                                                       \
    {                                                                                                                  \
        "cluster.second_node", "dgx-h100-like"                                                                         \
    }
#define DGX_A100                                                                                                       \
    {                                                                                                                  \
        "cluster.second_node", "dgx-a100-80gb-like"                                                                    \
    }
#define HALF                                                                                                           \
    {                                                                                                                  \
        "cluster.second_gpus", "16"                                                                                    \
    }

static void assert_same(const struct run *a, const struct run *b)
{
    const struct exec_breakdown *x = &a->result.exec.breakdown, *y = &b->result.exec.breakdown;
    assert_true(a->result.exec.step_time_s == b->result.exec.step_time_s);
    assert_true(a->result.tokens_per_s_per_gpu == b->result.tokens_per_s_per_gpu);
    assert_true(a->result.exec.memory.peak_reserved_bytes == b->result.exec.memory.peak_reserved_bytes);
    const double pairs[][2] = {{a->result.mfu, b->result.mfu}, {x->compute_s, y->compute_s},
        {x->exposed_comm_s, y->exposed_comm_s}, {x->comm_s, y->comm_s}}; /* means, summed in another order */
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_true(fabs(pairs[i][0] - pairs[i][1]) <= 1e-12 * fabs(pairs[i][1]));
}

/* The nodes of the second kind are those of the cluster: nothing changes, folded or not, equal or by speed. */
static void the_same_kind_twice_is_one_kind(void **state)
{
    (void)state;
    static const struct scenario_override strategies[][2] = {{{"strategy", "fsdp"}, {"train.grad_accum", "2"}},
        {{"strategy", "fsdp"}, {"fsdp.sharding_strategy", "HYBRID_SHARD"}},
        {{"strategy", "ddp"}, {"train.grad_accum", "2"}},
        {{"strategy", "deepspeed"}, {"deepspeed.zero_optimization.stage", "3"}},
        {{"strategy", "deepspeed"}, {"deepspeed.zero_optimization.stage", "1"}},
        {{"strategy", "megatron"}, {"parallelism.tensor", "2"}},
        {{"strategy", "nanotron"}, {"parallelism.tensor", "2"}}};
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) {
        struct run *one = RUN(strategies[s][0], strategies[s][1]);
        struct run *two = RUN(strategies[s][0], strategies[s][1], DGX_H100, HALF);
        struct run *by_speed =
            RUN(strategies[s][0], strategies[s][1], DGX_H100, HALF, {"cluster.batch_split", "by_speed"});
        struct run *all = RUN(strategies[s][0], strategies[s][1], DGX_H100, HALF, {"run.fold", "off"});
        print_message("%s: %d and %d ranks\n", strategies[s][0].value, two->result.exec.ranks_simulated,
            all->result.exec.ranks_simulated);
        assert_same(two, one);
        assert_same(by_speed, one);
        assert_same(all, one);
        assert_int_equal(all->result.exec.ranks_simulated, 32);
        assert_int_equal(two->result.exec.ranks_simulated, 2);
        end(one);
        end(two);
        end(by_speed);
        end(all);
    }
}

/* With 24 GPUs of one kind and 8 of the other, too. */
static void one_rank_of_each_kind_does_for_all(void **state)
{
    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        const struct scenario_override sharding = {"fsdp.sharding_strategy", hybrid ? "HYBRID_SHARD" : "FULL_SHARD"};
        struct run *folded = RUN(sharding, DGX_A100, {"cluster.second_gpus", "8"});
        struct run *all = RUN(sharding, DGX_A100, {"cluster.second_gpus", "8"}, {"run.fold", "off"});
        assert_int_equal(folded->result.exec.ranks_simulated, 2);
        assert_int_equal(all->result.exec.ranks_simulated, 32);
        assert_same(folded, all);
        for (int k = 0; k < 2; k++)
            assert_true(fabs(folded->result.exec.programs[k].breakdown.compute_s -
                             all->result.exec.programs[k].breakdown.compute_s) < 1e-12);
        end(folded);
        end(all);
    }
}

/* A group of 16 on 24 + 8 GPUs: one group is of both kinds, the other is not, so every rank is simulated. */
static void groups_that_differ_are_not_folded(void **state)
{
    (void)state;
    struct run *run = RUN({"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"fsdp.sharding_group_size", "16"}, DGX_A100,
        {"cluster.second_gpus", "8"});
    assert_int_equal(run->result.exec.ranks_simulated, 32);
    end(run);
}

/* The H100s of 16 + 16 wait: a step is that of a job on A100 alone on this network (within 2 %, as H100's part of
 * collectives in the node is faster), and takes longer than one on H100. */
static void the_slower_kind_decides(void **state)
{
    (void)state;
    struct run *h100 = RUN({"train.seq_len", "512"});
    struct run *both = RUN(DGX_A100, HALF);
    struct run *nearly = RUN(DGX_A100, {"cluster.second_gpus", "24"});
    double step_s = both->result.exec.step_time_s;
    const struct exec_program *programs = both->result.exec.programs;
    assert_true(step_s > 1.3 * h100->result.exec.step_time_s);
    assert_true(fabs(nearly->result.exec.step_time_s / step_s - 1) < 0.02);
    assert_true(programs[0].breakdown.compute_s < programs[1].breakdown.compute_s);
    assert_true(programs[0].breakdown.exposed_comm_s > programs[1].breakdown.exposed_comm_s);
    /* each GPU's own parts make up the step */
    for (int k = 0; k < 2; k++) {
        const struct exec_breakdown *part = &programs[k].breakdown;
        double sum = part->compute_s + part->exposed_comm_s + part->bubble_s + part->host_bound_s + part->other_idle_s;
        assert_true(fabs(sum - step_s) < 1e-9);
    }
    end(h100);
    end(both);
    end(nearly);
}

/* Samples are kept, a step is shorter, and the slower kind has fewer. With one sample more on the A100 and one fewer on
 * the H100 (of as many GPUs), or the reverse, the slower of both would compute longer. */
static void by_speed_shares_samples(void **state)
{
    (void)state;
    struct run *equal = RUN(DGX_A100, HALF, {"train.micro_batch", "8"});
    struct run *shared = RUN(DGX_A100, HALF, {"train.micro_batch", "8"}, {"cluster.batch_split", "by_speed"});
    const double *samples = shared->result.micro_batch;
    double a100_s = equal->result.exec.programs[1].breakdown.compute_s / 8;
    double h100_s = equal->result.exec.programs[0].breakdown.compute_s / 8;
    assert_true(equal->result.micro_batch[0] == 8 && equal->result.micro_batch[1] == 8);
    assert_true(samples[0] + samples[1] == 16 && samples[1] < samples[0]);
    double slower_s = fmax(samples[0] * h100_s, samples[1] * a100_s);
    assert_true(fmax((samples[0] - 1) * h100_s, (samples[1] + 1) * a100_s) > slower_s);
    assert_true(fmax((samples[0] + 1) * h100_s, (samples[1] - 1) * a100_s) > slower_s);
    assert_true(shared->result.exec.step_time_s < equal->result.exec.step_time_s);
    assert_true(fabs(shared->result.samples_per_s * shared->result.exec.step_time_s - 8 * 32) < 1e-6);
    /* 24 and 8: 24 x first + 8 x second = 256 has whole numbers where the second has 2 (and the first 10), 5 (9), 8 */
    struct run *uneven =
        RUN(DGX_A100, {"cluster.second_gpus", "8"}, {"train.micro_batch", "8"}, {"cluster.batch_split", "by_speed"});
    bool two = fmax(10 * h100_s, 2 * a100_s) < fmax(9 * h100_s, 5 * a100_s);
    assert_true(uneven->result.micro_batch[0] == (two ? 10 : 9) && uneven->result.micro_batch[1] == (two ? 2 : 5));
    end(equal);
    end(shared);
    end(uneven);
}

/* Means over GPUs: of the peak that MFU is of, and of power. */
static void means_are_of_all_gpus(void **state)
{
    (void)state;
    struct run *run = RUN(DGX_A100, {"cluster.second_gpus", "8"});
    const struct scenario_point *point = &run->loaded->set.points[0];
    double h100 = point->hw.gpu.gemm[DTYPE_BF16].peak.value, a100 = point->hw.second_gpu.gemm[DTYPE_BF16].peak.value;
    double peak = (24 * h100 + 8 * a100) / 32;
    assert_true(fabs(run->result.mfu * peak / 1e12 / run->result.model_tflops_per_gpu - 1) < 0.05); /* causal */
    struct scenario_energy energy = scenario_energy(point, &run->result);
    assert_true(energy.gpu_power_w > 0.4 * point->hw.second_gpu.tdp.value);
    assert_true(energy.gpu_power_w < point->hw.gpu.tdp.value);
    end(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_kind_twice_is_one_kind),
        cmocka_unit_test(one_rank_of_each_kind_does_for_all),
        cmocka_unit_test(groups_that_differ_are_not_folded),
        cmocka_unit_test(the_slower_kind_decides),
        cmocka_unit_test(by_speed_shares_samples),
        cmocka_unit_test(means_are_of_all_gpus),
    };
    return cmocka_run_group_tests(tests, enter, leave_workspace);
}
