/* Against what large jobs published: numbers of results/measured/reliability.csv. */
#include "goodput/goodput.h"
#include "config/csv.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../near.h"

enum { RUNS = 20, GPUS_PER_NODE = 8 };
static const double DAY = 86400, PARAMETERS = 405.85e9;

static double mean_share(const struct goodput_job *job, double interval_s, double days)
{
    struct goodput_run runs[RUNS];
    double shares[RUNS];
    goodput_simulate_all(runs, RUNS, job, interval_s, days, 1);
    for (int i = 0; i < RUNS; i++)
        shares[i] = goodput_share(&runs[i]);
    return goodput_band(shares, RUNS).mean;
}

static struct goodput_job job_of(int64_t gpus)
{
    int64_t nodes = gpus / GPUS_PER_NODE;
    return (struct goodput_job){goodput_default_options(), {gpus, nodes, gpus, 0, nodes}, 1, 1, 0};
}

/* Kokolis et al. (arXiv 2410.21680): (1 - N r_f (u0 + dt / 2)) / (1 + w_cp / dt) at 6.50 failures
 * per 1000 node-days, w_cp 5 min, u0 5 to 20 min, with the best dt. It is of first order in the
 * share that failures take. */
static double ettr(double rate, double restart_s, double checkpoint_s, double interval_s)
{
    return (1 - rate * (restart_s + interval_s / 2)) / (1 + checkpoint_s / interval_s);
}

static void metas_formula_of_ettr(void **state)
{
    (void)state;
    static const double checkpoint_s = 300, node_mtbf_s = 1000 / 6.50 * 86400;
    static const struct {
        int64_t gpus;
        double restart_s;
    } cases[] = {{1024, 300}, {2048, 300}, {4096, 300}, {8192, 300}, {16384, 300}, {1024, 1200},
        {2048, 1200}, {4096, 1200}, {8192, 1200}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct goodput_job job = job_of(cases[i].gpus);
        struct goodput_options *o = &job.options;
        memset(o->mtbf_s, 0, sizeof o->mtbf_s);
        o->mtbf_s[GOODPUT_NODE] = node_mtbf_s;
        o->detection_s[GOODPUT_NODE] = o->hang_share = o->replacement_s = 0;
        o->checkpoint_bytes =
            checkpoint_s; /* written at 1 B/s, and loaded in no time: u0 counts all of a restart */
        o->checkpoint_bandwidth_Bps = o->checkpoint_node_bandwidth_Bps = 1;
        o->restart_s = cases[i].restart_s - checkpoint_s;
        if (!(o->restart_s > 0))
            o->restart_s = 1e-3; /* 0 s would be by the size of the job; loading takes all of u0 */
        struct goodput_costs costs = goodput_costs(&job);
        double interval_s = goodput_young_s(&costs);
        double formula = ettr(1 / costs.mtbf_s, cases[i].restart_s, checkpoint_s, interval_s);
        double simulated = mean_share(&job, interval_s, 60);
        if (fabs(simulated - formula) > 0.02)
            fail_msg("%d GPUs, restart %g s: %.3f, not %.3f", (int)cases[i].gpus,
                cases[i].restart_s, simulated, formula);
    }
}

/* The value of the one row that has all of these; "" matches all. With a part: the sum of the rows
 * that count as it. */
static double published(
    const char *topic, const char *system, const char *quantity, const char *part)
{
    struct diag diag = DIAG_INIT;
    struct csv_table *csv = NULL;
    assert_int_equal(
        csv_load(&csv, FLOPCAST_SOURCE_DIR "/results/measured/reliability.csv", &diag), STATUS_OK);
    int columns[] = {
        csv_column(csv, "topic"), csv_column(csv, "system"), csv_column(csv, "quantity")};
    const char *wanted[] = {topic, system, quantity};
    double sum = 0;
    int found = 0;
    for (int row = 0; row < csv_rows(csv); row++) {
        bool fits = strncmp(csv_cell(csv, row, csv_column(csv, "note")), part, strlen(part)) == 0;
        for (int i = 0; i < 3; i++)
            fits = fits && (!*wanted[i] || strcmp(csv_cell(csv, row, columns[i]), wanted[i]) == 0);
        if (!fits)
            continue;
        sum += strtod(csv_cell(csv, row, csv_column(csv, "value")), NULL);
        found++;
    }
    assert_true(*part ? found > 0 : found == 1);
    csv_release(csv);
    return sum;
}

/* The defaults are the counts of the table, and these are all interruptions. */
static void rates_are_those_of_the_table(void **state)
{
    (void)state;
    struct goodput_job job = job_of(16384);
    double all = published("interruptions", "llama3-405b", "", "maintenance");
    for (int part = 0; part < GOODPUT_PARTS; part++) {
        if (part == GOODPUT_SWITCH)
            continue;
        double n = published("interruptions", "llama3-405b", "", goodput_cause_names[part]);
        double expected = 54 * DAY * (double)job.parts[part] / job.options.mtbf_s[part];
        assert_near(n, expected, 1e-6);
        all += n;
    }
    assert_near(all, published("observed", "llama3-405b", "all interruptions", ""), 0);
    for (int64_t gpus = 2048; gpus <= 16384; gpus *= 2)
        assert_true(goodput_restart_s(gpus) > goodput_restart_s(gpus / 2) || gpus == 2048);
    assert_near(goodput_restart_s(8), 454, 0);
    assert_near(goodput_restart_s(32768), 901, 1e-9);
}

/* Inputs are the source's: causes, planned interruptions, hangs, storage, 16 million tokens a step
 * at 400 TFLOPS (table 4). The rest are defaults: ByteRobust's restart at this size. The source
 * says "higher than 90 %" and not how much. */
static void llama3_trains_nine_tenths_of_54_days(void **state)
{
    (void)state;
    struct goodput_job job = job_of(16384);
    double unexpected = published("observed", "llama3-405b", "unexpected interruptions", "");
    job.options.maintenance_interval_s =
        54 * DAY / published("interruptions", "llama3-405b", "planned interruptions", "");
    job.options.hang_share =
        published("interruptions", "llama3-405b", "NCCL watchdog timeouts", "") / unexpected;
    job.options.checkpoint_bandwidth_Bps =
        1e9 * published("checkpoint", "llama3-405b", "storage bandwidth, sustained", "");
    job.state_bytes = 14 * PARAMETERS;
    job.step_s = 6 * PARAMETERS * 16 * 1048576 / (16384 * 400e12);
    double interval_s = goodput_search_s(&job, RUNS, 54, 1);
    struct goodput_run runs[RUNS];
    goodput_simulate_all(runs, RUNS, &job, interval_s, 54, 1);
    double share = 0, interruptions = 0;
    for (int i = 0; i < RUNS; i++) {
        share += goodput_share(&runs[i]) / RUNS;
        for (int cause = 0; cause < GOODPUT_CAUSES; cause++)
            interruptions += (double)runs[i].interruptions[cause] / RUNS;
    }
    print_message("Llama 3: %.4f, %.1f interruptions, checkpoints after %.0f s\n", share,
        interruptions, interval_s);
    assert_near(interruptions, 466, 4 * sqrt(466.0 / RUNS));
    assert_true(share > 0.9 - 0.02 && share < 1);
}

/* Mean time to failure of unexpected interruptions by size. Sources differ by a factor of 2.8 in
 * failures of a node (2.34 to 6.50 per 1000 node-days): the defaults lie between them at every
 * size. Measured job by job RSC-1 is worse than the rate of its nodes says: 7.9 h, not 28.8, at
 * 1,024 GPUs; that is not predicted. */
static void time_to_failure_is_within_the_sources(void **state)
{
    (void)state;
    double worst = published("failure rate", "rsc-1", "node failures", "") / 1000;
    double best = published("failure rate", "rsc-2", "node failures", "") / 1000;
    for (int64_t gpus = 8; gpus <= 131072; gpus *= 4) {
        struct goodput_job job = job_of(gpus);
        double days = goodput_costs(&job).mtbf_s / DAY, nodes = (double)job.parts[GOODPUT_NODE];
        assert_true(days > 1 / (worst * nodes) && days < 1 / (best * nodes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(metas_formula_of_ettr),
        cmocka_unit_test(rates_are_those_of_the_table),
        cmocka_unit_test(llama3_trains_nine_tenths_of_54_days),
        cmocka_unit_test(time_to_failure_is_within_the_sources)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
