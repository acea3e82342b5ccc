/* flopcast memory MODEL: what training takes on one GPU, beside the rules of thumb that courses teach. */
#include "cli/memory.h"

#include "cli/cli.h"

static error_t parse(int key, char *text, struct argp_state *state)
{
    (void)text;
    struct memory_request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = request;
        return 0;
    case ARGP_KEY_END:
        if (!request->options.micro_batch && request->options.seq_len)
            argp_error(state, "activations need both --micro-batch and --seq-len");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_memory(int argc, char **argv)
{
    static const struct argp_child children[] = {{.argp = &memory_argp}, {0}};
    static const struct argp argp = {.parser = parse,
        .args_doc = "MODEL",
        .children = children,
        .doc = "What training MODEL takes on one GPU, in closed form, beside the usual rules of thumb. MODEL is a "
               "model file "
               "(scenarios/models/t5-11b.yaml, a Hugging Face config.json) or a number of parameters (1B, 11.3B, 124M)."
               "\vActivations are counted when a model file, --micro-batch and --seq-len are given. Bytes that "
               "only a run shows (fragmentation, buffers of NCCL) are left out: see 'flopcast run'."};
    struct memory_request request = {.options = {.dtype = FOOTPRINT_BF16_MIXED, .gpus = 1}};
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    if (memory_load(&request, &arena, &diag) == STATUS_OK)
        memory_print(stdout, &request, &arena);
    arena_release(&arena);
    return cli_report(&diag);
}
