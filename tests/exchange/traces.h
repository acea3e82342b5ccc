/* Chakra traces made byte by byte, by the encoding of protocol buffers
 * (protobuf.dev/programming-guides/encoding) and the numbers of et_def.proto, so that a mistake of
 * the writer is not one of the tests. */
#ifndef FLOPCAST_TESTS_EXCHANGE_TRACES_H
#define FLOPCAST_TESTS_EXCHANGE_TRACES_H

#include "exchange/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLUSTERS FLOPCAST_SOURCE_DIR "/topologies/clusters/"

/* ---- bytes ---- */

struct bytes {
    unsigned char at[4096];
    size_t n;
};

static inline void put_varint(struct bytes *b, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        b->at[b->n++] = (unsigned char)(value | 0x80);
    b->at[b->n++] = (unsigned char)value;
}

enum { VARINT = 0, LENGTH = 2 };

static inline void put_number(struct bytes *b, unsigned field, uint64_t value)
{
    put_varint(b, field << 3 | VARINT);
    put_varint(b, value);
}

static inline void put_bytes(struct bytes *b, unsigned field, const void *bytes, size_t n)
{
    put_varint(b, field << 3 | LENGTH);
    put_varint(b, n);
    memcpy(b->at + b->n, bytes, n);
    b->n += n;
}

/* An attribute of a node: its name is field 1; int32 7, int64 9, uint64 13, bool 27, string 29. */
enum { INT32 = 7, INT64 = 9, UINT64 = 13, BOOL = 27, TEXT = 29 };
static inline void put_attribute(
    struct bytes *node, const char *name, unsigned member, uint64_t value)
{
    struct bytes a = {.n = 0};
    put_bytes(&a, 1, name, strlen(name));
    put_number(&a, member, value);
    put_bytes(node, 10, a.at, a.n);
}

static inline void put_text(struct bytes *node, const char *name, const char *text)
{
    struct bytes a = {.n = 0};
    put_bytes(&a, 1, name, strlen(name));
    put_bytes(&a, TEXT, text, strlen(text));
    put_bytes(node, 10, a.at, a.n);
}

static inline void put_delimited(FILE *out, const struct bytes *message)
{
    struct bytes length = {.n = 0};
    put_varint(&length, message->n);
    fwrite(length.at, 1, length.n, out);
    fwrite(message->at, 1, message->n, out);
}

/* ---- nodes ---- */

enum { ALL_REDUCE = 0, ALL_GATHER = 2, ALL_TO_ALL = 6, REDUCE_SCATTER = 7, BARRIER = 9 };
enum { COMP = 4, SEND = 5, RECV = 6, COLL = 7 };

/* What follows is of one rank. dep: the id of what it waits for; -1: nothing. */
static inline struct bytes node(unsigned type, uint64_t id, int dep, uint64_t micros)
{
    struct bytes b = {.n = 0};
    put_number(&b, 1, id);
    put_bytes(&b, 2, "a node", 6);
    put_number(&b, 3, type);
    if (dep >= 0)
        put_number(&b, id % 2 ? 4 : 5, (uint64_t)dep); /* control or data, not packed */
    if (micros > 0)
        put_number(&b, 7, micros);
    put_attribute(&b, "is_cpu_op", BOOL, 0);
    return b;
}

static inline void compute(FILE *out, uint64_t id, int dep, uint64_t micros)
{
    struct bytes b = node(COMP, id, dep, micros);
    put_attribute(&b, "num_ops", INT64, 1000);
    put_attribute(&b, "tensor_size", UINT64, 64);
    put_delimited(out, &b);
}

static inline void collective(
    FILE *out, uint64_t id, int dep, unsigned type, uint64_t bytes, const char *group)
{
    struct bytes b = node(COLL, id, dep, 0);
    put_attribute(&b, "comm_type", INT64, type);
    put_attribute(&b, "comm_size", id % 2 ? INT64 : UINT64, bytes); /* exporters differ */
    if (group)
        put_text(&b, "pg_name", group);
    put_delimited(out, &b);
}

static inline void message(
    FILE *out, unsigned type, uint64_t id, int dep, uint64_t from, uint64_t to, uint64_t bytes)
{
    struct bytes b = node(type, id, dep, 0);
    put_attribute(&b, "comm_src", INT32, from);
    put_attribute(&b, "comm_dst", INT32, to);
    put_attribute(&b, "comm_tag", INT32, 0);
    put_attribute(&b, "comm_size", INT64, bytes);
    put_delimited(out, &b);
}

/* ---- folders ---- */

static inline const char *make_folder(struct arena *arena)
{
    char *path = arena_strdup(arena, "/tmp/flopcast-chakra-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline FILE *begin_rank(const char *folder, int rank, struct arena *arena)
{
    FILE *out = fopen(arena_printf(arena, "%s/w.%d.et", folder, rank), "wb");
    assert_non_null(out);
    struct bytes head = {.n = 0};
    put_bytes(&head, 1, "1.0.0", 5);
    put_delimited(out, &head);
    return out;
}

static inline void remove_folder(const char *folder, int ranks, struct arena *arena)
{
    static const char *const others[] = {
        "comm_groups.json", "network.yml", "system.json", "memory.json"};
    for (int r = 0; r < ranks; r++)
        unlink(arena_printf(arena, "%s/w.%d.et", folder, r));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        unlink(arena_printf(arena, "%s/%s", folder, others[i]));
    rmdir(folder);
}

static inline struct hw load(const char *cluster, struct arena *arena)
{
    struct hw hw;
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        hw_load(&hw, arena_printf(arena, CLUSTERS "%s.yaml", cluster), arena, &diag), STATUS_OK);
    return hw;
}

static inline struct replay run(
    const char *folder, const struct hw *hw, bool roofline, struct arena *arena)
{
    struct replay replay;
    struct diag diag = DIAG_INIT;
    replay_run(&replay, &(struct replay_options){.folder = folder, .roofline = roofline}, hw, arena,
        &diag);
    assert_string_equal(diag.text, "");
    return replay;
}

#endif
