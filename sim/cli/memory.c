/* flopcast memory MODEL: what training takes on one GPU; --teach: beside the rules of thumb that courses teach. */
#include "cli/memory.h"

#include "cli/cli.h"

int cmd_memory(int argc, char **argv)
{
    struct memory_request request = {0};
    memory_parse(&request, argc, argv,
        "What training MODEL takes on one GPU at its fullest moment, and which GPUs hold it. MODEL is a model file "
        "(scenarios/models/t5-11b.yaml, a Hugging Face config.json) or a number of parameters (1B, 11.3B, 124M)."
        "\vOf a model file, a step is laid out as `run` does, and what it allocates is counted; of one token (image, "
        "sample) where no --micro-batch is given. Of a number of parameters only weights, gradients and optimizer "
        "state are counted. What the allocator reserves beyond that (fragmentation) is left out: see 'flopcast fit' "
        "and 'flopcast run'. GB are 10^9 bytes; GiB, in which `run`, PyTorch and nvidia-smi count, 2^30.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    if (memory_load(&request, &arena, &diag) == STATUS_OK)
        memory_print(stdout, &request, &arena, &diag);
    memory_free(&request);
    arena_release(&arena);
    return cli_report(&diag);
}
