/* The timeline of the last measured step, of the ranks asked for. */
#include "exec/state.h"

void trace_setup(struct sim *sim)
{
    const struct exec_options *options = sim->options;
    if (options->n_trace_ranks == 0)
        return;
    sim->traced = ARENA_ARRAY(sim->arena, bool, sim->n_ranks);
    for (int i = 0; i < options->n_trace_ranks; i++) {
        int rank = options->trace_ranks[i];
        BUG_IF(rank < 0 || rank >= sim->plan->ranks, "rank %d of %d", rank, sim->plan->ranks);
        sim->traced[sim->folded ? 0 : rank] = true;
    }
}

void trace_record(struct sim *sim, int rank_index, int stream_index, struct exec_span span)
{
    const struct stream *stream = &sim->ranks[rank_index].streams[stream_index];
    const struct plan_op *op = &sim->plan->ops.at[sim->plan->stream_ops[stream_index].at[stream->position]];
    span.end = sim->engine.now;
    span.rank = rank_index;
    span.op = (int32_t)(op - sim->plan->ops.at);
    span.stream = op->stream;
    span.phase = op->phase;
    span.name = op->name;
    span.is_collective = op->kind == OP_COLLECTIVE;
    if (span.is_collective) {
        const struct plan_collective *collective = &sim->plan->collectives.at[op->index];
        span.collective = (int)collective->kind;
        span.bytes = collective->bytes;
        span.group_size = sim->plan->groups.at[collective->group].size;
    } else {
        span.kernel = (int)sim->plan->kernels.at[op->index].kind;
    }
    vec_push(&sim->spans, span);
}

void trace_result(struct sim *sim)
{
    struct exec_result *result = sim->result;
    result->last_step_start = sim->total_steps > 1 ? sim->step_end[sim->total_steps - 2] : 0;
    result->last_step_end = sim->step_end[sim->total_steps - 1];
    if (!sim->traced)
        return;
    result->n_spans = sim->spans.n;
    result->spans = ARENA_ARRAY(sim->arena, struct exec_span, sim->spans.n);
    int *next = ARENA_ARRAY(sim->arena, int, sim->n_ranks + 1); /* place of the next span of a rank */
    for (int i = 0; i < sim->spans.n; i++)
        next[sim->spans.at[i].rank + 1]++;
    for (int r = 0; r < sim->n_ranks; r++)
        next[r + 1] += next[r];
    for (int i = 0; i < sim->spans.n; i++)
        result->spans[next[sim->spans.at[i].rank]++] = sim->spans.at[i];
}
