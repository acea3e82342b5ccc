/* A plan of Chakra execution traces: a program a rank, ops of compute, collective and message
 * nodes.
 *
 * Nodes are put into an order in which each comes after what it depends on, depth first in the
 * order of the file. Each node has the ops that end it: its own, or, where it does nothing
 * itself, those of its dependencies, passed on. Compute runs on the compute stream, on a side
 * stream by its name, or on the CPU; each group and each direction to a peer has a queue.
 *
 * What is subtle: queues are few, so beyond the most they are shared, in the order of first use.
 * All ranks are stages of a pipeline to the plan, each a program, so messages are channels by
 * the difference of ranks. Dependencies are the only order between nodes: a trace that was
 * linked without them starts all collectives at once, which is warned of. */
#include "exchange/replay.h"

#include "base/digest.h"
#include "base/index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rank's queues are few (exec/state.h has a bit for each): groups and peers beyond these share
 * them. */
enum { MOST_GROUP_QUEUES = 24, MOST_PEER_QUEUES = 28 };

/* The queue of a group, or of the sends to a peer or the receives from it: key is 2 x (target -
 * source) + receives. */
struct place {
    int key, queue;
};
struct places {
    VEC(struct place) list; /* in the order of first use */
};

struct maker {
    struct plan_builder builder;
    const struct hw *hw;
    const struct replay_groups *groups;
    bool roofline;
    int n;
    struct arena *arena;
    struct diag *diag;
    /* Of the rank whose program is being made: */
    const struct chakra_trace *trace;
    const char *path;
    int rank;
    struct index ids;        /* of nodes, by id */
    int kernels, comm;       /* nodes of the GPU, of all ranks */
    bool ordered;            /* some node waits for one of them */
    VEC(int) order;          /* of nodes, each after what it depends on */
    VEC(int32_t) ends;       /* ops that must be done for a node to be: runs of it */
    int *first_end, *n_ends; /* of each node */
    struct places groups_used, peers_used;
};

static enum status chakra_plan_refuse(
    const struct maker *m, const struct chakra_node *node, const char *why)
{
    return diag_input(m->diag, (struct source_pos){.file = m->path}, "node %llu (%s): %s",
        (unsigned long long)node->id, node->name, why);
}

/* ---- the order of nodes ---- */

struct sought {
    const struct chakra_trace *trace;
    uint64_t id;
};

static bool same_id(const void *self, int32_t item)
{
    const struct sought *sought = self;
    return sought->trace->nodes.at[item].id == sought->id;
}

static int find_node(const struct maker *m, uint64_t id)
{
    return index_find(
        &m->ids, digest_word(DIGEST_INIT, id), same_id, &(struct sought){m->trace, id});
}

static enum status find_ids(struct maker *m)
{
    for (int i = 0; i < m->trace->nodes.n; i++) {
        const struct chakra_node *node = &m->trace->nodes.at[i];
        if (find_node(m, node->id) >= 0)
            return chakra_plan_refuse(m, node, "another node has this id");
        index_add(&m->ids, digest_word(DIGEST_INIT, node->id), i);
    }
    return STATUS_OK;
}

enum mark { NEW, OPEN, DONE };
struct frame {
    int node, dep;
};

/* Depth first in the order of the file, so that the order is the file's where that is one of
 * dependencies. Without recursion, as chains of millions of nodes occur. */
static enum status chakra_plan_visit(struct maker *m, int root, unsigned char *marks)
{
    VEC(struct frame) stack = {0};
    enum status status = STATUS_OK;
    vec_push(&stack, (struct frame){root, 0});
    marks[root] = OPEN;
    while (stack.n > 0 && status == STATUS_OK) {
        struct frame *top = &stack.at[stack.n - 1];
        const struct chakra_node *node = &m->trace->nodes.at[top->node];
        if (top->dep == node->n_deps) {
            marks[top->node] = DONE;
            vec_push(&m->order, top->node);
            stack.n--;
            continue;
        }
        int dep = find_node(m, m->trace->deps.at[node->first_dep + top->dep++]);
        if (dep < 0)
            status = chakra_plan_refuse(m, node, "it depends on a node that is not in the file");
        else if (marks[dep] == OPEN)
            status = chakra_plan_refuse(m, node, "it depends on itself, by way of others");
        else if (marks[dep] == NEW) {
            marks[dep] = OPEN;
            vec_push(&stack, (struct frame){dep, 0});
        }
    }
    vec_free(&stack);
    return status;
}

static enum status find_order(struct maker *m)
{
    unsigned char *marks = xcalloc((size_t)m->trace->nodes.n + 1, 1);
    enum status status = find_ids(m);
    for (int i = 0; i < m->trace->nodes.n && status == STATUS_OK; i++)
        if (marks[i] == NEW)
            status = chakra_plan_visit(m, i, marks);
    free(marks);
    return status;
}

/* ---- what nodes wait for ---- */

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The ops that a node's dependencies end with, each once, behind m->ends. Sorted, so that an op
 * that several dependencies end with is waited for once. */
static int chakra_plan_gather(struct maker *m, const struct chakra_node *node)
{
    int first = m->ends.n, kept = 0;
    for (int d = 0; d < node->n_deps; d++) {
        int dep = find_node(m, m->trace->deps.at[node->first_dep + d]);
        for (int e = 0; e < m->n_ends[dep]; e++) {
            int32_t op = m->ends.at[m->first_end[dep] + e];
            vec_push(&m->ends, op);
        }
    }
    int n = m->ends.n - first;
    if (n > 1)
        qsort(m->ends.at + first, (size_t)n, sizeof *m->ends.at, by_number);
    for (int i = 0; i < n; i++)
        if (kept == 0 || m->ends.at[first + kept - 1] != m->ends.at[first + i])
            m->ends.at[first + kept++] = m->ends.at[first + i];
    m->ends.n = first + kept;
    return first;
}

/* ---- ops ---- */

/* What comes first k-th is in queue k; beyond the most they begin again. */
static int chakra_plan_queue_of(
    struct maker *m, struct places *places, int key, const char *kind, int most)
{
    for (int k = 0; k < places->list.n; k++)
        if (places->list.at[k].key == key)
            return places->list.at[k].queue;
    const char *name = arena_printf(m->arena, "%s %d", kind, places->list.n % most);
    int queue = plan_queue(&m->builder, name, QUEUE_COMM);
    vec_push(&places->list, (struct place){key, queue});
    return queue;
}

static struct kernel_work chakra_plan_recorded(double duration_s)
{
    return (struct kernel_work){.kind = KERNEL_RECORDED, .m = llround(duration_s * 1e9)};
}

/* FLOP bound: what the FLOP take at the peak is longer than what the bytes take. A product of
 * three equal sides stands for the FLOP where they bound; else bytes stream. */
static struct kernel_work roofline(const struct chakra_node *node, const struct hw_gpu *gpu)
{
    enum dtype math = kernel_supported(gpu, DTYPE_BF16) ? DTYPE_BF16 : DTYPE_FP16;
    enum { LEAST_SIDE = 16 };
    double side = cbrt(node->flop / 2);
    bool multiplies =
        kernel_supported(gpu, math) && side >= LEAST_SIDE &&
        node->flop / gpu->gemm[math].peak.value > node->bytes / gpu->hbm_bandwidth.value;
    if (!multiplies)
        return kernel_stream(KERNEL_ELEMENTWISE, node->bytes, 0, node->flop);
    struct kernel_work work = kernel_gemm(
        llround(side), llround(side), llround(side), 1, math, dtype_bytes(math), dtype_bytes(math));
    work.flop = node->flop;
    work.read_bytes = node->bytes;
    work.write_bytes = 0;
    return work;
}

/* The CPU's, a side stream of flopcast's by its name, or the compute stream. */
static int queue_of_kernel(const struct maker *m, const struct chakra_node *node)
{
    const struct plan *plan = m->builder.plan;
    for (int q = 0; q < STREAM_COUNT && node->queue && !node->on_cpu; q++)
        if (plan->queues.at[q].kind == QUEUE_SIDE &&
            strcmp(plan->queues.at[q].name, node->queue) == 0)
            return q;
    return node->on_cpu ? STREAM_LOADER : STREAM_COMPUTE;
}

static int make_compute(struct maker *m, const struct chakra_node *node, int queue)
{
    bool states = node->duration_s > 0 && !(m->roofline && node->flop + node->bytes > 0);
    bool works = node->flop + node->bytes > 0;
    struct kernel_work work = states || !works || node->on_cpu
                                  ? chakra_plan_recorded(node->duration_s)
                                  : roofline(node, &m->hw->gpu);
    return plan_kernel(&m->builder, queue, node->name, work, 0);
}

static const struct mesh_group *chakra_plan_ranks_of(
    const struct maker *m, const char *name, struct mesh_group *all)
{
    *all = (struct mesh_group){.size = m->n, .stride = 1, .width = 1, .period = m->n};
    if (!name)
        return all;
    for (int g = 0; g < m->groups->list.n; g++)
        if (strcmp(m->groups->list.at[g].name, name) == 0)
            return &m->groups->list.at[g].ranks;
    return m->groups->list.n == 0 && strcmp(name, "0") == 0 ? all
                                                            : NULL; /* the only group there is */
}

/* Whether the rank is in the group is checked here, as the trace and the file of groups are two
 * files. */
static enum status chakra_plan_make_collective(
    struct maker *m, const struct chakra_node *node, int *queue, int *group)
{
    struct mesh_group all;
    const struct mesh_group *ranks = chakra_plan_ranks_of(m, node->group, &all);
    if (!ranks)
        return chakra_plan_refuse(m, node,
            arena_printf(m->arena,
                "there is no group '%s'; give a file of groups, or --groups FILE", node->group));
    if (mesh_group_instance(ranks, m->rank) < 0)
        return chakra_plan_refuse(m, node,
            arena_printf(m->arena, "rank %d is not in the group '%s'", m->rank, node->group));
    if (node->collective >= 0 && node->comm_bytes < 1)
        return chakra_plan_refuse(m, node, "comm_size is 0");
    *group = plan_group_of(&m->builder, node->group ? node->group : "world", *ranks);
    *queue = chakra_plan_queue_of(m, &m->groups_used, *group, "group", MOST_GROUP_QUEUES);
    return STATUS_OK;
}

static int chakra_plan_put_collective(
    struct maker *m, const struct chakra_node *node, int queue, int group)
{
    double ranks = m->builder.plan->groups.at[group].ranks.size;
    enum coll_kind kind = node->collective < 0 ? COLL_ALL_REDUCE : (enum coll_kind)node->collective;
    double bytes = node->collective < 0      ? 1 /* a barrier of PyTorch's */
                   : kind == COLL_ALL_GATHER ? node->comm_bytes * ranks
                                             : node->comm_bytes;
    return plan_collective(&m->builder, queue, node->name, kind, bytes, group, 0);
}

static int chakra_plan_put_message(struct maker *m, const struct chakra_node *node, int queue)
{
    struct plan_channel channel = {AXIS_PP, (int)(node->target - node->source), 0};
    return node->type == CHAKRA_SEND
               ? plan_send(&m->builder, queue, node->name, channel, node->comm_bytes, 0)
               : plan_recv(&m->builder, queue, node->name, channel, node->comm_bytes, 0);
}

static enum status chakra_plan_make_message(
    struct maker *m, const struct chakra_node *node, int *queue)
{
    bool sends = node->type == CHAKRA_SEND;
    int64_t self = sends ? node->source : node->target, other = sends ? node->target : node->source;
    if (self != m->rank || other >= m->n || other == self)
        return chakra_plan_refuse(
            m, node, "comm_src and comm_dst are not this rank and another one of the job");
    if (node->comm_bytes < 1)
        return chakra_plan_refuse(m, node, "comm_size is 0");
    *queue = chakra_plan_queue_of(m, &m->peers_used,
        2 * (int)(node->target - node->source) + !sends, "peer", MOST_PEER_QUEUES);
    return STATUS_OK;
}

/* The ops that a node is done with: its own, or those of its dependencies where it does nothing.
 * A collective of one rank does nothing, and what depends on it waits for its dependencies. */
static enum status make_node(struct maker *m, int i)
{
    const struct chakra_node *node = &m->trace->nodes.at[i];
    int first = chakra_plan_gather(m, node), queue = queue_of_kernel(m, node), group = 0,
        op = PLAN_NO_OP;
    enum status status = STATUS_OK;
    m->first_end[i] = first;
    m->n_ends[i] = m->ends.n - first;
    if (node->type == CHAKRA_COLL)
        status = chakra_plan_make_collective(m, node, &queue, &group);
    else if (node->type == CHAKRA_SEND || node->type == CHAKRA_RECV)
        status = chakra_plan_make_message(m, node, &queue);
    else if (node->type != CHAKRA_COMP)
        return STATUS_OK;
    if (status == STATUS_OK && m->n_ends[i] > UINT16_MAX)
        status = chakra_plan_refuse(m, node, "it depends on more than 65,535 nodes");
    if (status != STATUS_OK)
        return status;
    bool alone = node->type == CHAKRA_COLL && m->builder.plan->groups.at[group].ranks.size == 1;
    for (int e = 0; e < m->n_ends[i] && !alone; e++)
        plan_stream_wait(&m->builder, queue, m->ends.at[first + e]);
    op = node->type == CHAKRA_COMP   ? make_compute(m, node, queue)
         : node->type == CHAKRA_COLL ? chakra_plan_put_collective(m, node, queue, group)
                                     : chakra_plan_put_message(m, node, queue);
    if (op == PLAN_NO_OP)
        return STATUS_OK;
    m->ends.n = first;
    vec_push(&m->ends, op);
    m->n_ends[i] = 1;
    return STATUS_OK;
}

/* The step is over when everything is: a kernel of no time waits for the last op of each queue. */
static void make_end(struct maker *m)
{
    for (int q = 0; q < m->builder.tails.n; q++)
        if (q != STREAM_COMPUTE)
            plan_stream_wait(&m->builder, STREAM_COMPUTE, plan_last_op(&m->builder, q));
    plan_kernel(&m->builder, STREAM_COMPUTE, "end of the step", chakra_plan_recorded(0), 0);
}

static void count_order(struct maker *m)
{
    for (int i = 0; i < m->trace->nodes.n; i++) {
        const struct chakra_node *node = &m->trace->nodes.at[i];
        m->kernels += !node->on_cpu && node->type == CHAKRA_COMP;
        m->comm += !node->on_cpu && node->type > CHAKRA_COMP;
        for (int d = 0; d < node->n_deps; d++) {
            int dep = find_node(m, m->trace->deps.at[node->first_dep + d]);
            m->ordered |= dep >= 0 && !m->trace->nodes.at[dep].on_cpu &&
                          m->trace->nodes.at[dep].type >= CHAKRA_COMP;
        }
    }
}

/* As chakra_trace_linker leaves them (mlcommons/chakra, issue 215). */
static void warn_of_order(const struct maker *m, const char *path)
{
    if (m->ordered || m->comm == 0 || m->kernels <= m->n)
        return;
    diag_warn(m->diag, (struct source_pos){.file = path},
        "no node waits for a node of the GPU: collectives begin at once, beside the kernels that "
        "they should follow. chakra_trace_linker leaves GPU nodes without successors; the real "
        "step is longer than what follows");
}

static enum status make_rank(struct maker *m)
{
    size_t n = (size_t)m->trace->nodes.n + 1;
    m->first_end = xcalloc(n, sizeof *m->first_end);
    m->n_ends = xcalloc(n, sizeof *m->n_ends);
    m->order.n = m->ends.n = m->groups_used.list.n = m->peers_used.list.n = 0;
    enum status status = find_order(m);
    if (status == STATUS_OK)
        count_order(m);
    for (int i = 0; i < m->order.n && status == STATUS_OK; i++)
        status = make_node(m, m->order.at[i]);
    make_end(m);
    free(m->first_end);
    free(m->n_ends);
    index_free(&m->ids);
    m->ids = (struct index){0};
    return status;
}

enum status chakra_plan(struct plan *out, const struct chakra_trace *traces,
    const char *const *paths, int n, const struct replay_groups *groups, const struct hw *hw,
    bool roofline_, struct arena *arena, struct diag *diag)
{
    struct mesh mesh;
    const char *bad;
    int size[AXIS_COUNT] = {[AXIS_PP] = n};
    bool built = mesh_build(&mesh, size, mesh_order_default, &bad);
    BUG_IF(!built, "%s", bad);
    struct maker m = {
        .hw = hw, .groups = groups, .roofline = roofline_, .n = n, .arena = arena, .diag = diag};
    plan_begin_programs(&m.builder, out, &mesh, AXIS_PP);
    enum status status = STATUS_OK;
    for (m.rank = 0; m.rank < n; m.rank++) {
        m.trace = &traces[m.rank];
        m.path = paths[m.rank];
        if (m.rank > 0)
            plan_next_program(&m.builder);
        if (status == STATUS_OK)
            status = make_rank(&m);
    }
    plan_end(&m.builder);
    vec_free(&m.order);
    vec_free(&m.ends);
    vec_free(&m.groups_used.list);
    vec_free(&m.peers_used.list);
    char why[512];
    if (status == STATUS_OK && !plan_check(out, why, sizeof why))
        status = diag_input(diag, (struct source_pos){.file = paths[0]},
            "the ranks' traces do not fit together: %s", why);
    if (status == STATUS_OK)
        warn_of_order(&m, paths[0]);
    return status;
}
