#include "cli/one_file.h"
#include "cli/arguments.h"

static const struct command_option options[] = {RECORDS_OPTION(struct one_file), {0}};

struct one_file one_file_parse(int argc, char **argv, const char *doc)
{
    const struct command_line line = {options, "FILE", doc, arguments_table, "file",
        .member = offsetof(struct one_file, path), .missing = "a file is missing"};
    struct one_file file = {0};
    command_line_parse(&line, argc, argv, &file);
    return file;
}
