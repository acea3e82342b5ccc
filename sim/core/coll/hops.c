#include "coll/hops.h"

#include <stdbool.h>

/* Nodes by their lowest set bit: odd ones are leaves, their parents have one bit more. Node 0 is
 * the root, with the highest power of two below as its only child. */
static int first_tree_parent(int node, int nodes)
{
    if (node == 0)
        return -1;
    int bit = node & -node, up = (node ^ bit) | (bit << 1);
    return up < nodes ? up : node ^ bit;
}

int coll_tree_parent(int tree, int node, int nodes)
{
    if (tree == 0)
        return first_tree_parent(node, nodes);
    bool mirror = nodes % 2 == 0;
    int image = mirror ? nodes - 1 - node : (node + nodes - 1) % nodes,
        parent = first_tree_parent(image, nodes);
    if (parent < 0)
        return -1;
    return mirror ? nodes - 1 - parent : (parent + 1) % nodes;
}

static int tree_hops(struct coll_hop *hops, int nodes)
{
    /* An edge carries half of the data each way. The busiest node has four such (two in a pair of
     * nodes): see tree.c. */
    double share = nodes > 2 ? 0.25 : 0.5;
    int n = 0;
    for (int tree = 0; tree < 2; tree++)
        for (int node = 0; node < nodes; node++) {
            int parent = coll_tree_parent(tree, node, nodes);
            if (parent < 0)
                continue;
            hops[n++] = (struct coll_hop){node, parent, share};
            hops[n++] = (struct coll_hop){parent, node, share};
        }
    return n;
}

int coll_hops(struct coll_hop *hops, enum coll_algorithm algorithm, int nodes)
{
    if (nodes == 1)
        return 0;
    if (algorithm == COLL_TREE || algorithm == COLL_NVLS_TREE)
        return tree_hops(hops, nodes);
    for (int node = 0; node < nodes; node++)
        hops[node] = (struct coll_hop){node, (node + 1) % nodes, 1};
    return nodes;
}
