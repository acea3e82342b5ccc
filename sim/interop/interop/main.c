/* flopcast-interop: other programs' files; flopcast starts it (options/program.h). */
#include "interop/interop.h"

#include "options/program.h"

static const struct program_command commands[] = {
    {"scenario import", scenario_import},
    {"topology import", topology_import},
    {"trace scale", trace_scale},
    {"calibrate check trace", calibrate_check_trace},
    {"replay", cmd_replay},
    {"chakra export", chakra_export},
    {"scenario emit", scenario_emit},
    {"compress", interop_compress},
};

int main(int argc, char **argv)
{
    return program_main(argc, argv, commands, sizeof commands / sizeof *commands);
}
