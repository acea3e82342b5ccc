/* flopcast-interop: other programs' files; flopcast starts it (options/program.h). */
#include "options/program.h"

extern const struct command_row interop_commands[]; /* made by options/commands.cmake */

int main(int argc, char **argv)
{
    return program_main(argc, argv, interop_commands);
}
