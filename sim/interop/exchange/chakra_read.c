/* A file of a rank's Chakra trace: messages of protobuf, each behind its length as a varint,
 * first GlobalMetadata, then nodes; gzipped or not.
 *
 * protobuf-c unpacks one message at a time, so memory holds the nodes and one message. What is
 * subtle: exporters write the same attribute as int32, int64, uint64 ... and pg_name as text or
 * number, so each is read from whichever member holds it. Sizes of messages, numbers of nodes
 * and durations are bounded, since a file of another kind yields any number; the mistake names
 * the byte at which its message begins. */
#include "exchange/chakra.h"

#include <errno.h>
#include <et_def.pb-c.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct chakra_reader {
    gzFile file;
    const char *path;
    uint8_t *bytes; /* of the message */
    size_t n, room;
    long long at; /* byte of the file where it began */
    struct chakra_trace *out;
    struct arena *arena;
    struct diag *diag;
};

static enum status chakra_read_refuse(const struct chakra_reader *r, const char *why)
{
    return diag_input(r->diag, (struct source_pos){.file = r->path}, "at byte %lld, node %d: %s",
        r->at, r->out->nodes.n, why);
}

/* The next message; *n 0 of an empty one, ended: the file has no more. More than five bytes of a
 * length are no length. */
static enum status chakra_read_next(struct chakra_reader *r, bool *ended)
{
    static const char cut[] = "the file is cut, damaged, or no Chakra trace";
    enum { BITS = 7, MOST_SHIFT = 28 };
    uint64_t length = 0;
    int byte = 0x80;
    r->at = gztell(r->file);
    *ended = false;
    for (int shift = 0; byte & 0x80; shift += BITS) {
        byte = gzgetc(r->file);
        if (byte < 0 && shift == 0 && gzeof(r->file)) {
            *ended = true;
            return STATUS_OK;
        }
        if (byte < 0 || shift > MOST_SHIFT)
            return chakra_read_refuse(r, cut);
        length |= (uint64_t)(byte & 0x7f) << shift;
    }
    if (length > CHAKRA_MAX_MESSAGE)
        return chakra_read_refuse(r, "a message of more than 16 MiB: this is no Chakra trace");
    if (length > r->room) {
        r->room = length;
        r->bytes = xrealloc(r->bytes, r->room);
    }
    r->n = length;
    return gzread(r->file, r->bytes, (unsigned)length) == (int)length ? STATUS_OK
                                                                      : chakra_read_refuse(r, cut);
}

/* ---- attributes: exporters differ in the member that holds a number ---- */

static bool chakra_read_integer(const ChakraProtoMsg__AttributeProto *a, int64_t *out)
{
    switch ((int)a->value_case) { /* a file may hold any of the many members */
    case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL:
        *out = a->int32_val;
        return true;
    case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL:
        *out = a->int64_val;
        return true;
    case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT32_VAL:
        *out = a->uint32_val;
        return true;
    case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL:
        *out = a->uint64_val > INT64_MAX ? INT64_MAX : (int64_t)a->uint64_val;
        return true;
    case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SINT32_VAL:
        *out = a->sint32_val;
        return true;
    case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SINT64_VAL:
        *out = a->sint64_val;
        return true;
    case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL:
        *out = a->bool_val;
        return true;
    default:
        return false;
    }
}

static const ChakraProtoMsg__AttributeProto *chakra_read_find(
    const ChakraProtoMsg__Node *node, const char *name)
{
    for (size_t i = 0; i < node->n_attr; i++)
        if (strcmp(node->attr[i]->name, name) == 0)
            return node->attr[i];
    return NULL;
}

static enum status chakra_read_take(struct chakra_reader *r, const ChakraProtoMsg__Node *node,
    const char *name, bool needed, int64_t *out)
{
    const ChakraProtoMsg__AttributeProto *attribute = chakra_read_find(node, name);
    *out = 0;
    if (!attribute && !needed)
        return STATUS_OK;
    if (!attribute || !chakra_read_integer(attribute, out) || *out < 0)
        return chakra_read_refuse(
            r, arena_printf(
                   r->arena, "the attribute '%s' is not there, or is no number from 0 on", name));
    return STATUS_OK;
}

static enum status chakra_read_take_group(
    struct chakra_reader *r, const ChakraProtoMsg__Node *node, const char **out)
{
    const ChakraProtoMsg__AttributeProto *attribute = chakra_read_find(node, "pg_name");
    int64_t number = 0;
    *out = NULL;
    if (!attribute)
        return STATUS_OK;
    if (attribute->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL)
        *out = *attribute->string_val ? arena_strdup(r->arena, attribute->string_val) : NULL;
    else if (chakra_read_integer(attribute, &number))
        *out = arena_printf(r->arena, "%lld", (long long)number);
    else
        return chakra_read_refuse(r, "the attribute 'pg_name' is no text");
    return STATUS_OK;
}

/* ---- nodes ---- */

/* A barrier has no size and becomes -1; gather and scatter are no collectives of NCCL. */
static enum status chakra_read_fill_collective(
    struct chakra_reader *r, struct chakra_node *out, const ChakraProtoMsg__Node *node)
{
    static const int kinds[] = {
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_REDUCE] = COLL_ALL_REDUCE,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE] = COLL_REDUCE,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_GATHER] = COLL_ALL_GATHER,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__GATHER] = COLL_KIND_COUNT,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__SCATTER] = COLL_KIND_COUNT,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BROADCAST] = COLL_BROADCAST,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_TO_ALL] = COLL_ALL_TO_ALL,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE_SCATTER] = COLL_REDUCE_SCATTER,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE_SCATTER_BLOCK] = COLL_REDUCE_SCATTER,
        [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BARRIER] = -1};
    int64_t type = 0, size = 0;
    enum status status = chakra_read_take(r, node, "comm_type", true, &type);
    bool known = status == STATUS_OK && type < (int64_t)(sizeof kinds / sizeof *kinds);
    if (status == STATUS_OK && (!known || kinds[type] == COLL_KIND_COUNT))
        return chakra_read_refuse(
            r, "comm_type is a GATHER, a SCATTER or unknown; NCCL has no such collective");
    if (status == STATUS_OK)
        out->collective = kinds[type];
    if (status == STATUS_OK && out->collective >= 0)
        status = chakra_read_take(r, node, "comm_size", true, &size);
    out->comm_bytes = (double)size;
    return status == STATUS_OK ? chakra_read_take_group(r, node, &out->group) : status;
}

static enum status chakra_read_fill_message(
    struct chakra_reader *r, struct chakra_node *out, const ChakraProtoMsg__Node *node)
{
    int64_t size = 0;
    enum status status = chakra_read_take(r, node, "comm_size", true, &size);
    out->comm_bytes = (double)size;
    status =
        status == STATUS_OK ? chakra_read_take(r, node, "comm_src", true, &out->source) : status;
    status =
        status == STATUS_OK ? chakra_read_take(r, node, "comm_dst", true, &out->target) : status;
    return status == STATUS_OK ? chakra_read_take(r, node, "comm_tag", false, &out->tag) : status;
}

static enum status fill_work(
    struct chakra_reader *r, struct chakra_node *out, const ChakraProtoMsg__Node *node)
{
    int64_t flop = 0, bytes = 0;
    enum status status = chakra_read_take(r, node, "num_ops", false, &flop);
    status = status == STATUS_OK ? chakra_read_take(r, node, "tensor_size", false, &bytes) : status;
    const ChakraProtoMsg__AttributeProto *queue = chakra_read_find(node, "queue");
    if (queue && queue->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL)
        out->queue = arena_strdup(r->arena, queue->string_val);
    out->flop = (double)flop;
    out->bytes = (double)bytes;
    return status;
}

static enum status chakra_read_fill(
    struct chakra_reader *r, struct chakra_node *out, const ChakraProtoMsg__Node *node)
{
    static const uint64_t LONGEST_US = 1000000000000; /* eleven days */
    int64_t on_cpu = 0;
    if (node->duration_micros > LONGEST_US)
        return chakra_read_refuse(r, "duration_micros is more than eleven days");
    if (node->type < 0 || node->type > CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE)
        return chakra_read_refuse(r, "a node of an unknown type");
    *out = (struct chakra_node){.id = node->id,
        .name = arena_strdup(r->arena, node->name),
        .type = (enum chakra_type)node->type,
        .duration_s = (double)node->duration_micros * 1e-6,
        .first_dep = r->out->deps.n};
    enum status status = chakra_read_take(r, node, "is_cpu_op", false, &on_cpu);
    out->on_cpu = on_cpu != 0;
    if (status != STATUS_OK)
        return status;
    return out->type == CHAKRA_COLL ? chakra_read_fill_collective(r, out, node)
           : out->type == CHAKRA_SEND || out->type == CHAKRA_RECV
               ? chakra_read_fill_message(r, out, node)
               : fill_work(r, out, node);
}

static enum status read_node(struct chakra_reader *r)
{
    ChakraProtoMsg__Node *node = chakra_proto_msg__node__unpack(NULL, r->n, r->bytes);
    if (!node)
        return chakra_read_refuse(r, "the message is no node of Chakra's schema");
    struct chakra_node filled = {0};
    enum status status = r->out->nodes.n < CHAKRA_MAX_NODES
                             ? chakra_read_fill(r, &filled, node)
                             : chakra_read_refuse(r, "more than 4,000,000 nodes");
    for (size_t i = 0; i < node->n_ctrl_deps; i++)
        vec_push(&r->out->deps, node->ctrl_deps[i]);
    for (size_t i = 0; i < node->n_data_deps; i++)
        vec_push(&r->out->deps, node->data_deps[i]);
    filled.n_deps = r->out->deps.n - filled.first_dep;
    chakra_proto_msg__node__free_unpacked(node, NULL);
    if (status == STATUS_OK)
        vec_push(&r->out->nodes, filled);
    return status;
}

static enum status chakra_read_head(struct chakra_reader *r)
{
    ChakraProtoMsg__GlobalMetadata *head =
        chakra_proto_msg__global_metadata__unpack(NULL, r->n, r->bytes);
    if (!head)
        return chakra_read_refuse(r, "it does not begin with Chakra's GlobalMetadata");
    chakra_proto_msg__global_metadata__free_unpacked(head, NULL);
    return STATUS_OK;
}

enum status chakra_read(
    struct chakra_trace *out, const char *path, struct arena *arena, struct diag *diag)
{
    *out = (struct chakra_trace){{0}, {0}};
    struct chakra_reader r = {
        .path = path, .out = out, .arena = arena, .diag = diag, .file = gzopen(path, "rb")};
    if (!r.file)
        return diag_input(diag, (struct source_pos){path, 1, 1},
            "cannot open: %s; name a file that exists and can be read", strerror(errno));
    bool ended = false;
    enum status status = chakra_read_next(&r, &ended);
    if (status == STATUS_OK)
        status = ended ? chakra_read_refuse(&r, "the file is empty") : chakra_read_head(&r);
    while (status == STATUS_OK && (status = chakra_read_next(&r, &ended)) == STATUS_OK && !ended)
        status = read_node(&r);
    gzclose_r(r.file);
    free(r.bytes);
    return status;
}

void chakra_free(struct chakra_trace *trace)
{
    vec_free(&trace->nodes);
    vec_free(&trace->deps);
}
