/* Chunk-level mode: every slice of every chunk of every step of one collective is a message over
 * the links of fabric/fabric.h, on the engine. It checks the flow-level mode of coll/ and exec/,
 * which prices the same collective as latency + bytes / rate.
 *
 * A connection from a rank to the next sends its messages in order, one at a time; each takes its
 * links at max-min fair rates and arrives a hop latency after its last byte left, while the
 * connection goes on; inside a node, a ring's hop passes before the first slice of a chunk instead
 * and keeps the connection waiting, as the data of nccl-tests have it (coll/ring.c). Latencies are
 * those of protocol Simple. A message is sent once what it depends on has arrived: in a ring the
 * same slice of the chunk one step before, in a tree the slice from every child (up) or from the
 * parent (down). NCCL's channels, which share the data evenly and run in step, are taken together:
 * a message is a slice of all of them and spreads over the NICs that they are rotated over. A
 * tree's chains inside a node are rotated too, so each GPU carries the mean of what a chain's GPUs
 * send.
 *
 * Modelled: ring (all_reduce, all_gather, reduce_scatter, broadcast), double binary tree and
 * CollNetChain (all_reduce), on any regular group; CollNetChain over several nodes of a cluster
 * that has it. Ignored: the end of a buffer's credits (8 steps of a connection; compare with
 * nccl_credit_latency near 0), channels that drift apart, other traffic. */
#ifndef FLOPCAST_TESTS_FABRIC_CHUNKS_H
#define FLOPCAST_TESTS_FABRIC_CHUNKS_H

#include "coll/hops.h"
#include "fabric/degrade.h"
#include "fabric/fabric.h"
#include "net/net.h"

#include <math.h>
#include <stdlib.h>

struct chunk_options {
    double chunk_bytes; /* at most, of one channel and step; may be infinite */
    int slices;         /* messages of a chunk */
    const struct degrade_events *degraded_links; /* those of the start happen; NULL: none */
};

/* A connection. Message j waits for message j - lag of the inputs, but the first `lag` of every
 * period wait for none: what a rank of a ring sends first is its own. */
struct edge {
    int from, to;
    struct link_weight *weights;
    int n_weights;
    ps_t wait;    /* before the first slice of a chunk, while the connection is taken */
    ps_t latency; /* from the end of sending to the arrival */
    VEC(int) inputs;
    VEC(int) outputs;
    int64_t sent, arrived;
    bool busy;
};

struct chunk_run {
    const struct hw *hw;
    struct coll_group group;
    struct fabric fabric;
    struct arena arena;
    struct engine engine;
    struct net net;
    uint32_t ev_ready, ev_sent, ev_arrived;
    VEC(struct edge) edges;
    int64_t messages, lag, period; /* of each edge */
    double message_bytes;
    double intra_weight, inter_weight; /* of a message on NVLinks, and on NICs and switches */
    double intra_s, inter_s;           /* of a hop */
    struct link_weight *scratch;
};

/* As NCCL cuts with protocol Simple: a chunk is half of a buffer of 4 MiB in two slices; broadcast
 * sends eighths. */
static inline struct chunk_options chunks_as_nccl(enum coll_kind kind)
{
    /* NVIDIA/nccl: NCCL_STEPS 8, default buffer of Simple 4 MiB (src/include/device.h,
     * src/init.cc); chunks of 4 steps in slices of 2, broadcast 1 and 1
     * (src/include/collectives.h). */
    const double step = 4.0 * 1024 * 1024 / 8;
    if (kind == COLL_BROADCAST)
        return (struct chunk_options){.chunk_bytes = step, .slices = 1};
    return (struct chunk_options){.chunk_bytes = 4 * step, .slices = 2};
}

/* As the formulas of coll/ assume: a ring's chunks are as large as the data allow, in two slices;
 * the pipeline of other algorithms is so fine (1000 messages) that filling it costs little (26 hops
 * of 512 ranks: 0.8 %). */
static inline struct chunk_options chunks_as_flow(enum coll_algorithm algorithm)
{
    return (struct chunk_options){
        .chunk_bytes = HUGE_VAL, .slices = algorithm == COLL_RING ? 2 : 1000};
}

static int rank_at(const struct chunk_run *run, int member)
{
    return run->group.first + member * run->group.stride;
}

/* A connection between two members; returns its number. */
static int add_edge(struct chunk_run *run, int from_member, int to_member)
{
    int from = rank_at(run, from_member), to = rank_at(run, to_member), gpus = run->fabric.gpus;
    bool intra = from / gpus == to / gpus;
    struct edge edge = {.from = from, .to = to};
    ps_t hop = ps_from_s(intra ? run->intra_s : run->inter_s);
    bool waits = intra && run->lag > 0;
    edge.wait = waits ? hop : 0;
    edge.latency = waits ? 0 : hop;
    fabric_load_message(&run->fabric, run->group, from, to, 0);
    edge.n_weights = fabric_loaded(run->scratch, &run->fabric);
    edge.weights = ARENA_ARRAY(&run->arena, struct link_weight, edge.n_weights);
    for (int u = 0; u < edge.n_weights; u++) {
        edge.weights[u] = run->scratch[u];
        edge.weights[u].weight *= intra ? run->intra_weight : run->inter_weight;
    }
    vec_push(&run->edges, edge);
    return net_add_flow(&run->net);
}

static void depend(struct chunk_run *run, int edge, int input)
{
    vec_push(&run->edges.at[edge].inputs, input);
    vec_push(&run->edges.at[input].outputs, edge);
}

static void ring(struct chunk_run *run, enum coll_kind kind)
{
    int n = run->group.size, chain = kind == COLL_BROADCAST;
    for (int i = 0; i < n - chain; i++)
        add_edge(run, i, (i + 1) % n);
    for (int i = chain; i < n - chain; i++)
        depend(run, i, (i + n - 1) % n);
}

/* Edges of one tree by member: up[i] leads from member i towards the root, down[i] to it; -1 at the
 * root. */
struct tree {
    int *up, *down, *parent;
};

static void tree_edges(struct chunk_run *run, struct tree *tree, int which, struct coll_shape shape)
{
    for (int i = 0; i < shape.ranks; i++) {
        int node = i / shape.per_node, above = coll_tree_parent(which, node, shape.nodes);
        bool head = i % shape.per_node == 0;
        tree->parent[i] = !head ? i - 1 : above < 0 ? -1 : above * shape.per_node;
        tree->up[i] = tree->down[i] = -1;
        if (tree->parent[i] < 0)
            continue;
        tree->up[i] = add_edge(run, i, tree->parent[i]);
        tree->down[i] = add_edge(run, tree->parent[i], i);
    }
}

static void tree_inputs(struct chunk_run *run, const struct tree *tree, int ranks)
{
    int root = 0;
    while (tree->parent[root] >= 0)
        root++;
    for (int i = 0; i < ranks; i++) {
        int parent = tree->parent[i];
        if (parent < 0)
            continue;
        if (parent != root) {
            depend(run, tree->up[parent], tree->up[i]);
            depend(run, tree->down[i], tree->down[parent]);
            continue;
        }
        for (int k = 0; k < ranks;
             k++) /* the root sends down what all of its children have sent up */
            if (tree->parent[k] == root)
                depend(run, tree->down[i], tree->up[k]);
    }
}

static void trees(struct chunk_run *run, struct coll_shape shape)
{
    struct tree tree = {ARENA_ARRAY(&run->arena, int, shape.ranks),
        ARENA_ARRAY(&run->arena, int, shape.ranks), ARENA_ARRAY(&run->arena, int, shape.ranks)};
    for (int which = 0; which < 2; which++) {
        tree_edges(run, &tree, which, shape);
        tree_inputs(run, &tree, shape.ranks);
    }
}

/* CollNetChain: up a chain to the first rank of the node, through the network, which adds, and
 * back. What enters the switches by the NICs of one node leaves them by those of the next, so that
 * each carries the message once. */
static void collnet_chain(struct chunk_run *run, struct coll_shape shape)
{
    int n = shape.nodes, p = shape.per_node;
    int *through = ARENA_ARRAY(&run->arena, int, n);
    for (int node = 0; node < n; node++) {
        int up = -1;
        for (int i = p - 1; i > 0; i--) {
            int next = add_edge(run, node * p + i, node * p + i - 1);
            if (up >= 0)
                depend(run, next, up);
            up = next;
        }
        through[node] = add_edge(run, node * p, (node + 1) % n * p);
        if (up >= 0)
            depend(run, through[node], up);
    }
    for (int node = 0; node < n; node++) {
        int down = -1;
        for (int i = 1; i < p; i++) {
            int next = add_edge(run, node * p + i - 1, node * p + i);
            for (int k = 0; down < 0 && k < n; k++)
                depend(run, next, through[k]); /* the sum is that of all nodes */
            if (down >= 0)
                depend(run, next, down);
            down = next;
        }
    }
}

static void cut(struct chunk_run *run, enum coll_kind kind, enum coll_algorithm algorithm,
    double bytes, struct coll_shape shape, const struct chunk_options *options)
{
    bool whole = kind == COLL_BROADCAST || algorithm == COLL_COLLNET_CHAIN;
    double n = run->group.size, share = algorithm == COLL_TREE ? bytes / 2
                                        : whole                ? bytes
                                                               : bytes / n;
    double largest = options->chunk_bytes * coll_sms(shape, run->hw);
    if (algorithm == COLL_TREE)
        largest /= 2; /* each channel has its part of both trees */
    double loops = fmax(1, ceil(share / largest));
    bool forwards = algorithm == COLL_TREE || whole;
    int64_t steps = forwards ? 1 : (kind == COLL_ALL_REDUCE ? 2 : 1) * (run->group.size - 1);
    run->message_bytes = share / loops / options->slices;
    run->messages = (int64_t)loops * steps * options->slices;
    run->lag = forwards ? 0 : options->slices;
    run->period = steps * options->slices;
}

static void start(struct chunk_run *run, int index)
{
    struct edge *edge = &run->edges.at[index];
    edge->sent++;
    net_start(&run->net, index, run->message_bytes, HUGE_VAL, edge->weights, edge->n_weights,
        (struct net_listener){run->ev_sent, (uint32_t)index});
}

static void send_next(struct chunk_run *run, int index)
{
    struct edge *edge = &run->edges.at[index];
    if (edge->busy || edge->sent == run->messages)
        return;
    if (edge->sent % run->period >= run->lag)
        for (int i = 0; i < edge->inputs.n; i++)
            if (run->edges.at[edge->inputs.at[i]].arrived < edge->sent + 1 - run->lag)
                return;
    edge->busy = true;
    BUG_IF(edge->wait > 0 && run->lag == 0, "an edge waits between chunks of no messages");
    if (edge->wait > 0 && edge->sent % run->lag == 0)
        engine_at(&run->engine, run->engine.now + edge->wait, run->ev_ready, (uint32_t)index, 0);
    else
        start(run, index);
}

static void on_ready(void *self, const struct event *event)
{
    start(self, (int)event->target);
}

static void on_sent(void *self, const struct event *event)
{
    struct chunk_run *run = self;
    struct edge *edge = &run->edges.at[event->target];
    edge->busy = false;
    engine_at(&run->engine, run->engine.now + edge->latency, run->ev_arrived, event->target, 0);
    send_next(run, (int)event->target);
}

static void on_arrived(void *self, const struct event *event)
{
    struct chunk_run *run = self;
    struct edge *edge = &run->edges.at[event->target];
    edge->arrived++;
    for (int i = 0; i < edge->outputs.n; i++)
        send_next(run, edge->outputs.at[i]);
}

static void set_up(struct chunk_run *run, const struct chunk_options *options)
{
    int last = rank_at(run, run->group.size - 1), gpus = hw_gpus_per_node(run->hw);
    int ranks = last < gpus ? last + 1 : (last / gpus + 1) * gpus;
    fabric_build(&run->fabric, run->hw, ranks, options->degraded_links, &run->arena);
    engine_init(&run->engine);
    net_init(&run->net, &run->engine);
    run->ev_ready = engine_register(&run->engine, on_ready, run);
    run->ev_sent = engine_register(&run->engine, on_sent, run);
    run->ev_arrived = engine_register(&run->engine, on_arrived, run);
    for (int l = 0; l < run->fabric.n_links; l++)
        net_add_link(&run->net, run->fabric.capacity_Bps[l]);
    run->scratch = ARENA_ARRAY(&run->arena, struct link_weight, run->fabric.n_links);
}

static void tear_down(struct chunk_run *run)
{
    for (int i = 0; i < run->edges.n; i++) {
        vec_free(&run->edges.at[i].inputs);
        vec_free(&run->edges.at[i].outputs);
    }
    vec_free(&run->edges);
    net_release(&run->net);
    engine_release(&run->engine);
    arena_release(&run->arena);
    free(run);
}

static void set_weights(
    struct chunk_run *run, enum coll_algorithm algorithm, struct coll_shape shape)
{
    run->intra_weight = run->inter_weight = 1;
    if (algorithm != COLL_RING) {
        bool tree = algorithm == COLL_TREE;
        double p = shape.per_node, share = tree ? coll_tree_share(shape.nodes) : 1;
        double most = p > 2 ? 2 : 1; /* sent by a GPU of one chain, in units of the data; the mean
                                        is 2 (p - 1) / p */
        run->intra_weight = 2 * (p - 1) / p / most / share;
        run->inter_weight = 1 / (tree ? share : coll_collnet_share(run->hw));
    }
    if (fabric_is_pooled(
            &run->fabric)) /* a group of few GPUs a node reaches only their NICs of the pool */
        run->inter_weight /= coll_nic_share(shape, run->hw);
}

/* The connections of a collective before its first message. bytes: as in coll.h. */
static struct chunk_run *chunks_lay(enum coll_kind kind, enum coll_algorithm algorithm,
    double bytes, struct coll_group group, const struct hw *hw, const struct chunk_options *options)
{
    BUG_IF(algorithm != COLL_RING && kind != COLL_ALL_REDUCE, "trees are for all_reduce, not %s",
        coll_kind_names[kind]);
    BUG_IF(algorithm != COLL_RING && algorithm != COLL_TREE && algorithm != COLL_COLLNET_CHAIN,
        "no chunk-level mode of %s", coll_algorithm_names[algorithm]);
    BUG_IF(kind > COLL_BROADCAST, "no chunk-level mode of %s", coll_kind_names[kind]);
    struct chunk_run *run = xcalloc(1, sizeof *run);
    run->hw = hw;
    run->group = group;
    set_up(run, options);
    struct coll_shape shape = coll_shape(group, run->fabric.gpus);
    set_weights(run, algorithm, shape);
    run->intra_s = coll_hop_s(algorithm, COLL_SIMPLE, bytes, false, hw);
    run->inter_s = coll_hop_s(algorithm, COLL_SIMPLE, bytes, true, hw);
    cut(run, kind, algorithm, bytes, shape, options);
    if (algorithm == COLL_TREE)
        trees(run, shape);
    else if (algorithm == COLL_COLLNET_CHAIN)
        collnet_chain(run, shape);
    else
        ring(run, kind);
    return run;
}

/* Seconds from the start to the last arrival; HUGE_VAL beyond PS_HORIZON. bytes: as in coll.h. */
static double chunks_collective_s(enum coll_kind kind, enum coll_algorithm algorithm, double bytes,
    struct coll_group group, const struct hw *hw, const struct chunk_options *options)
{
    if (group.size == 1)
        return 0;
    struct chunk_run *run = chunks_lay(kind, algorithm, bytes, group, hw, options);
    for (int i = 0; i < run->edges.n; i++)
        send_next(run, i);
    engine_run(&run->engine);
    for (int i = 0; i < run->edges.n && !run->engine.overlong; i++)
        BUG_IF(run->edges.at[i].arrived != run->messages,
            "deadlock: %d to %d had %lld of %lld messages", run->edges.at[i].from,
            run->edges.at[i].to, (long long)run->edges.at[i].arrived, (long long)run->messages);
    double base_s = algorithm == COLL_COLLNET_CHAIN ? 0 : hw->node.nccl_base_latency.value;
    double seconds = run->engine.overlong ? HUGE_VAL : base_s + s_from_ps(run->engine.now);
    tear_down(run);
    return seconds;
}

#endif
