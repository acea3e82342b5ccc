/* The keys of a scenario: each a field with its place in struct scenario, type, bounds and help.
 *
 * Tables of all settings: of those that strategies and exec read by their lists (base/settings.h),
 * and the keys of the scenario itself. Reading, --set, sweeps, JSON, digests, the check of unknown
 * keys and `flopcast help settings` walk them. A field's help is what a user reads. A key's alias
 * is what Megatron-LM or torchtitan call it.
 *
 * Subtle: one array has two windows, as a file holds `sweep` and the lists as nodes and a point
 * holds texts. FILE_ONLY and POINT_ONLY count the fields at its ends, so the order of the first and
 * last entries matters. `run` of a stack profile is the last N_LAUNCHER fields of the run table.
 * Bounds keep products of sizes within int64. */
#include "scenario/file.h"

#include <stddef.h>

const char *const flops_formula_names[FLOPS_FORMULA_COUNT + 1] = {
    "model", "hardware", "parameters", NULL};

#define FIELD CONFIG_FIELD
#define TABLE(name, what, list) const struct config_table name = CONFIG_TABLE(what, list)

static const struct config_field cluster_fields[] = {
    {FIELD("topology", FIELD_PATH, struct scenario_cluster_options, topology,
         "cluster file under topologies/clusters, or the name of one, as h100-8x400g"),
        .files = FILES_CLUSTERS},
    {FIELD("gpus", FIELD_INT, struct scenario_cluster_options, gpus,
         "GPUs of the job, whole nodes beyond the first"),
        .min = 1, .max = STRATEGY_MAX_GPUS},
    {FIELD("degraded_links", FIELD_STRING, struct scenario_cluster_options, degraded_links,
        "links that lose capacity: name pattern=share left [at time since the first step, warm-up "
        "too], ...; 0: failed")},
    {FIELD("slow_gpus", FIELD_STRING, struct scenario_cluster_options, slow_gpus,
        "GPUs that compute more slowly: node3.gpu5=80 % of their speed [at time since the first "
        "step], node3=90 % of all GPUs of a node, ...")},
    {FIELD("node", FIELD_OVERRIDES, struct scenario_cluster_options, given.node,
         "every number of the node's file, as in cluster.node.nic_bandwidth=800Gb/s: see 'flopcast "
         "help nodes'"),
        .section = &hw_node_table},
    {FIELD("", FIELD_OVERRIDES, struct scenario_cluster_options, given.cluster,
         "every number of the cluster's file, as in cluster.nccl_channels=32: see 'flopcast help "
         "clusters'"),
        .section = &hw_cluster_table},
};
static TABLE(cluster_table, "'cluster'", cluster_fields);

static const struct config_field train_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/train_settings.h"
};
static TABLE(train_table, "'train'", train_fields);

static const struct config_field parallelism_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/parallelism_settings.h"
};
static TABLE(parallelism_table, "'parallelism'", parallelism_fields);

static const struct config_field scenario_host_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/host_settings.h"
};
TABLE(scenario_host_table, "'host'", scenario_host_fields);

static const struct config_field noise_fields[] = {
#define SETTINGS SETTING_FIELD
#include "exec/noise_settings.h"
};
static TABLE(noise_table, "'noise'", noise_fields);

#define SETTING_ALLOCATOR(kind, member, value, ...)                                                \
    SETTING_FIELD_OF(kind, #member, exec_options, allocator.member, __VA_ARGS__)
static const struct config_field run_fields[] = {
#define SETTINGS SETTING_FIELD
#include "exec/run_settings.h"
#define SETTINGS SETTING_ALLOCATOR
#include "exec/allocator_settings.h"
};
static TABLE(run_table, "'run'", run_fields);
/* What a framework's launcher decides: PyTorch's allocator, the last of them. */
enum { N_RUN = sizeof run_fields / sizeof *run_fields, N_LAUNCHER = 4 };
static const struct config_table launcher_table = {
    .what = "'run' of a stack", .fields = run_fields + N_RUN - N_LAUNCHER, .n_fields = N_LAUNCHER};

static const struct config_field report_fields[] = {
    {FIELD("flops_formula", FIELD_ENUM, struct scenario, flops_formula,
         "which flop count tflops_per_gpu uses"),
        .names = flops_formula_names},
    {FIELD("attention_flop", FIELD_ENUM, struct scenario, attention_flop,
         "which pairs of causal attention TFLOPS count: what the mask leaves, or all; MFU and HFU "
         "count causal"),
        .names = attention_flop_names},
};
static TABLE(report_table, "'report'", report_fields);

static const struct config_field published_fields[] = {
    {FIELD(
        "file", FIELD_PATH, struct scenario_published_options, file, "CSV of published figures")},
    {FIELD("figure", FIELD_STRING, struct scenario_published_options, figure,
        "its rows with this value in column 'figure'")},
    {FIELD("readings", FIELD_STRING, struct scenario_published_options, readings,
        "swept settings that the publication leaves open, as 'train.precision, train.optimizer': a "
        "table of `flopcast run` has the points of their first values, and of the others the "
        "range")},
};
static TABLE(published_table, "'published'", published_fields);

#define SECTION(key_, member, table, help_)                                                        \
    {                                                                                              \
        FIELD(key_, FIELD_SECTION, struct scenario, member, help_), .section = &(table)            \
    }

#define STRATEGY_SECTION(key_, name, help_) SECTION(key_, strategy.name, name##_table, help_),

/* What a framework decides. */
#define FRAMEWORK_FIELDS                                                                           \
    SECTION("train", strategy.train, train_table, "batch, lengths, precision, optimizer"),         \
        SECTION("parallelism", strategy.parallelism, parallelism_table,                            \
            "degrees of parallelism other than of data"),                                          \
        {FIELD("strategy", FIELD_ENUM, struct scenario, strategy.kind,                             \
             "parallel strategy; zero1 to zero3: deepspeed of that stage, fsdp2: fsdp of version " \
             "2, FULL_SHARD and "                                                                  \
             "such: fsdp with that sharding_strategy"),                                            \
            .names = strategy_names},                                                              \
        STRATEGY_SECTIONS(STRATEGY_SECTION) /* of all strategies */                                \
        SECTION("host", strategy.host, scenario_host_table, "costs of the host thread")

/* One array, two windows on it. A file holds 'sweep' and the lists 'measured' and 'assumptions' as
 * nodes; a point has put the sweep's values in and keeps the assumptions as one text; what was
 * measured is the set's. */
static const struct config_field scenario_fields[] = {
    {FIELD("sweep", FIELD_NODE, struct scenario_file, sweep,
        "axes, crossed; keys of one axis go together")},
    {FIELD("measured", FIELD_NODE, struct scenario_file, measured,
        "what you measured of this job, as in - cluster.gpus=8: 9250 tokens/s (--measured of "
        "'flopcast run')")},
    {FIELD("assumptions", FIELD_NODE, struct scenario_file, assumptions,
        "what the source leaves open, in words")},
    {FIELD("name", FIELD_STRING, struct scenario, name, "of the scenario"), .required = true},
    {FIELD("description", FIELD_STRING, struct scenario, description, "what it is for")},
    {FIELD("model", FIELD_PATH, struct scenario, model_path,
         "model file, or the name of one of scenarios/models, as llama3.1-8b, or Hugging Face "
         "config.json"),
        .files = FILES_MODELS},
    {FIELD("max_positions", FIELD_INT, struct scenario, max_positions,
         "rows of learned positions, in place of the model file's"),
        .min = 1, .max = 1 << 20},
    {FIELD("force", FIELD_BOOL, struct scenario, force,
        "read a config.json of Hugging Face although it has keys that change the model and are not "
        "known here")},
    {FIELD("stack", FIELD_PATH, struct scenario, stack_path,
         "stack profile of the framework, under scenarios/stacks, or the name of one, as "
         "torchtitan"),
        .files = FILES_STACKS},
    SECTION("cluster", cluster, cluster_table, "hardware"),
    {FIELD("gpu", FIELD_OVERRIDES, struct scenario, cluster.given.gpu,
         "every number of the GPU's file, as in gpu.hbm_capacity=96GiB: see 'flopcast help gpus'"),
        .section = &hw_gpu_table},
    FRAMEWORK_FIELDS,
    SECTION("noise", exec.noise, noise_table, "variation; the cluster's own where not given"),
    SECTION("run", exec, run_table, "steps, seed"),
    SECTION("goodput", goodput, goodput_table,
        "failures, checkpoints and restarts, for `flopcast goodput`"),
    {FIELD("report", FIELD_SECTION, struct scenario, name, "how results are counted"),
        .section = &report_table},
    SECTION("published", published, published_table, "figures to compare with"),
    {FIELD("assumptions", FIELD_STRING, struct scenario, assumptions,
        "what the source leaves open, in words")},
};
enum { N_FIELDS = sizeof scenario_fields / sizeof *scenario_fields, FILE_ONLY = 3, POINT_ONLY = 1 };
_Static_assert(offsetof(struct scenario_file, options) == 0,
    "both tables use offsets from the start of struct scenario");
_Static_assert(
    offsetof(struct scenario, name) == 0, "'report' has its field in struct scenario itself");

const struct config_table scenario_file_table = {
    "a scenario", scenario_fields, N_FIELDS - POINT_ONLY, .unmodelled = parallelism_elsewhere};
const struct config_table scenario_table = {"a scenario", scenario_fields + FILE_ONLY,
    N_FIELDS - FILE_ONLY, .unmodelled = parallelism_elsewhere};

static const struct config_field framework_fields[] = {
    FRAMEWORK_FIELDS,
    SECTION("run", exec, launcher_table, "what its launcher sets: PyTorch's allocator"),
};
const struct config_table scenario_framework_table = {"the settings of a stack", framework_fields,
    sizeof framework_fields / sizeof *framework_fields, .unmodelled = parallelism_elsewhere};

const char *scenario_key_path(const char *path, struct arena *arena)
{
    return config_key_path(&scenario_table, hw_override_path(path, arena), arena);
}
