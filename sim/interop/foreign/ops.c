/* A trace, as Kineto writes it, of operators that a step calls on one rank (JSON lines of
 * scenarios/fake_step.py), without a GPU.
 *
 * Each line is an operator with shapes and dtype, a collective with its group, or a wait for a
 * collective. Kernels take what the GPU's tables say (kernel_duration_s()), one after the other
 * on a compute stream; collectives take no time, and each group has a stream. The host issues in
 * order, a fixed time each. Events have the correlations and cuda_sync waits that the reader of
 * traces uses (trace_kineto.c), so the result can be scaled like a recorded trace.
 *
 * What is subtle: three correlations a line tie launch, the record before a collective and the
 * one behind it; they are made of the number of the line. Ranks of a group must be evenly apart,
 * as groups of a plan are. A collective of one rank launches nothing, and a wait for it is none. */
#include "foreign/ops.h"

#include "base/arena.h"
#include "config/config.h"
#include "reader/json.h"
#include "reader/kineto.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TEXT_BYTES = 128, COMPUTE_STREAM = 7, FIRST_GROUP_STREAM = 20, HOST_THREAD = 2, MOST_GROUPS = 1000 };
/* Events of a line: what it launches, the record before a collective and the one behind it. */
enum { LAUNCH = 1, RECORD_BEFORE, RECORD_BEHIND, CORRELATIONS };

enum container { LINE, IN, IN_TENSOR, OUT, OUT_TENSOR, RANKS };
static const char *const containers[] = {"", "in", "in[]", "out", "out[]", "ranks", NULL};

struct op_line {
    char op[TEXT_BYTES], collective[TEXT_BYTES], group[TEXT_BYTES], dtype[TEXT_BYTES], phase[TEXT_BYTES];
    struct op_shapes shapes;
    struct op_tensor open; /* that is being read */
    double numel;
    int64_t first, stride, before, ranks, wait;
    bool even, waits;
};

struct collective {
    int line, stream;
    int64_t end_ns;
};

struct writer {
    FILE *out;
    const char *file;
    const struct ops_options *options;
    struct diag *diag;
    struct ops_counts *counts;
    struct arena arena;
    struct op_line at;
    VEC(const char *) groups;
    VEC(int64_t) group_ends;     /* when its stream is free */
    VEC(struct collective) sent; /* by line */
    int64_t host_ns, compute_ns;
    bool any;
};

static struct source_pos place(const struct writer *w, int line)
{
    return (struct source_pos){w->file, line, 1};
}

/* ---- events ---- */

static void begin(struct writer *w, const char *category, const char *name, int thread, int64_t start_ns, int64_t ns)
{
    fprintf(w->out, "%s\n{\"ph\": \"X\", \"cat\": \"%s\", \"pid\": 0, \"tid\": %d, \"name\": ", w->any ? "," : "",
        category, thread);
    json_write_string(w->out, name);
    fprintf(w->out, ", \"ts\": %" PRId64 ".%03d, \"dur\": %" PRId64 ".%03d, \"args\": {", start_ns / 1000,
        (int)(start_ns % 1000), ns / 1000, (int)(ns % 1000));
    w->any = true;
}

static void write_runtime(struct writer *w, const char *name, int64_t start_ns, int64_t ns, int64_t correlation)
{
    begin(w, "cuda_runtime", name, HOST_THREAD, start_ns, ns);
    fprintf(w->out, "\"correlation\": %" PRId64 "}}", correlation);
}

static int64_t correlation_of(int line, int event)
{
    return (int64_t)line * CORRELATIONS + event;
}

/* What `stream` is given from here on waits for what the other had been given by line `line`. */
static void write_wait(struct writer *w, int stream, int on, int line, int record)
{
    begin(w, "cuda_sync", "Stream Wait Event", HOST_THREAD, w->host_ns, 0);
    fprintf(w->out, "\"stream\": %d, \"wait_on_stream\": %d, \"wait_on_cuda_event_record_corr_id\": %" PRId64 "}}",
        stream, on, correlation_of(line, record));
}

static void write_launch(struct writer *w, int line)
{
    int64_t issue_ns = (int64_t)(w->options->issue_s * 1e9);
    write_runtime(w, "cudaLaunchKernel", w->host_ns, issue_ns, correlation_of(line, LAUNCH));
    w->host_ns += issue_ns;
}

static void write_phase(struct writer *w)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (strcmp(w->at.phase, plan_phase_names[phase]) == 0)
            fprintf(w->out, ", \"phase\": \"%s\"", w->at.phase);
}

/* ---- what a line is ---- */

/* As an operator has them with record_shapes, which reads them again. */
static void write_shapes(struct writer *w, const struct kernel_work *work, int line)
{
    static const char *const types[DTYPE_COUNT] = {[DTYPE_FP32] = "float",
        [DTYPE_BF16] = "c10::BFloat16",
        [DTYPE_FP16] = "c10::Half",
        [DTYPE_FP8] = "c10::Float8_e4m3fn",
        [DTYPE_INT8] = "signed char"};
    if ((work->kind != KERNEL_GEMM && work->kind != KERNEL_ATTENTION) || !types[work->math])
        return;
    bool attends = work->kind == KERNEL_ATTENTION;
    begin(w, "cpu_op", w->at.op, HOST_THREAD, w->host_ns, (int64_t)(w->options->issue_s * 1e9));
    const char *lead = attends ? "1, " : "";
    fprintf(w->out,
        "\"External id\": %" PRId64 ", \"Input Dims\": [[%s%" PRId64 ", %" PRId64 ", %" PRId64 "], [%s%" PRId64
        ", %" PRId64 ", %" PRId64 "]], \"Input type\": [\"%s\", \"%s\"]}}",
        correlation_of(line, LAUNCH), lead, work->batch, work->m, work->k, lead, work->batch,
        attends ? work->n : work->k, attends ? work->k : work->n, types[work->math], types[work->math]);
}

/* The kernel starts when the host has launched it and the stream is free. */
static enum status take_kernel(struct writer *w, const struct kernel_work *work, int line)
{
    const struct hw_gpu *gpu = w->options->gpu;
    bool multiplies = work->kind == KERNEL_GEMM || work->kind == KERNEL_ATTENTION;
    if (multiplies && !kernel_supported(gpu, work->math))
        return diag_input(
            w->diag, place(w, line), "GPU '%s' cannot multiply in %s", gpu->name, dtype_names[work->math]);
    double took_s = kernel_duration_s(work, gpu, kernel_whole_gpu(gpu));
    if (!(took_s * 1e9 < (double)PS_HORIZON / 1e6))
        return diag_input(w->diag, place(w, line), "'%s' would take %g s; are its shapes right?", w->at.op, took_s);
    int64_t took_ns = (int64_t)(took_s * 1e9);
    write_shapes(w, work, line);
    write_launch(w, line);
    int64_t start = w->compute_ns > w->host_ns ? w->compute_ns : w->host_ns;
    begin(w, "kernel", w->at.op, COMPUTE_STREAM, start, took_ns);
    fprintf(w->out,
        "\"device\": 0, \"stream\": %d, \"correlation\": %" PRId64 ", \"External id\": %" PRId64 ", \"kind\": \"%s\"",
        COMPUTE_STREAM, correlation_of(line, LAUNCH), correlation_of(line, LAUNCH), kernel_kind_names[work->kind]);
    write_phase(w);
    fputs("}}", w->out);
    w->compute_ns = start + took_ns;
    w->counts->kernels++;
    w->counts->kernels_s += took_s;
    return STATUS_OK;
}

static int group_of(struct writer *w, const char *name)
{
    for (int g = 0; g < w->groups.n; g++)
        if (strcmp(w->groups.at[g], name) == 0)
            return g;
    vec_push(&w->groups, arena_strdup(&w->arena, name));
    vec_push(&w->group_ends, 0);
    return w->groups.n - 1;
}

static void write_ranks(struct writer *w)
{
    fputs(", \"Process Group Name\": ", w->out);
    json_write_string(w->out, w->at.group);
    fputs(", \"Process Group Ranks\": \"[", w->out);
    for (int64_t i = 0; i < w->at.ranks; i++)
        fprintf(w->out, "%s%" PRId64, i ? ", " : "", w->at.first + i * w->at.stride);
    fputs("]\"", w->out);
}

static enum status check_collective(const struct writer *w, int line)
{
    const struct op_line *at = &w->at;
    if (!kineto_find_collective(at->collective))
        return diag_input(w->diag, place(w, line),
            "'%s' is no collective that is known; there are allreduce, allgather, reduce_scatter, broadcast, reduce "
            "and all_to_all",
            at->collective);
    if (!*at->group || at->ranks < 1)
        return diag_input(w->diag, place(w, line), "a collective has a \"group\" and its \"ranks\", as in [0, 1]");
    if (!at->even)
        return diag_input(w->diag, place(w, line), "the ranks of group '%s' are not evenly apart", at->group);
    if (!(at->shapes.in_numel >= 1 || at->shapes.out_numel >= 1))
        return diag_input(w->diag, place(w, line), "a collective has its shapes in \"in\" and \"out\"");
    return STATUS_OK;
}

/* It begins after what compute had been given, and after the collective before it in its group. */
static enum status take_collective(struct writer *w, int64_t element_bytes, int line)
{
    const struct op_line *at = &w->at;
    enum status status = check_collective(w, line);
    if (status != STATUS_OK || at->ranks == 1) /* NCCL launches nothing for one rank */
        return status;
    int group = group_of(w, at->group), stream = FIRST_GROUP_STREAM + group;
    if (w->groups.n > MOST_GROUPS)
        return diag_input(w->diag, place(w, line), "more than %d groups", MOST_GROUPS);
    write_runtime(w, "cudaEventRecord", w->host_ns, 0, correlation_of(line, RECORD_BEFORE));
    write_wait(w, stream, COMPUTE_STREAM, line, RECORD_BEFORE);
    write_launch(w, line);
    write_runtime(w, "cudaEventRecord", w->host_ns, 0, correlation_of(line, RECORD_BEHIND));
    int64_t start = w->host_ns, end = w->group_ends.at[group];
    start = start > w->compute_ns ? start : w->compute_ns;
    start = start > end ? start : end;
    begin(w, "kernel", arena_printf(&w->arena, "ncclDevKernel_%s", at->collective), stream, start, 0);
    fprintf(w->out,
        "\"device\": 0, \"stream\": %d, \"correlation\": %" PRId64
        ", \"Collective name\": \"%s\", \"In msg nelems\": %.0f"
        ", \"Out msg nelems\": %.0f, \"Group size\": %" PRId64 ", \"dtype\": \"Byte\"",
        stream, correlation_of(line, LAUNCH), at->collective, at->shapes.in_numel * (double)element_bytes,
        at->shapes.out_numel * (double)element_bytes, at->ranks);
    write_ranks(w);
    write_phase(w);
    fputs("}}", w->out);
    w->group_ends.at[group] = start;
    vec_push(&w->sent, ((struct collective){line, stream, start}));
    w->counts->collectives++;
    int64_t highest = at->first + (at->ranks - 1) * at->stride;
    w->counts->ranks = highest >= w->counts->ranks ? (int)highest + 1 : w->counts->ranks;
    return STATUS_OK;
}

/* Lines of collectives are in order, so the one waited for is found by halves. */
static enum status take_wait(struct writer *w, int line)
{
    int low = 0, high = w->sent.n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (w->sent.at[middle].line < w->at.wait)
            low = middle + 1;
        else
            high = middle;
    }
    if (w->at.wait < 1 || w->at.wait >= line)
        return diag_input(w->diag, place(w, line), "\"wait\" is the line of a collective before this one");
    if (low == w->sent.n || w->sent.at[low].line != w->at.wait)
        return STATUS_OK; /* of one rank */
    const struct collective *sent = &w->sent.at[low];
    write_wait(w, COMPUTE_STREAM, sent->stream, sent->line, RECORD_BEHIND);
    w->compute_ns = w->compute_ns > sent->end_ns ? w->compute_ns : sent->end_ns;
    return STATUS_OK;
}

static enum status take_line(struct writer *w, int line)
{
    enum dtype math = DTYPE_FP32;
    struct kernel_work work;
    if (w->at.waits)
        return take_wait(w, line);
    if (!*w->at.op)
        return diag_input(w->diag, place(w, line),
            "an operator is wanted, as in {\"op\": \"aten.mm.default\", \"dtype\": \"bfloat16\", \"in\": [[2, 3], [3, "
            "4]], "
            "\"out\": [[2, 4]]}");
    int64_t bytes = ops_dtype(w->at.dtype, &math);
    if (bytes == 0 && (w->at.shapes.n_out > 0 || *w->at.collective))
        return diag_input(w->diag, place(w, line),
            "'%s' is no \"dtype\" that is known; there are bfloat16, float16, float32, float8_e4m3fn, int64 and others "
            "of PyTorch",
            w->at.dtype);
    if (*w->at.collective)
        return take_collective(w, bytes, line);
    switch (ops_kernel(&work, w->at.op, &w->at.shapes, math, bytes)) {
    case OPS_VIEW:
        w->counts->views++;
        return STATUS_OK;
    case OPS_REFUSED:
        return diag_input(w->diag, place(w, line),
            "'%s' of these shapes has no time; products, attention and what streams have, convolutions have not",
            w->at.op);
    case OPS_KERNEL:
        break;
    }
    return take_kernel(w, &work, line);
}

/* ---- reading ---- */

static void keep_text(char *out, const char *text)
{
    snprintf(out, TEXT_BYTES, "%s", text);
}

static void take_rank(struct op_line *at, int64_t rank)
{
    int64_t step = rank - at->before;
    if (at->ranks == 0)
        at->first = rank;
    if (at->ranks == 1)
        at->stride = step;
    at->even = at->even && (at->ranks == 0 || (step == at->stride && step > 0));
    at->before = rank;
    at->ranks++;
}

static enum status take_scalar(void *self, const struct json_scalar *scalar)
{
    enum { MOST_RANK = 1 << 24 };
    struct writer *w = self;
    struct op_line *at = &w->at;
    struct source_pos pos = place(w, scalar->line);
    int64_t number = 0;
    const struct {
        const char *key;
        char *text;
    } texts[] = {{"op", at->op}, {"collective", at->collective}, {"group", at->group}, {"dtype", at->dtype},
        {"phase", at->phase}};
    bool is_int = json_int(scalar, &number);
    switch (scalar->container) {
    case LINE:
        if (!scalar->key)
            return diag_input(w->diag, pos, "a line is an object, as in {\"op\": ...}");
        for (size_t i = 0; i < sizeof texts / sizeof *texts && scalar->kind != JSON_NULL; i++)
            if (strcmp(scalar->key, texts[i].key) == 0)
                keep_text(texts[i].text, scalar->text);
        if (strcmp(scalar->key, "wait") == 0) {
            at->waits = true;
            at->wait = is_int ? number : 0;
        }
        return STATUS_OK;
    case RANKS:
        if (!is_int || number < 0 || number > MOST_RANK)
            return diag_input(w->diag, pos, "'%s' is no rank; numbers from 0 on are wanted", scalar->text);
        take_rank(at, number);
        return STATUS_OK;
    case IN_TENSOR:
    case OUT_TENSOR:
        if (!is_int || number < 0 || at->numel * (double)number > 0x1p53)
            return diag_input(w->diag, pos, "'%s' is no size of a tensor of at most 2^53 elements", scalar->text);
        at->numel *= (double)number;
        if (at->open.n < OPS_DIMS)
            at->open.size[at->open.n++] = (double)number;
        return STATUS_OK;
    default:
        return diag_input(w->diag, pos, "shapes are lists in a list, as in [[8192, 4096]]");
    }
}

static void close_tensor(struct op_line *at, struct op_tensor *list, int *n, double *numel)
{
    if (*n < OPS_TENSORS)
        list[*n] = at->open;
    *n += 1;
    *numel += at->numel;
    at->open.n = 0;
    at->numel = 1;
}

static void next_line(struct writer *w)
{
    w->at = (struct op_line){.numel = 1, .even = true};
}

static enum status take_close(void *self, int container, int line)
{
    struct writer *w = self;
    struct op_shapes *shapes = &w->at.shapes;
    if (container == IN_TENSOR)
        close_tensor(&w->at, shapes->in, &shapes->n_in, &shapes->in_numel);
    if (container == OUT_TENSOR)
        close_tensor(&w->at, shapes->out, &shapes->n_out, &shapes->out_numel);
    if (container != LINE)
        return STATUS_OK;
    enum status status = take_line(w, line);
    next_line(w);
    return status;
}

static enum status write_trace(struct writer *w, struct input *input)
{
    const struct json_handler handler = {
        .containers = containers, .scalar = take_scalar, .close = take_close, .self = w, .lines = true};
    *w->counts = (struct ops_counts){.ranks = 1};
    next_line(w);
    fputs("{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": ", w->out);
    json_write_string(w->out, w->options->gpu->name);
    fputs("}], \"traceEvents\": [", w->out);
    enum status status = json_read(input, &handler, w->diag);
    if (status == STATUS_OK && w->counts->kernels == 0)
        status = diag_input(w->diag, (struct source_pos){.file = w->file}, "no operator of these launches a kernel");
    begin(w, "user_annotation", "ProfilerStep#0", HOST_THREAD, 0, w->host_ns);
    fprintf(w->out, "}}\n], \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": %d}}\n",
        w->counts->ranks);
    vec_free(&w->groups);
    vec_free(&w->group_ends);
    vec_free(&w->sent);
    arena_release(&w->arena);
    return status;
}

enum status ops_write_trace(
    struct ops_counts *counts, FILE *out, const char *path, const struct ops_options *options, struct diag *diag)
{
    struct writer w = {
        .out = out, .file = path, .options = options, .diag = diag, .counts = counts, .arena = ARENA_INIT};
    struct input *input;
    enum status status = input_open(&input, path, diag);
    if (status == STATUS_OK)
        status = write_trace(&w, input);
    input_close(input);
    return status;
}

enum status ops_write_trace_of(struct ops_counts *counts, FILE *out, const char *text, size_t n,
    const struct ops_options *options, struct diag *diag)
{
    struct writer w = {
        .out = out, .file = "ops.jsonl", .options = options, .diag = diag, .counts = counts, .arena = ARENA_INIT};
    struct input *input = input_open_text(w.file, text, n);
    enum status status = write_trace(&w, input);
    input_close(input);
    return status;
}
