/* Jobs of several programs: every time follows with pen and paper, to the picosecond. */
#include "exec/exec.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

static const struct plan_channel NEXT = {AXIS_PP, 1, 0}, PREVIOUS = {AXIS_PP, -1, 0};
static const ps_t MS = PS_PER_S / 1000;

/* `gpus` a node, stages of `data` ranks each. */
static void begin_stages(struct fixture *f, int stages, int data, int gpus)
{
    struct mesh mesh;
    const char *bad;
    const int size[AXIS_COUNT] = {[AXIS_DP_SHARD] = data, [AXIS_PP] = stages};
    memset(f, 0, sizeof *f);
    assert_true(mesh_build(&mesh, size, mesh_order_default, &bad));
    f->hw = test_hw();
    f->hw.node.gpus.value = f->hw.node.nics.value = gpus;
    f->options = (struct exec_options){.steps = 1, .seed = 1, .fold = FOLD_OFF};
    plan_begin_programs(&f->builder, &f->plan, &mesh, AXIS_PP);
}

/* A message alone on its links: what NCCL's send and receive cost between two ranks (coll/p2p.c),
 * at most at the rate of the link, 100 GB/s inside a node (test_hw). */
static ps_t message_ps(const struct fixture *f, double bytes)
{
    struct coll_cost cost = coll_choose(COLL_SEND_RECV, bytes,
        (struct coll_shape){.ranks = 2, .nodes = 1, .per_node = 2}, &f->hw, COLL_FREE);
    assert_true(cost.bus_bytes == bytes);
    return ps_from_s(cost.latency_s) + ps_from_s(bytes / fmin(cost.max_rate_Bps, 100e9));
}

static ps_t collective_ps(
    const struct fixture *f, enum coll_kind kind, double bytes, struct coll_shape shape)
{
    struct coll_cost cost = coll_choose(kind, bytes, shape, &f->hw, COLL_FREE);
    return ps_from_s(cost.latency_s) +
           ps_from_s(cost.bus_bytes / fmin(cost.max_rate_Bps, 100e9 / cost.gpu_out_factor));
}

/* Stage 0 computes 2 ms and sends 100 MB; stage 1, whose receive has waited, computes 3 ms and
 * sends the same back, and stage 0 computes 1 ms: 2 + message + 3 + message + 1 ms, on every rank
 * that runs them. Stage 1 ends a message and 1 ms before the step does. */
static void two_programs_take_turns(void **state)
{
    (void)state;
    for (int fold = 0; fold < FOLD_COUNT; fold++)
        for (int data = 1; data <= 2; data++) {
            struct fixture f;
            begin_stages(&f, 2, data, 4);
            f.options.fold = fold;
            plan_stream_wait(&f.builder, STREAM_COMM, computer(&f, 2));
            plan_send(&f.builder, STREAM_COMM, "activation", NEXT, 100e6, 0);
            plan_stream_wait(&f.builder, STREAM_COMPUTE,
                plan_recv(&f.builder, STREAM_COMM, "gradient", PREVIOUS, 100e6, 0));
            computer(&f, 1);
            plan_next_program(&f.builder);
            plan_stream_wait(&f.builder, STREAM_COMPUTE,
                plan_recv(&f.builder, STREAM_COMM, "activation", NEXT, 100e6, 0));
            plan_stream_wait(&f.builder, STREAM_COMM, computer(&f, 3));
            plan_send(&f.builder, STREAM_COMM, "gradient", PREVIOUS, 100e6, 0);
            run(&f);
            ps_t message = message_ps(&f, 100e6);
            assert_int_equal(f.result.last_step_end, 6 * MS + 2 * message);
            assert_int_equal(f.result.ranks_simulated, fold != FOLD_OFF ? 2 : 2 * data);
            const struct exec_breakdown *first = &f.result.programs[0].breakdown;
            near(first->compute_s, 3e-3);
            near(f.result.programs[1].breakdown.compute_s, 3e-3);
            near(first->exposed_comm_s, s_from_ps(2 * message));
            near(first->bubble_s, 3e-3); /* stage 1 computes */
            near(first->comm[PARALLEL_PIPELINE].exposed_s, s_from_ps(2 * message));
            near(first->comm[PARALLEL_PIPELINE].moving_s, s_from_ps(2 * message));
            near(first->stage_wait_s, 3e-3);
            near(f.result.programs[1].breakdown.comm_wait_s, 2e-3);
            end(&f);
        }
}

static const double p2p_share = 0.85; /* of a ring's NVLinks (coll/p2p.c) */

/* A message of 2 GB takes 20 ms / 0.85 at 100 GB/s: its sender reads it, its receiver has it staged
 * (written, read) and writes it, four bytes of HBM for each, of which either end counts half
 * (nccl-tests' send_recv does all on each). A kernel that moves bytes for 10 ms beside it has all
 * of HBM until the bytes begin to move and 0.83 of it from then on. */
static void an_end_of_a_message_takes_half_of_its_bytes(void **state)
{
    (void)state;
    struct fixture f;
    begin_stages(&f, 2, 1, 2);
    plan_send(&f.builder, STREAM_COMM, "activation", NEXT, 2e9, 0);
    mover(&f, STREAM_COMPUTE, 10, 0);
    plan_next_program(&f.builder);
    plan_recv(&f.builder, STREAM_COMM, "activation", NEXT, 2e9, 0);
    mover(&f, STREAM_COMPUTE, 10, 0);
    run(&f);
    double latency_s = s_from_ps(message_ps(&f, 2e9)) - 20e-3 / p2p_share;
    assert_true(latency_s > 0);
    for (int p = 0; p < 2; p++)
        near(f.result.programs[p].breakdown.compute_s,
            latency_s + (10e-3 - latency_s) / (1 - 0.2 * p2p_share));
    end(&f);
}

enum { STAGES = 4, MICRO_BATCHES = 3 };

/* Stage s of a forward pipeline: receive, compute 2 ms, send for each micro-batch, receives and
 * sends on separate queues; then the first and the last stage reduce 40 MB, and all compute 1 ms.
 */
static void pipeline_stage(struct fixture *f, int stage, int ends)
{
    int receive = plan_queue(&f->builder, "recv", QUEUE_COMM),
        embedding = plan_queue(&f->builder, "embedding", QUEUE_COMM);
    for (int m = 0; m < MICRO_BATCHES; m++) {
        if (stage > 0)
            plan_stream_wait(&f->builder, STREAM_COMPUTE,
                plan_recv(&f->builder, receive, "recv", NEXT, 50e6, 0));
        plan_stream_wait(&f->builder, STREAM_COMM, computer(f, 2));
        if (stage + 1 < STAGES)
            plan_send(&f->builder, STREAM_COMM, "send", NEXT, 50e6, 0);
    }
    if (stage == 0 || stage + 1 == STAGES) {
        plan_stream_wait(&f->builder, embedding, plan_last_op(&f->builder, STREAM_COMPUTE));
        plan_stream_wait(&f->builder, STREAM_COMPUTE,
            plan_collective(&f->builder, embedding, "embedding", COLL_ALL_REDUCE, 40e6, ends, 0));
    }
    computer(f, 1);
}

/* A message of 50 MB takes less than the 2 ms of a stage, so the last stage starts its first
 * micro-batch after 3 stages and 3 messages and works without a gap: 3 x (2 ms + message) + 3 x 2
 * ms. Then the all-reduce of two ranks, and 1 ms. The first stage waits in that all-reduce since 6
 * ms. Kernels are not slowed by what collectives hold here. */
static void four_programs_fill_and_drain(void **state)
{
    (void)state;
    for (int fold = 0; fold < FOLD_COUNT; fold++)
        for (int data = 1; data <= 2; data++) {
            struct fixture f;
            begin_stages(&f, STAGES, data, 8);
            f.options.fold = fold;
            f.options.no_contention = true;
            int ends = plan_group_of(
                &f.builder, "embedding", mesh_pair(&f.plan.mesh, AXIS_PP, 0, STAGES - 1));
            for (int s = 0; s < STAGES; s++) {
                if (s > 0)
                    plan_next_program(&f.builder);
                pipeline_stage(&f, s, ends);
            }
            run(&f);
            ps_t message = message_ps(&f, 50e6);
            assert_true(message < 2 * MS);
            ps_t reduce = collective_ps(&f, COLL_ALL_REDUCE, 40e6, (struct coll_shape){2, 1, 2});
            ps_t before = (STAGES - 1) * (2 * MS + message) + MICRO_BATCHES * (2 * MS);
            assert_int_equal(f.result.last_step_end, before + reduce + MS);
            near(f.result.programs[0].breakdown.exposed_comm_s, s_from_ps(reduce));
            near(f.result.programs[3].breakdown.exposed_comm_s, s_from_ps(message + reduce));
            /* The all-reduce, which is of data parallelism as far as it says, moves; what the first
             * stage waits for the last one in it is bubble. So is what the last one waits for its
             * first micro-batch, but the last message. */
            near(f.result.programs[0].breakdown.bubble_s, s_from_ps(before - 6 * MS));
            near(f.result.programs[0].breakdown.comm[PARALLEL_DATA].exposed_s, s_from_ps(reduce));
            near(f.result.programs[3].breakdown.bubble_s,
                s_from_ps(3 * (2 * MS + message) - message));
            near(f.result.programs[3].breakdown.comm[PARALLEL_PIPELINE].exposed_s,
                s_from_ps(message));
            near(f.result.programs[1].breakdown.compute_s, 7e-3);
            assert_int_equal(f.result.ranks_simulated, fold != FOLD_OFF ? STAGES : STAGES * data);
            end(&f);
        }
}

/* Two stages, each a node of four GPUs, send over their NICs at the same time, and reduce 80 MB
 * inside the node. Folded and not it is the same step, by the picosecond. */
static void stages_on_nodes_fold(void **state)
{
    (void)state;
    ps_t ends[FOLD_COUNT];
    for (int fold = 0; fold < FOLD_COUNT; fold++) {
        struct fixture f;
        begin_stages(&f, 2, 4, 4);
        f.options.fold = fold;
        f.options.steps = 3;
        f.options.warmup_steps = 1;
        f.hw.cluster.network.kind = HW_POOLED;
        int data = plan_group_of(&f.builder, "data", mesh_group(&f.plan.mesh, AXES_DP));
        int reduce = plan_queue(&f.builder, "data parallel", QUEUE_COMM);
        for (int s = 0; s < 2; s++) {
            if (s > 0) {
                plan_next_program(&f.builder);
                plan_stream_wait(&f.builder, STREAM_COMPUTE,
                    plan_recv(&f.builder, STREAM_COMM, "activation", NEXT, 30e6, 0));
            }
            int buffer = plan_alloc(&f.builder, STREAM_COMPUTE, "activation",
                INT64_C(1000000) * (s + 1), HBM_ACTIVATIONS);
            int forward = mover(&f, STREAM_COMPUTE, 1 + s, 0);
            if (s == 0) {
                plan_stream_wait(&f.builder, STREAM_COMM, forward);
                plan_send(&f.builder, STREAM_COMM, "activation", NEXT, 30e6, 0);
            }
            plan_stream_wait(&f.builder, reduce, forward);
            plan_stream_wait(&f.builder, STREAM_COMPUTE,
                plan_collective(&f.builder, reduce, "gradients", COLL_ALL_REDUCE, 80e6, data, 0));
            plan_free(&f.builder, buffer, PLAN_NO_OP);
            mover(&f, STREAM_COMPUTE, 1, 0);
        }
        run(&f);
        assert_int_equal(f.result.ranks_simulated, fold != FOLD_OFF ? 2 : 8);
        assert_int_equal(f.result.n_programs, 2);
        /* 1 and 2 MB: the second program is the fullest */
        assert_int_equal(f.result.fullest, 1);
        near(f.result.programs[0].memory.peak_allocated_bytes, 1000448); /* rounded to 512 bytes */
        near(f.result.memory.peak_allocated_bytes, 2000384);
        ends[fold] = f.result.last_step_end;
        end(&f);
    }
    assert_int_equal(ends[FOLD_AUTO], ends[FOLD_OFF]);
}

/* A collective, a send and a receive on three queues wait at once for the other rank, which comes 4
 * ms later. A kernel of 1 ms that only computes has the SMs that all three together leave. */
static void any_number_of_queues_hold_sms(void **state)
{
    (void)state;
    struct fixture f;
    begin_stages(&f, 2, 1, 2);
    static const char *const names[] = {"comm", "second", "third"};
    int queues[3],
        pair = plan_group_of(&f.builder, "pair", mesh_group(&f.plan.mesh, 1U << AXIS_PP));
    for (int q = 0; q < 3; q++)
        queues[q] = plan_queue(&f.builder, names[q], QUEUE_COMM);
    for (int s = 0; s < 2; s++) {
        if (s > 0)
            plan_next_program(&f.builder);
        int start = s == 0 ? PLAN_NO_OP : mover(&f, STREAM_COMPUTE, 4, 0);
        for (int q = 0; q < 3; q++)
            plan_stream_wait(&f.builder, queues[q], start);
        plan_collective(&f.builder, queues[0], "reduce", COLL_ALL_REDUCE, 1, pair, 0);
        if (s == 0) {
            plan_send(&f.builder, queues[1], "send", NEXT, 1, 0);
            plan_recv(&f.builder, queues[2], "recv", PREVIOUS, 1, 0);
            computer(&f, 1);
        } else {
            plan_recv(&f.builder, queues[1], "recv", NEXT, 1, 0);
            plan_send(&f.builder, queues[2], "send", PREVIOUS, 1, 0);
            mover(&f, STREAM_COMPUTE, 1, 0);
        }
    }
    run(&f);
    double held = 0;
    struct coll_shape two = {2, 1, 2};
    held += coll_choose(COLL_ALL_REDUCE, 1, two, &f.hw, COLL_FREE).sms;
    held += 2 * coll_choose(COLL_SEND_RECV, 1, two, &f.hw, COLL_FREE).sms;
    assert_true(held > 20 && held < 100);
    /* 1 ms on all SMs, within the 4 ms that rank 1 lets the others wait */
    near(f.result.programs[0].breakdown.compute_s, 1e-3 * 100 / (100 - held));
    near(f.result.programs[0].breakdown.contention_s, 1e-3 * 100 / (100 - held) - 1e-3);
    end(&f);
}

/* The second program asks for more than a GPU has: the job is out of memory, and that program says
 * why. */
static void the_fullest_program_decides(void **state)
{
    (void)state;
    for (int fold = 0; fold < FOLD_COUNT; fold++) {
        struct fixture f;
        begin_stages(&f, 2, 2, 4);
        f.options.fold = fold;
        plan_keep(&f.builder, "weights", 100000000, HBM_PARAMETERS);
        computer(&f, 1);
        plan_next_program(&f.builder);
        plan_keep(&f.builder, "weights", 900000000, HBM_PARAMETERS);
        plan_free(&f.builder,
            plan_alloc(&f.builder, STREAM_COMPUTE, "logits", 200000000, HBM_ACTIVATIONS),
            PLAN_NO_OP);
        computer(&f, 1);
        run(&f);
        assert_int_equal(f.result.status, EXEC_OOM);
        assert_int_equal(f.result.fullest, 1);
        assert_string_equal(f.result.memory.oom_op, "logits");
        assert_string_equal(f.result.programs[1].memory.oom_op, "logits");
        assert_null(f.result.programs[0].memory.oom_op);
        near(f.result.memory.required_bytes,
            900000256 + 200000000); /* rounded up to 512 bytes each */
        near(f.result.programs[0].memory.required_bytes, 100000256);
        end(&f);
    }
}

/* Traces of ranks 1 and 3 of two stages of two: each shows its own program's ops, folded by the
 * first rank of it. */
static void spans_are_those_of_the_ranks_program(void **state)
{
    (void)state;
    for (int fold = 0; fold < FOLD_COUNT; fold++) {
        struct fixture f;
        static const int ranks[] = {1, 3};
        begin_stages(&f, 2, 2, 4);
        f.options.fold = fold;
        f.options.trace_ranks = ranks;
        f.options.n_trace_ranks = 2;
        plan_stream_wait(&f.builder, STREAM_COMM, computer(&f, 1));
        plan_send(&f.builder, STREAM_COMM, "send", NEXT, 10e6, 0);
        plan_next_program(&f.builder);
        int queue = plan_queue(&f.builder, "recv", QUEUE_COMM);
        plan_stream_wait(
            &f.builder, STREAM_COMPUTE, plan_recv(&f.builder, queue, "recv", NEXT, 10e6, 0));
        computer(&f, 1);
        run(&f);
        assert_int_equal(f.result.n_spans, 4);
        for (int i = 0; i < 4; i++) {
            const struct exec_span *span = &f.result.spans[i];
            assert_int_equal(span->rank, exec_simulated_rank(&f.result, ranks[i / 2]));
            if (!span->is_collective)
                continue;
            assert_string_equal(span->name, i < 2 ? "send" : "recv");
            assert_string_equal(span->queue, i < 2 ? "comm" : "recv");
            assert_int_equal(span->end - span->moving, message_ps(&f, 10e6));
            assert_int_equal(span->moving, MS); /* the receive has waited for 1 ms */
        }
        end(&f);
    }
}

/* What is moved to another arena is there when the run's has gone; with spans nothing is copied. */
static void a_result_outlives_its_run(void **state)
{
    (void)state;
    static const int ranks[] = {1};
    for (int traced = 0; traced <= 1; traced++) {
        struct fixture f;
        begin_stages(&f, 2, 1, 2);
        f.options.fold = FOLD_AUTO;
        f.options.trace_ranks = ranks;
        f.options.n_trace_ranks = traced;
        for (int p = 0; p < 2; p++) {
            plan_free(&f.builder,
                plan_alloc(&f.builder, STREAM_COMPUTE, "scores", (p + 1) << 20, HBM_ACTIVATIONS),
                PLAN_NO_OP);
            computer(&f, 1);
            if (p == 0)
                plan_next_program(&f.builder);
        }
        run(&f);
        const struct exec_span *spans = f.result.spans;
        struct exec_memory_sample was[2];
        struct arena kept = ARENA_INIT;
        for (int p = 0; p < 2; p++) {
            assert_true(f.result.programs[p].n_timeline > 0);
            was[p] = f.result.programs[p].timeline[0];
        }
        exec_result_move(&f.result, &f.arena, &kept);
        assert_null(f.arena.chunk);
        end(&f);
        for (int p = 0; p < 2; p++)
            assert_memory_equal(&f.result.programs[p].timeline[0], &was[p], sizeof was[p]);
        assert_ptr_equal(f.result.timeline, f.result.programs[f.result.fullest].timeline);
        assert_ptr_equal(f.result.spans, spans);
        assert_int_equal(f.result.n_spans, traced);
        arena_release(&kept);
    }
}

/* The host of stage 1 waits for its message before it issues the kernel: 2 ms for the other stage
 * and the message, of which nothing is the host's. */
static void a_host_blocked_for_a_message_is_not_slow(void **state)
{
    (void)state;
    struct fixture f;
    begin_stages(&f, 2, 1, 2);
    f.options.no_contention = true;
    plan_stream_wait(&f.builder, STREAM_COMM, computer(&f, 2));
    plan_send(&f.builder, STREAM_COMM, "activation", NEXT, 100e6, 0);
    plan_next_program(&f.builder);
    plan_host_wait(&f.builder, "recv.wait",
        plan_recv(&f.builder, STREAM_COMM, "activation", NEXT, 100e6, 0), 0);
    computer(&f, 3);
    run(&f);
    const struct exec_breakdown *second = &f.result.programs[1].breakdown;
    near(second->compute_s, 3e-3);
    near(second->bubble_s, 2e-3);
    near(second->exposed_comm_s, s_from_ps(message_ps(&f, 100e6)));
    near(second->host_bound_s, 0);
    end(&f);
}

/* Stage 1 of 3 sends 100 MB to stage 2, and as much again to stage 2 or to stage 0 at the same
 * time. Four GPUs of a mesh share 90 GB/s as 30 to each other: two messages on one pair take turns,
 * on two pairs they do not. Behind a switch both have a half of what leaves the GPU. */
static double two_messages(int fabric, bool same_pair)
{
    struct fixture f;
    begin_stages(&f, 3, 1, 4);
    f.hw.node.fabric = fabric;
    f.hw.node.gpu_bandwidth.value = 90e9;
    const struct plan_channel other = {AXIS_PP, same_pair ? 1 : -1, 1};
    for (int stage = 0; stage < 3; stage++) {
        if (stage > 0)
            plan_next_program(&f.builder);
        int second = plan_queue(&f.builder, "second", QUEUE_COMM);
        int ops[2] = {PLAN_NO_OP, PLAN_NO_OP};
        if (stage == 1) {
            ops[0] = plan_send(&f.builder, STREAM_COMM, "send", NEXT, 100e6, 0);
            ops[1] = plan_send(&f.builder, second, "send", other, 100e6, 0);
        }
        if (stage == 2)
            ops[0] = plan_recv(&f.builder, STREAM_COMM, "recv", NEXT, 100e6, 0);
        if (stage == (same_pair ? 2 : 0))
            ops[1] = plan_recv(&f.builder, second, "recv", other, 100e6, 0);
        for (int i = 0; i < 2; i++)
            plan_stream_wait(&f.builder, STREAM_COMPUTE, ops[i]);
        computer(&f, 1);
    }
    run(&f);
    struct coll_cost cost = coll_choose(COLL_SEND_RECV, 100e6,
        (struct coll_shape){.ranks = 2, .nodes = 1, .per_node = 2}, &f.hw, COLL_FREE);
    double bytes_s = s_from_ps(f.result.last_step_end) - 1e-3 - cost.latency_s;
    end(&f);
    return bytes_s;
}

static void messages_share_the_links_of_their_pair(void **state)
{
    (void)state;
    near(two_messages(HW_NVLINK_MESH, true), 200e6 / 30e9);
    near(two_messages(HW_NVLINK_MESH, false), 100e6 / 30e9 / p2p_share);
    near(two_messages(HW_NVSWITCH, true), 200e6 / 90e9);
    near(two_messages(HW_NVSWITCH, false), 200e6 / 90e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_programs_take_turns),
        cmocka_unit_test(an_end_of_a_message_takes_half_of_its_bytes),
        cmocka_unit_test(four_programs_fill_and_drain),
        cmocka_unit_test(stages_on_nodes_fold),
        cmocka_unit_test(any_number_of_queues_hold_sms),
        cmocka_unit_test(the_fullest_program_decides),
        cmocka_unit_test(spans_are_those_of_the_ranks_program),
        cmocka_unit_test(a_result_outlives_its_run),
        cmocka_unit_test(a_host_blocked_for_a_message_is_not_slow),
        cmocka_unit_test(messages_share_the_links_of_their_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
