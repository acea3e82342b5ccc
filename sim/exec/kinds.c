/* Jobs on nodes of two kinds. */
#include "exec/state.h"

void kinds_set(struct sim *sim, const struct hw *hw)
{
    BUG_IF(hw->second_from != sim->plan->second_from, "the second kind from rank %d and %d on", hw->second_from,
        sim->plan->second_from);
    sim->costs.hw = sim->costs.kinds[KIND_FIRST] = hw;
    sim->costs.n_kinds = 1;
    if (hw->second_from == 0)
        return;
    struct hw *others = arena_alloc(sim->arena, 2 * sizeof *others);
    others[0] = hw_of_second(hw);
    others[1] = hw_of_both(hw);
    sim->costs.kinds[KIND_SECOND] = &others[0];
    sim->costs.kinds[KIND_BOTH] = &others[1];
    sim->costs.n_kinds = KIND_COUNT;
}

bool kinds_fold(const struct sim *sim)
{
    const struct plan *plan = sim->plan;
    for (int g = 0; g < plan->groups.n && sim->costs.n_kinds > 1; g++) {
        const struct mesh_group *ranks = &plan->groups.at[g].ranks;
        bool all, both = plan_group_meets_kinds(plan, g, &all);
        bool meet = mesh_group_instance(ranks, 0) == mesh_group_instance(ranks, plan->second_from);
        if (both && !(all && meet))
            return false;
    }
    return true;
}

int *kinds_first_ranks(const struct sim *sim)
{
    int *stands_for = ARENA_ARRAY(sim->arena, int, sim->plan->mesh.ranks);
    for (int r = 0; r < sim->plan->mesh.ranks; r++)
        stands_for[r] = plan_first_rank(sim->plan, plan_program_of(sim->plan, r));
    return stands_for;
}
