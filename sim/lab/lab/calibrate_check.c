/* flopcast calibrate check LOG: a log of nccl-tests beside the prediction for its cluster, and a
 * verdict.
 *
 * Order: the cluster's file, the log, then what NCCL says of its settings (the log itself or
 * --nccl-debug) goes into the hardware, then --set over that, so the user has the last word.
 * What a file of NCCL_DEBUG says overwrites what the log says, and its algorithm and protocol
 * are forced unless an option forces others. The verdict is left out where the log's GPUs are
 * not the cluster's. --format gives the rows alone. */
#include "lab/log_options.h"
#include "options/command.h"
#include "options/given.h"
#include "rows/rows.h"
#include "rows/words.h"

#include "base/files.h"
#include "calibrate/nccl_check.h"

#include <math.h>
#include <string.h>

COMMAND(calibrate_check, 48, "calibrate check", 0,
    "compare a log of nccl-tests, or a trace, with what is predicted",
    "all_reduce_perf -b 1M -e 1G -f 2 -g 8 >all_reduce.log &&\n"
    "flopcast calibrate check all_reduce.log --topology h100-8x400g");

struct check_command {
    const char *log, *topology, *nccl_debug, *db;
    enum records_format format;
    struct nccl_options nccl;
    struct coll_force force;
    struct overrides overrides;
};

static const struct command_option calibrate_check_options[] = {
    {"topology", "FILE", "The cluster that the log is of: a file of topologies/clusters",
        OPTION_TEXT, AT(check_command, topology)},
    RECORDS_OPTION(struct check_command),
    LOG_OPTIONS("Of the log: ", struct check_command),
    {"db", "PATH", "Store the comparison in this database, for `flopcast plot check`", OPTION_TEXT,
        AT(check_command, db)},
    FORCE_OPTIONS(struct check_command, force),
    {"nccl-debug", "FILE",
        "What NCCL printed with NCCL_DEBUG=INFO, where the log does not hold it; what it says of "
        "channels, NVLS and its version is predicted with",
        OPTION_TEXT, AT(check_command, nccl_debug)},
    {"set", "KEY=VALUE",
        "A number of the cluster, its node or its GPU for this command, as "
        "cluster.nccl_channels=24",
        OPTION_SET, AT(check_command, overrides)},
    {0},
};

static void calibrate_check_given(void *self, struct argp_state *state)
{
    const struct check_command *command = self;
    if (!command->log || !command->topology)
        argp_error(state, "a log and --topology are needed");
}

static void print_median(
    FILE *out, const char *sizes, const struct nccl_check *check, double min, double max)
{
    struct fit_error error = nccl_check_error(check, min, max);
    if (error.n > 0)
        fprintf(out, "median error over %d size%s %s: %.1f %%\n", error.n, plural(error.n), sizes,
            100 * error.median);
}

static void calibrate_check_fill(struct rows *rows, const struct nccl_checked *row)
{
    double predicted_s = coll_isolated_s(row->predicted), error = predicted_s / row->measured_s - 1;
    rows_next(rows);
    rows_real(rows, COLUMN("bytes", "bytes"), true, row->bytes);
    rows_real(
        rows, COLUMN("measured_us", "measured", "us", .digits = 1), true, row->measured_s * 1e6);
    rows_real(
        rows, COLUMN("predicted_us", "predicted", "us", .digits = 1), true, predicted_s * 1e6);
    rows_real(rows, COLUMN(NULL, "error", "%", 100, 1, .sign = true), true, error);
    if (fabs(error) > TABLE_FAR_OFF)
        rows_mark(rows, TABLE_DOUBTFUL);
    rows_real(rows, COLUMN(NULL, "measured", "busbw, GB/s", 1e-9, 2), true,
        row->predicted.bus_bytes / row->measured_s);
    rows_real(rows, COLUMN(NULL, "predicted", "busbw, GB/s", 1e-9, 2), true,
        row->predicted.bus_bytes / predicted_s);
    rows_text(
        rows, COLUMN("algorithm", "algorithm"), coll_algorithm_names[row->predicted.algorithm]);
    rows_text(rows, COLUMN("protocol", "protocol"), coll_protocol_names[row->predicted.protocol]);
}

static void calibrate_check_print_table(FILE *out, const struct nccl_check *check,
    const struct rows *rows, const char *gpu, struct arena *arena)
{
    static const double MiB = 0x1p20, KiB = 0x1p10;
    fprintf(out, "%s, %d ranks on %d node%s", check->collective, check->ranks, check->nodes,
        plural(check->nodes));
    if (check->logged_nodes > check->nodes)
        fprintf(out, " (the log's %d are hosts)", check->logged_nodes);
    fputs("\n\n", out);
    if (check->as_said) {
        words_paragraph(
            out, arena_printf(arena, "predicted with what NCCL says: %s", check->as_said));
        fputc('\n', out);
    }
    const char *verdict = nccl_check_verdict(check, arena);
    if (check->other_gpu)
        fprintf(out, "the log's GPUs are %s, the cluster's %s: is --topology the right one?\n\n",
            check->other_gpu, gpu);
    else if (verdict) {
        words_paragraph(out, verdict);
        fputc('\n', out);
    }
    rows_print(out, rows, RECORDS_TABLE);
    fputc('\n', out);
    print_median(out, "of 1 MiB and more", check, MiB, HUGE_VAL);
    print_median(out, "below 64 KiB", check, 0, 64 * KiB);
    double large = nccl_check_error(check, MiB, HUGE_VAL).median; /* 0 without sizes */
    if (!check->other_gpu && large > TABLE_FAR_OFF &&
        nccl_explaining(large, check->errors) == COLL_ANY)
        words_paragraph(out, "if this is what the cluster can do, and not a fault:\n"
                             "flopcast calibrate fit nccl LOG... --topology FILE --out MINE.yaml");
}

static enum status calibrate_check_store_check(const struct check_command *command,
    const struct nccl_check *check, const struct hw *hw, struct diag *diag)
{
    struct store *store = NULL;
    enum status status = store_open(&store, command->db, STORE_WRITE, diag);
    if (status == STATUS_OK)
        status = nccl_check_store(check, command->log, command->topology, hw, store, diag);
    store_close(store);
    return status;
}

/* What NCCL says of its settings goes into hw; --set has the last word. */
static enum status calibrate_check_predict(struct nccl_check *check, struct check_command *command,
    struct nccl_log *log, struct hw *hw, const struct hw_sources *sources, struct arena *arena,
    struct diag *diag)
{
    enum status status = STATUS_OK;
    if (command->nccl_debug) {
        log->said.algorithm = log->said.protocol = NULL; /* the log's own are its rows' */
        status = nccl_settings_read(&log->said, command->nccl_debug, arena, diag);
        if (command->force.algorithm == COLL_ANY)
            command->force.algorithm = fit_find_name(coll_algorithm_names, log->said.algorithm);
        if (command->force.protocol == COLL_ANY)
            command->force.protocol = fit_find_name(coll_protocol_names, log->said.protocol);
    }
    if (status != STATUS_OK)
        return status;
    const struct collective_measurement *first = &log->rows.at[0];
    const char *from = command->nccl_debug ? command->nccl_debug : command->log;
    if (!log->said.version)
        log->said.version = log->about.nccl_version;
    const char *as_said =
        nccl_settle(hw, &log->said, nccl_nodes(first->ranks, first->nodes, hw), from, arena, diag);
    status = given_cluster(
        hw, sources, command->overrides.list.at, command->overrides.list.n, arena, diag);
    if (status == STATUS_OK)
        status = nccl_check(check, log, command->log, hw, command->force, arena, diag);
    check->as_said = as_said;
    return status;
}

int calibrate_check(int argc, char **argv)
{
    const struct command_line line = {.options = calibrate_check_options,
        .one = "log",
        AT(check_command, log),
        .check = calibrate_check_given,
        .common = COMMON_TABLE,
        .args_doc = "LOG\ntrace FILE",
        .doc = "Compare a log of nccl-tests (text or JSON, also gzipped) with what is predicted "
               "for the cluster; or, with `trace`, a training run's own trace with what is "
               "predicted for its scenario ('flopcast calibrate check trace --help')."};
    struct check_command command = {.force = COLL_FREE};
    command_line_parse(&line, argc, argv, &command);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    struct hw_sources sources;
    struct nccl_log log = {0};
    struct nccl_check check = {0};
    command.topology = files_find(&arena, FILES_CLUSTERS, command.topology);
    enum status status = hw_load_from(&hw, &sources, command.topology, &arena, &diag);
    if (status == STATUS_OK)
        status = nccl_load(&log, command.log, &command.nccl, &arena, &diag);
    if (status == STATUS_OK)
        status = calibrate_check_predict(&check, &command, &log, &hw, &sources, &arena, &diag);
    struct rows rows = {0};
    for (int i = 0; i < check.rows.n && status == STATUS_OK; i++)
        calibrate_check_fill(&rows, &check.rows.at[i]);
    if (status == STATUS_OK && command.format != RECORDS_TABLE)
        rows_print(stdout, &rows, command.format);
    else if (status == STATUS_OK)
        calibrate_check_print_table(stdout, &check, &rows, hw.gpu.name, &arena);
    rows_free(&rows);
    if (status == STATUS_OK && command.db)
        calibrate_check_store_check(&command, &check, &hw, &diag);
    vec_free(&log.rows);
    vec_free(&check.rows);
    hw_sources_free(&sources);
    overrides_free(&command.overrides);
    arena_release(&arena);
    return cli_report(&diag);
}
