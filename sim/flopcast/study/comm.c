/* Collectives of a traced step: how long they move, what binds them, and what of it is exposed;
 * and sentences about that.
 *
 * Spans are grouped by kind, bytes and group size. Exposed time is where the compute stream
 * stands idle: the gap between two of its kernels is given to the collectives under way in it,
 * in the order of their ends, each instant to one of them. What is subtle: an idle gap counts
 * only if something on another stream ended exactly when it ended, or if the host waited for a
 * message in it; else the host or the queue is the reason. Waiting for late members is part of a
 * collective's exposed time but not of its moving time; where the members are stages of a
 * pipeline it is bubble, and is left out.
 *
 * Spans of one rank are in the order of their ends, and so is what its host did: each gap of the
 * compute stream is looked up by bisection, as a step of a pipeline has several 100,000 spans and
 * 10,000 gaps. */
#include "study/comm.h"

#include "base/vec.h"
#include "hw/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef VEC(struct scenario_comm_item) item_list;

static struct scenario_comm_item *comm_find(item_list *items, const struct exec_span *span)
{
    for (int i = 0; i < items->n; i++) {
        struct scenario_comm_item *item = &items->at[i];
        if ((int)item->kind == span->collective && item->bytes == span->bytes &&
            item->group_size == span->group_size)
            return item;
    }
    vec_push(items, (struct scenario_comm_item){.kind = (enum coll_kind)span->collective,
                        .bytes = span->bytes,
                        .group_size = span->group_size,
                        .algorithm = (enum coll_algorithm)span->algorithm,
                        .protocol = (enum coll_protocol)span->protocol});
    return &items->at[items->n - 1];
}

static ps_t comm_later(ps_t a, ps_t b)
{
    return a > b ? a : b;
}

static ps_t comm_earlier(ps_t a, ps_t b)
{
    return a < b ? a : b;
}

/* The first span that ends at a time or later. */
static int find_span_ending_from(const struct exec_result *result, ps_t at)
{
    int low = 0, high = result->n_spans;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (result->spans[middle].end >= at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Likewise of what the host did. The step, which is around the rest, comes before it. */
static int find_host_span_ending_from(const struct exec_result *result, ps_t at)
{
    int low = result->n_host_spans > 0 && result->host_spans[0].kind == HOST_STEP ? 1 : 0;
    int high = result->n_host_spans;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (result->host_spans[middle].end >= at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const struct exec_span *scenario_comm_awaited(const struct exec_result *result, ps_t at)
{
    for (int i = find_span_ending_from(result, at);
         i < result->n_spans && result->spans[i].end == at; i++)
        if (result->spans[i].stream != STREAM_COMPUTE)
            return &result->spans[i];
    return NULL;
}

/* The host may wait for a message and only then issue the kernel, so that nothing on the GPU
 * ends when the gap does. */
const struct exec_span *scenario_comm_blocked(const struct exec_result *result, ps_t from, ps_t to)
{
    const struct exec_span *found = NULL;
    int first_host = find_host_span_ending_from(result, from + 1),
        first = find_span_ending_from(result, from + 1);
    for (int h = first_host; h < result->n_host_spans && result->host_spans[h].end <= to; h++) {
        const struct exec_host_span *host = &result->host_spans[h];
        if (host->kind != HOST_WAITS || host->op < 0)
            continue;
        for (int i = first; i < result->n_spans && result->spans[i].end <= to; i++) {
            const struct exec_span *span = &result->spans[i];
            bool message =
                span->is_collective && span->collective == COLL_SEND_RECV && span->op == host->op;
            if (message && (!found || span->end > found->end))
                found = span;
        }
    }
    return found;
}

/* Of each span the earliest start of a collective among it and those that end after it: where that
 * is not before the end of a gap, no later span was under way in it. */
static ps_t *find_earliest_starts(const struct exec_result *result)
{
    ps_t *earliest = xcalloc((size_t)result->n_spans + 1, sizeof *earliest);
    earliest[result->n_spans] = PS_NEVER;
    for (int i = result->n_spans - 1; i >= 0; i--) {
        const struct exec_span *span = &result->spans[i];
        earliest[i] =
            span->is_collective ? comm_earlier(span->start, earliest[i + 1]) : earliest[i + 1];
    }
    return earliest;
}

/* The compute stream was idle from a time to another: which collectives were under way. */
static void comm_add_gap(struct scenario_comm *comm, item_list *items,
    const struct exec_result *result, const ps_t *earliest, ps_t from, ps_t to)
{
    if (!scenario_comm_awaited(result, to)) {
        const struct exec_span *message = scenario_comm_blocked(result, from, to);
        to = message ? message->end : from;
    }
    for (int i = find_span_ending_from(result, from + 1); from < to && earliest[i] < to; i++) {
        const struct exec_span *span = &result->spans[i];
        if (!span->is_collective || span->end <= from || span->start >= to)
            continue;
        ps_t start = comm_later(span->start, from), moving = comm_later(span->moving, start),
             end = comm_earlier(span->end, to);
        double moved_s = moving < end ? s_from_ps(end - moving) : 0;
        double all_s = span->meets_stages ? moved_s : s_from_ps(end - start);
        comm_find(items, span)->exposed_s += all_s;
        comm->exposed_s += all_s;
        comm->exposed_wait_s += all_s - moved_s;
        comm->exposed_bound_s[span->bound] += moved_s;
        from = end;
    }
}

static int comm_longest_first(const void *a, const void *b)
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
    *out = (struct scenario_comm){
        .step_s = s_from_ps(result->last_step_end - result->last_step_start)};
    item_list found = {0};
    ps_t *earliest = find_earliest_starts(result);
    ps_t idle_since = result->last_step_start;
    for (int i = 0; i < result->n_spans; i++) {
        const struct exec_span *span = &result->spans[i];
        if (span->is_collective) {
            struct scenario_comm_item *item = comm_find(&found, span);
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
                comm_add_gap(out, &found, result, earliest, idle_since, span->start);
            idle_since = comm_later(idle_since, span->end);
        }
    }
    out->n_items = found.n;
    if (found.n)
        qsort(found.at, (size_t)found.n, sizeof *found.at, comm_longest_first);
    vec_keep(out->items, &found, arena);
    free(earliest);
}

enum coll_bound scenario_comm_most(const double bound_s[COLL_BOUND_COUNT])
{
    int most = COLL_BOUND_NONE;
    for (int b = 0; b < COLL_BOUND_COUNT; b++)
        if (bound_s[b] > bound_s[most])
            most = b;
    return bound_s[most] > 0 ? (enum coll_bound)most : COLL_BOUND_NONE;
}

/* ---- what binds the collectives of a step, in words ---- */

const char *scenario_comm_name(struct arena *arena, const struct scenario_comm_item *item)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double bytes = item->bytes;
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1024;
    return arena_printf(arena, "%s of %.4g %s on %d", coll_kind_names[item->kind], bytes,
        units[unit], item->group_size);
}

static const char *comm_rate(struct arena *arena, struct quantity q)
{
    char text[64];
    return arena_printf(arena, "%s, %s",
        quantity_format(text, sizeof text, q.value, DIM_BYTES_PER_S), hw_kind_name(q.kind));
}

/* What binds an algorithm with the numbers of this hardware that say so, and what kind they are:
 * "channels (16 x 20 GB/s, assumed)". */
static const char *comm_bound_words(
    struct arena *arena, enum coll_bound bound, enum coll_algorithm algorithm, const struct hw *hw)
{
    const char *name = coll_bound_names[bound];
    switch (bound) {
    case COLL_BOUND_CHANNELS:
        if (algorithm == COLL_TREE || algorithm == COLL_NVLS_TREE)
            return arena_printf(arena, "%s (of trees, as NCCL's tuner bounds them)", name);
        return coll_by_channels(algorithm) && quantity_is_set(hw->cluster.nccl_channel_bandwidth)
                   ? arena_printf(arena, "%s (%g x %s)", name, coll_channels(true, hw),
                         comm_rate(arena, hw->cluster.nccl_channel_bandwidth))
                   : name;
    case COLL_BOUND_NVLINK:
        return arena_printf(arena, "%s (%s)", name, comm_rate(arena, hw->node.gpu_bandwidth));
    case COLL_BOUND_PCIE:
        return arena_printf(arena, "%s (%s)", name, comm_rate(arena, hw->node.pcie_bandwidth));
    case COLL_BOUND_NIC:
        return arena_printf(arena, "%s (%g x %s)", name, hw->node.nics.value,
            comm_rate(arena, hw->node.nic_bandwidth));
    case COLL_BOUND_HOST_MEMORY:
        return arena_printf(
            arena, "%s (%s)", name, comm_rate(arena, hw->cluster.nccl_staging_bandwidth));
    case COLL_BOUND_NONE:
    case COLL_BOUND_LATENCY:
    case COLL_BOUND_PROTOCOL:
    case COLL_BOUND_NETWORK:
    case COLL_BOUND_SHARED_LINKS:
    case COLL_BOUND_COUNT:
        break;
    }
    return name;
}

/* Of what a bound binds, the algorithm that takes longest. */
static enum coll_algorithm longest_bound(const struct scenario_comm *comm, enum coll_bound bound)
{
    const struct scenario_comm_item *longest = &comm->items[0];
    for (int i = 1; i < comm->n_items; i++)
        if (comm->items[i].bound_s[bound] > longest->bound_s[bound])
            longest = &comm->items[i];
    return longest->algorithm;
}

/* "channels (16 x 20 GB/s, assumed) 62 %, latency 38 %": the largest first, what is below half a
 * per cent left out. Of all time, or of what is exposed, which may be waiting for other ranks too;
 * there without the numbers. Picks the largest of what is left, one after the other, until what is
 * left is below half a per cent. */
static const char *comm_shares(
    struct arena *arena, const struct scenario_comm *comm, bool exposed, const struct hw *hw)
{
    enum { WAIT = COLL_BOUND_COUNT };
    double left[COLL_BOUND_COUNT + 1] = {[WAIT] = exposed ? comm->exposed_wait_s : 0},
                                   all_s = left[WAIT];
    for (int b = 0; b < COLL_BOUND_COUNT; b++)
        all_s += left[b] = exposed ? comm->exposed_bound_s[b] : comm->bound_s[b];
    const char *text = "";
    for (;;) {
        int most = 0;
        for (int b = 0; b <= WAIT; b++)
            most = left[b] > left[most] ? b : most;
        if (!(left[most] > 0.005 * all_s))
            return text;
        enum coll_bound bound = (enum coll_bound)most;
        const char *name = most == WAIT ? "waiting for other ranks"
                           : exposed
                               ? coll_bound_names[bound]
                               : comm_bound_words(arena, bound, longest_bound(comm, bound), hw);
        text = arena_printf(
            arena, "%s%s%s %.0f %%", text, *text ? ", " : "", name, PERCENT * left[most] / all_s);
        left[most] = 0;
    }
}

/* Per cent of the time that collectives move. */
static double hidden(const struct scenario_comm *comm)
{
    double moving_exposed_s = comm->exposed_s - comm->exposed_wait_s;
    return comm->moving_s > 0 ? PERCENT * fmax(0, 1 - moving_exposed_s / comm->moving_s) : 0;
}

const char *scenario_comm_sentence(
    struct arena *arena, const char *label, const struct scenario_comm *comm, const struct hw *hw)
{
    if (comm->n_items == 0)
        return arena_printf(arena, "%s: no collectives.", label);
    const char *text = arena_printf(arena,
        "%s: collectives take %.1f ms of rank 0's last step of %.1f ms, and %.1f %% of that is "
        "hidden behind compute. They are bound by %s; hops and steps are %.0f %% of their time.",
        label, MS_PER_S * comm->moving_s, MS_PER_S * comm->step_s, hidden(comm),
        comm_shares(arena, comm, false, hw), PERCENT * comm->latency_s / comm->moving_s);
    return comm->exposed_s > 0
               ? arena_printf(arena, "%s Of the %.1f ms that are exposed in that step: %s.", text,
                     MS_PER_S * comm->exposed_s, comm_shares(arena, comm, true, hw))
               : text;
}

void scenario_channels_print(FILE *out, const struct hw *hw)
{
    char words[256], carried[64], there[64];
    fprintf(out, "collectives across nodes\n  NCCL lays %s\n",
        coll_channels_words(words, sizeof words, hw));
    double channels = coll_channels(true, hw);
    double channels_Bps = channels * hw->cluster.nccl_channel_bandwidth.value;
    double nics_Bps = hw->node.nics.value * hw->node.nic_bandwidth.value;
    quantity_format(there, sizeof there, nics_Bps, DIM_BYTES_PER_S);
    if (channels_Bps > 0 && channels_Bps < nics_Bps)
        fprintf(out,
            "  NCCL's channels carry %s of the %s of a node's NICs (channels x "
            "nccl_channel_bandwidth)\n",
            quantity_format(carried, sizeof carried, channels_Bps, DIM_BYTES_PER_S), there);
    if (coll_link_bound(hw, true) == COLL_BOUND_PCIE)
        fprintf(out, "  PCIe carries %s of the %s of a node's NICs (pcie_bandwidth)\n",
            quantity_format(carried, sizeof carried, coll_node_Bps(hw), DIM_BYTES_PER_S), there);
}

const char *scenario_channels_sentence(
    struct arena *arena, const struct scenario_comm *comm, const struct hw *hw)
{
    char words[256];
    if (comm->n_items == 0 || scenario_comm_most(comm->bound_s) != COLL_BOUND_CHANNELS)
        return NULL;
    enum coll_algorithm algorithm = longest_bound(comm, COLL_BOUND_CHANNELS);
    if (algorithm == COLL_TREE ||
        !coll_by_channels(algorithm)) /* a tree's channels have another bound */
        return NULL;
    const char *laid = coll_channels_words(words, sizeof words, hw);
    struct quantity each = hw->cluster.nccl_channel_bandwidth;
    if (!quantity_is_set(each))
        return arena_printf(arena, "Across nodes NCCL lays %s.", laid);
    return arena_printf(arena,
        "Across nodes NCCL lays %s. Each carries at most %s: what is said of faster NICs rests on "
        "this one number.",
        laid, comm_rate(arena, each));
}

/* "channels before and after", "NIC before, channels after" */
static const char *before_and_after(struct arena *arena, const char *before, const char *after)
{
    return strcmp(before, after) == 0 ? arena_printf(arena, "%s before and after", before)
                                      : arena_printf(arena, "%s before, %s after", before, after);
}

static const char *most_of(const double bound_s[COLL_BOUND_COUNT], double wait_s)
{
    enum coll_bound most = scenario_comm_most(bound_s);
    return wait_s > bound_s[most] ? "waiting for other ranks" : coll_bound_names[most];
}

static const double MATTERS = 1, SHOWN = 0.05; /* per cent */

const char *scenario_change_sentence(struct arena *arena, const struct scenario_change *change)
{
    double longer = PERCENT * (change->time - 1),
           more = PERCENT * (change->tokens / change->time - 1);
    if (change->tokens == 1 && fabs(longer) < SHOWN)
        return "leaves the step as it is";
    if (change->tokens == 1)
        return arena_printf(arena, "%s the step (%+.1f %%)",
            fabs(longer) < MATTERS ? "hardly changes"
            : longer < 0           ? "shortens"
                                   : "lengthens",
            longer);
    const char *step = arena_printf(arena, "(a step has %.3g times the %s and takes %.1f %% %s)",
        change->tokens, change->counted, fabs(longer), longer < 0 ? "less" : "longer");
    if (fabs(more) < MATTERS)
        return arena_printf(arena, "hardly changes %s/s, %+.1f %% %s", change->counted, more, step);
    return arena_printf(arena, "trains %.1f %% %s %s/s %s", fabs(more), more > 0 ? "more" : "fewer",
        change->counted, step);
}

/* Whether more time of collectives matters depends on what was hidden before, so both are said. */
const char *scenario_comm_change(struct arena *arena, const char *label,
    const struct scenario_comm *before, const struct scenario_comm *after,
    const struct scenario_change *change)
{
    const char *text = arena_printf(arena, "%s %s", label, scenario_change_sentence(arena, change));
    if (before->n_items == 0 || after->n_items == 0)
        return arena_printf(arena, "%s.", text);
    double more = PERCENT * (after->moving_s / before->moving_s - 1);
    const char *time = fabs(more) < SHOWN ? "as long"
                                          : arena_printf(arena, "%.1f %% %s time", fabs(more),
                                                more > 0 ? "more" : "less");
    text = arena_printf(arena,
        "%s: its collectives take %s, and %.1f %% of their time was hidden behind compute already. "
        "What binds most of that time is %s",
        text, time, hidden(before),
        before_and_after(arena, most_of(before->bound_s, 0), most_of(after->bound_s, 0)));
    if (!(before->exposed_s > 0 && after->exposed_s > 0))
        return arena_printf(arena, "%s.", text);
    return arena_printf(arena,
        "%s. Of what is exposed in rank 0's last step (%.1f ms before, %.1f ms after) it is %s.",
        text, MS_PER_S * before->exposed_s, MS_PER_S * after->exposed_s,
        before_and_after(arena, most_of(before->exposed_bound_s, before->exposed_wait_s),
            most_of(after->exposed_bound_s, after->exposed_wait_s)));
}
