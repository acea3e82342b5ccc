#include "lab/log_options.h"
#include "options/command.h"

#include "import/direct.h"
#include "import/import.h"

#include <argp.h>
#include <string.h>

COMMAND(calibrate_import, 46, "calibrate import", 0, "put measurements into a database",
    "all_reduce_perf -b 1M -e 1G -f 2 -g 8 >all_reduce.log &&\n"
    "flopcast calibrate import nccl-tests all_reduce.log --db my.db");

struct import_command {
    const char *db;
    bool csv, has_format;
    enum import_format format;
    VEC(const char *) files;
    struct nccl_options nccl;
};

static void calibrate_import_take_argument(void *self, const struct argument *argument)
{
    struct import_command *command = self;
    if (command->has_format) {
        vec_push(&command->files, argument->text);
        return;
    }
    for (int i = 0; i < IMPORT_FORMAT_COUNT; i++)
        if (strcmp(argument->text, import_format_names[i]) == 0) {
            command->format = (enum import_format)i;
            command->has_format = true;
            return;
        }
    argp_error(argument->state,
        "'%s' is nothing to import; there are: nccl-tests, nsys, kineto, measure, direct",
        argument->text);
}

static void calibrate_import_check(void *self, struct argp_state *state)
{
    const struct import_command *command = self;
    bool of_nccl =
        command->csv || command->nccl.collective || command->nccl.ranks || command->nccl.nodes;
    if (!command->has_format)
        argp_error(state,
            "what to import is missing; there are: nccl-tests, nsys, kineto, measure, direct");
    if (command->files.n == 0)
        argp_error(state, "a file is missing");
    if (command->format != IMPORT_NCCL_TESTS && of_nccl)
        argp_error(state, "--format, --collective, --ranks and --nodes are for nccl-tests only");
    if (command->format == IMPORT_NSYS && command->files.n > 1)
        argp_error(state, "one profile at a time; '%s' is a second one", command->files.at[1]);
    if ((command->format == IMPORT_MEASURE || command->format == IMPORT_DIRECT) && command->db)
        argp_error(
            state, "%s stores nothing; leave out --db", import_format_names[command->format]);
    if (command->csv && command->db)
        argp_error(state, "--format csv stores nothing; leave out --db");
}

static void take_csv(void *csv, const struct argument *argument)
{
    if (strcmp(argument->text, "csv") != 0)
        argp_error(argument->state, "--format %s: csv is wanted", argument->text);
    *(bool *)csv = true;
}

static const struct command_option calibrate_import_options[] = {
    {"db", "PATH", "The database (default: results/flopcast.db); made when there is none",
        OPTION_TEXT, AT(import_command, db)},
    {"format", "csv", "Of nccl-tests: print the rows as CSV instead of storing them", OPTION_TAKE,
        AT(import_command, csv), .take = take_csv},
    LOG_OPTIONS("Of nccl-tests: ", struct import_command),
    {0},
};

int calibrate_import(int argc, char **argv)
{
    const struct command_line line = {.options = calibrate_import_options,
        .take = calibrate_import_take_argument,
        .check = calibrate_import_check,
        .args_doc = "nccl-tests|nsys|kineto|measure|direct FILE...",
        .doc =
            "Put measurements into a database: logs of nccl-tests (text or JSON), a Nsight Systems "
            "export (`nsys export --type sqlite`), traces of PyTorch's profiler; text and JSON "
            "also gzipped. Of the CSV of flopcast_measure (measure) each row is checked and a "
            "summary printed; it is not stored. Of tables of kernels measured alone (direct) the "
            "rows that results/measured/direct.csv files are printed.\v"
            "All files are stored or none. A file whose content is in the database is left out. "
            "Before a log, lines as '# gpu: H100' may say what it does not: source, gpu, network, "
            "n_nodes, n_gpus, collective, algo, proto."};
    struct import_command command = {0};
    command_line_parse(&line, argc, argv, &command);
    const struct import_request request = {.format = command.format,
        .files = command.files.at,
        .n_files = command.files.n,
        .nccl = command.nccl};
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    if (command.csv)
        import_print_csv(stdout, &request, &diag);
    else if (command.format == IMPORT_MEASURE)
        import_print_measured(stdout, &request, &diag);
    else if (command.format == IMPORT_DIRECT)
        direct_print(stdout, request.files, request.n_files, &diag);
    else if (store_open(&store, command.db ? command.db : "results/flopcast.db", STORE_WRITE,
                 &diag) == STATUS_OK)
        import_store(store, &request, stdout, &diag);
    store_close(store);
    vec_free(&command.files);
    return cli_report(&diag);
}
