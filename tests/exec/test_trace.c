/* The timeline: what is recorded, and that recording changes nothing. */
#include "exec/exec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

static const ps_t MS = 1000000000; /* picoseconds */

/* The GPU of step.h: channels hold 20 of 100 SMs, so a kernel that computes takes 1 / 0.8 of its
 * time beside a collective. */
/* Two computing kernels, the second beside an all-gather that a third kernel waits for. */
static void build(struct plan *plan, int ranks)
{
    struct plan_builder builder;
    plan_begin(&builder, plan, ranks);
    int world = plan_group(&builder, "world", ranks, 1);
    struct kernel_work ms_10 = kernel_stream(KERNEL_ELEMENTWISE, 0, 0, 10e9);
    builder.phase = PHASE_FORWARD;
    int first = plan_kernel(&builder, STREAM_COMPUTE, "first", ms_10, 0);
    plan_stream_wait(&builder, STREAM_COMM, first);
    int gather = plan_collective(&builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 1e9, world, 0);
    builder.phase = PHASE_BACKWARD;
    plan_kernel(&builder, STREAM_COMPUTE, "beside", ms_10, 0);
    plan_stream_wait(&builder, STREAM_COMPUTE, gather);
    plan_kernel(&builder, STREAM_COMPUTE, "after", kernel_stream(KERNEL_COPY, 1e9, 0, 0), 0);
    plan_end(&builder);
}

static void assert_span(
    const struct exec_span *span, const char *name, ps_t start, ps_t end, int stream)
{
    assert_string_equal(span->name, name);
    assert_int_equal(span->start, start);
    assert_int_equal(span->end, end);
    assert_int_equal(span->stream, stream);
}

/* One rank stands for two. All-gather of 1 GB on two: 100 + 10 us, then 0.5 GB at 100 GB/s: 5.11
 * ms. `beside` runs 5.11 ms at 0.8 of its speed, which leaves 10 - 4.088 ms. */
static void one_step(void **state)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct hw hw = test_hw();
    const int ranks[] = {1};
    struct exec_options options = {.steps = 1,
        .warmup_steps = 2,
        .seed = 1,
        .fold = FOLD_AUTO,
        .trace_ranks = ranks,
        .n_trace_ranks = 1};
    struct exec_result result, off;
    (void)state;
    build(&plan, 2);
    exec_run(&result, &plan, &hw, &options, &arena);
    const ps_t gather = 5110 * MS / 1000, beside = 10 * MS - gather * 4 / 5 + gather;
    const ps_t step = 10 * MS + beside + MS, from = 2 * step;
    assert_int_equal(result.last_step_start, from);
    assert_int_equal(result.last_step_end, 3 * step);
    assert_int_equal(result.n_spans, 4);
    const struct exec_span *spans = result.spans;
    assert_span(&spans[0], "first", from, from + 10 * MS, STREAM_COMPUTE);
    assert_span(&spans[1], "gather", from + 10 * MS, from + 10 * MS + gather, STREAM_COMM);
    assert_span(&spans[2], "beside", from + 10 * MS, from + 10 * MS + beside, STREAM_COMPUTE);
    assert_span(&spans[3], "after", from + 10 * MS + beside, 3 * step, STREAM_COMPUTE);
    assert_int_equal(spans[2].alone, 10 * MS);
    assert_int_equal(spans[0].phase, PHASE_FORWARD);
    assert_int_equal(spans[2].phase, PHASE_BACKWARD);
    assert_int_equal(spans[3].kernel, KERNEL_COPY);
    assert_true(spans[1].is_collective && !spans[0].is_collective);
    assert_int_equal(spans[1].collective, COLL_ALL_GATHER);
    assert_int_equal(spans[1].group_size, 2);
    assert_true(spans[1].bytes == 1e9 && spans[1].bus_bytes == 0.5e9);
    assert_int_equal(
        spans[1].bound, COLL_BOUND_PCIE); /* of 5.11 ms 5 are bytes, inside a node without NVLink */
    assert_int_equal(spans[1].moving, spans[1].start);
    /* off: nothing recorded, and the same run */
    options.n_trace_ranks = 0;
    exec_run(&off, &plan, &hw, &options, &arena);
    assert_int_equal(off.n_spans, 0);
    assert_true(off.digest == result.digest && off.step_time_s == result.step_time_s);
    plan_release(&plan);
    arena_release(&arena);
}

/* With noise each of the ranks asked for has its own spans, by rank; streams never overlap; a
 * collective moves when the last has come and ends on all at once. */
static void several_ranks(void **state)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct hw hw = test_hw();
    const int ranks[] = {3, 0};
    struct exec_options options = {.steps = 2,
        .warmup_steps = 1,
        .seed = 7,
        .noise = {.gpu_speed_spread = 0.05, .gpu_speed_spread_below = 0.05, .kernel_jitter = 0.05},
        .trace_ranks = ranks,
        .n_trace_ranks = 2};
    struct exec_result result;
    (void)state;
    build(&plan, 4);
    exec_run(&result, &plan, &hw, &options, &arena);
    assert_int_equal(result.n_spans, 8);
    const struct exec_span *gather[2] = {NULL, NULL};
    for (int i = 0; i < 8; i++) {
        const struct exec_span *span = &result.spans[i];
        ps_t stream_ends = 0;
        assert_int_equal(span->rank, i < 4 ? 0 : 3);
        for (int j = i < 4 ? 0 : 4; j < i; j++)
            if (result.spans[j].stream == span->stream)
                stream_ends = result.spans[j].end;
        assert_true(
            span->start >= stream_ends && span->end > span->start && span->moving >= span->start);
        if (span->is_collective)
            gather[i / 4] = span;
    }
    assert_true(gather[0] && gather[1]);
    assert_int_equal(gather[0]->end, gather[1]->end);
    assert_int_equal(gather[0]->moving, gather[1]->moving);
    assert_true(gather[0]->start != gather[1]->start);
    plan_release(&plan);
    arena_release(&arena);
}

/* A plan's host costs are floats, whose last digits are tenths of a nanosecond here. */
static void assert_about(ps_t time, double ms)
{
    assert_true(fabs((double)time - ms * (double)MS) < 1000);
}

static void assert_host(const struct exec_host_span *span, enum exec_host_kind kind, int32_t op,
    double start_ms, double end_ms)
{
    assert_int_equal(span->kind, kind);
    assert_int_equal(span->op, op);
    assert_about(span->start, start_ms);
    assert_about(span->end, end_ms);
}

/* The host issues `a` for 1 ms, works for 2, waits for `a`, which runs from 1 to 11 ms, has 0.5 ms
 * to do after that, and issues `b` for 1 ms. The other op that `b` waits for is on its own stream.
 */
static void the_host(void **state)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct plan_builder builder;
    struct hw hw = test_hw();
    const int ranks[] = {0};
    struct exec_options options = {.steps = 1, .seed = 1, .trace_ranks = ranks, .n_trace_ranks = 1};
    struct exec_result result;
    (void)state;
    plan_begin(&builder, &plan, 1);
    struct kernel_work ms_10 = kernel_stream(KERNEL_ELEMENTWISE, 0, 0, 10e9);
    int a = plan_kernel(&builder, STREAM_COMPUTE, "a", ms_10, 1e-3);
    int work = plan_host(&builder, "work", 2e-3);
    int wait = plan_host_wait(&builder, "wait", a, 0.5e-3);
    plan_stream_wait(&builder, STREAM_POST, a);
    int b = plan_kernel(&builder, STREAM_POST, "b", ms_10, 1e-3);
    plan_end(&builder);
    exec_run(&result, &plan, &hw, &options, &arena);
    assert_int_equal(result.n_host_spans, 6);
    assert_host(&result.host_spans[0], HOST_STEP, -1, 0, 12.5);
    assert_host(&result.host_spans[1], HOST_ISSUE, a, 0, 1);
    assert_host(&result.host_spans[2], HOST_WORK, work, 1, 3);
    assert_host(&result.host_spans[3], HOST_WAITS, a, 3, 11);
    assert_host(&result.host_spans[4], HOST_WORK, wait, 11, 11.5);
    assert_host(&result.host_spans[5], HOST_ISSUE, b, 11.5, 12.5);
    assert_string_equal(result.host_spans[3].name, "wait");
    assert_int_equal(result.spans[0].waits_for, -1);
    assert_int_equal(result.spans[1].waits_for, a);
    assert_about(result.spans[1].start, 12.5);
    plan_release(&plan);
    arena_release(&arena);
}

/* 1,100 kernels of 10 ms that cost 1 us each to launch: the first runs from 1 us on, and after the
 * 1,024th launch the queue is full, until half of it has ended: 512 kernels, at 1 us + 5.12 s. */
static void a_full_queue(void **state)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct plan_builder builder;
    struct hw hw = test_hw();
    const int ranks[] = {0};
    struct exec_options options = {.steps = 1, .seed = 1, .trace_ranks = ranks, .n_trace_ranks = 1};
    struct exec_result result;
    (void)state;
    plan_begin(&builder, &plan, 1);
    for (int i = 0; i < 1100; i++)
        plan_kernel(
            &builder, STREAM_COMPUTE, "k", kernel_stream(KERNEL_ELEMENTWISE, 0, 0, 10e9), 1e-6);
    plan_end(&builder);
    exec_run(&result, &plan, &hw, &options, &arena);
    assert_int_equal(result.n_host_spans, 1 + 1100 + 1);
    assert_host(&result.host_spans[1024], HOST_ISSUE, 1023, 1.023, 1.024);
    assert_host(&result.host_spans[1025], HOST_FULL_QUEUE, 1024, 1.024, 5120.001);
    plan_release(&plan);
    arena_release(&arena);
}

/* Blocks that the step before left are there at once: the host's timeline and the step are, to the
 * picosecond, those of a program that allocates nothing. No segment of it is empty, not that of the
 * host's wait for what has ended. */
static void memory_that_is_there_takes_no_time(void **state)
{
    (void)state;
    struct fixture f[2];
    for (int allocates = 0; allocates < 2; allocates++) {
        struct fixture *at = &f[allocates];
        const int rank = 0;
        int last = 0;
        begin(at, 1);
        at->hw.gpu.cuda_malloc.value = 1e-3;
        at->options.warmup_steps = 1;
        at->options.trace_ranks = &rank;
        at->options.n_trace_ranks = 1;
        for (int i = 0; i < 2; i++) {
            int block = allocates ? plan_alloc(&at->builder, STREAM_COMPUTE, "block", 32 << 20,
                                        HBM_ACTIVATIONS)
                                  : 0;
            last = mover(at, STREAM_COMPUTE, 2, 1e-3);
            if (allocates)
                plan_free(&at->builder, block, PLAN_NO_OP);
        }
        plan_host(&at->builder, "work", 20e-3);
        plan_host_wait(&at->builder, "wait", last, 1e-3);
        run(at);
    }
    assert_int_equal(f[1].result.n_host_spans, f[0].result.n_host_spans);
    for (int i = 0; i < f[0].result.n_host_spans; i++) {
        const struct exec_host_span *one = &f[0].result.host_spans[i],
                                    *other = &f[1].result.host_spans[i];
        assert_int_equal(other->kind, one->kind);
        assert_true(one->end > one->start && other->end - other->start == one->end - one->start);
    }
    assert_int_equal(f[1].result.last_step_end - f[1].result.last_step_start,
        f[0].result.last_step_end - f[0].result.last_step_start);
    for (int i = 0; i < 2; i++)
        end(&f[i]);
}

/* What binds each. An all-gather of 10 KB: LL's 6.6 us, beside which its bytes take less than one.
 * Two of 1 GB at a time, one over two nodes at 100 GB/s and one inside a node: the GPU's links, of
 * which each gets half. One over two nodes: the NICs, two of 25 GB/s beside 100 inside. */
static void spans_say_what_binds(void **state)
{
    (void)state;
    static const enum coll_bound expected[] = {
        COLL_BOUND_LATENCY, COLL_BOUND_SHARED_LINKS, COLL_BOUND_NIC};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct fixture f;
        const int rank = 0;
        int ranks = i == 0 ? 2 : 4;
        begin(&f, ranks);
        f.options.trace_ranks = &rank;
        f.options.n_trace_ranks = 1;
        if (i == 2)
            f.hw.node.nic_bandwidth.value = 25e9;
        int world = plan_group(&f.builder, "world", ranks, 1);
        plan_collective(
            &f.builder, STREAM_COMM, "one", COLL_ALL_GATHER, i == 0 ? 1e4 : 1e9, world, 0);
        if (i == 1) {
            int node = plan_group(&f.builder, "node", 2, 1);
            plan_collective(&f.builder, STREAM_REPLICATE, "two", COLL_ALL_GATHER, 1e9, node, 0);
        }
        computer(&f, 1);
        run(&f);
        assert_int_equal(f.result.n_spans, i == 1 ? 3 : 2);
        for (int s = 0; s < f.result.n_spans; s++)
            assert_int_equal(f.result.spans[s].bound,
                f.result.spans[s].is_collective ? expected[i] : COLL_BOUND_NONE);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_step), cmocka_unit_test(several_ranks),
        cmocka_unit_test(the_host), cmocka_unit_test(a_full_queue),
        cmocka_unit_test(memory_that_is_there_takes_no_time),
        cmocka_unit_test(spans_say_what_binds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
