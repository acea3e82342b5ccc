/* torchao's FP8 under fully_shard: what is gathered in FP8, and its scales. */
#include "strategy/fsdp.h"

enum { FLOAT_BYTES = 4 };

bool fsdp_is_gathered_in_fp8(const struct fsdp *fsdp, const struct model_tensor *tensor)
{
    return fsdp->options->float8_all_gather && !tensor->frozen && model_is_block_matrix(fsdp->emit->model, tensor);
}

void fsdp_precompute_scales(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    int matrices = 0;
    double elements = 0;
    for (int t = 0; t < emit->model->n_tensors; t++)
        if (fsdp_is_gathered_in_fp8(fsdp, &emit->model->tensors[t])) {
            matrices++;
            elements += (double)emit->model->tensors[t].numel / fsdp->units[0].ranks;
        }
    if (matrices == 0)
        return;
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_NORM, "float8_scales/amax", elements * (double)emit->master_bytes,
        matrices * FLOAT_BYTES);
    if (emit->norm_group != PLAN_NO_OP)
        emit_all_reduce(emit, "float8_scales/all_reduce", matrices * FLOAT_BYTES, emit->norm_group, PARALLEL_DATA);
}
