#include "cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { STEP_THREAD = 1 };
static const int stream_threads[STREAM_COUNT] = {[STREAM_COMPUTE] = 7,
    [STREAM_COMM] = 20,
    [STREAM_REPLICATE] = 21,
    [STREAM_UNSHARD] = 22,
    [STREAM_POST] = 23,
    [STREAM_LOADER] = 24};

struct writer {
    FILE *out;
    const struct scenario_point *point;
    const struct exec_result *exec;
    bool first; /* no event yet */
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

/* ---- events ---- */

/* A time in microseconds, cut to nanoseconds. */
static void time_us(FILE *out, ps_t time)
{
    ps_t ns = time / 1000;
    fprintf(out, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

/* Everything of an event up to its arguments, whose object the caller ends. */
static void begin_event(struct writer *w, char phase, const char *name, int pid, int tid)
{
    fprintf(w->out, "%s\n{\"ph\": \"%c\", \"pid\": %d, \"tid\": %d, \"name\": ", w->first ? "" : ",", phase, pid, tid);
    json_write_string(w->out, name);
    w->first = false;
}

static void begin_slice(
    struct writer *w, const char *category, const char *name, int pid, int tid, ps_t start, ps_t end)
{
    begin_event(w, 'X', name, pid, tid);
    fprintf(w->out, ", \"cat\": \"%s\", \"ts\": ", category);
    time_us(w->out, start);
    fputs(", \"dur\": ", w->out);
    time_us(w->out, end / 1000 * 1000 - start / 1000 * 1000);
    fputs(", \"args\": {", w->out);
}

static void write_name(struct writer *w, const char *what, int pid, int tid, const char *name)
{
    begin_event(w, 'M', what, pid, tid);
    fputs(", \"args\": {\"name\": ", w->out);
    json_write_string(w->out, name);
    fputs("}}", w->out);
}

static void write_metadata(struct writer *w, int rank, const bool used[STREAM_COUNT])
{
    int per_node = hw_gpus_per_node(&w->point->hw);
    char name[160];
    snprintf(name, sizeof name, "rank %d / node %d GPU %d (%s)", rank, rank / per_node, rank % per_node,
        w->point->hw.gpu.name);
    write_name(w, "process_name", rank, 0, name);
    begin_event(w, 'M', "process_sort_index", rank, 0);
    fprintf(w->out, ", \"args\": {\"sort_index\": %d}}", rank);
    write_name(w, "thread_name", rank, STEP_THREAD, "step");
    for (int s = 0; s < STREAM_COUNT; s++) {
        if (!used[s])
            continue;
        snprintf(name, sizeof name, "stream %d %s", stream_threads[s], plan_stream_names[s]);
        write_name(w, "thread_name", rank, stream_threads[s], name);
    }
}

static void write_place(struct writer *w, const struct exec_span *span, int rank)
{
    fprintf(w->out, "\"device\": %d, \"stream\": %d, \"op\": %d, \"phase\": \"%s\"",
        rank % hw_gpus_per_node(&w->point->hw), stream_threads[span->stream], span->op, plan_phase_names[span->phase]);
}

static void write_kernel(struct writer *w, const struct exec_span *span, int rank)
{
    begin_slice(w, span->kernel == KERNEL_COPY ? "gpu_memcpy" : "kernel", span->name, rank,
        stream_threads[span->stream], span->start, span->end);
    write_place(w, span, rank);
    fprintf(w->out, ", \"kind\": \"%s\", \"alone (us)\": ", kernel_kind_names[span->kernel]);
    time_us(w->out, span->alone);
    fputs("}}", w->out);
}

/* How PyTorch and NCCL call a collective; elements in and out of each rank as shares of the whole message. */
static void write_collective(struct writer *w, const struct exec_span *span, int rank)
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
        [COLL_SEND_RECV] = {"send", "SendRecv", false, false}};
    double share = span->bytes / span->group_size;
    char name[96];
    snprintf(name, sizeof name, "ncclDevKernel_%s_%s_%s", kinds[span->collective].nccl,
        coll_algorithm_names[span->algorithm], coll_protocol_names[span->protocol]);
    begin_slice(w, "kernel", name, rank, stream_threads[span->stream], span->start, span->end);
    write_place(w, span, rank);
    fputs(", \"plan op\": ", w->out);
    json_write_string(w->out, span->name);
    fprintf(w->out,
        ", \"Collective name\": \"%s\", \"In msg nelems\": %.0f, \"Out msg nelems\": %.0f, \"Group size\": %d, "
        "\"dtype\": \"Byte\", \"waited for ranks (us)\": ",
        kinds[span->collective].pytorch, kinds[span->collective].in_is_share ? share : span->bytes,
        kinds[span->collective].out_is_share ? share : span->bytes, span->group_size);
    time_us(w->out, span->moving - span->start);
    fputs("}}", w->out);
}

/* The first span of a rank, or of one after it: spans stand by rank. */
static int first_span(const struct exec_result *exec, int rank)
{
    int low = 0, high = exec->n_spans;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (exec->spans[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void write_rank(struct writer *w, int rank)
{
    const struct exec_result *exec = w->exec;
    const struct exec_options *options = &w->point->options.exec;
    int simulated = exec->ranks_simulated == 1 ? 0 : rank; /* one stands for all */
    int first = first_span(exec, simulated), end = first_span(exec, simulated + 1);
    bool used[STREAM_COUNT] = {false};
    for (int i = first; i < end; i++)
        used[exec->spans[i].stream] = true;
    write_metadata(w, rank, used);
    if (exec->status != EXEC_OK)
        return;
    char step[48];
    snprintf(step, sizeof step, "ProfilerStep#%" PRId64, options->warmup_steps + options->steps - 1);
    begin_slice(w, "user_annotation", step, rank, STEP_THREAD, exec->last_step_start, exec->last_step_end);
    fputs("}}", w->out);
    for (int i = first; i < end; i++) {
        if (exec->spans[i].is_collective)
            write_collective(w, &exec->spans[i], rank);
        else
            write_kernel(w, &exec->spans[i], rank);
    }
}

static void write_memory(struct writer *w)
{
    const struct exec_result *exec = w->exec;
    if (exec->status == EXEC_OOM) {
        char name[160];
        snprintf(name, sizeof name, "out of memory: %s", exec->memory.oom_op);
        begin_event(w, 'i', name, 0, STEP_THREAD);
        fputs(", \"ts\": 0, \"s\": \"g\"}", w->out);
    }
    for (int i = 0; i < exec->n_timeline; i++) {
        const struct exec_memory_sample *sample = &exec->timeline[i];
        ps_t since = (ps_t)(sample->time_s * (double)PS_PER_S), time = exec->last_step_start + since;
        begin_event(w, 'C', "HBM (GiB)", 0, 0);
        fputs(", \"ts\": ", w->out);
        time_us(w->out, time > 0 ? time : 0);
        fputs(", \"args\": {", w->out);
        for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
            if (c != HBM_CONTEXT && c != HBM_NCCL) /* fixed, and in no sample */
                fprintf(
                    w->out, "%s\"%s\": %.6g", c ? ", " : "", hbm_category_names[c], sample->category_bytes[c] / 0x1p30);
        fputs("}}", w->out);
    }
}

static void write_all(struct writer *w)
{
    const struct scenario *options = &w->point->options;
    const int *ranks = options->exec.trace_ranks;
    bool has_rank_0 = false;
    fputs("{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"generator\": \"flopcast " FLOPCAST_VERSION
          "\", \"scenario\": ",
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

enum status trace_write(
    const char *path, const struct scenario_point *point, const struct scenario_result *result, struct diag *diag)
{
    struct writer w = {.out = open_output(path), .point = point, .exec = &result->exec, .first = true};
    bool opened = w.out != NULL, ok = opened;
    if (ok) {
        write_all(&w);
        ok = ferror(w.out) == 0;
        ok = fclose(w.out) == 0 && ok;
    }
    if (ok)
        return STATUS_OK;
    int why = errno;
    struct stat info;
    if (opened && stat(path, &info) == 0 && S_ISREG(info.st_mode)) /* /dev/full stays */
        unlink(path);
    return diag_io(diag, (struct source_pos){.file = path}, "cannot write: %s", strerror(why));
}
