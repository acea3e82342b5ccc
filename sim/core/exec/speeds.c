/* How fast the GPUs of a job are: exec.h says what the spreads, slow hosts and drawn_speeds mean.
 */
#include "exec/state.h"

#include <gsl/gsl_sort.h>

struct hosts {
    int n, gpus; /* gpus: of each */
    bool *slow;
};

/* Each by its own draw, then as many as are to be slow in any case, at places that are drawn. A
 * place that is taken goes on to the next host. */
static void draw_slow(struct hosts *hosts, const struct sim *sim)
{
    const struct noise_options *noise = &sim->options->noise;
    struct rng_stream places =
        rng_stream((uint64_t)sim->options->seed, ENTITY_NODE, (uint64_t)hosts->n);
    for (int i = 0; i < hosts->n; i++)
        hosts->slow[i] = rng_uniform(&places) < noise->straggler_share;
    for (int64_t i = 0; i < noise->slow_hosts; i++) {
        int host = (int)(rng_uniform(&places) * hosts->n);
        while (hosts->slow[host])
            host = (host + 1) % hosts->n;
        hosts->slow[host] = true;
    }
}

/* The slowest GPU of a slow host is what a job waits for: they are hosts whose slowest ones lie
 * evenly among those of all, one alone has the median. So one host more in a job makes no other
 * luck. */
static void choose_slow(struct hosts *hosts, const struct sim *sim, const double *scores)
{
    const int64_t wanted = sim->options->noise.slow_hosts;
    double *slowest = ARENA_ARRAY(sim->arena, double, hosts->n);
    size_t *order = ARENA_ARRAY(sim->arena, size_t, hosts->n);
    for (int r = 0; r < sim->plan->mesh.ranks; r++)
        if (r % hosts->gpus == 0 || scores[r] < slowest[r / hosts->gpus])
            slowest[r / hosts->gpus] = scores[r];
    gsl_sort_index(order, slowest, 1, (size_t)hosts->n);
    for (int64_t i = 0; i < wanted; i++)
        hosts->slow[order[(2 * i + 1) * hosts->n / (2 * wanted)]] = true;
}

/* Of each GPU where it stands among its kind, in standard deviations: a constant of the chip. */
static double *draw_scores(const struct sim *sim, int n)
{
    uint64_t seed = (uint64_t)sim->options->seed;
    double *scores = ARENA_ARRAY(sim->arena, double, n);
    struct rng_stream order = rng_stream(seed, ENTITY_GPU, (uint64_t)n);
    if (!sim->options->noise.drawn_speeds)
        rng_normal_scores(&order, scores, n);
    for (int r = 0; r < n && sim->options->noise.drawn_speeds; r++) {
        struct rng_stream gpu = rng_stream(seed, ENTITY_GPU, (uint64_t)r);
        scores[r] = rng_gaussian(&gpu, 1);
    }
    return scores;
}

struct gpu_speeds *speeds_draw(const struct sim *sim)
{
    const struct noise_options *noise = &sim->options->noise;
    if (!(noise->gpu_speed_spread > 0))
        return NULL;
    int n = sim->plan->mesh.ranks, in_host = hw_gpus_per_host(sim->costs.hw);
    struct hosts hosts = {.n = (int)hw_hosts(sim->costs.hw, n), .gpus = in_host};
    hosts.slow = ARENA_ARRAY(sim->arena, bool, hosts.n);
    BUG_IF(noise->slow_hosts > hosts.n, "%lld slow hosts of %d", (long long)noise->slow_hosts,
        hosts.n);
    struct gpu_speeds *speeds = ARENA_ARRAY(sim->arena, struct gpu_speeds, n);
    const double *scores = draw_scores(sim, n);
    const double spreads[SPEED_COUNT] = {noise->gpu_speed_spread, noise->gpu_speed_spread_below};
    if (noise->drawn_speeds)
        draw_slow(&hosts, sim);
    else
        choose_slow(&hosts, sim, scores);
    for (int r = 0; r < n; r++)
        for (int s = 0; s < SPEED_COUNT; s++)
            speeds[r].of[s] = (1 + scores[r] * spreads[s]) /
                              (hosts.slow[r / in_host] ? 1 + noise->straggler_slowdown : 1);
    return speeds;
}
