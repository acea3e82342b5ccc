/* Private to exec/: the state of a run. Everything lives in struct sim; handlers get it as self. */
#ifndef FLOPCAST_EXEC_STATE_H
#define FLOPCAST_EXEC_STATE_H

#include "base/rng.h"
#include "engine/engine.h"
#include "exec/exec.h"
#include "fabric/fabric.h"
#include "exec/hbm.h"
#include "net/net.h"

/* Durations of a kernel, seconds: compute by what collectives hold (rank->holding); the rest as in kernel.h. */
struct kernel_cost {
    double *compute_s, memory_s, floor_s;
};

enum stream_state { STREAM_WAITING, STREAM_RUNNING, STREAM_IN_COLLECTIVE };

struct stream {
    int64_t done;     /* ops completed since the run began: step x ops per step + position */
    int32_t position; /* next op, in plan->stream_ops */
    int32_t step;
    uint32_t epoch; /* of the event that ends the op or wakes the stream */
    uint8_t state;
    bool wake_pending; /* an event stands at the issue time of the next op */
    bool issue_known;
    ps_t issue;         /* of the next op, when known */
    ps_t idle_since;    /* end of the last op */
    ps_t idle_comm;     /* compute stream: in_collectives() of then */
    ps_t started;       /* running op: (re)start of the current stretch */
    ps_t end;           /* running kernel: when it ends unless its speed changes */
    double left;        /* running op: share of its work not done at started */
    double duration_ps; /* running op: of the whole op at the current speed */
    ps_t alone_ps;      /* running op: of the whole op without collectives beside it */
    double jitter;      /* running op */
    double spent_ps;    /* running op: time in earlier stretches */
};

/* Kernels of the compute stream that will follow the running one without a gap, whatever happens elsewhere but for a
 * change of their speed: issued, waiting for nothing, awaited by nobody. Only the end of the last one is an event, or
 * of the one that wakes the host; those before are settled when somebody looks. A third of a run's time, measured; of
 * 8, 16, 32 and 64 eight was the fastest, as more is drawn in vain. */
enum { AHEAD = 8 };
struct ahead {
    int n, at; /* how many; how many of them have begun */
    int event; /* of how many the end of the last is the event; 0: of the kernel before them */
    struct ahead_kernel {
        ps_t end;
        double duration_ps, jitter;
        uint64_t undrawn; /* where the noise stood before this one drew from it */
    } kernels[AHEAD];
};

/* How many launches the host can be ahead of the GPU: CUDA's launch queue takes about a thousand, then cudaLaunchKernel
 * blocks. The depth is not documented; 1024 is what microbenchmarks of launch throughput show. It drains to half before
 * the host is woken here, which saves an event for every kernel and changes no issue time that matters. */
enum { LAUNCH_QUEUE = 1024 };

/* HOST_DRAINING: cudaMalloc has failed; PyTorch waits until the GPU has finished all that was issued. */
enum host_state { HOST_RUNNING, HOST_BLOCKED, HOST_QUEUE_FULL, HOST_DRAINING, HOST_DONE };

struct rank {
    struct stream streams[STREAM_COUNT];
    ps_t host_base;     /* the current stretch of host work began */
    int32_t host_first; /* its first op */
    int32_t host_end;   /* the op that ends it (not issued in it), or the number of ops */
    int32_t host_step;
    int32_t next_stop; /* of the run before */
    int64_t done;      /* device ops completed, all streams */
    uint8_t host_state;
    ps_t drain_since;   /* HOST_DRAINING: since when */
    double host_factor; /* jitter of the stretch */
    double drawn_speed; /* of the GPU by noise, persistent, 1 = nominal */
    double share;       /* what is left of it at the moment, where the GPU is slow */
    double speed;       /* drawn_speed x share */
    int holding;        /* what the collectives on the GPU hold, at most one on each comm stream: indices of
                           sim->holdings, STREAM_COMM's + n_holdings x STREAM_REPLICATE's */
    int in_collective;  /* comm streams that are in one */
    ps_t comm_since;    /* in_collective: since when */
    ps_t comm_total;    /* in collectives before that */
    double hbm_taken_Bps;
    double stretch; /* of memory time by what collectives take */
    struct ahead ahead;
    struct rng_stream kernel_noise[STREAM_COUNT], host_noise;
    struct exec_breakdown spent; /* seconds, since measuring began */
};

/* One process group instance; it runs one collective at a time. */
struct instance {
    int group;
    struct coll_group members;
    int slot; /* in net */
    int arrived;
    int32_t op;       /* the collective that members are arriving at */
    ps_t arrived_sum; /* sum of arrival times since the collective began to gather, relative to first */
    ps_t first_arrival, start;
    struct coll_cost cost;
    struct link_weight *uses; /* for collectives that load links as uses_of does */
    int n_uses, room_uses;
    struct coll_cost uses_of;
    struct rng_stream noise;
};

/* Where the allocator stood in the host's way: before this op, in cudaMalloc and cudaFree for so long, and before that,
 * when cudaMalloc had failed, until the GPU had run dry. */
struct ledger_stop {
    int32_t step, op;
    bool drains;
    ps_t calls;
};

/* A block that was freed while another stream still used it (record_stream). */
struct pending_free {
    int32_t block, step;
    plan_wait last_use;
};

/* Who owns a random stream. */
enum entity { ENTITY_GPU = 1, ENTITY_KERNEL, ENTITY_HOST, ENTITY_COLLECTIVE };

/* The HBM of a rank. */
struct ledger {
    struct hbm hbm;
    int32_t *blocks; /* of each buffer, -1 */
    VEC(struct pending_free) pending;
    VEC(struct ledger_stop) stops; /* in the order of steps and ops */
    ps_t stall;                    /* in measured steps: the host drained the GPU, or was in cudaMalloc or cudaFree */
    int64_t measured_retries;
};

struct sim {
    const struct plan *plan;
    const struct hw *hw;
    const struct exec_options *options;
    struct arena *arena;
    struct engine engine;
    struct net net;
    uint32_t ev_stream, ev_host, ev_latency, ev_collective_end, ev_links, ev_slow;
    int n_ranks; /* simulated: all, or 1 when folded */
    bool folded;
    bool sisters; /* folded: the other instances of a group do as the first one does */
    int32_t total_steps;
    struct rank *ranks;
    struct instance *instances;
    int *group_first; /* first instance of each group */
    struct kernel_cost *kernel_costs;
    double *host_prefix_s; /* n_ops + 1: host time of all ops before */
    int32_t *launches;     /* n_ops + 1: device ops before */
    int32_t *next_block;   /* n_ops + 1: first op at or after that blocks the host */
    int32_t *next_memory;  /* the same, ops that touch memory included: with a ledger the host stops there */
    bool *awaited;         /* by op: another op waits for it */
    struct coll_cost *coll_costs;
    double *holdings; /* SMs that a collective can hold: none, or those of one group or another */
    int n_holdings;
    int *coll_holding; /* by collective */
    /* step ends */
    ps_t *step_end;  /* latest over ranks */
    int *step_ranks; /* how many have ended it */
    ps_t measure_from;
    bool uneven; /* at some time some GPU is slower than another */
    /* links */
    struct fabric fabric;
    struct link_weight *uses; /* scratch: one for each link */
    double *carried_before;
    /* HBM: of each rank a ledger, or NULL; then its host stands still where the allocator did in a run before. */
    struct ledger *ledgers;
    const struct ledger *before; /* NULL: memory is not followed */
    bool out_of_memory;
    VEC(struct exec_memory_sample) timeline;
    bool *traced; /* by rank; NULL: none */
    VEC(struct exec_span) spans;
    VEC(struct exec_host_span) host_spans;
    struct exec_result *result;
};

/* stream.c */
void stream_try_all(struct sim *sim, int rank);
void stream_finish(struct sim *sim, int rank, int stream);
void stream_retime(struct sim *sim, int rank); /* after holding or hbm_taken_Bps changed */
/* The GPU's speed changes now. */
void stream_set_share(struct sim *sim, int rank, double share);
void stream_settle(struct sim *sim, int rank); /* before rank->done is looked at, or done of what nobody waits for */
void stream_on_event(void *self, const struct event *event);
bool wait_satisfied(const struct sim *sim, const struct rank *rank, plan_wait wait, int32_t step);

/* host.c */
/* How many more launches have to end until a full queue wakes the host; 0: it does not wait for that. (Until the GPU is
 * drained it waits for the last of all kernels issued, whose end is an event anyway.) */
int64_t host_wants(const struct sim *sim, const struct rank *rank);
void host_begin_step(struct sim *sim, int rank);
void host_check(struct sim *sim, int rank); /* a blocked host looks whether it may go on */
void host_on_event(void *self, const struct event *event);
/* When the host issued the op of a step; PS_NEVER when it has not been reached. */
ps_t host_issue_time(const struct sim *sim, const struct rank *rank, int32_t step, int32_t op);

/* collective.c */
void collective_setup(struct sim *sim);
double collective_sms(const struct sim *sim, int holding); /* that collectives hold */
void collective_arrive(struct sim *sim, int rank, int32_t op);
void collective_on_latency(void *self, const struct event *event);
void collective_on_end(void *self, const struct event *event);
void collective_on_links(void *self, const struct event *event);

/* ledger.c */
void ledger_setup(struct sim *sim); /* of every rank */
void ledger_release(struct sim *sim);
/* The allocator does what op of the rank's step asks for. False: cudaMalloc failed, ask again when the GPU is drained;
 * then the run may end, out of memory. calls: host time in cudaMalloc and cudaFree. */
bool ledger_op(struct sim *sim, int rank, int32_t op, bool drained, ps_t *calls);
void ledger_result(struct sim *sim);

/* trace.c */
void trace_setup(struct sim *sim);
void trace_record(struct sim *sim, int rank, int stream, struct exec_span span);
void trace_host_step(struct sim *sim, int rank); /* the host begins a step */
/* The stretch of host work up to host_end is over; what keeps the host from going on ends now, or is nothing. */
void trace_host_stretch(struct sim *sim, int rank, enum exec_host_kind blocked, ps_t until);
void trace_result(struct sim *sim);
static inline bool tracing_host(const struct sim *sim, int rank)
{
    return __builtin_expect(sim->traced != NULL, 0) && sim->traced[rank] &&
           sim->ranks[rank].host_step + 1 == sim->total_steps;
}
/* Whether the op that a stream of the rank is at belongs to the timeline. */
static inline bool tracing(const struct sim *sim, int rank, int stream)
{
    return __builtin_expect(sim->traced != NULL, 0) && sim->traced[rank] &&
           sim->ranks[rank].streams[stream].step + 1 == sim->total_steps;
}

static inline bool measuring(const struct sim *sim, int32_t step)
{
    return step >= sim->options->warmup_steps;
}

#endif
