#include "exec/exec.h"

#include "exec/state.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

const char *const exec_fold_names[] = {"auto", "off", NULL};
const char *const exec_status_names[] = {"ok", "oom", NULL};

struct exec_options exec_default_options(void)
{
    return (struct exec_options){.steps = 2, .warmup_steps = 2, .seed = 1, .fold = FOLD_AUTO};
}

static bool noisy(const struct noise_options *noise)
{
    return noise->gpu_speed_spread > 0 || noise->kernel_jitter > 0 || noise->network_jitter > 0 ||
           noise->host_jitter > 0;
}

/* No GPU or host differs from another. */
static bool alike(const struct sim *sim)
{
    return !noisy(&sim->options->noise) && !sim->uneven;
}

static void setup_links(struct sim *sim)
{
    fabric_build(&sim->fabric, sim->hw, sim->plan->ranks, &sim->options->link_events, sim->arena);
    for (int l = 0; l < sim->fabric.n_links; l++)
        net_add_link(&sim->net, sim->fabric.capacity_Bps[l]);
    sim->uneven = degrade_uneven(&sim->options->gpu_events, sim->plan->ranks);
    sim->uses = ARENA_ARRAY(sim->arena, struct link_weight, sim->fabric.n_links);
    sim->carried_before = ARENA_ARRAY(sim->arena, double, sim->fabric.n_links);
}

/* Whether one rank can stand for all: every instance of a group must meet links like those of its sisters. */
static bool can_fold(const struct sim *sim)
{
    if (fabric_is_uniform(&sim->fabric))
        return true;
    for (int g = 0; g < sim->plan->groups.n; g++) {
        const struct plan_group *group = &sim->plan->groups.at[g];
        struct coll_group first = {0, group->stride, group->size};
        bool inside = coll_shape(first, sim->fabric.gpus).nodes == 1 && !sim->fabric.degraded;
        if (group->size < sim->plan->ranks && !inside)
            return false;
    }
    return true;
}

static void setup_kernels(struct sim *sim)
{
    const struct plan *plan = sim->plan;
    const struct hw_gpu *gpu = &sim->hw->gpu;
    int states = sim->n_holdings * sim->n_holdings;
    sim->kernel_costs = ARENA_ARRAY(sim->arena, struct kernel_cost, plan->kernels.n);
    for (int k = 0; k < plan->kernels.n; k++) {
        struct kernel_cost *cost = &sim->kernel_costs[k];
        cost->compute_s = ARENA_ARRAY(sim->arena, double, states);
        for (int holding = 0; holding < states; holding++) {
            struct kernel_share share = kernel_whole_gpu(gpu);
            share.sms = fmax(1, share.sms - collective_sms(sim, holding));
            struct kernel_time time = kernel_time(&plan->kernels.at[k], gpu, share);
            cost->compute_s[holding] = time.compute_s;
            if (holding == 0) {
                cost->memory_s = time.memory_s;
                cost->floor_s = time.floor_s;
            }
        }
    }
}

static void setup_host(struct sim *sim)
{
    const struct plan *plan = sim->plan;
    int n = plan->ops.n;
    sim->host_prefix_s = ARENA_ARRAY(sim->arena, double, n + 1);
    sim->launches = ARENA_ARRAY(sim->arena, int32_t, n + 1);
    sim->next_block = ARENA_ARRAY(sim->arena, int32_t, n + 1);
    sim->next_memory = ARENA_ARRAY(sim->arena, int32_t, n + 1);
    for (int i = 0; i < n; i++)
        sim->launches[i + 1] = sim->launches[i] + (plan->ops.at[i].position >= 0);
    for (int i = 0; i < n; i++)
        sim->host_prefix_s[i + 1] = sim->host_prefix_s[i] + (double)plan->ops.at[i].host_s;
    sim->awaited = ARENA_ARRAY(sim->arena, bool, n + 1);
    for (int w = 0; w < plan->waits.n; w++)
        sim->awaited[plan->waits.at[w] & ~PLAN_PREVIOUS_STEP] = true;
    sim->next_block[n] = sim->next_memory[n] = n;
    for (int i = n - 1; i >= 0; i--) {
        bool blocks = plan->ops.at[i].kind == OP_HOST_WAIT;
        sim->next_block[i] = blocks ? i : sim->next_block[i + 1];
        sim->next_memory[i] = blocks || plan_op_is_memory(&plan->ops.at[i]) ? i : sim->next_memory[i + 1];
    }
}

/* A GPU cannot be this much slower than its kind by variation alone; the normal tail is cut here. */
static const double SLOWEST_SPEED = 0.5;

static void setup_ranks(struct sim *sim)
{
    uint64_t seed = (uint64_t)sim->options->seed;
    sim->ranks = ARENA_ARRAY(sim->arena, struct rank, sim->n_ranks);
    double spread = sim->options->noise.gpu_speed_spread, *scores = ARENA_ARRAY(sim->arena, double, sim->n_ranks);
    struct rng_stream order = rng_stream(seed, ENTITY_GPU, (uint64_t)sim->n_ranks);
    if (spread > 0 && !sim->options->noise.drawn_speeds)
        rng_normal_scores(&order, scores, sim->n_ranks);
    for (int r = 0; r < sim->n_ranks; r++) {
        struct rank *rank = &sim->ranks[r];
        struct rng_stream gpu = rng_stream(seed, ENTITY_GPU, (uint64_t)r);
        double off = sim->options->noise.drawn_speeds ? rng_gaussian(&gpu, spread) : scores[r] * spread;
        rank->drawn_speed = spread > 0 ? fmax(SLOWEST_SPEED, 1 + off) : 1;
        rank->share = 1;
        rank->speed = rank->drawn_speed;
        rank->stretch = 1;
        for (int s = 0; s < STREAM_COUNT; s++) /* one each, so that no stream's draws hang on when another's begin */
            rank->kernel_noise[s] = rng_stream(seed, ENTITY_KERNEL, (uint64_t)r * STREAM_COUNT + (uint64_t)s);
        rank->host_noise = rng_stream(seed, ENTITY_HOST, (uint64_t)r);
    }
    for (int i = 0; i < sim->options->gpu_events.n; i++) {
        const struct degrade_event *event = &sim->options->gpu_events.list[i];
        if (event->at == 0 && event->target < sim->n_ranks) {
            struct rank *rank = &sim->ranks[event->target];
            rank->share = event->share;
            rank->speed = rank->drawn_speed * rank->share;
        }
    }
}

/* GPUs become slow, or are no longer. */
static void on_slow(void *self, const struct event *now)
{
    struct sim *sim = self;
    if (sim->step_ranks[sim->total_steps - 1] == sim->n_ranks)
        return; /* the job has ended */
    for (int i = 0; i < sim->options->gpu_events.n; i++) {
        const struct degrade_event *event = &sim->options->gpu_events.list[i];
        if (event->at != now->time || event->target >= sim->n_ranks)
            continue;
        double before = sim->ranks[event->target].share;
        if (event->share < before || event->share > before)
            stream_set_share(sim, event->target, event->share);
    }
}

/* One event of the engine at each time at which something changes. */
static void schedule(struct sim *sim, const struct degrade_events *events, uint32_t handler)
{
    ps_t last = 0;
    for (int i = 0; i < events->n; i++)
        if (events->list[i].at > last) {
            last = events->list[i].at;
            engine_at(&sim->engine, last, handler, 0, 0);
        }
}

static void add_breakdown(struct exec_breakdown *sum, const struct exec_breakdown *part, double share)
{
    sum->compute_s += part->compute_s * share;
    sum->contention_s += part->contention_s * share;
    sum->exposed_comm_s += part->exposed_comm_s * share;
    sum->host_bound_s += part->host_bound_s * share;
    sum->comm_s += part->comm_s * share;
    sum->comm_latency_s += part->comm_latency_s * share;
    sum->comm_wait_s += part->comm_wait_s * share;
}

static double utilisation(struct sim *sim, int first, int end, double span_s)
{
    double carried = 0, capacity = 0;
    for (int l = first; l < end; l++) {
        carried += net_carried(&sim->net, l) - sim->carried_before[l];
        capacity += sim->net.capacity.at[l];
    }
    return capacity > 0 && span_s > 0 ? carried / (capacity * span_s) : 0;
}

/* Nothing is left to happen, yet the plan has not ended: say where rank 0 stands. Only a wrong plan comes here. */
static void check_ended(const struct sim *sim)
{
    if (sim->step_ranks[sim->total_steps - 1] == sim->n_ranks)
        return;
    const struct rank *rank = &sim->ranks[0];
    for (int s = 0; s < STREAM_COUNT; s++)
        if (sim->plan->stream_ops[s].n > 0 && rank->streams[s].step < sim->total_steps) {
            int32_t op = sim->plan->stream_ops[s].at[rank->streams[s].position];
            fprintf(stderr, "flopcast: rank 0: stream %s stands before op %d (%s) of step %d, state %d\n",
                plan_stream_names[s], op, sim->plan->ops.at[op].name, rank->streams[s].step, rank->streams[s].state);
        }
    BUG_IF(true, "deadlock; the host of rank 0 is before op %d of step %d, state %d", rank->host_end, rank->host_step,
        rank->host_state);
}

static void timing_result(struct sim *sim)
{
    struct exec_result *result = sim->result;
    int32_t warmup = (int32_t)sim->options->warmup_steps, n = (int32_t)sim->options->steps;
    double *steps = ARENA_ARRAY(sim->arena, double, n);
    for (int32_t i = 0; i < n; i++) {
        ps_t before = warmup + i > 0 ? sim->step_end[warmup + i - 1] : 0;
        steps[i] = s_from_ps(sim->step_end[warmup + i] - before);
    }
    result->step_time_s = gsl_stats_mean(steps, 1, (size_t)n);
    result->step_time_sd_s = n > 1 ? gsl_stats_sd(steps, 1, (size_t)n) : 0;
    struct exec_breakdown *breakdown = &result->breakdown;
    *breakdown = (struct exec_breakdown){0}; /* a run before may have left its own */
    for (int r = 0; r < sim->n_ranks; r++)
        add_breakdown(breakdown, &sim->ranks[r].spent, 1.0 / (double)n / sim->n_ranks);
    breakdown->other_idle_s =
        fmax(0, result->step_time_s - breakdown->compute_s - breakdown->exposed_comm_s - breakdown->host_bound_s);
    double span_s = s_from_ps(sim->step_end[sim->total_steps - 1] - sim->measure_from);
    result->nvlink_utilisation = utilisation(sim, 0, sim->fabric.first_nic, span_s);
    result->nic_utilisation = utilisation(sim, sim->fabric.first_nic, sim->fabric.first_leaf, span_s);
}

/* Rows for a plot: of many samples, the highest of each of a few hundred equal stretches of the list. */
static void timeline_result(struct sim *sim)
{
    enum { MOST_ROWS = 400 };
    int n = sim->timeline.n, rows = n < MOST_ROWS ? n : MOST_ROWS;
    double began = sim->total_steps > 1 ? s_from_ps(sim->step_end[sim->total_steps - 2]) : 0;
    sim->result->timeline = ARENA_ARRAY(sim->arena, struct exec_memory_sample, rows);
    sim->result->n_timeline = rows;
    for (int row = 0; row < rows; row++) {
        int best = -1;
        double most = -1;
        for (int i = (int)((int64_t)row * n / rows); i < (int)((int64_t)(row + 1) * n / rows); i++) {
            double total = 0;
            for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
                total += sim->timeline.at[i].category_bytes[c];
            if (total > most) {
                most = total;
                best = i;
            }
        }
        sim->result->timeline[row] = sim->timeline.at[best];
        sim->result->timeline[row].time_s -= began;
    }
}

static void simulate(struct sim *sim, bool keeps_ledgers)
{
    sim->n_ranks = sim->folded ? 1 : sim->plan->ranks;
    collective_setup(sim);
    setup_kernels(sim);
    setup_host(sim);
    setup_ranks(sim);
    sim->step_end = ARENA_ARRAY(sim->arena, ps_t, sim->total_steps);
    sim->step_ranks = ARENA_ARRAY(sim->arena, int, sim->total_steps);
    if (keeps_ledgers)
        ledger_setup(sim);
    trace_setup(sim);
    if (!sim->out_of_memory) {
        for (int r = 0; r < sim->n_ranks; r++)
            host_begin_step(sim, r);
        schedule(sim, &sim->options->link_events, sim->ev_links);
        schedule(sim, &sim->options->gpu_events, sim->ev_slow);
        engine_run(&sim->engine);
    }
    sim->result->overlong = sim->engine.overlong;
    if (sim->engine.overlong)
        return;
    if (!sim->out_of_memory) {
        check_ended(sim);
        timing_result(sim);
        trace_result(sim);
        if (sim->ledgers)
            timeline_result(sim);
    }
    if (sim->ledgers)
        ledger_result(sim);
    sim->result->digest = sim->engine.digest;
    sim->result->events = (double)sim->engine.events;
    sim->result->ranks_simulated = sim->n_ranks;
}

static struct sim *open_sim(struct exec_result *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena)
{
    *out = (struct exec_result){.status = EXEC_OK};
    struct sim *sim = xcalloc(1, sizeof *sim);
    sim->plan = plan;
    sim->hw = hw;
    sim->options = options;
    sim->arena = arena;
    sim->result = out;
    sim->total_steps = (int32_t)(options->steps + options->warmup_steps);
    engine_init(&sim->engine);
    net_init(&sim->net, &sim->engine);
    sim->ev_stream = engine_register(&sim->engine, stream_on_event, sim);
    sim->ev_host = engine_register(&sim->engine, host_on_event, sim);
    sim->ev_latency = engine_register(&sim->engine, collective_on_latency, sim);
    sim->ev_collective_end = engine_register(&sim->engine, collective_on_end, sim);
    sim->ev_links = engine_register(&sim->engine, collective_on_links, sim);
    sim->ev_slow = engine_register(&sim->engine, on_slow, sim);
    setup_links(sim);
    return sim;
}

static void close_sim(struct sim *sim)
{
    ledger_release(sim);
    vec_free(&sim->timeline);
    vec_free(&sim->spans);
    vec_free(&sim->host_spans);
    net_release(&sim->net);
    engine_release(&sim->engine);
    free(sim);
}

static bool ever_drained(const struct ledger *ledger)
{
    for (int i = 0; i < ledger->stops.n; i++)
        if (ledger->stops.at[i].drains)
            return true;
    return false;
}

/* The same without noise and GPUs slower than others, folded. Where links differ, the rank sees those of its own
 * collectives only. */
static struct sim *simulate_one(const struct sim *all, struct exec_options *quiet, struct exec_result *out)
{
    *quiet = *all->options;
    quiet->noise = (struct noise_options){0};
    quiet->n_trace_ranks = 0;
    if (all->uneven)
        quiet->gpu_events.n = 0;
    struct sim *sim = open_sim(out, all->plan, all->hw, quiet, all->arena);
    sim->folded = true;
    sim->sisters = can_fold(sim);
    simulate(sim, true);
    return sim;
}

/* Ranks that are not folded. The ledger of one says where the allocator will stand in the way of all. */
static void simulate_ranks(struct sim *sim)
{
    struct exec_options quiet;
    if (sim->options->no_memory) {
        simulate(sim, false);
        return;
    }
    struct sim *one = simulate_one(sim, &quiet, sim->result);
    sim->before = &one->ledgers[0];
    if (!one->out_of_memory && !one->result->overlong)
        simulate(sim, !alike(sim) && ever_drained(sim->before));
    close_sim(one);
}

void exec_run(struct exec_result *out, const struct plan *plan, const struct hw *hw, const struct exec_options *options,
    struct arena *arena)
{
    char why[256];
    BUG_IF(!plan_check(plan, why, sizeof why), "%s", why);
    BUG_IF(options->steps < 1 || options->warmup_steps < 0 || options->steps + options->warmup_steps > EXEC_MAX_STEPS,
        "%lld + %lld steps", (long long)options->warmup_steps, (long long)options->steps);
    struct sim *sim = open_sim(out, plan, hw, options, arena);
    sim->sisters = can_fold(sim);
    sim->folded = options->fold == FOLD_AUTO && alike(sim) && sim->sisters;
    if (sim->folded)
        simulate(sim, !options->no_memory);
    else
        simulate_ranks(sim);
    close_sim(sim);
}
