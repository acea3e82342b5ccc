/* A plan as Chakra execution traces, a file a rank, with the files that ASTRA-sim takes beside
 * them: groups, network, system, memory.
 *
 * Every kernel, collective and message is a node. Control dependencies are the op before on its
 * queue and what the host had waited for since then; data dependencies are the waits of the
 * plan. Durations are those of kernels alone on the GPU, so contention and host are not in them.
 * What is subtle: waits for the step before are dropped, because a file is one step; Chakra's
 * size of an all-gather is that of a rank's part; the k-th send of a channel carries the same
 * tag as the k-th receive at its other end, which is how ASTRA-sim matches them. */
#include "config/config.h"
#include "exchange/chakra.h"

#include <errno.h>
#include <et_def.pb-c.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what ASTRA-sim takes beside the traces: its system, network, memory and group files ---- */

/* Number of a group's instance in comm_groups.json. */
static int astra_group(const struct plan *plan, int group, int instance)
{
    enum { FIRST = 1 }; /* CommunicatorGroup::set_id() asserts id > 0 */
    int number = FIRST + instance;
    for (int g = 0; g < group; g++)
        number += mesh_group_instances(&plan->groups.at[g].ranks, plan->mesh.ranks);
    return number;
}

static void write_groups(FILE *out, const struct plan *plan)
{
    const char *comma = "";
    fputs("{", out);
    for (int g = 0; g < plan->groups.n; g++) {
        const struct mesh_group *ranks = &plan->groups.at[g].ranks;
        for (int i = 0; ranks->size > 1 && i < mesh_group_instances(ranks, plan->mesh.ranks);
             i++, comma = ",") {
            fprintf(out, "%s\n  \"%d\": [", comma, astra_group(plan, g, i));
            for (int m = 0; m < ranks->size; m++)
                fprintf(out, "%s%d", m ? ", " : "", mesh_group_first(ranks, i) + m * ranks->stride);
            fputs("]", out);
        }
    }
    fputs("\n}\n", out);
}

/* Dimensions of the network: GPUs of a node, nodes. A job on one node has one, whatever its GPUs.
 */
static int dimensions(const struct plan *plan, const struct hw *hw)
{
    return plan->mesh.ranks > hw_gpus_per_node(hw) ? 2 : 1;
}

/* A job on one node has a network of one dimension, since ASTRA-sim would otherwise go through a
 * second one of size 1. */
static void write_network(FILE *out, const struct plan *plan, const struct hw *hw)
{
    int per_node = hw_ranks_of_node(hw, plan->mesh.ranks), nodes = plan->mesh.ranks / per_node;
    bool two = dimensions(plan, hw) == 2;
    double nic_Bps = two ? coll_node_Bps(hw) / per_node : 0;
    double hop_s = 1e9 * coll_hop_s(COLL_RING, COLL_SIMPLE, 0, false, hw);
    double far_s = two ? 1e9 * coll_hop_s(COLL_RING, COLL_SIMPLE, 0, true, hw) : 0;
    fprintf(out, "# GPUs of a node, then nodes; bandwidth in GB/s of 2^30 bytes, latency in ns.\n");
    if (two)
        fprintf(out,
            "topology: [Switch, Switch]\nnpus_count: [%d, %d]\nbandwidth: [%.6f, %.6f]\nlatency: "
            "[%.3f, %.3f]\n",
            per_node, nodes, coll_gpu_Bps(hw) / GIB, nic_Bps / GIB, hop_s, far_s);
    else
        fprintf(out, "topology: [Switch]\nnpus_count: [%d]\nbandwidth: [%.6f]\nlatency: [%.3f]\n",
            per_node, coll_gpu_Bps(hw) / GIB, hop_s);
}

static void write_list(FILE *out, const char *key, int n)
{
    fprintf(out, "  \"%s\": [%s],\n", key, n == 2 ? "\"ring\", \"ring\"" : "\"ring\"");
}

/* The higher dense peak of BF16 and FP16, the precisions that all GPUs train in except FP8. */
static double peak_flops(const struct hw_gpu *gpu)
{
    double bf16 = gpu->gemm[DTYPE_BF16].peak.value;
    return bf16 > 0 ? bf16 : gpu->gemm[DTYPE_FP16].peak.value;
}

/* endpoint-delay in ns: some of ASTRA-sim's collectives assert that it is not 0. */
static void write_system(FILE *out, const struct plan *plan, const struct hw *hw)
{
    int n = dimensions(plan, hw);
    fputs("{\n  \"scheduling-policy\": \"LIFO\",\n  \"endpoint-delay\": 1,\n  "
          "\"active-chunks-per-dimension\": 1,\n"
          "  \"preferred-dataset-splits\": 1,\n",
        out);
    write_list(out, "all-reduce-implementation", n);
    write_list(out, "all-gather-implementation", n);
    write_list(out, "reduce-scatter-implementation", n);
    fprintf(out, "  \"all-to-all-implementation\": [%s],\n",
        n == 2 ? "\"direct\", \"direct\"" : "\"direct\"");
    fprintf(out,
        "  \"collective-optimization\": \"localBWAware\",\n  \"local-mem-bw\": %.6g,\n  "
        "\"peak-perf\": %.6g,\n"
        "  \"roofline-enabled\": 0,\n  \"boost-mode\": 0\n}\n",
        hw->gpu.hbm_bandwidth.value * 1e-9, peak_flops(&hw->gpu) * 1e-12);
}

static bool chakra_write_finish(FILE *out)
{
    bool ok = out && ferror(out) == 0;
    return out && fclose(out) == 0 && ok;
}

static bool astra_write(const char *folder, const struct plan *plan, const struct hw *hw,
    const char **failed, char *room, size_t n)
{
    static const char *const files[] = {
        "comm_groups.json", "network.yml", "system.json", "memory.json"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        snprintf(room, n, "%s/%s", folder, files[f]);
        *failed = room;
        FILE *out = fopen(room, "w");
        if (out && f == 0)
            write_groups(out, plan);
        else if (out && f == 1)
            write_network(out, plan, hw);
        else if (out && f == 2)
            write_system(out, plan, hw);
        else if (out)
            fputs("{\n  \"memory-type\": \"NO_MEMORY_EXPANSION\"\n}\n", out);
        if (!chakra_write_finish(out))
            return false;
    }
    return true;
}

typedef ChakraProtoMsg__Node chakra_message;
typedef ChakraProtoMsg__AttributeProto chakra_attribute;

enum { MOST_ATTRIBUTES = 8 };

struct writer {
    FILE *out;
    const struct plan *plan;
    const struct hw *hw;
    int rank;
    VEC(uint64_t) control, data;
    VEC(uint8_t) bytes;
    /* Of each queue: the op before, and what the host has waited for since then. */
    struct {
        int last;
        VEC(int32_t) held;
    } * queues;
    int *sends, *receives; /* of each channel so far */
    /* Of the node that is being made. */
    chakra_attribute attributes[MOST_ATTRIBUTES], *list[MOST_ATTRIBUTES];
    int n_attributes;
};

/* ---- attributes ---- */

static chakra_attribute *chakra_write_add(struct writer *w, const char *name)
{
    BUG_IF(w->n_attributes == MOST_ATTRIBUTES, "one attribute more than %d", MOST_ATTRIBUTES);
    chakra_attribute *attribute = &w->attributes[w->n_attributes];
    chakra_proto_msg__attribute_proto__init(attribute);
    attribute->name = (char *)(uintptr_t)name; /* protobuf-c's structs are for reading, too */
    w->list[w->n_attributes++] = attribute;
    return attribute;
}

static void add_int64(struct writer *w, const char *name, double value)
{
    chakra_attribute *attribute = chakra_write_add(w, name);
    attribute->value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL;
    attribute->int64_val = llround(value);
}

static void add_uint64(struct writer *w, const char *name, double value)
{
    chakra_attribute *attribute = chakra_write_add(w, name);
    attribute->value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL;
    attribute->uint64_val = (uint64_t)llround(value);
}

static void add_int32(struct writer *w, const char *name, int32_t value)
{
    chakra_attribute *attribute = chakra_write_add(w, name);
    attribute->value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL;
    attribute->int32_val = value;
}

static void add_false(struct writer *w, const char *name)
{
    chakra_write_add(w, name)->value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL;
}

static void chakra_write_add_text(struct writer *w, const char *name, const char *text)
{
    chakra_attribute *attribute = chakra_write_add(w, name);
    attribute->value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL;
    attribute->string_val = (char *)(uintptr_t)text;
}

/* ---- messages ---- */

/* The length as a varint, then the packed bytes. */
static void chakra_write_put_message(struct writer *w, const ProtobufCMessage *message)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    for (size_t left = n;; left >>= 7) {
        fputc((int)((left & 0x7f) | (left > 0x7f ? 0x80 : 0)), w->out);
        if (left <= 0x7f)
            break;
    }
    vec_reserve(&w->bytes, (int)n);
    protobuf_c_message_pack(message, w->bytes.at);
    fwrite(w->bytes.at, 1, n, w->out);
}

static void chakra_write_put_head(struct writer *w, const char *name)
{
    ChakraProtoMsg__GlobalMetadata head;
    char version[] = "1.0.0";
    chakra_proto_msg__global_metadata__init(&head);
    w->n_attributes = 0;
    chakra_write_add_text(w, "generator", "flopcast " FLOPCAST_VERSION);
    chakra_write_add_text(w, "scenario", name);
    head.version = version;
    head.attr = w->list;
    head.n_attr = (size_t)w->n_attributes;
    chakra_write_put_message(w, &head.base);
}

/* ---- nodes ---- */

/* What the host waited for holds back the next op of every queue, once. */
static void take_deps(
    struct writer *w, const struct plan_program *program, const struct plan_op *op)
{
    w->control.n = w->data.n = 0;
    int before = w->queues[op->stream].last;
    if (before >= 0)
        vec_push(&w->control, (uint64_t)before);
    for (int i = 0; i < w->queues[op->stream].held.n; i++)
        vec_push(&w->control, (uint64_t)w->queues[op->stream].held.at[i]);
    w->queues[op->stream].held.n = 0;
    for (int i = op->first_wait; i < op->first_wait + op->n_waits; i++) {
        plan_wait wait = program->waits.at[i];
        if (!(wait & PLAN_PREVIOUS_STEP) && wait != before)
            vec_push(&w->data, (uint64_t)wait);
    }
}

static void fill_kernel(struct writer *w, chakra_message *node, const struct plan_op *op)
{
    const struct kernel_work *work = &w->plan->kernels.at[op->index];
    double duration_s = kernel_duration_s(work, &w->hw->gpu, kernel_whole_gpu(&w->hw->gpu));
    node->type = CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE;
    node->duration_micros = (uint64_t)llround(duration_s * 1e6);
    add_int64(w, "num_ops", work->flop);
    add_uint64(w, "tensor_size", work->read_bytes + work->write_bytes);
    chakra_write_add_text(w, "kind", kernel_kind_names[work->kind]);
    chakra_write_add_text(w, "queue", w->plan->queues.at[op->stream].name);
}

static const int comm_types[COLL_KIND_COUNT] = {
    [COLL_ALL_REDUCE] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_REDUCE,
    [COLL_ALL_GATHER] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_GATHER,
    [COLL_REDUCE_SCATTER] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE_SCATTER,
    [COLL_BROADCAST] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BROADCAST,
    [COLL_REDUCE] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE,
    [COLL_ALL_TO_ALL] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_TO_ALL,
    [COLL_SEND_RECV] = -1,
    [COLL_PEER_COPY] = -1,
};

static void chakra_write_fill_collective(
    struct writer *w, chakra_message *node, const struct plan_op *op, char group[16])
{
    const struct plan_collective *collective = &w->plan->collectives.at[op->index];
    const struct mesh_group *ranks = &w->plan->groups.at[collective->group].ranks;
    double bytes =
        collective->kind == COLL_ALL_GATHER ? collective->bytes / ranks->size : collective->bytes;
    node->type = CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE;
    snprintf(group, 16, "%d",
        astra_group(w->plan, collective->group, mesh_group_instance(ranks, w->rank)));
    add_int64(w, "comm_type", comm_types[collective->kind]);
    add_int64(w, "comm_size", bytes);
    chakra_write_add_text(w, "pg_name", group);
}

/* The k-th send of a channel is the k-th receive of it at the other end; both have its tag. */
static void chakra_write_fill_message(
    struct writer *w, chakra_message *node, const struct plan_op *op)
{
    const struct plan_message *message = &w->plan->messages.at[op->index];
    const struct plan_channel *channel = &w->plan->channels.at[message->channel];
    bool sends = op->kind == OP_SEND;
    int *count = sends ? w->sends : w->receives;
    int other = mesh_neighbour(
        &w->plan->mesh, w->rank, channel->axis, sends ? channel->delta : -channel->delta);
    node->type = sends ? CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE
                       : CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE;
    add_int32(w, "comm_src", sends ? w->rank : other);
    add_int32(w, "comm_dst", sends ? other : w->rank);
    add_int32(w, "comm_tag", count[message->channel]++ * w->plan->channels.n + message->channel);
    add_int64(w, "comm_size", message->bytes);
}

static void put_node(struct writer *w, const struct plan_program *program, int i)
{
    const struct plan_op *op = &program->ops.at[i];
    chakra_message node;
    char group[16];
    chakra_proto_msg__node__init(&node);
    take_deps(w, program, op);
    w->n_attributes = 0;
    add_false(w, "is_cpu_op");
    if (op->kind == OP_KERNEL)
        fill_kernel(w, &node, op);
    else if (op->kind == OP_COLLECTIVE)
        chakra_write_fill_collective(w, &node, op, group);
    else
        chakra_write_fill_message(w, &node, op);
    chakra_write_add_text(w, "phase", plan_phase_names[op->phase]);
    node.id = (uint64_t)i;
    node.name = (char *)(uintptr_t)op->name;
    node.n_ctrl_deps = (size_t)w->control.n;
    node.ctrl_deps = w->control.at;
    node.n_data_deps = (size_t)w->data.n;
    node.data_deps = w->data.at;
    node.n_attr = (size_t)w->n_attributes;
    node.attr = w->list;
    chakra_write_put_message(w, &node.base);
    w->queues[op->stream].last = i;
}

/* What the host waits for, everything that it issues afterwards waits for. */
static void chakra_write_hold(
    struct writer *w, const struct plan_program *program, const struct plan_op *op)
{
    for (int i = op->first_wait; i < op->first_wait + op->n_waits; i++)
        for (int q = 0; q < w->plan->queues.n && !(program->waits.at[i] & PLAN_PREVIOUS_STEP); q++)
            if (w->queues[q].last != program->waits.at[i])
                vec_push(&w->queues[q].held, program->waits.at[i]);
}

static bool put_rank(struct writer *w, const char *path, const char *name)
{
    const struct plan_program *program = &w->plan->programs[plan_program_of(w->plan, w->rank)];
    w->out = fopen(path, "wb");
    if (!w->out)
        return false;
    for (int q = 0; q < w->plan->queues.n; q++) {
        w->queues[q].last = -1;
        w->queues[q].held.n = 0;
    }
    for (int c = 0; c < w->plan->channels.n; c++)
        w->sends[c] = w->receives[c] = 0;
    chakra_write_put_head(w, name);
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind == OP_HOST_WAIT)
            chakra_write_hold(w, program, op);
        else if (op->kind == OP_KERNEL || plan_op_is_comm(op))
            put_node(w, program, i);
    }
    bool ok = ferror(w->out) == 0;
    return fclose(w->out) == 0 && ok;
}

static bool put_ranks(struct writer *w, const char *folder, const char *name, char *path, size_t n)
{
    for (w->rank = 0; w->rank < w->plan->mesh.ranks; w->rank++) {
        snprintf(path, n, "%s/%s.%d.et", folder, name, w->rank);
        if (!put_rank(w, path, name))
            return false;
    }
    return true;
}

/* A collective that Chakra has no type for; -1: none. */
static int foreign_collective(const struct plan *plan)
{
    for (int c = 0; c < plan->collectives.n; c++)
        if (comm_types[plan->collectives.at[c].kind] < 0)
            return c;
    return -1;
}

static enum status make_folder(const char *folder, struct diag *diag)
{
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        return STATUS_OK;
    return diag_io(
        diag, (struct source_pos){.file = folder}, "cannot make the folder: %s", strerror(errno));
}

enum status chakra_write(const char *folder, const char *name, const struct plan *plan,
    const struct hw *hw, struct diag *diag)
{
    int foreign = foreign_collective(plan);
    char path[4096] = "";
    const char *failed = path;
    if (foreign >= 0)
        return diag_input(diag, (struct source_pos){.file = folder},
            "Chakra has no node for a %s, as parallelism.tensor_overlap: user_buffers has them; "
            "export another way of overlapping",
            coll_kind_names[plan->collectives.at[foreign].kind]);
    if (strlen(folder) + strlen(name) + 32 > sizeof path)
        return diag_input(diag, (struct source_pos){.file = folder}, "the name is too long");
    if (make_folder(folder, diag) != STATUS_OK)
        return STATUS_IO;
    struct writer w = {.plan = plan, .hw = hw};
    w.queues = xcalloc((size_t)plan->queues.n, sizeof *w.queues);
    w.sends = xcalloc((size_t)plan->channels.n + 1, sizeof *w.sends);
    w.receives = xcalloc((size_t)plan->channels.n + 1, sizeof *w.receives);
    errno = 0;
    bool ok = put_ranks(&w, folder, name, path, sizeof path) &&
              astra_write(folder, plan, hw, &failed, path, sizeof path);
    int why = errno;
    for (int q = 0; q < plan->queues.n; q++)
        vec_free(&w.queues[q].held);
    free(w.queues);
    free(w.sends);
    free(w.receives);
    vec_free(&w.control);
    vec_free(&w.data);
    vec_free(&w.bytes);
    if (ok)
        return STATUS_OK;
    unlink(failed);
    return diag_io(diag, (struct source_pos){.file = failed}, "cannot write: %s", strerror(why));
}
