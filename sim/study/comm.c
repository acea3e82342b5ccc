#include "study/comm.h"

#include "base/vec.h"

#include <stdlib.h>

typedef VEC(struct scenario_comm_item) item_list;

static struct scenario_comm_item *find(item_list *items, const struct exec_span *span)
{
    for (int i = 0; i < items->n; i++) {
        struct scenario_comm_item *item = &items->at[i];
        if ((int)item->kind == span->collective && item->bytes == span->bytes && item->group_size == span->group_size)
            return item;
    }
    vec_push(items, (struct scenario_comm_item){.kind = (enum coll_kind)span->collective,
                        .bytes = span->bytes,
                        .group_size = span->group_size,
                        .algorithm = (enum coll_algorithm)span->algorithm,
                        .protocol = (enum coll_protocol)span->protocol});
    return &items->at[items->n - 1];
}

static ps_t later(ps_t a, ps_t b)
{
    return a > b ? a : b;
}

static ps_t earlier(ps_t a, ps_t b)
{
    return a < b ? a : b;
}

/* Whether something on another stream ended just then, which the compute stream may have waited for; else the host. */
static bool awaited(const struct exec_result *result, ps_t at)
{
    for (int i = 0; i < result->n_spans; i++)
        if (result->spans[i].end == at && result->spans[i].stream != STREAM_COMPUTE)
            return true;
    return false;
}

const struct exec_span *scenario_comm_blocked(const struct exec_result *result, ps_t from, ps_t to)
{
    const struct exec_span *found = NULL;
    for (int h = 0; h < result->n_host_spans; h++) {
        const struct exec_host_span *host = &result->host_spans[h];
        if (host->kind != HOST_WAITS || host->op < 0 || host->end <= from || host->end > to)
            continue;
        for (int i = 0; i < result->n_spans; i++) {
            const struct exec_span *span = &result->spans[i];
            bool message = span->is_collective && span->collective == COLL_SEND_RECV && span->op == host->op;
            if (message && span->end > from && span->end <= to && (!found || span->end > found->end))
                found = span;
        }
    }
    return found;
}

/* The compute stream was idle from a time to another: which collectives were under way. */
static void add_gap(struct scenario_comm *comm, item_list *items, const struct exec_result *result, ps_t from, ps_t to)
{
    if (!awaited(result, to)) {
        const struct exec_span *message = scenario_comm_blocked(result, from, to);
        to = message ? message->end : from;
    }
    for (int i = 0; i < result->n_spans && from < to; i++) { /* in the order of their ends */
        const struct exec_span *span = &result->spans[i];
        if (!span->is_collective || span->end <= from || span->start >= to)
            continue;
        ps_t start = later(span->start, from), moving = later(span->moving, start), end = earlier(span->end, to);
        double moved_s = moving < end ? s_from_ps(end - moving) : 0;
        double all_s = span->meets_stages ? moved_s : s_from_ps(end - start);
        find(items, span)->exposed_s += all_s;
        comm->exposed_s += all_s;
        comm->exposed_wait_s += all_s - moved_s;
        comm->exposed_bound_s[span->bound] += moved_s;
        from = end;
    }
}

static int longest_first(const void *a, const void *b)
{
    const struct scenario_comm_item *x = a, *y = b;
    if (x->moving_s != y->moving_s)
        return x->moving_s < y->moving_s ? 1 : -1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : x->group_size - y->group_size;
}

void scenario_comm(struct scenario_comm *out, const struct exec_result *result, struct arena *arena)
{
    *out = (struct scenario_comm){.step_s = s_from_ps(result->last_step_end - result->last_step_start)};
    item_list found = {0};
    ps_t idle_since = result->last_step_start;
    for (int i = 0; i < result->n_spans; i++) {
        const struct exec_span *span = &result->spans[i];
        if (span->is_collective) {
            struct scenario_comm_item *item = find(&found, span);
            double moving_s = s_from_ps(span->end - span->moving);
            item->times++;
            item->moving_s += moving_s;
            item->bus_bytes += span->bus_bytes;
            item->bound_s[span->bound] += moving_s;
            out->moving_s += moving_s;
            out->latency_s += span->latency_s;
            out->bound_s[span->bound] += moving_s;
        } else if (span->stream == STREAM_COMPUTE) {
            if (span->start > idle_since)
                add_gap(out, &found, result, idle_since, span->start);
            idle_since = later(idle_since, span->end);
        }
    }
    out->n_items = found.n;
    out->items = ARENA_ARRAY(arena, struct scenario_comm_item, found.n);
    for (int i = 0; i < found.n; i++)
        out->items[i] = found.at[i];
    if (found.n)
        qsort(out->items, (size_t)found.n, sizeof *out->items, longest_first);
    vec_free(&found);
}

enum coll_bound scenario_comm_most(const double bound_s[COLL_BOUND_COUNT])
{
    int most = COLL_BOUND_NONE;
    for (int b = 0; b < COLL_BOUND_COUNT; b++)
        if (bound_s[b] > bound_s[most])
            most = b;
    return bound_s[most] > 0 ? (enum coll_bound)most : COLL_BOUND_NONE;
}
