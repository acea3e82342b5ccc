/* Speed of the engine and of the network's solver: median of RUNS, and the ratio to a reference
 * measured in the same run, which a slower machine does not change.
 *
 * Engine: one event popped and one pushed, with a number of them pending (the hold model);
 * references: the same handler called without a heap, and a plain binary heap of the same events,
 * as a textbook has it.
 *
 * Solver: flows of a 64-node job with hybrid sharding come and go, each at its own time, 64 groups
 * in their nodes and 8 across; reference: one solution of all 72 from scratch. bench_engine solver:
 * only this (bench_simgrid.cpp has the same flows). */
#include "bench.h"

#include "base/rng.h"
#include "engine/engine.h"
#include "net/net.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUNS = 7,
    EVENTS = 1000000,
    NODES = 64,
    GPUS = 8,
    FLOWS = NODES + GPUS,
    FLOW_STARTS = 20000
};

struct hold {
    struct engine engine;
    struct rng_stream rng;
    uint32_t kind;
    bool reference; /* only the draw, no event */
};

static void on_hold(void *self, const struct event *event)
{
    struct hold *hold = self;
    ps_t time = event->time + (ps_t)(rng_uniform(&hold->rng) * 1e6);
    if (hold->engine.events + hold->engine.seq > 2 * EVENTS)
        engine_stop(&hold->engine);
    if (!hold->reference)
        engine_at(&hold->engine, time, hold->kind, event->target, 0);
}

static double hold_s(int pending, bool reference)
{
    struct hold hold = {.rng = rng_stream(1, 1, 1), .reference = reference};
    engine_init(&hold.engine);
    hold.kind = engine_register(&hold.engine, on_hold, &hold);
    for (int i = 0; i < pending; i++)
        engine_at(&hold.engine, (ps_t)(rng_uniform(&hold.rng) * 1e6), hold.kind, (uint32_t)i, 0);
    double start = now_s();
    if (reference)
        for (int i = 0; i < EVENTS; i++)
            hold.engine.kinds[hold.kind].handle(&hold, &hold.engine.heap.at[i % pending]);
    else
        engine_run(&hold.engine);
    double seconds = now_s() - start;
    engine_release(&hold.engine);
    return seconds;
}

/* The reference: time and order decide, the earliest on top. */
struct plain {
    struct event *at;
    int n;
    uint64_t seq;
};

static bool earlier(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->seq < b->seq);
}

static void plain_push(struct plain *heap, struct event event)
{
    int i = heap->n++;
    event.seq = heap->seq++;
    for (int up = (i - 1) / 2; i > 0 && earlier(&event, &heap->at[up]); i = up, up = (i - 1) / 2)
        heap->at[i] = heap->at[up];
    heap->at[i] = event;
}

static struct event plain_pop(struct plain *heap)
{
    struct event top = heap->at[0], last = heap->at[--heap->n];
    int i = 0;
    for (int down = 1; down < heap->n; i = down, down = 2 * i + 1) {
        down += down + 1 < heap->n && earlier(&heap->at[down + 1], &heap->at[down]);
        if (!earlier(&heap->at[down], &last))
            break;
        heap->at[i] = heap->at[down];
    }
    heap->at[i] = last;
    return top;
}

static double plain_s(int pending)
{
    struct plain heap = {.at = xcalloc((size_t)pending + 1, sizeof *heap.at)};
    struct rng_stream rng = rng_stream(1, 1, 1);
    for (int i = 0; i < pending; i++)
        plain_push(
            &heap, (struct event){.time = (ps_t)(rng_uniform(&rng) * 1e6), .target = (uint32_t)i});
    double start = now_s();
    for (int i = 0; i < EVENTS; i++) {
        struct event event = plain_pop(&heap);
        event.time += (ps_t)(rng_uniform(&rng) * 1e6);
        plain_push(&heap, event);
    }
    double seconds = now_s() - start;
    free(heap.at);
    return seconds;
}

static void bench_events(int pending)
{
    double engine[RUNS], call[RUNS], plain[RUNS];
    for (int r = 0; r < RUNS; r++) {
        engine[r] = hold_s(pending, false);
        call[r] = hold_s(pending, true);
        plain[r] = plain_s(pending);
    }
    double seconds = gsl_stats_median(engine, 1, RUNS);
    printf("engine, %7d pending: %6.2f million events/s, %5.1f times a bare call, %.2f times as "
           "fast as a plain heap\n",
        pending, EVENTS / seconds * 1e-6, seconds / gsl_stats_median(call, 1, RUNS),
        gsl_stats_median(plain, 1, RUNS) / seconds);
}

struct job {
    struct engine engine;
    struct net net;
    struct rng_stream rng[FLOWS]; /* of each flow: two ends within a rounding may change places */
    uint32_t ended;
    struct link_weight weights[FLOWS][3 * NODES];
    int n_weights[FLOWS];
    int starts, active, active_sum;
    ps_t last_end;
};

static void start(struct job *job, int slot)
{
    job->starts++;
    job->active_sum += job->active++;
    double bytes = 1e9 * (0.5 + rng_uniform(&job->rng[slot]));
    double rate_cap = 200e9 * (0.9 + 0.1 * rng_uniform(&job->rng[slot]));
    net_start(&job->net, slot, bytes, rate_cap, job->weights[slot], job->n_weights[slot],
        (struct net_listener){job->ended, (uint32_t)slot});
}

static void on_ended(void *self, const struct event *event)
{
    struct job *job = self;
    job->last_end = event->time;
    job->active--;
    if (job->starts < FLOW_STARTS)
        start(job, (int)event->target);
}

static void set_up(struct job *job)
{
    *job = (struct job){0};
    engine_init(&job->engine);
    net_init(&job->net, &job->engine);
    job->ended = engine_register(&job->engine, on_ended, job);
    for (int g = 0; g < NODES * GPUS; g++) /* NVLink of each GPU, then out and in of each node */
        net_add_link(&job->net, 235e9);
    for (int n = 0; n < 2 * NODES; n++)
        net_add_link(&job->net, 187e9);
    for (int f = 0; f < FLOWS; f++) {
        net_add_flow(&job->net);
        job->rng[f] = rng_stream(2, 1, (uint64_t)f);
        for (int i = 0; i < (f < NODES ? GPUS : 2 * NODES); i++)
            job->weights[f][job->n_weights[f]++] =
                (struct link_weight){f < NODES ? f * GPUS + i : NODES * GPUS + i, 1};
    }
}

static double incremental_s(struct job *job)
{
    double begin = now_s();
    for (int f = 0; f < FLOWS; f++)
        start(job, f);
    engine_run(&job->engine);
    return now_s() - begin;
}

static double whole_s(struct job *job)
{
    struct maxmin_flow flows[FLOWS];
    double rates[FLOWS], *scratch = xcalloc((size_t)(2 * job->net.capacity.n), sizeof *scratch);
    for (int f = 0; f < FLOWS; f++)
        flows[f] = (struct maxmin_flow){
            200e9 * (0.9 + 0.1 * rng_uniform(&job->rng[f])), job->weights[f], job->n_weights[f]};
    double begin = now_s();
    for (int i = 0; i < FLOW_STARTS / 20; i++)
        maxmin_solve(
            rates, flows, FLOWS, job->net.capacity.at, scratch, scratch + job->net.capacity.n);
    double seconds = (now_s() - begin) * 20;
    free(scratch);
    return seconds;
}

static void bench_solver(void)
{
    double part[RUNS], whole[RUNS];
    struct job *job = xcalloc(1, sizeof *job);
    double active = 0, end_s = 0;
    for (int r = 0; r < RUNS; r++) {
        set_up(job);
        part[r] = incremental_s(job);
        end_s = s_from_ps(job->last_end);
        whole[r] = whole_s(job);
        active = (double)job->active_sum / job->starts;
        net_release(&job->net);
        engine_release(&job->engine);
    }
    free(job);
    double seconds = gsl_stats_median(part, 1, RUNS);
    printf("solver, %.0f flows active: %6.2f us a flow that comes and goes, 1 / %.1f of solving "
           "all of them once; the last ends at %.12f s\n",
        active, seconds / FLOW_STARTS * 1e6, gsl_stats_median(whole, 1, RUNS) / seconds, end_s);
}

int main(int argc, char **argv)
{
    bool solver = argc == 2 && strcmp(argv[1], "solver") == 0;
    if (argc > 1 && !solver) {
        fprintf(stderr, "usage: bench_engine [solver]\n");
        return 2;
    }
    for (int pending = 100; !solver && pending <= 1000000; pending *= 100)
        bench_events(pending);
    bench_solver();
    return 0;
}
