#include "cli/one_file.h"
#include "cli/arguments.h"
#include "cli/records.h"

#include <argp.h>
#include <stddef.h>

enum { KEY_FORMAT = 256 };

static const struct argp_option options[] = {RECORDS_OPTION(KEY_FORMAT), {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct one_file *file = state->input;
    switch (key) {
    case KEY_FORMAT:
        file->format = (enum records_format)argument_name("format", arg, records_format_names, state);
        return 0;
    case ARGP_KEY_ARG:
        if (file->path)
            argp_error(state, "one file at a time; '%s' is a second one", arg);
        file->path = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a file is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

struct one_file one_file_parse(int argc, char **argv, const char *doc)
{
    const struct argp argp = {
        .options = options, .parser = parse, .children = arguments_table, .args_doc = "FILE", .doc = doc};
    struct one_file file = {0};
    arguments_parse(&argp, argc, argv, 0, &file);
    return file;
}
