/* flopcast-lab: measurements and fits; flopcast starts it (options/program.h). */
#include "lab/lab.h"

#include "options/program.h"

static const struct program_command commands[] = {
    {"validate", cmd_validate},
    {"calibrate fit", calibrate_fit},
    {"calibrate import", calibrate_import},
    {"calibrate check", calibrate_check},
    {"calibrate show", calibrate_show},
};

int main(int argc, char **argv)
{
    return program_main(argc, argv, commands, sizeof commands / sizeof *commands);
}
