/* A step that is simulated, written as a trace and read back as a measured one is the same step:
 * its time, its kernels class by class, its collectives, what is exposed and idle. The reader gets
 * nothing but the file, so steps, launches, classes, sizes and groups all come back through what a
 * trace of PyTorch's profiler has. */
#include "foreign/trace_check.h"
#include "report/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../near.h"
#include "steady.h"

#define SCENARIOS FLOPCAST_SOURCE_DIR "/scenarios/"
#define OVERRIDES(list) (list), (int)(sizeof(list) / sizeof *(list))

static const double ns =
    1e-9; /* a trace's times are cut to nanoseconds: an activity is at most so much longer */

/* The host does one thing after the other inside its step, and launches everything before it runs,
 * once. */
static void assert_host(const struct exec_result *exec)
{
    const struct exec_host_span *step = &exec->host_spans[0];
    ps_t at = step->start;
    int launches = 0;
    assert_int_equal(step->kind, HOST_STEP);
    for (int i = 1; i < exec->n_host_spans; i++) {
        const struct exec_host_span *span = &exec->host_spans[i];
        assert_true(span->kind != HOST_STEP && span->start >= at && span->end >= span->start);
        at = span->end;
        launches += span->kind == HOST_ISSUE;
        for (int s = 0; span->kind == HOST_ISSUE && s < exec->n_spans; s++)
            if (exec->spans[s].op == span->op)
                assert_true(exec->spans[s].start >= span->end);
    }
    assert_true(at <= step->end);
    assert_int_equal(launches, exec->n_spans);
}

static struct trace_check round_trip(
    const char *scenario, const struct scenario_override *overrides, int n)
{
    char path[] = "/tmp/flopcast-trace-XXXXXX.json";
    static const int rank_0 = 0;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    struct scenario_result result;
    struct trace_check check;
    int file = mkstemps(path, (int)strlen(".json"));
    assert_true(file >= 0);
    close(file);
    if (scenario_load(&set, scenario, overrides, n, &arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(set.n_points, 1);
    set.points[0].options.exec.trace_ranks = &rank_0;
    set.points[0].options.exec.n_trace_ranks = 1;
    assert_int_equal(scenario_simulate(&result, &set.points[0], &arena, &diag), STATUS_OK);
    assert_int_equal(result.exec.status, EXEC_OK);
    assert_host(&result.exec);
    assert_int_equal(trace_write(path, &set.points[0], &result, &diag), STATUS_OK);
    if (trace_check_load(&check, path, -1, NULL, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    unlink(path);
    assert_int_equal(
        scenario_load(&check.set, scenario, overrides, n, &check.arena, &diag), STATUS_OK);
    diag = DIAG_INIT; /* settings that no point reads are warned of, once above */
    assert_int_equal(trace_check_simulate(&check, path, &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
    arena_release(&arena);
    return check;
}

static void assert_same_sums(const struct trace_check *check)
{
    const struct trace_sum *read = &check->measured, *simulated = &check->simulated;
    double activities = check->trace.activities.n;
    for (int c = 0; c < TRACE_CLASS_COUNT; c++) {
        if (read->class_count[c] != simulated->class_count[c])
            fail_msg("%s: %g, simulated %g", trace_class_name(c), read->class_count[c],
                simulated->class_count[c]);
        assert_near(read->class_s[c], simulated->class_s[c], ns * read->class_count[c]);
    }
    assert_near(read->compute_s, simulated->compute_s, ns * activities);
    assert_near(read->exposed_s, simulated->exposed_s, ns * activities);
    assert_near(read->hidden_s, simulated->hidden_s, ns * activities);
    assert_near(read->copies_s, simulated->copies_s, ns * activities);
    assert_near(read->idle_s, simulated->idle_s, ns * activities);
    assert_int_equal(read->groups.n, simulated->groups.n);
    for (int i = 0; i < check->pairs.n; i++) {
        const struct trace_group *a = check->pairs.at[i].measured,
                                 *b = check->pairs.at[i].simulated;
        assert_true(a && b);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->ranks, b->ranks);
        assert_true(a->count == b->count);
        assert_near(
            a->bytes, b->bytes, b->ranks); /* a share is written as a whole number of bytes */
        assert_near(a->time_s, b->time_s, ns * a->count);
    }
}

/* Without noise, and once the host has come as far ahead as it does, every step is as long as the
 * next. */
static void assert_same_step(const struct trace_check *check)
{
    assert_int_equal(check->trace.found, TRACE_ANNOTATED);
    assert_int_equal(check->measured.steps, 1);
    assert_int_equal(check->trace.outside, 0);
    assert_near(check->measured.step_s, check->simulated.step_s, 2 * ns);
    assert_near(check->measured.step_s, check->result.exec.step_time_s, 2 * ns);
    assert_int_equal(check->differences.n, 0);
    assert_same_sums(check);
}

static void check_quiet(
    const char *scenario, const struct scenario_override *overrides, int n, bool exposed)
{
    struct trace_check check = round_trip(scenario, overrides, n);
    assert_same_step(&check);
    assert_true(check.measured.groups.n > 0);
    assert_int_equal(check.measured.exposed_s > 0, exposed);
    trace_check_free(&check);
}

static void ddp(void **state)
{
    static const struct scenario_override overrides[] = {STEADY, {"cluster.gpus", "16"}};
    (void)state;
    check_quiet(SCENARIOS "resnet50_ddp_v100.yaml", OVERRIDES(overrides), false);
}

/* Gathers of shards, casts on other streams, and a first gather that nothing hides. */
static void fsdp(void **state)
{
    static const struct scenario_override overrides[] = {STEADY, {"cluster.gpus", "16"},
        {"train.micro_batch", "8"}, {"train.precision", "bf16_mixed"},
        {"cluster.nccl_protocols", "all"}, {"cluster.nccl_ring_post_latency", "46.33 us"}};
    (void)state;
    check_quiet(SCENARIOS "t5_scaling.yaml", OVERRIDES(overrides), true);
}

/* Two groups, one over each node and one across. */
static void hybrid_shard(void **state)
{
    static const struct scenario_override overrides[] = {STEADY, {"cluster.gpus", "16"},
        {"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"train.micro_batch", "1"},
        {"train.seq_len", "1024"}};
    (void)state;
    check_quiet(SCENARIOS "llama2_7b_h100_fsdp.yaml", OVERRIDES(overrides), true);
}

/* A host that is slower than the GPU: the step is the host's, and the GPU idles. */
static void host_bound(void **state)
{
    static const struct scenario_override overrides[] = {STEADY, {"cluster.gpus", "8"},
        {"train.micro_batch", "1"}, {"train.seq_len", "16"},
        {"model", SCENARIOS "models/t5-611m.yaml"}, {"train.precision", "bf16_mixed"},
        {"cluster.nccl_protocols", "all"}, {"cluster.nccl_ring_post_latency", "46.33 us"},
        {"host.kernel_issue", "20 us"}, {"host.backward_issue", "20 us"}};
    (void)state;
    struct trace_check check = round_trip(SCENARIOS "t5_scaling.yaml", OVERRIDES(overrides));
    assert_same_step(&check);
    assert_true(check.measured.host_s > 0.2 * check.measured.step_s);
    trace_check_free(&check);
}

/* With noise ranks end their steps apart, so that the step of one is not the job's; all else still
 * comes back. */
static void noisy(void **state)
{
    static const struct scenario_override overrides[] = {{"cluster.gpus", "16"},
        {"train.micro_batch", "8"}, {"train.precision", "bf16_mixed"},
        {"cluster.nccl_protocols", "all"}, {"cluster.nccl_ring_post_latency", "46.33 us"},
        {"noise.gpu_speed_spread", "3 %"}, {"noise.kernel_jitter", "3 %"}};
    (void)state;
    struct trace_check check = round_trip(SCENARIOS "t5_scaling.yaml", OVERRIDES(overrides));
    assert_near(check.measured.step_s / check.simulated.step_s, 1, 1e-3);
    for (int c = 0; c < TRACE_CLASS_COUNT; c++) {
        assert_true(check.measured.class_count[c] == check.simulated.class_count[c]);
        assert_near(check.measured.class_s[c], check.simulated.class_s[c],
            ns * check.measured.class_count[c]);
    }
    trace_check_free(&check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ddp), cmocka_unit_test(fsdp),
        cmocka_unit_test(hybrid_shard), cmocka_unit_test(host_bound), cmocka_unit_test(noisy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
