/* A plan of traced ranks, for a number of GPUs that may be larger than the trace's: more data
 * parallelism. Each traced rank becomes a program. Its items (trace_items.c) with their waits
 * (trace_order.c) are made into ops: kernels that take their recorded time, collectives over groups
 * which grow with the job (trace_ranks.c), messages, host time. Kernels that work on a shard (of
 * the optimizer, or beside gathers and scatters over growing groups) are divided by the growth; a
 * kernel's floor time is not. Another GPU scales the time above the floor by class.
 *
 * What is subtle: a communicator does its collectives one after the other, whatever the stream, so
 * collectives that are not on NCCL's own stream get a queue of their group, with a kernel of no
 * time that lets their stream go on behind them (go_on_after()). Ops of an item are numbered before
 * any is made, because waits may point forward to the step before. */
#include "exchange/trace_plan.h"

#include "exchange/trace_ranks.h"
#include "hw/draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_STREAMS = 48,
    MOST_QUEUES = 64
}; /* exec/state.h has 64 queues, some of which every plan has */

enum { NO_STREAM = -1, SEVERAL = -2 };

struct plan_maker {
    const struct trace_plan_options *options;
    struct trace_planned *out;
    struct traced_job job;
    struct plan_builder builder;
    bool shards; /* a growing group gathers or scatters */
    VEC(int)
    stream_of_group; /* of the program: the stream of all collectives of a group, SEVERAL or
                        NO_STREAM */
    struct arena *arena;
    struct diag *diag;
    /* Of the rank whose program is being made: */
    const struct traced *traced;
    const struct trace *trace;
    const struct items *items;
};

static struct source_pos trace_plan_at_file(const struct traced *traced)
{
    return (struct source_pos){.file = traced->file};
}

static void turn_to(struct plan_maker *m, struct traced *traced)
{
    m->traced = traced;
    m->trace = traced->trace;
    m->items = &traced->items;
}

/* ---- the step ---- */

/* Without a choice there must be one step only, as the first is often not whole. */
static enum status find_step(const struct plan_maker *m, struct traced *traced)
{
    const struct trace *trace = traced->trace;
    int n = trace->steps.n, *step = &traced->step;
    int64_t wanted = m->options->step, first = trace->steps.at[0].number,
            last = trace->steps.at[n - 1].number;
    if (trace->found == TRACE_WHOLE)
        return diag_input(m->diag, trace_plan_at_file(traced),
            "no step in it: there is no annotation ProfilerStep#N, and the kernels do not repeat; "
            "call the profiler's step() after each step of the loop");
    if (trace->found == TRACE_REPEATED) { /* they have no numbers: from 0 on */
        first = 0;
        last = n - 1;
    }
    if (wanted < 0 && n > 1)
        return diag_input(m->diag, trace_plan_at_file(traced),
            "%d steps in it, numbers %lld to %lld; choose one with --step N (not the first, of "
            "which a part may be missing)",
            n, (long long)first, (long long)last);
    for (*step = 0; *step < n; ++*step)
        if (wanted < 0 ||
            (trace->found == TRACE_REPEATED ? *step : trace->steps.at[*step].number) == wanted)
            return STATUS_OK;
    return diag_input(m->diag, trace_plan_at_file(traced),
        "no step %lld in it; there are %lld to %lld", (long long)wanted, (long long)first,
        (long long)last);
}

/* ---- collectives ---- */

static enum status check_collective(
    const struct plan_maker *m, const struct trace_activity *activity)
{
    const struct trace_group_of_ranks *group =
        activity->group < 0 ? NULL : &m->trace->groups.at[activity->group];
    if (activity->kind == TRACE_UNKNOWN_KIND || activity->bytes <= 0 || activity->ranks == 0)
        return ranks_refuse(&m->job, m->traced, activity,
            "its kind, size or group is not in the trace; record it with PyTorch 2.2 or later, "
            "whose profiler writes the arguments of NCCL's calls, or let collectives take the time "
            "that they took with --recorded");
    if (group && group->stride == 0)
        return ranks_refuse(&m->job, m->traced, activity,
            "the ranks of its group are not said, or not evenly apart; PyTorch 2.4 and later write "
            "them");
    if (!group && activity->ranks != m->job.ranks)
        return ranks_refuse(&m->job, m->traced, activity,
            "which ranks are in its group is not said, and it is not all of them; PyTorch 2.4 and "
            "later write it");
    return STATUS_OK;
}

static bool trace_plan_is_message(const struct trace_activity *activity)
{
    return activity->kind == COLL_SEND_RECV && activity->n_messages > 0;
}

static enum status check_collectives(struct plan_maker *m)
{
    enum status status = STATUS_OK;
    struct mesh_group ranks;
    for (int i = 0; i < m->items->list.n && status == STATUS_OK; i++) {
        const struct trace_activity *activity = m->items->list.at[i].activity;
        if (!activity || activity->class != TRACE_COLLECTIVE)
            continue;
        m->out->collectives++;
        if (m->options->recorded || trace_plan_is_message(activity))
            continue;
        status = check_collective(m, activity);
        if (status == STATUS_OK)
            status = ranks_of_group(&ranks, &m->job, m->traced, activity);
        if (status != STATUS_OK)
            continue;
        bool more = ranks_grow(&m->job, m->traced, activity);
        m->out->grown += more;
        m->shards |=
            more && (activity->kind == COLL_ALL_GATHER || activity->kind == COLL_REDUCE_SCATTER);
    }
    return status;
}

/* ---- shards ---- */

static bool trace_plan_is_named(const struct plan_maker *m, const struct trace_activity *activity)
{
    for (int i = 0; i < m->options->n_sharded; i++)
        if (strstr(m->trace->names.at[activity->name], m->options->sharded[i]))
            return true;
    return false;
}

static bool is_beside(const struct plan_maker *m, const struct item *item)
{
    return item->kind == ITEM_LAUNCH && item->stream != m->items->compute &&
           item->activity->class != TRACE_COLLECTIVE;
}

/* A collective of this kind over a growing group: gathers begin with shards, and scatters end with
 * them. All others, all_reduce too, are of whole messages. */
static bool is_of_shards(const struct plan_maker *m, const struct item *item, enum coll_kind kind)
{
    const struct trace_activity *activity = item->activity;
    return activity && activity->class == TRACE_COLLECTIVE && activity->kind == (int)kind &&
           ranks_grow(&m->job, m->traced, activity);
}

/* Where a stream of the framework has both: what lies directly before a gather, or behind a
 * reduction, as if it waited. Kernels on a stream beside compute, directly before a gather or
 * behind a scatter, work on the shard, too. */
static void find_neighbours(const struct plan_maker *m)
{
    const struct items *items = m->items;
    int *last = xcalloc((size_t)items->streams.n + 1, sizeof *last); /* + 1; 0: none */
    for (int i = 0; i < items->list.n; i++) {
        const struct item *item = &items->list.at[i];
        if (item->kind != ITEM_LAUNCH)
            continue;
        int before = last[item->stream] - 1;
        last[item->stream] = i + 1;
        if (before < 0)
            continue;
        const struct item *other = &items->list.at[before];
        m->traced->on_shard[before] |=
            is_of_shards(m, item, COLL_ALL_GATHER) && is_beside(m, other);
        m->traced->on_shard[i] |= is_of_shards(m, other, COLL_REDUCE_SCATTER) && is_beside(m, item);
    }
    free(last);
}

static void find_shards(const struct plan_maker *m)
{
    const struct items *items = m->items;
    for (int i = 0; i < items->list.n; i++) {
        const struct trace_activity *activity = items->list.at[i].activity;
        if (!activity || activity->class == TRACE_COLLECTIVE)
            continue;
        bool optimizer = activity->phase == PHASE_OPTIMIZER || activity->class == KERNEL_OPTIMIZER;
        m->traced->on_shard[i] =
            m->options->n_sharded > 0 ? trace_plan_is_named(m, activity) : m->shards && optimizer;
    }
    if (!m->shards || m->options->n_sharded > 0)
        return;
    for (int w = 0; w < items->waits.n; w++) {
        int i = items->waits.at[w].item, on = items->waits.at[w].on;
        if (on & PLAN_PREVIOUS_STEP)
            continue;
        const struct item *waiter = &items->list.at[i], *awaited = &items->list.at[on];
        m->traced->on_shard[on] |=
            is_of_shards(m, waiter, COLL_ALL_GATHER) && is_beside(m, awaited);
        m->traced->on_shard[i] |=
            is_of_shards(m, awaited, COLL_REDUCE_SCATTER) && is_beside(m, waiter);
    }
    find_neighbours(m);
}

/* ---- ops ---- */

static int trace_plan_kind_of(int class)
{
    return class == TRACE_OTHER ? KERNEL_ELEMENTWISE : class;
}

static double floor_of(int class, const struct hw_gpu *gpu)
{
    return class == KERNEL_GEMM ? gpu->gemm_floor.value : gpu->kernel_floor.value;
}

/* The kernel whose time is recorded, as far as it is known. */
static struct kernel_work kernel_of(
    const struct plan_maker *m, const struct trace_activity *activity, int64_t ns)
{
    int kind = trace_plan_kind_of(activity->class);
    const struct kernel_work *known =
        activity->product >= 0 ? &m->trace->products.at[activity->product] : NULL;
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

/* took has the dispatch time, which the stream needs before the kernel. */
static struct kernel_work work_of(const struct plan_maker *m, int i)
{
    const struct trace_activity *activity = m->items->list.at[i].activity;
    const struct hw_gpu *to = &m->options->hw->gpu,
                        *from = m->options->traced ? m->options->traced : to;
    int kind = trace_plan_kind_of(activity->class);
    ps_t took = activity->alone > 0 ? activity->alone : activity->end - activity->start;
    double took_s = s_from_ps(took + m->items->list.at[i].dispatch);
    double error, floor_s = fmin(took_s, floor_of(kind, from)), above_s = took_s - floor_s;
    if (m->traced->on_shard[i])
        above_s /= m->job.growth;
    if (from != to) {
        above_s *= trace_gpu_ratio(kind, from, to, &error);
        floor_s = fmin(floor_s, floor_of(kind, to));
    }
    return kernel_of(m, activity, llround((above_s + floor_s) * 1e9));
}

static struct kernel_work trace_plan_lasting(ps_t time)
{
    return (struct kernel_work){.kind = KERNEL_RECORDED, .m = llround(s_from_ps(time) * 1e9)};
}

static int trace_plan_make_message(struct plan_maker *m, int queue, const char *name,
    const struct trace_message *message, double host_s)
{
    struct plan_channel channel = ranks_channel(&m->job, m->traced, message);
    return message->sends ? plan_send(&m->builder, queue, name, channel, message->bytes, host_s)
                          : plan_recv(&m->builder, queue, name, channel, message->bytes, host_s);
}

/* Of one op or several on separate queues, each behind what the stream has, which goes on after
 * all. */
static void go_on_after(struct plan_maker *m, int queue, const char *name, const int *ops, int n)
{
    for (int i = 0; i < n; i++)
        plan_stream_wait(&m->builder, queue, ops[i]);
    plan_kernel(&m->builder, queue, name, trace_plan_lasting(0), 0);
}

static int queue_behind(struct plan_maker *m, int queue, const char *name)
{
    int own = plan_queue(&m->builder, name, QUEUE_COMM);
    plan_stream_wait_stream(&m->builder, own, queue);
    return own;
}

/* The message of a kernel; of several each has a queue. Several messages of one kernel go at the
 * same time, so each has a queue. */
static void make_messages(
    struct plan_maker *m, const struct item *item, int queue, const char *name)
{
    const struct trace_message *messages = &m->trace->messages.at[item->activity->message];
    double host_s = s_from_ps(item->host);
    int n = items_beside(m->items, item), *ops = xcalloc((size_t)n + 1, sizeof *ops);
    if (n == 0)
        trace_plan_make_message(m, queue, name, messages, host_s);
    for (int i = 0; i < n; i++) {
        struct plan_channel channel = ranks_channel(&m->job, m->traced, &messages[i]);
        const char *way = messages[i].sends ? "sends" : "receives";
        const char *stream = m->builder.plan->queues.at[queue].name;
        int own = queue_behind(m, queue,
            arena_printf(m->arena, "%s %s %d.%d", stream, way, channel.delta, channel.tag));
        ops[i] = trace_plan_make_message(m, own, name, &messages[i], i == 0 ? host_s : 0);
    }
    if (n > 0)
        go_on_after(m, queue, name, ops, n);
    free(ops);
}

static int group_number(struct plan_maker *m, const struct trace_activity *activity)
{
    const struct trace_group_of_ranks *group =
        activity->group < 0 ? NULL : &m->trace->groups.at[activity->group];
    struct mesh_group ranks;
    enum status status = ranks_of_group(&ranks, &m->job, m->traced, activity);
    BUG_IF(status != STATUS_OK, "the group of %s", m->trace->names.at[activity->name]);
    return plan_group_of(&m->builder, group ? group->name : "world", ranks);
}

static void trace_plan_make_collective(
    struct plan_maker *m, const struct item *item, int queue, const char *name)
{
    const struct trace_activity *activity = item->activity;
    int number = group_number(m, activity), own = queue;
    if (item->apart)
        own = queue_behind(m, queue, arena_printf(m->arena, "group %d", number));
    m->builder.serves = ranks_serve(&m->job, m->traced, activity);
    int op = plan_collective(&m->builder, own, name, (enum coll_kind)activity->kind,
        activity->bytes, number, s_from_ps(item->host));
    if (item->apart)
        go_on_after(m, queue, name, &op, 1);
}

static void make_recorded(
    struct plan_maker *m, const struct item *item, int queue, const char *name)
{
    int own = queue;
    if (item->apart)
        own = queue_behind(m, queue,
            arena_printf(m->arena, "%s, collectives", m->builder.plan->queues.at[queue].name));
    ps_t took = item->activity->end - item->activity->start + item->dispatch;
    int op = plan_kernel(&m->builder, own, name, trace_plan_lasting(took), s_from_ps(item->host));
    if (item->apart)
        go_on_after(m, queue, name, &op, 1);
}

static void make_launch(struct plan_maker *m, int i)
{
    const struct item *item = &m->items->list.at[i];
    const struct trace_activity *activity = item->activity;
    const char *name = m->trace->names.at[activity->name];
    int queue = m->items->streams.at[item->stream].queue;
    double host_s = s_from_ps(item->host);
    m->builder.phase = activity->phase < PHASE_COUNT ? activity->phase : PHASE_FORWARD;
    m->out->sharded += m->traced->on_shard[i];
    m->out->kernels += activity->class != TRACE_COLLECTIVE;
    if (item->idle > 0)
        plan_kernel(&m->builder, queue, "idle", trace_plan_lasting(item->idle), 0);
    if (activity->class != TRACE_COLLECTIVE)
        plan_kernel(&m->builder, queue, name, work_of(m, i), host_s);
    else if (m->options->recorded)
        make_recorded(m, item, queue, name);
    else if (trace_plan_is_message(activity))
        make_messages(m, item, queue, name);
    else
        trace_plan_make_collective(m, item, queue, name);
}

static plan_wait trace_plan_op_of(const struct plan_maker *m, plan_wait item)
{
    return m->items->list.at[item & ~PLAN_PREVIOUS_STEP].op | (item & PLAN_PREVIOUS_STEP);
}

static void make_wait(struct plan_maker *m, const struct item *item, plan_wait on)
{
    double host_s = s_from_ps(items_after_wait(m->items, item, on));
    if (on == PLAN_NO_OP)
        plan_host(&m->builder, "wait", host_s);
    else
        plan_host_wait(&m->builder, "synchronize", trace_plan_op_of(m, on), host_s);
}

static void make_item(struct plan_maker *m, int i, int *wait)
{
    const struct item *item = &m->items->list.at[i];
    plan_wait on = PLAN_NO_OP;
    for (; *wait < m->items->waits.n && m->items->waits.at[*wait].item == i; ++*wait) {
        on = m->items->waits.at[*wait].on;
        if (item->kind == ITEM_LAUNCH)
            plan_stream_wait(
                &m->builder, m->items->streams.at[item->stream].queue, trace_plan_op_of(m, on));
    }
    if (item->kind == ITEM_LAUNCH)
        make_launch(m, i);
    else if (item->kind == ITEM_WAIT)
        make_wait(m, item, on);
    else
        plan_host(&m->builder, "host", s_from_ps(item->host));
}

/* NCCL's own streams, what a step waits for, and all others. */
static enum status make_queues(struct plan_maker *m, struct traced *traced)
{
    bool comm = false;
    if (m->items->streams.n > MOST_STREAMS)
        return diag_input(
            m->diag, trace_plan_at_file(traced), "more than %d CUDA streams", MOST_STREAMS);
    for (int s = 0; s < m->items->streams.n; s++) {
        struct item_stream *stream = &traced->items.streams.at[s];
        const char *name = arena_printf(m->arena, "stream %d", stream->number);
        if (s == m->items->compute)
            stream->queue = STREAM_COMPUTE;
        else if (stream->nccl && !comm)
            stream->queue = STREAM_COMM;
        else
            stream->queue = plan_queue(&m->builder, name, stream->nccl ? QUEUE_COMM : QUEUE_SIDE);
        comm |= stream->nccl;
    }
    return STATUS_OK;
}

/* Collectives that are not on NCCL's own stream, and those of a group that is on several: a
 * communicator does one after the other, whatever the stream. Two passes: whether a group is on
 * several streams is known at the end of the first. */
static void find_apart(struct plan_maker *m, struct traced *traced)
{
    struct items *items = &traced->items;
    m->stream_of_group.n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < items->list.n; i++) {
            struct item *item = &items->list.at[i];
            if (!item->activity || item->activity->class != TRACE_COLLECTIVE)
                continue;
            item->apart = !items->streams.at[item->stream].nccl;
            if (m->options->recorded || trace_plan_is_message(item->activity))
                continue;
            int number = group_number(m, item->activity);
            while (m->stream_of_group.n <= number)
                vec_push(&m->stream_of_group, NO_STREAM);
            int *stream = &m->stream_of_group.at[number];
            *stream = *stream == NO_STREAM || *stream == item->stream ? item->stream : SEVERAL;
            item->apart |= *stream == SEVERAL;
        }
}

static enum status make_program(struct plan_maker *m, struct traced *traced)
{
    turn_to(m, traced);
    enum status status = make_queues(m, traced);
    if (status == STATUS_OK)
        find_apart(m, traced);
    items_number(&traced->items);
    for (int i = 0, wait = 0; i < m->items->list.n && status == STATUS_OK; i++)
        make_item(m, i, &wait);
    if (status == STATUS_OK && m->builder.plan->queues.n > MOST_QUEUES)
        status = diag_input(m->diag, trace_plan_at_file(traced),
            "more than %d CUDA streams in all traces", MOST_QUEUES);
    return status;
}

/* What plan_check() says of programs, of their files. The first of them is *at. */
static const char *with_files(const struct plan_maker *m, const char *why, const struct traced **at)
{
    static const char program[] = "program ";
    const char *out = "";
    for (const char *found; (found = strstr(why, program));) {
        char *end = NULL;
        long p = strtol(found + strlen(program), &end, 10);
        BUG_IF(p < 0 || p >= m->job.n, "%s", why);
        *at = *out ? *at : &m->job.list[p];
        out = arena_printf(m->arena, "%s%.*s%s (rank %d)", out, (int)(found - why), why,
            m->job.list[p].file, m->job.list[p].rank);
        why = end;
    }
    return arena_printf(m->arena, "%s%s", out, why);
}

static enum status check_plan(struct plan_maker *m)
{
    char why[512];
    const struct traced *at = m->job.list;
    if (plan_check(&m->out->plan, why, sizeof why))
        return STATUS_OK;
    const char *text = with_files(m, why, &at);
    return diag_input(m->diag, trace_plan_at_file(at),
        m->job.n > 1 ? "the traces do not fit together: %s" : "its step does not hold together: %s",
        text);
}

static enum status make(struct plan_maker *m)
{
    enum status status = STATUS_OK;
    ranks_begin_plan(&m->job, &m->builder, &m->out->plan);
    for (int t = 0; t < m->job.n; t++) {
        if (t > 0)
            plan_next_program(&m->builder);
        if (status == STATUS_OK)
            status = make_program(m, &m->job.list[t]);
    }
    plan_end(&m->builder);
    return status == STATUS_OK ? check_plan(m) : status;
}

static void trace_plan_describe(struct plan_maker *m)
{
    struct trace_planned *out = m->out;
    out->ranks = m->job.ranks;
    out->traced = m->job.n;
    out->stages = m->job.stages;
    out->says_waits = true;
    for (int t = 0; t < m->job.n; t++) {
        const struct trace *trace = m->job.list[t].trace;
        const struct trace_step *step = &trace->steps.at[m->job.list[t].step];
        ps_t host = items_host(&m->job.list[t].items);
        out->step_s = fmax(out->step_s,
            s_from_ps(step->end - step->start > host ? step->end - step->start : host));
        for (int i = 0; i < m->job.list[t].items.list.n; i++)
            out->idle_s += s_from_ps(m->job.list[t].items.list.at[i].idle) / m->job.n;
        out->step = trace->found == TRACE_ANNOTATED ? step->number : -1;
        out->says_waits &= trace->says_waits;
    }
}

static enum status find_traced(struct plan_maker *m, const struct traced_rank *ranks)
{
    enum status status = STATUS_OK;
    for (int t = 0; t < m->job.n && status == STATUS_OK; t++) {
        struct traced *traced = &m->job.list[t];
        const struct trace *trace = ranks[t].trace;
        *traced = (struct traced){.trace = trace,
            .file = ranks[t].file,
            .place = t,
            .rank = trace->rank >= 0 && trace->rank < INT32_MAX ? (int)trace->rank : t};
        status = find_step(m, traced);
        if (status != STATUS_OK)
            continue;
        items_make(&traced->items, trace, traced->step);
        traced->items.recorded = m->options->recorded;
        items_order(&traced->items);
        traced->on_shard = xcalloc((size_t)traced->items.list.n + 1, sizeof *traced->on_shard);
    }
    return status;
}

static void name_activities(struct plan_maker *m)
{
    int *rank_of = ARENA_ARRAY(m->arena, int, m->job.n);
    const int32_t **all = ARENA_ARRAY(m->arena, const int32_t *, m->job.n);
    for (int t = 0; t < m->job.n; t++) {
        const struct traced *traced = &m->job.list[t];
        int ops = m->out->plan.programs[t].ops.n;
        int32_t *of_op = ARENA_ARRAY(m->arena, int32_t, ops);
        for (int op = 0; op < ops; op++)
            of_op[op] = -1;
        for (int i = 0; i < traced->items.list.n; i++)
            if (traced->items.list.at[i].activity)
                of_op[traced->items.list.at[i].op] =
                    (int32_t)(traced->items.list.at[i].activity - traced->trace->activities.at);
        rank_of[t] = traced->place;
        all[t] = of_op;
    }
    m->out->rank_of_program = rank_of;
    m->out->activities = all;
}

static enum status make_all(struct plan_maker *m)
{
    enum status status = ranks_find(&m->job);
    for (int t = 0; t < m->job.n && status == STATUS_OK; t++) {
        turn_to(m, &m->job.list[t]);
        status = check_collectives(m);
    }
    if (status != STATUS_OK)
        return status;
    for (int t = 0; t < m->job.n; t++) {
        turn_to(m, &m->job.list[t]);
        find_shards(m);
    }
    trace_plan_describe(m);
    status = make(m);
    if (status == STATUS_OK)
        name_activities(m);
    return status;
}

enum status trace_plan(struct trace_planned *out, const struct traced_rank *ranks, int n,
    const struct trace_plan_options *options, struct arena *arena, struct diag *diag)
{
    struct plan_maker m = {.options = options, .out = out, .arena = arena, .diag = diag};
    m.job = (struct traced_job){.list = ARENA_ARRAY(arena, struct traced, n),
        .n = n,
        .options = options,
        .arena = arena,
        .diag = diag};
    *out = (struct trace_planned){0};
    enum status status = find_traced(&m, ranks);
    if (status == STATUS_OK)
        status = make_all(&m);
    for (int t = 0; t < n; t++) {
        items_free(&m.job.list[t].items);
        free(m.job.list[t].on_shard);
    }
    vec_free(&m.job.pipes);
    vec_free(&m.stream_of_group);
    return status;
}

/* ---- another GPU ---- */

/* Relative; where a file does not say, what draws assume (hw/draw.h). */
static double trace_plan_error_of(struct quantity number)
{
    if (number.std_error > 0)
        return number.std_error / number.value;
    return number.kind == QUANTITY_ASSUMED    ? DRAW_ASSUMED
           : number.kind == QUANTITY_MEASURED ? DRAW_MEASURED
                                              : 0;
}

static void divide(double *ratio, double *variance, struct quantity from, struct quantity to)
{
    if (!quantity_is_set(from) || !quantity_is_set(to))
        return;
    *ratio *= from.value / to.value;
    *variance += trace_plan_error_of(from) * trace_plan_error_of(from) +
                 trace_plan_error_of(to) * trace_plan_error_of(to);
}

/* Matrix products by peak, efficiency and sustained clock; attention by its efficiency, too; all
 * else by memory bandwidth. */
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
