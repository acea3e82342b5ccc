#include "lab/log_options.h"

void argument_collective(void *name, const struct argument *argument)
{
    const char **out = name;
    *out = nccl_collective(argument->text);
    if (!*out)
        argp_error(argument->state,
            "--collective %s: all_reduce, all_gather, reduce_scatter, broadcast, reduce, "
            "all_to_all, send_recv, gather, scatter or hypercube is wanted",
            argument->text);
}
