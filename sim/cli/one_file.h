/* A command that shows one FILE, as a table or for programs. */
#ifndef FLOPCAST_CLI_ONE_FILE_H
#define FLOPCAST_CLI_ONE_FILE_H

#include "cli/records.h"

struct one_file {
    const char *path;
    enum records_format format;
};
struct one_file one_file_parse(int argc, char **argv, const char *doc);

#endif
