#include "fabric/slow.h"

#include <stdio.h>

static double share_of(const struct slow_gpus *slow, int node, int gpu, ps_t time)
{
    char name[64], whole[32];
    snprintf(whole, sizeof whole, "node%d", node);
    snprintf(name, sizeof name, "node%d.gpu%d", node, gpu);
    return degrade_share(slow->degradation, name, whole, time);
}

double slow_gpus_share(const struct slow_gpus *slow, int rank, ps_t time)
{
    return slow->degradation->n ? share_of(slow, rank / slow->gpus, rank % slow->gpus, time) : 1;
}

static bool differ_at(const struct slow_gpus *slow, ps_t time)
{
    double first = slow_gpus_share(slow, 0, time);
    bool differ = false;
    for (int r = 1; r < slow->ranks; r++) { /* all of them: that marks what names them */
        double share = slow_gpus_share(slow, r, time);
        differ = differ || share < first || share > first;
    }
    return differ;
}

/* Names of GPUs that the cluster has beyond the job are no mistake. */
static enum status check_names(
    const struct slow_gpus *slow, const struct hw *hw, struct source_pos at, struct diag *diag)
{
    const struct degradation *degradation = slow->degradation;
    int nodes = (int)hw->cluster.nodes.value, n = degradation->n;
    enum status status = STATUS_OK;
    for (int node = slow->ranks / slow->gpus; node < nodes && degrade_unmatched(degradation, 0) < n; node++)
        for (int gpu = 0; gpu < slow->gpus; gpu++)
            share_of(slow, node, gpu, 0);
    for (int i = degrade_unmatched(degradation, 0); i < n; i = degrade_unmatched(degradation, i + 1))
        status = diag_input(diag, at,
            "no GPU of cluster '%s' is called '%s'; names are node0.gpu0 to node%d.gpu%d, node0 for all GPUs of a "
            "node, and * stands for anything",
            hw->cluster.name, degradation->list[i].pattern, nodes - 1, slow->gpus - 1);
    return status;
}

enum status slow_gpus_build(struct slow_gpus *out, const struct hw *hw, int ranks, const char *text,
    struct source_pos at, struct arena *arena, struct diag *diag)
{
    *out = (struct slow_gpus){.ranks = ranks, .gpus = hw_gpus_per_node(hw)};
    out->degradation = ARENA_NEW(arena, struct degradation);
    enum status status = degrade_parse(out->degradation, &degrade_gpu, text, at, arena, diag);
    if (status != STATUS_OK || out->degradation->n == 0)
        return status;
    out->uneven = differ_at(out, 0);
    for (int i = 0; i < out->degradation->n_changes; i++)
        out->uneven = differ_at(out, out->degradation->changes[i]) || out->uneven;
    return check_names(out, hw, at, diag);
}

bool slow_gpus_concern(const struct hw *hw, int ranks, const char *text)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct degradation degradation;
    struct slow_gpus slow = {.degradation = &degradation, .ranks = ranks, .gpus = hw_gpus_per_node(hw)};
    bool found = false;
    if (degrade_parse(&degradation, &degrade_gpu, text, (struct source_pos){0}, &arena, &diag) == STATUS_OK) {
        differ_at(&slow, 0);
        for (int i = 0; i < degradation.n; i++)
            found = found || degradation.list[i].matched;
    }
    arena_release(&arena);
    return found;
}
