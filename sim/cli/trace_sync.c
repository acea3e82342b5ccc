/* What waits for what in a trace: every wait of the plan, whether it took time or not. */
#include "cli/trace_events.h"

#include <inttypes.h>

struct walk {
    struct trace_writer *w;
    const struct plan_program *program;
    int rank;
    ps_t at, *issued; /* where the host is; when it had issued each op, PS_NEVER: it did not */
    int next;         /* host span */
};

static ps_t step_length(const struct walk *walk)
{
    return walk->w->exec->last_step_end - walk->w->exec->last_step_start;
}

/* Of an op of this step or the one before, as its own program numbers it. */
static int64_t record_of(const struct walk *walk, plan_wait wait)
{
    bool before = wait & PLAN_PREVIOUS_STEP;
    return trace_correlation(walk->w, wait & ~PLAN_PREVIOUS_STEP) + (before ? 2 : 1) * (int64_t)walk->w->n_ops;
}

static int stream_of(const struct walk *walk, plan_wait wait)
{
    return walk->program->ops.at[wait & ~PLAN_PREVIOUS_STEP].stream;
}

/* A wait for what no GPU does is not CUDA's; one of the step before that was not there neither. */
static bool is_cuda(const struct walk *walk, plan_wait wait)
{
    bool before = wait & PLAN_PREVIOUS_STEP;
    return stream_of(walk, wait) != STREAM_LOADER && (!before || walk->w->exec->last_step_start > 0);
}

static void write_sync(struct walk *walk, const char *name, int thread, plan_wait wait, ps_t start, ps_t end)
{
    trace_slice(walk->w, "cuda_sync", name, walk->rank, HOST_THREAD, start, end);
    fprintf(walk->w->out,
        "\"stream\": %d, \"wait_on_stream\": %d, \"wait_on_cuda_event_record_corr_id\": %" PRId64 "}}", thread,
        trace_thread_of(stream_of(walk, wait)), record_of(walk, wait));
}

/* The host waits: there is a span where it was blocked. */
static void host_waits(struct walk *walk, const struct plan_op *op)
{
    const struct trace_writer *w = walk->w;
    const struct exec_host_span *span = walk->next < w->n_host_spans ? &w->host_spans[walk->next] : NULL;
    plan_wait wait = walk->program->waits.at[op->first_wait];
    bool blocked = span && span->kind == HOST_WAITS && span->name == op->name;
    ps_t start = blocked ? span->start : walk->at, end = blocked ? span->end : walk->at;
    walk->next += blocked;
    walk->at = end;
    if (!is_cuda(walk, wait))
        return;
    if (!blocked) {
        trace_slice(walk->w, "cuda_runtime", "cudaEventSynchronize", walk->rank, HOST_THREAD, start, end);
        fputs("}}", w->out);
    }
    write_sync(walk, "Event Sync", -1, wait, start, end);
}

static void streams_wait(struct walk *walk, const struct plan_op *op)
{
    for (int i = op->first_wait; i < op->first_wait + op->n_waits; i++) {
        plan_wait wait = walk->program->waits.at[i];
        bool own = stream_of(walk, wait) == op->stream;
        if (!own && op->stream != STREAM_LOADER && is_cuda(walk, wait))
            write_sync(walk, "Stream Wait Event", trace_thread_of(op->stream), wait, walk->at, walk->at);
    }
}

/* The host's spans of an op, and those before it in which it was blocked. */
static void host_passes(struct walk *walk, int op)
{
    const struct trace_writer *w = walk->w;
    while (walk->next < w->n_host_spans && w->host_spans[walk->next].kind != HOST_WAITS &&
           w->host_spans[walk->next].op <= op)
        walk->at = w->host_spans[walk->next++].end;
}

static void write_record(struct walk *walk, plan_wait wait)
{
    ps_t at = walk->issued[wait & ~PLAN_PREVIOUS_STEP] - (wait & PLAN_PREVIOUS_STEP ? step_length(walk) : 0);
    trace_slice(walk->w, "cuda_runtime", "cudaEventRecord", walk->rank, HOST_THREAD, at, at);
    fprintf(walk->w->out, "\"correlation\": %" PRId64 "}}", record_of(walk, wait));
}

/* Each event that anything waits for, once. */
static void write_records(struct walk *walk)
{
    const struct plan_program *program = walk->program;
    bool *written = xcalloc(2 * (size_t)program->ops.n + 1, sizeof *written);
    for (int i = 0; i < program->waits.n; i++) {
        plan_wait wait = program->waits.at[i];
        int op = wait & ~PLAN_PREVIOUS_STEP, place = op + (wait & PLAN_PREVIOUS_STEP ? program->ops.n : 0);
        if (!written[place] && walk->issued[op] != PS_NEVER && is_cuda(walk, wait))
            write_record(walk, wait);
        written[place] = true;
    }
    free(written);
}

void trace_syncs(struct trace_writer *w, int rank)
{
    const struct plan_program *program = &w->plan->programs[plan_program_of(w->plan, rank)];
    struct walk walk = {.w = w, .program = program, .rank = rank};
    if (w->n_host_spans == 0)
        return;
    walk.at = w->host_spans[0].start;
    walk.next = 1; /* after the step */
    walk.issued = xcalloc((size_t)program->ops.n + 1, sizeof *walk.issued);
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        bool of_gpu = op->kind == OP_KERNEL || plan_op_is_comm(op);
        if (op->kind == OP_HOST_WAIT)
            host_waits(&walk, op);
        else if (of_gpu)
            streams_wait(&walk, op);
        host_passes(&walk, i);
        walk.issued[i] = of_gpu ? walk.at : PS_NEVER;
    }
    write_records(&walk);
    free(walk.issued);
}
