/* flopcast in a browser: the commands that the page asks, by their arguments as a shell gives them.
 * sim/flopcast/page/worker.js calls main() for each command, many times in one instance, so what
 * little state the program keeps (that an interrupt was seen, that completion was asked for) must
 * be as it was at its start. It leaves by exit() as the program does. */
#include "cli/cli.h"

#include <argp.h>
#include <gsl/gsl_errno.h>
#include <stdio.h>
#include <string.h>

int cmd_run(int argc, char **argv);
int cmd_memory(int argc, char **argv);
int cmd_capacity(int argc, char **argv);
int cmd_tune(int argc, char **argv);

static const struct command_row commands[] = {
    {.name = "run", .example = "flopcast run t5_scaling", .run = cmd_run},
    {.name = "memory",
        .example = "flopcast memory llama2-7b --strategy zero3 --gpus 64",
        .run = cmd_memory},
    {.name = "capacity",
        .example = "flopcast capacity llama2-7b --gpu h100 --seq-len 2048",
        .run = cmd_capacity},
    {.name = "tune",
        .example = "flopcast tune llama2_7b_h100_fsdp --set cluster.gpus=64",
        .run = cmd_tune},
    {0}};

int main(int argc, char **argv)
{
    argp_err_exit_status = CLI_INPUT;
    gsl_set_error_handler_off();
    command_take(commands);
    for (const struct command_row *at = commands; argc > 1 && at->name; at++)
        if (strcmp(argv[1], at->name) == 0) {
            char whole[32];
            snprintf(whole, sizeof whole, "flopcast %s", at->name);
            argv[1] = whole;
            return at->run(argc - 1, argv + 1);
        }
    fprintf(stderr, "flopcast: the page has the commands run, memory, capacity and tune\n");
    return CLI_INPUT;
}
