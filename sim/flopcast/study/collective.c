/* A collective alone on a cluster, size by size.
 *
 * What is subtle: force is a wish; where NCCL could not do it, isolated_cost() is of something
 * else, which is an error here. Groups that have more GPUs on one node than on another are refused,
 * since the model has one shape of a group. */
#include "study/collective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ORDER = 64 };

/* "dp" is both axes of data parallelism; 0: no axis. */
static unsigned named_axes(const char *text, size_t length)
{
    for (int a = 0; a < AXIS_COUNT; a++)
        if (strlen(mesh_axis_names[a]) == length && strncmp(text, mesh_axis_names[a], length) == 0)
            return 1U << a;
    return length == 2 && strncmp(text, "dp", 2) == 0 ? AXES_DP : 0;
}

static int first_axis(unsigned axes)
{
    int axis = 0;
    while (axis < AXIS_COUNT && !(axes & 1U << axis))
        axis++;
    return axis;
}

/* The order of axes is built as text, as mesh_build() takes it from a scenario. */
const char *collective_set_mesh(struct collective_ranks *ranks, const char *text)
{
    int size[AXIS_COUNT] = {0};
    char order[MAX_ORDER] = "";
    long n = 1;
    unsigned seen = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "="), used = strlen(order);
        char none[] = "", *end = none;
        long here = at[length] == '=' ? strtol(at + length + 1, &end, 10) : 0;
        unsigned axes = named_axes(at, length);
        n = here > 0 && here <= COLLECTIVE_MAX_RANKS ? n * here : 0;
        if (axes == 0 || axes & seen || n < 1 || n > COLLECTIVE_MAX_RANKS || (*end && *end != ','))
            return "axes and their sizes are wanted, each once, neighbours first, as in "
                   "tp=8,dp=16,pp=4; there are tp, cp, ep, dp (or dp_shard and dp_replicate) and "
                   "pp";
        seen |= axes;
        size[first_axis(axes)] = (int)here;
        snprintf(order + used, sizeof order - used, "%s%.*s", used ? "-" : "", (int)length, at);
        at = *end ? end + 1 : end;
    }
    const char *bad;
    return mesh_build(&ranks->mesh, size, order, &bad) ? NULL
                                                       : "axes are missing, as in tp=8,dp=16,pp=4";
}

/* "dp", "cp+dp"; 0: something else. */
static unsigned collective_axes_of(const char *text)
{
    unsigned axes = 0;
    for (size_t length; *text; text += length + (text[length] == '+')) {
        length = strcspn(text, "+");
        unsigned named = named_axes(text, length);
        if (named == 0 || axes & named)
            return 0;
        axes |= named;
    }
    return axes;
}

/* Axes of a group that spans several must be neighbours in the order, so that the group has one
 * stride. */
const char *collective_set_group(struct collective_ranks *ranks, const char *text)
{
    unsigned axes = collective_axes_of(text);
    if (axes == 0)
        return "axes of --mesh are wanted, as in dp, or cp+dp for both together";
    if (!mesh_axes_are_side_by_side(&ranks->mesh, axes))
        return "these axes do not lie side by side in --mesh, which is not simulated";
    ranks->group = mesh_group(&ranks->mesh, axes);
    ranks->gpus = ranks->group.size;
    return ranks->gpus == 1 ? "has one rank in --mesh; a collective takes two" : NULL;
}

static enum status cannot(const struct collective *asked, const struct hw *hw,
    const struct coll_cost *nearest, struct diag *diag)
{
    int wanted = asked->force.algorithm;
    bool collnet = wanted == COLL_COLLNET_DIRECT || wanted == COLL_COLLNET_CHAIN;
    const char *why =
        collnet && !quantity_is_set(hw->cluster.nccl_collnet_efficiency)
            ? " (CollNet needs switches that reduce: nccl_collnet_efficiency of the cluster)"
            : "";
    bool algorithm = asked->force.algorithm != COLL_ANY,
         protocol = asked->force.protocol != COLL_ANY;
    const char *option = !protocol ? "--algo" : !algorithm ? "--proto" : "--algo, --proto";
    return diag_input(diag, (struct source_pos){.file = option},
        "%s of %d GPUs of this cluster cannot be done as %s%s%s%s; the nearest is %s with %s",
        coll_kind_names[asked->kind], asked->ranks.gpus,
        algorithm ? coll_algorithm_names[wanted] : "", algorithm && protocol ? " with " : "",
        protocol ? coll_protocol_names[asked->force.protocol] : "", why,
        coll_algorithm_names[nearest->algorithm], coll_protocol_names[nearest->protocol]);
}

/* The group, or those of a mesh. */
static struct isolated *collective_group_of(
    struct collective *asked, const struct hw *hw, struct arena *arena, struct diag *diag)
{
    struct collective_ranks *ranks = &asked->ranks;
    const char *option = asked->degraded         ? "--degraded-links"
                         : ranks->mesh.ranks > 0 ? "--mesh"
                                                 : "--gpus, --nodes";
    struct source_pos at = {.file = option};
    if (ranks->mesh.ranks == 0) {
        ranks->nodes = ranks->nodes > 0 ? ranks->nodes : isolated_fewest_nodes(hw, ranks->gpus);
        return isolated_new(hw, asked->ranks.gpus, ranks->nodes, asked->degraded, at, arena, diag);
    }
    int node = hw_gpus_per_node(hw), n = mesh_group_instances(&ranks->group, ranks->mesh.ranks);
    if (!mesh_group_lies_evenly(&ranks->group, ranks->mesh.ranks, node)) {
        diag_input(diag, at,
            "groups of %d GPUs, %d apart, in nodes of %d: some have more GPUs on one node than on "
            "another, which is not simulated; take sizes that divide %d, or multiples of it",
            ranks->group.size, ranks->group.stride, node, node);
        return NULL;
    }
    struct coll_group *groups = ARENA_ARRAY(arena, struct coll_group, n);
    for (int i = 0; i < n; i++)
        groups[i] = (struct coll_group){
            mesh_group_first(&ranks->group, i), ranks->group.stride, ranks->group.size};
    ranks->nodes = coll_shape(groups[0], node).nodes;
    return isolated_groups(hw, groups, n, ranks->mesh.ranks, asked->degraded, at, arena, diag);
}

enum status collective_predict(struct collective_sizes *out, struct collective *asked,
    const struct hw *hw, struct arena *arena, struct diag *diag)
{
    struct isolated *isolated = collective_group_of(asked, hw, arena, diag);
    if (!isolated)
        return STATUS_INPUT;
    double bytes = asked->min_bytes;
    while (bytes <= asked->max_bytes) {
        int wanted = asked->force.algorithm, protocol = asked->force.protocol;
        struct collective_size row = {.bytes = bytes};
        row.cost =
            isolated_cost(isolated, (enum coll_kind)asked->kind, bytes, asked->force, row.link);
        vec_push(&out->list, row);
        if ((wanted != COLL_ANY && wanted != (int)row.cost.algorithm) ||
            (protocol != COLL_ANY && protocol != (int)row.cost.protocol))
            return cannot(asked, hw, &row.cost, diag);
        bytes = fmax(bytes + 1, floor(bytes * asked->factor));
    }
    return STATUS_OK;
}
