/* `flopcast trace scale`: a real step, from traces of one or several ranks, on any number of
 * GPUs of a cluster.
 *
 * Traces are loaded, each GPU in a file being a rank, and one run as traced finds how long
 * kernels take alone (exchange/trace_alone.h). Each line is then a plan for that number of GPUs
 * (exchange/trace_plan.h), executed with the cluster's noise, and with --samples again on
 * clusters drawn from the standard errors of its numbers.
 *
 * What is subtle: recorded kernels and host times already hold what the traced GPU did, so
 * another GPU scales them by class, and --traced-gpu must be the trace's; PCI bandwidth is the
 * node's and no GPU file's, so copies stay as traced. Only rank 0 is traced in the result, and
 * only the slowest ranks are simulated, unless ranks within stages were traced. */
#include "options/arguments.h"
#include "options/command.h"
#include "options/given.h"
#include "interop/replay.h"
#include "rows/rows.h"
#include "rows/words.h"

#include "base/files.h"
#include "exchange/trace_alone.h"
#include "hw/draw.h"
#include "scenario/sample.h"

#include <argp.h>
#include <math.h>
#include <gsl/gsl_statistics_double.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

COMMAND(trace_scale, 54, "trace scale", 0, "run a traced step on any number of GPUs of a cluster",
    "flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --trace r0.json.gz &&\n"
    "flopcast trace scale r0.json.gz --topology dgx-1v-ib --gpus 8,64");

struct scale_command {
    const char *topology, *gpu, *traced_gpu, *db;
    int device, step, seed, top, samples;
    bool recorded, quiet;
    VEC(int) gpus;
    VEC(const char *) files;
    VEC(const char *) sharded;
    VEC(const char *) fixed;
    enum records_format format;
    struct overrides overrides;
    int done; /* runs, for who waits */
};

/* Of the ranks; trace->rank is set of all. */
struct traces {
    VEC(struct trace) list;
    VEC(struct traced_rank) ranks;
    const char *gpu;    /* of the first; NULL: not said */
    bool ranks_assumed; /* of collectives, in one of them */
    bool by_device,
        by_order; /* a rank is the number of a GPU in its file, or the place of its file */
};

/* A line: the step on a number of GPUs. */
struct scaled {
    struct trace_planned planned;
    struct replay replay;
    double low_s, high_s; /* 5 and 95 % of samples */
};

enum {
    MOST_GPUS = 1 << 20,
    MOST_STEPS = 1 << 30,
    MOST_TOP = 1000,
    MEASURED_STEPS = 5,
    LEAST_SAMPLES = 10
};

static void trace_scale_take_number(void *member, const struct argument *argument)
{
    char *end = NULL;
    long number = strtol(argument->text, &end, 10);
    if (*argument->text < '0' || *argument->text > '9' || *end || number > MOST_STEPS)
        argp_error(argument->state, "--%s %s: a number from 0 on is wanted", argument->option,
            argument->text);
    *(int *)member = (int)number;
}

static void take_gpus(void *self, const struct argument *argument)
{
    struct scale_command *command = self;
    for (const char *at = argument->text;;) {
        char *end = NULL;
        long gpus = strtol(at, &end, 10);
        if (*at < '0' || *at > '9' || gpus < 1 || gpus > MOST_GPUS || (*end != ',' && *end != '\0'))
            argp_error(argument->state, "--gpus %s: numbers of GPUs are wanted, as in 8,64,512",
                argument->text);
        vec_push(&command->gpus, (int)gpus);
        if (*end == '\0')
            return;
        at = end + 1;
    }
}

static void trace_scale_take_file(void *self, const struct argument *argument)
{
    vec_push(&((struct scale_command *)self)->files, argument->text);
}

static void take_sharded(void *self, const struct argument *argument)
{
    vec_push(&((struct scale_command *)self)->sharded, argument->text);
}

static void take_fixed(void *self, const struct argument *argument)
{
    vec_push(&((struct scale_command *)self)->fixed, argument->text);
}

static void trace_scale_check(void *self, struct argp_state *state)
{
    const struct scale_command *command = self;
    if (command->files.n == 0)
        argp_error(state, "a trace is missing");
    if (!command->topology)
        argp_error(state, "--topology NAME is needed: the cluster that the step is to run on");
    if (command->samples > 0 && command->samples < LEAST_SAMPLES)
        argp_error(state, "--samples %d: %d at least are wanted; fewer say nothing of 5 and 95 %%",
            command->samples, LEAST_SAMPLES);
}

static const struct command_option trace_scale_options[] = {
    {"topology", "FILE", "The cluster: a file of topologies/clusters; always needed", OPTION_TEXT,
        AT(scale_command, topology)},
    {"gpus", "N,...", "On how many GPUs, multiples of those of the trace (default: as many)",
        OPTION_TAKE, .take = take_gpus},
    {"step", "N", "Of several steps: number N, as in ProfilerStep#N", OPTION_TAKE,
        AT(scale_command, step), .take = trace_scale_take_number},
    {"device", "N", "Of several GPUs in a file: which one (default: all, each a rank)", OPTION_TAKE,
        AT(scale_command, device), .take = trace_scale_take_number},
    {"sharded", "TEXT",
        "Kernels with this text in their names work on a shard, no others (default: as collectives "
        "let see); may be repeated",
        OPTION_TAKE, .take = take_sharded, .flags = OPTION_LIST},
    {"fixed", "GROUP",
        "A process group that does not grow, by name or description; may be repeated", OPTION_TAKE,
        .take = take_fixed, .flags = OPTION_LIST},
    {"gpu", "FILE", "The GPUs of the cluster are these: a file of topologies/gpus", OPTION_TEXT,
        AT(scale_command, gpu)},
    {"traced-gpu", "FILE",
        "The GPU of the trace (default: the cluster's); on others kernels are scaled by class",
        OPTION_TEXT, AT(scale_command, traced_gpu)},
    {"recorded", NULL, "Collectives take the time that they took, which checks the plan alone",
        OPTION_FLAG, AT(scale_command, recorded)},
    {"quiet", NULL, "Nothing varies: no jitter, all GPUs equally fast", OPTION_FLAG,
        AT(scale_command, quiet)},
    {"seed", "N", "Of what varies (default: 1)", OPTION_TAKE, AT(scale_command, seed),
        .take = trace_scale_take_number},
    {"samples", "K",
        "Draw the cluster's numbers K times, 10 at least, from their errors: 5 to 95 % of the step "
        "(default: not)",
        OPTION_SAMPLES, AT(scale_command, samples)},
    {"top", "N", "Show the N longest collectives of the last line (default: 8)", OPTION_COUNT,
        AT(scale_command, top), .most = MOST_TOP},
    {"set", "KEY=VALUE",
        "A number of the cluster, its node or its GPU for this command, as "
        "cluster.node.nic_bandwidth=800Gb/s",
        OPTION_SET, AT(scale_command, overrides)},
    {"db", "PATH", "Keep the lines in this database, for `flopcast plot trace_scale`", OPTION_TEXT,
        AT(scale_command, db)},
    RECORDS_OPTION(struct scale_command),
    {0},
};

static const char scale_doc[] =
    "Run a real step, from a trace of PyTorch's profiler (.json, .json.gz) or a profile of Nsight "
    "Systems (exported as SQLite) of one or several ranks, on any number of GPUs of a cluster.\v"
    "Kernels take as long as in the trace, the host too; collectives are NCCL's on this cluster "
    "and number of GPUs, and slow the kernels beside them. More GPUs are more data parallelism: "
    "each does what the traced one does.\n\n"
    "A step is as long as a loop of it: on the GPU from the end of its kernels to that of the next "
    "one's, or what the host takes where that is more. Its parts are those of the compute stream: "
    "kernels; exposed comm, idle for a collective or message that moves; for ranks, idle for one "
    "that waits for other ranks, as their hosts are later; host, idle as nothing had been launched "
    "yet. They add up to the step.\n\n"
    "Several files, or GPUs in a file, are ranks of one job, which meet in collectives and "
    "messages; the others do as they do. Of a pipeline a rank of each stage is needed. A rank is "
    "what its file says (distributedInfo), of several GPUs in a file the number of the GPU, else "
    "the place among the files.\n\n"
    "Best recorded with PyTorch 2.4 or later and\n"
    "  profile(activities=[CPU, CUDA], schedule=..., experimental_config=\n"
    "          _ExperimentalConfig(enable_cuda_sync_events=True))\n"
    "with its step() after each step: collectives then have their sizes and groups, and each wait "
    "says for what. Without the latter waits are found by rules "
    "(sim/interop/exchange/trace_plan.h).";

/* ---- the run ---- */

static struct noise_options noise_of(const struct hw_cluster *cluster)
{
    return (struct noise_options){.gpu_speed_spread = cluster->gpu_speed_spread.value,
        .kernel_jitter = cluster->kernel_jitter.value,
        .network_jitter = cluster->network_jitter.value,
        .host_jitter = cluster->host_jitter.value};
}

/* Memory is not simulated: a trace does not say what is allocated. */
static enum status scale(struct scaled *out, const struct scale_command *command,
    const struct traces *traces, const struct trace_plan_options *plan, const struct hw *hw,
    struct arena *arena, struct diag *diag)
{
    static const int rank_0 = 0;
    struct exec_options exec = exec_default_options();
    enum status status =
        trace_plan(&out->planned, traces->ranks.at, traces->ranks.n, plan, arena, diag);
    int ranks = out->planned.plan.mesh.ranks;
    if (status == STATUS_OK)
        status =
            replay_check_cluster(ranks, hw, (struct source_pos){.file = command->topology}, diag);
    if (status != STATUS_OK)
        return status;
    exec.steps = command->quiet ? 1 : MEASURED_STEPS;
    exec.no_memory = true;
    exec.fold = out->planned.plan.inner > 1
                    ? FOLD_AUTO
                    : FOLD_SLOWEST; /* each traced rank is to be among those */
    exec.seed = command->seed;
    exec.noise = command->quiet ? (struct noise_options){0} : noise_of(&hw->cluster);
    exec.trace_ranks = &rank_0;
    exec.n_trace_ranks = 1;
    out->replay.ranks = ranks;
    replay_execute(&out->replay, &out->planned.plan, hw, &exec, arena);
    return STATUS_OK;
}

static int trace_scale_by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One run more of all: the traced one, then those of each line. */
static void count_run(struct scale_command *command)
{
    words_progress(
        "trace scale", "runs", command->done++, 1 + command->gpus.n * (1 + command->samples));
}

/* The same on clusters as this one may be (hw/draw.h); kernels and host stay as they were
 * traced. Each sample plans anew, as kernels of the plan depend on the hardware: floors, and
 * ratios between GPUs. */
static enum status trace_scale_sample(struct scaled *out, struct scale_command *command,
    const struct traces *traces, const struct trace_plan_options *plan, const struct hw *hw,
    const struct hw_fits *fits, struct diag *diag)
{
    double *steps = xcalloc((size_t)command->samples, sizeof *steps);
    enum status status = STATUS_OK;
    for (int k = 0; k < command->samples && status == STATUS_OK; k++) {
        struct arena arena = ARENA_INIT;
        struct hw drawn = *hw;
        struct scaled one = {0};
        struct trace_plan_options planned = *plan;
        count_run(command);
        hw_draw(&drawn, fits, (uint64_t)command->seed, (uint64_t)k);
        planned.hw = &drawn;
        status = scale(&one, command, traces, &planned, &drawn, &arena, diag);
        steps[k] = one.replay.exec.step_time_s;
        plan_release(&one.planned.plan);
        arena_release(&arena);
    }
    qsort(steps, (size_t)command->samples, sizeof *steps, trace_scale_by_time);
    out->low_s = gsl_stats_quantile_from_sorted_data(steps, 1, (size_t)command->samples, 0.05);
    out->high_s = gsl_stats_quantile_from_sorted_data(steps, 1, (size_t)command->samples, 0.95);
    free(steps);
    return status;
}

/* ---- what is printed ---- */

static const char *ranks_words(const struct traces *traces)
{
    return traces->by_device  ? "; a rank is the number of its GPU"
           : traces->by_order ? "; where files do not say their ranks, they are in that order"
                              : "";
}

static void trace_scale_print_head(const struct scale_command *command, const struct traces *traces,
    const struct trace_planned *planned, const struct hw *hw)
{
    struct words_gathered lines;
    FILE *out = words_gather(&lines);
    fprintf(out, "%s: ", command->files.at[0]);
    if (planned->step >= 0)
        fprintf(out, "step %lld, ", (long long)planned->step);
    fprintf(out, "%.3f ms on %d GPU%s%s%s\n", planned->step_s * 1e3, planned->ranks,
        plural(planned->ranks), traces->gpu ? " " : "", traces->gpu ? traces->gpu : "");
    if (planned->traced > 1)
        fprintf(out, "%d ranks of it, of %d stage%s%s\n", planned->traced, planned->stages,
            plural(planned->stages), ranks_words(traces));
    fprintf(out,
        "%d kernels and copies, of them %d on shards; %d collectives, of them %d over groups that "
        "grow\n",
        planned->kernels, planned->sharded, planned->collectives, planned->grown);
    if (planned->plan.mesh.ranks > planned->ranks && planned->grown == 0)
        fputs("no collective is over groups that grow: data parallelism is not in the trace, and "
              "more GPUs cost nothing\n",
            out);
    if (!planned->says_waits && planned->collectives > 0)
        fputs("the trace does not say what waits for what (enable_cuda_sync_events): found by "
              "rules\n",
            out);
    if (traces->ranks_assumed)
        fputs("the trace does not say how many ranks a collective has: all are assumed\n", out);
    fprintf(out, "%s\n\n", hw->cluster.name);
    words_gathered(stdout, &lines);
}

static void print_ratios(const struct hw_gpu *from, const struct hw_gpu *to)
{
    static const struct {
        const char *words;
        int class;
    } classes[] = {{"GEMM", KERNEL_GEMM}, {"attention", KERNEL_ATTENTION},
        {"copies from and to the host", KERNEL_HOST_COPY}, {"all else", KERNEL_ELEMENTWISE}};
    struct words_gathered lines;
    FILE *out = words_gather(&lines);
    fprintf(out, "kernels of %s on %s take:", from->name, to->name);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        double error, ratio = trace_gpu_ratio(classes[i].class, from, to, &error);
        fprintf(out, "%s %s x %.3f", i ? "," : "", classes[i].words, ratio);
        if (error > 0)
            fprintf(out, " +- %.0f %%", 100 * error);
    }
    fputs("\n\n", out);
    words_gathered(stdout, &lines);
}

/* idle_s is idle time that was recorded as part of a stream and counts as compute there; it is
 * moved to other idle. */
static void trace_scale_fill(struct rows *rows, const struct scale_command *command,
    const struct scaled *row, double first_step_s)
{
    bool stages = row->planned.stages > 1;
    const struct exec_result *exec = &row->replay.exec;
    const struct exec_breakdown *b = &exec->breakdown;
    double step_s = exec->step_time_s, idle_s = fmin(row->planned.idle_s, b->compute_s);
    bool sampled = command->samples > 0, noisy = !command->quiet;
    rows_next(rows);
    rows_int(rows, COLUMN("gpus", "GPUs"), row->replay.ranks);
    rows_real(rows, COLUMN("step_time_s", "step", "ms", MS_PER_S, 3), true, step_s);
    rows_real(rows, COLUMN("step_time_sd_s"), true, exec->step_time_sd_s);
    rows_real(rows, COLUMN(NULL, noisy ? "sd" : NULL, "%", .digits = 1), true,
        100 * exec->step_time_sd_s / step_s);
    rows_real(rows, COLUMN("step_time_low_s", sampled ? "5 %" : NULL, "ms", MS_PER_S, 3), sampled,
        row->low_s);
    rows_real(rows, COLUMN("step_time_high_s", sampled ? "95 %" : NULL, "ms", MS_PER_S, 3), sampled,
        row->high_s);
    rows_real(rows, COLUMN(NULL, "step / traced", "%", .digits = 1, .sign = true), true,
        100 * (step_s / row->planned.step_s - 1));
    rows_real(rows, COLUMN(NULL, "throughput", "% of ideal", .digits = 1), true,
        100 * first_step_s / step_s);
    rows_int(rows, COLUMN("traced_gpus"), row->planned.ranks);
    rows_real(rows, COLUMN("traced_step_time_s"), true, row->planned.step_s);
    rows_real(rows, COLUMN("compute_s", "kernels", "ms", MS_PER_S, 3), true, b->compute_s - idle_s);
    rows_real(rows, COLUMN("contention_s", "contention", "ms", MS_PER_S, 3), true, b->contention_s);
    rows_real(rows, COLUMN("exposed_comm_s", "exposed comm", "ms", MS_PER_S, 3), true,
        b->exposed_comm_s - b->exposed_wait_s);
    rows_real(rows,
        COLUMN(
            "rank_wait_s", noisy || b->exposed_wait_s > 0 ? "for ranks" : NULL, "ms", MS_PER_S, 3),
        true, b->exposed_wait_s);
    rows_real(rows, COLUMN("comm_s"), true, b->comm_s);
    rows_real(
        rows, COLUMN("bubble_s", stages ? "bubble" : NULL, "ms", MS_PER_S, 3), true, b->bubble_s);
    rows_real(rows, COLUMN("host_bound_s", "host", "ms", MS_PER_S, 3), true, b->host_bound_s);
    rows_real(rows, COLUMN("other_idle_s", "other idle", "ms", MS_PER_S, 3), true,
        b->other_idle_s + idle_s);
}

/* Its columns are those of the view trace_scale_point. */
static enum status trace_scale_keep(const struct scale_command *command, const struct rows *rows,
    const struct hw_cluster *cluster, struct diag *diag)
{
    const struct record_cell head[] = {cell_text("scenario", command->files.at[0]),
        cell_text("cluster", cluster->name), cell_int("samples", command->samples)};
    return command->db
               ? rows_keep(rows, command->db, "trace_scale", head, sizeof head / sizeof *head, diag)
               : STATUS_OK;
}

static void trace_scale_print(const struct scale_command *command, const struct traces *traces,
    struct rows *rows, struct scaled *last, const struct hw *hw, const struct hw_gpu *traced)
{
    bool people = command->format == RECORDS_TABLE;
    if (people)
        trace_scale_print_head(command, traces, &last->planned, hw);
    if (people && traced)
        print_ratios(traced, &hw->gpu);
    rows_print(stdout, rows, command->format);
    if (!people)
        return;
    last->replay.n_comm = last->replay.n_comm < command->top ? last->replay.n_comm : command->top;
    replay_print_comm(&last->replay, "\ncollectives of a rank in the last line, alike together:\n",
        RECORDS_TABLE);
}

/* ---- command ---- */

/* Kernels stay as traced, or are scaled from the GPU that is said: is that the trace's? */
static void warn_of_gpu(const struct traces *traces, const struct hw_gpu *traced, struct diag *diag)
{
    for (int t = 0; t < traces->ranks.n; t++) {
        const char *gpu = traces->list.at[t].about.gpu, *file = traces->ranks.at[t].file;
        bool again = t > 0 && strcmp(traces->ranks.at[t - 1].file, file) == 0;
        if (!again && gpu && !hw_same_gpu(gpu, traced))
            diag_warn(diag, (struct source_pos){.file = file},
                "it is of %s, but %s is taken for the GPU that was traced; kernels are scaled with "
                "--traced-gpu FILE",
                gpu, traced->name);
    }
}

static enum status load_hardware(struct scale_command *command, struct hw *hw,
    struct hw_gpu *traced, struct hw_sources *sources, struct arena *arena, struct diag *diag)
{
    command->topology = files_find(arena, FILES_CLUSTERS, command->topology);
    enum status status = hw_load_from(hw, sources, command->topology, arena, diag);
    *traced = hw->gpu;
    if (status == STATUS_OK && command->gpu)
        status = hw_load_gpu(&hw->gpu, files_find(arena, FILES_GPUS, command->gpu), arena, diag);
    if (status == STATUS_OK && command->traced_gpu)
        status =
            hw_load_gpu(traced, files_find(arena, FILES_GPUS, command->traced_gpu), arena, diag);
    traced->host_link_Bps =
        hw->node.pcie_bandwidth.value; /* a GPU's file does not say it: copies stay as traced */
    if (status == STATUS_OK)
        status = given_cluster(
            hw, sources, command->overrides.list.at, command->overrides.list.n, arena, diag);
    if (status == STATUS_OK && command->gpu)
        hw_derive(hw);
    return status;
}

/* Each file, and each GPU in a file, is a rank; which GPUs there are is known when one has been
 * read. The first read says which other GPUs the file has; each is then read by itself. */
static enum status load_file(
    struct traces *traces, const char *file, int64_t device, struct arena *arena, struct diag *diag)
{
    enum status status;
    bool one = device >= 0;
    do {
        struct trace trace = {0};
        status = trace_load(&trace, file, device, NULL, arena, diag);
        device = trace.next_device;
        if (!one && trace.devices > 1) {
            trace.rank = trace.device;
            traces->by_device = true;
        }
        vec_push(&traces->list, trace);
        vec_push(&traces->ranks, (struct traced_rank){.file = file});
    } while (status == STATUS_OK && !one && device >= 0);
    return status;
}

static enum status load_traces(struct traces *traces, const struct scale_command *command,
    struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int f = 0; f < command->files.n && status == STATUS_OK; f++)
        status = load_file(traces, command->files.at[f], command->device, arena, diag);
    for (int t = 0; t < traces->list.n; t++) {
        traces->by_order |= traces->list.at[t].rank < 0;
        traces->ranks_assumed |= traces->list.at[t].ranks_assumed > 0;
        traces->gpu = t == 0 ? traces->list.at[t].about.gpu : traces->gpu;
        traces->ranks.at[t].trace = &traces->list.at[t];
    }
    return status;
}

static void free_traces(struct traces *traces)
{
    for (int t = 0; t < traces->list.n; t++)
        trace_free(&traces->list.at[t]);
    vec_free(&traces->list);
    vec_free(&traces->ranks);
}

/* The runs of all lines and samples are counted together for who waits. */
static enum status scale_all(struct scale_command *command, struct scaled *rows,
    const struct traces *traces, const struct hw *hw, const struct hw_gpu *traced,
    struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct trace_plan_options plan = {.step = command->step,
        .recorded = command->recorded,
        .sharded = command->sharded.at,
        .n_sharded = command->sharded.n,
        .fixed = command->fixed.at,
        .n_fixed = command->fixed.n,
        .hw = hw,
        .traced = traced};
    struct scenario_uncertainty uncertainty;
    count_run(command);
    status = trace_find_alone(traces->list.at, traces->ranks.at, traces->ranks.n, &plan, diag);
    if (command->samples > 0 && status == STATUS_OK)
        status = scenario_uncertainty_load(&uncertainty, files_folder(), arena, diag);
    for (int i = 0; i < command->gpus.n && status == STATUS_OK; i++) {
        plan.gpus = command->gpus.at[i];
        count_run(command);
        status = scale(&rows[i], command, traces, &plan, hw, arena, diag);
        if (status == STATUS_OK && command->samples > 0)
            status =
                trace_scale_sample(&rows[i], command, traces, &plan, hw, &uncertainty.fits, diag);
    }
    if (status == STATUS_OK)
        count_run(command);
    return status;
}

int trace_scale(int argc, char **argv)
{
    const struct command_line line = {.options = trace_scale_options,
        .check = trace_scale_check,
        .common = COMMON_TABLE,
        .args_doc = "TRACE...",
        .take = trace_scale_take_file,
        .doc = scale_doc};
    struct scale_command command = {.device = -1, .step = -1, .seed = 1, .top = 8};
    command_line_parse(&line, argc, argv, &command);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    struct hw_gpu traced;
    struct hw_sources sources = {0};
    struct traces traces = {0};
    if (command.gpus.n == 0)
        vec_push(&command.gpus, 0);
    struct scaled *scaled = xcalloc((size_t)command.gpus.n, sizeof *scaled);
    struct rows rows = {0};
    bool other = command.gpu || command.traced_gpu;
    if (load_hardware(&command, &hw, &traced, &sources, &arena, &diag) == STATUS_OK &&
        load_traces(&traces, &command, &arena, &diag) == STATUS_OK &&
        scale_all(&command, scaled, &traces, &hw, other ? &traced : NULL, &arena, &diag) ==
            STATUS_OK) {
        warn_of_gpu(&traces, &traced, &diag);
        for (int i = 0; i < command.gpus.n; i++)
            trace_scale_fill(&rows, &command, &scaled[i], scaled[0].replay.exec.step_time_s);
        if (trace_scale_keep(&command, &rows, &hw.cluster, &diag) == STATUS_OK)
            trace_scale_print(
                &command, &traces, &rows, &scaled[command.gpus.n - 1], &hw, other ? &traced : NULL);
    }
    for (int i = 0; i < command.gpus.n; i++)
        plan_release(&scaled[i].planned.plan);
    free(scaled);
    rows_free(&rows);
    free_traces(&traces);
    hw_sources_free(&sources);
    overrides_free(&command.overrides);
    vec_free(&command.gpus);
    vec_free(&command.files);
    vec_free(&command.sharded);
    vec_free(&command.fixed);
    arena_release(&arena);
    return cli_report(&diag);
}
