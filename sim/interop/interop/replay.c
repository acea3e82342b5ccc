/* `flopcast replay`: a folder of Chakra traces simulated on a cluster (exchange/replay.h), and
 * the tables of its step and collectives, which `trace scale` prints, too.
 *
 * What is subtle: in CSV and JSON the step is a row of kind "step" before those of collectives;
 * people get it as a table above. */
#include "options/arguments.h"
#include "options/command.h"
#include "options/given.h"
#include "interop/replay.h"
#include "rows/rows.h"
#include "rows/words.h"

#include "base/files.h"
#include <argp.h>
#include <stdio.h>

COMMAND(cmd_replay, 32, "replay", 0, "simulate a workload of Chakra traces, as ASTRA-sim takes it",
    "flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --chakra traces &&\n"
    "flopcast replay traces --topology dgx-1v-ib");

struct replay_command {
    struct replay_options replay;
    const char *topology;
    enum records_format format;
    struct overrides overrides;
};

static void replay_check(void *self, struct argp_state *state)
{
    const struct replay_command *command = self;
    if (!command->topology)
        argp_error(state, "--topology NAME is needed: the cluster that the workload runs on");
}

static const struct command_option replay_options[] = {
    {"topology", "FILE", "The cluster: a file of topologies/clusters; always needed", OPTION_TEXT,
        AT(replay_command, topology)},
    {"groups", "FILE",
        "JSON with the ranks of each group (default: comm_group*.json of the folder)", OPTION_TEXT,
        AT(replay_command, replay.groups)},
    {"roofline", NULL,
        "Compute nodes take what their num_ops and tensor_size take on this GPU, not the durations "
        "that they state",
        OPTION_FLAG, AT(replay_command, replay.roofline)},
    {"set", "KEY=VALUE",
        "A number of the cluster, its node or its GPU for this command, as "
        "cluster.node.nic_bandwidth=800Gb/s",
        OPTION_SET, AT(replay_command, overrides)},
    RECORDS_OPTION(struct replay_command),
    {0},
};

static void print_step(const struct replay *replay, const struct hw *hw)
{
    const struct exec_breakdown *b = &replay->exec.breakdown;
    struct table table = {0};
    table_row(&table);
    table_number(&table, "ranks", "", 0, replay->ranks);
    table_number(&table, "nodes", "", 0, replay->nodes);
    table_number(&table, "FLOP", "/rank", 0, replay->flop / replay->ranks);
    table_number(&table, "step", "ms", 6, replay->exec.step_time_s * 1e3);
    table_number(&table, "compute", "ms", 6, b->compute_s * 1e3);
    table_number(&table, "exposed comm", "ms", 6, (b->exposed_comm_s + b->other_idle_s) * 1e3);
    if (b->bubble_s > 0)
        table_number(&table, "bubble", "ms", 6, b->bubble_s * 1e3);
    table_number(&table, "comm", "ms", 6, b->comm_s * 1e3);
    printf("%s\n\n", hw->cluster.name);
    table_finish(stdout, &table);
}

/* A row of collectives, or (comm NULL) for programs that of the step, which has no kind. */
static void replay_fill(
    struct rows *rows, const struct replay *replay, const struct replay_comm *comm)
{
    const struct exec_result *exec = &replay->exec;
    bool is_comm = comm != NULL;
    const struct replay_comm step = {
        .ranks = replay->ranks, .count = 1, .time_s = exec->step_time_s};
    comm = is_comm ? comm : &step;
    rows_next(rows);
    rows_text(rows, COLUMN("kind", "kind"), is_comm ? coll_kind_names[comm->kind] : "step");
    rows_real(rows, COLUMN("ranks", "ranks"), true, comm->ranks);
    rows_real(rows, COLUMN("bytes", "bytes"), is_comm, comm->bytes);
    rows_real(rows, COLUMN("count", "count"), true, comm->count);
    rows_real(rows, COLUMN("time_s", "time", "us", 1e6, 2), true, comm->time_s);
    rows_real(rows, COLUMN("compute_s"), !is_comm, exec->breakdown.compute_s);
    rows_real(rows, COLUMN("comm_s"), !is_comm, exec->breakdown.comm_s);
    rows_real(rows, COLUMN("flop"), !is_comm, replay->flop);
    rows_real(rows, COLUMN(NULL, "algbw", "GB/s", 1e-9, 2), true, comm->bytes / comm->time_s);
    rows_text(rows, COLUMN("algorithm", "algorithm"),
        is_comm ? coll_algorithm_names[comm->algorithm] : NULL);
    rows_text(
        rows, COLUMN("protocol", "protocol"), is_comm ? coll_protocol_names[comm->protocol] : NULL);
    rows_text(rows, COLUMN(NULL, "bound by"), is_comm ? coll_bound_names[comm->bound] : NULL);
}

void replay_print_comm(const struct replay *replay, const char *head, enum records_format format)
{
    struct rows rows = {0};
    if (format != RECORDS_TABLE)
        replay_fill(&rows, replay, NULL);
    else if (replay->n_comm > 0)
        fputs(head, stdout);
    for (int i = 0; i < replay->n_comm; i++)
        replay_fill(&rows, replay, &replay->comm[i]);
    rows_finish(stdout, &rows, format);
}

int cmd_replay(int argc, char **argv)
{
    const struct command_line line = {.options = replay_options,
        .check = replay_check,
        .common = COMMON_TABLE,
        .args_doc = "FOLDER",
        .one = "folder",
        AT(replay_command, replay.folder),
        .missing = "a folder of Chakra traces is missing",
        .doc = "Simulate a workload of Chakra execution traces, NAME.0.et, NAME.1.et and so on, "
               "one a rank, as ASTRA-sim takes it, on a cluster.\v"
               "`flopcast run --chakra FOLDER` writes such traces. Collectives are NCCL's on this "
               "cluster; compute nodes take the durations that they state, or with --roofline "
               "those of the GPU. Memory is not simulated. Times of collectives are means, from "
               "when their last member has come."};
    struct replay_command command = {0};
    command_line_parse(&line, argc, argv, &command);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    struct hw_sources sources;
    struct replay replay;
    words_progress("replay", "runs", 0, 1);
    command.topology = files_find(&arena, FILES_CLUSTERS, command.topology);
    if (hw_load_from(&hw, &sources, command.topology, &arena, &diag) == STATUS_OK &&
        given_cluster(&hw, &sources, command.overrides.list.at, command.overrides.list.n, &arena,
            &diag) == STATUS_OK &&
        replay_run(&replay, &command.replay, &hw, &arena, &diag) == STATUS_OK) {
        words_progress("replay", "runs", 1, 1);
        if (command.format == RECORDS_TABLE)
            print_step(&replay, &hw);
        replay_print_comm(
            &replay, "\ncollectives and messages of all ranks, alike together:\n", command.format);
    }
    hw_sources_free(&sources);
    overrides_free(&command.overrides);
    arena_release(&arena);
    return cli_report(&diag);
}
