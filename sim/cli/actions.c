/* Commands whose first argument names an action, which is a command with its own options. */
#include "cli/arguments.h"
#include "cli/cli.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ACTIONS = 4 };

struct actions {
    const char *command, *names; /* names: for messages */
    struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } list[MOST_ACTIONS];
    int status;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct actions *actions = state->input;
    const char *are = strchr(actions->names, ',') ? "are" : "is";
    if (key == ARGP_KEY_NO_ARGS)
        argp_error(state, "what to do is missing; there %s: %s", are, actions->names);
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    for (int i = 0; i < MOST_ACTIONS && actions->list[i].name; i++)
        if (strcmp(arg, actions->list[i].name) == 0) {
            int first = state->next - 1; /* the action's own name is its argv[0] */
            char whole[64];
            snprintf(whole, sizeof whole, "flopcast %s %s", actions->command, arg);
            state->argv[first] = whole;
            actions->status = actions->list[i].run(state->argc - first, state->argv + first);
            state->next = state->argc;
            return 0;
        }
    argp_error(state, "'%s' is nothing to do; there %s: %s", arg, are, actions->names);
    return 0;
}

static int act(struct actions *actions, int argc, char **argv, const char *args_doc, const char *doc)
{
    const struct argp argp = {.parser = parse, .args_doc = args_doc, .doc = doc};
    arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, actions);
    return actions->status;
}

int cmd_calibrate(int argc, char **argv)
{
    struct actions actions = {.command = "calibrate",
        .names = "fit, import, check, show",
        .list = {{"fit", calibrate_fit}, {"import", calibrate_import}, {"check", calibrate_check},
            {"show", calibrate_show}}};
    return act(&actions, argc, argv, "fit|import|check|show [ARGUMENT...]",
        "Work with measurements.\v"
        "  fit         compute the parameters in topologies from measurements\n"
        "  import      put measurements into a database\n"
        "  check       compare a log of nccl-tests, or a trace, with what is predicted\n"
        "  show        print a fit that is in a database\n\n"
        "'flopcast calibrate fit --help' and so on explain each.");
}

int cmd_scenario(int argc, char **argv)
{
    struct actions actions = {.command = "scenario", .names = "import", .list = {{"import", scenario_import}}};
    return act(&actions, argc, argv, "import [ARGUMENT...]",
        "Work with scenario files.\v"
        "  import      make one of a configuration of DeepSpeed, accelerate, torchtitan or Megatron-LM\n\n"
        "'flopcast scenario import --help' explains it.");
}

int cmd_trace(int argc, char **argv)
{
    struct actions actions = {
        .command = "trace", .names = "scale, import", .list = {{"scale", trace_scale}, {"import", trace_import}}};
    return act(&actions, argc, argv, "scale|import [ARGUMENT...]",
        "Work with a trace of a real step.\v"
        "  scale       run it on any number of GPUs of a cluster\n"
        "  import      make one of the operators of a run without a GPU\n\n"
        "'flopcast trace scale --help' and so on explain each.");
}
