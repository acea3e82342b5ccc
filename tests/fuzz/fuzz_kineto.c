/* Any bytes as a trace of PyTorch's profiler. What must hold: no crash, no leak, a message for
 * every refusal, and rows that the database takes; of a trace that is summed up: steps one after
 * the other, of which the parts are the whole. Its GPUs are ranks of a step, which becomes a plan
 * that holds together, or is refused. */
#include "exchange/trace_plan.h"
#include "import/kineto_collectives.h"
#include "foreign/trace_file.h"
#include "foreign/trace_sum.h"

#include "../number.h"

#include <math.h>

static enum status take_collective(
    void *self, const struct collective_measurement *row, struct diag *diag)
{
    (void)self;
    (void)diag;
    BUG_IF(row->bytes <= 0 || row->ranks < 2 || !*row->dtype, "a collective of %ld B",
        (long)row->bytes);
    BUG_IF(!(row->out_of_place_s > 0 || row->in_place_s > 0), "a collective without time");
    return STATUS_OK;
}

static enum status take_kernel(void *self, const struct kernel_measurement *row, struct diag *diag)
{
    (void)self;
    (void)diag;
    BUG_IF(!*row->name || !(row->duration_s >= 0), "a kernel of %g s", row->duration_s);
    return STATUS_OK;
}

static void check_steps(const struct trace *trace)
{
    BUG_IF(trace->steps.n == 0, "no step");
    for (int i = 0; i < trace->steps.n; i++)
        BUG_IF(trace->steps.at[i].end < trace->steps.at[i].start ||
                   (i > 0 && trace->steps.at[i].start != trace->steps.at[i - 1].end),
            "step %d", i);
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        BUG_IF(activity->step < TRACE_NO_STEP || activity->step >= trace->steps.n, "step %d",
            activity->step);
        BUG_IF(activity->end < activity->start || activity->class >= TRACE_CLASS_COUNT,
            "activity %d", i);
        BUG_IF(
            !(activity->bytes >= 0) || activity->ranks < 0, "a message of %g B", activity->bytes);
    }
}

static void sum_up(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct trace trace = {.rank = -1};
    struct input *input = input_open_text("fuzz.json", (const char *)data, size);
    enum status status = trace_read_kineto(&trace, input, -1, &arena, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    if (status == STATUS_OK) {
        struct trace_sum sum;
        check_steps(&trace);
        trace_sum(&sum, &trace);
        double parts_s = sum.compute_s + sum.exposed_s + sum.copies_s + sum.host_s + sum.idle_s;
        BUG_IF(!(fabs(parts_s - sum.step_s) <= 1e-9 * sum.step_s), "parts of %g s in %g", parts_s,
            sum.step_s);
        trace_sum_free(&sum);
    }
    input_close(input);
    trace_free(&trace);
    arena_release(&arena);
}

enum { MOST_RANKS = 4 };

/* The first step on as many GPUs as it is of, then on twice as many. */
static void plan(const struct traced_rank *ranks, int n, bool recorded)
{
    static const struct hw hw = {.gpu = {.kernel_floor = NUMBER(2e-6), .gemm_floor = NUMBER(5e-6)},
        .node.gpus = NUMBER(8),
        .node.nics = NUMBER(8)};
    int gpus = 0;
    for (int twice = 0; twice < 2; twice++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct trace_planned planned;
        const struct trace *first = ranks[0].trace;
        const struct trace_plan_options options = {
            .step = first->found == TRACE_ANNOTATED ? first->steps.at[0].number : 0,
            .gpus = gpus,
            .recorded = recorded,
            .hw = &hw};
        enum status status = trace_plan(&planned, ranks, n, &options, &arena, &diag);
        BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
            diag.n_errors);
        BUG_IF(status == STATUS_OK && planned.plan.n_programs != n, "%d programs of %d ranks",
            planned.plan.n_programs, n);
        gpus = 2 * planned.ranks;
        plan_release(&planned.plan);
        arena_release(&arena);
    }
}

static void plan_ranks(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct trace traces[MOST_RANKS];
    struct traced_rank ranks[MOST_RANKS];
    int n = 0;
    enum status status = STATUS_OK;
    for (int64_t device = -1; n < MOST_RANKS && status == STATUS_OK && (n == 0 || device >= 0);) {
        struct input *input = input_open_text("fuzz.json", (const char *)data, size);
        traces[n] = (struct trace){.rank = -1, .next_device = -1};
        ranks[n] = (struct traced_rank){&traces[n], "fuzz.json"};
        status = trace_read_kineto(&traces[n], input, device, &arena, &diag);
        if (traces[n].devices > 1)
            traces[n].rank = traces[n].device;
        device = traces[n++].next_device;
        input_close(input);
    }
    for (int recorded = 0; recorded < 2 && status == STATUS_OK; recorded++)
        plan(ranks, n, recorded);
    for (int t = 0; t < n; t++)
        trace_free(&traces[t]);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct kineto_trace trace;
    const struct kineto_sink sink = {take_collective, take_kernel, NULL};
    struct input *input = input_open_text("fuzz.json", (const char *)data, size);
    enum status status = kineto_read(&trace, input, &sink, &arena, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    BUG_IF(status == STATUS_OK && trace.collectives + trace.kernels == 0, "no rows and no message");
    input_close(input);
    arena_release(&arena);
    sum_up(data, size);
    plan_ranks(data, size);
    return 0;
}
