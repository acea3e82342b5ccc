#include "cli/trace_events.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Queues that a plan has beside those come after them. */
int trace_thread_of(int queue)
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

enum { CORRELATIONS = 3 }; /* of an op: itself, the records of its event in this step and in the one before */

/* The names of the queues that a rank's spans are on. */
struct queue_names {
    const char *at[UINT8_MAX + 1];
};

/* ---- a FILE that compresses ---- */

static ssize_t gz_write(void *cookie, const char *bytes, size_t n)
{
    return gzwrite(cookie, bytes, (unsigned)n);
}

static int gz_close(void *cookie)
{
    return gzclose(cookie) == Z_OK ? 0 : EOF;
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), tail = strlen(suffix);
    return n > tail && strcmp(path + n - tail, suffix) == 0;
}

bool trace_can_write(const char *path)
{
    return ends_in(path, ".json") || ends_in(path, ".json.gz");
}

static FILE *open_output(const char *path)
{
    if (!ends_in(path, ".gz"))
        return fopen(path, "w");
    gzFile file = gzopen(path, "wb");
    FILE *out = file ? fopencookie(file, "w", (cookie_io_functions_t){.write = gz_write, .close = gz_close}) : NULL;
    if (file && !out)
        gzclose(file);
    return out;
}

/* ---- metadata ---- */

static void write_name(struct trace_writer *w, const char *what, int pid, int tid, const char *name)
{
    trace_begin(w, 'M', what, pid, tid);
    fputs(", \"args\": {\"name\": ", w->out);
    json_write_string(w->out, name);
    fputs("}}", w->out);
}

/* Threads stand in the order in which they are written. */
static void write_thread(struct trace_writer *w, int rank, int tid, const char *name)
{
    write_name(w, "thread_name", rank, tid, name);
    trace_begin(w, 'M', "thread_sort_index", rank, tid);
    fprintf(w->out, ", \"args\": {\"sort_index\": %d}}", w->threads++);
}

static const char *gpu_of(const struct scenario_point *point, int rank)
{
    bool second = point->hw.second_from > 0 && rank >= point->hw.second_from;
    return second ? point->hw.second_gpu.name : point->hw.gpu.name;
}

static void write_metadata(struct trace_writer *w, int rank, const struct queue_names *queues)
{
    int per_node = hw_gpus_per_node(&w->point->hw);
    char name[160];
    snprintf(name, sizeof name, "rank %d / node %d GPU %d (%s)", rank, rank / per_node, rank % per_node,
        gpu_of(w->point, rank));
    write_name(w, "process_name", rank, 0, name);
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
    trace_slice(w, trace_is_copy(span) ? "gpu_memcpy" : "kernel", span->name, rank, trace_thread_of(span->stream),
        span->start, span->end);
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
static void write_group(struct trace_writer *w, const struct exec_span *span, int rank)
{
    enum { LIST = 30 };
    const struct plan_op *op = &w->plan->programs[span->program].ops.at[span->op];
    if (op->kind != OP_COLLECTIVE)
        return;
    int number = w->plan->collectives.at[op->index].group;
    const struct mesh_group *ranks = &w->plan->groups.at[number].ranks;
    int first = mesh_group_first(ranks, mesh_group_instance(ranks, rank));
    fprintf(w->out, ", \"Process Group Name\": \"%d\", \"Process Group Description\": ", number);
    json_write_string(w->out, w->plan->groups.at[number].name);
    fputs(", \"Process Group Ranks\": \"[", w->out);
    for (int i = 0; i < ranks->size; i++)
        if (ranks->size <= LIST || i < LIST - 1 || i == ranks->size - 1)
            fprintf(w->out, "%s%d",
                i == 0                                       ? ""
                : ranks->size > LIST && i == ranks->size - 1 ? ", ..., "
                                                             : ", ",
                first + i * ranks->stride);
    fputs("]\"", w->out);
}

/* How PyTorch and NCCL call a collective; elements in and out of each rank as shares of the whole message. */
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
        [COLL_SEND_RECV] = {"send", "SendRecv", false, false},
        [COLL_PEER_COPY] = {"copy", "Memcpy PtoP", false, false}};
    double share = span->bytes / span->group_size;
    char name[96];
    snprintf(name, sizeof name, "ncclDevKernel_%s_%s_%s", kinds[span->collective].nccl,
        coll_algorithm_names[span->algorithm], coll_protocol_names[span->protocol]);
    trace_slice(w, "kernel", name, rank, trace_thread_of(span->stream), span->start, span->end);
    write_place(w, span, rank);
    fputs(", \"plan op\": ", w->out);
    json_write_string(w->out, span->name);
    fprintf(w->out,
        ", \"Collective name\": \"%s\", \"In msg nelems\": %.0f, \"Out msg nelems\": %.0f, \"Group size\": %d, "
        "\"dtype\": \"Byte\"",
        kinds[span->collective].pytorch, kinds[span->collective].in_is_share ? share : span->bytes,
        kinds[span->collective].out_is_share ? share : span->bytes, span->group_size);
    write_group(w, span, rank);
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

/* The spans of a rank, or where those of another stand for it. */
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
    for (w->n_spans = 0; first + w->n_spans < exec->n_spans && w->spans[w->n_spans].rank == simulated;)
        w->n_spans++;
    for (w->n_host_spans = 0;
         first_host + w->n_host_spans < exec->n_host_spans && w->host_spans[w->n_host_spans].rank == simulated;)
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
    snprintf(step, sizeof step, "ProfilerStep#%" PRId64, options->warmup_steps + options->steps - 1);
    trace_slice(w, "gpu_user_annotation", step, rank, STEP_THREAD, exec->last_step_start, exec->last_step_end);
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
        ps_t since = (ps_t)(sample->time_s * (double)PS_PER_S), time = exec->last_step_start + since;
        trace_begin(w, 'C', "HBM (GiB)", 0, 0);
        fputs(", \"ts\": ", w->out);
        trace_time(w->out, time > 0 ? time : 0);
        fputs(", \"args\": {", w->out);
        for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
            if (c != HBM_CONTEXT && c != HBM_NCCL) /* fixed, and in no sample */
                fprintf(
                    w->out, "%s\"%s\": %.6g", c ? ", " : "", hbm_category_names[c], sample->category_bytes[c] / 0x1p30);
        fputs("}}", w->out);
    }
}

static void write_all(struct trace_writer *w)
{
    const struct scenario *options = &w->point->options;
    const int *ranks = options->exec.trace_ranks;
    bool has_rank_0 = false;
    fputs("{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"generator\": \"flopcast " FLOPCAST_VERSION
          "\", \"scenario\": ",
        w->out);
    json_write_string(w->out, options->name);
    fputs(",\n\"deviceProperties\": [{\"id\": 0, \"name\": ", w->out);
    json_write_string(w->out, gpu_of(w->point, ranks[0]));
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

enum status trace_write(
    const char *path, const struct scenario_point *point, const struct scenario_result *result, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct plan plan = {0};
    struct trace_writer w = {.out = open_output(path),
        .point = point,
        .exec = &result->exec,
        .plan = &plan,
        .n_ops = (int)result->plan_ops,
        .first = true,
        .first_correlation = 1};
    w.next_arrow = w.first_correlation + CORRELATIONS * (int64_t)w.n_ops * point->options.exec.n_trace_ranks;
    w.span_of_op = xcalloc((size_t)w.n_ops + 1, sizeof *w.span_of_op);
    bool opened = w.out != NULL, ok = opened && scenario_compile(&plan, point, &arena, diag) == STATUS_OK;
    if (ok) {
        write_all(&w);
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
