/* One history of a job: phases that events end, on the engine of the simulator with nanoseconds as
 * its unit.
 *
 * The job is always in one phase. enter() ends it, adds its time to the cause's account, and sets
 * the event that will end the next one. An event cannot be taken back, so each phase has a number
 * (epoch), and an event of an earlier phase is ignored; the checkpoint that is being written has
 * such a number, too. All accounts add up to the length of the history.
 *
 * Work is counted in time of the whole job at full speed: `done` since the start, `captured` in the
 * checkpoint that is being written, `saved` in the last that was. A failure moves done - saved from
 * training to lost work. With fewer nodes, or beside a slow one, part of the time that passes is no
 * work; it is booked as shrunk or slowed when the phase ends, so whatever changes the speed in the
 * middle of training must end the phase first (gets_slow does).
 *
 * Each part has a random stream, so a part fails at the same times whatever the interval of
 * checkpoints, and histories of two intervals can be compared. A failed part has its next failure
 * at an exponential time from then on, also while the job stands still.
 *
 * Subtle: nodes that come are alike. One goes first to a job that waits, then to one that
 * runs without it, then to the spares. A planned restart (maintenance, a slow node, nodes that have
 * come back) is a checkpoint with `planned` set: it waits until all is written, and then
 * restarts. */
#include "goodput/goodput.h"

#include "base/rng.h"
#include "base/vec.h"
#include "engine/engine.h"

#include <math.h>

static const double NS_PER_S = 1e9;

/* What the job does now. */
enum phase { PHASE_TRAINING, PHASE_CHECKPOINT, PHASE_DETECTION, PHASE_WAITING, PHASE_RESTART };
static const enum goodput_time time_of_phase[] = {
    [PHASE_TRAINING] = GOODPUT_TRAINING,
    [PHASE_CHECKPOINT] = GOODPUT_CHECKPOINT,
    [PHASE_DETECTION] = GOODPUT_DETECTION,
    [PHASE_WAITING] = GOODPUT_WAITING,
    [PHASE_RESTART] = GOODPUT_RESTART,
};
/* Streams beside those of the parts, whose kind is their enum goodput_cause. */
enum { STREAM_MAINTENANCE = GOODPUT_MAINTENANCE, STREAM_SLOW_NODE = GOODPUT_SLOW_NODE };

struct history {
    struct engine engine;
    const struct goodput_job *job;
    struct goodput_run *out;
    struct goodput_costs costs;
    ps_t end, interval; /* all times are ns */
    struct rng_stream *streams[GOODPUT_PARTS], *slow_streams, maintenance_stream;
    uint32_t on_failure[GOODPUT_PARTS], on_phase, on_written, on_node, on_maintenance, on_end,
        on_slow, on_found;
    enum phase phase;
    ps_t since;               /* when the phase began */
    int cause;                /* of it */
    uint64_t epoch;           /* of the phase: an event of an earlier one means nothing */
    uint64_t writing;         /* of the checkpoint that is written; the same */
    bool is_writing, planned; /* planned: the job starts again after the checkpoint */
    int planned_for;          /* its cause */
    ps_t trains_until;        /* in training: the next checkpoint */
    int64_t slow;             /* nodes of the job that are */
    ps_t done, captured,
        saved; /* training: so far, in the checkpoint that is written, in the last that was */
    int64_t spares, missing; /* nodes; missing: it waits for them */
    int64_t away;            /* nodes without which it goes on */
    int away_cause;
    double size; /* of the job in training, of the whole */
};

static ps_t ns_from_s(double seconds)
{
    return ps_round(seconds * NS_PER_S);
}

/* An event after the end of the history is none. */
static void after(
    struct history *history, double seconds, uint32_t kind, uint32_t target, uint64_t arg)
{
    ps_t time = history->engine.now + ns_from_s(seconds);
    if (time < history->end)
        engine_at(&history->engine, time, kind, target, arg);
}

/* What could train now: all nodes but those that are away, in whole replicas. */
static double possible_size(const struct history *history)
{
    int64_t nodes = history->job->parts[GOODPUT_NODE],
            replica = history->job->options.elastic_nodes;
    int64_t whole = history->away == 0 ? nodes : (nodes - history->away) / replica * replica;
    return (double)whole / (double)nodes;
}

/* Ends the phase and counts its time. Time in training is first cut to the share of nodes that
 * train, then by the slowdown; the rests have accounts. */
static void enter(struct history *history, enum phase phase, int cause, double seconds)
{
    struct goodput_run *out = history->out;
    bool trained = history->phase == PHASE_TRAINING;
    ps_t spent = history->engine.now - history->since;
    ps_t there = trained && history->size < 1 ? ps_round((double)spent * history->size) : spent;
    double slowdown = trained && history->slow > 0 ? history->job->options.slow_node_slowdown : 0;
    ps_t work = slowdown > 0 ? ps_round((double)there / (1 + slowdown)) : there;
    out->time_s[time_of_phase[history->phase]][history->cause] += (double)work / NS_PER_S;
    out->time_s[GOODPUT_SHRUNK][history->away_cause] += (double)(spent - there) / NS_PER_S;
    out->time_s[GOODPUT_SLOWED][GOODPUT_SLOW_NODE] += (double)(there - work) / NS_PER_S;
    history->done += trained ? work : 0;
    history->phase = phase;
    history->since = history->engine.now;
    history->cause = cause;
    history->epoch++;
    if (seconds >= 0) /* else what it waits for ends it */
        after(history, seconds, history->on_phase, 0, history->epoch);
}

static void train(struct history *history)
{
    history->trains_until = history->engine.now + history->interval;
    enter(history, PHASE_TRAINING, GOODPUT_NO_CAUSE, (double)history->interval / NS_PER_S);
}

static void restart(struct history *history, int cause)
{
    history->size = possible_size(history);
    enter(history, PHASE_RESTART, cause, history->costs.restart_s + history->costs.load_s);
}

/* One checkpoint is written at a time: the next waits for it. */
static void checkpoint(struct history *history)
{
    if (!history->planned && possible_size(history) > history->size) {
        history->planned = true;
        history->planned_for = history->away_cause;
    }
    enter(history, PHASE_CHECKPOINT, history->planned ? history->planned_for : GOODPUT_NO_CAUSE,
        history->is_writing
            ? -1
            : history->costs.stall_s + (history->planned ? history->costs.write_s : 0));
}

static void end_checkpoint(struct history *history)
{
    history->out->checkpoints++;
    if (history->planned || !history->job->options.async_checkpoint) {
        history->saved = history->done;
    } else {
        history->captured = history->done;
        history->is_writing = true;
        after(history, history->costs.write_s, history->on_written, 0, ++history->writing);
    }
    if (history->planned)
        restart(history, history->planned_for);
    else
        train(history);
    history->planned = false;
}

static void phase_ends(void *self, const struct event *event)
{
    struct history *history = self;
    if (event->arg != history->epoch)
        return;
    switch (history->phase) {
    case PHASE_TRAINING:
        checkpoint(history);
        break;
    case PHASE_CHECKPOINT:
        end_checkpoint(history);
        break;
    case PHASE_DETECTION:
        if (history->missing > 0)
            enter(history, PHASE_WAITING, history->cause, -1);
        else
            restart(history, history->cause);
        break;
    case PHASE_RESTART:
        train(history);
        break;
    case PHASE_WAITING:
        BUG_IF(true, "a node's coming ends this phase");
    }
}

static void is_written(void *self, const struct event *event)
{
    struct history *history = self;
    if (event->arg != history->writing || !history->is_writing)
        return;
    history->is_writing = false;
    history->saved = history->captured;
    if (history->phase == PHASE_CHECKPOINT)
        checkpoint(history);
}

static void node_comes(void *self, const struct event *event)
{
    (void)event;
    struct history *history = self;
    if (history->missing > 0) {
        if (--history->missing == 0 && history->phase == PHASE_WAITING)
            restart(history, history->cause);
    } else if (history->away > 0) {
        history->away--;
        if (history->phase == PHASE_TRAINING && possible_size(history) > history->size)
            checkpoint(history);
    } else {
        history->spares++;
    }
}

static void lose_work(struct history *history, int cause)
{
    double lost = (double)(history->done - history->saved) / NS_PER_S;
    history->out->time_s[GOODPUT_TRAINING][GOODPUT_NO_CAUSE] -= lost;
    history->out->time_s[GOODPUT_LOST][cause] += lost;
    history->done = history->saved;
    history->is_writing = history->planned = false;
    history->writing++;
}

static void next_failure(struct history *history, int part, uint32_t id)
{
    double seconds =
        rng_exponential(&history->streams[part][id], history->job->options.mtbf_s[part]);
    after(history, seconds, history->on_failure[part], id, (uint64_t)part);
}

/* A node of the job has failed, or a switch: who takes its place? In this order: a spare, then
 * going on without a replica, then waiting. Whoever takes the place, a node is ordered. */
static void goodput_simulate_replace(struct history *history, int part)
{
    const struct goodput_options *options = &history->job->options;
    bool node = part != GOODPUT_SWITCH;
    int64_t left = history->job->parts[GOODPUT_NODE] - history->away - 1;
    if (node && history->spares > 0) {
        history->spares--;
    } else if (node && options->elastic_nodes > 0 && left >= options->elastic_nodes) {
        history->away++;
        history->away_cause = part;
    } else {
        history->missing++;
    }
    after(history, options->replacement_s, history->on_node, 0, 0);
}

/* A part of a node that is away does not fail. */
static bool is_away(struct history *history, int part, uint32_t id)
{
    double share = (double)history->away / (double)history->job->parts[GOODPUT_NODE];
    return part != GOODPUT_SWITCH && share > 0 && rng_uniform(&history->streams[part][id]) < share;
}

static void part_fails(void *self, const struct event *event)
{
    struct history *history = self;
    const struct goodput_options *options = &history->job->options;
    int part = (int)event->arg;
    if (is_away(history, part, event->target)) {
        next_failure(history, part, event->target);
        return;
    }
    bool hangs = rng_uniform(&history->streams[part][event->target]) < options->hang_share;
    history->out->interruptions[part]++;
    history->out->hangs += hangs;
    enter(history, PHASE_DETECTION, part,
        hangs ? options->nccl_timeout_s : options->detection_s[part]);
    lose_work(history, part);
    if (part != GOODPUT_SOFTWARE)
        goodput_simulate_replace(history, part);
    next_failure(history, part, event->target);
}

static void next_maintenance(struct history *history)
{
    double mean_s = history->job->options.maintenance_interval_s;
    if (mean_s > 0)
        after(history, rng_exponential(&history->maintenance_stream, mean_s),
            history->on_maintenance, 0, 0);
}

/* While the job stands still or writes, maintenance is part of that. */
static void maintenance_begins(void *self, const struct event *event)
{
    (void)event;
    struct history *history = self;
    history->out->interruptions[GOODPUT_MAINTENANCE]++;
    if (history->phase == PHASE_TRAINING) {
        history->planned = true;
        history->planned_for = GOODPUT_MAINTENANCE;
        checkpoint(history);
    }
    next_maintenance(history);
}

static void next_slow(struct history *history, uint32_t node)
{
    double seconds =
        rng_exponential(&history->slow_streams[node], history->job->options.slow_node_mtbf_s);
    after(history, seconds, history->on_slow, node, 0);
}

static void gets_slow(void *self, const struct event *event)
{
    struct history *history = self;
    double found_s = history->job->options.slow_node_detection_s;
    if (history->phase == PHASE_TRAINING) /* up to here as before, then the rest of the interval */
        enter(history, PHASE_TRAINING, GOODPUT_NO_CAUSE,
            (double)(history->trains_until - history->engine.now) / NS_PER_S);
    history->slow++;
    if (found_s > 0)
        after(history, found_s, history->on_found, event->target, false);
}

/* arg: whether another node has come in its place. Called a second time, with arg set, when the
 * ordered node has come. The old one stays in the job until then. */
static void slow_is_found(void *self, const struct event *event)
{
    struct history *history = self;
    const struct goodput_options *options = &history->job->options;
    bool has_come = event->arg;
    if (!has_come && history->spares == 0) {
        after(history, options->replacement_s, history->on_found, event->target, true);
        return;
    }
    if (!has_come) {
        history->spares--;
        after(history, options->replacement_s, history->on_node, 0, 0);
    }
    history->out->interruptions[GOODPUT_SLOW_NODE]++;
    bool trains = history->phase == PHASE_TRAINING;
    if ((trains || history->phase == PHASE_CHECKPOINT) && !history->planned) {
        history->planned = true;
        history->planned_for = GOODPUT_SLOW_NODE;
    }
    if (trains)
        checkpoint(history);
    history->slow--;
    next_slow(history, event->target);
}

static void begin_slow_nodes(struct history *history, uint64_t seed)
{
    int64_t n = history->job->options.slow_node_mtbf_s > 0 ? history->job->parts[GOODPUT_NODE] : 0;
    history->slow_streams = xcalloc((size_t)n + 1, sizeof *history->slow_streams);
    history->on_slow = engine_register(&history->engine, gets_slow, history);
    history->on_found = engine_register(&history->engine, slow_is_found, history);
    for (int64_t id = 0; id < n; id++) {
        history->slow_streams[id] = rng_stream(seed, STREAM_SLOW_NODE, (uint64_t)id);
        next_slow(history, (uint32_t)id);
    }
}

static void history_ends(void *self, const struct event *event)
{
    (void)event;
    struct history *history = self;
    enter(history, history->phase, history->cause, -1);
    engine_stop(&history->engine);
}

static void begin_parts(struct history *history, uint64_t seed)
{
    for (int part = 0; part < GOODPUT_PARTS; part++) {
        int64_t n = history->job->options.mtbf_s[part] > 0 ? history->job->parts[part] : 0;
        history->streams[part] = xcalloc((size_t)n + 1, sizeof *history->streams[part]);
        history->on_failure[part] = engine_register(&history->engine, part_fails, history);
        for (int64_t id = 0; id < n; id++) {
            history->streams[part][id] = rng_stream(seed, (uint32_t)part, (uint64_t)id);
            next_failure(history, part, (uint32_t)id);
        }
    }
    history->maintenance_stream = rng_stream(seed, STREAM_MAINTENANCE, 0);
    next_maintenance(history);
}

void goodput_simulate(struct goodput_run *out, const struct goodput_job *job, double interval_s,
    double days, uint64_t seed)
{
    BUG_IF(!(days > 0 && days <= GOODPUT_MAX_DAYS), "%g days", days);
    BUG_IF(!(job->step_s > 0 && interval_s > 0), "steps of %g s, checkpoints after %g s",
        job->step_s, interval_s);
    double steps = fmax(1, floor(fmin(interval_s, days * S_PER_DAY) / job->step_s + 0.5));
    *out = (struct goodput_run){.elapsed_s = days * S_PER_DAY};
    struct history history = {.job = job,
        .out = out,
        .costs = goodput_costs(job),
        .end = ns_from_s(days * S_PER_DAY),
        .interval = ns_from_s(steps * job->step_s),
        .cause = GOODPUT_NO_CAUSE,
        .away_cause = GOODPUT_NO_CAUSE,
        .size = 1,
        .spares = goodput_hot_spares(job)};
    engine_init(&history.engine);
    history.on_phase = engine_register(&history.engine, phase_ends, &history);
    history.on_written = engine_register(&history.engine, is_written, &history);
    history.on_node = engine_register(&history.engine, node_comes, &history);
    history.on_maintenance = engine_register(&history.engine, maintenance_begins, &history);
    history.on_end = engine_register(&history.engine, history_ends, &history);
    begin_parts(&history, seed);
    begin_slow_nodes(&history, seed);
    engine_at(&history.engine, history.end, history.on_end, 0, 0);
    train(&history);
    engine_run(&history.engine);
    out->digest = history.engine.digest;
    for (int part = 0; part < GOODPUT_PARTS; part++)
        free(history.streams[part]);
    free(history.slow_streams);
    engine_release(&history.engine);
}

void goodput_simulate_all(struct goodput_run *out, int n, const struct goodput_job *job,
    double interval_s, double days, uint64_t seed)
{
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < n; i++)
        goodput_simulate(&out[i], job, interval_s, days, seed + (uint64_t)i);
}

double goodput_lost_share(const struct goodput_run *run, enum goodput_time time)
{
    double seconds = 0;
    for (int cause = 0; cause <= GOODPUT_NO_CAUSE; cause++)
        seconds += run->time_s[time][cause];
    return seconds / run->elapsed_s;
}

double goodput_share(const struct goodput_run *run)
{
    return goodput_lost_share(run, GOODPUT_TRAINING);
}
