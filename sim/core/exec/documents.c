/* Packed sequences: what the documents drawn for a rank's micro-batches make of its attention
 * (exec.h). */
#include "exec/state.h"

/* The same for ranks that train on the same samples. */
static uint64_t data_rank(const struct mesh *mesh, int rank)
{
    static const enum mesh_axis axes[] = {AXIS_EP, AXIS_DP_SHARD, AXIS_DP_REPLICATE};
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        number =
            number * (uint64_t)mesh->size[axes[i]] + (uint64_t)mesh_coordinate(mesh, rank, axes[i]);
    return number;
}

static struct rng_stream documents_stream_of(
    const struct sim *sim, const struct rank *rank, int32_t step, int32_t micro_batch)
{
    enum { RANK_BITS = 40, STEP_BITS = 16, FIRST_MEASURED = 1 << 15 };
    uint64_t place = (uint64_t)(step - sim->options->warmup_steps + FIRST_MEASURED),
             number = data_rank(&sim->plan->mesh, rank->number) << RANK_BITS | place << STEP_BITS;
    return rng_stream(
        (uint64_t)sim->options->seed, ENTITY_DOCUMENTS, number | (uint64_t)micro_batch);
}

/* The micro-batches of a step, in the mean over the sequences of each. */
static void exec_documents_draw(const struct sim *sim, struct rank *rank, int32_t step)
{
    const struct plan_packing *packing = &rank->tables->program->packing;
    for (int32_t m = 0; m < packing->micro_batches; m++) {
        struct rng_stream stream = documents_stream_of(sim, rank, step, m);
        int32_t sequences =
            m + 1 < packing->micro_batches ? packing->sequences : packing->last_sequences;
        rank->pairs[m] = 0;
        if (rank->tokens)
            rank->pairs[m] =
                documents_draw_number(&packing->documents, &stream, sequences, &rank->tokens[m]);
        for (int32_t s = 0; s < sequences && !rank->tokens; s++)
            rank->pairs[m] += documents_draw(&packing->documents, &stream) / sequences;
    }
    rank->pairs_step = step;
}

/* Kernels of the model, which go with the tokens of a micro-batch. Copies are FSDP's, mostly, of
 * parameters. */
static bool goes_with_tokens(enum kernel_kind kind, const struct plan_op *op)
{
    bool of_pass =
        op->phase == PHASE_FORWARD || op->phase == PHASE_BACKWARD || op->phase == PHASE_RECOMPUTE;
    return of_pass && op->stream == STREAM_COMPUTE &&
           (kind == KERNEL_GEMM || kind == KERNEL_ATTENTION || kind == KERNEL_SOFTMAX ||
               kind == KERNEL_NORM || kind == KERNEL_ELEMENTWISE || kind == KERNEL_EMBEDDING ||
               kind == KERNEL_LOSS);
}

void documents_draws(
    const struct sim *sim, struct rank *rank, int32_t step, int32_t op, struct kernel_draws *draws)
{
    const struct plan_op *at = op_of(rank, op);
    const struct kernel_work *work = &sim->plan->kernels.at[at->index];
    double share = sim->costs.kernels[at->index].pairs_share, tokens = 1;
    bool by_tokens = rank->tokens && goes_with_tokens(work->kind, at);
    if (!(share > 0) && !by_tokens)
        return;
    struct plan_cell cell = plan_cell_of(rank->tables->program, op);
    if (!cell.pass)
        return;
    if (rank->pairs_step != step)
        exec_documents_draw(sim, rank, step);
    if (by_tokens)
        tokens = rank->tokens[cell.micro_batch];
    if (share > 0) /* over what all of the kernel goes with */
        draws->compute = 1 + share * (rank->pairs[cell.micro_batch] / work->pairs / tokens - 1);
    draws->jitter *= tokens;
}
