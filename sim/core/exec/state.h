/* Private to exec/: the state of a run. Everything lives in struct sim; handlers get it as self.
 *
 * Who calls whom: the host issues ops (host.c), queues start and end them (queue.c, with the
 * kernels ahead in ahead.c, idle time in idle.c), communicators bring the ranks together
 * (communicator.c), the ledger is the allocator (ledger.c). Between them there are these ways only:
 * host -> queue_try_all, ledger_op; queue -> communicator_arrive, host_check; communicator ->
 * queue_retime, queue_finish. */
#ifndef FLOPCAST_EXEC_STATE_H
#define FLOPCAST_EXEC_STATE_H

#include "base/rng.h"
#include "engine/engine.h"
#include "exec/exec.h"
#include "exec/ledger.h"
#include "fabric/fabric.h"
#include "net/net.h"
#include "plan/fold.h"

#include <math.h>

/* Durations of a kernel whatever collectives hold, seconds, as in kernel.h. */
struct kernel_cost {
    double memory_s, floor_s, start_s;
    double pairs_share; /* of compute, with the pairs within documents: attention_pairs_share() */
    uint8_t speed;      /* enum gpu_speed: the one of its GPU that it goes by */
};

/* How GPUs of one kind differ (gpu_speed_spread, gpu_speed_spread_below). */
enum gpu_speed { SPEED_LIMITED, SPEED_BELOW, SPEED_COUNT };
struct gpu_speeds {
    double of[SPEED_COUNT]; /* 1 = nominal */
};

/* What kernels get of a GPU on which collectives hold `sms` SMs. The first state: no collective is
 * there. */
struct sm_state {
    double sms;
    double *compute_s; /* of each kernel */
};

/* What memory_slowdown() of queue.c has found; state 0 needs none. */
struct slowdown {
    int sm_state;
    double hbm_Bps, factor;
};
enum { SLOWDOWNS = 64 };

/* What is drawn for a kernel that runs: how much longer it takes as a whole, and its compute alone.
 */
struct kernel_draws {
    double jitter, compute;
};

enum queue_state { QUEUE_WAITING, QUEUE_RUNNING, QUEUE_IN_COMM };

struct queue {
    int32_t n_ops;    /* the program's on this queue */
    int32_t position; /* of the next one among them: */
    int32_t op;
    struct plan_cursor cursor;
    int64_t done; /* ops completed since the run began: step x n_ops + position */
    int32_t step;
    uint32_t epoch;       /* of the event that ends the op or wakes the queue */
    uint64_t blocks;      /* queues of the rank that wait for an op of this one, a bit for each */
    int64_t blocks_until; /* they wait until this number of them is done */
    uint8_t state;
    bool wake_pending; /* an event stands at the issue time of the next op */
    bool issue_known;
    double sms_held; /* by the collective or message that the queue is in; 0: in none */
    double hbm_Bps;  /* that it takes; 0: it does not move */
    double start_s;  /* running kernel: part of its time, as a collective was resident when it
                        started */
    ps_t issue;      /* of the next op, when known */
    ps_t issue_base; /* of the host burst that issues it: when it began, and its first op */
    int32_t issue_first;
    ps_t idle_since; /* end of the last op */
    ps_t idle_comm;  /* compute queue: idle_in_collectives() of then */
    int32_t last_op; /* that ended last; what follows is of it */
    ps_t last_began;
    ps_t last_moved;           /* of a collective: when its last member had arrived */
    ps_t started;              /* running op: (re)start at the current speed */
    ps_t end;                  /* running kernel: when it ends unless its speed changes */
    double left;               /* running op: share of its work not done at started */
    ps_t alone_ps;             /* running op: of the whole op without collectives beside it */
    struct kernel_draws draws; /* running op */
    ps_t spent;                /* running op: time at earlier speeds */
    uint64_t noise_key;        /* of its stream of numbers */
};

/* Kernels of the compute queue that will follow the running one without a gap: see ahead.c. */
enum { AHEAD = 8 };
struct ahead {
    int n, at; /* how many; how many of them have begun */
    int event; /* of how many the end of the last is the event; 0: of the kernel before them */
    struct ahead_kernel {
        ps_t end;
        struct kernel_draws draws;
    } kernels[AHEAD];
};

/* How many launches the host can be ahead of the GPU: CUDA's launch queue takes about a thousand,
 * then cudaLaunchKernel blocks. The depth is not documented; 1024 is what microbenchmarks of launch
 * throughput show. It drains to half before the host is woken here, which saves an event for every
 * kernel and changes no issue time that matters. */
enum { LAUNCH_QUEUE = 1024 };

/* HOST_DRAINING: cudaMalloc has failed; PyTorch waits until the GPU has finished all that was
 * issued. */
enum host_state { HOST_RUNNING, HOST_BLOCKED, HOST_QUEUE_FULL, HOST_DRAINING, HOST_DONE };

/* What is looked up in a program; the same for all ranks that run it. */
struct program_tables {
    const struct plan_program *program;
    const struct plan_fold *fold; /* the program's, or made of it */
    int32_t n_ops;
    int32_t n_launches;           /* device ops */
    int *group_queue;             /* by group: where its collectives are, -1: there are none */
    int *send_queue, *recv_queue; /* by channel, likewise */
};

/* What a rank's time went to, as in struct exec_breakdown: sums of whole picoseconds, which are the
 * same in any order. Of each parallelism SPENT_MOVING and SPENT_EXPOSED. */
enum spent {
    SPENT_COMPUTE,
    SPENT_CONTENTION,
    SPENT_OPTIMIZER,
    SPENT_EXPOSED_COMM,
    SPENT_EXPOSED_WAIT,
    SPENT_HOST_BOUND,
    SPENT_COMM,
    SPENT_COMM_LATENCY,
    SPENT_COMM_WAIT,
    SPENT_BUBBLE,
    SPENT_STAGE_WAIT,
    SPENT_MOVING,
    SPENT_EXPOSED = SPENT_MOVING + PARALLEL_COUNT,
    SPENT_COUNT = SPENT_EXPOSED + PARALLEL_COUNT
};

struct rank {
    int number;  /* in the job */
    int program; /* that it runs */
    const struct program_tables *tables;
    struct queue *queues;
    /* A bit for each queue, so that those that do not matter are not read: */
    uint64_t waiting; /* it has ops, and is in none of them */
    uint64_t
        blocked; /* its next op was issued, and waits for another queue: in `blocks` of this one */
    uint64_t
        unissued; /* the host has not come to its next op, the first of these is `unissued_from` */
    uint64_t running, holding; /* a kernel runs on it; a collective that it is in holds SMs */
    ps_t host_base;            /* the current host burst began */
    int32_t host_first;        /* its first op */
    int32_t host_end;          /* the op that ends it (not issued in it), or the number of ops */
    const struct plan_stretch *host_stretch; /* that host_end is in, mostly (host.c) */
    double host_first_s;                     /* host time of the ops before the first */
    int64_t host_launched;                   /* device ops before that, of all steps */
    struct wanted host_awaits;               /* HOST_BLOCKED: for what */
    int64_t unissued_from;                   /* counted in ops of all steps, as host_reached() is */
    int64_t done;                            /* device ops completed, all queues */
    int32_t host_step;
    int32_t next_stop;  /* of the reference run */
    int32_t pairs_step; /* of which pairs and tokens are; -1: none yet */
    uint8_t host_state;
    bool slows_starts;       /* kernels that start take start_s longer: a collective is resident */
    ps_t drain_since;        /* HOST_DRAINING: since when */
    double host_factor;      /* jitter of the host burst */
    struct gpu_speeds drawn; /* by noise, persistent */
    double share;            /* what is left of it at the moment, where the GPU is slow */
    int sm_state;      /* of costs.sm_states: by what the collectives on the GPU hold together */
    int in_collective; /* queues that are in one, to the end of its last event */
    ps_t comm_since;   /* in_collective: since when */
    ps_t comm_total;   /* in collectives before that */
    /* what collectives do to kernels: */
    const double *compute_s; /* of each kernel on the SMs that they leave */
    double *alone_s;         /* of each kernel, when no collective is there; 0: not known yet */
    double memory_slowdown;  /* of memory time */
    double traffic;          /* of both, kernel_traffic() */
    ps_t held_since;         /* the collectives that are: since this instant these */
    double *pairs;  /* of each micro-batch of this step: those within its documents, of all. NULL:
                       none varies */
    double *tokens; /* of each micro-batch: over the mean; NULL: all have as many */
    struct ahead ahead;
    struct rng_stream host_noise, pauses;
    ps_t next_pause;         /* of the host; PS_NEVER: none */
    ps_t spent[SPENT_COUNT]; /* since measuring began */
};

/* Ranks that run collectives of one process group one after the other, or messages from one rank to
 * another: the k-th of each member meets the k-th of the others. */
struct communicator {
    int group;    /* of the plan; -1: */
    int channel;  /* of the plan */
    int from, to; /* ranks; a channel's */
    struct coll_group members;
    int flow;      /* in net */
    int n_parties; /* members that are simulated, which are, of a group: */
    int *parties;  /* in ascending order */
    int sibling;   /* the next of those without a party that do as this one, and whose links are
                      loaded with its own; -1: none */
    int arrived;
    ps_t start;
    struct coll_cost cost;
    struct link_weight *uses; /* for collectives that load links as uses_of does */
    int n_uses, room_uses;
    struct coll_cost uses_of;
    struct rng_stream noise;
};

/* Who owns a random stream. */
enum entity {
    ENTITY_GPU = 1,
    ENTITY_KERNEL,
    ENTITY_HOST,
    ENTITY_COLLECTIVE,
    ENTITY_NODE,
    ENTITY_PAUSE,
    ENTITY_DOCUMENTS
};

/* Time, and the links between GPUs. */
struct machine {
    struct engine engine;
    struct net net;
};

/* Which ranks are simulated, and for whom each stands: all for themselves, the first of each
 * program (on), or those of the slowest nodes (slowest.c). */
struct representatives {
    int *numbers;  /* in the job, of the n_ranks that are simulated, in ascending order of programs
                      or ranks */
    int *index_of; /* of each rank of the job: of the one that stands for it; -1: none */
    bool on;       /* the first rank of each program */
    bool siblings; /* communicators without a simulated rank do as those of the ranks that stand for
                      theirs */
    bool uneven;   /* at some time some GPU is slower than another */
    /* of the slowest: */
    double hosts_behind;    /* standard deviations of host bursts, as hosts of others may be slower;
                               else 0 */
    double simulated_share; /* of the ranks; else 1 */
    bool hosts_matter; /* a step waits for hosts, so every rank of a set in lockstep is simulated */
    bool watched_alone; /* links of other nodes are left out */
    bool *watched; /* nodes of ranks that are simulated, by whose links the rates are decided; NULL:
                      all */
};

/* Where ranks meet. */
struct meetings {
    struct communicator *all; /* of groups, then of channels (by sender) */
    int n;
    int *group_first, *channel_first; /* their first communicators */
    bool *group_meets_stages;         /* by group: ranks of several stages are in it */
    struct link_weight *uses;         /* scratch: one for each link */
};

/* What a kernel, a collective or a message takes alone. */
struct costs {
    const struct hw *hw;
    struct kernel_cost *kernels;
    VEC(struct sm_state) sm_states;
    struct slowdown slowdowns[SLOWDOWNS]; /* each in the place that its digest says */
    const struct hw_gpu
        *alone_on; /* the GPU that alone_s is of: what any byte takes on all of it */
    double alone_s;
    struct coll_cost *collectives;                  /* of each of the plan */
    struct coll_cost (*messages)[FABRIC_WAY_COUNT]; /* of each of the plan */
};

/* What a run is asked for. */
struct measure {
    ps_t *step_end;  /* latest over ranks */
    int *step_ranks; /* how many have ended it */
    ps_t from;
    double
        *carried; /* by link, bytes: from then on, to the end of the last step on the last rank */
    bool *traced; /* by rank; NULL: none */
    VEC(struct exec_span) spans;
    VEC(struct exec_span)
    busy; /* trace_gaps: of the compute queue; in the order of their ends,
             too, which the last of a rank has not come to */
    VEC(struct exec_host_span) host_spans;
};

/* HBM: of each rank a ledger, or NULL: replay the stops of the reference run. */
struct memory {
    struct ledger *ledgers;
    const struct ledger *before; /* by program; NULL: memory is not followed */
    int32_t before_steps;        /* the first step is this one of the reference run */
    bool out_of_memory;
    int oom_program;
};

/* A rank of each program at an instant of the last step of warm-up of a quiet run (warm.c). */
struct warm {
    bool wanted;
    int64_t taken_at; /* ops of the first rank's compute queue after which it is taken; INT64_MAX:
                         not at all, or no more */
    ps_t now;
    struct rank *ranks;   /* NULL: it was not taken */
    struct queue *queues; /* n_queues of each, in the order of programs */
    int32_t steps;        /* that all of them have ended */
};

/* Where the first rank's compute queue was when periods were skipped, and how many. */
struct period_skipped {
    int32_t op;
    int64_t times;
};

/* What repeats itself is skipped (period.c). */
struct period {
    int64_t look_at; /* ops of the first rank's compute queue after which the run is looked at;
                        INT64_MAX: never */
    bool asked;      /* it is, before the next event */
    int32_t step;    /* of the looks */
    int fails;       /* how often the allocator was in the way, since something was skipped */
    VEC(struct period_skipped) skipped;
    int n; /* looks of the step since something was skipped; the last of them are kept: */
    struct period_look *looks; /* NULL: nothing is skipped */
    int *meetings;             /* communicators that matter */
    int n_meetings;
};

struct sim {
    const struct plan *plan;
    const struct exec_options *options;
    int32_t total_steps;
    struct warm warm; /* of this run */
    struct period period;
    const struct sim *after;        /* the quiet run whose warm-up it has; NULL: it has its own */
    struct exec_options *lengthens; /* those above, whose warm-up may get longer as the run goes on;
                                       NULL: it may not */
    struct arena *arena;
    struct machine *machine;
    struct {
        uint32_t queue, host, latency, comm_end, links, slow;
    } events;
    struct fabric fabric;
    struct representatives fold;
    struct program_tables *tables; /* by program */
    int n_ranks, n_queues;         /* simulated: all, or those of fold; of each */
    struct rank *ranks;
    struct queue *queues; /* of all ranks, n_queues each */
    struct meetings meetings;
    struct costs costs;
    struct rng_lognormal kernel_jitter;
    struct memory memory;
    struct measure measure;
    struct exec_result *result;
    int reported; /* thousandths, to options->progress */
};

static inline const struct plan_op *op_of(const struct rank *rank, int32_t op)
{
    return plan_fold_op(rank->tables->fold, op);
}
/* What it waits for, w from 0 on. */
static inline plan_wait wait_of(const struct rank *rank, int32_t op, int w)
{
    return plan_fold_wait(rank->tables->fold, op, w);
}
/* The op that a queue is at, or comes to next. */
static inline const struct plan_op *queue_op(const struct queue *queue)
{
    return plan_cursor_op(&queue->cursor);
}

static inline bool is_simulated(const struct sim *sim, int number)
{
    int index = sim->fold.index_of[number];
    return index >= 0 && sim->fold.numbers[index] == number;
}

/* The queues of a set, the first to the last. */
#define EACH_QUEUE(q, set)                                                                         \
    (uint64_t left_ = (set), q = 0; left_ && (q = (uint64_t)__builtin_ctzll(left_), true);         \
        left_ &= left_ - 1)
enum { EXEC_MAX_QUEUES = 64 };
static inline uint64_t queue_bit(int queue)
{
    return UINT64_C(1) << queue;
}

/* To its next op. True: that is of the next step. */
static inline bool queue_go_on(struct rank *rank, int queue_index)
{
    const struct plan_fold *fold = rank->tables->fold;
    struct queue *queue = &rank->queues[queue_index];
    bool ends = ++queue->position == queue->n_ops;
    if (!ends)
        plan_cursor_next(&queue->cursor, queue_index);
    else
        queue->cursor = plan_cursor_first(fold, queue_index);
    queue->op = plan_cursor_number(&queue->cursor);
    if (ends) {
        queue->position = 0;
        queue->step++;
    }
    return ends;
}

static inline struct wanted wait_wants(const struct rank *rank, plan_wait wait, int32_t step)
{
    int32_t number = wait & ~PLAN_PREVIOUS_STEP, from = wait & PLAN_PREVIOUS_STEP ? step - 1 : step;
    const struct plan_stretch *stretch = plan_fold_stretch(rank->tables->fold, number);
    const struct plan_op *op = &stretch->ops[number - stretch->first_op];
    struct queue *queue = &rank->queues[op->stream];
    return (struct wanted){
        queue, (int64_t)from * queue->n_ops + stretch->positions[op->stream] + op->position + 1};
}
static inline bool is_satisfied(struct wanted wanted)
{
    return wanted.queue->done >= wanted.done;
}
/* What the first of the waits of a queue's op wants that is not satisfied; no queue: all are. */
static inline struct wanted unsatisfied_wait(
    const struct rank *rank, const struct plan_cursor *at, int32_t step)
{
    const struct plan_op *op = plan_cursor_op(at);
    for (int w = 0; w < op->n_waits; w++) {
        struct wanted wanted =
            wait_wants(rank, plan_stretch_wait(rank->tables->fold, at->stretch, op, w), step);
        if (!is_satisfied(wanted))
            return wanted;
    }
    return (struct wanted){0};
}

/* exec.c: the allocator of a rank has taken the host's time in this step. Where the run would have
 * to be made once more with a longer warm-up for that, it becomes that longer run, which up to now
 * is the same. */
void sim_warm_longer(struct sim *sim, int32_t step);

/* warm.c: a run with noise begins where a quiet one stands near the end of its warm-up. */
/* The warm-up of this run, which is quiet, is as long as its options say now. */
void warm_expect(struct sim *sim);
/* It may be the instant: a host's burst is over, or a collective. */
void warm_take(struct sim *sim);
static inline void warm_look(struct sim *sim)
{
    if (__builtin_expect(sim->warm.taken_at < INT64_MAX, 0))
        warm_take(sim);
}
/* Of all ranks of a run that has begun no step, at that instant; of sim->after. */
void warm_resume(struct sim *sim);

/* period.c: what a quiet run would do once more is skipped */
void period_setup(struct sim *sim);
void period_release(struct sim *sim);
/* It may be the instant: a host's burst is over, or a collective. */
static inline void period_ask(struct sim *sim)
{
    if (sim->queues[STREAM_COMPUTE].done < sim->period.look_at)
        return;
    sim->period.asked = true;
    engine_stop(&sim->machine->engine);
}
/* The engine has stopped. True: only to be looked at, and the run goes on, perhaps much later. */
bool period_go_on(struct sim *sim);

/* timing.c */
void timing_result(struct sim *sim);

/* queue.c */
void queue_try_all(struct sim *sim, int rank);
/* Whether that would look at any queue. */
bool queue_may_start(const struct rank *rank);
void queue_finish(struct sim *sim, int rank, int queue);
void queue_retime(
    struct sim *sim, int rank); /* after sms_held, hbm_Bps or the GPU's speed changed */
/* The GPU's speed changes now. */
void queue_set_share(struct sim *sim, int rank, double share);
void queue_on_event(void *self, const struct event *event);
void queue_prepare(const void *self, const struct event *event);
/* The queue is before the op that a quiet one is before, in its kernel, whose end has no event yet,
 * or before its collective. */
void queue_resume(struct sim *sim, int rank, int queue, const struct queue *quiet);
/* The event at the end of a running kernel, or when the op that a queue waits for has been issued.
 */
void queue_arm(struct sim *sim, int rank, int queue, ps_t end);
/* The running kernel of a queue has ended at `end`. */
void queue_count(struct sim *sim, struct rank *rank, int queue, ps_t end);
/* documents.c: how much longer than in the mean the op of a step takes, for the documents of its
 * micro-batch. */
void documents_draws(
    const struct sim *sim, struct rank *rank, int32_t step, int32_t op, struct kernel_draws *draws);
/* Noise goes by where an op stands beside the first measured one of its queue, whatever came before
 * it: runs that differ in something else draw the same for the same op. `further`: of the
 * op that comes this number of ops after the one that the queue is at. */
static inline uint64_t queue_drawn_at(
    const struct sim *sim, const struct queue *queue, int64_t further)
{
    return (uint64_t)(queue->done + further - sim->options->warmup_steps * queue->n_ops);
}
static inline struct kernel_draws queue_draw(
    const struct sim *sim, struct rank *rank, struct queue *queue, int32_t op, int64_t further)
{
    struct rng_stream stream = {queue->noise_key, queue_drawn_at(sim, queue, further)};
    struct kernel_draws draws = {.jitter = sim->kernel_jitter.sigma > 0
                                               ? rng_lognormal_drawn(&sim->kernel_jitter, &stream)
                                               : 1,
        .compute = 1};
    if (rank->pairs)
        documents_draws(sim, rank, queue->step, op, &draws);
    return draws;
}
/* Whether a collective is resident when a kernel starts: it came before that instant, and stays
 * beyond it. So the order of events at one instant, which differs between a folded run and one of
 * all ranks, changes nothing. */
static inline bool queue_starts_beside(const struct rank *rank, ps_t at)
{
    if (!rank->slows_starts || at > rank->held_since)
        return rank->slows_starts;
    for
        EACH_QUEUE(q, rank->holding)
        {
            if (rank->queues[q].started < at)
                return true;
        }
    return false;
}
/* What a kernel that starts then on the rank as it is now takes longer for that. */
static inline double queue_start_s(
    const struct sim *sim, const struct rank *rank, int kernel, ps_t at)
{
    return queue_starts_beside(rank, at) ? sim->costs.kernels[kernel].start_s : 0;
}
static inline double queue_speed(const struct rank *rank, const struct kernel_cost *cost)
{
    return rank->drawn.of[cost->speed] * rank->share;
}
/* A kernel without collectives beside it, jitter apart, seconds: kept for each rank, as two square
 * roots for every kernel that runs are a tenth of a run's time. */
static inline double queue_alone_s(
    const struct sim *sim, const struct rank *rank, int kernel, double compute)
{
    double *kept = &rank->alone_s[kernel];
    if (*kept > 0 && compute == 1)
        return *kept;
    const struct kernel_cost *cost = &sim->costs.kernels[kernel];
    double compute_s =
        compute * sim->costs.sm_states.at[0].compute_s[kernel] / queue_speed(rank, cost);
    double alone_s = kernel_busy_s(compute_s, cost->memory_s) + cost->floor_s;
    if (compute == 1)
        *kept = alone_s;
    return alone_s;
}
/* How long a kernel takes on the rank as it is now. */
static inline double queue_kernel_ps(const struct sim *sim, const struct rank *rank, int kernel,
    struct kernel_draws draws, double start_s)
{
    if (!rank->sm_state)
        return (queue_alone_s(sim, rank, kernel, draws.compute) + start_s) * draws.jitter *
               (double)PS_PER_S;
    const struct kernel_cost *cost = &sim->costs.kernels[kernel];
    double compute_s = draws.compute * rank->compute_s[kernel] / queue_speed(rank, cost),
           memory_s = cost->memory_s * rank->memory_slowdown;
    double busy_s = kernel_busy_s(compute_s, memory_s) * rank->traffic;
    return (busy_s + cost->floor_s + start_s) * draws.jitter * (double)PS_PER_S;
}
/* The same as if no collective were there. */
static inline double queue_isolated_ps(
    const struct sim *sim, const struct rank *rank, int kernel, struct kernel_draws draws)
{
    return queue_alone_s(sim, rank, kernel, draws.compute) * draws.jitter * (double)PS_PER_S;
}

/* speeds.c: of each rank's GPU; NULL: GPUs are alike. */
struct gpu_speeds *speeds_draw(const struct sim *sim);

/* progress.c: options->progress hears how far the run is, by its first rank or as it is said. */
void progress_follow(struct sim *sim);
void progress_tell(struct sim *sim, int thousandths);

/* slowest.c: by the speeds of all ranks, what is said of FOLD_SLOWEST above. */
void slowest_choose(struct sim *sim, struct gpu_speeds *speeds /* NULL: alike */);
/* The place of the one that stands for a rank; where none does, of the first of its program. */
int stand_in(const struct sim *sim, int number);

/* idle.c: why the compute queue was idle */
/* For how long the rank has been in some collective, since the run began. */
ps_t idle_in_collectives(const struct sim *sim, const struct rank *rank);
/* The compute queue goes on now, with its op. */
void idle_account(struct sim *sim, struct rank *rank, const struct queue *queue);
/* What of the job an op in which ranks meet is for; whether ranks of other programs do. */
enum plan_parallelism idle_serves(const struct sim *sim, const struct plan_op *op);
bool idle_meets_stages(const struct sim *sim, const struct plan_op *op);

/* ahead.c: kernels of the compute queue taken together. Without it every kernel has an event, and
 * the same times. */
/* A kernel of the compute queue has been started: find those that follow, and arm the event of the
 * last. */
void ahead_look(struct sim *sim, int rank);
/* Kernels that have ended by now are counted: before rank->done is looked at, or done of what
 * nobody waits for. */
void ahead_settle(struct sim *sim, int rank);
/* The running kernel has ended at its event. True: the next one ahead has begun. */
bool ahead_finish(struct sim *sim, int rank);
/* The kernels that follow will run at another speed. */
void ahead_forget(struct sim *sim, int rank);
/* An op of another queue has ended: one kernel less until a full launch queue wakes the host. */
void ahead_rearm(struct sim *sim, int rank);

/* host.c */
/* Ops up to which the host has issued all, counted from the first step on. */
static inline int64_t host_reached(const struct rank *rank)
{
    return (int64_t)rank->host_step * rank->tables->n_ops + rank->host_end;
}
/* How many more launches have to end until a full queue wakes the host; 0: it does not wait for
 * that. (Until the GPU is drained it waits for the last of all kernels issued, whose end is an
 * event anyway.) */
int64_t host_wants(const struct rank *rank);
void host_begin_step(struct sim *sim, int rank);
/* The host is where it stands in a quiet run: at work on the burst that it is in, or blocked. */
void host_resume(struct sim *sim, int rank, const struct rank *quiet);
/* Log-standard deviation of a burst of so much work. */
double host_jitter(const struct sim *sim, double work_s);
/* When the rank's host thread stops for a while the next time, counted from `after`. */
void host_draw_pause(const struct sim *sim, struct rank *rank, ps_t after);
/* Looks up what a blocked host waits for: when it blocks, or where it stands has changed. */
void host_await(struct rank *rank);
void host_check(struct sim *sim, int rank); /* a blocked host looks whether it may go on */
void host_on_event(void *self, const struct event *event);
/* When the host issued the op of a step; PS_NEVER when it has not been reached. s: host time up to
 * the end of the op. */
ps_t host_issue_time(const struct rank *rank, int32_t step, int32_t op, double s);

/* communicator.c */
void communicator_setup(struct sim *sim);
/* The rank's queue comes to a collective, a send or a receive. */
void communicator_arrive(struct sim *sim, int rank, int32_t op);
void communicator_on_latency(void *self, const struct event *event);
void communicator_on_end(void *self, const struct event *event);
void communicator_on_links(void *self, const struct event *event);

/* trace.c */
void trace_setup(struct sim *sim);
void trace_record(struct sim *sim, int rank, int queue, struct exec_span span);
/* trace_gaps: the compute queue of a rank begins a kernel at this instant, or has ended one. */
void trace_busy(struct sim *sim, int rank, bool begins);
void trace_host_step(struct sim *sim, int rank); /* the host begins a step */
/* The timeline has what that of sim->after has: what was done of the last step before it was taken
 * (warm.c). */
void trace_resume(struct sim *sim);
/* The host burst up to host_end is over; what keeps the host from going on ends now, or is nothing.
 */
void trace_host_segment(struct sim *sim, int rank, enum exec_host_kind blocked, ps_t until);
void trace_result(struct sim *sim);
static inline bool tracing_host(const struct sim *sim, int rank)
{
    return __builtin_expect(sim->measure.traced != NULL, 0) && sim->measure.traced[rank] &&
           sim->ranks[rank].host_step + 1 == sim->total_steps;
}
/* Whether the op that a queue of the rank is at belongs to the timeline. */
static inline bool tracing(const struct sim *sim, int rank, int queue)
{
    return __builtin_expect(sim->measure.traced != NULL, 0) && sim->measure.traced[rank] &&
           sim->ranks[rank].queues[queue].step + 1 == sim->total_steps;
}

static inline bool tracing_busy(const struct sim *sim, int rank, int queue)
{
    return tracing(sim, rank, queue) && queue == STREAM_COMPUTE && sim->options->trace_gaps;
}

static inline bool measuring(const struct sim *sim, int32_t step)
{
    return step >= sim->options->warmup_steps && step < sim->total_steps;
}

#endif
