/* `flopcast together`: several jobs on one network, each alone and beside the others.
 *
 * --set and --nodes may begin with a job's number and a colon; overrides[0] holds for all jobs,
 * overrides[N] for job N, behind the former, so that they win. Placement and simulation are in
 * study/together.h; here are options and the table, a row a job. What is subtle: a scenario with
 * several points cannot be a job; a job that is out of memory has no step and takes no part in
 * the shared run. */
#include "study/together.h"

#include "base/files.h"
#include "options/arguments.h"
#include "cli/cli.h"
#include "rows/rows.h"
#include "rows/vary.h"
#include "rows/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const double MS = 1e3, PERCENT = 100;

struct job_overrides {
    VEC(struct scenario_override) list;
};

struct together_command {
    const char *files[EXEC_MAX_JOBS];
    struct job_overrides overrides[EXEC_MAX_JOBS + 1]; /* of all jobs, then of each */
    struct together_job jobs[EXEC_MAX_JOBS];
    int n_jobs;
    struct together_cluster cluster;
    enum records_format format;
    struct arena arena;
};

/* "2:rest": the job's number and the rest; 0 where none is named. */
static int job_number(const struct argument *argument, const char **rest)
{
    const char *text = argument->text;
    *rest = text;
    if (!isdigit((unsigned char)*text))
        return 0;
    char *end = NULL;
    long job = strtol(text, &end, 10);
    if (*end != ':' || job < 1 || job > EXEC_MAX_JOBS)
        argp_error(argument->state, "--%s %s: a job from 1 to %d and a colon are wanted, as in 2:...", argument->option,
            text, EXEC_MAX_JOBS);
    *rest = end + 1;
    return (int)job;
}

static void take_set(void *self, const struct argument *argument)
{
    struct together_command *command = self;
    struct argument without = *argument;
    int job = job_number(argument, &without.text);
    vec_push(&command->overrides[job].list, argument_override(&without, &command->arena));
}

static void take_nodes(void *self, const struct argument *argument)
{
    struct together_command *command = self;
    const char *list;
    int job = job_number(argument, &list);
    if (job == 0 || !strchr(argument->text, ':'))
        argp_error(argument->state, "--nodes %s: the job and its nodes are wanted, as in 1:0-3,8", argument->text);
    if (command->jobs[job - 1].given)
        argp_error(argument->state, "--nodes is given twice for job %d", job);
    command->jobs[job - 1].given = list;
}

static void take_file(void *self, const struct argument *argument)
{
    struct together_command *command = self;
    if (command->n_jobs == EXEC_MAX_JOBS)
        argp_error(argument->state, "more than %d jobs", EXEC_MAX_JOBS);
    command->files[command->n_jobs++] = argument->text;
}

static void check(void *self, struct argp_state *state)
{
    const struct together_command *command = self;
    if (command->n_jobs < 2)
        argp_error(state, "two scenario files or more are wanted");
    for (int j = command->n_jobs; j < EXEC_MAX_JOBS; j++)
        if (command->jobs[j].given || command->overrides[j + 1].list.n > 0)
            argp_error(state, "there is no job %d, only %d", j + 1, command->n_jobs);
}

#define AT(at) .member = offsetof(struct together_command, at)
static const struct command_option options[] = {
    {"set", "[N:]KEY=VALUE", "Set it in all jobs, or in job N only, as in 2:cluster.gpus=32", OPTION_TAKE,
        .take = take_set, .flags = OPTION_KEYS},
    {"nodes", "N:LIST", "The nodes of job N, as in 1:0-3,8", OPTION_TAKE, .take = take_nodes, .flags = OPTION_LIST},
    {"placement", "HOW", "Of jobs without --nodes: packed (default), interleaved or drawn", OPTION_NAME,
        AT(cluster.placement), .names = together_placement_names},
    {"cluster-nodes", "N", "Nodes of the cluster, among which they are drawn (default: as many as the jobs need)",
        OPTION_COUNT, .most = SCENARIO_MAX_POINTS, AT(cluster.nodes)},
    RECORDS_OPTION(struct together_command),
    {0},
};

/* ---- the jobs ---- */

static void load(struct together_command *command, int j, struct diag *diag)
{
    struct job_overrides all = {0};
    for (int of = 0; of <= EXEC_MAX_JOBS; of++)
        for (int i = 0; (of == 0 || of == j + 1) && i < command->overrides[of].list.n; i++)
            vec_push(&all.list, command->overrides[of].list.at[i]);
    const char *file = files_find(&command->arena, FILES_SCENARIOS, command->files[j]);
    struct scenario_set set;
    if (scenario_load(&set, file, all.list.at, all.list.n, &command->arena, diag) == STATUS_OK) {
        command->jobs[j].point = &set.points[0];
        scenario_warn_measured(&set, "flopcast together", diag);
        vary_refuse_several(&set, "a job is one", &command->arena, diag);
    }
    vec_free(&all.list);
}

/* "0-3 8" */
static const char *node_list(const struct together_job *job, struct arena *arena)
{
    const char *text = "";
    for (int n = 0; n < job->n_nodes;) {
        int end = n;
        while (end + 1 < job->n_nodes && job->nodes[end + 1] == job->nodes[end] + 1)
            end++;
        text =
            arena_printf(arena, end > n ? "%s%s%d-%d" : "%s%s%d", text, n ? " " : "", job->nodes[n], job->nodes[end]);
        n = end + 1;
    }
    return text;
}

static void fill(struct rows *rows, const struct together_command *command, int j, struct arena *arena)
{
    const struct together_job *job = &command->jobs[j];
    const struct exec_result *alone = &job->alone.exec, *beside = &job->beside.exec;
    bool ok = alone->status == EXEC_OK;
    const char *point = words_point(job->point, arena);
    rows_next(rows);
    rows_int(rows, COLUMN("job"), j + 1);
    rows_text(rows, COLUMN("point"), point);
    rows_text(rows, COLUMN(NULL, "job"), arena_printf(arena, "%d: %s", j + 1, point));
    rows_text(rows, COLUMN("nodes", "nodes"), node_list(job, arena));
    rows_text(rows, COLUMN("status"), exec_status_names[alone->status]);
    rows_real(
        rows, COLUMN("step_time_alone_s", "step", "alone, s", .digits = 4, .unknown = "OOM"), ok, alone->step_time_s);
    rows_real(rows, COLUMN("step_time_s", "step", "beside, s", .digits = 4), ok, beside->step_time_s);
    rows_real(rows, COLUMN("ratio", "ratio", .digits = 3), ok, ok ? beside->step_time_s / alone->step_time_s : 0);
    rows_real(
        rows, COLUMN("exposed_comm_alone_s", "exposed comm", "alone, ms", MS, 1), ok, alone->breakdown.exposed_comm_s);
    rows_real(
        rows, COLUMN("exposed_comm_s", "exposed comm", "beside, ms", MS, 1), ok, beside->breakdown.exposed_comm_s);
    rows_real(rows, COLUMN("nic_utilisation_alone", "NICs in use", "alone, %", PERCENT, 1), ok, alone->nic_utilisation);
    rows_real(rows, COLUMN("nic_utilisation", "NICs in use", "beside, %", PERCENT, 1), ok, beside->nic_utilisation);
    rows_real(rows, COLUMN("tokens_per_s_per_gpu"), ok, job->beside.tokens_per_s_per_gpu);
    rows_real(rows, COLUMN("tflops_per_gpu", "TFLOPS/GPU", "beside", .digits = 2), ok, job->beside.tflops_per_gpu);
}

static void print_ooms(const struct together_command *command)
{
    for (int j = 0; j < command->n_jobs; j++)
        if (command->jobs[j].alone.exec.status == EXEC_OOM) {
            printf("\njob %d is out of memory and takes no part:\n", j + 1);
            words_oom(stdout, &command->jobs[j].alone.exec);
        }
}

static void print(struct together_command *command)
{
    struct rows rows = {0};
    bool people = command->format == RECORDS_TABLE;
    for (int j = 0; j < command->n_jobs; j++)
        fill(&rows, command, j, &command->arena);
    if (people)
        printf("%d jobs on %d nodes of %s\n\n", command->n_jobs, command->cluster.nodes,
            command->jobs[0].point->hw.cluster.name);
    rows_print(stdout, &rows, command->format);
    if (people)
        print_ooms(command);
    rows_free(&rows);
}

int cmd_together(int argc, char **argv)
{
    const struct command_line line = {.options = options,
        .common = COMMON_TABLE,
        .args_doc = "SCENARIO SCENARIO...",
        .files = FILES_SCENARIOS,
        .take = take_file,
        .check = check,
        .doc = "Simulate several jobs at a time on one cluster, whose network they share, and print how much each is "
               "slowed by the others.\v"
               "Each job has nodes to itself, so only switches are shared: the cluster must have some (section network "
               "of its file, as in h100-8x400g-rail). All steps that count are taken beside all other jobs. Memory is "
               "that of each job alone."};
    struct together_command command = {0};
    command_line_parse(&line, argc, argv, &command);
    struct diag diag = DIAG_INIT;
    for (int j = 0; j < command.n_jobs; j++)
        load(&command, j, &diag);
    if (diag.worst == STATUS_OK) {
        command.cluster.seed = (uint64_t)command.jobs[0].point->options.exec.seed;
        if (together_place(command.jobs, command.n_jobs, &command.cluster, &command.arena, &diag) == STATUS_OK)
            scenario_together(command.jobs, command.n_jobs, &command.cluster, &command.arena, &diag);
    }
    if (diag.worst == STATUS_OK)
        print(&command);
    for (int j = 0; j <= EXEC_MAX_JOBS; j++)
        vec_free(&command.overrides[j].list);
    arena_release(&command.arena);
    return cli_report(&diag);
}
