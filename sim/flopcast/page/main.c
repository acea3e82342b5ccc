/* flopcast in a browser: the commands that the page asks, by their arguments as a shell gives them.
 * sim/flopcast/page/worker.js calls main() for each command, many times in one instance, so what
 * little state the program keeps (that an interrupt was seen, that completion was asked for) must
 * be as it was at its start. It leaves by exit() as the program does. */
#include "cli/cli.h"

#include <argp.h>
#include <gsl/gsl_errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *whole;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", "flopcast run", cmd_run},
    {"memory", "flopcast memory", cmd_memory},
    {"capacity", "flopcast capacity", cmd_capacity},
    {"tune", "flopcast tune", cmd_tune},
};

int main(int argc, char **argv)
{
    argp_err_exit_status = CLI_INPUT;
    gsl_set_error_handler_off();
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            char whole[32];
            snprintf(whole, sizeof whole, "%s", commands[i].whole);
            argv[1] = whole;
            return commands[i].run(argc - 1, argv + 1);
        }
    fprintf(stderr, "flopcast: the page has the commands run, memory, capacity and tune\n");
    return CLI_INPUT;
}
