/* Numbers of the hardware that a scenario gives in place of the files'.
 *
 * The tables here have fields of type FIELD_OVERRIDES: the keys of the three file tables, but in a
 * struct hw in which unset means not given. hw_override() copies what is set over the loaded
 * hardware and derives what follows from it.
 *
 * Subtle: hosts of a rack. A rack of 18 trays with 4 GPUs of which a scenario takes 64 GPUs has 16
 * trays; keep_hosts() works that out from the GPUs of a host before the override, so that number
 * must be read before anything is copied. Checks run again on the result, and each source gets the
 * origins of what was given, with the prefix under which its keys stand there: an error then points
 * at --set or the scenario, not at a file that is right. */
#include "hw/override.h"

#include "hw/table.h"

#include <math.h>
#include <string.h>

static const struct config_field override_cluster_fields[] = {
    {CONFIG_FIELD("node", FIELD_OVERRIDES, struct hw, node, "Numbers of the node's file."),
        .section = &hw_node_table},
    {CONFIG_FIELD("", FIELD_OVERRIDES, struct hw, cluster, "Numbers of the cluster's file."),
        .section = &hw_cluster_table},
};
static const struct config_table override_cluster_table =
    CONFIG_TABLE("'cluster'", override_cluster_fields);
static const struct config_field override_fields[] = {
    {.key = "cluster",
        .type = FIELD_SECTION,
        .help = "The cluster and its node.",
        .section = &override_cluster_table},
    {CONFIG_FIELD("gpu", FIELD_OVERRIDES, struct hw, gpu, "Numbers of the GPU's file."),
        .section = &hw_gpu_table},
};
const struct config_table hw_override_table = CONFIG_TABLE("the hardware", override_fields);

void hw_sources_free(struct hw_sources *sources)
{
    vec_free(&sources->cluster.keys.list);
    vec_free(&sources->node.keys.list);
    vec_free(&sources->gpu.keys.list);
}

struct hw hw_nothing_given(void)
{
    struct hw nothing = {0};
    config_give_nothing(&nothing.cluster, &hw_cluster_table);
    config_give_nothing(&nothing.node, &hw_node_table);
    config_give_nothing(&nothing.gpu, &hw_gpu_table);
    return nothing;
}

bool hw_is_given(const struct hw *given)
{
    return config_is_given(&override_fields[0], given) ||
           config_is_given(&override_fields[1], &given->gpu);
}

/* Where only the GPUs of a node of several hosts are given, they are in fewer hosts, or more, as
 * large as before. */
static void keep_hosts(struct hw_node *node, const struct hw_node *given, double of_host)
{
    if (quantity_is_set(node->hosts) && !quantity_is_set(given->hosts) &&
        fmod(node->gpus.value, of_host) == 0)
        node->hosts.value = node->gpus.value / of_host;
    else if (quantity_is_set(node->hosts) && !quantity_is_set(given->hosts) &&
             node->gpus.value < of_host)
        node->hosts.value = 1;
}

void hw_override(struct hw *hw, const struct hw *given)
{
    double of_host = hw_gpus_per_host(hw);
    config_take_given(&hw->cluster, &given->cluster, &hw_cluster_table);
    config_take_given(&hw->node, &given->node, &hw_node_table);
    keep_hosts(&hw->node, &given->node, of_host);
    hw_override_gpu(&hw->gpu, given);
    hw_derive(hw);
}

void hw_override_gpu(struct hw_gpu *gpu, const struct hw *given)
{
    config_take_given(gpu, &given->gpu, &hw_gpu_table);
}

static struct hw_source with(
    struct hw_source source, const struct config_origins *given, const char *prefix)
{
    source.given = given;
    source.prefix = prefix;
    return source;
}

enum status hw_check_given(const struct hw *hw, const struct hw_sources *sources,
    const struct config_origins *origins, struct diag *diag)
{
    struct hw_source cluster = with(sources->cluster, origins, "cluster.");
    struct hw_source node = with(sources->node, origins, "cluster.node."),
                     gpu = with(sources->gpu, origins, "gpu.");
    enum status of_gpu = hw_check_gpu(&hw->gpu, &gpu, diag),
                of_node = hw_check_node(&hw->node, &node, diag);
    enum status of_cluster = hw_check_cluster(hw, &cluster, diag);
    return of_gpu ? of_gpu : of_node ? of_node : of_cluster;
}

const char *hw_override_path(const char *path, struct arena *arena)
{
    static const struct {
        const char *from, *to;
    } others[] = {{"cluster.node.gpu.", "gpu."}, {"cluster.gpu.", "gpu."}, {"node.gpu.", "gpu."},
        {"node.", "cluster.node."}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t n = strlen(others[i].from);
        if (strncmp(path, others[i].from, n) == 0)
            return arena_printf(arena, "%s%s", others[i].to, path + n);
    }
    return path;
}
