/* A separate folder for a test, with a small cluster and model to refer to, and scenarios loaded
 * from text. */
#ifndef FLOPCAST_TESTS_SCENARIO_WORKSPACE_H
#define FLOPCAST_TESTS_SCENARIO_WORKSPACE_H

#include "scenario/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 4 nodes of 8 V100; latency and efficiency are round numbers, nothing here depends on them. */
static const char cluster_yaml[] =
    "name: four nodes\n"
    "node: " FLOPCAST_SOURCE_DIR "/topologies/nodes/dgx-1v-like.yaml\n"
    "nodes: {value: 4, kind: assumed, source: test}\n"
    "oversubscription: {value: 1, kind: assumed, source: test}\n"
    "nccl_efficiency: {value: 0.9, kind: assumed, source: test}\n"
    "nccl_net_latency: {value: 2 us, kind: assumed, source: test}\n"
    "kernel_jitter: {value: 1 %, kind: assumed, source: test}\n"
    "host_jitter: {value: 5 %, kind: assumed, source: test}\n";

/* GPT-2 with two layers: simulates in no time. */
static const char model_json[] =
    "{\"model_type\": \"gpt2\", \"n_embd\": 256, \"n_layer\": 2, \"n_head\": 4, "
    "\"vocab_size\": 1000, \"n_positions\": 1024}\n";

/* What every scenario here begins with: 6 lines. */
#define BASE                                                                                       \
    "name: base\n"                                                                                 \
    "model: tiny.json\n"                                                                           \
    "cluster: {topology: cluster.yaml, gpus: 8}\n"                                                 \
    "train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}\n"                               \
    "strategy: ddp\n"                                                                              \
    "run: {steps: 1, warmup_steps: 0}\n"

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int enter_workspace(void **state)
{
    (void)state;
    char folder[] = "/tmp/flopcast-scenario-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    write_text("cluster.yaml", cluster_yaml);
    write_text("tiny.json", model_json);
    return 0;
}

static int leave_workspace(void **state)
{
    (void)state;
    char *folder = getcwd(NULL, 0);
    char *command = NULL;
    int failed =
        chdir("/") != 0 || asprintf(&command, "rm -r '%s'", folder) < 0 || system(command) != 0;
    free(command);
    free(folder);
    return failed;
}

/* A scenario loaded from text as x.yaml. */
struct loaded {
    struct scenario_set set;
    struct arena arena;
    struct diag diag;
    enum status status;
};

static inline struct loaded *load_text(
    const char *text, const struct scenario_override *overrides, int n)
{
    struct loaded *loaded = xcalloc(1, sizeof *loaded);
    write_text("x.yaml", text);
    loaded->status =
        scenario_load(&loaded->set, "x.yaml", overrides, n, &loaded->arena, &loaded->diag);
    return loaded;
}

static inline void unload(struct loaded *loaded)
{
    arena_release(&loaded->arena);
    free(loaded);
}

#endif
