/* Packed sequences: what the documents drawn for a rank's micro-batches make of its attention (exec.h). */
#include "exec/state.h"

/* The same for ranks that train on the same samples. */
static uint64_t data_rank(const struct mesh *mesh, int rank)
{
    static const enum mesh_axis axes[] = {AXIS_EP, AXIS_DP_SHARD, AXIS_DP_REPLICATE};
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        number = number * (uint64_t)mesh->size[axes[i]] + (uint64_t)mesh_coordinate(mesh, rank, axes[i]);
    return number;
}

static struct rng_stream stream_of(const struct sim *sim, const struct rank *rank, int32_t step, int32_t micro_batch)
{
    enum { RANK_BITS = 40, STEP_BITS = 16 };
    uint64_t number = data_rank(&sim->plan->mesh, rank->number) << RANK_BITS | (uint64_t)step << STEP_BITS;
    return rng_stream((uint64_t)sim->options->seed, ENTITY_DOCUMENTS, number | (uint64_t)micro_batch);
}

/* The micro-batches of a step, in the mean over the sequences of each. */
static void draw(const struct sim *sim, struct rank *rank, int32_t step)
{
    const struct plan_packing *packing = &rank->tables->program->packing;
    for (int32_t m = 0; m < packing->micro_batches; m++) {
        struct rng_stream stream = stream_of(sim, rank, step, m);
        int32_t sequences = m + 1 < packing->micro_batches ? packing->sequences : packing->last_sequences;
        rank->pairs[m] = 0;
        for (int32_t s = 0; s < sequences; s++)
            rank->pairs[m] += documents_draw(&packing->documents, &stream) / sequences;
    }
    rank->pairs_step = step;
}

double documents_longer(const struct sim *sim, struct rank *rank, int32_t step, int32_t op)
{
    int32_t kernel = op_of(rank, op)->index;
    double share = sim->costs.kernels[kernel].pairs_share;
    if (!(share > 0))
        return 1;
    if (rank->pairs_step != step)
        draw(sim, rank, step);
    int32_t micro_batch = plan_cell_of(rank->tables->program, op).micro_batch;
    return 1 + share * (rank->pairs[micro_batch] / sim->plan->kernels.at[kernel].pairs - 1);
}
