#include "cli/calibrate.h"
#include "cli/cli.h"

#include "calibrate/calibrate.h"

#include <argp.h>

enum { KEY_MEASURED = 256, KEY_GPUS };

struct folders {
    const char *measured, *gpus;
};

static const struct argp_option options[] = {
    {"measured", KEY_MEASURED, "FOLDER", 0, "Measurements (default: results/measured of the source)", 0},
    {"gpus", KEY_GPUS, "FOLDER", 0, "GPU files (default: topologies/gpus of the source)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct folders *folders = state->input;
    switch (key) {
    case KEY_MEASURED:
        folders->measured = arg;
        return 0;
    case KEY_GPUS:
        folders->gpus = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is one argument too many", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int calibrate_fit(int argc, char **argv)
{
    const struct argp argp = {.options = options,
        .parser = parse,
        .doc = "Compute the GPU parameters of topologies/gpus again from the measurements, and print them beside those "
               "in the files."};
    struct folders folders = {FLOPCAST_SOURCE_DIR "/results/measured", FLOPCAST_SOURCE_DIR "/topologies/gpus"};
    argp_parse(&argp, argc, argv, 0, NULL, &folders);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    calibrate_print(stdout, folders.measured, folders.gpus, &arena, &diag);
    arena_release(&arena);
    return cli_report(&diag);
}
