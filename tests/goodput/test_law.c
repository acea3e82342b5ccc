/* The simulation against what is known in closed form. */
#include "goodput/goodput.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../near.h"

enum { RUNS = 40 };

/* One kind of part, costs that do not vary: what the closed forms assume. mtbf_s: of the job. */
static struct goodput_job plain(double mtbf_s, double stall_s, double recovery_s)
{
    static const int64_t nodes = 100;
    struct goodput_options options = goodput_default_options();
    memset(options.mtbf_s, 0, sizeof options.mtbf_s);
    options.mtbf_s[GOODPUT_NODE] = mtbf_s * (double)nodes;
    options.detection_s[GOODPUT_NODE] = options.hang_share = options.replacement_s = 0;
    options.restart_s =
        recovery_s - stall_s; /* the checkpoint is loaded as fast as it is written */
    options.checkpoint_bytes = 1e12;
    options.checkpoint_bandwidth_Bps = options.checkpoint_bytes / stall_s;
    options.checkpoint_node_bandwidth_Bps = options.checkpoint_bandwidth_Bps;
    return (struct goodput_job){options, {8 * nodes, nodes, 8 * nodes, 0, nodes}, 1, 1, 0};
}

static double mean_share(const struct goodput_job *job, double interval_s, double days)
{
    struct goodput_run runs[RUNS];
    double shares[RUNS];
    goodput_simulate_all(runs, RUNS, job, interval_s, days, 1);
    for (int i = 0; i < RUNS; i++)
        shares[i] = goodput_share(&runs[i]);
    return goodput_band(shares, RUNS).mean;
}

/* From an hour to four between failures, intervals at, below and above the best. */
static void the_mean_over_seeds_is_dalys_closed_form(void **state)
{
    (void)state;
    static const struct {
        double mtbf_s, stall_s, recovery_s;
    } cases[] = {{3600, 60, 300}, {14400, 60, 900}, {7200, 300, 600}};
    static const double factors[] = {0.5, 1, 2};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            struct goodput_job job = plain(cases[i].mtbf_s, cases[i].stall_s, cases[i].recovery_s);
            struct goodput_costs costs = goodput_costs(&job);
            assert_near(costs.mtbf_s, cases[i].mtbf_s, 1e-6);
            assert_near(costs.recovery_s, cases[i].recovery_s, 1e-6);
            double interval_s = floor(factors[k] * goodput_daly_s(&costs));
            double closed = goodput_daly_share(&costs, interval_s);
            double simulated = mean_share(&job, interval_s, 60);
            if (fabs(simulated / closed - 1) > 0.01)
                fail_msg("mtbf %g s, interval %g s: %g, not %g", costs.mtbf_s, interval_s,
                    simulated, closed);
        }
}

/* The share is flat at its top, so the interval is known less well than the share that it gives. */
static void the_interval_found_is_youngs_and_dalys(void **state)
{
    (void)state;
    static const struct {
        double mtbf_s, stall_s, recovery_s;
    } cases[] = {{10000, 20, 300}, {40000, 60, 900}};
    for (int i = 0; i < 2; i++) {
        struct goodput_job job = plain(cases[i].mtbf_s, cases[i].stall_s, cases[i].recovery_s);
        struct goodput_costs costs = goodput_costs(&job);
        double found = goodput_search_s(&job, RUNS, 60, 1);
        assert_near(found / goodput_daly_s(&costs), 1, 0.06);
        assert_near(found / goodput_young_s(&costs), 1, 0.08);
        assert_near(
            goodput_daly_share(&costs, found) / goodput_daly_share(&costs, goodput_daly_s(&costs)),
            1, 0.001);
    }
}

static void without_failures_only_checkpoints_cost(void **state)
{
    (void)state;
    struct goodput_job job = plain(3600, 60, 300);
    job.options.mtbf_s[GOODPUT_NODE] = 0;
    struct goodput_run run;
    goodput_simulate(&run, &job, 540, 10, 1);
    assert_near(goodput_share(&run), 0.9, 1e-3);
    assert_near(goodput_lost_share(&run, GOODPUT_CHECKPOINT), 0.1, 1e-3);
    assert_near(goodput_search_s(&job, RUNS, 10, 1), 10 * 86400.0, 0);
}

/* Small ones, as of LoRA, cost nothing that a search could see in any reasonable time. */
static void small_checkpoints_are_not_searched(void **state)
{
    (void)state;
    struct goodput_job job = plain(1e7, 1e-3, 300);
    struct goodput_costs costs = goodput_costs(&job);
    assert_near(goodput_search_s(&job, RUNS, 30, 1), goodput_daly_s(&costs), 0);
}

/* Every nanosecond is in one row of the table. */
static void all_time_is_accounted_for(void **state)
{
    (void)state;
    struct goodput_job job = plain(3600, 60, 300);
    job.options = goodput_default_options();
    job.options.maintenance_interval_s = 20000;
    job.options.hot_spares = 0;
    job.options.elastic_nodes = 50; /* two at a time are enough to wait, as a switch is */
    job.options.checkpoint_bytes = 1e13;
    for (int part = 0; part < GOODPUT_PARTS; part++)
        job.options.mtbf_s[part] = 3e6;
    job.parts[GOODPUT_SWITCH] = 10;
    job.options.slow_node_mtbf_s = 3e6;
    job.options.slow_node_detection_s = 1e4;
    for (int async = 0; async < 2; async++) {
        job.options.async_checkpoint = async;
        struct goodput_run run;
        goodput_simulate(&run, &job, 1000, 30, 3);
        double sum = 0;
        for (int time = 0; time < GOODPUT_TIMES; time++) {
            assert_true(goodput_lost_share(&run, (enum goodput_time)time) > 0);
            sum += goodput_lost_share(&run, (enum goodput_time)time);
        }
        assert_near(sum, 1, 1e-9);
        for (int cause = 0; cause < GOODPUT_CAUSES; cause++)
            assert_true(run.interruptions[cause] > 0);
        assert_true(run.hangs > 0);
    }
}

/* Replicas of one node, which come back after a time T; what else a failure costs is next to
 * nothing. Failures come at rate r while all of the N nodes are there, r (1 - away / N) in the
 * mean, so by Little's law away = r (1 - away / N) T, away / N = x / (1 + x) with x = r T / N.
 * Nodes: 100, one fails every 10 hours, T = 50 h: x = 0.05, share 1 / 1.05. Replicas of ten nodes:
 * the nine others of a replica stand still beside the one that is away, unless they are away as
 * well, so more than that is lost, and at most ten times as much. */
static void an_elastic_job_loses_the_nodes_that_are_away(void **state)
{
    (void)state;
    struct goodput_job job = plain(36000, 0.002, 0.003);
    job.options.hot_spares = 0;
    job.options.replacement_s = 50 * 3600.0;
    job.options.elastic_nodes = 1;
    double share = mean_share(&job, 60, 60);
    assert_near(share, 1 / 1.05, 0.002);
    job.options.elastic_nodes = 10;
    double coarse = mean_share(&job, 60, 60);
    assert_true(1 - coarse > 1 - share && 1 - coarse < 10 * (1 - share));
    job.options.elastic_nodes =
        0; /* waits 50 h each: 5 of 6 hours, and more, as others fail meanwhile */
    assert_true(mean_share(&job, 60, 60) < 1. / 6);
}

/* Nothing fails. One of 100 nodes gets slow at an exponential time, 2 days in the mean, and is
 * never found: of 60 days 58 are slow, by a quarter, which a fifth of them pays for: 1 - 58 / 60 x
 * 0.2. Found after a day, one comes every 10 days: each is slow for 1 of 1,001 days, so some node
 * for 1 - (1000 / 1001)^100 of the time, a fifth of which is lost; what else that costs is next to
 * nothing, or, with checkpoints of 60 s and restarts of 240 s, 360 s each. */
static void all_wait_for_a_slow_node(void **state)
{
    (void)state;
    static const double DAY = 86400;
    struct goodput_job job = plain(3600, 0.002, 0.003);
    job.options.mtbf_s[GOODPUT_NODE] = 0;
    job.options.slow_node_slowdown = 0.25;
    job.options.slow_node_mtbf_s = 100 * 2 * DAY;
    job.options.slow_node_detection_s = 0;
    assert_near(mean_share(&job, 60, 60), 1 - 58. / 60 * 0.2, 0.004);
    job.options.slow_node_mtbf_s = 100 * 10 * DAY;
    job.options.slow_node_detection_s = DAY;
    double slow = 1 - pow(1000. / 1001, 100);
    assert_near(mean_share(&job, 60, 60), 1 - slow * 0.2, 0.004);
    struct goodput_run run;
    struct goodput_options options = job.options;
    job = plain(3600, 60, 300);
    options.restart_s = job.options.restart_s;
    options.checkpoint_bandwidth_Bps = job.options.checkpoint_bandwidth_Bps;
    options.checkpoint_node_bandwidth_Bps = job.options.checkpoint_node_bandwidth_Bps;
    job.options = options;
    goodput_simulate(&run, &job, 3600, 100, 1);
    double found = (double)run.interruptions[GOODPUT_SLOW_NODE];
    assert_true(found > 3);
    assert_near(run.time_s[GOODPUT_CHECKPOINT][GOODPUT_SLOW_NODE], 60 * found, 1e-6);
    assert_near(run.time_s[GOODPUT_RESTART][GOODPUT_SLOW_NODE], 300 * found, 1e-6);
    assert_near(run.time_s[GOODPUT_LOST][GOODPUT_NO_CAUSE], 0, 0); /* a checkpoint comes first */
}

/* An asynchronous checkpoint saves what is done when it is captured: with failures that are rare
 * beside the interval, a failure loses half of it, and what was trained while the checkpoint was
 * written; before that is done, all of the interval before. The mean is interval / 2 + writing. */
static void an_asynchronous_checkpoint_saves_what_was_captured(void **state)
{
    (void)state;
    const double interval_s = 1000, writing_s = 600;
    struct goodput_job job = plain(50000, writing_s, writing_s + 100);
    job.options.async_checkpoint = true;
    job.options.checkpoint_copy_bandwidth_Bps = 1e15; /* training waits for nothing */
    struct goodput_costs costs = goodput_costs(&job);
    assert_near(costs.write_s, writing_s, 1e-6);
    assert_near(costs.stall_s, 0, 1e-3);
    struct goodput_run runs[RUNS];
    double lost_s = 0, failures = 0;
    goodput_simulate_all(runs, RUNS, &job, interval_s, 300, 1);
    for (int i = 0; i < RUNS; i++) {
        lost_s += goodput_lost_share(&runs[i], GOODPUT_LOST) * runs[i].elapsed_s;
        failures += (double)runs[i].interruptions[GOODPUT_NODE];
    }
    assert_near(lost_s / failures, interval_s / 2 + writing_s, 0.03 * (interval_s / 2 + writing_s));
}

/* What a checkpoint of 1 TB costs, on 100 nodes of 8 GPUs that write 1 GB/s each, into storage of
 * 50 GB/s. */
static void one_writer_has_the_bandwidth_of_one(void **state)
{
    (void)state;
    struct goodput_job job = plain(3600, 60, 300);
    struct goodput_options *o = &job.options;
    o->checkpoint_bandwidth_Bps = 50e9;
    o->checkpoint_node_bandwidth_Bps = 1e9;
    o->checkpoint_copy_bandwidth_Bps = 2e9;
    o->async_checkpoint = false;
    o->sharded_checkpoint = true;
    assert_near(goodput_costs(&job).stall_s, 20, 1e-9);
    assert_near(goodput_costs(&job).load_s, 20, 1e-9);
    o->sharded_checkpoint = false; /* all nodes read it back */
    assert_near(goodput_costs(&job).stall_s, 1000, 1e-9);
    assert_near(goodput_costs(&job).load_s, 20, 1e-9);
    o->async_checkpoint = true; /* one GPU copies it to its host, then that writes */
    assert_near(goodput_costs(&job).stall_s, 500, 1e-9);
    assert_near(goodput_costs(&job).write_s, 1000, 1e-9);
    assert_near(goodput_costs(&job).load_s, 20, 1e-9);
    o->sharded_checkpoint = true;
    assert_near(goodput_costs(&job).stall_s, 1e12 / (800 * 2e9), 1e-9);
}

/* One failure, elastic: when its node is back the job stops for it at a checkpoint, and
 * asynchronous or not it waits until that is on disk. So of two jobs that differ in that alone, one
 * that writes for 1,000 s more loses those once. */
static void a_planned_stop_waits_for_its_checkpoint(void **state)
{
    (void)state;
    struct goodput_run runs[2];
    for (int slow = 0; slow < 2; slow++) {
        struct goodput_job job = plain(30 * 86400.0, 0.002, 0.003);
        job.options.hot_spares = 0;
        job.options.elastic_nodes = 1;
        job.options.replacement_s = 3600;
        job.options.async_checkpoint = true;
        job.options.sharded_checkpoint = true;
        job.options.checkpoint_copy_bandwidth_Bps = 1e12;
        job.options.checkpoint_bandwidth_Bps = job.options.checkpoint_node_bandwidth_Bps =
            slow ? 1e9 : 1e12;
        goodput_simulate(&runs[slow], &job, 7200, 20, 3);
    }
    int64_t stops = runs[0].interruptions[GOODPUT_NODE];
    assert_true(stops > 0 && runs[1].interruptions[GOODPUT_NODE] == stops);
    double waited_s = 0;
    for (int cause = 0; cause < GOODPUT_CAUSES; cause++)
        waited_s +=
            runs[1].time_s[GOODPUT_CHECKPOINT][cause] - runs[0].time_s[GOODPUT_CHECKPOINT][cause];
    assert_near(waited_s, (double)stops * 999, (double)stops * 5);
}

static int64_t spares_of(struct goodput_job *job, int64_t nodes)
{
    job->parts[GOODPUT_NODE] = nodes;
    return goodput_hot_spares(job);
}

/* By the job's size: what ByteRobust counts, nothing for small jobs, never fewer for a larger one.
 */
static void spares_are_in_proportion(void **state)
{
    (void)state;
    static const struct {
        int64_t nodes, spares;
    } cases[] = {
        {1, 0}, {8, 0}, {63, 0}, {64, 1}, {127, 1}, {128, 2}, {512, 3}, {1024, 4}, {2048, 5}};
    struct goodput_job job = {.options = goodput_default_options()};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(spares_of(&job, cases[i].nodes), cases[i].spares);
    for (int64_t nodes = 1; nodes < 4096; nodes++)
        assert_true(spares_of(&job, nodes) <= spares_of(&job, nodes + 1));
    job.options.hot_spares = 7;
    assert_int_equal(spares_of(&job, 1), 7);
}

/* Each rack of trays has its own: 2 for 16 or 18 of them, none for two. */
static void racks_have_their_own_spares(void **state)
{
    (void)state;
    struct goodput_job job = {.options = goodput_default_options(), .in_rack = 18};
    static const struct {
        int64_t in_rack, nodes, spares;
    } cases[] = {{18, 18, 2}, {18, 144, 16}, {16, 144, 18}, {18, 9, 1}, {18, 2, 0}, {1, 144, 2},
        {0, 144, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job.in_rack = cases[i].in_rack;
        assert_int_equal(spares_of(&job, cases[i].nodes), cases[i].spares);
    }
    job.options.hot_spares = 3;
    assert_int_equal(spares_of(&job, 144), 3);
}

static void more_than_expected_failures_are_not_drawn(void **state)
{
    (void)state;
    struct goodput_job job = plain(3600, 60, 300);
    struct goodput_run runs[RUNS];
    double n = 0;
    goodput_simulate_all(runs, RUNS, &job, 600, 30, 1);
    for (int i = 0; i < RUNS; i++)
        n += (double)runs[i].interruptions[GOODPUT_NODE];
    double expected = RUNS * 30 * 24; /* one an hour */
    assert_near(n, expected, 4 * sqrt(expected));
}

/* A seed is one history, on any number of threads; what one part draws does not depend on the
 * others. */
static void histories_are_reproducible(void **state)
{
    (void)state;
    struct goodput_job job = plain(3600, 60, 300);
    struct goodput_run one, all[3];
    goodput_simulate(&one, &job, 600, 30, 7);
    goodput_simulate_all(all, 3, &job, 600, 30, 6);
    assert_true(one.digest == all[1].digest);
    assert_true(one.digest != all[0].digest);
    job.options.mtbf_s[GOODPUT_GPU] = 1e9;
    struct goodput_run other;
    goodput_simulate(&other, &job, 600, 30, 7);
    assert_int_equal(other.interruptions[GOODPUT_NODE], one.interruptions[GOODPUT_NODE]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_over_seeds_is_dalys_closed_form),
        cmocka_unit_test(the_interval_found_is_youngs_and_dalys),
        cmocka_unit_test(without_failures_only_checkpoints_cost),
        cmocka_unit_test(small_checkpoints_are_not_searched),
        cmocka_unit_test(all_time_is_accounted_for),
        cmocka_unit_test(an_elastic_job_loses_the_nodes_that_are_away),
        cmocka_unit_test(all_wait_for_a_slow_node),
        cmocka_unit_test(an_asynchronous_checkpoint_saves_what_was_captured),
        cmocka_unit_test(one_writer_has_the_bandwidth_of_one),
        cmocka_unit_test(a_planned_stop_waits_for_its_checkpoint),
        cmocka_unit_test(racks_have_their_own_spares),
        cmocka_unit_test(spares_are_in_proportion),
        cmocka_unit_test(more_than_expected_failures_are_not_drawn),
        cmocka_unit_test(histories_are_reproducible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
