#include "cli/arguments.h"
#include "cli/cli.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} actions[] = {
    {"fit", calibrate_fit}, {"import", calibrate_import}, {"check", calibrate_check}, {"show", calibrate_show}};
enum { N_ACTIONS = sizeof actions / sizeof *actions };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_ARG:
        for (int i = 0; i < N_ACTIONS; i++)
            if (strcmp(arg, actions[i].name) == 0) {
                int first = state->next - 1; /* the action's own name is its argv[0] */
                char whole[64];
                snprintf(whole, sizeof whole, "flopcast calibrate %s", arg);
                state->argv[first] = whole;
                *(int *)state->input = actions[i].run(state->argc - first, state->argv + first);
                state->next = state->argc;
                return 0;
            }
        argp_error(state, "'%s' is nothing to do; there are: fit, import, check, show", arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "what to do is missing; there are: fit, import, check, show");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_calibrate(int argc, char **argv)
{
    const struct argp argp = {.parser = parse,
        .args_doc = "fit|import|check|show [ARGUMENT...]",
        .doc = "Work with measurements.\v"
               "  fit         compute the parameters in topologies from measurements\n"
               "  import      put measurements into a database\n"
               "  check       compare a log of nccl-tests, or a trace, with what is predicted\n"
               "  show        print a fit that is in a database\n\n"
               "'flopcast calibrate fit --help' and so on explain each."};
    int status = CLI_OK;
    arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &status);
    return status;
}
