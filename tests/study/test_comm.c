/* Collectives of a step by what binds them: times add up, what is exposed is what the compute
 * stream waits for. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "base/rng.h"
#include "study/comm.h"

#include <math.h>
#include <stdlib.h>

#define MS ((ps_t)1000000000)

static struct exec_span kernel(int stream, double start_ms, double end_ms)
{
    return (struct exec_span){.start = (ps_t)(start_ms * MS),
        .moving = (ps_t)(start_ms * MS),
        .end = (ps_t)(end_ms * MS),
        .stream = (uint8_t)stream,
        .name = "kernel"};
}

static struct exec_span collective(int stream, double bytes, double start_ms, double moving_ms,
    double end_ms, enum coll_bound bound)
{
    struct exec_span span = kernel(stream, start_ms, end_ms);
    span.moving = (ps_t)(moving_ms * MS);
    span.is_collective = true;
    span.collective = COLL_ALL_GATHER;
    span.bytes = bytes;
    span.bus_bytes = bytes / 2;
    span.latency_s = 1e-3;
    span.group_size = 16;
    span.algorithm = COLL_RING;
    span.protocol = COLL_SIMPLE;
    span.bound = bound;
    return span;
}

/* From 0 to 40 ms. The compute stream works to 10, waits to 14 for the second collective, whose
 * last member comes at 12, works to 20, waits to 22 for the host (the third collective goes on),
 * works to 24, waits to 30 for a cast on another stream that waits for that collective itself,
 * which ends at 29: 5 ms. Collectives move 5, 2 and 8 ms. */
static void times_add_up(void **state)
{
    (void)state;
    struct exec_span spans[] = {
        collective(STREAM_COMM, 2e9, 2, 3, 8, COLL_BOUND_CHANNELS),
        kernel(STREAM_COMPUTE, 0, 10),
        collective(STREAM_COMM, 1e6, 9, 12, 14, COLL_BOUND_LATENCY),
        kernel(STREAM_COMPUTE, 14, 20),
        kernel(STREAM_COMPUTE, 22, 24),
        collective(STREAM_REPLICATE, 2e9, 21, 21, 29, COLL_BOUND_NIC),
        kernel(STREAM_REPLICATE, 29, 30),
        kernel(STREAM_COMPUTE, 30, 40),
    };
    const struct exec_result result = {.spans = spans,
        .n_spans = sizeof spans / sizeof *spans,
        .last_step_start = 0,
        .last_step_end = 40 * MS};
    struct arena arena = ARENA_INIT;
    struct scenario_comm comm;
    scenario_comm(&comm, &result, &arena);
    assert_near(comm.step_s, 40e-3, 1e-12);
    assert_near(comm.moving_s, 15e-3, 1e-12);
    assert_near(comm.bound_s[COLL_BOUND_CHANNELS], 5e-3, 1e-12);
    assert_near(comm.latency_s, 3e-3, 1e-12); /* 1 ms of each */
    assert_near(comm.bound_s[COLL_BOUND_LATENCY], 2e-3, 1e-12);
    assert_near(comm.bound_s[COLL_BOUND_NIC], 8e-3, 1e-12);
    assert_near(comm.exposed_s, 9e-3, 1e-12);
    assert_near(comm.exposed_wait_s, 2e-3, 1e-12);
    assert_near(comm.exposed_bound_s[COLL_BOUND_LATENCY], 2e-3, 1e-12);
    assert_near(comm.exposed_bound_s[COLL_BOUND_NIC], 5e-3, 1e-12);
    assert_near(comm.exposed_bound_s[COLL_BOUND_CHANNELS], 0, 0);
    /* The two of 2 GB are of one kind, size and group; NICs bind them for longer. */
    assert_int_equal(comm.n_items, 2);
    assert_string_equal(
        scenario_comm_name(&arena, &comm.items[0]), "all_gather of 1.863 GiB on 16");
    assert_int_equal(comm.items[0].times, 2);
    assert_near(comm.items[0].moving_s, 13e-3, 1e-12);
    assert_near(comm.items[0].bus_bytes, 2e9, 1e-12);
    assert_int_equal(scenario_comm_most(comm.items[0].bound_s), COLL_BOUND_NIC);
    assert_near(comm.items[1].exposed_s, 4e-3, 1e-12);
    arena_release(&arena);
}

static int ends_first(const void *a, const void *b)
{
    const struct exec_span *x = a, *y = b;
    return x->end != y->end ? (x->end > y->end) - (x->end < y->end) : x->op - y->op;
}

/* What is said of gaps, by looking at all spans for each. */
static double look_at_all(const struct exec_result *result)
{
    ps_t free_at = 0, exposed = 0;
    for (int c = 0; c < result->n_spans; c++) {
        const struct exec_span *compute = &result->spans[c];
        if (compute->stream != STREAM_COMPUTE)
            continue;
        ps_t from = free_at, to = compute->start, message = 0;
        bool awaited = false;
        for (int i = 0; i < result->n_spans; i++)
            awaited = awaited ||
                      (result->spans[i].end == to && result->spans[i].stream != STREAM_COMPUTE);
        for (int h = 0; h < result->n_host_spans && !awaited; h++)
            for (int i = 0; i < result->n_spans; i++) {
                const struct exec_host_span *host = &result->host_spans[h];
                const struct exec_span *span = &result->spans[i];
                bool waited = host->kind == HOST_WAITS && host->end > from && host->end <= to &&
                              span->op == host->op;
                if (waited && span->is_collective && span->collective == COLL_SEND_RECV &&
                    span->end > from && span->end <= to && span->end > message)
                    message = span->end;
            }
        to = awaited ? to : message;
        for (int i = 0; i < result->n_spans && from < to; i++) {
            const struct exec_span *span = &result->spans[i];
            if (!span->is_collective || span->end <= from || span->start >= to)
                continue;
            ps_t end = span->end < to ? span->end : to;
            exposed += end - (span->start > from ? span->start : from);
            from = end;
        }
        free_at = compute->end;
    }
    return s_from_ps(exposed);
}

/* Drawn steps of four streams, messages that the host waits for among them, collectives that
 * outlast many gaps: the same as by looking at all spans. */
static void gaps_are_found(void **state)
{
    (void)state;
    enum { STREAMS = 4, EACH = 60, JOBS = 200 };
    struct rng_stream draws = rng_stream(1, 1, 1);
    double all_s = 0;
    for (int job = 0; job < JOBS; job++) {
        struct exec_span spans[STREAMS * EACH];
        struct exec_host_span host[EACH + 1] = {{.kind = HOST_STEP, .op = -1, .end = 1000 * MS}};
        int n = 0, waits = 1;
        double at[STREAMS] = {0};
        for (int stream = 0; stream < STREAMS; stream++)
            for (int i = 0; i < EACH; i++) {
                double start = at[stream] + floor(3 * rng_uniform(&draws));
                double end = at[stream] =
                    start + 1 + floor((stream == 3 ? 40 : 4) * rng_uniform(&draws));
                bool works = stream == 0 || rng_uniform(&draws) < 0.3;
                spans[n] =
                    works ? kernel(stream, start, end)
                          : collective(stream, stream * 1e6, start, start, end, COLL_BOUND_NIC);
                if (stream == 2)
                    spans[n].collective = COLL_SEND_RECV;
                spans[n].op = n;
                n++;
                if (stream == 2)
                    host[waits++] = (struct exec_host_span){.kind = HOST_WAITS,
                        .op = n - 1,
                        .end = (ps_t)((end + floor(2 * rng_uniform(&draws))) * MS)};
            }
        qsort(spans, (size_t)n, sizeof *spans, ends_first);
        const struct exec_result result = {.spans = spans,
            .n_spans = n,
            .host_spans = host,
            .n_host_spans = waits,
            .last_step_end = 1000 * MS};
        struct arena arena = ARENA_INIT;
        struct scenario_comm comm;
        scenario_comm(&comm, &result, &arena);
        assert_near(comm.exposed_s, look_at_all(&result), 1e-9);
        all_s += comm.exposed_s;
        arena_release(&arena);
    }
    assert_true(all_s > JOBS * 5e-3);
}

/* 8 of 15 ms are 53 %, 5 are 33 %, 2 are 13 %; of these 7 are exposed, so 53.3 % hidden. Of 9 ms
 * exposed 5, 2 and 2 are 56, 22 and 22 %. */
static void it_is_said_in_words(void **state)
{
    (void)state;
    struct scenario_comm_item items[] = {
        {COLL_ALL_GATHER, 2e9, 16, COLL_RING, COLL_SIMPLE, 2, 13e-3, 0, 0,
            {[COLL_BOUND_NIC] = 8e-3, [COLL_BOUND_CHANNELS] = 5e-3}},
        {COLL_ALL_GATHER, 1e6, 16, COLL_RING, COLL_SIMPLE, 1, 2e-3, 0, 0,
            {[COLL_BOUND_LATENCY] = 2e-3}},
    };
    struct scenario_comm comm = {.items = items,
        .n_items = 2,
        .step_s = 40e-3,
        .moving_s = 15e-3,
        .latency_s = 6e-3,
        .exposed_s = 9e-3,
        .exposed_wait_s = 2e-3,
        .bound_s =
            {[COLL_BOUND_NIC] = 8e-3, [COLL_BOUND_CHANNELS] = 5e-3, [COLL_BOUND_LATENCY] = 2e-3},
        .exposed_bound_s = {[COLL_BOUND_NIC] = 5e-3, [COLL_BOUND_LATENCY] = 2e-3}};
    struct hw hw = {.gpu.arch = "Hopper",
        .node = {.gpus = {.value = 8},
            .nics = {.value = 8},
            .nic_bandwidth = {50e9, 0, QUANTITY_DATASHEET, "test", NULL}},
        .cluster = {.nccl_channels = {16, 0, QUANTITY_ASSUMED, "test", NULL},
            .nccl_channel_bandwidth = {20e9, 0, QUANTITY_ASSUMED, "test", NULL}}};
    const struct scenario_comm none = {0};
    struct arena arena = ARENA_INIT;
    assert_string_equal(scenario_comm_sentence(&arena, "as it is", &comm, &hw),
        "as it is: collectives take 15.0 ms of rank 0's last step of 40.0 ms, and 53.3 % of that "
        "is hidden behind compute. They are bound by NIC (8 x 50 GB/s, datasheet) 53 %, channels "
        "(16 x 20 GB/s, assumed) 33 %, latency 13 %; hops and steps are 40 % of their time. Of the "
        "9.0 ms that are exposed in that step: NIC 56 %, latency 22 %, waiting "
        "for other ranks 22 %.");
    assert_null(scenario_channels_sentence(&arena, &comm, &hw)); /* NICs bind most */
    struct scenario_comm faster = comm;
    faster.moving_s = 12e-3;
    faster.bound_s[COLL_BOUND_NIC] = 0;
    faster.bound_s[COLL_BOUND_CHANNELS] = 10e-3;
    faster.exposed_s = 6e-3;
    faster.exposed_bound_s[COLL_BOUND_NIC] = 1e-3;
    assert_string_equal(scenario_comm_change(&arena, "(1)", &comm, &faster,
                            &(struct scenario_change){0.95, 1, "tokens"}),
        "(1) shortens the step (-5.0 %): its collectives take 20.0 % less time, and 53.3 % of "
        "their time was hidden behind compute already. What binds most of that time is NIC before, "
        "channels after. Of what is exposed in rank "
        "0's last step (9.0 ms before, 6.0 ms after) it is NIC before, latency after.");
    assert_string_equal(scenario_comm_change(&arena, "(1)", &none, &comm,
                            &(struct scenario_change){1.0001, 1, "tokens"}),
        "(1) leaves the step as it is.");
    assert_string_equal(scenario_channels_sentence(&arena, &faster, &hw),
        "Across nodes NCCL lays 16 channels, as nccl_channels says. Each carries at most 20 GB/s, "
        "assumed: what is said of faster NICs rests on this one number.");
    items[0].algorithm = COLL_TREE; /* a tree's channels have another bound, messages others */
    assert_null(scenario_channels_sentence(&arena, &faster, &hw));
    items[0].algorithm = COLL_P2P;
    assert_null(scenario_channels_sentence(&arena, &faster, &hw));
    assert_string_equal(
        scenario_comm_sentence(&arena, "as it is", &none, &hw), "as it is: no collectives.");
    assert_string_equal(scenario_comm_change(&arena, "(1)", &none, &comm,
                            &(struct scenario_change){1.001, 1, "tokens"}),
        "(1) hardly changes the step (+0.1 %).");
    /* Twice the tokens in 1.883 times the time are more tokens/s, whatever becomes of the step. */
    assert_string_equal(scenario_comm_change(&arena, "(1)", &none, &comm,
                            &(struct scenario_change){1.883, 2, "tokens"}),
        "(1) trains 6.2 % more tokens/s (a step has 2 times the tokens and takes 88.3 % longer).");
    assert_string_equal(scenario_comm_change(&arena, "(1)", &none, &comm,
                            &(struct scenario_change){0.6, 0.5, "images"}),
        "(1) trains 16.7 % fewer images/s (a step has 0.5 times the images and takes 40.0 % "
        "less).");
    assert_string_equal(scenario_comm_change(&arena, "(1)", &none, &comm,
                            &(struct scenario_change){2.01, 2, "tokens"}),
        "(1) hardly changes tokens/s, -0.5 % (a step has 2 times the tokens and takes 101.0 % "
        "longer).");
    arena_release(&arena);
}

/* Of a run: what is exposed in the last step is what the run says of its steps, all alike without
 * noise; every collective is bound by something; and NICs of 1 Gb/s bind, those of 400 are behind
 * PCIe slots that bind first. */
static void a_run_agrees(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        const struct scenario_override set[] = {{"cluster.gpus", "32"},
            {"noise.kernel_jitter", "0"}, {"noise.host_jitter", "0"}, {"train.micro_batch", "64"},
            {"run.warmup_steps", "2"},
            {"cluster.node.nic_bandwidth", slow ? "1 Gb/s" : "400 Gb/s"}};
        struct loaded *loaded = load_text(BASE, set, (int)(sizeof set / sizeof *set));
        assert_string_equal(loaded->diag.text, "");
        struct scenario_point *point = &loaded->set.points[0];
        const int rank = 0;
        point->options.exec.trace_ranks = &rank;
        point->options.exec.n_trace_ranks = 1;
        struct scenario_result result;
        assert_int_equal(
            scenario_simulate(&result, point, &loaded->arena, &loaded->diag), STATUS_OK);
        struct scenario_comm comm;
        scenario_comm(&comm, &result.exec, &loaded->arena);
        assert_true(comm.n_items > 0);
        assert_near(comm.moving_s, result.exec.breakdown.comm_s, 1e-9);
        assert_near(comm.latency_s, result.exec.breakdown.comm_latency_s, 1e-9);
        assert_true(
            fabs(comm.exposed_s - result.exec.breakdown.exposed_comm_s) <= 0.02 * comm.step_s);
        double by_bounds = 0;
        for (int b = 0; b < COLL_BOUND_COUNT; b++)
            by_bounds += comm.bound_s[b];
        assert_near(by_bounds, comm.moving_s, 1e-9);
        assert_near(comm.bound_s[COLL_BOUND_NONE], 0, 0);
        enum coll_bound most = scenario_comm_most(comm.bound_s);
        if (slow ? most != COLL_BOUND_NIC : most == COLL_BOUND_NIC)
            fail_msg("bound by %s", coll_bound_names[most]);
        unload(loaded);
    }
}

static struct scenario_comm comm_of(
    const struct scenario_point *point, bool gaps, int *n_spans, struct loaded *loaded)
{
    static const int rank = 0;
    struct scenario_point traced = *point;
    struct scenario_result result;
    struct scenario_comm comm;
    traced.options.exec.trace_ranks = &rank;
    traced.options.exec.n_trace_ranks = 1;
    traced.options.exec.trace_gaps = gaps;
    assert_int_equal(scenario_simulate(&result, &traced, &loaded->arena, &loaded->diag), STATUS_OK);
    scenario_comm(&comm, &result.exec, &loaded->arena);
    *n_spans = result.exec.n_spans + result.exec.n_host_spans;
    return comm;
}

/* The timeline that has kernels without a gap between them as one span says the same, of DDP and
 * of a pipeline, with noise and without. */
static void gaps_are_enough(void **state)
{
    (void)state;
    for (int c = 0; c < 4; c++) {
        const struct scenario_override set[] = {{"cluster.gpus", "32"}, {"run.steps", "1"},
            {"noise.kernel_jitter", c & 1 ? "1 %" : "0"}, {"train.micro_batch", "4"},
            {"strategy", c & 2 ? "megatron" : "ddp"}, {"parallelism.pipeline", c & 2 ? "2" : "1"},
            {"train.grad_accum", c & 2 ? "8" : "1"}};
        struct loaded *loaded = load_text(BASE, set, (int)(sizeof set / sizeof *set));
        assert_string_equal(loaded->diag.text, "");
        int n[2];
        struct scenario_comm all = comm_of(&loaded->set.points[0], false, &n[0], loaded),
                             few = comm_of(&loaded->set.points[0], true, &n[1], loaded);
        assert_true(n[1] < n[0] / 3);
        assert_int_equal(all.n_items, few.n_items);
        assert_true(all.n_items > 0 && all.exposed_s > 0);
        assert_true(all.moving_s == few.moving_s && all.latency_s == few.latency_s);
        assert_true(all.exposed_s == few.exposed_s && all.exposed_wait_s == few.exposed_wait_s);
        assert_memory_equal(all.exposed_bound_s, few.exposed_bound_s, sizeof all.exposed_bound_s);
        assert_memory_equal(all.items, few.items, sizeof *all.items * (size_t)all.n_items);
        unload(loaded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_add_up),
        cmocka_unit_test(gaps_are_found),
        cmocka_unit_test(it_is_said_in_words),
        cmocka_unit_test(a_run_agrees),
        cmocka_unit_test(gaps_are_enough),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
