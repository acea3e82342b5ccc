/* Private to hw: how the tables of the three files are written, and how a loaded file is read
 * through its table. */
#ifndef FLOPCAST_HW_TABLE_H
#define FLOPCAST_HW_TABLE_H

#include "config/config.h"
#include "hw/hw.h"
#include "hw/override.h"

/* A sourced number that the file may leave out, and one that it may not. bounds: one of those
 * below. */
#define HW_OPTIONAL(owner, member, sentence, ...)                                                  \
    {                                                                                              \
        .key = #member, .type = FIELD_SOURCED, .offset = offsetof(owner, member),                  \
        .help = sentence, __VA_ARGS__                                                              \
    }
#define HW_REQUIRED(owner, member, sentence, ...)                                                  \
    HW_OPTIONAL(owner, member, sentence, __VA_ARGS__, .required = true)

/* Bounds, in base SI, that no hardware leaves: they catch a wrong unit, not a wrong value. */
#define HW_COUNT(low, high) .dimension = DIM_NONE, .min = low, .max = high
#define HW_BANDWIDTH .dimension = DIM_BYTES_PER_S, .min = 1e8, .max = 1e15
#define HW_BYTES .dimension = DIM_BYTES, .min = 1e6, .max = 1e15
#define HW_FLOPS .dimension = DIM_FLOP_PER_S, .min = 1e11, .max = 1e18
#define HW_LATENCY .dimension = DIM_SECONDS, .min = 0, .max = 1e-2
#define HW_SHARE .dimension = DIM_FRACTION, .min = 1e-3, .max = 1
#define HW_SPREAD .dimension = DIM_FRACTION, .min = 0, .max = 0.5
#define HW_POWER .dimension = DIM_WATT, .min = 1, .max = 1e5
#define HW_ANY_POWER .dimension = DIM_WATT, .min = 0, .max = 1e5
#define HW_PRICE .dimension = DIM_USD_PER_HOUR, .min = 1e-3, .max = 1e3

/* Of a file: the one that it extends. */
#define HW_EXTENDS(owner, kind)                                                                    \
    {                                                                                              \
        .key = "extends", .type = FIELD_PATH, .offset = offsetof(owner, extends), .files = kind,   \
        .help = "Another file of this kind, which says what this one leaves out; relative to it, " \
                "or a name that "                                                                  \
                "`flopcast files` lists."                                                          \
    }

/* Load the document at source->path, over those that it extends, through the table into `into`;
 * strings go to the arena. If a file that it names cannot be read, the error stands where it is
 * named. */
enum status hw_read(void *into, const struct config_table *table, struct hw_source *source,
    struct arena *arena, struct diag *diag);

/* Where a key stands ("network.spines"), or a section's first one ("network"); the file where it
 * does not. What was given in its place comes first. */
struct source_pos hw_place(const struct hw_source *source, const char *key);

/* A count: an error unless it is whole. */
enum status hw_whole(
    const struct hw_source *source, const char *key, struct quantity q, struct diag *diag);

/* What the table of a network cannot say: which counts belong to which kind. */
extern const struct config_table hw_network_table;
enum status hw_check_network(const struct hw_network *network, double oversubscription,
    const struct hw_source *source, struct diag *diag);

/* What the tables cannot say of a loaded file; cluster: with its node, which is in hw. */
enum status hw_check_gpu(
    const struct hw_gpu *gpu, const struct hw_source *source, struct diag *diag);
enum status hw_check_node(
    const struct hw_node *node, const struct hw_source *source, struct diag *diag);
enum status hw_check_cluster(
    const struct hw *hw, const struct hw_source *source, struct diag *diag);

/* The numbers of `from` that are set, one a line, under the heading; places: where they stand, or
 * NULL. */
void hw_print_table(FILE *out, const char *heading, const struct config_table *table,
    const void *from, const struct hw_source *places);

#endif
