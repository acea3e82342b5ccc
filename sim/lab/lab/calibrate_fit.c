/* flopcast calibrate fit: one command for all fits; the first word says which, none means the
 * GPUs.
 *
 * calibrate_fit_take_argument() reads the word, then files, which only nccl and measure take;
 * calibrate_fit_check() refuses options that belong to another fit, as every fit shares one table
 * of options. The functions fit_... load, solve, print and, where asked, write or store. Messages
 * go to one diag, so a fit that fails is reported at the end.
 *
 * What is subtle: "nccl" alone fits flopcast's own tables, with logs and --topology the user's
 * cluster: both words are one entry of fit_names. training reads FOLDER/training.yaml as base
 * where the folder has one. The fit of the tables is printed also when it is refused, as long as
 * there is a solution, to show why. */
#include "lab/log_options.h"
#include "options/command.h"
#include "rows/words.h"

#include "base/files.h"
#include "calibrate/gpu_fit.h"
#include "calibrate/cluster_fit.h"
#include "calibrate/direct_fit.h"
#include "calibrate/kernels_fit.h"
#include "calibrate/logs_fit.h"
#include "calibrate/measure_fit.h"
#include "calibrate/nccl_fit.h"
#include "calibrate/overlap_fit.h"
#include "calibrate/training_fit.h"
#include "store/store.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

COMMAND(calibrate_fit, 44, "calibrate fit", 0,
    "compute the parameters in topologies from measurements", "flopcast calibrate fit");

enum fit_what {
    FIT_GPUS,
    FIT_NCCL,
    FIT_TRAINING,
    FIT_CLUSTER,
    FIT_KERNELS,
    FIT_OVERLAP,
    FIT_DIRECT,
    FIT_MEASURE,
    FIT_COUNT
};
static const char *const fit_names[FIT_COUNT + 1] = {
    "", "nccl", "training", "cluster", "kernels", "overlap", "direct", "measure", NULL};

struct fit_command {
    const char *measured, *gpus, *clusters, *db, *gpu, *topology, *out;
    VEC(const char *) files;
    struct tables {
        VEC(const char *) list;
    } tables;
    struct nccl_options nccl;
    enum fit_what what;
    bool correlations, cross_validate;
};

/* What to fit, then its files. */
static void calibrate_fit_take_argument(void *self, const struct argument *argument)
{
    struct fit_command *command = self;
    const struct argp_state *state = argument->state;
    const char *arg = argument->text;
    bool takes_files =
        command->what == FIT_NCCL || (command->what == FIT_MEASURE && command->files.n == 0);
    if (state->arg_num > 0 && takes_files) {
        vec_push(&command->files, arg);
        return;
    }
    while (fit_names[command->what] &&
           (state->arg_num > 0 || strcmp(fit_names[command->what], arg) != 0))
        command->what++;
    if (!fit_names[command->what])
        argp_error(state,
            "'%s' is nothing to fit; 'nccl', 'training', 'cluster', 'kernels', 'overlap', "
            "'direct', 'measure FILE', or nothing for the GPUs",
            arg);
}

static void calibrate_fit_check(void *self, struct argp_state *state)
{
    const struct fit_command *command = self;
    bool logs = command->what == FIT_NCCL && command->files.n > 0;
    if (command->what == FIT_MEASURE ? command->files.n == 0 || !command->gpu
                                     : command->gpu != NULL)
        argp_error(state, "a file of flopcast_measure and its --gpu FILE go together: calibrate "
                          "fit measure FILE --gpu FILE");
    if (logs != (command->topology != NULL))
        argp_error(state, "logs of nccl-tests and their --topology FILE go together: calibrate fit "
                          "nccl LOG... --topology FILE");
    bool fits_files = logs || command->what == FIT_MEASURE || command->what == FIT_TRAINING;
    if (!logs && (command->nccl.collective || command->nccl.ranks > 0 || command->nccl.nodes > 0))
        argp_error(state, "--collective, --ranks and --nodes are for: calibrate fit nccl LOG...");
    if (command->out && (!fits_files || command->correlations || command->cross_validate))
        argp_error(state, "--out is for: calibrate fit nccl LOG..., measure, and training");
    if (command->db && command->what != FIT_GPUS && command->what != FIT_NCCL)
        argp_error(state, "--db is for: calibrate fit nccl, calibrate fit");
    if (command->correlations &&
        (logs || (command->what != FIT_NCCL && command->what != FIT_TRAINING)))
        argp_error(state, "--correlations is for: calibrate fit nccl, and training");
    if (command->tables.list.n > 0 && command->what != FIT_TRAINING)
        argp_error(state, "--measurements is for: calibrate fit training");
    if (command->cross_validate && (command->what != FIT_TRAINING || command->correlations))
        argp_error(state, "--cross-validate is for: calibrate fit training, alone");
}

static void calibrate_fit_take_measurements(void *tables, const struct argument *argument)
{
    vec_push(&((struct tables *)tables)->list, argument->text);
}

static const struct command_option calibrate_fit_options[] = {
    {"measured", "FOLDER",
        "Measurements (default: flopcast's results/measured); training: its training.csv, and "
        "training.yaml where that is not flopcast's",
        OPTION_TEXT, AT(fit_command, measured)},
    {"measurements", "FILE.csv",
        "training: this table of runs in place of training.csv; may be given several times",
        OPTION_TAKE, AT(fit_command, tables), .take = calibrate_fit_take_measurements,
        .flags = OPTION_LIST},
    {"gpus", "FOLDER", "GPU files (default: flopcast's topologies/gpus)", OPTION_TEXT,
        AT(fit_command, gpus)},
    {"clusters", "FOLDER", "Cluster files (default: flopcast's topologies/clusters)", OPTION_TEXT,
        AT(fit_command, clusters)},
    {"db", "PATH",
        "Store the fit in this database: of nccl, for `flopcast calibrate show`; of GPUs, for "
        "`flopcast plot gemm`",
        OPTION_TEXT, AT(fit_command, db)},
    {"gpu", "FILE", "measure: the GPU that was measured, a file of topologies/gpus", OPTION_TEXT,
        AT(fit_command, gpu)},
    {"topology", "FILE", "nccl LOG...: the cluster that they are of, a file of topologies/clusters",
        OPTION_TEXT, AT(fit_command, topology)},
    LOG_OPTIONS("nccl LOG...: ", struct fit_command),
    {"out", "FILE",
        "Write the file that was fitted once more, with the fitted numbers: of nccl LOG... that of "
        "the cluster, MINE.yaml, and beside it MINE-node.yaml, where numbers of its node were "
        "fitted; of measure that of the GPU; training: into this folder, GPU files and stack "
        "profiles",
        OPTION_TEXT, AT(fit_command, out)},
    {"correlations", NULL,
        "nccl, training: print the correlations of the fit, an entry of "
        "topologies/fitted/correlations.yaml",
        OPTION_FLAG, AT(fit_command, correlations)},
    {"cross-validate", NULL,
        "training: leave out one source and model after the other, and print how well the fit to "
        "the rest predicts it (ten minutes)",
        OPTION_FLAG, AT(fit_command, cross_validate)},
    {0},
};

static void fit_gpus(const struct fit_command *command, struct arena *arena, struct diag *diag)
{
    struct store *store = NULL;
    enum status status = gpu_fit_print(stdout, command->measured, command->gpus, arena, diag);
    if (status != STATUS_OK || !command->db ||
        store_open(&store, command->db, STORE_WRITE, diag) != STATUS_OK)
        return;
    gpu_fit_store(command->measured, command->gpus, store, arena, diag);
    store_close(store);
}

static void fit_measured(const struct fit_command *command, struct arena *arena, struct diag *diag)
{
    struct hw_gpu filed;
    struct measured_file file = {0};
    struct measure_fit fit;
    const char *gpu = files_find(arena, FILES_GPUS, command->gpu);
    enum status status = hw_load_gpu(&filed, gpu, arena, diag);
    if (status != STATUS_OK || measured_read(&file, command->files.at[0], diag) != STATUS_OK) {
        measured_file_free(&file);
        return;
    }
    if (measure_fit_solve(&fit, &filed, &file, diag) == STATUS_OK) {
        measure_fit_print(stdout, &fit, &filed, &file);
        if (command->out)
            measure_fit_write(&fit, &filed, &file, gpu, command->out, arena, diag);
        measure_fit_free(&fit);
    }
    measured_file_free(&file);
}

static void fit_nccl(const struct fit_command *command, struct arena *arena, struct diag *diag)
{
    struct nccl_fit fit;
    struct store *store = NULL;
    enum status status =
        command->db ? store_open(&store, command->db, STORE_WRITE, diag) : STATUS_OK;
    if (status == STATUS_OK)
        status = nccl_fit_load(&fit, command->measured, command->clusters, arena, diag);
    else
        fit = (struct nccl_fit){0};
    if (status == STATUS_OK)
        status = nccl_fit_solve(&fit, 1, diag);
    if (fit.fit.covariance && !command->correlations)
        nccl_fit_print(stdout, &fit);
    if (fit.fit.covariance && command->correlations)
        fit_print_correlations(stdout, &fit.fit);
    if (store && status == STATUS_OK)
        nccl_fit_store(&fit, command->measured, store, diag);
    store_close(store);
    nccl_fit_free(&fit);
}

static void fit_logs(const struct fit_command *command, struct arena *arena, struct diag *diag)
{
    const struct logs_request request = {
        .topology = files_find(arena, FILES_CLUSTERS, command->topology),
        .logs = command->files.at,
        .n_logs = command->files.n,
        .nccl = command->nccl};
    struct logs_fit fit;
    struct store *store = NULL;
    enum status status = logs_fit_solve(&fit, &request, arena, diag);
    if (status == STATUS_OK) {
        struct words_gathered lines;
        logs_fit_print(words_gather(&lines), &fit);
        words_gathered(stdout, &lines);
    }
    if (status == STATUS_OK && command->out)
        status = logs_fit_write(&fit, &request, command->out, arena, diag);
    if (status == STATUS_OK && command->db &&
        store_open(&store, command->db, STORE_WRITE, diag) == STATUS_OK)
        nccl_fit_store(&fit.nccl, command->files.at[0], store, diag);
    store_close(store);
    logs_fit_free(&fit);
}

static void fit_training(const struct fit_command *command, const char *table, const char *base,
    struct arena *arena, struct diag *diag)
{
    struct training_fit fit = {0};
    const struct tables *given = &command->tables;
    enum status status = given->list.n > 0
                             ? training_fit_load_tables(&fit, (const char *const *)given->list.at,
                                   given->list.n, base, diag)
                             : training_fit_load_tables(&fit, &table, 1, base, diag);
    if (status == STATUS_OK)
        status = training_fit_priors(
            &fit, files_own(arena, "topologies/fitted/priors.yaml"), arena, diag);
    if (status == STATUS_OK && command->cross_validate) {
        training_fit_cross_validate(stdout, &fit, diag);
    } else if (status == STATUS_OK && command->correlations) {
        training_fit_filed(&fit);
        fit_print_correlations(stdout, &fit.fit);
    } else if (status == STATUS_OK && training_fit_solve(&fit, diag) == STATUS_OK) {
        training_fit_print(stdout, &fit);
        if (command->out)
            training_fit_write(&fit, command->out, diag);
    }
    training_fit_free(&fit);
}

static void fit_cluster(const char *table, const char *base, struct diag *diag)
{
    struct cluster_fit fit;
    if (cluster_fit_solve(&fit, table, base, diag) == STATUS_OK)
        cluster_fit_print(stdout, &fit);
}

static void fit_overlap(const struct fit_command *command, struct arena *arena, struct diag *diag)
{
    struct overlap_fit fit;
    if (overlap_fit_solve(&fit, command->measured, command->clusters, arena, diag) == STATUS_OK)
        overlap_fit_print(stdout, &fit);
    overlap_fit_free(&fit);
}

int calibrate_fit(int argc, char **argv)
{
    const struct command_line line = {.options = calibrate_fit_options,
        .take = calibrate_fit_take_argument,
        .check = calibrate_fit_check,
        .args_doc = "[nccl | nccl LOG... --topology FILE | training | cluster | kernels | overlap "
                    "| direct | measure FILE --gpu FILE]",
        .doc = "Compute the parameters of topologies/gpus again from the measurements, and print "
               "them beside those in the files; with 'nccl', those of collectives in "
               "topologies/nodes and clusters, and the errors of every table of nccl-tests, fitted "
               "or left out; with 'nccl LOG...', those of your own cluster from your own logs of "
               "nccl-tests; with 'training', the rates and costs of the host that only training "
               "shows, in topologies/gpus and scenarios/stacks, from the rows of tables of runs "
               "that say used_in_fit (minutes); with 'cluster', the "
               "variation that cluster files assume, from the scaling curves among them (minutes); "
               "with 'kernels', the rates of A100 and GH200 from operators measured one by one, "
               "and the errors on shapes held out; with 'overlap', what kernels lose beside "
               "collectives, from traces and published slowdowns; with 'direct', the rates of "
               "A100, Hopper and Blackwell from kernels measured alone by shape, and the errors on "
               "shapes held out; with 'measure', a GPU's numbers from the times that "
               "flopcast_measure took on it.\vTo your own logs: text or JSON, also gzipped, of one "
               "process a GPU, on one node and on several; all together determine the numbers of a "
               "copy of the cluster file that is nearest to yours (--out), those of its node file "
               "only with logs of one node. What they do not determine stays as "
               "it is.\n\n"
               "To your own runs: put their table, as `flopcast validate --measurements` takes it, "
               "into a folder as training.csv, name the GPU file in used_in_fit of each row, and "
               "give 'training' --measured FOLDER --out FOLDER. Numbers of kind fitted in its GPU "
               "file and stack profile are fitted again; assumed ones only if a row names them: "
               "`used_in_fit: my-gpu.yaml: gemm_sustained`."};
    struct arena arena = ARENA_INIT;
    struct fit_command command = {.measured = files_own(&arena, "results/measured"),
        .gpus = files_own(&arena, "topologies/gpus"),
        .clusters = files_own(&arena, "topologies/clusters")};
    command_line_parse(&line, argc, argv, &command);
    struct diag diag = DIAG_INIT;
    const char *table = arena_printf(&arena, "%s/training.csv", command.measured);
    const char *base = arena_printf(&arena, "%s/training.yaml", command.measured);
    if (access(base, F_OK) != 0) /* as `flopcast validate` has it */
        base = files_own(&arena, "results/measured/training.yaml");
    if (command.what == FIT_NCCL && command.files.n > 0)
        fit_logs(&command, &arena, &diag);
    else if (command.what == FIT_NCCL)
        fit_nccl(&command, &arena, &diag);
    else if (command.what == FIT_TRAINING)
        fit_training(&command, table, base, &arena, &diag);
    else if (command.what == FIT_CLUSTER)
        fit_cluster(table, base, &diag);
    else if (command.what == FIT_KERNELS)
        kernels_fit_print(stdout, command.measured, command.gpus, &arena, &diag);
    else if (command.what == FIT_OVERLAP)
        fit_overlap(&command, &arena, &diag);
    else if (command.what == FIT_DIRECT)
        direct_fit_print(stdout, command.measured, command.gpus, &arena, &diag);
    else if (command.what == FIT_MEASURE)
        fit_measured(&command, &arena, &diag);
    else
        fit_gpus(&command, &arena, &diag);
    vec_free(&command.files);
    vec_free(&command.tables.list);
    arena_release(&arena);
    return cli_report(&diag);
}
