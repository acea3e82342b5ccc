/* Small models compiled to plans, for tests of strategies. Include after cmocka.h. */
#ifndef FLOPCAST_TESTS_STRATEGY_COMPILED_H
#define FLOPCAST_TESTS_STRATEGY_COMPILED_H

#include "../check_and_compile.h"
#include "../shapes.h"
#include "strategy/strategy.h"

#include <string.h>

static inline struct hw test_hw(void)
{
    struct hw hw = {0};
    hw.gpu.name = "test";
    hw.gpu.arch = "Hopper";
    hw.node.gpus.value = 8;
    hw.node.name = "test";
    hw.node.host_memory = (struct quantity){.value = 1e12, .kind = QUANTITY_ASSUMED};
    hw.node.host_bandwidth = (struct quantity){.value = 1e11, .kind = QUANTITY_ASSUMED};
    for (int d = 0; d < DTYPE_COUNT; d++)
        hw.gpu.gemm[d].peak = (struct quantity){.value = 1e12, .kind = QUANTITY_ASSUMED};
    return hw;
}

struct compiled {
    struct arena arena;
    struct model model;
    struct plan plan;
};

/* T5's decoder sees as many tokens as its encoder where the options do not say, as in a scenario.
 */
static inline void compile_on(const char *arch, struct compiled *out,
    const struct strategy_options *given, const struct model_shape *shape, int gpus)
{
    struct strategy_options options = *given;
    struct hw hw = test_hw();
    hw.gpu.arch = arch;
    struct diag diag = DIAG_INIT;
    *out = (struct compiled){.arena = ARENA_INIT};
    model_build(&out->model, shape, &out->arena);
    if (shape->family == MODEL_T5 && options.train.decoder_seq_len == 0)
        options.train.decoder_seq_len = options.train.seq_len;
    check_and_compile(&out->plan, &options, &out->model, &hw, gpus, &out->arena, &diag);
    assert_string_equal(diag.text, "");
}

/* On what can multiply so. */
static inline void compile(struct compiled *out, const struct strategy_options *options,
    const struct model_shape *shape, int gpus)
{
    bool narrow =
        options->train.precision == PRECISION_FP4_MIXED || options->train.fp8_recipe == FP8_MXFP8;
    compile_on(narrow ? "Blackwell" : "Hopper", out, options, shape, gpus);
}

static inline void drop(struct compiled *compiled)
{
    plan_release(&compiled->plan);
    arena_release(&compiled->arena);
}

/* This model on 8 GPUs cannot be done; the error says these words. */
static inline void refuse_model(const struct model_shape *shape, struct hw hw,
    const struct strategy_options *options, const char *words)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model model;
    struct plan plan = {0};
    model_build(&model, shape, &arena);
    assert_int_equal(
        check_and_compile(&plan, options, &model, &hw, 8, &arena, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, words));
    plan_release(&plan);
    arena_release(&arena);
}

static inline void refuse_plan(
    struct hw hw, const struct strategy_options *options, const char *words)
{
    refuse_model(&small_gpt, hw, options, words);
}

static inline struct strategy_options options_of(int sharding)
{
    struct strategy_options options = strategy_default_options();
    options.train.seq_len = 32;
    options.train.micro_batch = 2;
    options.fsdp.sharding_strategy = sharding;
    return options;
}

static inline int count(const struct plan *plan, enum coll_kind kind)
{
    int n = 0;
    for (int c = 0; c < plan->collectives.n; c++)
        n += plan->collectives.at[c].kind == kind;
    return n;
}

static inline double bytes_of(const struct plan *plan, enum coll_kind kind)
{
    double bytes = 0;
    for (int c = 0; c < plan->collectives.n; c++)
        if (plan->collectives.at[c].kind == kind)
            bytes += plan->collectives.at[c].bytes;
    return bytes;
}

/* ZeRO without parameters that stay gathered. */
static inline struct strategy_options zero_of(int64_t stage)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.kind = STRATEGY_DEEPSPEED;
    options.zero.stage = stage;
    options.zero.stage3_param_persistence_threshold = 0;
    options.zero.stage3_max_reuse_distance = 0;
    return options;
}

#endif
