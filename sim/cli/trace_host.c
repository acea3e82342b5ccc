#include "cli/trace_events.h"

#include <inttypes.h>

/* ---- events ---- */

void trace_time(FILE *out, ps_t time)
{
    ps_t ns = time / 1000;
    fprintf(out, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

void trace_begin(struct trace_writer *w, char phase, const char *name, int pid, int tid)
{
    fprintf(w->out, "%s\n{\"ph\": \"%c\", \"pid\": %d, \"tid\": %d, \"name\": ", w->first ? "" : ",", phase, pid, tid);
    json_write_string(w->out, name);
    w->first = false;
}

void trace_slice(struct trace_writer *w, const char *category, const char *name, int pid, int tid, ps_t start, ps_t end)
{
    trace_begin(w, 'X', name, pid, tid);
    fprintf(w->out, ", \"cat\": \"%s\", \"ts\": ", category);
    trace_time(w->out, start);
    fputs(", \"dur\": ", w->out);
    trace_time(w->out, end / 1000 * 1000 - start / 1000 * 1000);
    fputs(", \"args\": {", w->out);
}

int64_t trace_correlation(const struct trace_writer *w, int32_t op)
{
    return w->first_correlation + op;
}

const struct exec_span *trace_span_of(const struct trace_writer *w, int32_t op)
{
    return op < 0 || w->span_of_op[op] < 0 ? NULL : &w->spans[w->span_of_op[op]];
}

bool trace_is_copy(const struct exec_span *span)
{
    return !span->is_collective && (span->kernel == KERNEL_COPY || span->kernel == KERNEL_HOST_COPY);
}

/* ---- arrows ---- */

/* An end of an arrow: it belongs to the slice that is open there. */
static void write_end(struct trace_writer *w, bool starts, const char *category, int64_t id, int rank, int tid, ps_t at)
{
    trace_begin(w, starts ? 's' : 'f', category, rank, tid);
    fprintf(w->out, ", \"cat\": \"%s\", \"id\": %" PRId64 ", \"ts\": ", category, id);
    trace_time(w->out, at);
    fputs(starts ? "}" : ", \"bp\": \"e\"}", w->out);
}

/* The last nanosecond of what takes from start to end. */
static ps_t last_ns(ps_t start, ps_t end)
{
    enum { PS_PER_NS = 1000 };
    return end - PS_PER_NS > start ? end - PS_PER_NS : start;
}

void trace_arrow(struct trace_writer *w, const struct exec_span *awaited, int tid, ps_t at, int rank, int from)
{
    if (!awaited)
        return;
    int64_t id = w->next_arrow++;
    write_end(w, true, "wait", id, rank, from, last_ns(awaited->start, awaited->end));
    write_end(w, false, "wait", id, rank, tid, at);
}

/* ---- the host ---- */

static void write_issue(struct trace_writer *w, const struct exec_host_span *span, int rank)
{
    const struct exec_span *launched = trace_span_of(w, span->op);
    int64_t correlation = trace_correlation(w, span->op);
    if (!launched || trace_thread_of(launched->stream) == LOADER_THREAD)
        return;
    trace_slice(w, "cuda_runtime", trace_is_copy(launched) ? "cudaMemcpyAsync" : "cudaLaunchKernel", rank, HOST_THREAD,
        span->start, span->end);
    fprintf(w->out, "\"correlation\": %" PRId64 "}}", correlation);
    write_end(w, true, "ac2g", correlation, rank, HOST_THREAD, span->start);
    write_end(w, false, "ac2g", correlation, rank, trace_thread_of(launched->stream), launched->start);
}

static void write_blocked(struct trace_writer *w, const struct exec_host_span *span, int rank)
{
    const struct exec_span *awaited = span->kind == HOST_WAITS ? trace_span_of(w, span->op) : NULL;
    const char *call = span->kind == HOST_WAITS       ? "cudaEventSynchronize"
                       : span->kind == HOST_ALLOCATES ? "cudaMalloc"
                                                      : "cudaLaunchKernel";
    trace_slice(w, "cuda_runtime", call, rank, HOST_THREAD, span->start, span->end);
    fputs("\"plan op\": ", w->out);
    json_write_string(w->out, span->name);
    fprintf(w->out, "%s}}", span->kind == HOST_FULL_QUEUE ? ", \"blocked\": \"launch queue full\"" : "");
    if (awaited)
        trace_arrow(w, awaited, HOST_THREAD, last_ns(span->start, span->end), rank, trace_thread_of(awaited->stream));
}

/* Of a GEMM or attention, as an operator has them with record_shapes. */
static void write_shapes(struct trace_writer *w, const struct exec_host_span *span, int rank)
{
    static const char *const types[DTYPE_COUNT] = {[DTYPE_FP32] = "float",
        [DTYPE_TF32] = "float",
        [DTYPE_BF16] = "c10::BFloat16",
        [DTYPE_FP16] = "c10::Half",
        [DTYPE_FP8] = "c10::Float8_e4m3fn",
        [DTYPE_INT8] = "signed char"};
    const struct plan_op *op = &w->plan->programs[plan_program_of(w->plan, rank)].ops.at[span->op];
    const struct kernel_work *work = op->kind == OP_KERNEL ? &w->plan->kernels.at[op->index] : NULL;
    char batch[32] = "";
    int64_t rows = work ? work->m : 0, columns = work ? work->n : 0;
    if (!work || (work->kind != KERNEL_GEMM && work->kind != KERNEL_ATTENTION) || work->gathers || work->pieces > 1)
        return;
    bool attends = work->kind == KERNEL_ATTENTION; /* queries and keys, as scaled_dot_product_attention has them */
    if (attends)
        snprintf(batch, sizeof batch, "1, %" PRId64 ", ", work->batch);
    else if (work->batch > 1)
        snprintf(batch, sizeof batch, "%" PRId64 ", ", work->batch);
    fprintf(w->out,
        ", \"External id\": %" PRId64 ", \"Input Dims\": [[%s%" PRId64 ", %" PRId64 "], [%s%" PRId64 ", %" PRId64
        "]], \"Input type\": [\"%s\", \"%s\"]",
        trace_correlation(w, span->op), batch, rows, work->k, batch, attends ? columns : work->k,
        attends ? work->k : columns, types[work->math], types[work->math]);
}

void trace_host(struct trace_writer *w, int rank, const char *step)
{
    for (int i = 0; i < w->n_host_spans; i++) {
        const struct exec_host_span *span = &w->host_spans[i];
        if (span->kind == HOST_STEP) {
            trace_slice(w, "user_annotation", step, rank, HOST_THREAD, span->start, span->end);
            fputs("}}", w->out);
        } else if (span->kind == HOST_ISSUE || span->kind == HOST_WORK) {
            trace_slice(w, "cpu_op", span->name, rank, HOST_THREAD, span->start, span->end);
            fprintf(w->out, "\"op\": %d, \"phase\": \"%s\"", span->op, plan_phase_names[span->phase]);
            write_shapes(w, span, rank);
            fputs("}}", w->out);
            if (span->kind == HOST_ISSUE)
                write_issue(w, span, rank);
        } else {
            write_blocked(w, span, rank);
        }
    }
}
