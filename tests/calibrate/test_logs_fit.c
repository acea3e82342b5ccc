/* A cluster's numbers from its own logs: logs are written by a cluster whose numbers are known. */
#include "calibrate/logs_fit.h"

#include "calibrate/nccl_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLUSTER FLOPCAST_SOURCE_DIR "/topologies/clusters/a100-80gb-8x200g.yaml"

struct world {
    struct arena arena;
    struct hw truth;
    char folder[64];
    const char *logs[3];
};

/* As nccl-tests prints it; scatter: alternately so much slower and faster. */
static void write_log(const struct world *w, const char *path, enum coll_kind kind, int ranks,
    int nodes, double scatter)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "# collective: %s\n# gpu: A100\n# n_nodes: %d\n# n_gpus: %d\n",
        coll_kind_names[kind], nodes, ranks);
    fputs("#       size   count  type  redop  root    time  algbw  busbw #wrong\n", out);
    for (int log2 = 10; log2 <= 33; log2 += 2) {
        double bytes = ldexp(1, log2);
        struct coll_cost cost = coll_nccl_choice(
            kind, bytes, (struct coll_shape){ranks, nodes, ranks / nodes}, &w->truth, COLL_FREE);
        double time_s = coll_isolated_s(cost) * (log2 % 4 ? 1 + scatter : 1 / (1 + scatter));
        fprintf(out, "%.0f %.0f float sum -1 %.6g %.6g %.6g 0\n", bytes, bytes / 4, time_s * 1e6,
            bytes / time_s * 1e-9, cost.bus_bytes / time_s * 1e-9);
    }
    fclose(out);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct diag diag = DIAG_INIT;
    if (!w || hw_load(&w->truth, CLUSTER, &w->arena, &diag) != STATUS_OK)
        return -1;
    snprintf(w->folder, sizeof w->folder, "/tmp/flopcast-logs-XXXXXX");
    if (!mkdtemp(w->folder))
        return -1;
    w->truth.node.nccl_efficiency.value = 0.65;
    w->truth.cluster.nccl_efficiency.value = 0.75;
    w->truth.cluster.nccl_net_latency.value = 9e-6;
    static const char *const names[] = {"one.txt", "two.txt", "eight.txt"};
    for (int i = 0; i < 3; i++)
        w->logs[i] = arena_printf(&w->arena, "%s/%s", w->folder, names[i]);
    write_log(w, w->logs[0], COLL_ALL_REDUCE, 8, 1, 0.01);
    write_log(w, w->logs[1], COLL_ALL_GATHER, 16, 2, 0.01);
    write_log(w, w->logs[2], COLL_ALL_REDUCE, 64, 8, 0.01);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++)
        unlink(w->logs[i]);
    int status = rmdir(w->folder);
    arena_release(&w->arena);
    free(w);
    return status;
}

static struct logs_request all_logs(const struct world *w)
{
    return (struct logs_request){.topology = CLUSTER, .logs = w->logs, .n_logs = 3};
}

/* Within three standard errors, and better than the files, which are 20 % and more off. */
static void check(struct quantity fitted, double truth)
{
    assert_int_equal(fitted.kind, QUANTITY_FITTED);
    assert_true(fitted.std_error > 0);
    assert_near(fitted.value, truth, fmin(3 * fitted.std_error, 0.1 * truth));
}

static void finds_what_the_logs_were_made_with(void **state)
{
    struct world *w = *state;
    struct logs_fit fit;
    struct diag diag = DIAG_INIT;
    struct logs_request request = all_logs(w);
    assert_int_equal(logs_fit_solve(&fit, &request, &w->arena, &diag), STATUS_OK);
    assert_int_equal(fit.nccl.cases.n, 3);
    check(fit.fitted.node.nccl_efficiency, 0.65);
    check(fit.fitted.cluster.nccl_efficiency, 0.75);
    check(fit.fitted.cluster.nccl_net_latency, 9e-6);
    for (int i = 0; i < 3; i++) {
        assert_true(fit.before.at[i].large.median > 0.05);
        assert_true(logs_case_error(&fit, i).large.median < 0.02); /* the scatter is 1 % */
    }
    /* what is not NCCL's reach stays */
    assert_int_equal(fit.fitted.node.nccl_channels.kind, fit.filed.node.nccl_channels.kind);
    assert_near(fit.fitted.node.nic_bandwidth.value, fit.filed.node.nic_bandwidth.value, 0);
    logs_fit_free(&fit);
}

static bool is_kept(const struct logs_fit *fit, const char *key, const char *file)
{
    for (int i = 0; i < fit->kept.n; i++) {
        const char *kept = fit->kept.at[i];
        if (strncmp(kept, key, strlen(key)) == 0 && strcmp(strrchr(kept, ' ') + 1, file) == 0)
            return true;
    }
    return false;
}

/* The log of one node says nothing of the network. */
static void keeps_what_the_logs_do_not_determine(void **state)
{
    struct world *w = *state;
    struct logs_fit fit;
    struct diag diag = DIAG_INIT;
    struct logs_request request = all_logs(w);
    request.n_logs = 1;
    assert_int_equal(logs_fit_solve(&fit, &request, &w->arena, &diag), STATUS_OK);
    check(fit.fitted.node.nccl_efficiency, 0.65);
    assert_true(is_kept(&fit, "nccl_efficiency", "cluster"));
    assert_true(is_kept(&fit, "nccl_net_latency", "cluster"));
    assert_false(is_kept(&fit, "nccl_efficiency", "node"));
    assert_near(
        fit.fitted.cluster.nccl_efficiency.value, fit.filed.cluster.nccl_efficiency.value, 0);
    assert_string_equal(
        fit.fitted.cluster.nccl_efficiency.source, fit.filed.cluster.nccl_efficiency.source);
    logs_fit_free(&fit);
}

/* A slow network is the network's, and nothing of the node's changes: no log is of one node. */
static void logs_of_several_nodes_are_of_the_network(void **state)
{
    struct world *w = *state;
    struct logs_fit fit;
    struct diag diag = DIAG_INIT;
    const char *log = arena_printf(&w->arena, "%s/slow.txt", w->folder);
    struct logs_request request = {.topology = CLUSTER, .logs = &log, .n_logs = 1};
    struct quantity good = w->truth.cluster.nccl_efficiency;
    w->truth.cluster.nccl_efficiency.value = 0.3;
    write_log(w, log, COLL_ALL_REDUCE, 16, 2, 0.01);
    w->truth.cluster.nccl_efficiency = good;
    assert_int_equal(logs_fit_solve(&fit, &request, &w->arena, &diag), STATUS_OK);
    check(fit.fitted.cluster.nccl_efficiency, 0.3);
    assert_true(is_kept(&fit, "nccl_efficiency", "node"));
    assert_true(is_kept(&fit, "nccl_hop_latency", "node"));
    assert_true(is_kept(&fit, "nccl_base_latency", "node"));
    logs_fit_free(&fit);
    unlink(log);
}

static void writes_files_that_load(void **state)
{
    struct world *w = *state;
    struct logs_fit fit;
    struct diag diag = DIAG_INIT;
    struct logs_request request = all_logs(w);
    struct hw back;
    const char *path = arena_printf(&w->arena, "%s/mine.yaml", w->folder);
    const char *node = arena_printf(&w->arena, "%s/mine-node.yaml", w->folder);
    assert_int_equal(logs_fit_solve(&fit, &request, &w->arena, &diag), STATUS_OK);
    assert_int_equal(logs_fit_write(&fit, &request, path, &w->arena, &diag), STATUS_OK);
    assert_int_equal(hw_load(&back, path, &w->arena, &diag), STATUS_OK);
    assert_string_equal(strrchr(back.cluster.node_path, '/'), "/mine-node.yaml");
    assert_near(back.node.nccl_efficiency.value, fit.fitted.node.nccl_efficiency.value, 1e-12);
    assert_near(
        back.cluster.nccl_net_latency.value, fit.fitted.cluster.nccl_net_latency.value, 1e-15);
    assert_string_equal(back.gpu.name, w->truth.gpu.name);

    /* Once more, from the written file to itself: it is read before it is written, and a log of the
     * same name whose figures are others changes what was fitted to it. */
    struct logs_fit again;
    request.topology = path;
    w->truth.node.nccl_efficiency.value = 0.5;
    write_log(w, w->logs[0], COLL_ALL_REDUCE, 8, 1, 0.01);
    assert_int_equal(logs_fit_solve(&again, &request, &w->arena, &diag), STATUS_OK);
    check(again.fitted.node.nccl_efficiency, 0.5);
    assert_int_equal(logs_fit_write(&again, &request, path, &w->arena, &diag), STATUS_OK);
    assert_int_equal(hw_load(&back, path, &w->arena, &diag), STATUS_OK);
    assert_near(back.node.nccl_efficiency.value, again.fitted.node.nccl_efficiency.value, 1e-12);
    logs_fit_free(&again);
    logs_fit_free(&fit);
    assert_int_equal(unlink(path) | unlink(node), 0);
}

/* Faster than the file's bandwidth allows, or slower than a file may say: the end of it, and not a
 * file that cannot be read. */
static void no_share_is_more_than_a_file_may_say(void **state)
{
    struct world *w = *state;
    struct logs_request request = all_logs(w);
    static const double shares[] = {1.2, 3e-4}, most_or_least[] = {1, 1e-3};
    const char *path = arena_printf(&w->arena, "%s/end.yaml", w->folder);
    const char *log = arena_printf(&w->arena, "%s/end.txt", w->folder);
    struct quantity before = w->truth.node.nccl_efficiency;
    request.logs = &log;
    request.n_logs = 1;
    for (int i = 0; i < 2; i++) {
        struct logs_fit fit;
        struct diag diag = DIAG_INIT;
        struct hw back;
        w->truth.node.nccl_efficiency.value = shares[i];
        write_log(w, log, COLL_ALL_REDUCE, 8, 1, 0.01);
        w->truth.node.nccl_efficiency = before;
        assert_int_equal(logs_fit_solve(&fit, &request, &w->arena, &diag), STATUS_OK);
        assert_near(fit.fitted.node.nccl_efficiency.value, most_or_least[i], 0);
        assert_true(logs_case_error(&fit, 0).large.median >
                    0.1); /* by that, and not by what the logs would have */
        assert_int_equal(logs_fit_write(&fit, &request, path, &w->arena, &diag), STATUS_OK);
        assert_int_equal(hw_load(&back, path, &w->arena, &diag), STATUS_OK);
        logs_fit_free(&fit);
    }
    assert_int_equal(
        unlink(path) | unlink(log) | unlink(arena_printf(&w->arena, "%s/end-node.yaml", w->folder)),
        0);
}

static void refusals(void **state)
{
    struct world *w = *state;
    struct logs_fit fit;
    struct logs_request request = all_logs(w);
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"# collective: gather\n# n_gpus: 8\n#  size count type redop root time algbw busbw "
         "#wrong\n1024 256 float sum -1 10 0.1024 0.0896 0\n",
            "is not modelled"},
        {"# collective: all_reduce\n# n_gpus: 12\n# n_nodes: 1\n#  size count type redop root time "
         "algbw busbw #wrong\n"
         "1024 256 float sum -1 10 0.1024 0.187733 0\n",
            "12 ranks on 1 node of 8 GPUs"},
        {"# collective: all_reduce\n# n_gpus: 8\n#  size count type redop root time algbw busbw "
         "#wrong\n1024 256 float sum -1 10 0.1024 0.1792 0\n",
            "determine none of the files' numbers"},
        {"hello\n", "no"},
    };
    const char *path = arena_printf(&w->arena, "%s/bad.txt", w->folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diag diag = DIAG_INIT;
        FILE *out = fopen(path, "w");
        fputs(cases[i].text, out);
        fclose(out);
        request.logs = &path;
        request.n_logs = 1;
        assert_int_equal(logs_fit_solve(&fit, &request, &w->arena, &diag), STATUS_INPUT);
        if (!strstr(diag.text, cases[i].says) || !strstr(diag.text, "bad.txt"))
            fail_msg("%s", diag.text);
        logs_fit_free(&fit);
    }
    unlink(path);
}

/* 16 H100 at half the busbw of NVLSTree: a hierarchical all_reduce, which NCCL has not, would take
 * as long (nccl#2409). */
static void nothing_is_explained_by_what_nccl_has_not(void **state)
{
    (void)state;
    double errors[COLL_ALGORITHM_COUNT];
    for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
        errors[a] = 0.4;
    errors[COLL_HIERARCHICAL] = 0.08;
    assert_int_equal(nccl_explaining(0.5, errors), COLL_ANY);
    errors[COLL_TREE] = 0.09;
    assert_int_equal(nccl_explaining(0.5, errors), COLL_TREE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_explained_by_what_nccl_has_not),
        cmocka_unit_test(finds_what_the_logs_were_made_with),
        cmocka_unit_test(keeps_what_the_logs_do_not_determine),
        cmocka_unit_test(logs_of_several_nodes_are_of_the_network),
        cmocka_unit_test(writes_files_that_load),
        cmocka_unit_test(no_share_is_more_than_a_file_may_say), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
