/* flopcast memory MODEL: what training takes on one GPU; --teach: beside the rules of thumb that courses teach. */
#include "cli/memory.h"

#include "cli/cli.h"

int cmd_memory(int argc, char **argv)
{
    struct memory_request request = {.options = {.dtype = FOOTPRINT_BF16_MIXED, .gpus = 1}};
    memory_parse(&request, argc, argv,
        "What training MODEL takes on one GPU, in closed form, and which GPUs hold it. MODEL is a model file "
        "(scenarios/models/t5-11b.yaml, a Hugging Face config.json) or a number of parameters (1B, 11.3B, 124M)."
        "\vActivations are counted when a model file, --micro-batch and --seq-len are given. Bytes that only a run "
        "shows (fragmentation, buffers of NCCL) are left out: see 'flopcast run'. GB are 10^9 bytes; GiB, in which "
        "`run`, PyTorch and nvidia-smi count, 2^30.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    if (memory_load(&request, &arena, &diag) == STATUS_OK)
        memory_print(stdout, &request, &arena);
    memory_free(&request);
    arena_release(&arena);
    return cli_report(&diag);
}
