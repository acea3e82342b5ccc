/* The life of a run: which ranks are simulated, warm-up, one or two simulations, and the result.
 *
 * exec_run() asks first whether one rank can stand for all of its program (folds(): nothing varies,
 * and each communicator meets links like those of its siblings). Then simulate_folded() runs one
 * rank a program, with more warm-up each time until its measured steps make no segment and take as
 * long as the one before.
 *
 * Else all ranks are simulated, or those that others wait for (slowest.c). Before that a folded run
 * without noise is made, the reference: it says whether hosts matter, how long the warm-up is, and
 * where the allocator stops the host. If its cudaMalloc never fails in measured steps, ranks replay
 * these stops; if it does, each rank gets a ledger, because what can be used again depends on how
 * far its GPU has come. Runs of one plan that differ in noise alone share the reference.
 *
 * A folded run is stopped now and then to see whether it repeats itself (period.c).
 *
 * Order within sim_begin() matters: speeds before the choice of ranks, programs before
 * communicators, kernels before ranks, periods before ledgers, these before the first host event.
 *
 * Subtle: `siblings` and `on` differ. A reference run is folded (on) even where communicators of
 * other ranks would meet other links; then it sees only the links that its collectives load. */
#include "exec/exec.h"

#include "exec/state.h"
#include "kernel/attention.h"

#include <math.h>
#include <string.h>

const char *const exec_fold_names[] = {"auto", "off", "slowest", NULL};
const char *const exec_status_names[] = {"ok", "oom", NULL};

struct exec_options exec_default_options(void)
{
    return (struct exec_options){
#define SETTINGS SETTING_DEFAULT
#include "exec/run_settings.h"
    };
}

void exec_be_quiet(struct exec_options *options)
{
    options->noise = (struct noise_options){0};
    options->mean_documents = true;
}

bool exec_noise_is_on(const struct noise_options *noise)
{
    return noise->gpu_speed_spread > 0 || noise->kernel_jitter > 0 || noise->network_jitter > 0 ||
           noise->host_jitter > 0 || noise->host_pause_s > 0;
}

static bool documents_vary(const struct sim *sim)
{
    return plan_documents_vary(sim->plan) && !sim->options->mean_documents;
}

/* No GPU or host differs from another, nor does what they are given. */
static bool exec_alike(const struct sim *sim)
{
    return !exec_noise_is_on(&sim->options->noise) && !sim->fold.uneven && !documents_vary(sim);
}

static void setup_links(struct sim *sim)
{
    fabric_build(
        &sim->fabric, sim->costs.hw, sim->plan->mesh.ranks, &sim->options->link_events, sim->arena);
    for (int l = 0; l < sim->fabric.n_links; l++)
        net_add_link(&sim->machine->net, sim->fabric.capacity_Bps[l]);
    sim->fold.uneven = degrade_uneven(&sim->options->gpu_events, sim->plan->mesh.ranks);
    sim->meetings.uses = ARENA_ARRAY(sim->arena, struct link_weight, sim->fabric.n_links);
    sim->measure.carried = ARENA_ARRAY(sim->arena, double, sim->fabric.n_links);
}

/* The messages of all ranks of a program go the same way. */
static bool messages_fold(const struct sim *sim)
{
    const struct plan *plan = sim->plan;
    for (int c = 0; c < plan->channels.n; c++) {
        const struct plan_channel *channel = &plan->channels.at[c];
        for (int r = 0; r < plan->mesh.ranks; r++) {
            int first = plan_first_rank(plan, plan_program_of(plan, r));
            int to = mesh_neighbour(&plan->mesh, r, channel->axis, channel->delta);
            int first_to = mesh_neighbour(&plan->mesh, first, channel->axis, channel->delta);
            if (fabric_way(&sim->fabric, r, to) != fabric_way(&sim->fabric, first, first_to))
                return false;
        }
    }
    return true;
}

/* Whether one rank can stand for all of its program: every communicator must meet links like those
 * of its siblings. */
static bool can_fold(const struct sim *sim)
{
    if (!messages_fold(sim))
        return false;
    if (fabric_is_uniform(&sim->fabric))
        return true;
    for (int g = 0; g < sim->plan->groups.n; g++) {
        const struct mesh_group *ranks = &sim->plan->groups.at[g].ranks;
        struct coll_group first = {ranks->offset, ranks->stride, ranks->size};
        bool inside = coll_shape(first, sim->fabric.gpus).nodes == 1 && !sim->fabric.degraded;
        if (ranks->size < sim->plan->mesh.ranks && !inside)
            return false;
    }
    return sim->plan->channels.n == 0;
}

/* Kernels that no collective slows; other states of the SMs are worked out when a run meets them.
 */
static void setup_kernels(struct sim *sim)
{
    const struct plan *plan = sim->plan;
    struct sm_state free = {0, ARENA_ARRAY(sim->arena, double, plan->kernels.n)};
    const struct hw_gpu *gpu = &sim->costs.hw->gpu;
    sim->costs.kernels = ARENA_ARRAY(sim->arena, struct kernel_cost, plan->kernels.n);
    for (int k = 0; k < plan->kernels.n; k++) {
        struct kernel_time time = kernel_time(&plan->kernels.at[k], gpu, kernel_whole_gpu(gpu));
        free.compute_s[k] = time.compute_s;
        bool limited = kernel_power_limited(&plan->kernels.at[k], gpu);
        sim->costs.kernels[k] = (struct kernel_cost){time.memory_s, time.floor_s, time.start_s,
            attention_pairs_share(&plan->kernels.at[k], gpu),
            limited ? SPEED_LIMITED : SPEED_BELOW};
    }
    vec_push(&sim->costs.sm_states, free);
}

/* On which queue the program meets other ranks. */
static void setup_meetings(struct sim *sim, struct program_tables *tables)
{
    const struct plan *plan = sim->plan;
    tables->group_queue = ARENA_ARRAY(sim->arena, int, plan->groups.n);
    tables->send_queue = ARENA_ARRAY(sim->arena, int, plan->channels.n);
    tables->recv_queue = ARENA_ARRAY(sim->arena, int, plan->channels.n);
    for (int p = 0; p < tables->fold->n_patterns; p++)
        for (int i = 0; i < tables->fold->patterns[p]->n_ops; i++) {
            const struct plan_op *op = &tables->fold->patterns[p]->ops[i];
            if (op->kind == OP_COLLECTIVE)
                tables->group_queue[plan->collectives.at[op->index].group] = op->stream;
            else if (plan_op_is_comm(op))
                (op->kind == OP_SEND ? tables->send_queue
                                     : tables->recv_queue)[plan->messages.at[op->index].channel] =
                    op->stream;
        }
}

static void setup_programs(struct sim *sim)
{
    sim->tables = ARENA_ARRAY(sim->arena, struct program_tables, sim->plan->n_programs);
    for (int p = 0; p < sim->plan->n_programs; p++) {
        const struct plan_program *program = &sim->plan->programs[p];
        const struct plan_fold *fold =
            program->fold ? program->fold : plan_fold_flat(sim->plan, program, sim->arena);
        sim->tables[p] = (struct program_tables){.program = program,
            .fold = fold,
            .n_ops = fold->n_ops,
            .n_launches = plan_fold_launches(fold, fold->n_ops)};
        setup_meetings(sim, &sim->tables[p]);
    }
}

/* A GPU cannot be this much slower than its kind by variation alone; the normal tail is cut here.
 */
static const double SLOWEST_SPEED = 0.5;

/* One stream of numbers for each queue, as draws must not depend on the order of events. The queues
 * that every plan has are numbered without gaps; further ones by their own high word. */
static struct rng_stream queue_noise(const struct sim *sim, int rank, int queue)
{
    uint64_t number = (uint64_t)rank * STREAM_COUNT + (uint64_t)(queue % STREAM_COUNT);
    return rng_stream((uint64_t)sim->options->seed, ENTITY_KERNEL,
        (uint64_t)(queue / STREAM_COUNT) << 40 | number);
}

static void setup_rank(struct sim *sim, int r, struct gpu_speeds speeds)
{
    struct rank *rank = &sim->ranks[r];
    rank->number = sim->fold.numbers[r];
    rank->program = plan_program_of(sim->plan, rank->number);
    rank->tables = &sim->tables[rank->program];
    for (int s = 0; s < SPEED_COUNT; s++)
        rank->drawn.of[s] = fmax(SLOWEST_SPEED, speeds.of[s]);
    rank->share = 1;
    rank->memory_slowdown = rank->traffic = 1;
    rank->compute_s = sim->costs.sm_states.at[0].compute_s;
    rank->alone_s = ARENA_ARRAY(sim->arena, double, sim->plan->kernels.n);
    rank->pairs_step = -1;
    if (!sim->fold.on && documents_vary(sim)) /* else all have the mean */
        rank->pairs = ARENA_ARRAY(sim->arena, double, rank->tables->program->packing.micro_batches);
    if (rank->pairs && rank->tables->program->packing.documents.fixed_number > 0)
        rank->tokens =
            ARENA_ARRAY(sim->arena, double, rank->tables->program->packing.micro_batches);
    rank->queues = sim->queues + (ptrdiff_t)r * sim->n_queues;
    for (int q = 0; q < sim->n_queues; q++) {
        const struct plan_fold *fold = rank->tables->fold;
        rank->queues[q] = (struct queue){.n_ops = plan_fold_queue_ops(fold, q),
            .noise_key = queue_noise(sim, rank->number, q).key};
        if (rank->queues[q].n_ops == 0)
            continue;
        rank->queues[q].cursor = plan_cursor_first(fold, q);
        rank->queues[q].op = plan_cursor_number(&rank->queues[q].cursor);
        rank->waiting |= queue_bit(q);
    }
    rank->host_noise =
        rng_stream((uint64_t)sim->options->seed, ENTITY_HOST, (uint64_t)rank->number);
    rank->pauses = rng_stream((uint64_t)sim->options->seed, ENTITY_PAUSE, (uint64_t)rank->number);
    host_draw_pause(sim, rank, 0);
    const struct ledger *before = sim->memory.before ? &sim->memory.before[rank->program] : NULL;
    int64_t first =
        sim->memory.before_steps > 0 ? sim->memory.before_steps + sim->options->warmup_steps : 0;
    while (before && rank->next_stop < before->stops.n &&
           before->stops.at[rank->next_stop].step < first)
        rank->next_stop++;
}

/* The rank of this number; NULL: another stands for it, or none. */
static struct rank *exec_simulated(const struct sim *sim, int number)
{
    return is_simulated(sim, number) ? &sim->ranks[sim->fold.index_of[number]] : NULL;
}

static void setup_ranks(struct sim *sim, const struct gpu_speeds *speeds)
{
    const struct gpu_speeds nominal = {{1, 1}};
    sim->ranks = ARENA_ARRAY(sim->arena, struct rank, sim->n_ranks);
    sim->queues = ARENA_ARRAY(sim->arena, struct queue, sim->n_ranks * sim->n_queues);
    for (int r = 0; r < sim->n_ranks; r++)
        setup_rank(sim, r, speeds ? speeds[sim->fold.numbers[r]] : nominal);
    for (int i = 0; i < sim->options->gpu_events.n; i++) {
        const struct degrade_event *event = &sim->options->gpu_events.list[i];
        struct rank *rank = exec_simulated(sim, event->target);
        if (event->at == 0 && rank)
            rank->share = event->share;
    }
}

/* GPUs become slow, or are no longer. */
static void on_slow(void *self, const struct event *now)
{
    struct sim *sim = self;
    if (sim->measure.step_ranks[sim->total_steps - 1] == sim->n_ranks)
        return; /* the job has ended */
    for (int i = 0; i < sim->options->gpu_events.n; i++) {
        const struct degrade_event *event = &sim->options->gpu_events.list[i];
        const struct rank *rank = exec_simulated(sim, event->target);
        if (event->at == now->time && rank &&
            (event->share < rank->share || event->share > rank->share))
            queue_set_share(sim, (int)(rank - sim->ranks), event->share);
    }
}

/* One event of the engine at each time at which something changes. */
static void schedule(struct sim *sim, const struct degrade_events *events, uint32_t handler)
{
    ps_t last = 0;
    for (int i = 0; i < events->n; i++)
        if (events->list[i].at > last) {
            last = events->list[i].at;
            engine_at(&sim->machine->engine, last, handler, 0, 0);
        }
}

/* Nothing is left to happen, yet the plan has not ended: say where rank 0 stands. Only a wrong plan
 * comes here. */
static void check_ended(const struct sim *sim)
{
    if (sim->measure.step_ranks[sim->total_steps - 1] == sim->n_ranks)
        return;
    for (int r = 0; r < sim->n_ranks; r++)
        for (int q = 0; q < sim->n_queues; q++) {
            const struct rank *rank = &sim->ranks[r];
            const struct queue *queue = &rank->queues[q];
            if (queue->n_ops == 0 || queue->step == sim->total_steps)
                continue;
            fprintf(stderr,
                "flopcast: rank %d: queue %s stands before op %d (%s) of step %d, state %d\n",
                rank->number, sim->plan->queues.at[q].name, queue->op, queue_op(queue)->name,
                queue->step, queue->state);
        }
    BUG_IF(true, "deadlock; the host of rank 0 is before op %d of step %d, state %d",
        sim->ranks[0].host_end, sim->ranks[0].host_step, sim->ranks[0].host_state);
}

/* Ops a step of all ranks together, beyond which FOLD_AUTO is by the slowest: a second for a step.
 * Stages of a pipeline wait for each other's noise, which the slowest units alone have less of
 * (tests/bench/slowest): they have more. T5-11B on 512 GPUs has 15 million. */
static const int64_t MOST_OPS_OF_ALL = 5000000, MOST_OPS_OF_STAGES = 20000000;

static bool is_large(const struct plan *plan)
{
    int64_t ops = 0;
    for (int p = 0; p < plan->n_programs; p++)
        ops += (int64_t)plan_program_ops(&plan->programs[p]) * plan_program_ranks(plan);
    return ops > (plan->n_programs > 1 ? MOST_OPS_OF_STAGES : MOST_OPS_OF_ALL);
}

/* Unasked. */
static bool takes_slowest(const struct sim *sim)
{
    return sim->options->fold == FOLD_AUTO && is_large(sim->plan);
}

/* Other ranks would meet links as theirs, and are never waited for. */
static bool by_slowest(const struct sim *sim)
{
    return (sim->options->fold == FOLD_SLOWEST || takes_slowest(sim)) && !sim->fold.on &&
           exec_noise_is_on(&sim->options->noise) && !sim->fold.uneven && !documents_vary(sim) &&
           fabric_is_uniform(&sim->fabric) && sim->fabric.leaves == 0;
}

/* The first rank of each program, or all. */
static void choose_ranks(struct sim *sim)
{
    const struct plan *plan = sim->plan;
    sim->n_ranks = sim->fold.on ? plan->n_programs : plan->mesh.ranks;
    sim->fold.numbers = ARENA_ARRAY(sim->arena, int, sim->n_ranks);
    sim->fold.index_of = ARENA_ARRAY(sim->arena, int, plan->mesh.ranks);
    for (int i = 0; i < sim->n_ranks; i++)
        sim->fold.numbers[i] = sim->fold.on ? plan_first_rank(plan, i) : i;
    for (int r = 0; r < plan->mesh.ranks; r++)
        sim->fold.index_of[r] = sim->fold.on ? plan_program_of(plan, r) : r;
}

/* Steps of warm-up, at most; a job whose allocator is still finding segments then mostly does so
 * for ever. */
enum { MOST_WARMUP = 8 };

/* From here on the engine can run, unless the job is out of memory before its first step. */
static void sim_begin(struct sim *sim, bool keeps_ledgers)
{
    struct gpu_speeds *speeds = speeds_draw(sim);
    choose_ranks(sim);
    if (by_slowest(sim))
        slowest_choose(sim, speeds);
    setup_programs(sim);
    communicator_setup(sim);
    setup_kernels(sim);
    if (sim->options->noise.kernel_jitter > 0)
        rng_lognormal_prepare(&sim->kernel_jitter, sim->options->noise.kernel_jitter);
    setup_ranks(sim, speeds);
    int32_t most_steps = sim->total_steps + (sim->lengthens ? MOST_WARMUP : 0);
    sim->measure.step_end = ARENA_ARRAY(sim->arena, ps_t, most_steps);
    sim->measure.step_ranks = ARENA_ARRAY(sim->arena, int, most_steps);
    period_setup(sim);
    if (keeps_ledgers)
        ledger_setup(sim);
    trace_setup(sim);
    if (sim->memory.out_of_memory)
        return;
    if (sim->after)
        warm_resume(sim);
    for (int r = 0; r < sim->n_ranks && !sim->after; r++)
        host_begin_step(sim, r);
    warm_expect(sim);
    schedule(sim, &sim->options->link_events, sim->events.links);
    schedule(sim, &sim->options->gpu_events, sim->events.slow);
}

/* By rank the one whose timeline it has. */
static int *stand_ins(const struct sim *sim)
{
    int *stands_for = ARENA_ARRAY(sim->arena, int, sim->plan->mesh.ranks);
    for (int r = 0; r < sim->plan->mesh.ranks; r++)
        stands_for[r] = sim->fold.numbers[stand_in(sim, r)];
    return stands_for;
}

static void sim_end(struct sim *sim)
{
    progress_tell(sim, 1000);
    sim->result->overlong = sim->machine->engine.overlong;
    if (sim->machine->engine.overlong)
        return;
    if (!sim->memory.out_of_memory) {
        check_ended(sim);
        timing_result(sim);
        trace_result(sim);
    }
    if (sim->memory.ledgers)
        ledger_result(sim);
    sim->result->digest = sim->machine->engine.digest;
    sim->result->events = (double)sim->machine->engine.events;
    sim->result->ranks_simulated = sim->n_ranks;
    sim->result->folded = sim->fold.on;
    sim->result->stands_for =
        sim->measure.traced && sim->n_ranks < sim->plan->mesh.ranks ? stand_ins(sim) : NULL;
}

static void exec_simulate(struct sim *sim, bool keeps_ledgers)
{
    sim_begin(sim, keeps_ledgers);
    do {
        if (!sim->memory.out_of_memory)
            engine_run(&sim->machine->engine);
    } while (period_go_on(sim));
    sim_end(sim);
}

static void machine_open(struct machine *machine)
{
    *machine = (struct machine){0};
    engine_init(&machine->engine);
    net_init(&machine->net, &machine->engine);
}

static void machine_close(struct machine *machine)
{
    net_release(&machine->net);
    engine_release(&machine->engine);
}

static struct sim *sim_open(struct exec_result *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct machine *machine, struct arena *arena)
{
    *out = (struct exec_result){.status = EXEC_OK,
        .n_programs = plan->n_programs,
        .programs = ARENA_ARRAY(arena, struct exec_program, plan->n_programs)};
    struct sim *sim = xcalloc(1, sizeof *sim);
    sim->plan = plan;
    sim->options = options;
    sim->arena = arena;
    sim->costs.hw = hw;
    sim->result = out;
    sim->n_queues = plan->queues.n;
    sim->fold.simulated_share = 1;
    sim->warm.taken_at = INT64_MAX;
    BUG_IF(sim->n_queues > EXEC_MAX_QUEUES, "%d queues", sim->n_queues);
    sim->total_steps = (int32_t)(options->steps + options->warmup_steps);
    sim->machine = machine;
    sim->events.queue = engine_register(&sim->machine->engine, queue_on_event, sim);
    engine_prepare(&sim->machine->engine, sim->events.queue, queue_prepare);
    sim->events.host = engine_register(&sim->machine->engine, host_on_event, sim);
    sim->events.latency = engine_register(&sim->machine->engine, communicator_on_latency, sim);
    sim->events.comm_end = engine_register(&sim->machine->engine, communicator_on_end, sim);
    sim->events.links = engine_register(&sim->machine->engine, communicator_on_links, sim);
    sim->events.slow = engine_register(&sim->machine->engine, on_slow, sim);
    setup_links(sim);
    return sim;
}

static void sim_close(struct sim *sim)
{
    ledger_release(sim);
    period_release(sim);
    vec_free(&sim->costs.sm_states);
    vec_free(&sim->measure.spans);
    vec_free(&sim->measure.host_spans);
    vec_free(&sim->measure.busy);
    free(sim);
}

/* Where every rank has a ledger, as each step costs as much as the measured ones: of minGPT-175B at
 * the end of HBM the third step and all later ones are within 1 %. */
enum { MOST_WARMUP_OF_ALL = 3 };
/* Two steps may differ by this share: those of a pipeline do by up to 1e-4 for ever, as what meets
 * at one instant may come in another order; one that follows a cudaMalloc differs by 0.6 to 60 %
 * (tests/law/test_random_laws.c). */
static const double STEADY = 1e-3;

/* From which step on, as far as is known, a step makes no segment and takes as long as the one
 * before it, which is not so right after one that did: its kernels were late, and the host is not
 * yet ahead of them. */
static int64_t steady_from(const struct sim *sim)
{
    const ps_t *end = sim->measure.step_end;
    int64_t warmup = sim->options->warmup_steps, from = ledger_steady_from(sim);
    if (sim->memory.out_of_memory || sim->machine->engine.overlong || warmup == 0 || from > warmup)
        return from;
    double before = (double)(end[warmup - 1] - (warmup > 1 ? end[warmup - 2] : 0)),
           now = (double)(end[warmup] - end[warmup - 1]);
    return fabs(now - before) > STEADY * now ? warmup + 1 : from;
}

static bool change_later(const struct degrade_events *events)
{
    for (int i = 0; i < events->n; i++)
        if (events->list[i].at > 0)
            return true;
    return false;
}

/* Nothing that has been measured is of a step beyond this one, nor is any host there or at the end
 * of its run. */
static bool is_last_begun(const struct sim *sim, int32_t step)
{
    for (int r = 0; r < sim->n_ranks; r++)
        if (sim->ranks[r].host_step > step || sim->ranks[r].host_state == HOST_DONE)
            return false;
    return true;
}

void sim_warm_longer(struct sim *sim, int32_t step)
{
    struct exec_options *options = sim->lengthens;
    if (!options || step < options->warmup_steps || options->warmup_steps >= MOST_WARMUP ||
        options->n_trace_ranks > 0 || !is_last_begun(sim, step))
        return;
    options->warmup_steps = step + 1 < MOST_WARMUP ? step + 1 : MOST_WARMUP;
    sim->total_steps = (int32_t)(options->warmup_steps + options->steps);
    memset(sim->measure.carried, 0, sizeof *sim->measure.carried * (size_t)sim->fabric.n_links);
    for (int r = 0; r < sim->n_ranks; r++)
        memset(sim->ranks[r].spent, 0, sizeof sim->ranks[r].spent);
    ledger_forget_measured(sim);
    warm_expect(sim);
}

/* The job as one rank of each program: until its measured steps are steady once more, with more
 * steps of warm-up. options->warmup_steps: the least number; then those that it took. for_noise: a
 * run with noise will begin where this one stands (warm.c). */
static struct sim *simulate_folded(struct exec_result *out, const struct plan *plan,
    const struct hw *hw, struct exec_options *options, bool for_noise, struct arena *arena)
{
    bool as_asked = options->from_the_start || change_later(&options->link_events) ||
                    change_later(&options->gpu_events);
    if (options->warmup_steps == 1 && !as_asked && !options->no_memory)
        options->warmup_steps = 2; /* most jobs need two */
    for (;;) {
        struct machine machine;
        machine_open(&machine);
        struct sim *sim = sim_open(out, plan, hw, options, &machine, arena);
        sim->fold.on = true;
        sim->fold.siblings = can_fold(sim);
        sim->lengthens = as_asked ? NULL : options;
        sim->warm.wanted = for_noise && !as_asked;
        exec_simulate(sim, !options->no_memory);
        int64_t steady = steady_from(sim);
        machine_close(&machine);
        if (as_asked || steady <= options->warmup_steps || options->warmup_steps >= MOST_WARMUP)
            return sim;
        progress_tell(sim, 0);
        sim_close(sim);
        options->warmup_steps = steady < MOST_WARMUP ? steady : MOST_WARMUP;
    }
}

/* The one measured step is the one that hosts are in already where a run with noise begins
 * (warm.c): what they have done of it is part of that run's timeline. */
static void trace_first_of_programs(const struct sim *all, struct exec_options *quiet)
{
    quiet->n_trace_ranks = 0;
    if (all->options->n_trace_ranks == 0 || all->options->steps > 1)
        return;
    int *first = ARENA_ARRAY(all->arena, int, all->plan->n_programs);
    for (int p = 0; p < all->plan->n_programs; p++)
        first[p] = plan_first_rank(all->plan, p);
    quiet->trace_ranks = first;
    quiet->n_trace_ranks = all->plan->n_programs;
}

/* The same job alone without noise and GPUs slower than others, folded: for its ledgers, which are
 * those of the run itself unless they drained the GPU. Where links differ, the rank sees only the
 * links that its collectives use. */
static struct sim *sim_reference(
    const struct sim *all, struct exec_options *quiet, struct exec_result *out)
{
    *quiet = *all->options;
    quiet->noise = (struct noise_options){0};
    quiet->progress = NULL; /* short */
    trace_first_of_programs(all, quiet);
    if (all->fold.uneven)
        quiet->gpu_events.n = 0;
    return simulate_folded(out, all->plan, all->costs.hw, quiet, true, all->arena);
}

/* The allocator stops the hosts of all ranks where it stopped those of the reference, its measured
 * steps being theirs. */
static void sim_follow(struct sim *sim, const struct sim *reference)
{
    sim->memory.before = reference->memory.ledgers;
    sim->memory.before_steps =
        (int32_t)(reference->options->warmup_steps - sim->options->warmup_steps);
}

/* The slowest host of eight is 3 % behind in a burst of 100 ms (host_jitter 20 %), which is 0.06 %
 * of a step that is host-bound to 2 %. */
static const double HOSTS_MATTER = 0.02;

static void refer(struct exec_reference *to, const struct sim *sim)
{
    const struct exec_result *result = &to->result;
    to->quiet = arena_alloc(sim->arena, sizeof *to->quiet);
    to->one = sim_reference(sim, to->quiet, &to->result);
    to->ended = to->one->memory.out_of_memory || result->overlong;
    to->drained = ledger_drains_from(to->one, (int32_t)to->quiet->warmup_steps);
    to->hosts_matter = result->breakdown.host_bound_s > HOSTS_MATTER * result->step_time_s;
}

/* Until the run itself has another one. */
static void exec_take_quiet(struct sim *sim, const struct exec_result *quiet)
{
    struct exec_program *programs = sim->result->programs;
    memcpy(programs, quiet->programs, sizeof *programs * (size_t)quiet->n_programs);
    *sim->result = *quiet;
    sim->result->programs = programs;
}

void exec_reference_release(struct exec_reference *reference)
{
    if (reference->one)
        sim_close(reference->one);
}

static void warm_up(struct sim *sim, int64_t steps)
{
    struct exec_options *options = arena_alloc(sim->arena, sizeof *options);
    *options = *sim->options;
    options->warmup_steps = steps;
    sim->options = options;
    sim->total_steps = (int32_t)(options->warmup_steps + options->steps);
}

/* Ranks that are not folded. The ledger of one says where the allocator will stand in the way of
 * all. Where exec_alike() holds here, ranks are simulated one by one although nothing varies, as
 * with fold off or links that differ. They take the warm-up of the reference, so that both give the
 * same times. */
static void simulate_ranks(struct sim *sim)
{
    struct exec_reference own = {0};
    const struct exec_reference *reference = sim->options->reference;
    sim->fold.hosts_matter = true; /* without a look at it */
    if (sim->options->progress && takes_slowest(sim))
        sim->options->progress->by_slowest = true;
    if (sim->options->no_memory) {
        exec_simulate(sim, false);
        return;
    }
    if (!reference || !reference->one) {
        reference = &own;
        refer(&own, sim);
    }
    exec_take_quiet(sim, &reference->result);
    sim->fold.hosts_matter = reference->hosts_matter;
    bool keeps_ledgers = !exec_alike(sim) && reference->drained;
    int64_t floor = sim->options->warmup_steps, warmup = reference->quiet->warmup_steps;
    if (exec_alike(sim))
        warm_up(sim, warmup);
    else if (keeps_ledgers)
        warm_up(sim, floor > MOST_WARMUP_OF_ALL || warmup < MOST_WARMUP_OF_ALL
                         ? warmup
                         : MOST_WARMUP_OF_ALL);
    else if (reference->one->warm.ranks && !sim->options->noisy_warmup && !sim->fold.uneven) {
        warm_up(sim, warmup);
        sim->after = reference->one;
    } else if (warmup > 0 && floor == 0)
        warm_up(sim, 1); /* a host ahead of its GPU is part of a steady step */
    sim_follow(sim, reference->one);
    if (!reference->ended)
        exec_simulate(sim, keeps_ledgers);
    exec_reference_release(&own);
}

static bool folds(struct sim *sim)
{
    sim->fold.siblings = can_fold(sim);
    sim->fold.on = sim->options->fold != FOLD_OFF && exec_alike(sim) && sim->fold.siblings;
    return sim->fold.on;
}

static void exec_check_plan(const struct plan *plan)
{
    char why[256];
    BUG_IF(!plan_check(plan, why, sizeof why), "%s", why);
}

void exec_refer(struct exec_reference *reference, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena)
{
    struct machine machine;
    struct exec_result unused;
    exec_check_plan(plan);
    machine_open(&machine);
    struct sim *sim = sim_open(&unused, plan, hw, options, &machine, arena);
    if (!folds(sim) && !options->no_memory)
        refer(reference, sim);
    sim_close(sim);
    machine_close(&machine);
}

void exec_run(struct exec_result *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena)
{
    if (!options->reference)
        exec_check_plan(plan);
    BUG_IF(options->steps < 1 || options->warmup_steps < 0 ||
               options->steps + options->warmup_steps > EXEC_MAX_STEPS,
        "%lld + %lld steps", (long long)options->warmup_steps, (long long)options->steps);
    struct machine machine;
    machine_open(&machine);
    struct exec_options one = *options;
    struct sim *sim = sim_open(out, plan, hw, options, &machine, arena);
    if (folds(sim))
        sim_close(simulate_folded(out, plan, hw, &one, false, arena));
    else
        simulate_ranks(sim);
    sim_close(sim);
    machine_close(&machine);
}
