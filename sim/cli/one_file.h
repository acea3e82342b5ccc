/* A command that takes one FILE and no options of its own. */
#ifndef FLOPCAST_CLI_ONE_FILE_H
#define FLOPCAST_CLI_ONE_FILE_H

const char *one_file_parse(int argc, char **argv, const char *doc);

#endif
