/* The fastest and the cheapest way to train a model: every combination of strategy, micro-batch,
 * checkpointing, prefetch and sharding group, or every layout of Megatron's parallelisms, for every
 * point of a scenario.
 *
 *   strategy          FSDP (FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD between several nodes), DDP,
 *                     ZeRO 1, 2, 3
 *   sharding group    HYBRID_SHARD: a node, two, four ... and less than the job
 *   prefetch          FSDP: backward_prefetch BACKWARD_PRE, that with forward_prefetch,
 *                     BACKWARD_POST
 *   checkpointing     none, full, selective
 *   micro-batch       1, 2, 4 ... max_batch; with a global batch as many micro-batches to a step as
 *                     it takes, or (train.device_batch) its part as the device's batch, of which no
 *                     more than all is a micro-batch
 *
 * What is searched replaces what the scenario's file says; all else (model, cluster, GPUs,
 * precision, optimizer ...) stays, so a sweep over clusters or GPU counts is a search over those
 * too. What --set says stays, too: of that option this value alone is tried, also one that the
 * search has not (a micro-batch of 12, strategy: internevo, _HYBRID_SHARD_ZERO2). An option of one
 * strategy (fsdp.*, the stage of ZeRO) keeps no other strategy out.
 *
 * Combinations that the strategy refuses (ZeRO without FP32 master weights, a group that does not
 * divide the job, more in host memory than a node has) are no candidates; they are counted.
 *
 * Pruned before simulating: what certainly does not fit, by the peak of its plan (exec/peak.h). The
 * rest is simulated with all noise off, so that ranks are alike and one is simulated for all; the
 * simulated allocator decides what fits.
 *
 * Noise does not cost every candidate the same: where cudaMalloc is tried again, ranks drain their
 * GPUs one after the other and wait for each other, so a candidate can be first without noise and
 * last with it. Finalists are therefore run with the noise of their scenario, and rank by that
 * (tune_finals).
 *
 * Layouts. With strategy: megatron what is searched is how the job is laid out, at one global batch
 * (train.global_batch, or what the scenario makes together):
 *
 *   tensor         degrees that divide the GPUs, up to the heads, beyond a node, too; with sequence
 *                  parallelism
 *   context        with flash attention degrees that divide the GPUs and leave a rank 1024 tokens
 *                  of a sequence
 *   pipeline       stages that divide the GPUs, and virtual: model chunks of a stage; blocks are
 *                  shared out alike, and where they do not divide, the first and the last chunk
 *                  have fewer
 *   expert         degrees that divide the experts
 *   micro-batch    1, 2, 4 ... max_batch
 *   checkpointing  none, full; core_attn where attention keeps its scores
 *
 * The rest of the GPUs are ranks of data parallelism, with Megatron's distributed optimizer and its
 * overlaps, and overlap_p2p_comm with virtual stages. What strategy_check() refuses is counted as
 * above. These are thousands, and a simulation takes a second. So each layout has a bound
 * (study/bound.h) of its bytes, which prunes what cannot fit, and of its step's time: layouts are
 * simulated by their bounds, least first, until no bound that is left is below the keep best times
 * of the same base. The answer is that of simulating all. Where several strategies are searched
 * (tune_options.variants), all candidates have bounds; the keep best of all, and the best one of
 * each strategy and stack, are those of simulating all. Noise is left out of a search that has
 * layouts: with it all ranks are simulated, hundreds of times the work.
 *
 * The work is bounded by a number of simulations, not by a clock: the answer is then the same on
 * every machine. Those with the least bound for a sequence come first, and what is left out is
 * reported. Ignored: what a batch does to convergence. */
#ifndef FLOPCAST_STUDY_TUNE_H
#define FLOPCAST_STUDY_TUNE_H

#include "study/bound.h"
#include "scenario/identity.h"
#include "study/tune_axes.h"

/* Tokens of a sequence that a rank of context parallelism has at least, unasked: less than in any
 * published recipe, and so little that a ring's exchange is longer than the attention beside it. */
enum { TUNE_LEAST_CONTEXT_TOKENS = 1024 };

struct tune_options {
    int64_t max_batch;    /* largest micro-batch tried */
    int64_t global_batch; /* sequences a step of the whole job; 0: free, gradients accumulate as the
                             scenario says */
    int max_simulations;
    int keep; /* layouts that are to be ranked truly: those whose bound is beyond the keep-th best
                 time are not run */
    int variants; /* the points come as that number of runs of equal length: those at one place of
                     them are one job by several strategies and stacks, of which the best are
                     wanted. Prefetch is as in PyTorch's defaults then. 0, 1: there is one */
    int64_t pipeline,
        virtual_stages; /* layouts: these alone, though the scenario does not say so; 0: free */
};

/* What a candidate gives. */
struct tune_rates {
    double step_time_s, tflops_per_gpu;
    double tokens_per_s;          /* of the job */
    double gpu_hours_per_gtokens; /* for 10^9 tokens */
    double usd_per_gtokens;       /* by the price of the GPU; 0: it has none */
    double kwh_per_gtokens;       /* with host, network and PUE: scenario/energy.h */
    double retries;               /* of cudaMalloc, a step */
    double peak_bytes;            /* allocated */
    double mfu;                   /* as struct scenario_result has it */
};

/* SLOWER: by its bound. */
enum tune_state { TUNE_RAN, TUNE_OOM, TUNE_PRUNED, TUNE_SLOWER, TUNE_LEFT_OUT, TUNE_STATE_COUNT };
extern const char *const
    tune_state_names[TUNE_STATE_COUNT + 1]; /* "ran", "oom", "pruned", "slower", "left_out" */

struct tune_candidate {
    struct scenario_point point; /* with the scenario's noise */
    enum tune_state state;       /* of a finalist: with noise */
    double least_bytes;          /* peak of its plan, context and NCCL left out */
    struct tune_rates
        quiet; /* without noise; TUNE_RAN, and finalists that are out of memory with it */
    struct tune_rates noisy; /* with it; finalists that ran */
    bool finalist, is_layout;
    struct bound bound; /* of what is no layout bound_plan() */
    int group; /* those with the same one are ranked together: base, or of several variants the job
                */
    int base;  /* of the scenario's points: candidates with the same one differ in what is searched
                  alone */
    int represents; /* itself, or the candidate that it is alike to: see tune_finals; -1: not known
                     */
};

struct tune {
    VEC(struct tune_candidate) candidates; /* in the order of simulation; free with vec_free */
    int n_bases;                           /* see base of a candidate */
    int count[TUNE_STATE_COUNT];
    int n_refused;       /* combinations that cannot be */
    const char *refusal; /* why the first of them cannot, in the arena */
    int n_finalists;
    const struct scenario_share
        *share;     /* who simulates, set after tune_candidates(); NULL: threads, all */
    int left;       /* simulations left to other shards: then the search has not come to its end */
    bool stopped;   /* share->kept wanted no more */
    int own, known; /* simulated; taken from share->kept */
    bool bounded;   /* of several variants: all are simulated by their bounds, not layouts alone */
    /* Before and after candidates get what simulations gave, for another thread that looks at them;
     * NULL: none does. */
    void (*changing)(void *self, bool begins);
    void *self;
    bool quiet_only; /* there are layouts: finalists are not run with noise, so that all are ranked
                        alike */
};

/* Every candidate that the job could run (groups that divide it, a global batch that divides). The
 * set is one of scenario_load(), whose origins say what --set gave. */
void tune_candidates(struct tune *out, const struct scenario_set *set,
    const struct tune_options *options, struct arena *arena);

/* Simulate what is not pruned, on all cores, or this shard's part of it. Layouts are divided among
 * shards before the search. A shard stops when no layout left in its part can be among the best of
 * that part. So all shards together simulate somewhat more layouts than one program without shards.
 * The run that then puts their results together simulates what is still missing, which is little.
 */
enum status tune_run(struct tune *tune, const struct tune_options *options,
    scenario_progress progress, void *self, struct diag *diag);

/* TUNE_BY_COST: dollars, of those whose GPU has a price. TUNE_UNPRICED: GPU-hours, of the others.
 */
enum tune_order { TUNE_BY_SPEED, TUNE_BY_COST, TUNE_UNPRICED, TUNE_ORDER_COUNT };
extern const char *const tune_order_names[]; /* "speed", "cost": what can be asked for */

/* Run the first `rows` of an order with noise, and more while one that is left would come in among
 * the first `rows` if noise cost it as little as the luckiest finalist, but at most twice as many.
 * Candidates that differ in prefetch alone, to no effect (0.1 % of speed and memory), run once: the
 * first one represents them. A point without noise is not run again. Call it for every order that
 * is to be shown. */
enum status tune_finals(struct tune *tune, enum tune_order by, int rows, scenario_progress progress,
    void *self, struct diag *diag);

/* By what a candidate can be best: its bound for a sequence. */
double tune_promise(const struct tune_candidate *candidate);

/* Room for the indices of all candidates; free() it. */
static inline int *tune_indices(const struct tune *tune)
{
    return xcalloc((size_t)tune->candidates.n + 1, sizeof(int));
}
/* Indices of the candidates that ran, best first, into order (candidates.n entries); returns how
 * many. Once there are finalists, of those, by what they give with noise. Equals stay in the order
 * of candidates. */
int tune_rank(int *order, const struct tune *tune, enum tune_order by);
/* The same of all that ran, by what they give without noise. */
int tune_rank_quiet(int *order, const struct tune *tune, enum tune_order by);

/* The settings that a candidate replaces, as `flopcast run` takes them with --set. */
struct tune_settings {
    struct scenario_override list[24];
    int n;
};
struct tune_settings tune_settings(const struct tune_candidate *candidate, struct arena *arena);
/* Whether the setting of this path is one of them. */
bool tune_sets(const struct tune_settings *settings, const char *path);

#endif
