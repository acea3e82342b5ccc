/* The files that points refer to: each is read once a load, and put into every point that names it.
 *
 * Order matters in inputs_load(). The cluster with its node and GPU comes first, then nodes of a
 * second kind, the model, and the stack profile, which replaces rates of the GPU and settings that
 * nobody gave. Numbers that the scenario gives itself outrank the stack's and come after it. Noise
 * is the cluster's where the scenario is silent, so it is taken when the cluster's numbers are
 * final. Last come settings that the GPUs cannot do (needs.c), the kind of attention, and the row
 * of published figures, which is found by the finished settings.
 *
 * Subtle: the list of inputs moves when it grows, so a pointer from get_input() holds only until
 * the next call. A file that could not be read stays in the list with its status: it is reported
 * once, not once a point. */
#include "base/files.h"
#include "config/csv.h"
#include "scenario/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The readers name the file that is missing; here the place that asked for it is known too. */
static bool inputs_can_open(const struct input *input, const struct config_origin *origin,
    struct arena *arena, struct diag *diag)
{
    /* What a path is relative to, as FIELD_PATH has it. */
    static const char *const bases[] = {[ORIGIN_FILE] = "scenario file",
        [ORIGIN_COMMAND_LINE] = "working directory",
        [ORIGIN_TABLE] = "table"};
    if (files_holder(arena, input->path))
        return true;
    static const enum files_kind kinds[] = {[INPUT_HW] = FILES_CLUSTERS,
        [INPUT_MODEL] = FILES_MODELS,
        [INPUT_STACK] = FILES_STACKS,
        [INPUT_PUBLISHED] = FILES_ANY};
    int reason = errno;
    diag_input(diag, origin->at, "cannot open '%s': %s; paths are relative to the %s%s",
        input->path, strerror(reason), bases[origin->kind],
        files_hint(arena, kinds[input->kind], input->path));
    return false;
}

static enum status read_input(struct input *input, struct arena *arena, struct diag *diag)
{
    struct model_shape shape = {0};
    enum status status = STATUS_OK;
    switch (input->kind) {
    case INPUT_HW:
        return hw_load_from(&input->hw, &input->sources, input->path, arena, diag);
    case INPUT_MODEL:
        status = model_load(&shape, input->path, input->force, arena, diag);
        if (input->max_positions > 0 &&
            shape.max_positions > 0) /* without learned positions: check.c says so */
            shape.max_positions = input->max_positions;
        if (status == STATUS_OK)
            model_build(&input->model, &shape, arena);
        return status;
    case INPUT_STACK:
        return stack_load(&input->stack, input->path, arena, diag);
    case INPUT_PUBLISHED:
        break;
    }
    return csv_load(&input->csv, input->path, diag);
}

/* The input of the wanted kind and path, read when it is new; origin: who asked for it. NULL when
 * it could not be read. */
static const struct input *get_input(struct inputs *inputs, struct input wanted,
    struct config_origin origin, struct arena *arena, struct diag *diag)
{
    for (int i = 0; i < inputs->list.n; i++) {
        const struct input *known = &inputs->list.at[i];
        if (known->kind == wanted.kind && strcmp(known->path, wanted.path) == 0 &&
            known->max_positions == wanted.max_positions && known->force == wanted.force)
            return known->status == STATUS_OK ? known : NULL;
    }
    wanted.status = STATUS_INPUT;
    vec_push(&inputs->list, wanted);
    struct input *input = &inputs->list.at[inputs->list.n - 1];
    if (inputs_can_open(input, &origin, arena, diag))
        input->status = read_input(input, arena, diag);
    return input->status == STATUS_OK ? input : NULL;
}

void inputs_noise(struct noise_field out[NOISE_FIELDS], struct scenario_point *point)
{
    const struct hw_cluster *cluster = &point->hw.cluster;
    struct noise_options *noise = &point->options.exec.noise;
    const struct noise_field fields[NOISE_FIELDS] = {
        {"noise.gpu_speed_spread", &noise->gpu_speed_spread, cluster->gpu_speed_spread},
        {"noise.gpu_speed_spread_below", &noise->gpu_speed_spread_below,
            cluster->gpu_speed_spread_below},
        {"noise.kernel_jitter", &noise->kernel_jitter, cluster->kernel_jitter},
        {"noise.network_jitter", &noise->network_jitter, cluster->network_jitter},
        {"noise.host_jitter", &noise->host_jitter, cluster->host_jitter},
        {"noise.straggler_share", &noise->straggler_share, cluster->straggler_share},
        {"noise.straggler_slowdown", &noise->straggler_slowdown, cluster->straggler_slowdown},
    };
    memcpy(out, fields, sizeof fields);
}

/* A cluster varies as its file says unless the scenario says otherwise. */
static void default_noise(struct scenario_point *point, struct arena *arena)
{
    struct noise_field fields[NOISE_FIELDS];
    inputs_noise(fields, point);
    for (int i = 0; i < NOISE_FIELDS; i++) {
        if (scenario_origin(point, fields[i].path).kind != ORIGIN_DEFAULT ||
            !quantity_is_set(fields[i].cluster))
            continue;
        *fields[i].value = fields[i].cluster.value;
        const char *given = arena_printf(arena, "cluster.%s", strchr(fields[i].path, '.') + 1);
        struct config_origin origin = scenario_origin(point, given);
        if (origin.kind == ORIGIN_DEFAULT)
            origin = (struct config_origin){
                given, {.file = point->options.cluster.topology}, ORIGIN_CLUSTER};
        origin.path = fields[i].path;
        vec_push(&point->origins.list, origin);
    }
}

/* Numbers of the hardware that the scenario gives itself. They outrank the stack's. False: they
 * cannot be. */
static bool use_given(
    struct scenario_point *point, const struct hw_sources *sources, struct diag *diag)
{
    const struct hw *given = &point->options.cluster.given;
    if (!hw_is_given(given))
        return true;
    hw_override(&point->hw, given);
    return hw_check_given(&point->hw, sources, &point->origins, diag) == STATUS_OK;
}

bool inputs_load(
    struct inputs *inputs, struct scenario_point *point, struct arena *arena, struct diag *diag)
{
    const struct scenario *options = &point->options;
    const char *topology = options->cluster.topology, *published = options->published.file;
    const char *stack = options->stack_path;
    struct config_origin topology_at = scenario_origin(point, "cluster.topology");
    struct config_origin model_at = scenario_origin(point, "model");
    struct config_origin stack_at = scenario_origin(point, "stack");
    struct config_origin published_at = scenario_origin(point, "published.file");
    struct source_pos figure_at = scenario_origin(point, "published.figure").at;

    const struct input *input = get_input(
        inputs, (struct input){.kind = INPUT_HW, .path = topology}, topology_at, arena, diag);
    bool complete = input != NULL;
    struct hw_sources sources = {0}; /* a copy: the list of inputs moves when it grows */
    if (input) {
        point->hw = input->hw;
        sources = input->sources;
    }
    input = get_input(inputs,
        (struct input){.kind = INPUT_MODEL,
            .path = options->model_path,
            .max_positions = options->max_positions,
            .force = options->force},
        model_at, arena, diag);
    complete = complete && input;
    if (input)
        point->model = input->model;
    input = stack ? get_input(inputs, (struct input){.kind = INPUT_STACK, .path = stack}, stack_at,
                        arena, diag)
                  : NULL;
    complete = complete && (input || !stack);
    if (input && complete)
        stack_apply(point, &input->stack);
    input = published
                ? get_input(inputs, (struct input){.kind = INPUT_PUBLISHED, .path = published},
                      published_at, arena, diag)
                : NULL;
    complete = complete && (input || !published);
    if (!complete || !use_given(point, &sources, diag))
        return false;
    default_noise(point, arena);
    needs_fall_back(point, diag);
    scenario_default_attention(point);
    if (published)
        published_find(&point->published, input->csv, point, figure_at, arena, diag);
    return true;
}

void inputs_release(struct inputs *inputs)
{
    for (int i = 0; i < inputs->list.n; i++) {
        csv_release(inputs->list.at[i].csv);
        hw_sources_free(&inputs->list.at[i].sources);
    }
    vec_free(&inputs->list);
}
