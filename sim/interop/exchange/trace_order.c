/* What items wait for: as events say, or by rule and time (trace_plan.h). With cuda_sync events
 * each wait names a stream and when its event was recorded: the awaited item is the last on that
 * stream which the host had issued by then. Without them rules apply in the order of launches: a
 * collective on NCCL's stream waits for what compute had been given; a kernel behind a wait of its
 * stream waits for collectives that had ended when it began; a kernel that begins right when
 * something on another stream ends, with nothing else to hold it up, waited for that.
 *
 * What is subtle: what was recorded before the step is found as long after its begin in the step
 * itself (a step before looks alike) and becomes a wait for the previous step. A rule lets an item
 * wait only for what had ended when it began (up to `tail`, 5 us), or the simulated step would be
 * longer than the real one. */
#include "exchange/trace_items.h"

#include <stdlib.h>

static const ps_t near_by =
    15 * (PS_PER_S / 1000000); /* between the end of a kernel and what waited for it */
static const ps_t tail =
    5 * (PS_PER_S / 1000000); /* before its end a kernel's last blocks leave SMs to the next one */
static const ps_t cut =
    2 * (PS_PER_S / 1000000000); /* by which times of two steps are apart, cut to ns */

static bool is_collective(const struct item *item)
{
    return item->kind == ITEM_LAUNCH && item->activity->class == TRACE_COLLECTIVE;
}

/* ---- events ---- */

/* The last item on a stream that the host had issued by then; -1: none. first: items from there on
 * are not meant. */
static int last_issued(const struct items *items, int32_t stream, ps_t by, int first)
{
    for (int i = first - 1; i >= 0; i--) {
        const struct item *item = &items->list.at[i];
        if (item->kind == ITEM_LAUNCH && item->activity->stream == stream && item->returned <= by)
            return i;
    }
    return PLAN_NO_OP;
}

/* Of all streams: the one that ends last. */
static int last_to_end(const struct items *items, ps_t by, ps_t ended, int first)
{
    int found = PLAN_NO_OP;
    for (int i = first - 1; i >= 0; i--) {
        const struct item *item = &items->list.at[i];
        if (item->kind == ITEM_LAUNCH && item->returned <= by && item->end <= ended &&
            (found == PLAN_NO_OP || item->end > items->list.at[found].end))
            found = i;
    }
    return found;
}

/* What was recorded before the step is what was recorded as long after its begin, in the step
 * before. */
static plan_wait resolve(const struct items *items, const struct trace_wait *wait, int item)
{
    int n = items->list.n;
    ps_t recorded = wait->recorded;
    if (wait->on == TRACE_ALL_STREAMS)
        return last_to_end(items, wait->start, PS_NEVER, item);
    if (wait->on == TRACE_ANY_STREAM)
        return wait->stream == TRACE_HOST ? last_to_end(items, wait->start, wait->end, item)
                                          : PLAN_NO_OP;
    if (recorded == PS_NEVER)
        recorded = items->host_start - 1; /* whatever the step before had given */
    bool before = recorded <= items->host_start;
    ps_t by = before ? recorded + items->cycle + cut : recorded;
    int found = last_issued(items, wait->on, by, before ? n : item);
    return found == PLAN_NO_OP ? PLAN_NO_OP : before ? PLAN_PREVIOUS_STEP + found : found;
}

/* ---- rules ---- */

struct order_rules {
    struct items *items;
    int *last;  /* of each stream: its last item so far */
    int *taken; /* of each stream that has collectives: the first that compute has not waited for */
    bool gone_on; /* a collective has waited for a kernel of this step */
    VEC(struct item_wait) found;
};

static void trace_order_add(struct order_rules *rules, int item, int on)
{
    if (on != PLAN_NO_OP)
        vec_push(&rules->found, (struct item_wait){item, NULL, on});
}

/* NCCL's stream waits, and one of the framework that waits by request, for the stream that the call
 * is made on; of the step before for all of it, where that had ended. */
static void behind_compute(struct order_rules *rules, int i)
{
    const struct items *items = rules->items;
    int on = rules->last[items->compute];
    if (on != PLAN_NO_OP && items->list.at[on].end <= items->list.at[i].start) {
        trace_order_add(rules, i, on);
        rules->gone_on = true;
    } else if (on == PLAN_NO_OP || !rules->gone_on) {
        on = last_issued(items, items->streams.at[items->compute].number, PS_NEVER, items->list.n);
        if (on != PLAN_NO_OP && items->list.at[on].end - items->cycle <= items->list.at[i].start)
            trace_order_add(rules, i, PLAN_PREVIOUS_STEP + on);
    }
}

/* A cudaStreamWaitEvent of the framework: work.wait(). */
static void behind_collectives(struct order_rules *rules, int i)
{
    const struct items *items = rules->items;
    for (int s = 0; s < items->streams.n; s++) {
        int on = rules->last[s];
        bool comm = items->streams.at[s].collectives && s != items->list.at[i].stream;
        while (comm && on != PLAN_NO_OP &&
               items->list.at[on].end > items->list.at[i].start) /* it cannot have been */
            on = last_issued(items, items->streams.at[s].number, PS_NEVER, on);
        if (comm && on > rules->taken[s]) {
            trace_order_add(rules, i, on);
            rules->taken[s] = on;
        }
    }
}

/* Nothing that is seen held it up: what the GPU stood idle for stays, as of kernels in a CUDA graph
 * that are not in the trace. */
static void stand_idle(struct order_rules *rules, int i, ps_t ready)
{
    struct item *item = &rules->items->list.at[i];
    if (item->stream != rules->items->compute || rules->last[item->stream] == PLAN_NO_OP)
        return;
    for (int s = 0; s < rules->items->streams.n; s++) {
        ps_t end = rules->last[s] == PLAN_NO_OP ? ready : rules->items->list.at[rules->last[s]].end;
        ready = end > ready ? end : ready;
    }
    if (item->start - ready > near_by)
        item->idle = item->start - ready;
}

/* It begins when something on another stream has ended, and nothing else held it up. */
static void behind_what_ended(struct order_rules *rules, int i)
{
    const struct items *items = rules->items;
    const struct item *item = &items->list.at[i];
    int before = rules->last[item->stream], found = PLAN_NO_OP;
    ps_t ready = before == PLAN_NO_OP ? item->returned : items->list.at[before].end;
    ready = item->returned > ready ? item->returned : ready;
    if (item->start - ready <= near_by)
        return;
    for (int s = 0; s < items->streams.n; s++) {
        int on = rules->last[s];
        while (on != PLAN_NO_OP && items->list.at[on].end > item->start + tail)
            on = last_issued(items, items->streams.at[s].number, PS_NEVER, on);
        bool near = on != PLAN_NO_OP && s != item->stream &&
                    item->start - items->list.at[on].end <= near_by;
        if (near && (found == PLAN_NO_OP || items->list.at[on].end > items->list.at[found].end))
            found = on;
    }
    trace_order_add(rules, i, found);
    if (found == PLAN_NO_OP)
        stand_idle(rules, i, ready);
}

/* Items are walked in the order of the host; last[] is what each stream had been given by then. */
static void trace_order_apply(struct order_rules *rules)
{
    struct items *items = rules->items;
    for (int i = 0, w = 0; i < items->list.n; i++) {
        const struct item *item = &items->list.at[i];
        bool waits = false;
        for (; w < items->waits.n && items->waits.at[w].item <= i; w++)
            waits |= items->waits.at[w].said != NULL;
        if (item->kind != ITEM_LAUNCH)
            continue;
        const struct item_stream *stream = &items->streams.at[item->stream];
        if (is_collective(item) && (stream->nccl || (waits && item->stream != items->compute)))
            behind_compute(rules, i);
        else if (waits)
            behind_collectives(rules, i);
        behind_what_ended(rules, i);
        rules->last[item->stream] = i;
    }
}

static int by_item(const void *a, const void *b)
{
    const struct item_wait *x = a, *y = b;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return (x->on > y->on) - (x->on < y->on);
}

/* The GPU takes a moment from one kernel to the next. */
static void find_dispatch(const struct order_rules *rules)
{
    struct items *items = rules->items;
    for (int s = 0; s < items->streams.n; s++)
        rules->last[s] = PLAN_NO_OP;
    for (int i = 0, w = 0; i < items->list.n; i++) {
        struct item *item = &items->list.at[i];
        ps_t ready = item->returned;
        for (; w < items->waits.n && items->waits.at[w].item == i; w++)
            if (!(items->waits.at[w].on & PLAN_PREVIOUS_STEP) &&
                items->list.at[items->waits.at[w].on].end > ready)
                ready = items->list.at[items->waits.at[w].on].end;
        if (item->kind != ITEM_LAUNCH)
            continue;
        int before = rules->last[item->stream];
        if (before != PLAN_NO_OP && items->list.at[before].end > ready)
            ready = items->list.at[before].end;
        if (before != PLAN_NO_OP && item->start > ready && item->start - ready <= near_by)
            item->dispatch = item->start - ready;
        rules->last[item->stream] = i;
    }
}

/* Waits by rule and waits that are said are merged and sorted by item. */
void items_order(struct items *items)
{
    size_t n = (size_t)items->streams.n + 1;
    struct order_rules rules = {
        .items = items, .last = xcalloc(n, sizeof(int)), .taken = xcalloc(n, sizeof(int))};
    for (size_t s = 0; s < n; s++)
        rules.last[s] = rules.taken[s] = PLAN_NO_OP;
    if (!items->trace->says_waits && items->host_start != PS_NEVER)
        trace_order_apply(&rules);
    for (int i = 0; i < items->waits.n; i++) {
        struct item_wait *wait = &items->waits.at[i];
        if (wait->said)
            wait->on = resolve(items, wait->said, wait->item);
        if (wait->on != PLAN_NO_OP)
            vec_push(&rules.found, *wait);
    }
    for (int i = 0; i < items->list.n; i++) {
        const struct item *item = &items->list.at[i];
        if (item->kind == ITEM_WAIT)
            trace_order_add(&rules, i, item->wait ? resolve(items, item->wait, i) : i - 1);
    }
    if (rules.found.n > 1)
        qsort(rules.found.at, (size_t)rules.found.n, sizeof *rules.found.at, by_item);
    items->waits.n = 0;
    for (int i = 0; i < rules.found.n; i++)
        vec_push(&items->waits, rules.found.at[i]);
    find_dispatch(&rules);
    vec_free(&rules.found);
    free(rules.last);
    free(rules.taken);
}

void items_number(struct items *items)
{
    for (int i = 0, op = 0; i < items->list.n; i++) {
        struct item *item = &items->list.at[i];
        item->op = op += (item->idle > 0) + items_beside(items, item);
        op++;
    }
}

/* What the host still takes after what it waited for has ended. */
ps_t items_after_wait(const struct items *items, const struct item *item, plan_wait on)
{
    ps_t from = item->start;
    if (on != PLAN_NO_OP) {
        ps_t end = items->list.at[on & ~PLAN_PREVIOUS_STEP].end -
                   (on & PLAN_PREVIOUS_STEP ? items->cycle : 0);
        from = end > from ? end : from;
    }
    return item->end > from ? item->end - from : 0;
}

ps_t items_host(const struct items *items)
{
    ps_t host = 0;
    for (int i = 0, w = 0; i < items->list.n && items->host_start != PS_NEVER; i++) {
        const struct item *item = &items->list.at[i];
        plan_wait on = PLAN_NO_OP;
        for (; w < items->waits.n && items->waits.at[w].item == i; w++)
            on = items->waits.at[w].on;
        host += item->kind == ITEM_WAIT ? items_after_wait(items, item, on) : item->host;
    }
    return host;
}
