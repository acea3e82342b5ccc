/* Chakra traces: what is written of a plan is the plan; traces of ASTRA-sim's form take the time of
 * the closed form. */
#include "exchange/replay.h"
#include "scenario/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"
#include "traces.h"

#include <math.h>

static double isolated_s(enum coll_kind kind, double bytes, int ranks, const struct hw *hw)
{
    struct coll_shape shape = coll_shape((struct coll_group){0, 1, ranks}, hw_gpus_per_node(hw));
    return coll_isolated_s(coll_choose(kind, bytes, shape, hw, COLL_FREE));
}

static const double ps = 2e-12; /* times are picoseconds; latency and bytes are rounded each */

/* ASTRA-sim's microbenchmarks: one collective. comm_size is what a rank puts in, so an all_gather
 * of it moves as many bytes as ranks more. */
static void a_collective_takes_its_isolated_time(void **state)
{
    (void)state;
    static const struct {
        unsigned type;
        enum coll_kind kind;
    } kinds[] = {{ALL_REDUCE, COLL_ALL_REDUCE}, {ALL_GATHER, COLL_ALL_GATHER},
        {REDUCE_SCATTER, COLL_REDUCE_SCATTER}, {ALL_TO_ALL, COLL_ALL_TO_ALL}};
    struct arena arena = ARENA_INIT;
    struct hw hw = load("h100-8x400g", &arena);
    for (int ranks = 8; ranks <= 16; ranks += 8)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const char *folder = make_folder(&arena);
            double bytes = 1 << 20;
            for (int r = 0; r < ranks; r++) {
                FILE *out = begin_rank(folder, r, &arena);
                collective(out, 7, -1, kinds[k].type, (uint64_t)bytes, NULL);
                fclose(out);
            }
            struct replay replay = run(folder, &hw, false, &arena);
            double whole = kinds[k].kind == COLL_ALL_GATHER ? bytes * ranks : bytes;
            assert_near(replay.exec.step_time_s, isolated_s(kinds[k].kind, whole, ranks, &hw), ps);
            assert_int_equal(replay.n_comm, 1);
            assert_int_equal(replay.comm[0].count, 1);
            assert_true(replay.comm[0].bytes == whole && replay.comm[0].ranks == ranks);
            remove_folder(folder, ranks, &arena);
        }
    arena_release(&arena);
}

/* As a DLRM has it: 100 us of compute; then an all_to_all beside 50 us, what follows waits for
 * both: 30 us. On one rank the first part takes 20 us longer, for which all others wait. */
static void compute_and_collectives_overlap(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw = load("h100-8x400g", &arena);
    for (int large = 0; large < 2; large++) {
        const char *folder = make_folder(&arena);
        double bytes = large ? 256 << 20 : 1 << 20;
        for (int r = 0; r < 8; r++) {
            FILE *out = begin_rank(folder, r, &arena);
            compute(out, 10, -1, r == 3 ? 120 : 100);
            collective(out, 11, 10, ALL_TO_ALL, (uint64_t)bytes, NULL);
            compute(out, 12, 10, 50);
            struct bytes b = node(COMP, 13, 11, 30);
            put_number(&b, 5, 12);
            put_delimited(out, &b);
            fclose(out);
        }
        double alone_s = isolated_s(COLL_ALL_TO_ALL, bytes, 8, &hw);
        assert_true(large == (alone_s > 50e-6));
        struct replay replay = run(folder, &hw, false, &arena);
        assert_near(replay.exec.step_time_s, 120e-6 + fmax(50e-6, alone_s) + 30e-6, ps);
        assert_near(replay.flop, 8 * 2000, 0);
        remove_folder(folder, 8, &arena);
    }
    arena_release(&arena);
}

/* Two stages: what the first sends, the second waits for. And two groups, whose all_reduces come
 * one after the other on each rank by their dependencies, the one of four ranks twice at the same
 * time. */
static void messages_and_groups(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw = load("h100-8x400g", &arena);
    const char *folder = make_folder(&arena);
    for (int r = 0; r < 2; r++) {
        FILE *out = begin_rank(folder, r, &arena);
        if (r == 0)
            compute(out, 1, -1, 100);
        message(out, r == 0 ? SEND : RECV, 2, r == 0 ? 1 : -1, 0, 1, 1 << 20);
        if (r == 1)
            compute(out, 3, 2, 50);
        fclose(out);
    }
    struct coll_shape pair = {.ranks = 2, .nodes = 1, .per_node = 2};
    double sent_s = coll_isolated_s(coll_choose(COLL_SEND_RECV, 1 << 20, pair, &hw, COLL_FREE));
    struct replay replay = run(folder, &hw, false, &arena);
    assert_near(replay.exec.step_time_s, 150e-6 + sent_s, ps);
    assert_int_equal(replay.comm[0].kind, COLL_SEND_RECV);
    assert_int_equal(replay.comm[0].count, 1);
    remove_folder(folder, 2, &arena);

    folder = make_folder(&arena);
    for (int r = 0; r < 8; r++) {
        FILE *out = begin_rank(folder, r, &arena);
        collective(out, 1, -1, ALL_REDUCE, 1 << 24, r < 4 ? "4" : "5");
        collective(out, 2, 1, ALL_REDUCE, 1 << 20, "6");
        fclose(out);
    }
    FILE *groups = fopen(arena_printf(&arena, "%s/comm_groups.json", folder), "w");
    fputs("{\"4\": [0, 1, 2, 3], \"5\": [4, 5, 6, 7], \"6\": [0, 1, 2, 3, 4, 5, 6, 7]}", groups);
    fclose(groups);
    replay = run(folder, &hw, false, &arena);
    assert_near(replay.exec.step_time_s,
        isolated_s(COLL_ALL_REDUCE, 1 << 24, 4, &hw) + isolated_s(COLL_ALL_REDUCE, 1 << 20, 8, &hw),
        ps);
    assert_int_equal(replay.n_comm, 2);
    assert_int_equal(replay.comm[0].count, 2);
    remove_folder(folder, 8, &arena);
    arena_release(&arena);
}

/* By roofline a node takes what a kernel of its FLOP and bytes does on the GPU: with few bytes a
 * square GEMM of the same FLOP, m = n = k = 4096; with few FLOP a stream of bytes. */
static void roofline_is_the_kernel_model(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw = load("h100-8x400g", &arena);
    double flop = 2.0 * 4096 * 4096 * 4096, bytes = 3.0 * 4096 * 4096 * 2;
    struct kernel_work gemm = kernel_gemm(4096, 4096, 4096, 1, DTYPE_BF16, 2, 2);
    struct kernel_work stream = kernel_stream(KERNEL_ELEMENTWISE, 1 << 30, 0, 1000);
    struct kernel_share all = kernel_whole_gpu(&hw.gpu);
    assert_near(gemm.read_bytes + gemm.write_bytes, bytes, 0);
    const char *folder = make_folder(&arena);
    FILE *out = begin_rank(folder, 0, &arena);
    struct bytes b = node(COMP, 1, -1, 7);
    put_attribute(&b, "num_ops", INT64, (uint64_t)flop);
    put_attribute(&b, "tensor_size", UINT64, (uint64_t)bytes);
    put_delimited(out, &b);
    b = node(COMP, 2, 1, 0);
    put_attribute(&b, "num_ops", INT64, 1000);
    put_attribute(&b, "tensor_size", UINT64, 1 << 30);
    put_delimited(out, &b);
    fclose(out);
    double gemm_s = kernel_duration_s(&gemm, &hw.gpu, all),
           stream_s = kernel_duration_s(&stream, &hw.gpu, all);
    assert_near(run(folder, &hw, true, &arena).exec.step_time_s, gemm_s + stream_s, ps);
    assert_near(run(folder, &hw, false, &arena).exec.step_time_s, 7e-6 + stream_s,
        ps); /* the second states no time */
    remove_folder(folder, 1, &arena);
    arena_release(&arena);
}

/* ---- what flopcast writes ---- */

struct totals {
    double nodes, flop, bytes, math_flop, gathered, scattered;
};

static struct totals of_plan(const struct plan *plan)
{
    struct totals sum = {0};
    const struct plan_program *program = &plan->programs[0];
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        sum.nodes += op->kind == OP_KERNEL || plan_op_is_comm(op);
        if (op->kind == OP_KERNEL) {
            const struct kernel_work *work = &plan->kernels.at[op->index];
            sum.flop += work->flop;
            sum.bytes += work->read_bytes + work->write_bytes;
            sum.math_flop +=
                work->kind == KERNEL_GEMM || work->kind == KERNEL_ATTENTION ? work->flop : 0;
        } else if (op->kind == OP_COLLECTIVE) {
            const struct plan_collective *collective = &plan->collectives.at[op->index];
            sum.gathered += collective->kind == COLL_ALL_GATHER ? collective->bytes : 0;
            sum.scattered += collective->kind == COLL_REDUCE_SCATTER ? collective->bytes : 0;
        }
    }
    return sum;
}

static struct totals of_trace(const struct chakra_trace *trace, int ranks)
{
    struct totals sum = {.nodes = trace->nodes.n};
    for (int i = 0; i < trace->nodes.n; i++) {
        const struct chakra_node *at = &trace->nodes.at[i];
        sum.flop += at->flop;
        sum.bytes += at->bytes;
        if (at->type == CHAKRA_COLL && at->collective == COLL_ALL_GATHER)
            sum.gathered += at->comm_bytes * ranks;
        if (at->type == CHAKRA_COLL && at->collective == COLL_REDUCE_SCATTER)
            sum.scattered += at->comm_bytes;
    }
    return sum;
}

/* T5-11B on 8 GPUs: FLOP and bytes of every rank's trace are the plan's, and those of GEMMs the
 * hardware FLOP that `run --plan` prints. Replayed, the traces take about the step: the host, waits
 * for the step before and fractions of microseconds are not in them. */
static void traces_of_t5_are_its_plan(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    static struct diag diag;
    static const struct scenario_override overrides[] = {{"cluster.gpus", "8"},
        {"train.micro_batch", "8"}, {"train.precision", "bf16_mixed"},
        {"cluster.nccl_protocols", "all"}, {"cluster.nccl_ring_post_latency", "46.33 us"},
        {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"},
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"}};
    struct scenario_set set;
    struct plan plan;
    struct scenario_result result;
    const char *folder = make_folder(&arena);
    scenario_load(&set, FLOPCAST_SOURCE_DIR "/scenarios/t5_scaling.yaml", overrides,
        sizeof overrides / sizeof *overrides, &arena, &diag);
    assert_int_equal(diag.n_errors, 0);
    assert_int_equal(scenario_compile(&plan, &set.points[0], &arena, &diag), STATUS_OK);
    assert_int_equal(chakra_write(folder, "w", &plan, &set.points[0].hw, &diag), STATUS_OK);
    struct totals want = of_plan(&plan);
    for (int r = 0; r < 8; r++) {
        struct chakra_trace trace;
        assert_int_equal(
            chakra_read(&trace, arena_printf(&arena, "%s/w.%d.et", folder, r), &arena, &diag),
            STATUS_OK);
        struct totals got = of_trace(&trace, 8);
        assert_true(got.nodes == want.nodes && got.gathered == want.gathered &&
                    got.scattered == want.scattered);
        assert_near(got.flop, want.flop, want.nodes / 2); /* each is rounded to a whole number */
        assert_near(got.bytes, want.bytes, want.nodes / 2);
        chakra_free(&trace);
    }
    assert_true(want.gathered > 0 && want.math_flop < want.flop);
    assert_near(
        want.math_flop, plan_hardware_flop(&plan, ATTENTION_FLOP_CAUSAL), 1e-9 * want.math_flop);
    assert_int_equal(scenario_simulate(&result, &set.points[0], &arena, &diag), STATUS_OK);
    struct replay replay = run(folder, &set.points[0].hw, false, &arena);
    assert_near(replay.exec.step_time_s, result.exec.step_time_s, 0.05 * result.exec.step_time_s);
    assert_near(replay.flop, 8 * want.flop, 8 * want.nodes);
    remove_folder(folder, 8, &arena);
    plan_release(&plan);
    arena_release(&arena);
}

/* chakra_trace_linker leaves nodes of the GPU without successors: two GEMMs and the all_reduce that
 * should follow them all begin at once, which is said; with the last one's dependency it is not. */
static void order_that_is_lost_is_said(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw = load("dgx-1v-ib", &arena);
    for (int ordered = 0; ordered < 2; ordered++) {
        struct diag diag = DIAG_INIT;
        struct replay replay;
        const char *folder = make_folder(&arena);
        for (int r = 0; r < 2; r++) {
            FILE *out = begin_rank(folder, r, &arena);
            compute(out, 1, -1, 10000);
            compute(out, 2, -1, 10000);
            collective(out, 3, ordered ? 2 : -1, ALL_REDUCE, 1 << 26, NULL);
            fclose(out);
        }
        assert_int_equal(
            replay_run(&replay, &(struct replay_options){.folder = folder}, &hw, &arena, &diag),
            STATUS_OK);
        assert_int_equal(
            strstr(diag.text, "no node waits for a node of the GPU") != NULL, !ordered);
        assert_int_equal(
            replay.exec.breakdown.exposed_comm_s + replay.exec.breakdown.other_idle_s > 1e-4,
            ordered);
        remove_folder(folder, 2, &arena);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_that_is_lost_is_said),
        cmocka_unit_test(a_collective_takes_its_isolated_time),
        cmocka_unit_test(compute_and_collectives_overlap),
        cmocka_unit_test(messages_and_groups),
        cmocka_unit_test(roofline_is_the_kernel_model),
        cmocka_unit_test(traces_of_t5_are_its_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
