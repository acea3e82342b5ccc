/* FSDP: which parameters are sharded and gathered together. See fsdp.c. */
#include "strategy/fsdp.h"

bool fsdp_gathers_in_fp8(const struct fsdp *fsdp, const struct model_tensor *tensor)
{
    return fsdp->options->float8_all_gather && !tensor->frozen &&
           model_is_block_matrix(fsdp->emit->model, tensor);
}

/* The groups over which it is sharded and replicated. */
static void lay_out_groups(const struct fsdp *fsdp, struct shard_unit *unit)
{
    struct emit *emit = fsdp->emit;
    unsigned grid = unit->experts ? AXES_OF_EXPERT_GRID : 1U << AXIS_EP;
    unsigned shard = AXES_SHARD | grid,
             replicate = 1U << AXIS_DP_REPLICATE | (grid & AXES_OF_EXPERT_GRID);
    const char *of_all = unit->experts ? "expert_dp" : "world";
    unit->ranks = emit_degree(emit, shard);
    unit->replicas = emit_degree(emit, replicate);
    unit->group = unit->ranks > 1 ? emit_group(emit, unit->replicas > 1 ? "shard" : of_all, shard)
                                  : PLAN_NO_OP;
    unit->replicate_group =
        unit->replicas > 1 || unit->ranks == 1
            ? emit_group(emit, unit->ranks > 1 ? "replicate" : of_all, replicate)
            : PLAN_NO_OP;
}

/* Of n tensors of a layer. */
static struct shard_unit lay_out(const struct fsdp *fsdp, int layer, int first, int n, bool experts)
{
    struct emit *emit = fsdp->emit;
    struct shard_unit unit = {.layer = layer,
        .experts = experts,
        .first_tensor = first,
        .n_tensors = n,
        .gathered = PLAN_NO_OP,
        .cast = PLAN_NO_OP,
        .ready_op = PLAN_NO_OP,
        .unsharded_grad = PLAN_NO_OP,
        .sharded_grad = PLAN_NO_OP};
    int64_t trained = 0, kept = 0, used = 0, spared = 0;
    for (int t = first; t < first + n; t++) {
        const struct model_tensor *tensor = &emit->model->tensors[t];
        if (!fsdp_holds(&unit, tensor))
            continue;
        trained += tensor->frozen ? 0 : tensor->numel;
        kept += tensor->frozen ? emit_kept_bytes(emit, tensor) : 0;
        used += tensor->frozen ? emit_used_bytes(emit, tensor) : 0;
        spared += fsdp_gathers_in_fp8(fsdp, tensor) ? tensor->numel * (fsdp->gather_bytes - 1) : 0;
    }
    lay_out_groups(fsdp, &unit);
    unit.shard = (trained + unit.ranks - 1) / unit.ranks;
    unit.padded = unit.shard * unit.ranks;
    unit.kept_shard = unit.shard * emit->master_bytes + (kept + unit.ranks - 1) / unit.ranks;
    unit.used_shard = unit.shard * fsdp->gather_bytes + (used + unit.ranks - 1) / unit.ranks -
                      spared / unit.ranks;
    return unit;
}

static void add_unit(struct fsdp *fsdp, const struct shard_unit *unit)
{
    struct emit *emit = fsdp->emit;
    fsdp_add_shards(fsdp, unit);
    if (fsdp->options->cpu_offload) { /* the gradient has a place there, too */
        emit_keep_on_host(emit, unit->kept_shard + unit->shard * emit->master_bytes +
                                    emit_state_bytes(emit, optimizer_vector(unit->shard)));
        return;
    }
    plan_keep(&emit->builder, emit_name(emit, unit->layer, "flat_param"), unit->kept_shard,
        HBM_PARAMETERS);
}

/* Tensors of the root that the model's entry has, which come first, where the head is in another
 * chunk; else all. */
static int n_of_entry(const struct emit *emit)
{
    const struct model_program *entry = emit->segments.at[0].program;
    int n = 0;
    if (emit->schedule.chunks < 2 || emit->model->ends != MODEL_BOTH_ENDS)
        return emit->model->layers[0].n_tensors;
    for (int k = 0; k < entry->n_backward; k++)
        n = entry->backward[k].param_grad >= n ? entry->backward[k].param_grad + 1 : n;
    return n;
}

void fsdp_lay_out_units(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    int n = emit->model->n_layers, of_entry = n_of_entry(emit),
        of_root = emit->model->layers[0].n_tensors;
    bool apart = of_entry < of_root;
    fsdp->n_units = apart                                              ? 2 * n + 1
                    : model_expert_ranks(&emit->workload.parallel) > 1 ? 2 * n
                                                                       : n;
    fsdp->shards =
        ARENA_ARRAY(emit->arena, struct optimizer_tensor, fsdp->n_units + emit->model->n_tensors);
    fsdp->units = ARENA_ARRAY(emit->arena, struct shard_unit, fsdp->n_units);
    for (int u = 0; u < fsdp->n_units; u++) {
        const struct model_layer *at = &emit->model->layers[u % n];
        struct shard_unit *unit = &fsdp->units[u];
        bool head = u == 2 * n, experts = u >= n && !head;
        int first = at->first_tensor + (head ? of_entry : 0);
        *unit = lay_out(fsdp, u % n, first,
            head     ? of_root - of_entry
            : u == 0 ? of_entry
                     : at->n_tensors,
            experts);
        if (!experts || unit->used_shard > 0)
            add_unit(fsdp, unit);
    }
    fsdp->head = apart ? fsdp->units + fsdp->n_units - 1 : NULL;
    if (fsdp_shards(&fsdp->units[0]))
        emit->norm_group = fsdp->units[0].group;
}
