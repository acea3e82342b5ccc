#include "exchange/trace_plan.h"

#include "exchange/trace_items.h"
#include "hw/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STREAMS = 48 }; /* exec/state.h has 64 queues, some of which every plan has */

struct maker {
    const struct trace *trace;
    const struct trace_plan_options *options;
    struct trace_planned *out;
    struct items items;
    struct plan_builder builder;
    int ranks, growth; /* of the trace; how many times as many are wanted */
    bool shards;       /* a growing group gathers or scatters */
    bool *on_shard;    /* by item */
    struct arena *arena;
    struct diag *diag;
};

static struct source_pos at_file(const struct maker *m)
{
    return (struct source_pos){.file = m->options->file};
}

/* ---- the step ---- */

static enum status find_step(struct maker *m, int *step)
{
    const struct trace *trace = m->trace;
    int n = trace->steps.n;
    int64_t wanted = m->options->step, first = trace->steps.at[0].number, last = trace->steps.at[n - 1].number;
    if (trace->found == TRACE_WHOLE)
        return diag_input(m->diag, at_file(m),
            "no step in it: there is no annotation ProfilerStep#N, and the kernels do not repeat; call the profiler's "
            "step() after each step of the loop");
    if (trace->found == TRACE_REPEATED) { /* they have no numbers: from 0 on */
        first = 0;
        last = n - 1;
    }
    if (wanted < 0 && n > 1)
        return diag_input(m->diag, at_file(m),
            "%d steps in it, numbers %lld to %lld; choose one with --step N (not the first, of which a part may be "
            "missing)",
            n, (long long)first, (long long)last);
    for (*step = 0; *step < n; ++*step)
        if (wanted < 0 || (trace->found == TRACE_REPEATED ? *step : trace->steps.at[*step].number) == wanted)
            return STATUS_OK;
    return diag_input(m->diag, at_file(m), "no step %lld in it; there are %lld to %lld", (long long)wanted,
        (long long)first, (long long)last);
}

/* ---- groups ---- */

static bool is_fixed(const struct maker *m, const struct trace_group_of_ranks *group)
{
    for (int i = 0; i < m->options->n_fixed; i++)
        if (strcmp(m->options->fixed[i], group->name) == 0 ||
            (group->says && strcmp(m->options->fixed[i], group->says) == 0))
            return true;
    return false;
}

/* Over the whole job of the trace, in steps of its stride. */
static bool grows(const struct maker *m, const struct trace_activity *activity)
{
    if (activity->group < 0)
        return activity->ranks == m->ranks;
    const struct trace_group_of_ranks *group = &m->trace->groups.at[activity->group];
    return group->ranks * group->stride == m->ranks && !is_fixed(m, group);
}

static enum status refuse(const struct maker *m, const struct trace_activity *activity, const char *why)
{
    return diag_input(m->diag, (struct source_pos){m->options->file, activity->line, activity->line > 0},
        "collective %s at %.3f ms of the step: %s", m->trace->names.at[activity->name],
        s_from_ps(activity->start - m->trace->steps.at[m->items.step].start) * 1e3, why);
}

static enum status check_collective(const struct maker *m, const struct trace_activity *activity)
{
    const struct trace_group_of_ranks *group = activity->group < 0 ? NULL : &m->trace->groups.at[activity->group];
    if (activity->kind == TRACE_UNKNOWN_KIND || activity->bytes <= 0 || activity->ranks == 0)
        return refuse(m, activity,
            "its kind, size or group is not in the trace; record it with PyTorch 2.2 or later, whose profiler writes "
            "the arguments of NCCL's calls, or let collectives take the time that they took with --recorded");
    if (activity->kind == COLL_SEND_RECV)
        return refuse(m, activity,
            "a message of a pipeline, whose stages are several programs; --recorded lets it take the time that it "
            "took");
    if (group && group->stride == 0)
        return refuse(
            m, activity, "the ranks of its group are not said, or not evenly apart; PyTorch 2.4 and later write them");
    if (!group && activity->ranks != m->ranks)
        return refuse(m, activity,
            "which ranks are in its group is not said, and it is not all of them; PyTorch 2.4 and later write it");
    return STATUS_OK;
}

static struct mesh_group ranks_of(const struct maker *m, const struct trace_activity *activity)
{
    int ranks = m->ranks * m->growth, size = activity->ranks * (grows(m, activity) ? m->growth : 1);
    int stride = activity->group < 0 ? 1 : m->trace->groups.at[activity->group].stride;
    return (struct mesh_group){
        .size = size, .stride = stride, .width = stride, .period = size * stride > ranks ? ranks : size * stride};
}

static enum status check_group(const struct maker *m, const struct trace_activity *activity)
{
    struct mesh_group ranks = ranks_of(m, activity);
    int all = m->ranks * m->growth;
    if (mesh_group_is_valid(&ranks, all) && mesh_group_lies_evenly(&ranks, all, hw_gpus_per_node(m->options->hw)))
        return STATUS_OK;
    return refuse(m, activity,
        arena_printf(m->arena, "its group of %d ranks, %d apart, does not fit %d GPUs in nodes of %d", ranks.size,
            ranks.stride, all, hw_gpus_per_node(m->options->hw)));
}

static enum status check_collectives(struct maker *m)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < m->items.list.n && status == STATUS_OK; i++) {
        const struct trace_activity *activity = m->items.list.at[i].activity;
        if (!activity || activity->class != TRACE_COLLECTIVE)
            continue;
        m->out->collectives++;
        if (m->options->recorded)
            continue;
        status = check_collective(m, activity);
        if (status == STATUS_OK)
            status = check_group(m, activity);
        if (status != STATUS_OK)
            continue;
        bool more = grows(m, activity);
        m->out->grown += more;
        m->shards |= more && (activity->kind == COLL_ALL_GATHER || activity->kind == COLL_REDUCE_SCATTER);
    }
    return status;
}

/* How many ranks the trace is of, and how many times as many are wanted. */
static enum status find_ranks(struct maker *m)
{
    const struct trace *trace = m->trace;
    int64_t ranks = trace->world_size > 0 ? trace->world_size : 1;
    for (int i = 0; i < trace->activities.n; i++)
        if (trace->activities.at[i].ranks > ranks)
            ranks = trace->activities.at[i].ranks;
    int gpus = m->options->gpus > 0 ? m->options->gpus : (int)ranks;
    m->ranks = m->out->ranks = (int)ranks;
    m->growth = (int)(gpus / ranks);
    if (gpus % ranks != 0)
        return diag_input(
            m->diag, at_file(m), "it is of %lld GPUs, of which %d are no multiple", (long long)ranks, gpus);
    if (m->growth > 1 && m->options->recorded)
        return diag_input(m->diag, at_file(m),
            "collectives that take the time that they took are those of %lld GPUs, not of %d; leave --recorded out",
            (long long)ranks, gpus);
    return STATUS_OK;
}

/* ---- shards ---- */

static bool is_named(const struct maker *m, const struct trace_activity *activity)
{
    for (int i = 0; i < m->options->n_sharded; i++)
        if (strstr(m->trace->names.at[activity->name], m->options->sharded[i]))
            return true;
    return false;
}

static bool is_beside(const struct maker *m, const struct item *item)
{
    return item->kind == ITEM_LAUNCH && item->stream != m->items.compute &&
           !m->items.streams.at[item->stream].collectives;
}

/* A collective over a growing group, of this kind or, by `gathers` false, one that reduces. */
static bool is_of_shards(const struct maker *m, const struct item *item, bool gathers)
{
    const struct trace_activity *activity = item->activity;
    return activity && activity->class == TRACE_COLLECTIVE && grows(m, activity) &&
           (activity->kind == COLL_ALL_GATHER) == gathers;
}

static void find_shards(struct maker *m)
{
    const struct items *items = &m->items;
    m->on_shard = xcalloc((size_t)items->list.n + 1, sizeof *m->on_shard);
    for (int i = 0; i < items->list.n; i++) {
        const struct trace_activity *activity = items->list.at[i].activity;
        if (!activity || activity->class == TRACE_COLLECTIVE)
            continue;
        bool optimizer = activity->phase == PHASE_OPTIMIZER || activity->class == KERNEL_OPTIMIZER;
        m->on_shard[i] = m->options->n_sharded > 0 ? is_named(m, activity) : m->shards && optimizer;
    }
    for (int w = 0; w < items->waits.n && m->shards && m->options->n_sharded == 0; w++) {
        int i = items->waits.at[w].item, on = items->waits.at[w].on;
        if (on & PLAN_PREVIOUS_STEP)
            continue;
        const struct item *waiter = &items->list.at[i], *awaited = &items->list.at[on];
        m->on_shard[on] |= is_of_shards(m, waiter, true) && is_beside(m, awaited);
        m->on_shard[i] |= is_of_shards(m, awaited, false) && is_beside(m, waiter);
    }
}

/* ---- ops ---- */

static int kind_of(int class)
{
    return class == TRACE_OTHER ? KERNEL_ELEMENTWISE : class;
}

static double floor_of(int class, const struct hw_gpu *gpu)
{
    return class == KERNEL_GEMM ? gpu->gemm_floor.value : gpu->kernel_floor.value;
}

/* The kernel whose time is recorded, as far as it is known. */
static struct kernel_work kernel_of(const struct maker *m, const struct trace_activity *activity, int64_t ns)
{
    int kind = kind_of(activity->class);
    const struct kernel_work *known = activity->product >= 0 ? &m->trace->products.at[activity->product] : NULL;
    struct kernel_work work = {.kind = KERNEL_RECORDED, .m = ns};
    if (known && (int)known->kind == kind && kernel_supported(&m->options->hw->gpu, known->math))
        work = *known;
    else if (kind == KERNEL_GEMM || kind == KERNEL_ATTENTION)
        work.n = 1;
    else if (kind != KERNEL_HOST_COPY)
        work = kernel_stream((enum kernel_kind)kind, 1, 0, 0);
    work.backward = work.kind == KERNEL_ATTENTION && activity->phase == PHASE_BACKWARD;
    work.recorded_ns = work.kind == KERNEL_RECORDED || ns == 0 ? 0 : ns;
    return work;
}

static struct kernel_work work_of(const struct maker *m, int i)
{
    const struct trace_activity *activity = m->items.list.at[i].activity;
    const struct hw_gpu *to = &m->options->hw->gpu, *from = m->options->traced ? m->options->traced : to;
    int kind = kind_of(activity->class);
    ps_t took = activity->alone > 0 ? activity->alone : activity->end - activity->start;
    double took_s = s_from_ps(took + m->items.list.at[i].dispatch);
    double error, floor_s = fmin(took_s, floor_of(kind, from)), above_s = took_s - floor_s;
    if (m->on_shard[i])
        above_s /= m->growth;
    if (from != to) {
        above_s *= trace_gpu_ratio(kind, from, to, &error);
        floor_s = fmin(floor_s, floor_of(kind, to));
    }
    return kernel_of(m, activity, llround((above_s + floor_s) * 1e9));
}

static struct kernel_work lasting(ps_t time)
{
    return (struct kernel_work){.kind = KERNEL_RECORDED, .m = llround(s_from_ps(time) * 1e9)};
}

static void make_launch(struct maker *m, int i)
{
    const struct item *item = &m->items.list.at[i];
    const struct trace_activity *activity = item->activity;
    const char *name = m->trace->names.at[activity->name];
    int queue = m->items.streams.at[item->stream].queue;
    double host_s = s_from_ps(item->host);
    m->builder.phase = activity->phase < PHASE_COUNT ? activity->phase : PHASE_FORWARD;
    m->out->sharded += m->on_shard[i];
    m->out->kernels += activity->class != TRACE_COLLECTIVE;
    if (item->idle > 0)
        plan_kernel(&m->builder, queue, "idle", lasting(item->idle), 0);
    if (activity->class != TRACE_COLLECTIVE) {
        plan_kernel(&m->builder, queue, name, work_of(m, i), host_s);
    } else if (m->options->recorded) {
        plan_kernel(&m->builder, queue, name, lasting(activity->end - activity->start + item->dispatch), host_s);
    } else {
        const struct trace_group_of_ranks *group = activity->group < 0 ? NULL : &m->trace->groups.at[activity->group];
        m->builder.serves = grows(m, activity) ? PARALLEL_DATA : PARALLEL_TENSOR;
        int number = plan_group_of(&m->builder, group ? group->name : "world", ranks_of(m, activity));
        plan_collective(&m->builder, queue, name, (enum coll_kind)activity->kind, activity->bytes, number, host_s);
    }
}

static plan_wait op_of(const struct maker *m, plan_wait item)
{
    return m->items.list.at[item & ~PLAN_PREVIOUS_STEP].op | (item & PLAN_PREVIOUS_STEP);
}

/* Of a wait, what the host took once it could go on; all of it where it is not known for what it waited. */
static void make_wait(struct maker *m, const struct item *item, plan_wait on)
{
    ps_t from = item->start;
    if (on != PLAN_NO_OP) {
        ps_t end = m->items.list.at[on & ~PLAN_PREVIOUS_STEP].end - (on & PLAN_PREVIOUS_STEP ? m->items.period : 0);
        from = end > from ? end : from;
    }
    double host_s = s_from_ps(item->end > from ? item->end - from : 0);
    if (on == PLAN_NO_OP)
        plan_host(&m->builder, "wait", host_s);
    else
        plan_host_wait(&m->builder, "synchronize", op_of(m, on), host_s);
}

static void make_item(struct maker *m, int i, int *wait)
{
    const struct item *item = &m->items.list.at[i];
    plan_wait on = PLAN_NO_OP;
    for (; *wait < m->items.waits.n && m->items.waits.at[*wait].item == i; ++*wait) {
        on = m->items.waits.at[*wait].on;
        if (item->kind == ITEM_LAUNCH)
            plan_stream_wait(&m->builder, m->items.streams.at[item->stream].queue, op_of(m, on));
    }
    if (item->kind == ITEM_LAUNCH)
        make_launch(m, i);
    else if (item->kind == ITEM_WAIT)
        make_wait(m, item, on);
    else
        plan_host(&m->builder, "host", s_from_ps(item->host));
}

/* The busiest stream is compute; those with collectives are NCCL's. */
static enum status make_queues(struct maker *m)
{
    bool comm = false;
    if (m->items.streams.n > MOST_STREAMS)
        return diag_input(m->diag, at_file(m), "more than %d CUDA streams", MOST_STREAMS);
    for (int s = 0; s < m->items.streams.n; s++) {
        struct item_stream *stream = &m->items.streams.at[s];
        const char *name = arena_printf(m->arena, "stream %d", stream->number);
        if (s == m->items.compute && stream->collectives)
            return diag_input(m->diag, at_file(m),
                "collectives and most kernels are on one stream, %d; that is no training step of PyTorch's",
                stream->number);
        if (s == m->items.compute)
            stream->queue = STREAM_COMPUTE;
        else if (stream->collectives && !comm)
            stream->queue = STREAM_COMM;
        else
            stream->queue = plan_queue(&m->builder, name, stream->collectives ? QUEUE_COMM : QUEUE_SIDE);
        comm |= stream->collectives;
    }
    return STATUS_OK;
}

static enum status make(struct maker *m)
{
    char why[512];
    plan_begin(&m->builder, &m->out->plan, m->ranks * m->growth);
    enum status status = make_queues(m);
    for (int i = 0, wait = 0; i < m->items.list.n && status == STATUS_OK; i++)
        make_item(m, i, &wait);
    plan_end(&m->builder);
    if (status == STATUS_OK && !plan_check(&m->out->plan, why, sizeof why))
        status = diag_input(m->diag, at_file(m), "its step does not hold together: %s", why);
    return status;
}

static void describe(struct maker *m)
{
    const struct trace_step *step = &m->trace->steps.at[m->items.step];
    m->out->step_s = s_from_ps(step->end - step->start);
    m->out->step = m->trace->found == TRACE_ANNOTATED ? step->number : -1;
    m->out->says_waits = m->trace->says_waits;
}

enum status trace_plan(struct trace_planned *out, const struct trace *trace, const struct trace_plan_options *options,
    struct arena *arena, struct diag *diag)
{
    struct maker m = {.trace = trace, .options = options, .out = out, .arena = arena, .diag = diag};
    int step = 0;
    *out = (struct trace_planned){0};
    enum status status = find_step(&m, &step);
    if (status == STATUS_OK)
        status = find_ranks(&m);
    if (status != STATUS_OK)
        return status;
    items_make(&m.items, trace, step);
    items_order(&m.items);
    status = check_collectives(&m);
    find_shards(&m);
    if (status == STATUS_OK)
        status = make(&m);
    describe(&m);
    items_free(&m.items);
    free(m.on_shard);
    return status;
}

/* ---- another GPU ---- */

/* Relative; where a file does not say, what draws assume (hw/draw.h). */
static double error_of(struct quantity number)
{
    if (number.std_error > 0)
        return number.std_error / number.value;
    return number.kind == QUANTITY_ASSUMED ? DRAW_ASSUMED : number.kind == QUANTITY_MEASURED ? DRAW_MEASURED : 0;
}

static void divide(double *ratio, double *variance, struct quantity from, struct quantity to)
{
    if (!quantity_is_set(from) || !quantity_is_set(to))
        return;
    *ratio *= from.value / to.value;
    *variance += error_of(from) * error_of(from) + error_of(to) * error_of(to);
}

double trace_gpu_ratio(int class, const struct hw_gpu *from, const struct hw_gpu *to, double *error)
{
    bool both = kernel_supported(from, DTYPE_BF16) && kernel_supported(to, DTYPE_BF16);
    const struct hw_gemm *a = &from->gemm[both ? DTYPE_BF16 : DTYPE_FP16],
                         *b = &to->gemm[both ? DTYPE_BF16 : DTYPE_FP16];
    double ratio = 1, variance = 0;
    if (class == KERNEL_HOST_COPY) {
        ratio = from->host_link_Bps / to->host_link_Bps;
    } else if (class == KERNEL_GEMM || class == KERNEL_ATTENTION) {
        divide(&ratio, &variance, a->peak, b->peak);
        divide(&ratio, &variance, a->efficiency, b->efficiency);
        divide(&ratio, &variance, from->gemm_sustained, to->gemm_sustained);
        if (class == KERNEL_ATTENTION)
            divide(&ratio, &variance, from->attention_efficiency, to->attention_efficiency);
    } else {
        divide(&ratio, &variance, from->hbm_bandwidth, to->hbm_bandwidth);
        divide(&ratio, &variance, from->hbm_efficiency, to->hbm_efficiency);
    }
    *error = sqrt(variance);
    return ratio;
}
