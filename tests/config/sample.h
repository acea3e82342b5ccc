/* A struct with a field of every type and the table that describes it, for the tests of tables and
 * for the fuzzer. */
#ifndef FLOPCAST_TESTS_CONFIG_SAMPLE_H
#define FLOPCAST_TESTS_CONFIG_SAMPLE_H

#include "config/config.h"

#include <math.h>

struct sample_train {
    int64_t micro_batch;
    double dropout; /* fraction */
    int strategy;   /* index into sample_strategies */
};

struct sample {
    const char *name;
    const char *cluster; /* path */
    int64_t gpus;
    double latency_s;
    double scale;
    bool noise;
    struct quantity bandwidth; /* B/s */
    struct quantity count;     /* plain */
    struct sample_train train;
    struct config_node sweep;
};

static const char *const sample_strategies[] = {"ddp", "fsdp", "zero1", NULL};

static const struct config_field sample_train_fields[] = {
    {.key = "micro_batch",
        .alias = "batch_of_step",
        .type = FIELD_INT,
        .offset = offsetof(struct sample_train, micro_batch),
        .required = true,
        .help = "sequences of a micro-step",
        .min = 1,
        .max = 65536},
    {.key = "dropout",
        .type = FIELD_NUMBER,
        .offset = offsetof(struct sample_train, dropout),
        .dimension = DIM_FRACTION,
        .max = 1},
    {.key = "strategy",
        .type = FIELD_ENUM,
        .offset = offsetof(struct sample_train, strategy),
        .names = sample_strategies},
};

static const struct config_table sample_train_table = {
    .what = "a training set-up", .fields = sample_train_fields, .n_fields = 3};

static const struct config_field sample_fields[] = {
    {.key = "name",
        .type = FIELD_STRING,
        .offset = offsetof(struct sample, name),
        .required = true},
    {.key = "cluster", .type = FIELD_PATH, .offset = offsetof(struct sample, cluster)},
    {.key = "gpus", .type = FIELD_INT, .offset = offsetof(struct sample, gpus)},
    {.key = "latency",
        .type = FIELD_NUMBER,
        .offset = offsetof(struct sample, latency_s),
        .dimension = DIM_SECONDS,
        .min = 1e-9,
        .max = HUGE_VAL},
    {.key = "scale", .type = FIELD_NUMBER, .offset = offsetof(struct sample, scale)},
    {.key = "noise", .type = FIELD_BOOL, .offset = offsetof(struct sample, noise)},
    {.key = "bandwidth",
        .type = FIELD_SOURCED,
        .offset = offsetof(struct sample, bandwidth),
        .dimension = DIM_BYTES_PER_S,
        .min = 1,
        .max = 1e15},
    {.key = "count", .type = FIELD_SOURCED, .offset = offsetof(struct sample, count)},
    {.key = "train",
        .type = FIELD_SECTION,
        .offset = offsetof(struct sample, train),
        .section = &sample_train_table},
    {.key = "sweep", .type = FIELD_NODE, .offset = offsetof(struct sample, sweep)},
};

static const struct config_table sample_table = {
    .what = "a sample", .fields = sample_fields, .n_fields = 10};

#endif
