/* A scenario file as a list of points, each ready to simulate.
 *
 *   name: t5_scaling
 *   model: models/t5-11b.yaml
 *   cluster: {topology: ../topologies/clusters/a100-80gb-roce-2tb.yaml, gpus: 8}
 *   stack: stacks/composer.yaml      # optional: what the framework makes of the GPU
 *                                    (scenario/stack.h)
 *   train: {micro_batch: 8, seq_len: 512, ...}
 *   strategy: fsdp
 *   fsdp: {sharding_strategy: FULL_SHARD, ...}
 *   sweep:                # axes are crossed in order (the first varies slowest); keys of one axis
 *                         go together
 *     - train.micro_batch: [8, 16]
 *     - cluster.gpus: [8, 16, 32]
 *     - model: [a.yaml, b.yaml]
 *       train.precision: [tf32, bf16_mixed]
 *   published: {file: ../results/measured/fsdp_paper.csv, figure: 7c}
 *   measured: ["cluster.gpus=8 train.micro_batch=16: 1.92 s"]   # of one's own
 *
 * Any field can be swept and set from outside (--set train.seq_len=1024), by its dotted path; every
 * number of the cluster's, node's and GPU's files, too (--set cluster.node.nic_bandwidth=800Gb/s,
 * hw/override.h). Every value knows its origin (file:line:column, --set, sweep, or default). A
 * model (its file, a Hugging Face config.json or its folder, or one of scenarios/models by name)
 * where a scenario is expected is one that says the model alone. Paths in a file are relative to
 * the file, or names of flopcast's own files (base/files.h). */
#ifndef FLOPCAST_SCENARIO_SCENARIO_H
#define FLOPCAST_SCENARIO_SCENARIO_H

#include "base/arena.h"
#include "base/status.h"
#include "config/config.h"
#include "crew/crew.h"
#include "exec/exec.h"
#include "goodput/goodput.h"
#include "hw/override.h"
#include "strategy/strategy.h"

/* How a source counts the FLOP of a step, which decides what its "TFLOPS" mean:
 *   model       GEMMs and attention of three forward passes
 *   hardware    what the GPU executes: recomputation counted
 *   parameters  6 x parameters x tokens, the rule of thumb (Kaplan et al., arXiv 2001.08361); an
 *               encoder-decoder's
 * tokens of both sides count in full, though each passes one of the two stacks */
enum flops_formula { FLOPS_MODEL, FLOPS_HARDWARE, FLOPS_PARAMETERS, FLOPS_FORMULA_COUNT };
/* "model" (3 x forward), "hardware" (with recomputation) */
extern const char *const flops_formula_names[FLOPS_FORMULA_COUNT + 1];

enum { SCENARIO_MAX_POINTS = 100000 };

struct scenario_cluster_options {
    const char *topology; /* path of a cluster file */
    int64_t gpus;
    const char *degraded_links; /* "node3.nic0.*=50 %, leaf1.up2=0 at 2 s": see fabric/degrade.h;
                                   NULL: none */
    const char *slow_gpus;      /* "node3.gpu5=80 %, node7=90 % at 2 s": the same */
    struct hw given; /* in place of the topology's and the stack's numbers: hw/override.h */
};

struct scenario_published_options {
    const char *file;   /* CSV of published figures, or NULL */
    const char *figure; /* rows whose column "figure" has this value */
    /* "train.precision, cluster.nccl_protocols": what of the sweep the publication leaves open; the
     * first values are the reading that stands for it. NULL: nothing */
    const char *readings;
};

struct scenario {
    const char *name, *description;
    const char *model_path;
    int64_t max_positions; /* rows of learned positions, in place of the model file's; 0: the model
                              file's */
    bool force; /* reads a config.json although it says what no shape can: model_load() */
    const char *stack_path; /* stack profile (stack.h), or NULL */
    struct scenario_cluster_options cluster;
    struct strategy_options strategy; /* sections strategy, train, fsdp, ddp, host */
    struct exec_options exec;         /* sections run, noise */
    struct goodput_options goodput;   /* section goodput; only `flopcast goodput` reads it */
    int flops_formula;                /* which flop count "tflops_per_gpu" uses: the source's own */
    int attention_flop; /* which pairs of causal attention all TFLOPS count: enum attention_flop */
    struct scenario_published_options published;
    const char
        *assumptions; /* what the source leaves open, a sentence a line; NULL when there are none */
};

extern const struct config_table scenario_table;

/* The path of a setting as a user may write it, with the key for an alias and hw_override_path()'s
 * for a short one. */
const char *scenario_key_path(const char *path, struct arena *arena);

/* What holds where a scenario says nothing; what it must say is 0 or NULL. */
struct scenario scenario_default(void);

/* A figure that a publication gives for a point. */
struct scenario_published {
    bool found;
    const char *id, *source;
    double tflops_per_gpu;       /* 0 = not given */
    double peak_allocated_bytes; /* 0 = not given */
    double peak_reserved_bytes;
    bool oom;
    const char *left_out; /* settings from outside that make another run of it, as
                             "cluster.topology"; else NULL */
};

/* One point: the scenario with its sweep values put in, its inputs loaded. */
struct scenario_point {
    const char *file; /* of the scenario */
    struct scenario options;
    struct config_origins origins;
    struct source_pos gpus_at; /* where the GPU count was set */
    struct hw hw;
    struct model model;
    /* Section host as the stack profile has it, with its evidence; unset: the profile is silent, or
     * the scenario says something else. options.strategy.host has the values. */
    struct quantity stack_host[STRATEGY_HOST_COSTS];
    struct scenario_published published;
};

/* What the file says was measured of its job: "cluster.gpus=8: 9250 tokens/s" (cli/own_runs.h). No
 * point depends on it. */
struct scenario_measured {
    const char *text;
    struct source_pos at;
};
struct scenario_set {
    const char *file;
    struct scenario_point *points;
    struct scenario_measured *measured;
    int n_points, n_measured;
};

struct scenario_override { /* one --set key=value */
    const char *key, *value;
};

/* The value as a document of the command line that messages call name; what YAML would misread is
 * an error. *out is NULL after an error. */
enum status scenario_override_parse(struct config_doc **out,
    const struct scenario_override *override, const char *name, struct diag *diag);

/* What messages and origins call it: name, or "--set KEY" where that is NULL. */
const char *scenario_override_name(
    const struct scenario_override *override, const char *name, struct arena *arena);

/* Load a scenario file, apply overrides, expand the sweep, load models and topologies (each file
 * once), look up published figures, check everything that can be checked before simulating. On
 * failure diag holds every mistake found; nothing is returned. Settings that no point reads
 * (another strategy's, say) are warnings in diag. */
enum status scenario_load(struct scenario_set *out, const char *path,
    const struct scenario_override *overrides, int n_overrides, struct arena *arena,
    struct diag *diag);

/* The same, with overrides that are not --set's: names[i] is what messages and origins call
 * override i (NULL: "--set KEY"). Of ORIGIN_TABLE they are cells, "runs.csv:12:gpus" say, and paths
 * are relative to the table's folder. */
enum status scenario_load_from(struct scenario_set *out, const char *path,
    const struct scenario_override *overrides, const char *const *names, enum origin_kind kind,
    int n_overrides, struct arena *arena, struct diag *diag);

/* Whether the path, as scenario_load() takes it, is that of a model alone; false also of what
 * cannot be read. */
bool scenario_is_model(const char *path);

/* By who says nothing that a measurement would shift: a warning where the file lists some. who:
 * "flopcast sensitivity". */
void scenario_warn_measured(const struct scenario_set *set, const char *who, struct diag *diag);

struct scenario_sample;

/* Clusters that have a slow host (lottery.h). */
struct scenario_slow {
    double share;          /* of all; 0: no node can be slow */
    double none_s, some_s; /* step times on the others, and on these in the mean */
};

/* Between these 90 % of measured runs of such jobs are (sure.h); 0: not asked, or not known. */
struct scenario_sure {
    double tflops_low, tflops_high, tokens_low, tokens_high; /* of a GPU */
    double middle; /* over what is simulated: 1 unless something was measured of the job */
    double fits; /* share of such cases in which a job with this peak stays within the GPU's memory;
                    not conditioned */
};
/* From here on a job is said to fit without more words; sure.yaml ends at 95 %. */
#define SCENARIO_SURE_TO_FIT 0.949

struct scenario_result {
    struct exec_result exec; /* step time and what goes with it: the mean over clusters with and
                                without slow hosts */
    struct scenario_slow slow;
    double tflops_per_gpu;       /* by options.flops_formula */
    double model_tflops_per_gpu; /* 3 x forward / step time, options.attention_flop */
    double hw_tflops_per_gpu;    /* with recomputation, the same */
    double mfu; /* model FLOP of the dense peak of the precision, ATTENTION_FLOP_CAUSAL; a fraction,
                   <= hfu */
    double hfu; /* what GEMM and attention kernels execute, of the dense peak of what each
                   multiplies in (an optimizer may differ from the precision),
                   ATTENTION_FLOP_CAUSAL; a fraction, <= 1 */
    double tokens_per_s_per_gpu; /* encoder + decoder tokens */
    double samples_per_s;        /* of the whole job */
    double plan_ops;
    struct scenario_sample *samples; /* sample.h; NULL until they are asked for */
    int n_samples;
    struct scenario_sure sure; /* set by who shows or keeps the result */
    double wall_s;             /* real time that the simulation took; not deterministic */
};

/* Sets one option of a point by its path, as --set does: no list, a strategy by a word, too. Then
 * scenario_prepare() completes the point. name: as of scenario_load_from(). Texts live in the
 * arena. */
enum status scenario_set_option(struct scenario_point *point,
    const struct scenario_override *override, const char *name, struct arena *arena,
    struct diag *diag);

/* A point of no file, of which options (scenario_default() and what was asked for), hardware, model
 * and origins are set, its attention too: lengths that follow from the model, noise as the cluster
 * has it. STATUS_INPUT: there can be no such job (GPUs that leave a node partly used, offload to a
 * node of unknown host memory ...); diag says why, at the origins' places. */
enum status scenario_prepare(struct scenario_point *point, struct diag *diag);

/* Attention where nothing says it (-1, as scenario_default() leaves it): flash, which
 * scaled_dot_product_attention takes by itself from Ampere on in 16 bits; naive on older GPUs, in
 * FP32 and TF32, and for a model that cannot. */
void scenario_default_attention(struct scenario_point *point);

/* The loaded point makes sense: GPUs that exist, groups that divide, a precision that the GPU has,
 * options that the strategy can follow. */
void scenario_check(const struct scenario_point *point, struct diag *diag);
/* Who gave the value of a dotted path, and where: the last one wins. Of a default the place is the
 * whole file. */
struct config_origin scenario_origin(const struct scenario_point *point, const char *path);

/* Compile and run one point; the plan can be kept by the caller (`run --plan`) with
 * scenario_compile. Thread-safe for different points with different arenas. */
enum status scenario_compile(
    struct plan *out, const struct scenario_point *point, struct arena *arena, struct diag *diag);
enum status scenario_simulate(struct scenario_result *out, const struct scenario_point *point,
    struct arena *arena, struct diag *diag);
/* Of the step, exposed communication and bubble; 0 where there is no step. */
double scenario_waiting_share(const struct scenario_result *result);

/* Called after each finished point, from one thread at a time, in the order of finishing. */
typedef void (*scenario_progress)(void *self, int done, int total);

/* Whether its steps and ranks vary by what is drawn: noise, or documents of packed sequences. */
bool scenario_varies(const struct scenario_point *point);
/* About what a point costs to simulate, in no unit: ranks that are simulated one by one, times the
 * blocks that each goes through. Loops over points begin with the largest. */
double scenario_weight(const struct scenario_point *point);

/* All points, in parallel over OpenMP threads (points are independent; results do not depend on the
 * number of threads). results has n_points entries, arenas too (one a point). */
enum status scenario_simulate_all(struct scenario_result *results, struct arena *arenas,
    const struct scenario_set *set, scenario_progress progress, void *self, struct diag *diag);

/* What a loop over points is asked for beside their results; {0}: nothing. */
struct scenario_work {
    const bool *known;  /* results that are there already and stay as they are, an entry a point;
                           NULL: none */
    const bool *others; /* left to somebody else (another shard), an entry a point; NULL: none */
    /* Called with each result that has come to be, before progress, which counts known ones, too;
     * from one thread at a time. False: no further point is begun. Not called for a point with a
     * mistake. */
    bool (*keep)(void *self, int point);
    scenario_progress progress;
    void *self; /* of both */
};

/* The same without those known. When keep ended it, what is missing was not touched. */
enum status scenario_simulate_some(struct scenario_result *results, struct arena *arenas,
    const struct scenario_set *set, const struct scenario_work *work, struct diag *diag);

#endif
