/* Executes a plan on a cluster: the only meeting of engine and workload.
 *
 * Each rank has a host thread and a few streams. The host issues ops in program order at their host
 * cost, runs ahead of the GPU, and blocks at OP_HOST_WAIT. A kernel starts at max(issued, stream
 * free, waits done) and takes what kernel/ says for the share of the GPU that collectives leave;
 * when a collective arrives, begins to move or ends beside it, the rest of it is re-timed. A
 * collective starts when its last member arrives, spends its latency, then moves its bytes as a
 * flow over NVLink and NIC links at max-min fair rates (net/), and ends on all members at once.
 * From when a member comes to it, its channels hold SMs (coll_sms), and kernels that start beside
 * it take overlap_start longer. Only while its bytes move does it take HBM bandwidth, which slows
 * kernels by what they lack and by its traffic through L2: a collective that waits, or is in its
 * latency, takes none.
 *
 * Noise: persistent speed of each GPU, slow hosts, jitter per kernel, per collective and per host
 * burst, pauses of the host; one random stream per entity. What a host does is late or early in
 * independent parts: a burst (its work from one blocking point to the next) of W ms differs by
 * host_jitter over the root of W, one of less than a millisecond by host_jitter, as traces have it
 * (results/measured/host_jitter.csv); hosts do not differ for longer than that. A collective over
 * nodes takes as long as the slowest of its links makes it: one draw from the distribution of the
 * greatest of as many as it reaches NICs on all its nodes, each of mean 1 and independent of the
 * others (so it loses with the logarithm of their number, and tables of nccl-tests, mostly of two
 * nodes, are taken to be without). In a node, and of a message, it is one link. GPUs may be slow,
 * from a time on (fabric/degrade.h). With all noise off and no GPU slower than another, ranks are
 * alike and one is simulated for all (fold); the answer equals the unfolded one exactly. Where
 * links differ (a network of switches, degraded links), that holds for a group whose only instance
 * is the whole job, and without degraded links for groups inside a node; a plan with others is not
 * folded, nor one where messages of some ranks of a program cross nodes and those of others do not.
 *
 * With noise FOLD_SLOWEST simulates the nodes that all others wait for. Ranks that meet in
 * collectives of a model that they share (not of data parallelism alone) are in lockstep; nodes
 * that such sets or messages join are a unit. The four units with the slowest GPUs are there, 32
 * ranks at least, and data parallelism waits for these alone; of slow hosts, which others are far
 * ahead of, theirs alone. One rank stands for a set, with the speed of its slowest GPU. Where a
 * quiet run waits for hosts for more than 2 %, units are there up to 512 ranks at least, and all
 * ranks of their sets. By what the slowest of all hosts is behind the slowest of these, in the mean
 * (normal order statistics by Blom), each burst is longer, by its own standard deviation. Pauses of
 * all ranks fall on those that are there. Ignored: jitter of kernels and messages in the other
 * units and within a set. Peaks of memory are those of a run without noise or of these ranks, the
 * breakdown is of ranks that wait less than others. It needs noise, no slow GPU, and no link that
 * nodes share; else every rank is simulated. Where GPUs are alike any units do. Step times are
 * within 1 % of those of every rank, most within 0.1 % (results/notes; tests/law/test_slowest.c).
 * FOLD_AUTO does the same where a step of all ranks together has more than 5 million ops, with
 * stages of a pipeline 20 million.
 *
 * Packed sequences (struct plan_packing): of each sequence the documents are drawn
 * (kernel/documents.h), from a stream of the seed, the rank's place in data parallelism, the step
 * and the micro-batch; ranks of tensor, context and pipeline parallelism draw the same. Compute of
 * attention kernels goes with the pairs within documents, and where micro-batches have documents
 * alike, not tokens, the model's kernels with the tokens; everything else does not: memory, which
 * the longest micro-batch needs more of, and messages of activations (assumed: those of the mean).
 * Where documents vary every rank is simulated, by FOLD_SLOWEST too. FLOP of a plan are those of
 * the mean.
 *
 * Steady: a measured step is one of the many that a job repeats. PyTorch's allocator makes segments
 * in the first step, mostly in the second (the first has left the optimizer's state in blocks that
 * it had freed), sometimes later, and the host stands for each. The quiet run of a rank of each
 * program has as many steps of warm-up, warmup_steps at least and 8 at most, as it needs until a
 * step makes no segment and takes as long as the one before: where it makes one the run goes on for
 * a step, where a step took longer it is made once more. Noise is put on the last quarter of its
 * last step of warm-up, where all ranks begin as the quiet ones stand (warm.c), and on its measured
 * steps; of a job in whose warm-up no collective ends so late, or in which GPUs are slower than
 * others, on warmup_steps whole ones; where GPUs drain for the allocator, on those of the quiet
 * run, three at most where no more were asked for. A job that is not steady then has retries in its
 * steps (alloc_retries_a_step) or makes segments (alloc_stall_s): they are part of its speed. Where
 * links or GPUs change at a time after the start, warm-up is as asked for, as these times count
 * from the first step.
 *
 * Periods: where a folded run repeats itself, as a pipeline of many micro-batches does, what it
 * does again is not simulated (period.c). Every result is that of the whole run, to the bit, except
 * `digest` and `events`, which are of the events that were simulated.
 *
 * Timeline: for the ranks asked for, every kernel and collective of the last measured step is
 * recorded (exec_span), and what the host thread did in it (exec_host_span). Off by default; it
 * changes nothing of what is simulated.
 *
 * HBM: the rank that stands for all runs the caching allocator (hbm.h) in host program order. A new
 * segment costs the host a cudaMalloc (cuda_malloc of the GPU). Where that fails, PyTorch waits for
 * everything that was issued, on all streams, frees cached segments (cuda_free each) and tries
 * again (hbm.h has the order): the GPU has run dry when the host goes on. Out of memory ends the
 * run and is a result. Ranks that are not folded: first a folded run without noise and slow GPUs is
 * made. Where no cudaMalloc fails in it, every rank stops where that rank stopped, for as long, and
 * memory follows from it; what noise does to the allocator is ignored then. Where one fails, each
 * rank has a separate ledger, as what can be used again depends on how far its GPU has come; the
 * result is that of the rank whose host stood longest.
 *
 * Ignored for now: contention between two compute kernels of one rank on different streams (of
 * their taking turns on the SMs the fitted training rows say -0.16 +- 0.25; casts and scalings of
 * FSDP's FP32 reduction are 4 ms a block of a 30B model), the slow-down of collectives by compute,
 * ranks of a ring ending at different times; and that a collective which its links or another slow
 * down takes HBM bandwidth more slowly (it takes what it does alone, for longer). */
#ifndef FLOPCAST_EXEC_EXEC_H
#define FLOPCAST_EXEC_EXEC_H

#include "base/settings.h"
#include "base/units.h"
#include "exec/hbm.h"
#include "fabric/degrade.h"
#include "hw/hw.h"
#include "plan/plan.h"

#include <stdbool.h>

struct noise_options {
#define SETTINGS SETTING_MEMBER
#include "exec/noise_settings.h"
    /* GPUs of a job differ as n draws of a normal distribution do in the mean (rng_normal_scores),
     * and nobody is slow but slow_hosts hosts: the typical cluster without slow hosts, or with
     * these, whose probabilities scenario_simulate() weights them by (scenario/lottery.h). With
     * drawn_speeds they are slow besides. */
    int64_t slow_hosts;
};

/* Whether anything varies: ranks are then simulated one by one. */
bool exec_noise_is_on(const struct noise_options *noise);

enum exec_fold { FOLD_AUTO, FOLD_OFF, FOLD_SLOWEST, FOLD_COUNT };
extern const char *const exec_fold_names[FOLD_COUNT + 1]; /* "auto", "off", "slowest" */

/* How far a simulation is, for who waits for it, on whatever thread. Of several runs of one point
 * their thousandths are added up. */
struct exec_progress {
    _Atomic int thousandths; /* of the steps; a quiet run that others refer to does not count */
    _Atomic int runs;        /* 0: one */
    _Atomic bool by_slowest; /* FOLD_AUTO has taken the slowest */
};

struct exec_reference;

struct exec_options {
#define SETTINGS SETTING_MEMBER
#include "exec/run_settings.h"
    const struct exec_reference *reference; /* borrowed; NULL: the run has its own */
    struct exec_progress *progress;         /* borrowed; NULL: nobody asks */
    struct hbm_options allocator;
    struct noise_options noise;
    const int *trace_ranks; /* record spans of these; borrowed. When ranks are folded, rank 0 stands
                               for every rank */
    int n_trace_ranks;
    bool trace_gaps; /* the timeline has what collectives and gaps of compute need: compute
                        kernels that follow each other without a gap are one span, with the place of
                        the first; of hosts that they waited */
    struct degrade_events link_events,
        gpu_events;             /* of this hardware and number of ranks; borrowed */
    bool no_latency;            /* collectives cost their bytes only; see study/explain.h */
    const struct hw *chosen_on; /* algorithms and protocols are NCCL's choice on this hardware;
                                   borrowed. NULL: on that of the job */
    bool mean_documents;        /* of packed sequences none is drawn, each has the mean */
    bool no_contention;         /* kernels run beside collectives as if alone */
    bool one_by_one;            /* for tests: an event for every kernel; times are the same */
    bool all_periods;           /* for tests: no period is skipped; results are the same */
    bool from_the_start;        /* for tests: no more warm-up than warmup_steps */
    bool noisy_warmup;          /* for tests: all steps of warm-up with noise */
    bool no_memory; /* HBM is not followed: no peaks, never out of memory; half of the time of a
                       folded run */
};

struct exec_options exec_default_options(void);
/* Nothing varies: no noise, no documents drawn. Slow GPUs stay slow. */
void exec_be_quiet(struct exec_options *options);

enum exec_status { EXEC_OK, EXEC_OOM };
extern const char *const exec_status_names[]; /* "ok", "oom" */

/* Collectives and messages of a kind of parallelism, seconds a step. */
struct exec_comm_time {
    double moving_s;  /* latency and bytes, all comm streams: hidden or not */
    double exposed_s; /* the compute stream waited for them: part of exposed_comm_s */
};

/* Means over ranks and measured steps, seconds a step. compute + exposed_comm + bubble + host_bound
 * + other_idle = step time, as other_idle is the rest. (Where ranks end their steps apart, each is
 * counted from its own end of warm-up on; what that is more than the step, at most some 1e-5 of it,
 * no idle time makes up for.) */
struct exec_breakdown {
    double compute_s;    /* the compute stream was running kernels */
    double contention_s; /* part of compute_s: kernels were slower beside collectives than alone */
    double optimizer_s;  /* part of compute_s: kernels of the optimizer's step */
    /* Exposed communication: the compute stream was idle because it waited for a collective or
     * message, or for another stream's kernel while one was under way (mostly what that kernel
     * waited for), or because the host was blocked until one was done (batch_p2p_comm's
     * synchronize, loss.item()); without the bubble. The sum of all kinds' exposed_s. */
    double exposed_comm_s;
    double exposed_wait_s; /* part of exposed_comm_s: it had not begun, as other ranks had not come
                              to it yet */
    double host_bound_s;   /* idle because the host had not issued the next kernel yet, for another
                              reason */
    double other_idle_s; /* idle for another stream's kernel (casts), or for ranks that end the step
                            later */
    double comm_s;       /* collectives were moving (latency and bytes), all comm streams */
    double comm_latency_s; /* part of comm_s: latency */
    double comm_wait_s;    /* members waited in collectives for the last one to arrive */
    /* The pipeline's bubble, no part of exposed_comm_s: the compute stream waited for a rank of
     * another stage (program) to come to a message or collective; no network shortens that. All
     * stages wait alike where they do alike; of stages that do not, the others wait for the
     * slowest. */
    double bubble_s;
    double stage_wait_s; /* part of comm_wait_s: for ranks of other programs, hidden or not */
    struct exec_comm_time comm[PARALLEL_COUNT];
};

struct exec_memory {
    double capacity_bytes;       /* HBM of the GPU */
    double peak_allocated_bytes; /* PyTorch's max_memory_allocated: tensors, without context and
                                    NCCL */
    double
        peak_reserved_bytes; /* PyTorch's max_memory_reserved: segments, without context and NCCL */
    double peak_category_bytes[HBM_CATEGORY_COUNT]; /* at the moment of peak_allocated; context and
                                                       NCCL always */
    double alloc_retries; /* PyTorch's num_alloc_retries, of the whole run: cudaMalloc failed,
                           * cached segments were freed, and it was tried again */
    double alloc_retries_a_step; /* mean of measured steps */
    double alloc_stall_s; /* seconds a measured step that the host stood for cudaMalloc and cudaFree
                           * and, before a retry, for the GPU; the idle time that it causes is in
                           * host_bound_s */
    /* EXEC_OOM only; what did not fit is of the program that ran out, what is required of each: */
    const char *oom_op; /* the buffer that did not fit; borrowed from the plan */
    int oom_category;   /* enum hbm_category */
    double oom_request_bytes;
    double required_bytes; /* peak of the same step on a GPU without limit, context and NCCL
                              included */
    double required_category_bytes[HBM_CATEGORY_COUNT];
};

enum { EXEC_MAX_STEPS = 1000 };

/* One row of HBM use over the last measured step, for plots. */
struct exec_memory_sample {
    double time_s; /* since the step began */
    double category_bytes[HBM_CATEGORY_COUNT];
    double reserved_bytes;
};

/* A kernel or collective of one rank. They stand by rank, then in the order of their ends; those of
 * one stream never overlap. */
struct exec_span {
    ps_t start, end; /* since the run began */
    ps_t moving;     /* of a collective: when its last member had arrived; of a kernel: start */
    ps_t alone;      /* how long a kernel takes without collectives beside it; 0 for a collective */
    int rank;        /* when folded, the first that runs its program */
    int32_t op;
    uint8_t stream, phase;   /* place in plan->queues, enum plan_phase */
    bool is_collective;      /* or a message */
    const char *name;        /* the op's, borrowed from the plan's arena */
    const char *queue;       /* the queue's */
    int kernel;              /* enum kernel_kind */
    int algorithm, protocol; /* of a collective: enum coll_algorithm, enum coll_protocol */
    int collective;          /* enum coll_kind; of a message COLL_SEND_RECV */
    double bus_bytes;        /* of the message, see coll.h */
    double latency_s;        /* part of its time: hops and steps, before bytes move */
    enum coll_bound
        bound;    /* what limits it, from when its last member has arrived; COLL_BOUND_SHARED_LINKS:
                     what else moved on its links, by which it took longer than alone */
    double bytes; /* whole message, see coll.h */
    int group_size;        /* of a message 2 */
    int program;           /* that the rank runs */
    struct plan_cell cell; /* of the schedule */
    int32_t waits_for; /* an op of the same step, on another stream, that had to be done before; -1:
                          none */
    bool meets_stages; /* a collective or message with ranks of other stages: to wait for them is
                          the bubble */
};

/* What the host thread of a rank did. They stand by rank, then in the order of time, and never
 * overlap, but that the step, which comes first, is around the others. */
enum exec_host_kind {
    HOST_STEP,       /* from the first op of the step to the last one's end */
    HOST_ISSUE,      /* a kernel or collective, which is issued at the end */
    HOST_WORK,       /* other work */
    HOST_WAITS,      /* blocked until the op is done */
    HOST_FULL_QUEUE, /* blocked as the launch queue is full */
    HOST_ALLOCATES   /* in cudaMalloc; where it was tried again, also until the GPU had run dry */
};
struct exec_host_span {
    ps_t start, end; /* since the run began */
    int rank;
    int32_t op; /* -1 for HOST_STEP; of HOST_WAITS the one waited for, -1: of the step before */
    uint8_t kind, phase; /* enum exec_host_kind, enum plan_phase */
    const char *name;    /* the op's, of HOST_WAITS the waiting one's; NULL for HOST_STEP */
};

/* What the ranks of one program did and needed. */
struct exec_program {
    struct exec_breakdown
        breakdown; /* means over these ranks; their share of the step's idle time included */
    struct exec_memory memory; /* of the one of them whose host stood longest */
    struct exec_memory_sample *timeline;
    int n_timeline;
};

struct exec_result {
    enum exec_status status;
    bool overlong; /* the run would last longer than PS_HORIZON; nothing else is then said of it */
    double step_time_s; /* mean of measured steps: from one step's end on the last rank to the next;
                           0 when OOM */
    double step_time_sd_s, step_time_p05_s,
        step_time_p95_s; /* of measured steps; 5 and 95 % of them */
    struct exec_breakdown breakdown;
    struct exec_memory memory;     /* of the fullest program; EXEC_OOM: of the one that ran out */
    struct exec_program *programs; /* in the arena, as the plan has them */
    int n_programs, fullest;
    double nvlink_utilisation; /* share of the GPUs' send bandwidth (as it is at the end) in use,
                                  mean over links and measured time */
    double nic_utilisation;
    uint64_t digest; /* of all events */
    double events;
    bool folded;
    const int *stands_for; /* where ranks are traced: by rank the one whose spans it has; NULL: its
                              own */
    int ranks_simulated;   /* one for each program when folded */
    struct exec_memory_sample *timeline; /* of the fullest program, in the arena */
    int n_timeline;
    struct exec_span *spans; /* in the arena */
    int n_spans;
    struct exec_host_span *host_spans; /* in the arena */
    int n_host_spans;
    ps_t last_step_start, last_step_end; /* of the last measured step */
};

static inline bool exec_has_stages(const struct exec_result *result)
{
    return result->n_programs > 1;
}

/* The rank whose spans stand for a rank's. */
static inline int exec_simulated_rank(const struct exec_result *result, int rank)
{
    return result->stands_for ? result->stands_for[rank] : rank;
}

/* The quiet run of a rank of each program, which one with noise looks at first: for hosts that
 * matter, the allocator's stops and peaks of memory. Runs of a plan that differ in noise and fold
 * alone may share it, on several threads at a time: {0} before exec_refer(), released after the
 * last of them. */
struct exec_reference {
    struct sim *one; /* NULL: the runs need none */
    struct exec_options *quiet;
    struct exec_result result;
    bool hosts_matter, drained;
    bool ended; /* out of memory, or overlong: the run with noise is not made */
};
/* Makes it; it lives in the arena, too. BUG on a plan that plan_check() refuses (6 % of a run of a
 * pipeline), which runs by a reference do not ask again. */
void exec_refer(struct exec_reference *reference, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena);
void exec_reference_release(struct exec_reference *reference);

/* BUG on a plan that plan_check() refuses. The result's arrays live in the arena. */
void exec_run(struct exec_result *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena);

/* What a result has in the arena of its run, and borrows from its plan, moves to another arena, so
 * that both can go: a run takes a hundred times as much. Spans borrow all their names: of a result
 * with spans the arena itself moves, which is empty then, and the plan's must not go. */
void exec_result_move(struct exec_result *result, struct arena *from, struct arena *to);

#endif
