/* What NCCL's logs say it did (results/measured/nccl_channels.csv and nccl_picks.csv) is what it
 * does here: channels, and algorithm and protocol by size, of every machine that a cluster file
 * describes. Rows with an exception say why not. */
#include "coll/coll.h"
#include "coll/nccl.h"
#include "coll/tuner.h"
#include "config/csv.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"

#include <math.h>
#include <string.h>

#define MEASURED FLOPCAST_SOURCE_DIR "/results/measured/"

struct log_rows {
    struct csv_table *table;
    struct arena arena;
    struct diag diag;
    int compared, excepted;
};

static const char *cell(const struct log_rows *rows, int row, const char *column)
{
    assert_true(csv_column(rows->table, column) >= 0);
    return csv_cell(rows->table, row, csv_column(rows->table, column));
}

/* -1: empty */
static double number(struct log_rows *rows, int row, const char *column)
{
    double value;
    assert_int_equal(
        csv_number(rows->table, row, csv_column(rows->table, column), -1, &value, &rows->diag),
        STATUS_OK);
    return value;
}

static int find(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fail_msg("'%s' is not known", name);
    return -1;
}

/* The row's cluster with NCCL's own number of channels and the row's version. */
static struct hw load(struct log_rows *rows, int row)
{
    struct hw hw;
    const char *path = arena_printf(&rows->arena,
        FLOPCAST_SOURCE_DIR "/topologies/clusters/%s.yaml", cell(rows, row, "topology"));
    if (hw_load(&hw, path, &rows->arena, &rows->diag) != STATUS_OK)
        fail_msg("%s", rows->diag.text);
    const char *version = cell(rows, row, "version");
    if (*version)
        hw.cluster.nccl_version = find(hw_nccl_versions, version);
    if (strcmp(cell(rows, row, "nvls_off"), "off") == 0)
        hw.node.nvls_efficiency = (struct quantity){0};
    hw.cluster.nccl_channels = (struct quantity){0};
    return hw;
}

static struct coll_shape shape(struct log_rows *rows, int row)
{
    int nodes = (int)number(rows, row, "nodes"), ranks = (int)number(rows, row, "ranks");
    return (struct coll_shape){ranks, nodes, ranks / nodes};
}

static struct log_rows open_rows(const char *path)
{
    struct log_rows rows = {.arena = ARENA_INIT, .diag = DIAG_INIT};
    if (csv_load(&rows.table, path, &rows.diag) != STATUS_OK)
        fail_msg("%s", rows.diag.text);
    return rows;
}

static void close_rows(struct log_rows *rows)
{
    csv_release(rows->table);
    arena_release(&rows->arena);
}

/* An exception that is none any more, or a difference that is not excepted. */
static void compare(struct log_rows *rows, int row, bool same, const char *what)
{
    bool excepted = *cell(rows, row, "exception") != '\0';
    if (same == excepted)
        fail_msg("line %d, %s: %s%s", csv_pos(rows->table, row).line, cell(rows, row, "source"),
            what, excepted ? ", as logged: no exception" : "");
    rows->compared += !excepted;
    rows->excepted += excepted;
}

static void channels_are_as_logged(void **state)
{
    (void)state;
    struct log_rows rows = open_rows(MEASURED "nccl_channels.csv");
    for (int row = 0; row < csv_rows(rows.table); row++) {
        if (!*cell(&rows, row, "topology")) {
            assert_true(*cell(&rows, row, "exception"));
            continue;
        }
        struct hw hw = load(&rows, row);
        struct coll_shape group = shape(&rows, row);
        if (number(&rows, row, "nics") >= 0)
            hw.node.nics.value = number(&rows, row, "nics");
        double ring = fmax(nccl_search(group, &hw).channels, number(&rows, row, "min_channels"));
        double logged = number(&rows, row, "ring"), nvls = number(&rows, row, "nvls"),
               p2p = number(&rows, row, "p2p");
        bool same = logged < 0 || ring == logged;
        if (group.nodes == 1)
            same &= logged < 0 || hw.node.nccl_channels.value == logged;
        if (nvls > 0)
            same &= nccl_nvls_channels(group.nodes > 1, &hw) == nvls;
        hw.cluster.nccl_channels = (struct quantity){.value = ring, .kind = QUANTITY_ASSUMED};
        double sends = nccl_p2p(COLL_SEND_RECV, 1e6, group, &hw).all_channels;
        same &= p2p < 0 || sends == p2p;
        compare(&rows, row, same,
            arena_printf(&rows.arena,
                "%g channels (%g in the node's file), %g of NVLS, %g of sends", ring,
                hw.node.nccl_channels.value, nccl_nvls_channels(group.nodes > 1, &hw), sends));
    }
    assert_int_equal(rows.compared, 37);
    assert_int_equal(rows.excepted, 1);
    close_rows(&rows);
}

static void choices_are_as_logged(void **state)
{
    (void)state;
    struct log_rows rows = open_rows(MEASURED "nccl_picks.csv");
    for (int row = 0; row < csv_rows(rows.table); row++) {
        struct hw hw = load(&rows, row);
        struct coll_shape group = shape(&rows, row);
        if (*cell(&rows, row, "nic_bandwidth")) {
            assert_string_equal(cell(&rows, row, "nic_bandwidth"), "200 Gb/s");
            hw.node.nic_bandwidth.value = 25e9;
        }
        struct coll_force force = COLL_FREE;
        if (*cell(&rows, row, "force_protocol"))
            force.protocol = find(coll_protocol_names, cell(&rows, row, "force_protocol"));
        enum coll_kind kind = (enum coll_kind)find(coll_kind_names, cell(&rows, row, "collective"));
        double bytes = number(&rows, row, "bytes"), printed_us = number(&rows, row, "estimate_us"),
               estimate_s;
        struct coll_cost cost = coll_nccl_choice(kind, bytes, group, &hw, force);
        int algorithm = find(coll_algorithm_names, cell(&rows, row, "algorithm"));
        int protocol = find(coll_protocol_names, cell(&rows, row, "protocol"));
        compare(&rows, row, (int)cost.algorithm == algorithm && (int)cost.protocol == protocol,
            arena_printf(&rows.arena, "%g bytes: %s, %s", bytes,
                coll_algorithm_names[cost.algorithm], coll_protocol_names[cost.protocol]));
        const struct coll_query query = {kind, (enum coll_protocol)protocol, bytes, group, &hw};
        if (printed_us < 0)
            continue;
        assert_true(nccl_estimate(&estimate_s, &query, (enum coll_algorithm)algorithm));
        if (fabs(estimate_s * 1e6 / printed_us - 1) > 1e-3)
            fail_msg("%g bytes: %g us, NCCL printed %g", bytes, estimate_s * 1e6, printed_us);
    }
    assert_int_equal(rows.compared, csv_rows(rows.table) - 1);
    assert_int_equal(rows.excepted, 1);
    close_rows(&rows);
}

/* NCCL 2.30 on 8 H200, the table that it prints: latency and bandwidth of the message's bytes (a
 * study of H200, row of nccl_picks.csv; to its digits). Of a tree the bandwidth is that before the
 * correction by size, which is 1 at 1 TiB. */
static void estimates_are_those_that_nccl_prints(void **state)
{
    (void)state;
    static const struct {
        enum coll_algorithm algorithm;
        enum coll_protocol protocol;
        double latency_us, GBps;
    } printed[] = {{COLL_TREE, COLL_LL, 15.2, 43.6}, {COLL_TREE, COLL_LL128, 31.5, 128.8},
        {COLL_TREE, COLL_SIMPLE, 64.4, 165.6}, {COLL_RING, COLL_LL, 15.0, 80.6},
        {COLL_RING, COLL_LL128, 40.6, 189.3}, {COLL_RING, COLL_SIMPLE, 56.0, 205.7},
        {COLL_NVLS, COLL_SIMPLE, 25.0, 272.0}};
    struct hw hw;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/h200-8x400g.yaml", &arena, &diag),
        STATUS_OK);
    hw.cluster.nccl_version = find(hw_nccl_versions, "2.30");
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        double small_s, large_s;
        struct coll_query query = {COLL_ALL_REDUCE, printed[i].protocol, 0x1p-20, {8, 1, 8}, &hw};
        assert_true(nccl_estimate(&small_s, &query, printed[i].algorithm));
        query.bytes = 0x1p40;
        assert_true(nccl_estimate(&large_s, &query, printed[i].algorithm));
        assert_near(small_s * 1e6, printed[i].latency_us, 0.06);
        assert_near(0x1p40 / (large_s - small_s) / 1e9, printed[i].GBps, 0.06);
    }
    arena_release(&arena);
}

/* aws-ofi-nccl's regions, vertices as its source has them: on 64 ranks of p5 a tree of LL128 up to
 * 117 MB, rings of LL128 to 2.1 GB, then of Simple. Between 32 (37.7 MB) and 64 ranks the bound is
 * a straight line of logarithms: on 48 ranks 37.7 (117 / 37.7)^(log(1.5) / log(2)) = 73.1 MB. Not
 * on two nodes. */
static void aws_has_its_own_tuner(void **state)
{
    (void)state;
    struct hw hw;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/aws-p5-efa.yaml", &arena, &diag),
        STATUS_OK);
    static const struct {
        int ranks;
        double bytes;
        enum coll_algorithm algorithm;
        enum coll_protocol protocol;
    } regions[] = {{64, 116e6, COLL_TREE, COLL_LL128}, {64, 118e6, COLL_RING, COLL_LL128},
        {64, 2.2e9, COLL_RING, COLL_SIMPLE}, {48, 73.0e6, COLL_TREE, COLL_LL128},
        {48, 73.2e6, COLL_RING, COLL_LL128}, {256, 400e6, COLL_NVLS_TREE, COLL_SIMPLE}};
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        struct coll_shape group = {regions[i].ranks, regions[i].ranks / 8, 8};
        struct coll_cost cost =
            coll_nccl_choice(COLL_ALL_REDUCE, regions[i].bytes, group, &hw, COLL_FREE);
        assert_int_equal(cost.algorithm, regions[i].algorithm);
        assert_int_equal(cost.protocol, regions[i].protocol);
    }
    struct coll_force force;
    struct coll_query two = {COLL_ALL_REDUCE, COLL_SIMPLE, 1e6, {16, 2, 8}, &hw};
    assert_false(nccl_aws_choice(&force, &two));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_are_as_logged),
        cmocka_unit_test(choices_are_as_logged),
        cmocka_unit_test(estimates_are_those_that_nccl_prints),
        cmocka_unit_test(aws_has_its_own_tuner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
