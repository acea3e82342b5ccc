/* A timeline as the profiler of PyTorch (Kineto) writes it: Chrome's trace events in JSON, for
 * Perfetto, HTA and other readers of such files.
 *
 * A rank is a process, the host and each stream a thread. First come operators and CUDA calls of
 * the host, then kernels and copies of the streams, then cuda_sync events for every wait of the
 * plan. An arrow "ac2g" leads from a launch to its kernel by their correlation, "wait" from the
 * end of what was awaited to where the waiter goes on. The memory's counters are those of rank
 * 0.
 *
 * What is subtle: an op has three correlation ids, for itself and for the cudaEventRecord of
 * this step and of the step before; ids of one rank follow those of the rank before it, so they
 * are unique in the file. Times are picoseconds cut to nanoseconds at both ends, so slices that
 * touch do not overlap. The waits come from the plan, which is compiled again, as the result
 * holds only the waits that took time. A rank that was not simulated shows the spans of the one
 * that stands for it. */
#include "report/trace.h"

#include "options/program.h"

#include "plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP_THREAD = 1, HOST_THREAD = 2, LOADER_THREAD = 3 };

struct trace_writer {
    FILE *out;
    const struct scenario_point *point;
    const struct exec_result *exec;
    bool first;  /* no event yet */
    int threads; /* so far */
    const struct plan *plan;
    int n_ops; /* of it */
    /* Of the rank that is being written: */
    const struct exec_span *spans;
    const struct exec_host_span *host_spans;
    int n_spans, n_host_spans;
    int *span_of_op;           /* -1: none */
    int64_t first_correlation; /* that of op 0; after those of all ops come those of their
                                  cudaEventRecords */
    int64_t next_arrow;        /* its id: beyond those of launches */
};

/* ---- events ---- */

/* Queues that a plan has beside those come after them. */
static int trace_thread_of(int queue)
{
    static const int threads[STREAM_COUNT] = {[STREAM_COMPUTE] = 7,
        [STREAM_COMM] = 20,
        [STREAM_REPLICATE] = 21,
        [STREAM_UNSHARD] = 22,
        [STREAM_POST] = 23,
        [STREAM_LOADER] = LOADER_THREAD};
    enum { FIRST_FURTHER = 24 };
    return queue < STREAM_COUNT ? threads[queue] : FIRST_FURTHER + queue - STREAM_COUNT;
}

/* A time in microseconds, cut to nanoseconds; below 0 of an event that was recorded before the
 * first step began. */
static void trace_time(FILE *out, ps_t time)
{
    ps_t ns = (time < 0 ? -time : time) / 1000;
    fprintf(out, "%s%" PRId64 ".%03d", time < 0 ? "-" : "", ns / 1000, (int)(ns % 1000));
}

/* Everything of an event up to its arguments, whose object the caller ends. */
static void trace_begin(struct trace_writer *w, char phase, const char *name, int pid, int tid)
{
    fprintf(w->out,
        "%s\n{\"ph\": \"%c\", \"pid\": %d, \"tid\": %d, \"name\": ", w->first ? "" : ",", phase,
        pid, tid);
    json_write_string(w->out, name);
    w->first = false;
}

static void trace_slice(struct trace_writer *w, const char *category, const char *name, int pid,
    int tid, ps_t start, ps_t end)
{
    trace_begin(w, 'X', name, pid, tid);
    fprintf(w->out, ", \"cat\": \"%s\", \"ts\": ", category);
    trace_time(w->out, start);
    fputs(", \"dur\": ", w->out);
    trace_time(w->out, end / 1000 * 1000 - start / 1000 * 1000);
    fputs(", \"args\": {", w->out);
}

/* What a launch and what it launches have in common. */
static int64_t trace_correlation(const struct trace_writer *w, int32_t op)
{
    return w->first_correlation + op;
}

/* What the op did on its stream; NULL: op is -1, or it is not in the trace. */
static const struct exec_span *trace_span_of(const struct trace_writer *w, int32_t op)
{
    return op < 0 || w->span_of_op[op] < 0 ? NULL : &w->spans[w->span_of_op[op]];
}

/* What CUDA would do by cudaMemcpyAsync. */
static bool trace_is_copy(const struct exec_span *span)
{
    return !span->is_collective &&
           (span->kernel == KERNEL_COPY || span->kernel == KERNEL_HOST_COPY);
}

/* ---- arrows ---- */

/* An end of an arrow: it belongs to the slice that is open there. */
static void write_end(struct trace_writer *w, bool starts, const char *category, int64_t id,
    int rank, int tid, ps_t at)
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

/* From the end of what was awaited, on thread `from`, to where the waiter goes on, at a time of
 * thread `tid`. awaited NULL: nothing. */
static void trace_arrow(
    struct trace_writer *w, const struct exec_span *awaited, int tid, ps_t at, int rank, int from)
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
    trace_slice(w, "cuda_runtime", trace_is_copy(launched) ? "cudaMemcpyAsync" : "cudaLaunchKernel",
        rank, HOST_THREAD, span->start, span->end);
    fprintf(w->out, "\"correlation\": %" PRId64 "}}", correlation);
    write_end(w, true, "ac2g", correlation, rank, HOST_THREAD, span->start);
    write_end(
        w, false, "ac2g", correlation, rank, trace_thread_of(launched->stream), launched->start);
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
    fprintf(w->out, "%s}}",
        span->kind == HOST_FULL_QUEUE ? ", \"blocked\": \"launch queue full\"" : "");
    if (awaited)
        trace_arrow(w, awaited, HOST_THREAD, last_ns(span->start, span->end), rank,
            trace_thread_of(awaited->stream));
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
    if (!work || (work->kind != KERNEL_GEMM && work->kind != KERNEL_ATTENTION) || work->gathers ||
        work->pieces > 1)
        return;
    bool attends =
        work->kind ==
        KERNEL_ATTENTION; /* queries and keys, as scaled_dot_product_attention has them */
    if (attends)
        snprintf(batch, sizeof batch, "1, %" PRId64 ", ", work->batch);
    else if (work->batch > 1)
        snprintf(batch, sizeof batch, "%" PRId64 ", ", work->batch);
    fprintf(w->out,
        ", \"External id\": %" PRId64 ", \"Input Dims\": [[%s%" PRId64 ", %" PRId64 "], [%s%" PRId64
        ", %" PRId64 "]], \"Input type\": [\"%s\", \"%s\"]",
        trace_correlation(w, span->op), batch, rows, work->k, batch, attends ? columns : work->k,
        attends ? work->k : columns, types[work->math], types[work->math]);
}

/* With arrows to what it launched. An op that only works on the host is a cpu_op without a
 * launch. */
static void trace_host(struct trace_writer *w, int rank, const char *step)
{
    for (int i = 0; i < w->n_host_spans; i++) {
        const struct exec_host_span *span = &w->host_spans[i];
        if (span->kind == HOST_STEP) {
            trace_slice(w, "user_annotation", step, rank, HOST_THREAD, span->start, span->end);
            fputs("}}", w->out);
        } else if (span->kind == HOST_ISSUE || span->kind == HOST_WORK) {
            trace_slice(w, "cpu_op", span->name, rank, HOST_THREAD, span->start, span->end);
            fprintf(
                w->out, "\"op\": %d, \"phase\": \"%s\"", span->op, plan_phase_names[span->phase]);
            write_shapes(w, span, rank);
            fputs("}}", w->out);
            if (span->kind == HOST_ISSUE)
                write_issue(w, span, rank);
        } else {
            write_blocked(w, span, rank);
        }
    }
}

/* ---- what waits for what: every wait of the plan, whether it took time or not ---- */

struct walk {
    struct trace_writer *w;
    const struct plan_program *program;
    int rank;
    ps_t at, *issued; /* where the host is; when it had issued each op, PS_NEVER: it did not */
    int next;         /* host span */
};

/* By which an event of the step before was recorded earlier than that of this one: before the
 * host's step began. */
static ps_t step_length(const struct walk *walk)
{
    const struct exec_host_span *host = &walk->w->host_spans[0];
    ps_t of_gpu = walk->w->exec->last_step_end - walk->w->exec->last_step_start,
         of_host = host->end - host->start;
    return of_gpu > of_host ? of_gpu : of_host;
}

/* Of an op of this step or the one before, as its own program numbers it. Records are numbered
 * behind the ops: first those of this step, then those of the step before. */
static int64_t record_of(const struct walk *walk, plan_wait wait)
{
    bool before = wait & PLAN_PREVIOUS_STEP;
    return trace_correlation(walk->w, wait & ~PLAN_PREVIOUS_STEP) +
           (before ? 2 : 1) * (int64_t)walk->w->n_ops;
}

static int report_trace_stream_of(const struct walk *walk, plan_wait wait)
{
    return walk->program->ops.at[wait & ~PLAN_PREVIOUS_STEP].stream;
}

/* A wait for what no GPU does is not CUDA's; one of the step before that was not there neither. */
static bool is_cuda(const struct walk *walk, plan_wait wait)
{
    bool before = wait & PLAN_PREVIOUS_STEP;
    return report_trace_stream_of(walk, wait) != STREAM_LOADER &&
           (!before || walk->w->exec->last_step_start > 0);
}

static void write_sync(
    struct walk *walk, const char *name, int thread, plan_wait wait, ps_t start, ps_t end)
{
    trace_slice(walk->w, "cuda_sync", name, walk->rank, HOST_THREAD, start, end);
    fprintf(walk->w->out,
        "\"stream\": %d, \"wait_on_stream\": %d, \"wait_on_cuda_event_record_corr_id\": %" PRId64
        "}}",
        thread, trace_thread_of(report_trace_stream_of(walk, wait)), record_of(walk, wait));
}

/* The host waits: there is a span where it was blocked. */
static void host_waits(struct walk *walk, const struct plan_op *op)
{
    const struct trace_writer *w = walk->w;
    const struct exec_host_span *span =
        walk->next < w->n_host_spans ? &w->host_spans[walk->next] : NULL;
    plan_wait wait = walk->program->waits.at[op->first_wait];
    bool blocked = span && span->kind == HOST_WAITS && strcmp(span->name, op->name) == 0;
    ps_t start = blocked ? span->start : walk->at, end = blocked ? span->end : walk->at;
    walk->next += blocked;
    walk->at = end;
    if (!is_cuda(walk, wait))
        return;
    if (!blocked) {
        trace_slice(
            walk->w, "cuda_runtime", "cudaEventSynchronize", walk->rank, HOST_THREAD, start, end);
        fputs("}}", w->out);
    }
    write_sync(walk, "Event Sync", -1, wait, start, end);
}

static void streams_wait(struct walk *walk, const struct plan_op *op)
{
    for (int i = op->first_wait; i < op->first_wait + op->n_waits; i++) {
        plan_wait wait = walk->program->waits.at[i];
        bool own = report_trace_stream_of(walk, wait) == op->stream;
        if (!own && op->stream != STREAM_LOADER && is_cuda(walk, wait))
            write_sync(
                walk, "Stream Wait Event", trace_thread_of(op->stream), wait, walk->at, walk->at);
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
    ps_t at = walk->issued[wait & ~PLAN_PREVIOUS_STEP] -
              (wait & PLAN_PREVIOUS_STEP ? step_length(walk) : 0);
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
        int op = wait & ~PLAN_PREVIOUS_STEP,
            place = op + (wait & PLAN_PREVIOUS_STEP ? program->ops.n : 0);
        if (!written[place] && walk->issued[op] != PS_NEVER && is_cuda(walk, wait))
            write_record(walk, wait);
        written[place] = true;
    }
    free(written);
}

/* The ops are walked in the order of the program beside the host's spans, to know when the host
 * had issued each of them; that is when its event is recorded. */
static void trace_syncs(struct trace_writer *w, int rank)
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

enum {
    CORRELATIONS = 3
}; /* of an op: itself, the records of its event in this step and in the one before */

/* The names of the queues that a rank's spans are on. */
struct queue_names {
    const char *at[UINT8_MAX + 1];
};

/* ---- names of files ---- */

static bool report_trace_ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), tail = strlen(suffix);
    return n > tail && strcmp(path + n - tail, suffix) == 0;
}

bool trace_can_write(const char *path)
{
    return report_trace_ends_in(path, ".json") || report_trace_ends_in(path, ".json.gz");
}

/* ---- metadata ---- */

static void report_trace_write_name(
    struct trace_writer *w, const char *what, int pid, int tid, const char *name)
{
    trace_begin(w, 'M', what, pid, tid);
    fputs(", \"args\": {\"name\": ", w->out);
    json_write_string(w->out, name);
    fputs("}}", w->out);
}

/* Threads stand in the order in which they are written. */
static void write_thread(struct trace_writer *w, int rank, int tid, const char *name)
{
    report_trace_write_name(w, "thread_name", rank, tid, name);
    trace_begin(w, 'M', "thread_sort_index", rank, tid);
    fprintf(w->out, ", \"args\": {\"sort_index\": %d}}", w->threads++);
}

static void write_metadata(struct trace_writer *w, int rank, const struct queue_names *queues)
{
    int per_node = hw_gpus_per_node(&w->point->hw);
    char name[160];
    snprintf(name, sizeof name, "rank %d / node %d GPU %d (%s)", rank, rank / per_node,
        rank % per_node, w->point->hw.gpu.name);
    report_trace_write_name(w, "process_name", rank, 0, name);
    trace_begin(w, 'M', "process_sort_index", rank, 0);
    fprintf(w->out, ", \"args\": {\"sort_index\": %d}}", rank);
    write_thread(w, rank, HOST_THREAD, "host thread");
    write_thread(w, rank, STEP_THREAD, "step on the GPU");
    for (int q = 0; q <= UINT8_MAX; q++) {
        if (!queues->at[q])
            continue;
        snprintf(name, sizeof name, "stream %d %s", trace_thread_of(q), queues->at[q]);
        write_thread(w, rank, trace_thread_of(q), q == STREAM_LOADER ? "data loader" : name);
    }
}

/* ---- what streams did ---- */

static void write_place(struct trace_writer *w, const struct exec_span *span, int rank)
{
    int64_t id = trace_correlation(w, span->op);
    fprintf(w->out,
        "\"device\": %d, \"stream\": %d, \"External id\": %" PRId64 ", \"correlation\": %" PRId64
        ", \"op\": %d, \"phase\": \"%s\"",
        rank % hw_gpus_per_node(&w->point->hw), trace_thread_of(span->stream), id, id, span->op,
        plan_phase_names[span->phase]);
}

static void write_kernel(struct trace_writer *w, const struct exec_span *span, int rank)
{
    trace_slice(w, trace_is_copy(span) ? "gpu_memcpy" : "kernel", span->name, rank,
        trace_thread_of(span->stream), span->start, span->end);
    write_place(w, span, rank);
    fprintf(w->out, ", \"kind\": \"%s\", \"alone (us)\": ", kernel_kind_names[span->kernel]);
    trace_time(w->out, span->alone);
    fputs("}}", w->out);
}

/* Threads of the host that make the next batch; no GPU takes part. */
static void write_loader(struct trace_writer *w, const struct exec_span *span, int rank)
{
    trace_slice(w, "cpu_op", span->name, rank, LOADER_THREAD, span->start, span->end);
    fprintf(w->out, "\"op\": %d}}", span->op);
}

/* A list of more than 30 ranks is cut in the middle, as PyTorch cuts it. */
static void write_group(
    struct trace_writer *w, int number, const char *name, struct coll_group ranks)
{
    enum { LIST = 30 };
    fprintf(w->out, ", \"Process Group Name\": \"%d\", \"Process Group Description\": ", number);
    json_write_string(w->out, name);
    fputs(", \"Process Group Ranks\": \"[", w->out);
    for (int i = 0; i < ranks.size; i++)
        if (ranks.size <= LIST || i < LIST - 1 || i == ranks.size - 1)
            fprintf(w->out, "%s%d",
                i == 0                                     ? ""
                : ranks.size > LIST && i == ranks.size - 1 ? ", ..., "
                                                           : ", ",
                ranks.first + i * ranks.stride);
    fputs("]\"", w->out);
}

/* The group of a collective; of a message the ranks on its axis, a group for each channel, behind
 * the others. */
static void write_members(struct trace_writer *w, const struct plan_op *op, int rank)
{
    const struct plan *plan = w->plan;
    if (op->kind == OP_COLLECTIVE) {
        int number = plan->collectives.at[op->index].group;
        const struct mesh_group *ranks = &plan->groups.at[number].ranks;
        int first = mesh_group_first(ranks, mesh_group_instance(ranks, rank));
        write_group(w, number, plan->groups.at[number].name,
            (struct coll_group){first, ranks->stride, ranks->size});
        return;
    }
    int number = plan->messages.at[op->index].channel;
    const struct plan_channel *channel = &plan->channels.at[number];
    int stride = plan->mesh.stride[channel->axis], size = plan->mesh.size[channel->axis];
    int first = rank - mesh_coordinate(&plan->mesh, rank, channel->axis) * stride;
    char name[48];
    snprintf(name, sizeof name, channel->tag > 0 ? "%s %+d, %d" : "%s %+d",
        mesh_axis_names[channel->axis], channel->delta, channel->tag);
    write_group(w, plan->groups.n + number, name, (struct coll_group){first, stride, size});
    fprintf(w->out, ", \"%s Rank\": %d", op->kind == OP_SEND ? "Dst" : "Src",
        mesh_neighbour(&plan->mesh, rank, channel->axis,
            op->kind == OP_SEND ? channel->delta : -channel->delta));
}

/* How PyTorch and NCCL call a collective; elements in and out of each rank as shares of the whole
 * message. */
static void write_collective(struct trace_writer *w, const struct exec_span *span, int rank)
{
    static const struct {
        const char *pytorch, *nccl;
        bool in_is_share, out_is_share;
    } kinds[COLL_KIND_COUNT] = {[COLL_ALL_REDUCE] = {"allreduce", "AllReduce_Sum", false, false},
        [COLL_ALL_GATHER] = {"_allgather_base", "AllGather", true, false},
        [COLL_REDUCE_SCATTER] = {"_reduce_scatter_base", "ReduceScatter_Sum", false, true},
        [COLL_BROADCAST] = {"broadcast", "Broadcast", false, false},
        [COLL_REDUCE] = {"reduce", "Reduce_Sum", false, false},
        [COLL_ALL_TO_ALL] = {"all_to_all", "SendRecv", false, false},
        [COLL_SEND_RECV] = {"send_recv", "SendRecv", false, false},
        [COLL_PEER_COPY] = {"copy", "Memcpy PtoP", false, false}};
    const struct plan_op *op = &w->plan->programs[span->program].ops.at[span->op];
    int size = op->kind == OP_COLLECTIVE
                   ? span->group_size
                   : w->plan->mesh
                         .size[w->plan->channels.at[w->plan->messages.at[op->index].channel].axis];
    double share = span->bytes / size;
    char name[96];
    snprintf(name, sizeof name, "ncclDevKernel_%s_%s_%s", kinds[span->collective].nccl,
        coll_algorithm_names[span->algorithm], coll_protocol_names[span->protocol]);
    trace_slice(w, "kernel", name, rank, trace_thread_of(span->stream), span->start, span->end);
    write_place(w, span, rank);
    fputs(", \"plan op\": ", w->out);
    json_write_string(w->out, span->name);
    fprintf(w->out,
        ", \"Collective name\": \"%s\", \"In msg nelems\": %.0f, \"Out msg nelems\": %.0f, \"Group "
        "size\": %d, \"dtype\": \"Byte\"",
        op->kind == OP_SEND   ? "send"
        : op->kind == OP_RECV ? "recv"
                              : kinds[span->collective].pytorch,
        kinds[span->collective].in_is_share ? share : span->bytes,
        kinds[span->collective].out_is_share ? share : span->bytes, size);
    write_members(w, op, rank);
    fputs(", \"waited for ranks (us)\": ", w->out);
    trace_time(w->out, span->moving - span->start);
    fputs("}}", w->out);
}

static void write_spans(struct trace_writer *w, int rank)
{
    for (int i = 0; i < w->n_spans; i++) {
        const struct exec_span *span = &w->spans[i];
        if (span->is_collective)
            write_collective(w, span, rank);
        else if (span->stream == STREAM_LOADER)
            write_loader(w, span, rank);
        else
            write_kernel(w, span, rank);
    }
    for (int i = 0; i < w->n_spans; i++) {
        const struct exec_span *span = &w->spans[i], *awaited = trace_span_of(w, span->waits_for);
        trace_arrow(w, awaited, trace_thread_of(span->stream), span->start, rank,
            awaited ? trace_thread_of(awaited->stream) : 0);
    }
}

/* The spans of a rank, or where those of another stand for it. Spans are sorted by rank, so
 * those of one rank are a range. */
static void find_spans(struct trace_writer *w, int rank)
{
    const struct exec_result *exec = w->exec;
    int simulated = exec_simulated_rank(exec, rank), first = 0, first_host = 0;
    while (first < exec->n_spans && exec->spans[first].rank < simulated)
        first++;
    while (first_host < exec->n_host_spans && exec->host_spans[first_host].rank < simulated)
        first_host++;
    w->spans = exec->spans + first;
    w->host_spans = exec->host_spans + first_host;
    for (w->n_spans = 0;
         first + w->n_spans < exec->n_spans && w->spans[w->n_spans].rank == simulated;)
        w->n_spans++;
    for (w->n_host_spans = 0; first_host + w->n_host_spans < exec->n_host_spans &&
                              w->host_spans[w->n_host_spans].rank == simulated;)
        w->n_host_spans++;
    for (int i = 0; i < w->n_ops; i++)
        w->span_of_op[i] = -1;
    for (int i = 0; i < w->n_spans; i++)
        w->span_of_op[w->spans[i].op] = i;
}

static void write_rank(struct trace_writer *w, int rank)
{
    const struct exec_result *exec = w->exec;
    const struct exec_options *options = &w->point->options.exec;
    struct queue_names queues = {{NULL}};
    find_spans(w, rank);
    for (int i = 0; i < w->n_spans; i++)
        queues.at[w->spans[i].stream] = w->spans[i].queue;
    write_metadata(w, rank, &queues);
    if (exec->status != EXEC_OK)
        return;
    char step[48];
    snprintf(
        step, sizeof step, "ProfilerStep#%" PRId64, options->warmup_steps + options->steps - 1);
    trace_slice(w, "gpu_user_annotation", step, rank, STEP_THREAD, exec->last_step_start,
        exec->last_step_end);
    fputs("}}", w->out);
    trace_host(w, rank, step);
    write_spans(w, rank);
    trace_syncs(w, rank);
    w->first_correlation += CORRELATIONS * (int64_t)w->n_ops;
}

static void write_memory(struct trace_writer *w)
{
    const struct exec_result *exec = w->exec;
    if (exec->status == EXEC_OOM) {
        char name[160];
        snprintf(name, sizeof name, "out of memory: %s", exec->memory.oom_op);
        trace_begin(w, 'i', name, 0, STEP_THREAD);
        fputs(", \"ts\": 0, \"s\": \"g\"}", w->out);
    }
    for (int i = 0; i < exec->n_timeline; i++) {
        const struct exec_memory_sample *sample = &exec->timeline[i];
        ps_t since = (ps_t)(sample->time_s * (double)PS_PER_S),
             time = exec->last_step_start + since;
        trace_begin(w, 'C', "HBM (GiB)", 0, 0);
        fputs(", \"ts\": ", w->out);
        trace_time(w->out, time > 0 ? time : 0);
        fputs(", \"args\": {", w->out);
        for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
            if (c != HBM_CONTEXT && c != HBM_NCCL) /* fixed, and in no sample */
                fprintf(w->out, "%s\"%s\": %.6g", c ? ", " : "", hbm_category_names[c],
                    sample->category_bytes[c] / GIB);
        fputs("}}", w->out);
    }
}

static void report_trace_write_all(struct trace_writer *w)
{
    const struct scenario *options = &w->point->options;
    const int *ranks = options->exec.trace_ranks;
    bool has_rank_0 = false;
    fputs("{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"generator\": "
          "\"flopcast " FLOPCAST_VERSION "\", \"scenario\": ",
        w->out);
    json_write_string(w->out, options->name);
    fputs(",\n\"deviceProperties\": [{\"id\": 0, \"name\": ", w->out);
    json_write_string(w->out, w->point->hw.gpu.name);
    fprintf(w->out,
        "}],\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %" PRId64
        "},\n\"traceEvents\": [",
        ranks[0], options->cluster.gpus);
    for (int i = 0; i < options->exec.n_trace_ranks; i++) {
        write_rank(w, ranks[i]);
        has_rank_0 |= ranks[i] == 0;
    }
    if (has_rank_0)
        write_memory(w);
    fputs("\n]}\n", w->out);
}

/* errno is kept over the release of memory, as it says why the file could not be written. A
 * regular file that is not whole is removed. */
enum status trace_write(const char *path, const struct scenario_point *point,
    const struct scenario_result *result, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct plan plan = {0};
    struct trace_writer w = {.out = report_trace_ends_in(path, ".gz")
                                        ? program_filter(PROGRAM_INTEROP, "compress", path)
                                        : fopen(path, "w"),
        .point = point,
        .exec = &result->exec,
        .plan = &plan,
        .n_ops = (int)result->plan_ops,
        .first = true,
        .first_correlation = 1};
    w.next_arrow =
        w.first_correlation + CORRELATIONS * (int64_t)w.n_ops * point->options.exec.n_trace_ranks;
    w.span_of_op = xcalloc((size_t)w.n_ops + 1, sizeof *w.span_of_op);
    bool opened = w.out != NULL,
         ok = opened && scenario_compile(&plan, point, &arena, diag) == STATUS_OK;
    if (ok) {
        report_trace_write_all(&w);
        ok = ferror(w.out) == 0;
        ok = fclose(w.out) == 0 && ok;
    }
    int why = errno;
    free(w.span_of_op);
    plan_release(&plan);
    arena_release(&arena);
    if (ok)
        return STATUS_OK;
    struct stat info;
    if (opened && stat(path, &info) == 0 && S_ISREG(info.st_mode)) /* /dev/full stays */
        unlink(path);
    return diag_io(diag, (struct source_pos){.file = path}, "cannot write: %s", strerror(why));
}
