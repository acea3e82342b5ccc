/* flopcast-lab: measurements and fits; flopcast starts it (options/program.h). */
#include "options/program.h"

extern const struct command_row lab_commands[]; /* made by options/commands.cmake */

int main(int argc, char **argv)
{
    return program_main(argc, argv, lab_commands);
}
