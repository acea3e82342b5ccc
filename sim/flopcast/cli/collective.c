/* `flopcast collective`: a collective alone on a cluster, printed as nccl-tests prints it.
 *
 * study/collective.h costs the sizes. Output of nccl-tests' form can be read back by the reader of
 * its logs (import/nccl_text.c), so its lines and columns follow the original, with the program's
 * name and the list of ranks. */
#include "base/files.h"
#include "options/arguments.h"
#include "cli/cli.h"
#include "options/given.h"
#include "rows/rows.h"
#include "study/collective.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

COMMAND(cmd_collective, 28, "collective", 0, "predict a collective as nccl-tests prints it",
    "flopcast collective all_reduce --topology h100-8x400g \\\n    --gpus 64 --bytes 1M:1G");

enum { ELEMENT_BYTES = 4 /* float, what nccl-tests takes by default */, MAX_SIZES = 10000 };
enum { LISTED_GPUS = 16 }; /* more are not listed one by one */
enum format { FORMAT_NCCL_TESTS, FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };
static const char *const format_names[] = {"nccl-tests", "table", "csv", "json", NULL};

struct collective_command {
    const char *topology, *group;
    struct collective asked; /* kind -1: not said yet */
    enum format format;
    struct overrides overrides;
};

static void take_mesh(void *self, const struct argument *argument)
{
    const char *wrong = collective_set_mesh(self, argument->text);
    if (wrong)
        argp_error(argument->state, "--mesh %s: %s", argument->text, wrong);
}

/* Usage errors exit. */
static void check_mesh(struct collective_command *command, struct argp_state *state)
{
    struct collective_ranks *ranks = &command->asked.ranks;
    if (ranks->mesh.ranks == 0 && !command->group)
        return;
    if (ranks->mesh.ranks == 0 || !command->group)
        argp_error(state, "--mesh and --group belong together, as in --mesh tp=8,dp=16 --group dp");
    if (ranks->gpus > 0 || ranks->nodes > 0)
        argp_error(state, "--mesh says how many ranks there are, which fill the nodes one by one; "
                          "leave --gpus and --nodes out");
    const char *wrong = collective_set_group(ranks, command->group);
    if (wrong)
        argp_error(state, "--group %s: %s", command->group, wrong);
}

/* A size with nccl-tests' suffix K, M, G or T, powers of 1024, also in small letters; nccl-tests
 * does not look at what is behind it, so MB and MiB are M; *end after it. */
static double parse_size(const char *text, char **end)
{
    static const char suffixes[] = "KMGT";
    double value = strtod(text, end);
    const char *suffix = **end ? strchr(suffixes, toupper((unsigned char)**end)) : NULL;
    if (suffix) {
        value = ldexp(value, 10 * (int)(suffix - suffixes + 1));
        (*end)++;
    }
    if (suffix && **end == 'i' && (*end)[1] == 'B')
        (*end)++;
    if (**end == 'B')
        (*end)++;
    return floor(value);
}

static void take_bytes(void *self, const struct argument *argument)
{
    struct collective *asked = self;
    const char *arg = argument->text;
    char *end = NULL;
    asked->min_bytes = asked->max_bytes = parse_size(arg, &end);
    asked->factor = 2;
    if (*end == ':')
        asked->max_bytes = parse_size(end + 1, &end);
    if (*end == ':')
        asked->factor = strtod(end + 1, &end);
    if (*end || !(asked->min_bytes >= 1) || !(asked->max_bytes >= asked->min_bytes) ||
        !(asked->max_bytes <= 0x1p53) || !(asked->factor > 1) ||
        log(asked->max_bytes / asked->min_bytes) / log(asked->factor) > MAX_SIZES)
        argp_error(argument->state,
            "--bytes %s: MIN[:MAX[:FACTOR]] is wanted, as in 8:8G:2: bytes with or without K, M, G "
            "or T, MAX at least MIN, FACTOR above 1",
            arg);
}

/* The name of a collective, or of nccl-tests' program for it, with or without '_': alltoall,
 * all_reduce_perf. */
static bool is_kind(const char *text, const char *name)
{
    for (; *name; name++) {
        if (*name == '_')
            continue;
        text += *text == '_';
        if (*text++ != *name)
            return false;
    }
    return !*text || strcmp(text, "_perf") == 0;
}

static void take_kind(void *self, const struct argument *argument)
{
    struct collective *asked = &((struct collective_command *)self)->asked;
    if (asked->kind >= 0)
        argp_error(
            argument->state, "one collective at a time; '%s' is a second one", argument->text);
    for (asked->kind = 0; asked->kind < COLL_KIND_COUNT; asked->kind++)
        if (is_kind(argument->text, coll_kind_names[asked->kind]))
            return;
    argp_error(argument->state,
        "'%s' is no collective; there are: all_reduce, all_gather, reduce_scatter, broadcast, "
        "reduce, all_to_all, send_recv",
        argument->text);
}

static void cli_collective_check(void *self, struct argp_state *state)
{
    struct collective_command *command = self;
    const struct collective *asked = &command->asked;
    if (asked->kind < 0)
        argp_error(state, "a collective is missing, as in: flopcast collective all_reduce");
    check_mesh(command, state);
    if (!command->topology || asked->ranks.gpus == 0 || !(asked->min_bytes > 0))
        argp_error(state, "--topology FILE, --gpus N (or --mesh) and --bytes SIZE are needed");
    if (asked->ranks.gpus == 1)
        argp_error(state, "--gpus 1: a collective takes two");
}

static const struct command_option collective_options[] = {
    {"topology", "FILE", "The cluster: a file of topologies/clusters; always needed", OPTION_TEXT,
        AT(collective_command, topology)},
    {"gpus", "N", "The number of ranks, node by node; needed, or --mesh", OPTION_COUNT,
        AT(collective_command, asked.ranks.gpus), .most = COLLECTIVE_MAX_RANKS},
    {"mesh", "AXES", "The ranks as a grid, neighbours first, as tp=8,cp=2,dp=16,pp=4", OPTION_TAKE,
        AT(collective_command, asked.ranks), .take = take_mesh},
    {"group", "AXIS",
        "With --mesh: all groups of this axis (tp, cp, ep, dp, pp; cp+dp: of both together) run at "
        "the same time, as in training",
        OPTION_TEXT, AT(collective_command, group)},
    {"nodes", "N",
        "The number of nodes, with equally many ranks on each (default: the fewest that hold them)",
        OPTION_COUNT, AT(collective_command, asked.ranks.nodes), .most = COLLECTIVE_MAX_RANKS},
    {"bytes", "MIN[:MAX[:FACTOR]]",
        "Sizes, as nccl-tests has -b, -e and -f: 8:8G is 8 B to 8 GiB by 2 (K, M, G, T, also MB or "
        "MiB: powers of 1024, as there); always needed",
        OPTION_TAKE, AT(collective_command, asked), .take = take_bytes},
    {"degraded-links", "LIST",
        "Shares of links that are left, as in a scenario's cluster.degraded_links: "
        "node0.nic*.out=50 %",
        OPTION_TEXT, AT(collective_command, asked.degraded)},
    {"set", "KEY=VALUE",
        "A number of the cluster, its node or its GPU for this command, as "
        "cluster.node.nic_bandwidth=800Gb/s",
        OPTION_SET, AT(collective_command, overrides)},
    {"format", "FORMAT",
        "nccl-tests (default), or table, csv or json, with algorithm and protocol of each size",
        OPTION_NAME, AT(collective_command, format), .names = format_names},
    FORCE_OPTIONS(struct collective_command, asked.force),
    {0},
};

/* The ranks of all groups of a mesh. */
static void print_mesh_ranks(const struct collective *asked, const struct hw *hw)
{
    const struct collective_ranks *ranks = &asked->ranks;
    int gpus = hw_gpus_per_node(hw),
        groups = mesh_group_instances(&ranks->group, ranks->mesh.ranks);
    if (ranks->mesh.ranks <= LISTED_GPUS)
        for (int rank = 0; rank < ranks->mesh.ranks; rank++)
            printf("#  Rank %2d Group %2d Pid %6d on  node-%04d device %2d [0000:%02x:00] %s\n",
                rank % ranks->group.period / ranks->group.stride,
                mesh_group_instance(&ranks->group, rank), rank + 1, rank / gpus, rank % gpus,
                rank % gpus, hw->gpu.name);
    else
        printf("# gpu: %s\n# n_nodes: %d\n# n_gpus: %d\n", hw->gpu.name, ranks->nodes, ranks->gpus);
    printf("# %d group%s of %d GPUs, %d apart, all at the same time\n", groups, plural(groups),
        ranks->gpus, ranks->group.stride);
}

/* The ranks as nccl-tests lists them; of many what a reader needs of them (import/nccl.c). */
static void collective_print_ranks(const struct collective *asked, const struct hw *hw)
{
    if (asked->ranks.mesh.ranks > 0) {
        print_mesh_ranks(asked, hw);
        return;
    }
    int per_node = asked->ranks.gpus / asked->ranks.nodes,
        apart = hw_gpus_per_node(hw) / per_node; /* fabric/isolated.h */
    if (asked->ranks.gpus > LISTED_GPUS) {
        printf("# gpu: %s\n# n_nodes: %d\n# n_gpus: %d\n", hw->gpu.name, asked->ranks.nodes,
            asked->ranks.gpus);
        return;
    }
    for (int rank = 0; rank < asked->ranks.gpus; rank++) {
        int device = rank % per_node * (asked->ranks.nodes > 1 ? apart : 1);
        printf("#  Rank %2d Group  0 Pid %6d on  node-%04d device %2d [0000:%02x:00] %s\n", rank,
            rank + 1, rank / per_node, device, device, hw->gpu.name);
    }
}

/* The banner of nccl-tests. The program is named as theirs, so that a reader knows the collective.
 */
static void print_banner(const struct collective *asked, const struct hw *hw)
{
    static const char *const programs[COLL_KIND_COUNT] = {"all_reduce", "all_gather",
        "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"};
    printf("# Collective test starting: %s_perf\n", programs[asked->kind]);
    printf("# nThread 1 nGpus 1 minBytes %.0f maxBytes %.0f step: %g(factor) warmup iters: 0 "
           "iters: 1 agg iters: 1 validation: 0 graph: 0\n#\n# Using devices\n",
        asked->min_bytes, asked->max_bytes, asked->factor);
    collective_print_ranks(asked, hw);
    if (asked->force.algorithm != COLL_ANY)
        printf("# NCCL_ALGO=%s\n", coll_algorithm_names[asked->force.algorithm]);
    if (asked->force.protocol != COLL_ANY)
        printf("# NCCL_PROTO=%s\n", coll_protocol_names[asked->force.protocol]);
    printf("#\n# %54s %33s\n", "out-of-place", "in-place");
    printf("# %10s %12s %9s %7s %7s %8s %7s %7s %6s %8s %7s %7s %6s\n", "size", "count", "type",
        "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
    printf("# %10s %12s %9s %7s %7s %8s %7s %7s %6s %8s %7s %7s\n", "(B)", "(elements)", "", "", "",
        "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)");
}

/* Out of place and in place are one prediction, so both blocks are the same. Counts are per rank
 * where nccl-tests has them so. */
static void collective_print_row(
    const struct collective *asked, double bytes, struct coll_cost cost)
{
    enum coll_kind kind = (enum coll_kind)asked->kind;
    bool shared = kind == COLL_ALL_GATHER || kind == COLL_REDUCE_SCATTER || kind == COLL_ALL_TO_ALL;
    bool reduces = kind == COLL_ALL_REDUCE || kind == COLL_REDUCE_SCATTER || kind == COLL_REDUCE;
    bool rooted = kind == COLL_BROADCAST || kind == COLL_REDUCE;
    double time_us = coll_isolated_s(cost) * 1e6;
    char block[64];
    snprintf(block, sizeof block, "%8.*f %7.2f %7.2f %6s", time_us < 1e4 ? 2 : 1, time_us,
        bytes / time_us * 1e-3, cost.bus_bytes / time_us * 1e-3, "N/A");
    printf("%12.0f %12.0f %9s %7s %7d %s %s\n", bytes,
        floor(bytes / ELEMENT_BYTES / (shared ? asked->ranks.gpus : 1)), "float",
        reduces ? "sum" : "none", rooted ? 0 : -1, block, block);
}

/* "channels", "network, leaf0.up0" */
static const char *collective_bound_words(const struct collective_size *row, struct arena *arena)
{
    enum coll_bound bound = coll_bound(&row->cost);
    bool of_link = *row->link && bound != COLL_BOUND_LATENCY;
    return arena_printf(arena, "%s%s%s", coll_bound_names[bound], of_link ? ", link " : "",
        of_link ? row->link : "");
}

static void collective_fill(
    struct rows *rows, const struct collective_size *row, struct arena *arena)
{
    double time_s = coll_isolated_s(row->cost);
    enum coll_bound bound = coll_bound(&row->cost);
    rows_next(rows);
    rows_real(rows, COLUMN("bytes", "bytes"), true, row->bytes);
    rows_real(rows, COLUMN("time_us", "time", "us", .digits = 1), true, time_s * 1e6);
    rows_real(
        rows, COLUMN("algbw_GBps", "algbw", "GB/s", .digits = 2), true, row->bytes / time_s * 1e-9);
    rows_real(rows, COLUMN("busbw_GBps", "busbw", "GB/s", .digits = 2), true,
        row->cost.bus_bytes / time_s * 1e-9);
    rows_text(rows, COLUMN("algorithm", "algorithm"), coll_algorithm_names[row->cost.algorithm]);
    rows_text(rows, COLUMN("protocol", "protocol"), coll_protocol_names[row->cost.protocol]);
    rows_text(rows, COLUMN("bound_by"), coll_bound_names[bound]);
    rows_text(rows, COLUMN("link"), bound == COLL_BOUND_LATENCY || !*row->link ? NULL : row->link);
    rows_text(rows, COLUMN(NULL, "bound by"), collective_bound_words(row, arena));
}

static void collective_print_rows(
    const struct collective_size *predicted, int n, enum format format, struct arena *arena)
{
    static const enum records_format formats[] = {
        [FORMAT_TABLE] = RECORDS_TABLE, [FORMAT_CSV] = RECORDS_CSV, [FORMAT_JSON] = RECORDS_JSON};
    struct rows rows = {0};
    for (int i = 0; i < n; i++)
        collective_fill(&rows, &predicted[i], arena);
    rows_print(stdout, &rows, formats[format]);
    rows_free(&rows);
}

/* The bounds, one line for neighbouring sizes of the same bound. Lines behind the table, which
 * readers of nccl-tests skip. */
static void print_bounds(const struct collective_size *rows, int n, struct arena *arena)
{
    for (int i = 0, end; i < n; i = end) {
        const char *words = collective_bound_words(&rows[i], arena);
        for (end = i + 1; end < n && strcmp(words, collective_bound_words(&rows[end], arena)) == 0;)
            end++;
        char sizes[64], most[64] = "more than half of the time is hops and steps";
        snprintf(sizes, sizeof sizes, end > i + 1 ? "%.0f to %.0f B" : "%.0f B", rows[i].bytes,
            rows[end - 1].bytes);
        if (coll_bound(&rows[i].cost) != COLL_BOUND_LATENCY)
            snprintf(most, sizeof most, "busbw tends to %.1f GB/s",
                rows[end - 1].cost.max_rate_Bps * 1e-9);
        printf("# Bound by %-11s : %s: %s\n", words, sizes, most);
    }
}

static void print_nccl_tests(const struct collective *asked, const struct hw *hw,
    const struct collective_size *rows, int n, struct arena *arena)
{
    double busbw_sum = 0;
    print_banner(asked, hw);
    for (int i = 0; i < n; i++) {
        collective_print_row(asked, rows[i].bytes, rows[i].cost);
        busbw_sum += rows[i].cost.bus_bytes / coll_isolated_s(rows[i].cost);
    }
    printf("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %g\n", busbw_sum / n * 1e-9);
    print_bounds(rows, n, arena);
    fputs("#\n", stdout);
}

static enum status collective_print(
    struct collective_command *command, const struct hw *hw, struct arena *arena, struct diag *diag)
{
    struct collective_sizes sizes = {0};
    enum status status = collective_predict(&sizes, &command->asked, hw, arena, diag);
    if (status == STATUS_OK && command->format != FORMAT_NCCL_TESTS)
        collective_print_rows(sizes.list.at, sizes.list.n, command->format, arena);
    else if (status == STATUS_OK)
        print_nccl_tests(&command->asked, hw, sizes.list.at, sizes.list.n, arena);
    vec_free(&sizes.list);
    return status;
}

int cmd_collective(int argc, char **argv)
{
    const struct command_line line = {.options = collective_options,
        .take = take_kind,
        .check = cli_collective_check,
        .common = COMMON_TABLE,
        .args_doc = "KIND",
        .doc =
            "Predict an isolated collective on a cluster, and print it as nccl-tests does. KIND is "
            "all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all or send_recv, "
            "or the name of nccl-tests' program: alltoall_perf.\vWith --mesh and --group it is "
            "done by all groups of an axis of parallelism at once, which share the nodes' NICs: "
            "--mesh tp=8,dp=16 --group dp is 8 groups of 16 GPUs, one on each node. "
            "Algorithm and protocol are NCCL's choice for each size, unless --algo and --proto "
            "force them. Bound by: what limits it (NVLink, NIC, channels, ...), or latency if that "
            "is more than half of the time. The network is that of the cluster file, with its "
            "switches if it has a section 'network' (see 'flopcast help clusters')."};
    struct collective_command command = {.asked = {.kind = -1, .force = COLL_FREE}};
    command_line_parse(&line, argc, argv, &command);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    struct hw_sources sources;
    command.topology = files_find(&arena, FILES_CLUSTERS, command.topology);
    if (hw_load_from(&hw, &sources, command.topology, &arena, &diag) == STATUS_OK &&
        given_cluster(&hw, &sources, command.overrides.list.at, command.overrides.list.n, &arena,
            &diag) == STATUS_OK)
        collective_print(&command, &hw, &arena, &diag);
    hw_sources_free(&sources);
    overrides_free(&command.overrides);
    arena_release(&arena);
    return cli_report(&diag);
}
