/* Plans of two kinds of GPU: see plan_join() in plan.h.
 *
 * Kernels and messages of the second plan are appended, and its ops renumbered behind the first
 * plan's. Collectives must be shared where ranks of both kinds meet: the one with the same number
 * in both plans is taken to be the same meeting, if it is alike. Those that differ stay inside one
 * kind and are appended. Sums over the job are means by ranks. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

static bool same_queues(const struct plan *a, const struct plan *b)
{
    if (a->queues.n != b->queues.n)
        return false;
    for (int q = 0; q < a->queues.n; q++)
        if (strcmp(a->queues.at[q].name, b->queues.at[q].name) != 0 || a->queues.at[q].kind != b->queues.at[q].kind)
            return false;
    return true;
}

static bool same_meetings(const struct plan *a, const struct plan *b)
{
    if (a->groups.n != b->groups.n || a->channels.n != b->channels.n)
        return false;
    for (int g = 0; g < a->groups.n; g++)
        if (!mesh_group_same(&a->groups.at[g].ranks, &b->groups.at[g].ranks))
            return false;
    for (int c = 0; c < a->channels.n; c++)
        if (!plan_channel_same(&a->channels.at[c], &b->channels.at[c]))
            return false;
    return true;
}

static bool same_collective(const struct plan_collective *a, const struct plan_collective *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->group == b->group && a->serves == b->serves &&
           !a->routing && !b->routing;
}

/* The collective of the first plan that ranks of the second run in the same place, or one more. */
static int32_t join_collective(struct plan *plan, const struct plan *second, int32_t index)
{
    const struct plan_collective *wanted = &second->collectives.at[index];
    if (index < plan->collectives.n && same_collective(&plan->collectives.at[index], wanted))
        return index;
    vec_push(&plan->collectives, *wanted);
    return plan->collectives.n - 1;
}

static void renumber(struct plan *plan, const struct plan *second, struct plan_program *program)
{
    int kernels = plan->kernels.n, messages = plan->messages.n;
    for (int k = 0; k < second->kernels.n; k++)
        vec_push(&plan->kernels, second->kernels.at[k]);
    for (int m = 0; m < second->messages.n; m++)
        vec_push(&plan->messages, second->messages.at[m]);
    for (int i = 0; i < program->ops.n; i++) {
        struct plan_op *op = &program->ops.at[i];
        if (op->kind == OP_KERNEL)
            op->index += kernels;
        else if (op->kind == OP_COLLECTIVE)
            op->index = join_collective(plan, second, op->index);
        else if (plan_op_is_comm(op))
            op->index += messages;
    }
    plan->second_kernels = kernels;
}

/* Both plans count tokens and samples as if all ranks were theirs. */
static double of_job(double first, double second, const struct plan *plan)
{
    double share = (double)plan->second_from / plan->mesh.ranks;
    return first * share + second * (1 - share);
}

void plan_join(struct plan *plan, struct plan *second, int second_from)
{
    BUG_IF(
        plan->n_programs != 1 || second->n_programs != 1, "%d and %d programs", plan->n_programs, second->n_programs);
    BUG_IF(second_from <= 0 || second_from >= plan->mesh.ranks || second->mesh.ranks != plan->mesh.ranks,
        "rank %d of %d and %d", second_from, plan->mesh.ranks, second->mesh.ranks);
    BUG_IF(!same_queues(plan, second) || !same_meetings(plan, second), "plans that do not meet");
    plan->programs = xrealloc(plan->programs, 2 * sizeof *plan->programs);
    plan->programs[1] = second->programs[0];
    plan->n_programs = 2;
    plan->second_from = second_from;
    second->n_programs = 0; /* its program is the plan's now */
    renumber(plan, second, &plan->programs[1]);
    plan->tokens = of_job(plan->tokens, second->tokens, plan);
    plan->samples = of_job(plan->samples, second->samples, plan);
    plan_release(second);
}

bool plan_group_meets_kinds(const struct plan *plan, int group, bool *all)
{
    const struct mesh_group *ranks = &plan->groups.at[group].ranks;
    int n = mesh_group_instances(ranks, plan->mesh.ranks), both = 0;
    for (int i = 0; i < n; i++) {
        int first = mesh_group_first(ranks, i), last = first + (ranks->size - 1) * ranks->stride;
        both += plan_program_of(plan, first) != plan_program_of(plan, last);
    }
    *all = both == n;
    return both > 0;
}
