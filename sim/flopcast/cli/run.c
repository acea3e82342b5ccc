/* `flopcast run`: scenarios are loaded, simulated, stored and printed.
 *
 * All files are loaded before anything is simulated, so that one call shows all mistakes. Each
 * scenario is then a struct work: what is known is taken from the database, what is not is
 * simulated by the crew (threads, ranks of MPI) except what other shards do, each finished point
 * and sample is stored by a callback. Measurements of one's own are simulated first, as they
 * shift what is printed; points are stored as simulated.
 *
 * What is subtle: the callbacks run on whatever thread finished the point, so errors of storing
 * gather in work->diag and end the loop by returning false. Only the crew's owner prints and
 * opens the database. A point that is traced is simulated again even if it is stored, since
 * spans are not all kept; --chakra is written by another program, which compiles the plan again. */
#include "cli/cli.h"

#include "base/files.h"
#include "options/arguments.h"
#include "cli/own_runs.h"
#include "cli/output.h"
#include "rows/records.h"
#include "options/stop.h"
#include "report/trace.h"
#include "rows/vary.h"
#include "options/program.h"
#include "options/waiting.h"
#include "rows/words.h"

#include "crew/crew.h"
#include "crew/ranks.h"
#include "store/share.h"
#include "scenario/identity.h"
#include "scenario/sample.h"
#include "store/run.h"
#include "scenario/sure.h"

#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

COMMAND(cmd_run, 2, "run", COMMAND_SHARES, "simulate scenarios; print, and store in a database",
    "flopcast run t5_scaling --set \"cluster.gpus=[8, 64]\"");

struct run {
    struct ranks *ranks; /* NULL: without mpirun */
    VEC(const char *) files;
    struct overrides overrides;
    const char *db;
    enum records_format format;
    bool plan, quiet, again;
    int samples;
    struct shard shard;
    struct own_texts measured;
    struct scenario_uncertainty uncertainty; /* where samples > 0 */
    const char *trace, *chakra;
    VEC(int) trace_ranks;
    struct arena arena;        /* sets and texts of the command line */
    struct scenario_set *sets; /* one a file */
    struct vary swept;         /* in any of them */
};

/* Duplicates are refused: each rank is a process of the trace. */
static void take_trace_ranks(void *self, const struct argument *argument)
{
    struct run *run = self;
    const char *list = argument->text, *at = list;
    for (;;) {
        char *end = NULL;
        long rank = strtol(at, &end, 10);
        if (*at < '0' || *at > '9' || rank > INT32_MAX || (*end != ',' && *end != '\0'))
            argp_error(
                argument->state, "--trace-ranks %s: numbers of ranks are wanted, as in 0,8", list);
        for (int i = 0; i < run->trace_ranks.n; i++)
            if (run->trace_ranks.at[i] == rank)
                argp_error(
                    argument->state, "--trace-ranks %s: rank %ld is there twice", list, rank);
        vec_push(&run->trace_ranks, (int)rank);
        if (*end == '\0')
            return;
        at = end + 1;
    }
}

static void cli_run_take_file(void *self, const struct argument *argument)
{
    struct run *run = self;
    vec_push(&run->files, argument->text);
}

static void cli_run_check(void *self, struct argp_state *state)
{
    const struct run *run = self;
    if (run->plan && run->db)
        argp_error(state, "--plan simulates nothing that --db could store; leave out one of them");
    if (run->plan && run->trace)
        argp_error(
            state, "--plan simulates nothing that --trace could show; leave out one of them");
    if (run->plan && run->measured.texts.n > 0)
        argp_error(
            state, "--plan simulates nothing that --measured could correct; leave out one of them");
    if (run->plan && run->samples > 0)
        argp_error(
            state, "--plan simulates nothing that --samples could repeat; leave out one of them");
    if (run->plan && run->chakra)
        argp_error(state, "--plan prints the plan that --chakra writes; leave out one of them");
    if (run->trace && !trace_can_write(run->trace))
        argp_error(state, "--trace %s: the name must end in .json or .json.gz", run->trace);
    if (run->again && !run->db)
        argp_error(state, "--again is for --db PATH; without a database everything is simulated");
    if (run->trace_ranks.n > 0 && !run->trace)
        argp_error(state, "--trace-ranks is for --trace FILE");
    if (run->shard.shards > 0 && !run->db)
        argp_error(state,
            "--shard is for --db PATH, where the part is kept; each shard has its own database");
    if (run->shard.shards > 0 && (run->plan || run->trace || run->chakra))
        argp_error(state, "--shard simulates a part; leave out --plan, --trace and --chakra");
    if (run->chakra && run->files.n > 1)
        argp_error(state, "--chakra writes one point; give one scenario, not %d", run->files.n);
    if (run->trace && run->files.n > 1)
        argp_error(state, "--trace shows one point; give one scenario, not %d", run->files.n);
}

static const struct command_option run_options[] = {
    {"db", "PATH",
        "Store each finished point in this database, and take points from it that were simulated "
        "before; created if missing",
        OPTION_TEXT, AT(run, db)},
    {"again", NULL, "Also simulate points that the database has", OPTION_FLAG, AT(run, again)},
    {"set", "KEY=VALUE",
        "Set an option in all scenarios, as in --set train.micro_batch=16; may be repeated",
        OPTION_SET, AT(run, overrides)},
    {"seed", "N", "The same as --set run.seed=N", OPTION_SEED, AT(run, overrides)},
    JOB_OPTIONS(struct run),
    MEASURED_OPTION(struct run),
    {"format", "FORMAT",
        "table (default), csv, with a column for each swept setting, or json; json also holds "
        "every setting of a point, with its unit and whether it comes from a file, from --set or "
        "is the default",
        OPTION_NAME, AT(run, format), .names = records_format_names},
    {"samples", "K",
        "Also simulate every point K times, with numbers drawn from their standard errors and "
        "other seeds of the noise: median and 90 % interval; what the model leaves out is not in "
        "it",
        OPTION_SAMPLES, AT(run, samples)},
    SHARD_OPTION(struct run, "points"),
    {"plan", NULL, "Print the compiled steps, op by op, instead of simulating them", OPTION_FLAG,
        AT(run, plan)},
    {"trace", "FILE",
        "Write the last step of the one point as a Chrome trace, .json or .json.gz, for "
        "ui.perfetto.dev",
        OPTION_TEXT, AT(run, trace)},
    {"trace-ranks", "LIST",
        "Ranks in the trace, as 0,8 (default: 0; of a pipeline the first of each stage)",
        OPTION_TAKE, .take = take_trace_ranks, .flags = OPTION_LIST},
    {"chakra", "FOLDER",
        "Write a step of the one point as Chakra execution traces, a file a rank, with the files "
        "of ASTRA-sim",
        OPTION_TEXT, AT(run, chakra)},
    {"quiet", NULL, "Print nothing but errors", OPTION_FLAG, AT(run, quiet), .letter = 'q'},
    {0},
};

/* ---- the run ---- */

/* All files, so that one call shows all mistakes. */
static int cli_run_load_all(struct run *run)
{
    int worst = CLI_OK;
    run->sets = ARENA_ARRAY(&run->arena, struct scenario_set, run->files.n);
    for (int i = 0; i < run->files.n; i++) {
        struct diag diag = DIAG_INIT;
        run->files.at[i] = files_find(&run->arena, FILES_SCENARIOS, run->files.at[i]);
        overrides_load(&run->sets[i], run->files.at[i], &run->overrides, &run->arena, &diag);
        int status = cli_report(&diag);
        if (status != CLI_OK && worst != CLI_WORLD)
            worst = status;
    }
    return worst;
}

/* Samples of all points are numbered by an int. */
static int load_uncertainty(struct run *run)
{
    struct diag diag = DIAG_INIT;
    for (int i = 0; i < run->files.n; i++)
        if (run->sets[i].n_points > INT_MAX / run->samples)
            diag_input(&diag, (struct source_pos){.file = run->sets[i].file},
                "%d points of %d samples each are more than %d simulations; sweep less, or take "
                "fewer samples",
                run->sets[i].n_points, run->samples, INT_MAX);
    scenario_uncertainty_load(&run->uncertainty, files_folder(), &run->arena, &diag);
    return cli_report(&diag);
}

static int begin_ranks(struct run *run)
{
    struct diag diag = DIAG_INIT;
    ranks_begin(&run->ranks, &diag);
    return cli_report(&diag);
}

static void take_first_of_stages(struct run *run, const struct scenario_point *point)
{
    struct mesh mesh;
    const char *bad;
    bool valid = strategy_mesh(
        &mesh, &point->options.strategy, &point->hw, (int)point->options.cluster.gpus, &bad);
    for (int stage = 0; stage < (valid ? mesh.size[AXIS_PP] : 1); stage++)
        vec_push(&run->trace_ranks, stage * (valid ? mesh.stride[AXIS_PP] : 0));
}

/* Ask the one point for its timeline. Of a pipeline the first rank of each stage, as stages
 * differ. */
static int request_trace(struct run *run)
{
    struct diag diag = DIAG_INIT;
    struct scenario_point *point = &run->sets[0].points[0];
    if (run->trace_ranks.n == 0)
        take_first_of_stages(run, point);
    vary_refuse_several(&run->sets[0], "--trace shows one", &run->arena, &diag);
    for (int i = 0; i < run->trace_ranks.n; i++)
        if (run->sets[0].n_points == 1 && run->trace_ranks.at[i] >= point->options.cluster.gpus)
            diag_input(&diag, (struct source_pos){0},
                "--trace-ranks: there is no rank %d among %lld GPUs", run->trace_ranks.at[i],
                (long long)point->options.cluster.gpus);
    point->options.exec.trace_ranks = run->trace_ranks.at;
    point->options.exec.n_trace_ranks = run->trace_ranks.n;
    return cli_report(&diag);
}

static int check_chakra(struct run *run)
{
    struct diag diag = DIAG_INIT;
    vary_refuse_several(&run->sets[0], "--chakra writes one", &run->arena, &diag);
    return cli_report(&diag);
}

/* The plan is made again, there: results do not keep it. */
static enum status write_chakra(
    const char *folder, const char *file, const struct run *run, struct diag *diag)
{
    struct program_words words = {0};
    const char *const first[] = {"chakra", "export", folder, file};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        vec_push(&words.list, arena_strdup(&words.texts, first[i]));
    for (int i = 0; i < run->overrides.list.n; i++)
        vec_push(&words.list, arena_printf(&words.texts, "%s=%s", run->overrides.list.at[i].key,
                                  run->overrides.list.at[i].value));
    enum status status = program_run(PROGRAM_INTEROP, &words, diag);
    vec_free(&words.list);
    arena_release(&words.texts);
    return status;
}

/* One way through the points of a set. */
struct pass {
    struct shard part; /* of the points that it does: --shard, or a rank's; {0}: all */
    bool first;        /* what is known is said */
    bool answers;      /* the last one, which comes to the end of the work, and prints */
};

/* A scenario under way. */
struct work {
    const struct run *run;
    struct scenario_set *set;
    struct scenario_result *results;
    struct arena *arenas;
    bool *known, *known_samples;
    struct pass pass;
    bool *others, *other_samples; /* of other parts */
    int own_points;
    struct store_run *stored; /* NULL: no database */
    struct sure sure,
        plain; /* with what was measured, and without: points are stored as simulated */
    struct own_runs measured;
    struct waiting *waiting;
    bool quiet;
    struct diag diag;   /* of storing, on whatever thread */
    struct arena texts; /* of measurements */
};

static void cli_run_print(const struct run *run, struct work *work)
{
    const struct scenario_set *set = work->set;
    const struct scenario_result *results = work->results;
    bool first = set == run->sets;
    switch (run->format) {
    case RECORDS_TABLE:
        fputs(first ? "" : "\n\n", stdout);
        output_table(stdout, set, results, &work->sure);
        own_runs_print(stdout, &work->measured);
        break;
    case RECORDS_CSV:
        if (first)
            output_csv_head(stdout, &run->swept, set, results);
        output_csv(stdout, &run->swept, set, results);
        break;
    case RECORDS_JSON:
        output_json(stdout, set, results, first);
        break;
    case RECORDS_FORMAT_COUNT:
        break;
    }
}

static void cli_run_show_progress(void *self, int done, int total)
{
    const struct work *work = self;
    waiting_count(work->waiting, done, total);
}

static bool keep_point(void *self, int point)
{
    struct work *work = self;
    sure_set(&work->plain, &work->set->points[point], &work->results[point], 1);
    return store_run_point(work->stored, point, &work->results[point], &work->diag) == STATUS_OK &&
           !stop_asked();
}

static bool keep_sample(void *self, int job)
{
    struct work *work = self;
    int point = job / work->run->samples, sample = job % work->run->samples;
    return store_run_sample(work->stored, point, sample, &work->results[point], &work->diag) ==
               STATUS_OK &&
           !stop_asked();
}

static void say_known(const struct work *work, const char *what, const bool *known, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += known[i];
    if (found > 0 && !work->quiet && work->pass.first)
        fprintf(stderr,
            "%s: %d of %d %s are in %s already and are not simulated again (--again does)\n",
            work->set->points[0].options.name, found, n, what, work->run->db);
}

static enum status begin_stored(struct work *work, struct store *store, struct diag *diag)
{
    const struct run *run = work->run;
    const struct store_run_options asked = {.set = work->set,
        .uncertainty = &run->uncertainty,
        .samples = run->samples,
        .shard = run->shard.shard,
        .shards = run->shard.shards,
        .shard_points = work->own_points,
        .again =
            (run->again && (!work->pass.answers || ranks_count(run->ranks) == 1)) || run->trace};
    enum status status = store_run_begin(
        &work->stored, store, &asked, work->results, work->arenas, work->known, diag);
    if (status == STATUS_OK)
        say_known(work, "points", work->known, work->set->n_points);
    return status;
}

/* Whether the loop was ended before its time; why goes to diag, unless it was by a signal. */
static enum status loop_end(struct work *work, enum status status, struct diag *diag)
{
    enum status stored = work->diag.worst;
    diag_merge(diag, &work->diag);
    return status != STATUS_OK ? status : stored;
}

static enum status simulate_points(struct work *work, struct diag *diag)
{
    struct scenario_work loop = {.known = work->known,
        .others = work->others,
        .keep = work->stored ? keep_point : NULL,
        .progress = cli_run_show_progress,
        .self = work};
    return loop_end(
        work, scenario_simulate_some(work->results, work->arenas, work->set, &loop, diag), diag);
}

static enum status simulate_samples(struct work *work, struct diag *diag)
{
    const struct run *run = work->run;
    int n = work->set->n_points * run->samples;
    struct scenario_work loop = {.known = work->known_samples,
        .others = work->other_samples,
        .keep = work->stored ? keep_sample : NULL,
        .progress = cli_run_show_progress,
        .self = work};
    enum status status = STATUS_OK;
    if (work->stored) {
        status =
            store_run_samples(work->stored, work->results, work->arenas, work->known_samples, diag);
        say_known(work, "samples", work->known_samples, n);
    }
    if (status == STATUS_OK)
        status = scenario_sample_some(
            work->results, work->arenas, work->set, &run->uncertainty, run->samples, &loop, diag);
    return loop_end(work, status, diag);
}

/* What is to be done here: all that no other shard does, and of that what is known is done. */
static void count_own(const struct work *work, const bool *known, const bool *others, int n)
{
    int done = 0, total = 0;
    for (int i = 0; i < n; i++) {
        total += !others[i];
        done += known[i] && !others[i];
    }
    waiting_count(work->waiting, done, total);
}

/* measured / simulated of the very point; 0: it was not measured. */
static double measured_of(const struct own_runs *measured, const struct scenario_point *point)
{
    struct scenario_identity own, other;
    scenario_identify(&own, point);
    for (int i = 0; i < measured->list.n; i++) {
        scenario_identify(&other, measured->list.at[i].point);
        if (strcmp(own.text, other.text) == 0)
            return 1 + measured->list.at[i].off;
    }
    return 0;
}

/* The interval that measurements give, beside the stored points, for figures. */
static enum status keep_given(struct work *work, struct diag *diag)
{
    int n = work->measured.list.n > 0 ? work->set->n_points : 0;
    struct store_given *given = n > 0 ? xcalloc((size_t)n, sizeof *given) : NULL;
    for (int i = 0; i < n; i++)
        if (work->results[i].exec.status == EXEC_OK && work->results[i].exec.step_time_s > 0)
            given[i] = (struct store_given){
                *sure_of_speed(&work->sure, &work->set->points[i], work->results[i].mfu),
                measured_of(&work->measured, &work->set->points[i])};
    enum status status = store_run_given(work->stored, given, diag);
    free(given);
    return status;
}

/* Points come before samples: bands belong to rows of points. */
static enum status simulate_all(struct work *work, struct store *store, struct diag *diag)
{
    const struct run *run = work->run;
    const char *name = work->set->points[0].options.name;
    enum status status = store ? begin_stored(work, store, diag) : STATUS_OK;
    work->waiting = waiting_begin("run", name, "points", work->set, work->quiet);
    count_own(work, work->known, work->others, work->set->n_points);
    if (status == STATUS_OK && !stop_asked())
        status = simulate_points(work, diag);
    waiting_end(work->waiting);
    work->waiting = waiting_begin("run", name, "samples", work->set, work->quiet);
    count_own(work, work->known_samples, work->other_samples, work->set->n_points * run->samples);
    if (status == STATUS_OK && run->samples > 0 && !stop_asked())
        status = simulate_samples(work, diag);
    waiting_end(work->waiting);
    if (status == STATUS_OK && work->stored && work->pass.answers && !stop_asked())
        status = keep_given(work, diag);
    if (status == STATUS_OK && work->stored && !stop_asked())
        status = store_run_shard_done(work->stored, diag);
    store_run_end(work->stored);
    return status;
}

/* By what the points are estimated to cost, which is the same wherever a shard runs. Samples go
 * with their points. */
static void cli_run_leave_to_others(struct work *work)
{
    const struct run *run = work->run;
    int n = work->set->n_points;
    double *cost = xcalloc((size_t)n, sizeof *cost);
    for (int i = 0; i < n; i++)
        cost[i] = scenario_weight(&work->set->points[i]);
    crew_shard(work->others, cost, NULL, n, work->pass.part.shard, work->pass.part.shards);
    for (int i = 0; i < n; i++) {
        work->own_points += work->others[i];
        work->others[i] = !work->others[i];
        for (int k = 0; k < run->samples; k++)
            work->other_samples[i * run->samples + k] = work->others[i];
    }
    free(cost);
}

static void say_shard(const struct work *work)
{
    const struct run *run = work->run;
    printf("%s: shard %d/%d, its %d of %d points are in %s\n", work->set->points[0].options.name,
        run->shard.shard, run->shard.shards, work->own_points, work->set->n_points, run->db);
}

static void simulate_pass(const struct run *run, struct scenario_set *set, struct store *store,
    struct pass pass, struct diag *diag)
{
    size_t n = (size_t)set->n_points;
    struct work work = {.run = run,
        .set = set,
        .pass = pass,
        .quiet = run->quiet || !ranks_is_first(run->ranks),
        .results = xcalloc(n, sizeof *work.results),
        .arenas = xcalloc(n, sizeof *work.arenas),
        .known = xcalloc(n, sizeof *work.known),
        .known_samples = xcalloc(n * (size_t)run->samples + 1, sizeof *work.known_samples),
        .others = xcalloc(n, sizeof *work.others),
        .other_samples = xcalloc(n * (size_t)run->samples + 1, sizeof *work.other_samples)};
    enum status status = STATUS_OK;
    if (pass.part.shards > 0)
        cli_run_leave_to_others(&work);
    work.measured.command = "run";
    work.measured.quiet = work.quiet;
    if (pass.answers)
        status = own_runs_simulate(
            &work.measured, &work.sure, &run->measured, set, &run->overrides, &work.texts, diag);
    if (status == STATUS_OK)
        status = simulate_all(&work, store, diag);
    bool whole = status == STATUS_OK && !stop_asked() && pass.answers;
    if (whole)
        sure_set(&work.sure, set->points, work.results, set->n_points);
    if (whole && run->trace)
        status = trace_write(run->trace, &set->points[0], &work.results[0], diag);
    if (whole && status == STATUS_OK && run->chakra)
        status = write_chakra(run->chakra, set->file, run, diag);
    if (whole && status == STATUS_OK && !run->quiet)
        (run->shard.shards > 0 ? say_shard(&work) : cli_run_print(run, &work));
    for (int i = 0; i < set->n_points; i++)
        arena_release(&work.arenas[i]);
    sure_end(&work.sure);
    sure_end(&work.plain);
    vec_free(&work.measured.list);
    arena_release(&work.texts);
    free(work.arenas);
    free(work.results);
    free(work.known);
    free(work.known_samples);
    free(work.others);
    free(work.other_samples);
}

/* After each round rank 0 has stored what all have made. Ranks wait for one another at its end:
 * 10,000 points whose times were recorded keep 64 ranks 79 % busy in one round, 73 % in four and 64
 * % in eight (results/notes/program.md). A run that is made again is one run, in one round. */
static int count_rounds(const struct run *run, const struct scenario_set *set)
{
    enum { MOST_ROUNDS = 4, POINTS_OF_A_RANK = 8 };
    int rounds = set->n_points / ranks_count(run->ranks) / POINTS_OF_A_RANK;
    return rounds < 1 || run->again ? 1 : rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
}

/* Every rank does its parts of the points, and rank 0 takes them all in. A point with a mistake is
 * left to the pass that answers, which says it. */
static void cli_run_simulate_with_ranks(
    const struct run *run, struct scenario_set *set, struct store *store, struct diag *diag)
{
    int ranks = ranks_count(run->ranks), rounds = count_rounds(run, set);
    for (int round = 0; round < rounds; round++) {
        const struct pass pass = {
            .part = {round * ranks + ranks_number(run->ranks) + 1, rounds * ranks},
            .first = round == 0};
        struct diag own = DIAG_INIT;
        if (!stop_asked() && diag->worst == STATUS_OK)
            simulate_pass(run, set, store, pass, &own);
        if (own.worst == STATUS_IO)
            diag_merge(diag, &own);
        store_gather(store, run->ranks, diag);
    }
}

static void cli_run_simulate(
    const struct run *run, struct scenario_set *set, struct store *store, struct diag *diag)
{
    bool ranks = ranks_count(run->ranks) > 1 && !run->trace && !run->chakra;
    if (ranks)
        cli_run_simulate_with_ranks(run, set, store, diag);
    const struct pass pass = {.part = run->shard, .first = !ranks, .answers = true};
    if (ranks_is_first(run->ranks) && diag->worst == STATUS_OK && !stop_asked())
        simulate_pass(run, set, store, pass, diag);
}

static int cli_run_all(const struct run *run)
{
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    bool json = run->format == RECORDS_JSON && !run->quiet && !run->plan && run->shard.shards == 0;
    bool stores = run->db || ranks_count(run->ranks) > 1;
    if (stores && store_open_of_rank(&store, run->db, run->ranks, &diag) != STATUS_OK)
        return cli_report(&diag);
    if (run->db)
        stop_watch(STOP_AFTER);
    store_share(store, run->ranks, &diag);
    fputs(json ? "[\n  " : "", stdout);
    for (int i = 0; i < run->files.n && diag.worst == STATUS_OK && !stop_asked(); i++) {
        if (run->plan)
            output_plans(&run->sets[i], run->quiet, &diag);
        else
            cli_run_simulate(run, &run->sets[i], store, &diag);
    }
    fputs(json ? "\n]\n" : "", stdout);
    store_close(store);
    if (stop_asked())
        fprintf(stderr,
            "flopcast: stopped; what is finished is in %s, and the same command goes on\n",
            run->db);
    return cli_report(&diag);
}

int cmd_run(int argc, char **argv)
{
    const struct command_line line = {.options = run_options,
        .common = COMMON_SIMULATE,
        .args_doc = "FILE...",
        .files = FILES_SCENARIOS,
        .missing = "a scenario file is missing",
        .take = cli_run_take_file,
        .check = cli_run_check,
        .doc =
            "Simulate all points of the scenarios and print the results.\v"
            "If any file has a mistake, nothing is simulated or stored. Out of memory is a "
            "result, not an error.\n\n"
            "With --db a run may be stopped at any time, by Ctrl-C, kill -9 or a full disk: "
            "each finished point is stored, and the same command goes on with the missing ones. "
            "A point with the settings, files and seed of a stored one is not simulated again, "
            "even if that one belongs to another scenario, unless the program has changed. "
            "Figures show a scenario's newest run.\n\n"
            "Columns: TFLOPS are those of the model, or by the scenario's report.flops_formula, "
            "and count of causal attention what report.attention_flop says; MFU: the model "
            "FLOP's share of the precision's dense peak, independent of both (half of causal "
            "attention, so never above 1; fp8_mixed: of FP8's peak, fp4_mixed: of FP4's); "
            "exposed comm: compute waits for the network; bubble: it waits for another stage of "
            "the pipeline, which is not counted as exposed; HBM peak: the most that tensors take; "
            "reserved: the most that PyTorch's allocator holds, without CUDA context and NCCL."};
    struct run run = {0};
    command_line_parse(&line, argc, argv, &run);
    int status = cli_run_load_all(&run);
    if (status == CLI_OK && run.samples > 0)
        status = load_uncertainty(&run);
    if (status == CLI_OK && !run.plan)
        status = begin_ranks(&run);
    if (status == CLI_OK && run.trace)
        status = request_trace(&run);
    if (status == CLI_OK && run.chakra)
        status = check_chakra(&run);
    if (status == CLI_OK) {
        vary_find_all(&run.swept, run.sets, run.files.n, &run.arena);
        status = cli_run_all(&run);
    }
    ranks_end(run.ranks);
    vec_free(&run.swept.options);
    vec_free(&run.files);
    overrides_free(&run.overrides);
    own_runs_free(&run.measured);
    vec_free(&run.trace_ranks);
    arena_release(&run.arena);
    if (stop_asked())
        stop_leave();
    return status;
}
