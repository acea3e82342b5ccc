/* Options of `flopcast memory`, `flopcast capacity` and `flopcast model`, and what they name.
 *
 * Options are settings of a scenario. A scenario file is loaded with them as `run` loads it. A
 * model alone gets defaults for what nobody said, and is loaded on the cluster it would lie on;
 * where that cannot take the job (12 GPUs of nodes of 8), on one of single GPUs without end, where
 * memory is counted but no allocator or step is simulated. */
#include "base/files.h"
#include "options/arguments.h"
#include "options/given.h"
#include "cli/memory.h"
#include "rows/vary.h"
#include "rows/words.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options ---- */

/* What the command line says of a setting, the last time; NULL: nothing. */
static const char *request_given(const struct memory_request *request, const char *path)
{
    const char *value = NULL;
    struct arena arena = ARENA_INIT;
    for (int i = 0; i < request->overrides.list.n; i++)
        if (strcmp(scenario_key_path(request->overrides.list.at[i].key, &arena), path) == 0)
            value = request->overrides.list.at[i].value;
    arena_release(&arena);
    return value;
}

static void request_set(struct memory_request *request, const char *path, const char *value)
{
    overrides_push(&request->overrides, NULL, (struct scenario_override){path, value});
}

static bool is_of_hardware(const char *key)
{
    struct arena arena = ARENA_INIT;
    const char *path = hw_override_path(key, &arena);
    bool is = strncmp(path, "gpu.", strlen("gpu.")) == 0 ||
              strncmp(path, "cluster.node.", strlen("cluster.node.")) == 0;
    arena_release(&arena);
    return is;
}

static void request_check(void *self, struct argp_state *state)
{
    const struct memory_request *request = self;
    bool named = request->gpu_path || request_given(request, "cluster.topology");
    if (!request->name)
        argp_error(state,
            request->model
                ? "a file is missing"
                : "MODEL is missing: a model or scenario, or a parameter count such as 11.3B");
    if (request->gpu_path && request_given(request, "cluster.topology"))
        argp_error(state, "the cluster file of --topology names its GPU; leave --gpu out");
    if (request->capacity && request_given(request, "train.micro_batch"))
        argp_error(state, "leave --micro-batch out: it is what is looked for");
    if (request->capacity && request_given(request, "train.activation_checkpointing"))
        argp_error(state, "leave --checkpointing out: capacity shows all kinds of it");
    if (request->job.int8 && request_given(request, "train.lora_rank"))
        argp_error(state, "adapters are not trained in int8; of their base it is --lora-base int8");
    if (request->capacity && request->job.int8)
        argp_error(state, "nobody trains in int8, of which activations are not known; use "
                          "bf16_mixed, or --lora-base int8");
    for (int i = 0; i < request->overrides.list.n && !named; i++)
        if (is_of_hardware(request->overrides.list.at[i].key))
            argp_error(state, "--set %s is for one GPU; name it by --gpu or --topology",
                request->overrides.list.at[i].key);
}

static void take_precision(void *self, const struct argument *argument)
{
    struct memory_request *request = self;
    request->job.int8 = strcmp(argument->text, "int8") == 0;
    if (!request->job.int8)
        request_set(request, "train.precision", argument->text);
}

static void take_base(void *self, const struct argument *argument)
{
    struct memory_request *request = self;
    int base = argument_name(argument, memory_base_names);
    request->job.int8_base = base == MEMORY_BASE_INT8;
    if (base != MEMORY_BASE_HALF) /* INT8 is counted in NF4's place */
        request_set(request, "train.qlora", "true");
}

static void take_qlora(void *self, const struct argument *argument)
{
    struct memory_request *request = self;
    (void)argument;
    request_set(request, "train.qlora", "true");
    if (!request->capacity)
        request_set(request, "train.activation_checkpointing", "full");
}

static const struct command_option memory_request_options[] = {
    {"precision", "P",
        "As in bf16_mixed (default) or fp8_mixed (train.precision); int8, which nobody trains in: "
        "states alone are counted",
        OPTION_TAKE, .take = take_precision, .names = precision_names},
    {"dtype", "P", "The same as --precision", OPTION_TAKE, .take = take_precision,
        .names = precision_names, .flags = OPTION_HIDDEN},
    JOB_MEMORY_OPTIONS(struct memory_request),
    {"set", "KEY=VALUE",
        "Any setting of a scenario, as in --set train.cross_entropy=fused; of a GPU or cluster "
        "that is named its numbers, too, as gpu.hbm_capacity=96GiB",
        OPTION_SET, AT(memory_request, overrides)},
    {"lora-base", "B",
        "What the blocks' matrices of the frozen model are in: 16bit (default), int8 or nf4; where "
        "they are quantised, everything else is in FP32, as prepare_model_for_kbit_training leaves "
        "it",
        OPTION_TAKE, .take = take_base, .names = memory_base_names},
    {"qlora", NULL,
        "With --lora: --lora-base nf4, and full checkpointing, which "
        "prepare_model_for_kbit_training turns on",
        OPTION_TAKE, .take = take_qlora},
    RECORDS_OPTION(struct memory_request),
    {"teach", NULL, "The usual rules of thumb, too, each beside what is modelled", OPTION_FLAG,
        AT(memory_request, teach)},
    {"savings", NULL,
        "What each way to save memory gives alone, and what it costs of the step's time, simulated "
        "without noise",
        OPTION_FLAG, AT(memory_request, savings)},
    {"gpu", "FILE|SIZE",
        "GPU file (topologies/gpus/...), or the memory of any card, as 24GiB, instead of all known "
        "ones: what would make it fit, too",
        OPTION_TEXT, AT(memory_request, gpu_path)},
    {0},
};

const char *memory_said(const struct memory_change *change, struct arena *arena)
{
    const char *text = "";
    for (int i = 0; i < change->n; i++) {
        const struct scenario_override *one = &change->settings[i];
        const char *option = NULL;
        for (const struct command_option *at = memory_request_options; at->name; at++)
            option = at->kind == OPTION_SETTING && !at->text && strcmp(at->path, one->key) == 0
                         ? at->name
                         : option;
        text = option
                   ? arena_printf(arena, "%s%s--%s %s", text, *text ? " " : "", option, one->value)
                   : arena_printf(
                         arena, "%s%s--set %s=%s", text, *text ? " " : "", one->key, one->value);
    }
    return text;
}

/* The options of a command that has fewer: those named; of `capacity` all but those. */
static void keep_options(struct command_option *all, const char *const *names, bool kept)
{
    struct command_option *end = all;
    for (; all->name; all++) {
        bool named = false;
        for (const char *const *name = names; *name && !named; name++)
            named = strcmp(all->name, *name) == 0;
        if (named == kept)
            *end++ = *all;
    }
    *end = (struct command_option){0};
}

void memory_parse(struct memory_request *request, int argc, char **argv, const char *doc)
{
    static const char *const of_model[] = {
        "tensor", "pipeline", "virtual", "expert", "expert-tensor", "force", "format", NULL};
    static const char *const not_of_capacity[] = {"teach", "savings", NULL};
    static const char *const searched[] = {"micro-batch", "checkpointing"};
    struct command_option own[sizeof memory_request_options / sizeof *memory_request_options];
    request->job.point.options = scenario_default();
    memcpy(own, memory_request_options, sizeof own);
    if (request->model)
        keep_options(own, of_model, true);
    if (request->capacity)
        keep_options(own, not_of_capacity, false);
    for (struct command_option *at = own; at->name && request->capacity; at++)
        for (size_t i = 0; i < sizeof searched / sizeof *searched; i++)
            at->flags |= strcmp(at->name, searched[i]) == 0 ? OPTION_HIDDEN : 0;
    const char *file = request->model ? "FILE" : "MODEL";
    const struct command_line line = {own, file, doc, COMMON_TABLE, file, AT(memory_request, name),
        .check = request_check, .files = FILES_MODELS};
    command_line_parse(&line, argc, argv, request);
}

/* ---- the GPUs, and the cluster that the job lies on ---- */

/* A card of which only the memory is known: --gpu 24GiB. It is taken to multiply in every number
 * format. */
static enum status make_card(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    static const char assumed[] = "between the 0.4 and 0.6 GB of the files of topologies/gpus";
    double bytes = 0;
    char why[256];
    if (!quantity_parse(&bytes, request->gpu_path, DIM_BYTES, why, sizeof why) || !(bytes > 0))
        return diag_input(diag, (struct source_pos){.file = "--gpu"},
            "'%s' is no file and no size of memory; write one as 24GiB, or a file as "
            "topologies/gpus/a100-sxm4-80gb.yaml",
            request->gpu_path);
    request->n_gpus = 1;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, 1);
    request->any_math = true;
    request->gpus[0].gpu =
        (struct hw_gpu){.name = arena_printf(arena, "a card of %s", request->gpu_path),
            .hbm_capacity = {.value = bytes, .kind = QUANTITY_DATASHEET, .source = "--gpu"},
            .context_bytes = {.value = 0.5e9, .kind = QUANTITY_ASSUMED, .source = assumed}};
    for (int i = 0; i < request->overrides.list.n; i++)
        if (is_of_hardware(request->overrides.list.at[i].key))
            return diag_input(diag, (struct source_pos){.file = "--set"},
                "of a card of %s only the memory is known; name a GPU file by --gpu",
                request->gpu_path);
    return STATUS_OK;
}

static enum status load_known_gpus(
    struct memory_request *request, struct arena *arena, struct diag *diag)
{
    glob_t found = {0};
    enum status status = STATUS_OK;
    const char *all = files_own(arena, "topologies/gpus/*.yaml");
    if (request->gpu_path)
        request->gpu_path = files_find(arena, FILES_GPUS, request->gpu_path);
    if (request->gpu_path && isdigit((unsigned char)*request->gpu_path) &&
        access(request->gpu_path, F_OK) != 0)
        return make_card(request, arena, diag);
    if (!request->gpu_path && glob(all, 0, NULL, &found) != 0)
        return diag_io(diag, (struct source_pos){.file = all},
            "there is no GPU here; FLOPCAST_DATA names the folder with flopcast's files, --gpu a "
            "file of your own");
    request->n_gpus = request->gpu_path ? 1 : (int)found.gl_pathc;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, request->n_gpus);
    for (int i = 0; i < request->n_gpus && status == STATUS_OK; i++) {
        const char *path = request->gpu_path ? request->gpu_path : found.gl_pathv[i];
        struct diag unsaid = DIAG_INIT; /* of a list of all, what a file warns of */
        status =
            hw_load_gpu(&request->gpus[i].gpu, path, arena, request->gpu_path ? diag : &unsaid);
        if (status != STATUS_OK && !request->gpu_path)
            status = hw_load_gpu(&request->gpus[i].gpu, path, arena, diag);
    }
    globfree(&found);
    return status;
}

struct listed {
    const char *path;
    int named; /* has a short name */
};

/* Whole nodes, or part of one. */
static bool takes(const struct hw *hw, int64_t gpus)
{
    int64_t node = hw_gpus_per_node(hw);
    return gpus <= node || (gpus % node == 0 && gpus / node <= (int64_t)hw->cluster.nodes.value);
}

/* The cluster that a short name means comes before others of its GPU, as `--gpu h100` and
 * `topology: h100` are one. */
static int named_first(const void *a, const void *b)
{
    const struct listed *one = a, *other = b;
    return one->named != other->named ? other->named - one->named : strcmp(one->path, other->path);
}

static struct listed *list_clusters(const glob_t *found, struct arena *arena)
{
    struct listed *all = ARENA_ARRAY(arena, struct listed, (int)found->gl_pathc);
    const struct files_group *clusters = files_groups;
    while (clusters->kind != FILES_CLUSTERS)
        clusters++;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        all[i].path = found->gl_pathv[i];
        all[i].named = *files_aliases(arena, clusters, words_stem(all[i].path, arena)) != '\0';
    }
    if (found->gl_pathc)
        qsort(all, found->gl_pathc, sizeof *all, named_first);
    return all;
}

/* flopcast's clusters, those with a short name first, then by alphabet: each GPU's NCCL buffers as
 * in the first that has it, and the cluster of the one that was named: the first that has it and
 * takes that number of GPUs. */
static const char *look_at_clusters(
    struct memory_request *request, int64_t gpus, struct arena *arena)
{
    glob_t found = {0};
    const char *chosen = NULL;
    if (glob(files_own(arena, "topologies/clusters/*.yaml"), 0, NULL, &found) != 0)
        return NULL;
    const struct listed *clusters = list_clusters(&found, arena);
    for (size_t f = 0; f < found.gl_pathc && !chosen; f++) {
        struct diag diag = DIAG_INIT;
        struct hw hw;
        if (hw_load(&hw, clusters[f].path, arena, &diag) != STATUS_OK)
            continue;
        for (int i = 0; i < request->n_gpus; i++) {
            struct memory_gpu *gpu = &request->gpus[i];
            if (strcmp(hw.gpu.name, gpu->gpu.name) != 0)
                continue;
            gpu->nccl_bytes = gpu->nccl_bytes > 0 ? gpu->nccl_bytes : hw.node.nccl_bytes.value;
            chosen = request->gpu_path && takes(&hw, gpus) ? arena_strdup(arena, clusters[f].path)
                                                           : NULL;
        }
    }
    globfree(&found);
    return chosen;
}

/* Of no cluster that is known: an H100's. */
static enum status choose_cluster(
    struct memory_request *request, int64_t gpus, struct arena *arena, struct diag *diag)
{
    const char *h100_path = files_own(arena, "topologies/clusters/h100-8x400g.yaml");
    struct hw h100;
    if (load_known_gpus(request, arena, diag) != STATUS_OK ||
        hw_load(&h100, h100_path, arena, diag) != STATUS_OK)
        return diag->worst;
    request->cluster_path = look_at_clusters(request, request->capacity ? gpus : 1, arena);
    if (!request->cluster_path)
        request->cluster_path = h100_path;
    for (int i = 0; i < request->n_gpus; i++)
        if (!(request->gpus[i].nccl_bytes > 0))
            request->gpus[i].nccl_bytes = h100.node.nccl_bytes.value;
    return STATUS_OK;
}

/* Puts the one GPU that was named in the point's place, where its cluster's is another one, and
 * takes what --set says of it from there. A file of one's own may have a known name. */
static enum status place_gpu(
    struct memory_request *request, struct scenario_point *point, struct diag *diag)
{
    struct hw *hw = &point->hw;
    const struct hw_gpu *gpu = &request->gpus[0].gpu;
    bool by_gpu = scenario_origin(point, "train.attention").kind == ORIGIN_DEFAULT;
    if (request->any_math) {
        hw->gpu.name = gpu->name;
        hw->gpu.hbm_capacity = gpu->hbm_capacity;
        hw->gpu.context_bytes = gpu->context_bytes;
    } else {
        hw->gpu = *gpu;
        hw_override_gpu(&hw->gpu, &point->options.cluster.given);
    }
    hw_derive(hw);
    if (!request->job.has_model)
        return STATUS_OK;
    if (by_gpu)
        point->options.strategy.train.attention = -1;
    scenario_default_attention(point);
    return scenario_prepare(point, diag);
}

/* ---- the model, and the defaults of its job ---- */

/* "1B", "11.3B", "124M", "7e9": parameters; 0 when text is something else. */
static int64_t parameter_count(const char *text)
{
    static const int64_t FEWEST = 1000,
                         MOST = 1000000000000000; /* 70 is 70B without its letter, not a model */
    int64_t params = 0;
    bool read = count_parse(&params, text, 1000) == COUNT_OK;
    return read && params >= FEWEST && params < MOST ? params : 0;
}

/* The file of a model or scenario. */
static enum status memory_request_find_file(
    struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct source_pos at = {.file = request->name};
    int64_t params = 0;
    enum count_text count = count_parse(&params, request->name, 1000);
    const char *scenario = files_find(arena, FILES_SCENARIOS, request->name);
    request->name = files_find(arena, FILES_MODELS, request->name);
    if (request->model || files_holder(arena, request->name)) /* model_load() says what is wrong */
        return STATUS_OK;
    int reason = errno;
    if (files_holder(arena, scenario)) {
        request->name = scenario;
        return STATUS_OK;
    }
    if (count != COUNT_NO_NUMBER)
        return diag_input(diag, at,
            "a number of parameters is whole, from 1000 to 10^15, as in 11.3B; MODEL may also be a "
            "model or scenario file, or its name");
    return diag_input(diag, at,
        "cannot open: %s; MODEL is a model file, as scenarios/models/t5-11b.yaml, its name, as "
        "t5-11b, a scenario, or a number of parameters, as in 11.3B%s",
        strerror(reason), files_hint(arena, FILES_MODELS, request->name));
}

/* The options of a scenario that has nothing but what the command line says. Mistakes are found
 * later. */
static struct scenario options_said(const struct memory_request *request, struct arena *arena)
{
    struct scenario_point point = {.options = scenario_default()};
    for (int i = 0; i < request->overrides.list.n; i++) {
        struct diag unsaid = DIAG_INIT;
        scenario_set_option(&point, &request->overrides.list.at[i], NULL, arena, &unsaid);
    }
    return point.options;
}

static void set_default(struct memory_request *request, const char *path, const char *value)
{
    if (!request_given(request, path))
        request_set(request, path, value);
}

static const char *memory_request_number(int64_t value, struct arena *arena)
{
    return arena_printf(arena, "%" PRId64, value);
}

/* What holds where nobody says it. shape NULL: none is known. */
static void set_defaults(
    struct memory_request *request, const struct model_shape *shape, struct arena *arena)
{
    const struct parallelism_options *parallelism = &request->said.strategy.parallelism;
    int64_t said = request->said.cluster.gpus, copy = memory_copy_gpus(parallelism);
    int64_t gpus = said > 0 ? said : copy;
    bool batch =
        request_given(request, "train.micro_batch") || request_given(request, "train.device_batch");
    bool swept = said == 0 && request_given(request, "cluster.gpus");
    request->job.counted = shape && (batch || request_given(request, "train.seq_len"));
    set_default(request, "cluster.gpus", memory_request_number(gpus, arena));
    set_default(request, "cluster.topology", request->cluster_path);
    set_default(request, "strategy",
        copy > 1            ? "megatron"
        : request->capacity ? "fsdp"
        : gpus > 1 || swept ? "ddp"
                            : "single_device");
    set_default(request, "train.precision", "bf16_mixed");
    /* Megatron-LM demands it; it cuts no parameter. */
    if (request->model && parallelism->model.tensor > 1 && parallelism->model.expert > 1)
        set_default(request, "parallelism.sequence", "true");
    /* As many micro-batches as fill the pipeline. */
    if (parallelism->pipeline > 1 && !request_given(request, "train.global_batch"))
        set_default(
            request, "train.grad_accum", memory_request_number(2 * parallelism->pipeline, arena));
    if (shape && !request->job.counted && !request->capacity && model_sample_tokens(shape) == 0)
        set_default(request, "train.seq_len",
            memory_request_number(parallelism->model.sequence || request->model
                                      ? model_tensor_ranks(&parallelism->model)
                                      : 1,
                arena));
}

/* A bare number of parameters: no model, so no scenario. */
static enum status load_count(
    struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct scenario_point *point = &request->job.point;
    struct source_pos at = {.file = request->name};
    const struct strategy_options *strategy = &point->options.strategy;
    set_defaults(request, NULL, arena);
    point->file = request->name;
    struct config_origin *origins =
        ARENA_ARRAY(arena, struct config_origin, request->overrides.list.n);
    for (int i = 0; i < request->overrides.list.n; i++) {
        const struct scenario_override *one = &request->overrides.list.at[i];
        const char *name = request->overrides.names.at[i];
        origins[i] = (struct config_origin){scenario_key_path(one->key, arena),
            {.file = scenario_override_name(one, name, arena), .line = 1, .column = 1},
            ORIGIN_COMMAND_LINE};
        if (strcmp(one->key, "noise") != 0)
            scenario_set_option(point, one, name, arena, diag);
    }
    point->origins.list.at = origins;
    point->origins.list.n = point->origins.list.capacity = request->overrides.list.n;
    struct hw_sources sources = {0};
    if (diag->worst == STATUS_OK &&
        hw_load_from(&point->hw, &sources,
            files_find(arena, FILES_CLUSTERS, point->options.cluster.topology), arena,
            diag) == STATUS_OK) {
        hw_override(&point->hw, &point->options.cluster.given);
        hw_check_given(&point->hw, &sources, &point->origins, diag);
    }
    hw_sources_free(&sources);
    if (diag->worst != STATUS_OK)
        return diag->worst;
    if (request->capacity || strategy->train.lora_rank > 0 ||
        memory_copy_gpus(&strategy->parallelism) > 1)
        return diag_input(diag, at,
            "%s on the shape of the model; give a model file instead of a number of parameters",
            request->capacity ? "activations depend"
            : strategy->train.lora_rank > 0
                ? "adapters depend"
                : "what tensor, pipeline, context and expert parallelism cut depends");
    if (strategy->train.qlora || strategy->train.lora_targets)
        return diag_input(diag, at,
            "--qlora, --lora-base and train.lora_targets say more about --lora RANK, which is "
            "missing");
    request->anywhere = true;
    memory_unlimited(&point->hw);
    return STATUS_OK;
}

static enum status load_set(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    enum status status =
        overrides_load(&request->set, request->name, &request->overrides, arena, diag);
    if (status == STATUS_OK)
        request->job.point = request->set.points[0];
    return status;
}

static enum status load_model(
    struct memory_request *request, struct arena *arena, struct diag *diag)
{
    static const struct scenario_override end_less[] = {{"cluster.nodes", "1000000"},
        {"cluster.node.gpus", "1"}, {"cluster.node.host_memory", "1PB"},
        {"cluster.node.host_bandwidth", "1GB/s"}};
    struct model_shape shape = {0};
    struct diag here = DIAG_INIT;
    const char *force = request_given(request, "force");
    if (model_load(&shape, request->name, force && strcmp(force, "true") == 0, arena, &here) !=
        STATUS_OK) {
        diag_merge(diag, &here);
        return diag->worst;
    }
    set_defaults(request, &shape, arena);
    if (load_set(request, arena, &request->why) == STATUS_OK) {
        diag_merge(diag, &request->why); /* warnings */
        return STATUS_OK;
    }
    request->anywhere = true;
    for (size_t i = 0; i < sizeof end_less / sizeof *end_less; i++)
        set_default(request, end_less[i].key, end_less[i].value);
    return load_set(request, arena, diag);
}

/* Of a model, as Hugging Face's tools write it; without a config.json model_load() says so. */
static bool is_folder(const char *path)
{
    struct stat there;
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

static enum status load_job(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct memory_job *job = &request->job;
    enum status status =
        request->of_file ? load_set(request, arena, diag) : load_model(request, arena, diag);
    job->has_model = true;
    job->counted = job->counted || request->of_file;
    if (request->of_file)
        request->gpus_asked = job->point.options.cluster.gpus;
    job->params = job->point.model.params;
    return status;
}

/* The GPUs to say "fits" of. */
static void take_gpu_of_point(struct memory_request *request, struct arena *arena)
{
    const struct hw *hw = &request->job.point.hw;
    request->n_gpus = 1;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, 1);
    request->gpus[0] = (struct memory_gpu){hw->gpu, hw->node.nccl_bytes.value};
}

enum status memory_load(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct memory_job *job = &request->job;
    job->params = request->model ? 0 : parameter_count(request->name);
    bool counts = job->params > 0;
    if (!counts && memory_request_find_file(request, arena, diag) != STATUS_OK)
        return diag->worst;
    request->said = options_said(request, arena);
    const struct scenario_cluster_options *said = &request->said.cluster;
    request->of_file = !counts && !request->model && !is_folder(request->name) &&
                       !scenario_is_model(request->name);
    request->gpus_asked = said->gpus;
    request->named = request->gpu_path || said->topology || request->of_file;
    if (request->capacity && !request->named)
        return diag_input(diag, (struct source_pos){.file = "--gpu"},
            "missing; name a file such as topologies/gpus/a100-sxm4-80gb.yaml, or a size such as "
            "24GiB");
    bool chosen = request->gpu_path || !request->named;
    if (chosen &&
        choose_cluster(request, said->gpus > 0 ? said->gpus : 1, arena, diag) != STATUS_OK)
        return diag->worst;
    if (request->of_file && request->gpu_path)
        request_set(request, "cluster.topology", request->cluster_path);
    enum status status = counts ? load_count(request, arena, diag) : load_job(request, arena, diag);
    if (status != STATUS_OK)
        return status;
    if (request->gpu_path)
        status = place_gpu(request, &job->point, diag);
    for (int i = 0; i < request->set.n_points && request->gpu_path && status == STATUS_OK; i++)
        status = place_gpu(request, &request->set.points[i], diag);
    if (request->named && !request->any_math)
        take_gpu_of_point(request, arena);
    return status == STATUS_OK ? memory_check(job, diag) : status;
}

void memory_free(struct memory_request *request)
{
    overrides_free(&request->overrides);
}
