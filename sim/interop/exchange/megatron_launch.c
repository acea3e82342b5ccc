/* What stands before the program: launchers' options, of which those count that say how many
 * GPUs there are; the head for a scheduler; the allocator's settings in the environment.
 *
 * GPUs are torchrun's --nnodes x --nproc-per-node where it is used; without it a process is a
 * GPU: tasks, or nodes x tasks a node, or nodes x GPUs a node. The last setting that counts a
 * thing holds, as later options replace earlier ones. What is subtle: Megatron-LM's table of
 * options has those of torchrun, so an option behind an unknown launcher is the program's if the
 * table sets something by it. */
#include "exchange/launch.h"
#include "exchange/megatron.h"

#include <stdlib.h>
#include <string.h>

/* Options of torchrun, which Megatron-LM's table has; its option of a rule that sets something is
 * Megatron's wherever it stands: what a launcher that is not known runs is not known. */
static bool is_of_program(const struct configuration *config, const struct shell_argument *argument)
{
    bool of_head = *argument->launcher == '#' || strcmp(argument->launcher, SHELL_ENVIRONMENT) == 0;
    bool is_long = strncmp(argument->name, "--", 2) == 0;
    return !of_head && is_long &&
           (launch_is_python(argument->launcher) || megatron_sets(config, argument->name));
}

bool megatron_launcher(struct configuration *config, struct configuration_setting *setting,
    const struct shell_argument *argument)
{
    const char *launcher = argument->launcher;
    if (!launcher)
        return false;
    bool counts = launch_count_of(launcher, argument->name) != LAUNCH_COUNTS;
    bool environment = strcmp(launcher, SHELL_ENVIRONMENT) == 0;
    if (!counts && !environment && is_of_program(config, argument))
        return false;
    setting->name = environment ? argument->name
                                : arena_printf(config->arena, "%s %s", launcher, argument->name);
    if (!counts && !environment)
        setting_aside(setting, "of the launcher");
    return true;
}

static enum launch_count count_of(
    struct configuration *config, const struct configuration_setting *setting)
{
    size_t n = strcspn(setting->name, " ");
    const char *launcher = arena_printf(config->arena, "%.*s", (int)n, setting->name);
    return setting->name[n] ? launch_count_of(launcher, setting->name + n + 1) : LAUNCH_COUNTS;
}

/* The last setting, of a launcher or a scheduler's head, that counts this; NULL: there is none
 * whose value is known. */
static struct configuration_setting *counted(
    struct configuration *config, enum launch_count what, int64_t *value)
{
    for (int i = config->settings.n - 1; i >= 0; i--) {
        struct configuration_setting *setting = &config->settings.at[i];
        if (count_of(config, setting) != what)
            continue;
        *value = launch_number(setting->value);
        if (*value > 0)
            return setting;
    }
    *value = 0;
    return NULL;
}

/* GPUs without torchrun: a process each. */
static struct configuration_setting *count_processes(struct configuration *config, int64_t *gpus)
{
    int64_t nodes = 0, each = 0;
    struct configuration_setting *tasks = counted(config, LAUNCH_TASKS, gpus);
    counted(config, LAUNCH_NODES, &nodes);
    struct configuration_setting *per_node = counted(config, LAUNCH_TASKS_PER_NODE, &each);
    if (!tasks && per_node && nodes > 0) {
        *gpus = times(nodes, each);
        return per_node;
    }
    if (!tasks && (per_node = counted(config, LAUNCH_GPUS_PER_NODE, &each)) && nodes > 0) {
        *gpus = times(nodes, each);
        return per_node;
    }
    return tasks ? tasks : counted(config, LAUNCH_GPUS, gpus);
}

/* torchrun's --nproc-per-node gpu: as many as a node has. False: nothing says how many. */
static bool resolve_auto(struct configuration *config, struct configuration_setting *per_node)
{
    int64_t here = 0;
    if (strcmp(per_node->value, "gpu") != 0 && strcmp(per_node->value, "auto") != 0)
        return true;
    if (!counted(config, LAUNCH_GPUS_PER_NODE, &here)) {
        setting_aside(per_node, "as many as a node has; --gpus says it");
        return false;
    }
    per_node->value = number_text(config, here);
    return true;
}

static void finish_torchrun(
    struct configuration *config, struct configuration_setting *per_node, struct diag *diag)
{
    struct configuration_setting *nodes = setting_find(config, "--nnodes");
    if (!resolve_auto(config, per_node))
        return;
    int64_t gpus = times(
        setting_int(config, "--nproc-per-node", 0, diag), setting_int(config, "--nnodes", 1, diag));
    bool known = !setting_open(config, "--nnodes") && (!nodes || nodes->words == NULL);
    if (gpus > 0 && known && !put_find(config, "cluster.gpus"))
        put_setting(config, "cluster.gpus", number_text(config, gpus), per_node);
    setting_aside(
        per_node, known ? "--gpus says it" : "it is multiplied by --nnodes, which is not known");
    if (known)
        setting_aside(nodes, "with --nproc-per-node");
}

void megatron_gpus(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *per_node = setting_find(config, "--nproc-per-node"), *by = NULL;
    int64_t gpus = 0;
    if (per_node)
        finish_torchrun(config, per_node, diag);
    else if (!setting_open(config, "--nproc-per-node") && (by = count_processes(config, &gpus)) &&
             !put_find(config, "cluster.gpus"))
        put_setting(config, "cluster.gpus", number_text(config, gpus), by);
    for (int i = 0; i < config->settings.n; i++) {
        struct configuration_setting *setting = &config->settings.at[i];
        if (count_of(config, setting) != LAUNCH_COUNTS)
            setting_aside(setting, "of the launcher");
    }
}

/* ---- the allocator ---- */

/* One of PyTorch's CUDAAllocatorConfig; false: it is not simulated. */
static bool take_allocator(struct configuration *config, struct configuration_setting *setting,
    const char *key, const char *value)
{
    int64_t number = strtoll(value, NULL, 10);
    if (strcmp(key, "expandable_segments") == 0)
        put_setting(config, "run.expandable_segments",
            strcmp(value, "True") == 0 || strcmp(value, "true") == 0 ? "true" : "false", setting);
    else if (strcmp(key, "max_split_size_mb") == 0 && number > 0)
        put_setting(config, "run.max_split_size_mb", number_text(config, number), setting);
    else
        return strncmp(key, "pinned_", strlen("pinned_")) == 0; /* of the host's memory */
    return true;
}

/* "expandable_segments:True,max_split_size_mb:128" */
static void split_allocator(struct configuration *config, struct configuration_setting *setting)
{
    const char *at = setting->value + strspn(setting->value, " ,");
    for (size_t n = 0; *at; at += n, at += strspn(at, " ,")) {
        n = strcspn(at, ",");
        size_t key = strcspn(at, ":,");
        const char *name = arena_printf(config->arena, "%.*s", (int)key, at);
        const char *value =
            key < n ? arena_printf(config->arena, "%.*s", (int)(n - key - 1), at + key + 1) : "";
        if (take_allocator(config, setting, name, value))
            continue;
        setting->fate = FATE_NOT_UNDERSTOOD;
        setting->words = arena_printf(config->arena, "of %s PyTorch's default is simulated", name);
        return;
    }
    setting_aside(setting, "of the host's memory");
}

void megatron_allocator(struct configuration *config, struct diag *diag)
{
    (void)diag;
    static const char *const names[] = {
        "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct configuration_setting *setting = setting_find(config, names[i]);
        if (setting)
            split_allocator(config, setting);
    }
}
