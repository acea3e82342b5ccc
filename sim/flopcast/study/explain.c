/* Why a job loses throughput as it grows (scenario_explain), and what the compute stream of a
 * traced rank did (scenario_path).
 *
 * Causes are removed one after the other, cumulatively, from the job on a small and on a large
 * cluster, each round one simulation of both, all rounds at a time. A cause's part is by how
 * much the difference between the two shrinks when it goes; what remains of it at the end is the
 * rest. So the parts add up to the change by construction, and their order matters
 * (scenario/causes.h). The bubble needs no simulation: it is taken off the step's time.
 *
 * What is subtle: with a cause gone NCCL would choose other algorithms and other channels, which
 * would change two things at once. So collectives are chosen on the real hardware (chosen_on),
 * and its channels are kept. */
#include "study/explain.h"

#include "coll/coll.h"
#include "study/comm.h"

#include <stdlib.h>
#include <string.h>

/* With this many times the NICs' bandwidth, the network is no limit beside NVLink. */
static const double NO_LIMIT = 1e6;

static void without_limit(struct hw_node *node)
{
    node->nic_bandwidth.value *= NO_LIMIT;
    node->pcie_bandwidth.value *= NO_LIMIT; /* of NICs: hw_derive has done what copies need */
}

/* Switches of the simulator where there are some; else the numbers of the hardware are set to no
 * limit. */
void scenario_remove_cause(struct scenario_point *point, enum scenario_cause cause)
{
    struct exec_options *exec = &point->options.exec;
    switch (cause) {
    case CAUSE_ALLOCATOR:
        exec->no_memory = true;
        return;
    case CAUSE_STRAGGLERS:
        exec_be_quiet(exec);
        exec->gpu_events.n = 0;
        return;
    case CAUSE_LATENCY:
        exec->no_latency = true;
        return;
    case CAUSE_BANDWIDTH:
        /* The channels of the real NICs: NCCL would lay others for such as these. */
        point->hw.cluster.nccl_channels =
            (struct quantity){.value = coll_channels(true, &point->hw), .kind = QUANTITY_ASSUMED};
        without_limit(&point->hw.node);
        point->hw.cluster.oversubscription.value = 1;
        point->hw.cluster.network = (struct hw_network){0}; /* pooled: no switch is a limit */
        point->hw.cluster.nccl_channel_bandwidth = (struct quantity){0};
        point->hw.cluster.nccl_staging_bandwidth = (struct quantity){0};
        exec->link_events.n = 0;
        return;
    case CAUSE_CONTENTION:
        exec->no_contention = true;
        return;
    case CAUSE_HOST:
        point->options.strategy.host = (struct host_options){0};
        point->hw.gpu.step_pause = (struct quantity){0};
        point->options.strategy.train.decode_images = false;
        return;
    case CAUSE_BUBBLE: /* no run is without it */
    case CAUSE_COUNT:
        break;
    }
    BUG_IF(true, "cause %d", (int)cause);
}

/* TFLOPS per GPU if stages did not wait for one another. */
static double without_bubble(const struct scenario_result *result)
{
    double step_s = result->exec.step_time_s, bubble_s = result->exec.breakdown.bubble_s;
    return bubble_s > 0 && bubble_s < step_s ? result->tflops_per_gpu * step_s / (step_s - bubble_s)
                                             : result->tflops_per_gpu;
}

/* points[i]: the first i causes are gone. */
enum status scenario_explain(struct scenario_waterfall *out, const struct scenario_point *small,
    const struct scenario_point *large, struct diag *diag)
{
    enum { ROUNDS = CAUSE_BUBBLE + 1, ENDS = 2, RUNS = ROUNDS * ENDS };
    struct scenario_point(*points)[ENDS] = xcalloc(ROUNDS, sizeof *points);
    struct scenario_result(*results)[ENDS] = xcalloc(ROUNDS, sizeof *results);
    struct arena *arenas = xcalloc(RUNS, sizeof *arenas);
    points[0][0] = *small;
    points[0][1] = *large;
    for (int i = 1; i < ROUNDS; i++)
        for (int end = 0; end < ENDS; end++) {
            points[i][end] = points[i - 1][end];
            /* The collectives of the real hardware: without hops or limits NCCL would choose
             * others. */
            points[i][end].options.exec.chosen_on = &points[0][end].hw;
            scenario_remove_cause(&points[i][end], (enum scenario_cause)(i - 1));
        }
    struct scenario_set set = {.points = points[0], .n_points = RUNS};
    enum status status = scenario_simulate_all(results[0], arenas, &set, NULL, NULL, diag);
    *out = (struct scenario_waterfall){0};
    for (int i = 0; i < ROUNDS && status == STATUS_OK; i++) {
        out->small[i] = results[i][0].tflops_per_gpu;
        out->large[i] = results[i][1].tflops_per_gpu;
        for (int end = 0; end < ENDS && status == STATUS_OK; end++)
            if (results[i][end].exec.status == EXEC_OOM)
                status = diag_input(diag, points[0][end].gpus_at,
                    "out of memory on %lld GPU%s; there is no speed to explain: compare larger "
                    "clusters, or save memory (train.activation_checkpointing, train.micro_batch, "
                    "how it is sharded)",
                    (long long)points[0][end].options.cluster.gpus,
                    plural(points[0][end].options.cluster.gpus));
    }
    out->small[CAUSE_COUNT] = without_bubble(&results[ROUNDS - 1][0]);
    out->large[CAUSE_COUNT] = without_bubble(&results[ROUNDS - 1][1]);
    out->stages = exec_has_stages(&results[0][0].exec) || exec_has_stages(&results[0][1].exec);
    double before = out->small[0] - out->large[0];
    for (int i = 0; i < CAUSE_COUNT; i++) {
        double after = out->small[i + 1] - out->large[i + 1];
        out->part[i] = before - after;
        before = after;
    }
    out->rest = before;
    for (int i = 0; i < RUNS; i++)
        arena_release(&arenas[i]);
    free(points);
    free(results);
    free(arenas);
    return status;
}

struct scenario_loss scenario_waterfall_loss(const struct scenario_waterfall *waterfall,
    const struct scenario_point *small, const struct scenario_point *large)
{
    struct scenario_loss loss = {.small_gpus = small->options.cluster.gpus,
        .large_gpus = large->options.cluster.gpus,
        .small = waterfall->small[0],
        .large = waterfall->large[0]};
    for (int i = 0; i < CAUSE_COUNT; i++)
        loss.part[i] = waterfall->part[i];
    loss.part[CAUSE_REST] = waterfall->rest;
    return loss;
}

/* ---- what the compute stream did ---- */

/* "transformer.h.7/mlp.c_fc" is one of many alike: "transformer.h.#/mlp.c_fc". Digits at the
 * beginning of a part of a path are counters; those within a word ("c_fc2") stay. */
static const char *without_numbers(const char *name, struct arena *arena)
{
    char *text = arena_strdup(arena, name), *to = text;
    for (const char *from = text; *from; from++) {
        bool digit = *from >= '0' && *from <= '9',
             alone = from == text || strchr("./ ", from[-1]) != NULL;
        if (digit && (alone || (to > text && to[-1] == '#'))) {
            if (to == text || to[-1] != '#')
                *to++ = '#';
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return text;
}

static void explain_add(
    struct scenario_path *path, const char *name, bool waiting, double seconds, double beside_s)
{
    for (int i = 0; i < path->items.n; i++) {
        struct scenario_path_item *item = &path->items.at[i];
        if (item->waiting == waiting && strcmp(item->name, name) == 0) {
            item->seconds += seconds;
            item->beside_s += beside_s;
            item->times++;
            return;
        }
    }
    vec_push(&path->items, (struct scenario_path_item){name, waiting, seconds, beside_s, 1});
}

static void explain_add_gap(struct scenario_path *path, const struct exec_result *result, ps_t from,
    ps_t to, struct arena *arena)
{
    const struct exec_span *awaited = scenario_comm_awaited(result, to);
    const struct exec_span *message = awaited ? NULL : scenario_comm_blocked(result, from, to);
    if (message) {
        explain_add(
            path, without_numbers(message->name, arena), true, s_from_ps(message->end - from), 0);
        from = message->end;
    }
    if (from < to)
        explain_add(path, awaited ? without_numbers(awaited->name, arena) : "the host", true,
            s_from_ps(to - from), 0);
}

static int explain_longest_first(const void *a, const void *b)
{
    const struct scenario_path_item *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : strcmp(x->name, y->name);
}

void scenario_path(struct scenario_path *out, const struct exec_result *result, struct arena *arena)
{
    *out = (struct scenario_path){
        .step_s = s_from_ps(result->last_step_end - result->last_step_start)};
    ps_t free_at = result->last_step_start;
    for (int i = 0; i < result->n_spans;
         i++) { /* in the order of their ends: of starts too, on one stream */
        const struct exec_span *span = &result->spans[i];
        if (span->stream != STREAM_COMPUTE)
            continue;
        if (span->start > free_at)
            explain_add_gap(out, result, free_at, span->start, arena);
        ps_t taken = span->end - span->start;
        explain_add(out, without_numbers(span->name, arena), false, s_from_ps(taken),
            s_from_ps(taken - span->alone));
        free_at = span->end;
    }
    if (out->items.n)
        qsort(out->items.at, (size_t)out->items.n, sizeof *out->items.at, explain_longest_first);
}
