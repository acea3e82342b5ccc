#include "cli/calibrate.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/log_options.h"

#include "import/import.h"

#include <argp.h>
#include <string.h>

enum { KEY_DB = 256, KEY_FORMAT };

struct import_command {
    const char *db;
    bool csv, has_format;
    enum import_format format;
    VEC(const char *) files;
    struct nccl_options nccl;
};

static const struct argp_option options[] = {
    {"db", KEY_DB, "PATH", 0, "The database (default: results/flopcast.db); made when there is none", 0},
    {"format", KEY_FORMAT, "csv", 0, "Of nccl-tests: print the rows as CSV instead of storing them", 0},
    LOG_OPTIONS("Of nccl-tests: "),
    {0},
};

static void take_argument(struct import_command *command, const char *arg, struct argp_state *state)
{
    if (command->has_format) {
        vec_push(&command->files, arg);
        return;
    }
    for (int i = 0; i < IMPORT_FORMAT_COUNT; i++)
        if (strcmp(arg, import_format_names[i]) == 0) {
            command->format = (enum import_format)i;
            command->has_format = true;
            return;
        }
    argp_error(state, "'%s' is nothing to import; there are: nccl-tests, nsys, kineto, measure", arg);
}

static void check(const struct import_command *command, struct argp_state *state)
{
    bool of_nccl = command->csv || command->nccl.collective || command->nccl.ranks || command->nccl.nodes;
    if (!command->has_format)
        argp_error(state, "what to import is missing; there are: nccl-tests, nsys, kineto, measure");
    if (command->files.n == 0)
        argp_error(state, "a file is missing");
    if (command->format != IMPORT_NCCL_TESTS && of_nccl)
        argp_error(state, "--format, --collective, --ranks and --nodes are for nccl-tests only");
    if (command->format == IMPORT_NSYS && command->files.n > 1)
        argp_error(state, "one profile at a time; '%s' is a second one", command->files.at[1]);
    if (command->format == IMPORT_MEASURE && command->db)
        argp_error(state, "measure stores nothing; leave out --db");
    if (command->csv && command->db)
        argp_error(state, "--format csv stores nothing; leave out --db");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct import_command *command = state->input;
    switch (key) {
    case KEY_DB:
        command->db = arg;
        return 0;
    case KEY_FORMAT:
        if (strcmp(arg, "csv") != 0)
            argp_error(state, "--format %s: csv is wanted", arg);
        command->csv = true;
        return 0;
    case KEY_COLLECTIVE:
    case KEY_RANKS:
    case KEY_NODES:
        log_option(&command->nccl, key, arg, state);
        return 0;
    case ARGP_KEY_ARG:
        take_argument(command, arg, state);
        return 0;
    case ARGP_KEY_END:
        check(command, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int calibrate_import(int argc, char **argv)
{
    const struct argp argp = {.options = options,
        .parser = parse,
        .args_doc = "nccl-tests|nsys|kineto|measure FILE...",
        .doc = "Put measurements into a database: logs of nccl-tests (text or JSON), a Nsight Systems export "
               "(`nsys export --type sqlite`), traces of PyTorch's profiler; text and JSON also gzipped. Of the CSV of "
               "flopcast_measure (measure) each row is checked and a summary "
               "printed; it is not stored.\v"
               "All files are stored or none. A file whose content is in the database is left out. Before a log, lines "
               "as '# gpu: H100' may say what it does not: source, gpu, network, n_nodes, n_gpus, collective, algo, "
               "proto."};
    struct import_command command = {0};
    arguments_parse(&argp, argc, argv, 0, &command);
    const struct import_request request = {
        .format = command.format, .files = command.files.at, .n_files = command.files.n, .nccl = command.nccl};
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    if (command.csv)
        import_print_csv(stdout, &request, &diag);
    else if (command.format == IMPORT_MEASURE)
        import_print_measured(stdout, &request, &diag);
    else if (store_open(&store, command.db ? command.db : "results/flopcast.db", STORE_WRITE, &diag) == STATUS_OK)
        import_store(store, &request, stdout, &diag);
    store_close(store);
    vec_free(&command.files);
    return cli_report(&diag);
}
