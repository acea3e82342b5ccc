#include "study/collective.h"

#include <math.h>

static enum status cannot(
    const struct collective *asked, const struct hw *hw, const struct coll_cost *nearest, struct diag *diag)
{
    int wanted = asked->force.algorithm;
    bool collnet = wanted == COLL_COLLNET_DIRECT || wanted == COLL_COLLNET_CHAIN;
    const char *why = collnet && !quantity_is_set(hw->cluster.nccl_collnet_efficiency)
                          ? " (CollNet needs switches that reduce: nccl_collnet_efficiency of the cluster)"
                          : "";
    bool algorithm = asked->force.algorithm != COLL_ANY, protocol = asked->force.protocol != COLL_ANY;
    const char *option = !protocol ? "--algo" : !algorithm ? "--proto" : "--algo, --proto";
    return diag_input(diag, (struct source_pos){.file = option},
        "%s of %d GPUs of this cluster cannot be done as %s%s%s%s; the nearest is %s with %s",
        coll_kind_names[asked->kind], asked->gpus, algorithm ? coll_algorithm_names[wanted] : "",
        algorithm && protocol ? " with " : "", protocol ? coll_protocol_names[asked->force.protocol] : "", why,
        coll_algorithm_names[nearest->algorithm], coll_protocol_names[nearest->protocol]);
}

/* The group, or those of a mesh. */
static struct isolated *group_of(struct collective *asked, const struct hw *hw, struct arena *arena, struct diag *diag)
{
    const struct collective_mesh *mesh = &asked->mesh;
    const char *option = asked->degraded ? "--degraded-links" : mesh->mesh.ranks > 0 ? "--mesh" : "--gpus, --nodes";
    struct source_pos at = {.file = option};
    if (mesh->mesh.ranks == 0) {
        asked->nodes = asked->nodes > 0 ? asked->nodes : isolated_fewest_nodes(hw, asked->gpus);
        return isolated_new(hw, asked->gpus, asked->nodes, asked->degraded, at, arena, diag);
    }
    int node = hw_gpus_per_node(hw), n = mesh_group_instances(&mesh->group, mesh->mesh.ranks);
    if (!mesh_group_lies_evenly(&mesh->group, mesh->mesh.ranks, node)) {
        diag_input(diag, at,
            "groups of %d GPUs, %d apart, in nodes of %d: some have more GPUs on one node than on another, which is "
            "not simulated; take sizes that divide %d, or multiples of it",
            mesh->group.size, mesh->group.stride, node, node);
        return NULL;
    }
    struct coll_group *groups = ARENA_ARRAY(arena, struct coll_group, n);
    for (int i = 0; i < n; i++)
        groups[i] = (struct coll_group){mesh_group_first(&mesh->group, i), mesh->group.stride, mesh->group.size};
    asked->nodes = coll_shape(groups[0], node).nodes;
    return isolated_groups(hw, groups, n, mesh->mesh.ranks, asked->degraded, at, arena, diag);
}

enum status collective_predict(
    struct collective_sizes *out, struct collective *asked, const struct hw *hw, struct arena *arena, struct diag *diag)
{
    struct isolated *isolated = group_of(asked, hw, arena, diag);
    enum status status = isolated ? STATUS_OK : STATUS_INPUT;
    for (double bytes = asked->min_bytes; bytes <= asked->max_bytes && status == STATUS_OK;) {
        int wanted = asked->force.algorithm, protocol = asked->force.protocol;
        struct collective_size row = {.bytes = bytes};
        struct coll_cost cost = row.cost =
            isolated_cost(isolated, (enum coll_kind)asked->kind, bytes, asked->force, row.link);
        vec_push(&out->list, row);
        if ((wanted != COLL_ANY && wanted != (int)cost.algorithm) ||
            (protocol != COLL_ANY && protocol != (int)cost.protocol))
            status = cannot(asked, hw, &cost, diag);
        bytes = fmax(bytes + 1, floor(bytes * asked->factor));
    }
    return status;
}
