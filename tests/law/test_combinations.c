/* Whatever is combined with whatever: models of every family and the options of strategies, drawn independently. What
 * strategy_compile takes is a lawful plan, and exec runs it to its end. The seed is fixed: a case that fails here fails
 * again. Its settings are told, or its number where a BUG ends the test. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../shapes.h"
#include "base/rng.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CASES = 6000, EXECUTED = 8 }; /* every eighth is */

struct drawn {
    int number;
    const struct model_shape *shape;
    int gpus;
    struct strategy_options options;
};
static struct drawn current = {.number = -1}; /* of which nobody knows yet that it holds */

static void tell(const struct drawn *drawn)
{
    struct scenario scenario = scenario_default();
    scenario.strategy = drawn->options;
    scenario.cluster.gpus = drawn->gpus;
    fprintf(stderr, "case %d: model '%s'\n", drawn->number, drawn->shape->name);
    config_write_json(stderr, &scenario_table, &scenario, NULL);
}

static int tell_current(void **state)
{
    (void)state;
    if (current.number >= 0)
        tell(&current);
    return 0;
}

/* A BUG ends the test here, where nothing may be formatted. */
static char current_line[64];
static void on_abort(int signal)
{
    (void)signal;
    ssize_t written = write(STDERR_FILENO, current_line, strlen(current_line));
    (void)written;
}

/* ---- drawing --------------------------------------------------------------------------------------------------------
 */

static int below(struct rng_stream *rng, int n)
{
    return (int)(rng_uniform(rng) * n);
}

static bool one_in(struct rng_stream *rng, int n)
{
    return below(rng, n) == 0;
}

static int64_t one_of(struct rng_stream *rng, const int64_t *values, int n)
{
    return values[below(rng, n)];
}
#define ONE_OF(rng, ...)                                                                                               \
    one_of(rng, (const int64_t[]){__VA_ARGS__}, (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)))

/* The families, and what takes other paths: DeepViT, a DHEN whose layers take adapters. Convolutions are few, they cost
 * most of the time. */
static const struct model_shape *draw_shape(struct rng_stream *rng)
{
    static struct model_shape deep_vit, linear_dhen;
    deep_vit = small_vit;
    deep_vit.name = "deepvit";
    deep_vit.mixes_heads = true;
    linear_dhen = small_dhen;
    linear_dhen.name = "dhen without convolution";
    linear_dhen.dhen.convolution = false;
    const struct model_shape *const shapes[] = {
        &small_gpt, &small_t5, &small_llama, &small_bert, &small_vit, &deep_vit, &small_dhen, &linear_dhen};
    enum { N = sizeof shapes / sizeof *shapes };
    return one_in(rng, 4 * N) ? &small_resnet : shapes[below(rng, N)];
}

/* Tokens of a micro-batch that are a multiple of 16 and such that are none, which FP8 does not take; the last
 * micro-batch may differ in that, either way. */
static void draw_batch(struct rng_stream *rng, struct train_options *train, const struct model_shape *shape)
{
    int64_t own = model_sample_tokens(shape);
    train->seq_len = own > 0 ? own : ONE_OF(rng, 32, 24, 20);
    train->decoder_seq_len = shape->family == MODEL_T5 ? ONE_OF(rng, 0, 8) : 0;
    train->micro_batch = ONE_OF(rng, 1, 2, 3, 5);
    train->grad_accum = one_in(rng, 3) ? 3 : 1;
    train->device_batch = one_in(rng, 3) && train->grad_accum == 1 ? 1 + below(rng, 9) : 0;
}

static void draw_train(struct rng_stream *rng, struct train_options *train, const struct model_shape *shape)
{
    draw_batch(rng, train, shape);
    train->precision = below(rng, PRECISION_COUNT);
    train->optimizer = below(rng, OPTIMIZER_COUNT);
    train->optimizer_impl = below(rng, OPTIMIZER_IMPL_COUNT);
    train->activation_checkpointing = below(rng, CHECKPOINT_COUNT);
    train->checkpoint_interval = ONE_OF(rng, 1, 1, 2);
    train->checkpoint_early_stop = one_in(rng, 2);
    train->attention = model_takes_flash(shape) && one_in(rng, 2) ? ATTENTION_FLASH : ATTENTION_NAIVE;
    train->cross_entropy = below(rng, CROSS_ENTROPY_COUNT);
    train->fusion = one_in(rng, 4) ? FUSION_INDUCTOR : FUSION_EAGER;
    train->memory_format = below(rng, IMAGE_FORMAT_COUNT);
    train->use_cache = one_in(rng, 2);
    train->drop_logits = one_in(rng, 2);
    train->neftune = one_in(rng, 4);
    train->decode_images = shape->image_size > 0 && one_in(rng, 2);
    train->lora_rank = model_takes_adapters(shape) && train->optimizer != OPTIMIZER_LOMO && one_in(rng, 3) ? 4 : 0;
    bool half = train->precision == PRECISION_BF16_MIXED || train->precision == PRECISION_FP16_MIXED;
    train->autocast = half && one_in(rng, 2);
    train->qlora = train->lora_rank > 0 && half && one_in(rng, 2); /* else refused by scenario/check.c */
}

static void draw_fsdp(struct rng_stream *rng, struct fsdp_options *fsdp, int gpus)
{
    fsdp->sharding_strategy = below(rng, SHARDING_COUNT);
    fsdp->backward_prefetch = below(rng, BACKWARD_PREFETCH_COUNT);
    fsdp->reduce_dtype = below(rng, REDUCE_DTYPE_COUNT);
    fsdp->limit_all_gathers = one_in(rng, 2);
    fsdp->forward_prefetch = one_in(rng, 2);
    fsdp->cpu_offload = one_in(rng, 4);
    fsdp->no_sync = one_in(rng, 2);
    fsdp->version = 1 + below(rng, 2);
    fsdp->max_inflight_all_gathers = ONE_OF(rng, 1, 2, 3);
    fsdp->sharding_group_size = gpus < 8 ? gpus : ONE_OF(rng, 0, 1, 4, 8);
}

static void draw_ddp(struct rng_stream *rng, struct ddp_options *ddp)
{
    ddp->bucket_cap_bytes = (double)ONE_OF(rng, 1, 100000, 25 << 20);
    ddp->first_bucket_bytes = (double)ONE_OF(rng, 1, 1 << 20);
    ddp->gradient_as_bucket_view = one_in(rng, 2);
    ddp->broadcast_buffers = one_in(rng, 2);
}

static void draw_zero(struct rng_stream *rng, struct zero_options *zero)
{
    zero->stage = 1 + below(rng, 3);
    zero->reduce_bucket_size = ONE_OF(rng, 1, 5000, 500000000);
    zero->allgather_bucket_size = ONE_OF(rng, 10000, 500000000);
    zero->overlap_comm = below(rng, OVERLAP_COUNT);
    zero->stage3_prefetch_bucket_size = ONE_OF(rng, 0, 5000, 500000000);
    zero->stage3_param_persistence_threshold = ONE_OF(rng, 0, 100, 100000);
    zero->stage3_max_live_parameters = ONE_OF(rng, 0, 10000, 1000000000);
    zero->stage3_fetch = below(rng, FETCH_COUNT);
    zero->stage3_max_reuse_distance = ONE_OF(rng, 0, 10000, 1000000000);
    zero->offload_optimizer = one_in(rng, 4);
}

static void draw_internevo(struct rng_stream *rng, struct internevo_options *internevo)
{
    internevo->zero1 = ONE_OF(rng, -1, 1, 8);
    internevo->reduce_bucket_size = ONE_OF(rng, 1, 5000, 500000000);
    internevo->overlap_sync_grad = one_in(rng, 2);
    internevo->overlap_sync_param = one_in(rng, 2);
}

/* A statement a draw: the order of those within an expression is the compiler's. */
static struct drawn draw(int number)
{
    struct rng_stream rng = rng_stream(1, 0, (uint64_t)number);
    struct drawn drawn = {.number = number, .options = strategy_default_options()};
    struct strategy_options *options = &drawn.options;
    drawn.shape = draw_shape(&rng);
    options->kind = below(&rng, STRATEGY_COUNT);
    drawn.gpus = options->kind == STRATEGY_SINGLE_DEVICE ? 1 : (int)ONE_OF(&rng, 1, 4, 8, 16, 32);
    draw_train(&rng, &options->train, drawn.shape);
    draw_fsdp(&rng, &options->fsdp, drawn.gpus);
    draw_ddp(&rng, &options->ddp);
    draw_zero(&rng, &options->zero);
    draw_internevo(&rng, &options->internevo);
    return drawn;
}

/* ---- laws -----------------------------------------------------------------------------------------------------------
 */

/* Recomputation alone makes the GPU do more than the model needs: a forward pass at most, of which three are a step,
 * two where the matrices are frozen. A causal flash kernel leaves half of the scores out. */
static void check_plan(const struct plan *plan, const struct drawn *drawn)
{
    const struct train_options *train = &drawn->options.train;
    char why[256] = "";
    if (!plan_check(plan, why, sizeof why))
        fail_msg("%s", why);
    int64_t batch = train->device_batch ? train->device_batch : train->micro_batch * train->grad_accum;
    assert_true(plan->samples == (double)batch);
    double ratio = plan->hardware_flop / plan->model_flop;
    if (train->attention != ATTENTION_NAIVE)
        return;
    if (train->activation_checkpointing == CHECKPOINT_NONE)
        assert_true(ratio > 1 - 1e-12 && ratio < 1 + 1e-12);
    else
        assert_true(ratio > 1 - 1e-12 && ratio < (train->lora_rank ? 3.0 / 2 : 4.0 / 3) + 1e-12);
}

static void execute(const struct plan *plan, const struct hw *hw, int number, struct arena *arena)
{
    struct exec_options options = exec_default_options();
    struct exec_result result;
    options.steps = options.warmup_steps = 1;
    if (number / EXECUTED % 4 == 0 && plan->ranks <= 8) /* ranks one by one */
        options.noise = (struct noise_options){0.02, 0.01, 0.02, 0.05, false};
    exec_run(&result, plan, hw, &options, arena);
    assert_int_equal(result.status, EXEC_OK);
    assert_true(result.step_time_s > 0);
}

/* Told whether strategy_compile took it. */
static bool holds(int number, const struct hw *hw)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model model;
    struct plan plan = {0};
    current = draw(number);
    snprintf(current_line, sizeof current_line, "in case %d of test_combinations.c\n", number);
    model_build(&model, current.shape, &arena);
    enum status status =
        strategy_compile(&plan, &current.options, &model, hw, current.gpus, (struct source_pos){0}, &arena, &diag);
    if (status == STATUS_OK) {
        check_plan(&plan, &current);
        if (number % EXECUTED == 0)
            execute(&plan, hw, number, &arena);
    }
    plan_release(&plan);
    arena_release(&arena);
    current.number = -1;
    return status == STATUS_OK;
}

static void every_combination_is_a_lawful_plan(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    signal(SIGABRT, on_abort);
    hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml", &arena, &diag);
    assert_string_equal(diag.text, "");
    hw.gpu.host_image_s = 1e-4; /* some time, so that images can be decoded */
    int taken = 0;
    for (int i = 0; i < CASES; i++)
        taken += holds(i, &hw);
    assert_true(taken > CASES / 2);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_combination_is_a_lawful_plan)};
    return cmocka_run_group_tests(tests, NULL, tell_current);
}
