/* The HBM of rank 0 in host program order, and what the plan would need on a GPU without limit. */
#include "exec/state.h"

static int communicators(const struct plan *plan)
{
    int n = 0;
    for (int g = 0; g < plan->groups.n; g++)
        n += plan->groups.at[g].size > 1;
    return n;
}

static int64_t fixed_bytes(const struct sim *sim)
{
    return (int64_t)(sim->hw->gpu.context_bytes.value + communicators(sim->plan) * sim->hw->node.nccl_bytes.value);
}

static void fail(struct sim *sim, const struct plan_buffer *buffer)
{
    struct exec_memory *memory = &sim->result->memory;
    sim->out_of_memory = true;
    sim->result->status = EXEC_OOM;
    memory->oom_op = buffer->name;
    memory->oom_category = buffer->category;
    memory->oom_request_bytes = (double)buffer->bytes;
    engine_stop(&sim->engine);
}

static void sample(struct sim *sim)
{
    if (sim->ranks[0].host_step + 1 != sim->total_steps)
        return;
    struct exec_memory_sample row = {.time_s = s_from_ps(sim->engine.now), .reserved_bytes = (double)sim->hbm.reserved};
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        row.category_bytes[c] = (double)sim->hbm.by_category[c];
    vec_push(&sim->timeline, row);
}

/* Blocks whose last use on another stream has passed come back. */
static void collect_pending(struct sim *sim)
{
    int kept = 0;
    for (int i = 0; i < sim->pending.n; i++) {
        struct pending_free pending = sim->pending.at[i];
        if (wait_satisfied(sim, &sim->ranks[0], pending.last_use, pending.step))
            hbm_reuse(&sim->hbm, pending.block);
        else
            sim->pending.at[kept++] = pending;
    }
    sim->pending.n = kept;
}

/* False: cudaMalloc failed. */
static bool allocate(struct sim *sim, int32_t index, bool again)
{
    const struct plan_buffer *buffer = &sim->plan->buffers.at[index];
    collect_pending(sim);
    sim->blocks[index] = (again ? hbm_retry : hbm_alloc)(&sim->hbm, buffer->bytes, buffer->category, buffer->stream);
    return sim->blocks[index] >= 0;
}

void ledger_setup(struct sim *sim)
{
    hbm_init(&sim->hbm, (int64_t)sim->hw->gpu.hbm_capacity.value - fixed_bytes(sim), sim->options->expandable_segments);
    sim->blocks = ARENA_ARRAY(sim->arena, int32_t, sim->plan->buffers.n);
    for (int i = 0; i < sim->plan->setup.n && !sim->out_of_memory; i++)
        if (!allocate(sim, sim->plan->setup.at[i], false)) /* nothing is free yet that a retry could release */
            fail(sim, &sim->plan->buffers.at[sim->plan->setup.at[i]]);
    sim->hbm.mallocs = 0; /* the time of those lies before the first step */
}

static void give_back(struct sim *sim, const struct plan_op *op)
{
    const struct plan_buffer *buffer = &sim->plan->buffers.at[op->index];
    hbm_free(&sim->hbm, sim->blocks[op->index], buffer->bytes, buffer->category);
    if (op->n_waits > 0)
        vec_push(&sim->pending, (struct pending_free){sim->blocks[op->index], sim->ranks[0].host_step,
                                    sim->plan->waits.at[op->first_wait]});
    else
        hbm_reuse(&sim->hbm, sim->blocks[op->index]);
}

bool ledger_op(struct sim *sim, int32_t op_index)
{
    const struct plan_op *op = &sim->plan->ops.at[op_index];
    if (op->kind == OP_FREE)
        give_back(sim, op);
    else if (!allocate(sim, op->index, false))
        return false;
    sample(sim);
    return true;
}

void ledger_retry(struct sim *sim, int32_t op_index)
{
    int32_t index = sim->plan->ops.at[op_index].index;
    sim->measured_retries += measuring(sim, sim->ranks[0].host_step);
    if (!allocate(sim, index, true))
        fail(sim, &sim->plan->buffers.at[index]);
    sample(sim);
}

double ledger_calls_s(struct sim *sim)
{
    const struct hw_gpu *gpu = &sim->hw->gpu;
    double spent_s = (double)sim->hbm.mallocs * gpu->cuda_malloc.value + (double)sim->hbm.frees * gpu->cuda_free.value;
    sim->hbm.mallocs = sim->hbm.frees = 0;
    return spent_s;
}

/* The peak of one step in program order, if HBM had no end. */
static void required(const struct sim *sim, struct exec_memory *memory)
{
    const struct plan *plan = sim->plan;
    int64_t now[HBM_CATEGORY_COUNT] = {0}, total = 0, peak = -1;
    for (int i = 0; i < plan->setup.n + plan->ops.n; i++) {
        const struct plan_op *op = i < plan->setup.n ? NULL : &plan->ops.at[i - plan->setup.n];
        if (op && op->kind != OP_ALLOC && op->kind != OP_FREE)
            continue;
        const struct plan_buffer *buffer = &plan->buffers.at[op ? op->index : plan->setup.at[i]];
        int64_t bytes = hbm_round(buffer->bytes) * (op && op->kind == OP_FREE ? -1 : 1);
        now[buffer->category] += bytes;
        total += bytes;
        if (total > peak) {
            peak = total;
            for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
                memory->required_category_bytes[c] = (double)now[c];
        }
    }
    memory->required_bytes = (double)(peak + fixed_bytes(sim));
}

static void set_fixed(const struct sim *sim, double *category_bytes)
{
    category_bytes[HBM_CONTEXT] = sim->hw->gpu.context_bytes.value;
    category_bytes[HBM_NCCL] = communicators(sim->plan) * sim->hw->node.nccl_bytes.value;
}

void ledger_result(struct sim *sim)
{
    struct exec_memory *memory = &sim->result->memory;
    memory->capacity_bytes = sim->hw->gpu.hbm_capacity.value;
    memory->peak_allocated_bytes = (double)sim->hbm.peak_allocated;
    memory->peak_reserved_bytes = (double)sim->hbm.peak_reserved;
    memory->alloc_retries = (double)sim->hbm.retries;
    memory->alloc_retries_a_step = (double)sim->measured_retries / (double)sim->options->steps;
    memory->alloc_stall_s = s_from_ps(sim->alloc_stall) / (double)sim->options->steps;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        memory->peak_category_bytes[c] = (double)sim->hbm.at_peak[c];
    set_fixed(sim, memory->peak_category_bytes);
    if (sim->out_of_memory) {
        required(sim, memory);
        set_fixed(sim, memory->required_category_bytes);
    }
}
