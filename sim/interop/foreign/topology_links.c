/* GPUs that NVLinks do not join all together: bridges between pairs of PCIe cards, or what no
 * node describes.
 *
 * Each GPU must have links both ways to exactly one other, all pairs with equally many; then the
 * node has bridges, and a remark says in which order GPUs must be numbered so that pairs are
 * neighbours. Links that join some GPUs otherwise are refused, as the node's model has no such
 * shape. */
#include "foreign/topology_file.h"

#include <stdlib.h>

/* The one GPU that a's links lead to, both ways as many; -1: none or several. *others: how many. */
static int partner_of(const int *links, int gpus, int a, int *others)
{
    int partner = -1;
    *others = 0;
    for (int b = 0; b < gpus; b++)
        if (b != a && links[a * gpus + b] > 0 && links[b * gpus + a] > 0) {
            partner = b;
            ++*others;
        }
    return *others == 1 ? partner : -1;
}

/* Of bridges that join other GPUs than neighbours: the order in which they are neighbours. */
static void say_order(struct topology_dump *out, const int *partners, struct arena *arena)
{
    const char *order = "";
    bool neighbours = true;
    for (int a = 0; a < out->gpus; a++) {
        neighbours = neighbours && partners[a] == (a ^ 1);
        if (partners[a] > a)
            order = arena_printf(arena, "%s%s%d,%d", order, *order ? "," : "", a, partners[a]);
    }
    if (!neighbours)
        vec_push(&out->remarks, arena_printf(arena,
                                    "Bridges do not join neighbours, as the node has them: start "
                                    "jobs with CUDA_VISIBLE_DEVICES=%s.",
                                    order));
}

enum status topology_judge_bridges(struct topology_dump *out, const int *links,
    struct source_pos at, struct arena *arena, struct diag *diag)
{
    int n = out->gpus, bridged = 0, joined = -1, *partners = ARENA_ARRAY(arena, int, n), most = 0;
    int least = TOPOLOGY_MAX_LINKS;
    for (int a = 0; a < n; a++) {
        int others;
        partners[a] = partner_of(links, n, a, &others);
        int count = partners[a] >= 0 ? links[a * n + partners[a]] : 0;
        bridged += partners[a] >= 0;
        joined = others > 0 ? a : joined;
        most = count > most ? count : most;
        least = count < least ? count : least;
    }
    out->bridge_links = bridged == n && least == most ? most : 0;
    if (out->bridge_links > 0)
        say_order(out, partners, arena);
    else if (joined >= 0)
        return diag_input(diag, at,
            "NVLinks join GPU%d to others, but neither all GPUs together nor all of them in pairs; "
            "describe the GPUs that they join (CUDA_VISIBLE_DEVICES), or take the NVLinks out of "
            "this file to do without them",
            joined);
    return STATUS_OK;
}
