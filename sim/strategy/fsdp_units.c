/* FSDP: what its units hold, and over which ranks. See fsdp.c. */
#include "strategy/fsdp.h"

/* The groups over which it is sharded and replicated. */
static void lay_out_groups(const struct fsdp *fsdp, struct shard_unit *unit)
{
    struct emit *emit = fsdp->emit;
    unsigned grid = unit->experts ? AXES_OF_EXPERT_GRID : 1U << AXIS_EP;
    unsigned shard = AXES_SHARD | grid, replicate = 1U << AXIS_DP_REPLICATE | (grid & AXES_OF_EXPERT_GRID);
    const char *of_all = unit->experts ? "expert_dp" : "world";
    unit->ranks = emit_degree(emit, shard);
    unit->replicas = emit_degree(emit, replicate);
    unit->group = unit->ranks > 1 ? emit_group(emit, unit->replicas > 1 ? "shard" : of_all, shard) : PLAN_NO_OP;
    unit->replicate_group = unit->replicas > 1 || unit->ranks == 1
                                ? emit_group(emit, unit->ranks > 1 ? "replicate" : of_all, replicate)
                                : PLAN_NO_OP;
}

static struct shard_unit lay_out(const struct fsdp *fsdp, int layer, bool experts)
{
    struct emit *emit = fsdp->emit;
    const struct model_layer *at = &emit->model->layers[layer];
    struct shard_unit unit = {.layer = layer,
        .experts = experts,
        .first_tensor = at->first_tensor,
        .n_tensors = at->n_tensors,
        .gathered = PLAN_NO_OP,
        .cast = PLAN_NO_OP,
        .ready_op = PLAN_NO_OP,
        .unsharded_grad = PLAN_NO_OP,
        .sharded_grad = PLAN_NO_OP};
    int64_t trained = 0, kept = 0, used = 0, spared = 0;
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++) {
        const struct model_tensor *tensor = &emit->model->tensors[t];
        if (!fsdp_holds(&unit, tensor))
            continue;
        trained += tensor->frozen ? 0 : tensor->numel;
        kept += tensor->frozen ? emit_kept_bytes(emit, tensor) : 0;
        used += tensor->frozen ? emit_used_bytes(emit, tensor) : 0;
        spared += fsdp_is_gathered_in_fp8(fsdp, tensor) ? tensor->numel * (fsdp->gather_bytes - 1) : 0;
    }
    lay_out_groups(fsdp, &unit);
    unit.shard = (trained + unit.ranks - 1) / unit.ranks;
    unit.padded = unit.shard * unit.ranks;
    unit.kept_shard = unit.shard * emit->master_bytes + (kept + unit.ranks - 1) / unit.ranks;
    unit.used_shard = unit.shard * fsdp->gather_bytes + (used + unit.ranks - 1) / unit.ranks - spared / unit.ranks;
    return unit;
}

void fsdp_lay_out(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    int n = emit->model->n_layers;
    fsdp->n_units = model_expert_ranks(&emit->workload.parallel) > 1 ? 2 * n : n;
    fsdp->shards = ARENA_ARRAY(emit->arena, struct optimizer_tensor, fsdp->n_units);
    fsdp->units = ARENA_ARRAY(emit->arena, struct shard_unit, fsdp->n_units);
    for (int u = 0; u < fsdp->n_units; u++) {
        struct shard_unit *unit = &fsdp->units[u];
        *unit = lay_out(fsdp, u % n, u >= n);
        if (u >= n && unit->used_shard == 0)
            continue;
        struct optimizer_tensor shard = {unit->shard, 1};
        if (unit->shard > 0)
            fsdp->shards[fsdp->n_shards++] = shard;
        if (fsdp_offloads(fsdp)) { /* the gradient has a place there, too */
            emit_keep_on_host(
                emit, unit->kept_shard + unit->shard * emit->master_bytes + emit_state_bytes(emit, shard));
            continue;
        }
        plan_keep(&emit->builder, emit_name(emit, unit->layer, "flat_param"), unit->kept_shard, HBM_PARAMETERS);
    }
    if (fsdp_shards(&fsdp->units[0]))
        emit->norm_group = fsdp->units[0].group;
}
