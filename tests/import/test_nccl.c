/* Logs of nccl-tests in the forms that its versions and its users give them. Figures are made up so
 * that algbw is size over time and busbw is algbw times the factor of doc/PERFORMANCE.md: 1,000,000
 * B in 100 us are 10 GB/s; all-reduce on 4 ranks 15, on 8 ranks 17.5; all-gather on 4 ranks 7.5. */
#include "import/nccl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct reading {
    struct nccl_log log;
    struct arena arena;
    struct diag diag;
    enum status status;
};

static struct reading *read_with(const char *text, size_t n, const struct nccl_options *options)
{
    static struct reading r;
    r = (struct reading){0};
    struct input *input = input_open_text("x.log", text, n);
    r.status = nccl_read(&r.log, input, options, &r.arena, &r.diag);
    assert_int_equal(r.status == STATUS_OK, r.diag.n_errors == 0);
    input_close(input);
    return &r;
}

static struct reading *read_text(const char *text)
{
    return read_with(text, strlen(text), &(struct nccl_options){0});
}

static void done(struct reading *r)
{
    vec_free(&r->log.rows);
    arena_release(&r->arena);
}

static const struct collective_measurement *only_row(const struct reading *r)
{
    assert_string_equal(r->diag.text, "");
    assert_int_equal(r->log.rows.n, 1);
    return &r->log.rows.at[0];
}

static void assert_refused(const char *text, const char *expected)
{
    struct reading *r = read_text(text);
    assert_int_equal(r->status, STATUS_INPUT);
    if (!strstr(r->diag.text, expected))
        fail_msg("'%s' is not in: %s", expected, r->diag.text);
    done(r);
}

#define HEAD "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
#define HEAD_NODES                                                                                 \
    "# nodes size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
#define HEAD_OLD "# size count type redop time algbw busbw error time algbw busbw error\n"
#define ROW "1000000 250000 float sum -1 100.0 10.00 15.00 0 200.0 5.00 7.50 N/A\n"

static void whole_log(void **state)
{
    (void)state;
    struct reading *r = read_text(
        "mpirun -x NCCL_PROTO=Simple ./build/all_reduce_perf -b 8 -e 1M -f 2\n"
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: "
        "20\n"
        "#\n# Using devices\n"
        "#  Rank  0 Group  0 Pid   11 on  node-a device  0 [0000:19:00] NVIDIA H100 80GB HBM3\n"
        "#  Rank  1 Group  0 Pid   12 on  node-a device  1 [0000:2d:00] NVIDIA H100 80GB HBM3\n"
        "#  Rank  2 Group  0 Pid   11 on  node-b device  0 [0x19] NVIDIA H100 80GB HBM3\n"
        "#  Rank  3 Group  0 Pid   12 on  node-b device  1 [0x2d] NVIDIA H100 80GB HBM3\n"
        "NCCL version 2.23.4+cuda12.6\n"
        "#                                                 out-of-place                "
        "in-place\n" HEAD "#  (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n"
        "0 0 float sum -1 0.13 0.00 0.00 0 0.12 0.00 0.00 0\n"
        "node-a:11:11 [0] NCCL INFO Launch mode Parallel\n" ROW
        "2000000 500000 float sum -1 2e+02 10.00 15.00 3 200.0 10.00 15.00 0\n"
        "# Out of bounds values : 1 FAILED\n# Avg bus bandwidth    : 11.25\n");
    const struct collective_measurement *row = only_row(r);
    assert_string_equal(row->collective, "all_reduce");
    assert_int_equal(row->bytes, 1000000);
    assert_int_equal(row->ranks, 4);
    assert_int_equal(row->nodes, 2);
    assert_null(row->algorithm);
    assert_string_equal(row->protocol, "Simple");
    assert_string_equal(row->dtype, "float");
    assert_true(row->out_of_place_s == 100 * 1e-6 && row->in_place_s == 200 * 1e-6);
    assert_int_equal(row->position, 15);
    assert_int_equal(r->log.empty, 1);
    assert_int_equal(r->log.wrong, 1);
    assert_string_equal(r->log.about.gpu, "NVIDIA H100 80GB HBM3");
    assert_string_equal(r->log.about.nccl_version, "2.23.4+cuda12.6");
    assert_true(r->log.ended);
    done(r);
}

/* The columns of all versions, launchers' labels, and what people add. Each line is one row of 4
 * ranks. */
static void forms_of_rows(void **state)
{
    static const char *const forms[] = {
        /* before 2.11: "error" is the largest deviation; no root */
        HEAD_OLD "1000000 250000 float sum 100.0 10.00 15.00 4e-07 200.0 5.00 7.50 N/A\n",
        "size count type time algbw busbw error time algbw busbw error\n"
        "1000000 250000 float 100.0 10.00 15.00 N/A 200.0 5.00 7.50 N/A\n",
        /* redop is a column, and blank */
        HEAD_OLD "1000000 250000 float 100.0 10.00 15.00 0 200.0 5.00 7.50 0\n",
        HEAD "1000000 250000 bfloat16 100.0 10.00 15.00 0 200.0 5.00 7.50 0\n",
        /* mpirun --tag-output, srun --label, an indented quotation */
        "[1,0]<stdout>:" HEAD "[1,0]<stdout>:     " ROW,
        "[1,0]<stdout>:# " HEAD "[1,0]<stdout>:" ROW,
        /* a rank that prints a row in parts has its tag within it, too */
        "[0] #" HEAD
        "[0]  1000000 250000 float sum -1[0]   100.0 10.00 15.00      0[0]   200.0 5.00 7.50 0\n",
        "[1,0]<stdout>:" HEAD "[1,0]<stdout>:1000000 250000 float sum -1[1,0]<stdout>: 100.0 10.00 "
        "15.00 0 200.0 5.00 7.50 0\n",
        "0: " HEAD "0: " ROW,
        "   > " HEAD "   > " ROW,
        /* -I 1; a timestamp */
        "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
        "busbw #wrong i_min i_max i_p99 i_cv%\n1000000 250000 float sum -1 100.0 10.00 15.00 0 90 "
        "120 119 1.5 200.0 5.00 7.50 0 1 2 3 4\n",
        HEAD
        "1000000 250000 float sum -1 100.0 10.00 15.00 0 200.0 5.00 7.50 0 2025-11-21 01:02:03\n",
        /* narrow columns */
        HEAD "1000000 250000 float sum -1 1e+02 10 15.0 0 2e+02 5 7.50 0\n",
    };
    const struct nccl_options options = {.collective = "all_reduce", .ranks = 4};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct reading *r = read_with(forms[i], strlen(forms[i]), &options);
        const struct collective_measurement *row = only_row(r);
        assert_int_equal(row->bytes, 1000000);
        assert_true(row->out_of_place_s == 100 * 1e-6 && row->in_place_s == 200 * 1e-6);
        assert_int_equal(row->nodes, 0);
        done(r);
    }
    struct reading *r =
        read_text("# collective: all_reduce\n" HEAD
                  "1000000 250000 float sum -1 100.0 10.00 15.00 0 N/A N/A N/A N/A\n");
    assert_true(only_row(r)->in_place_s == 0);
    done(r);
}

static void comments(void **state)
{
    (void)state;
    struct reading *r =
        read_text("# source: a page\n# collective: alltoall\n# gpu: not stated\n# n_nodes: 1 (as "
                  "the text says)\n# n_gpus: 4\n"
                  "# network: IB\n# algo: default\n# proto: Simple (OFI plugin)\n# env: "
                  "NCCL_ALGO=Ring\n# healthy: n\n"
                  "# partial: y\n# note: odd\n" HEAD
                  "1000000 62500 float none -1 100.0 10.00 7.50 0 100.0 10.00 7.50 0\n");
    const struct collective_measurement *row = only_row(r);
    assert_string_equal(row->collective, "all_to_all");
    assert_int_equal(row->ranks, 4);
    assert_int_equal(row->nodes, 1);
    assert_string_equal(row->algorithm, "Ring");
    assert_string_equal(row->protocol, "Simple");
    assert_string_equal(r->log.about.source, "a page");
    assert_string_equal(r->log.about.network, "IB");
    assert_string_equal(r->log.about.note, "odd");
    assert_null(r->log.about.gpu);
    assert_true(r->log.about.unhealthy && r->log.about.partial && !r->log.ended);
    done(r);
    /* A choice among several is none; a byte that is no UTF-8 does not reach the database. */
    r = read_text("# collective: all_reduce\n# algo: Ring,Tree\n# gpu: H\xff\x01\n" HEAD ROW);
    assert_null(only_row(r)->algorithm);
    assert_string_equal(r->log.about.gpu, "H??");
    done(r);
}

/* busbw / algbw of an all-reduce is 2 (n - 1) / n: 1.5 on 4 ranks, 1.75 on 8. */
static void ranks_from_bandwidths(void **state)
{
    (void)state;
    struct reading *r = read_text("# collective: all_reduce\n" HEAD ROW);
    assert_int_equal(only_row(r)->ranks, 4);
    done(r);
    r = read_text("# collective: all_reduce\n# n_nodes: 1-2\n# n_gpus: 4-8\n" HEAD_NODES "1 " ROW
                  "2 1000000 250000 float sum -1 100.0 10.00 17.50 0 200.0 5.00 8.75 N/A\n");
    assert_string_equal(r->diag.text, "");
    assert_int_equal(r->log.rows.at[0].ranks, 4);
    assert_int_equal(r->log.rows.at[0].nodes, 1);
    assert_int_equal(r->log.rows.at[1].ranks, 8);
    assert_int_equal(r->log.rows.at[1].nodes, 2);
    done(r);
    /* An excerpt of the list of ranks is not taken for the whole. */
    r = read_text("all_reduce_perf\n# Rank 0 Group 0 Pid 1 on a device 0 [0x00] H100\n# Rank 3 "
                  "Group 0 Pid 4 on b device 1 [0x00] H100\n" HEAD ROW);
    assert_int_equal(only_row(r)->ranks, 4);
    assert_int_equal(only_row(r)->nodes, 0);
    done(r);
    assert_refused("# collective: broadcast\n" HEAD
                   "1000000 250000 float sum 0 100.0 10.00 10.00 0 100.0 10.00 10.00 0\n",
        "x.log:3:1: error: how many ranks ran is not in the file; say it with --ranks");
    assert_refused(
        "# collective: all_reduce\n" HEAD /* no number of ranks has twice the bandwidth */
        "1000000 250000 float sum -1 100.0 10.00 30.00 0 100.0 10.00 30.00 0\n",
        "busbw is larger against algbw than all_reduce has it");
    assert_refused(
        "# collective: all_reduce\n# n_gpus: 8\n" HEAD ROW, "those of 4 ranks, not of 8");
    assert_refused("# collective: all_reduce\n# n_gpus: 1\n" HEAD ROW, "not of 1");
    assert_refused("# collective: all_reduce\n# n_gpus: -4\n" HEAD ROW,
        "x.log:2:1: error: '-4' is no whole number from 1");
    assert_refused(
        "# collective: all_reduce\n# n_nodes: 0\n" HEAD ROW, "'0' is no whole number from 1");
    assert_refused("# collective: all_reduce\n# n_gpus: 9999999999\n" HEAD ROW,
        "'9999999999' is no whole number");
}

static void several_runs(void **state)
{
    (void)state;
    struct reading *r = read_text(
        "NCCL_ALGO=Tree ./all_reduce_perf\n# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n"
        "# Rank 0 Pid 1 on a device 0 [0x00] H100\n# Rank 1 Pid 1 on a device 1 [0x00] H100\n"
        "# Rank 2 Pid 1 on b device 0 [0x00] H100\n# Rank 3 Pid 1 on b device 1 [0x00] H100\n" HEAD
            ROW "# Avg bus bandwidth : 1\n./all_gather_perf\n# nThread 1 nGpus 1 minBytes 8 "
        "maxBytes 8\n" HEAD "1000000 62500 float none -1 100.0 10.00 7.50 0 100.0 10.00 7.50 0\n");
    assert_string_equal(r->diag.text, "");
    assert_int_equal(r->log.rows.n, 2);
    assert_string_equal(r->log.rows.at[0].collective, "all_reduce");
    assert_string_equal(r->log.rows.at[0].algorithm, "Tree");
    assert_int_equal(r->log.rows.at[0].nodes, 2);
    assert_string_equal(r->log.rows.at[1].collective, "all_gather");
    assert_null(r->log.rows.at[1].algorithm);
    assert_int_equal(r->log.rows.at[1].nodes, 0); /* the list was of the other run */
    done(r);
    assert_refused("all_reduce_perf and all_gather_perf\n" HEAD ROW, "say which with --collective");
    assert_refused("all_gather_perf\n" HEAD ROW,
        "busbw is larger against algbw than all_gather has it on any number");
    assert_refused(HEAD ROW, "x.log:1:1: error: which collective this is");
}

static void broken_text(void **state)
{
    static const struct {
        const char *row, *expected;
    } cases[] = {
        {"1000000 250000 float sum -1 100.0 10.00 15.00 0 200.0 5.00\n", "is the row whole?"},
        {"1000000 250000 float sum -1 100.0 10.00 15.00 0\n", "6 values behind the type"},
        {"1000000 250000 float sum -1 100.0 10.00 15.00 0 200.0 5.00 7.50\n",
            "9 values behind the type"},
        {"1000000 250000 flo", "x.log:3:1: error: this row is cut"},
        {"1000000 25", "this row is cut"},
        {"10000", "this row is cut"},
        {"0: 1000000 250000 flo", "this row is cut"}, /* behind a label */
        {"0: 10000", "this row is cut"},
        {"1000000 250000 float sum -1 fast 10.00 15.00 0 200.0 5.00 7.50 0\n",
            "'fast' where a number or N/A is wanted"},
        {"1000000 250000 float sum -1 100.0 12.00 18.00 0 200.0 5.00 7.50 0\n",
            "are 10.00 GB/s, not algbw 12.00"},
        {"1000000 250000 float sum -1 0 10.00 15.00 0 200.0 5.00 7.50 0\n", "a time of 0 us"},
        {"1000000 250000 float sum -1 N/A N/A N/A N/A N/A N/A N/A N/A\n", "no time in this row"},
        {"99999999999999999999 250000 float sum -1 1 1 1 0 1 1 1 0\n", "this row is cut"},
        {"0 0 float sum -1 0.1 0 0 0 0.1 0 0 0\n", "no row of figures that can be used"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "# collective: all_reduce\n%s%s", HEAD, cases[i].row);
        assert_refused(text, cases[i].expected);
    }
    assert_refused("", "no figures of nccl-tests in it");
    assert_refused("a letter\n", "no figures of nccl-tests in it");
    assert_refused(
        "# collective: all_reduce\n" ROW, "x.log:2:1: error: figures before any column names");
    assert_refused(
        "# collective: all_reuce\n" HEAD ROW, "'all_reuce' is no collective of nccl-tests");
    assert_refused("# gpu: A\n# gpu: B\n# collective: all_reduce\n" HEAD ROW,
        "x.log:2:1: error: a second value");
    assert_refused(
        "# collective: all_reduce\n# size count type redop root cputime algbw busbw #wrong\n"
        "1000000 250000 float sum -1 100.0 10.00 15.00 0\n",
        "CPU times (-C 1)");
    struct reading *r = read_with("ELF\0\1\2", 6, &(struct nccl_options){0});
    assert_int_equal(r->status, STATUS_INPUT);
    assert_non_null(strstr(r->diag.text, "x.log:1:1: error: a NUL byte"));
    done(r);
    char *wide = malloc(1 << 20);
    memset(wide, 'x', 1 << 20);
    r = read_with(wide, 1 << 20, &(struct nccl_options){0});
    assert_non_null(strstr(r->diag.text, "a line of more than 65536 bytes"));
    done(r);
    free(wide);
}

#define DEVICES                                                                                    \
    "\"config\": {\"devices\": [{\"rank\": 0, \"group\": 0, \"hostname\": \"a\", "                 \
    "\"device_info\": \"H100\"},"                                                                  \
    " {\"rank\": 1, \"group\": 0, \"hostname\": \"a\", \"device_info\": \"H100\"},"                \
    " {\"rank\": 2, \"group\": 0, \"hostname\": \"b\", \"device_info\": \"H100\"},"                \
    " {\"rank\": 3, \"group\": 0, \"hostname\": \"b\", \"device_info\": \"H100\"}]}"
#define RESULT_HEAD                                                                                \
    "{\"size\": 1000000, \"count\": 250000, \"type\": \"float\", \"redop\": \"sum\", \"root\": "   \
    "\"    -1\","

static void json_versions(void **state)
{
    (void)state;
    struct reading *r = read_text(
        " {\"version\": 3, \"start_time\": \"2026-07-01 00:00:00\",\n"
        "  \"args\": [\"/opt/all_reduce_perf\", \"-b\", \"sendrecv_perf\"],\n"
        "  \"env\": [\"TOKEN=secret\", \"NCCL_ALGO=NVLS\", \"PS1=\\ud83d\\ude00\"], "
        "\"nccl_version\": 22809, " DEVICES ",\n"
        "  \"results\": [" RESULT_HEAD "\n"
        "    \"out_of_place\": {\"time\": 100.0, \"alg_bw\": 10.0, \"bus_bw\": 15.0, \"nwrong\": "
        "\"N/A\"},\n"
        "    \"out_of_place_per_iter\": {\"min_us\": 99, \"times_us\": [99, 101]},\n"
        "    \"in_place\": null, \"actual_iterations\": 20},\n" RESULT_HEAD
        "    \"out_of_place\": null, \"in_place\": {\"time\": 200, \"alg_bw\": \"nan\", "
        "\"bus_bw\": \"nan\", \"nwrong\": 0}},\n"
        "    {\"size\": 0, \"type\": \"float\", \"out_of_place\": {\"time\": 1}},\n" RESULT_HEAD
        "    \"in_place\": {\"time\": 100, \"nwrong\": 7}}],\n"
        "  \"out_of_bounds\": {\"count\": 0, \"okay\": \"true\"}, \"errors\": [], \"end_time\": "
        "\"2026-07-01 00:00:09\"}\n");
    assert_string_equal(r->diag.text, "");
    assert_int_equal(r->log.rows.n, 2);
    assert_int_equal(r->log.empty, 1);
    assert_int_equal(r->log.wrong, 1);
    const struct collective_measurement *row = &r->log.rows.at[0];
    assert_string_equal(row->collective, "all_reduce");
    assert_string_equal(row->algorithm, "NVLS");
    assert_int_equal(row->ranks, 4);
    assert_int_equal(row->nodes, 2);
    assert_true(row->out_of_place_s == 100 * 1e-6 && row->in_place_s == 0);
    assert_true(row[1].out_of_place_s == 0 && row[1].in_place_s == 200 * 1e-6);
    assert_string_equal(r->log.about.nccl_version, "2.28.9");
    assert_string_equal(r->log.about.gpu, "H100");
    assert_true(r->log.ended);
    done(r);
    r = read_text("{\"version\": 1, \"args\": [\"reduce_scatter_perf\"], \"nccl_version\": 2708, "
                  "\"results\": [" RESULT_HEAD
                  "\"out_of_place\": {\"time\": 100, \"alg_bw\": 10, \"bus_bw\": 7.5}}]}");
    assert_int_equal(only_row(r)->ranks, 4); /* (n - 1) / n = 0.75 */
    assert_string_equal(r->log.about.nccl_version, "2.7.8");
    assert_false(r->log.ended);
    done(r);
}

static void broken_json(void **state)
{
    (void)state;
    assert_refused("{\"version\": 4}", "file format version 4; this flopcast knows 1 to 3");
    assert_refused(
        "{\"version\": 3,\n \"results\": [\n", "x.log:3:1: error: parse error: premature EOF");
    assert_refused("{\"version\": 3,\n  oops}", "x.log:2:");
    assert_refused("{}", "no figures of nccl-tests in it");
    assert_refused(
        "{\"args\": [\"all_reduce_perf\"], \"results\": [{\"size\": -1, \"type\": \"float\"}]}",
        "'-1' is no size");
    assert_refused(
        "{\"results\": [{\"size\": 8, \"type\": \"flat\"}]}", "'flat' is no number format");
    assert_refused("{\"results\": [{\"size\": 8}]}", "a result without size and type");
    assert_refused("{\"results\": [{\"out_of_place\": {\"time\": \"fast\"}}]}",
        "'fast' is no number for time");
    assert_refused("{\"results\": [{\"out_of_place\": {\"cpu_time\": 3}}]}", "CPU times");
    assert_refused("{\"results\": [[[[{\"size\": 8}]]]]}", "a result without size and type");
    char deep[200] = "{\"a\":";
    memset(deep + 5, '[', 100);
    assert_refused(deep, "nested more than 64 levels deep");
    char *huge = malloc(40 << 20);
    memset(huge, 'x', 40 << 20);
    huge[0] = '{';
    huge[1] = '"';
    struct reading *r = read_with(huge, 40 << 20, &(struct nccl_options){0});
    assert_int_equal(r->status, STATUS_INPUT);
    done(r);
    free(huge);
}

static struct nccl_settings said(const char *lines)
{
    static struct arena arena;
    struct nccl_settings out = {0};
    arena_release(&arena);
    char *text = arena_strdup(&arena, lines), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        nccl_settings_line(&out, line, &arena);
    return out;
}

/* Lines in the forms of logs of 2.8 to 2.27 in public issues. */
static void what_nccl_says_of_itself(void **state)
{
    (void)state;
    struct nccl_settings s =
        said("node1:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
             "NCCL version 2.26.2+cuda12.8\n"
             "node1:1:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB "
             "[2]mlx5_2:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
             "node1:1:9 [0] NCCL INFO Using network IB\n"
             "node1:1:9 [0] NCCL INFO Channel 00/16 :    0   7   6   5   4   3   2   1   8\n"
             "node1:1:9 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
             "node1:1:9 [0] NCCL INFO Channel 01/0 : 7[7] -> 6[6] via P2P/CUMEM\n"
             "node1:1:9 [0] NCCL INFO 16 coll channels, 16 collnet channels, 16 nvls channels, 16 "
             "p2p channels, 2 p2p channels per peer\n");
    assert_int_equal(s.channels, 16);
    assert_false(s.channels_differ);
    assert_string_equal(s.version, "2.26.2");
    assert_int_equal(s.nics, 3);
    assert_int_equal(s.rdma, NCCL_ON);
    assert_int_equal(s.gpudirect, NCCL_ON);
    assert_int_equal(s.nvls, NCCL_ON);

    s = said("a:1:2 [0] NCCL INFO 8 coll channels, 0 nvls channels, 8 p2p channels, 1 p2p channels "
             "per peer\n"
             "a:1:2 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/Socket/0\n"
             "a:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring.\n"
             "a:1:2 [1] NCCL INFO 24 coll channels, 0 nvls channels, 32 p2p channels, 32 p2p "
             "channels per peer\n");
    assert_true(s.channels_differ);
    assert_int_equal(s.nvls, NCCL_OFF);
    assert_int_equal(s.rdma, NCCL_OFF);
    assert_string_equal(s.algorithm, "Ring");

    s = said("# env: NCCL_MIN_CTAS=24 NCCL_NVLS_ENABLE=0 NCCL_P2P_DISABLE=1 NCCL_NET_GDR_LEVEL=LOC "
             "NCCL_MAX_NCHANNELS=x");
    assert_int_equal(s.min_channels, 24);
    assert_int_equal(s.max_channels, 0);
    assert_int_equal(s.channels, 0);
    assert_int_equal(s.nvls, NCCL_OFF);
    assert_int_equal(s.p2p, NCCL_OFF);
    assert_int_equal(s.gpudirect, NCCL_OFF);

    /* InfiniBand without GPUDirect; a socket that only bootstraps; numbers that are none */
    s = said("a:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
             "a:1:2 [0] NCCL INFO Channel 00/0 : 1[7] -> 2[0] [receive] via NET/IB/0\n"
             "RCCL version 2.18.3\nNCCL INFO  coll channels, 99999999999999 coll channels, Channel "
             "00/\nNCCL INFO Channel 0");
    assert_int_equal(s.rdma, NCCL_ON);
    assert_int_equal(s.gpudirect, NCCL_OFF);
    assert_int_equal(s.channels, 0);
    assert_null(s.version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_log), cmocka_unit_test(forms_of_rows),
        cmocka_unit_test(comments), cmocka_unit_test(ranks_from_bandwidths),
        cmocka_unit_test(several_runs), cmocka_unit_test(broken_text),
        cmocka_unit_test(json_versions), cmocka_unit_test(broken_json),
        cmocka_unit_test(what_nccl_says_of_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
