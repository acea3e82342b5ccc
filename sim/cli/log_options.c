#include "cli/log_options.h"

#include "cli/arguments.h"

static const char *collective(const char *arg, struct argp_state *state)
{
    const char *name = nccl_collective(arg);
    if (!name)
        argp_error(state,
            "--collective %s: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_recv, "
            "gather, scatter or hypercube is wanted",
            arg);
    return name;
}

void log_option(struct nccl_options *out, int key, const char *arg, struct argp_state *state)
{
    static const int most = 1 << 20;
    if (key == KEY_COLLECTIVE)
        out->collective = collective(arg, state);
    else if (key == KEY_RANKS)
        out->ranks = argument_count("ranks", arg, most, state);
    else
        out->nodes = argument_count("nodes", arg, most, state);
}
