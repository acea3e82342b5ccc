#include "cli/cli.h"

#include "options/program.h"

int main(int argc, char **argv)
{
    return program_set_up() ? cli_main(argc, argv) : CLI_WORLD;
}
