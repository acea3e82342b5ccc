#include "cli/one_file.h"
#include "cli/arguments.h"

#include <argp.h>
#include <stddef.h>

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const char **path = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (*path)
            argp_error(state, "one file at a time; '%s' is a second one", arg);
        *path = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a file is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const char *one_file_parse(int argc, char **argv, const char *doc)
{
    const struct argp argp = {.parser = parse, .args_doc = "FILE", .doc = doc};
    const char *path = NULL;
    arguments_parse(&argp, argc, argv, 0, &path);
    return path;
}
