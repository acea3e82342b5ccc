/* A model cut over the GPUs of a node, executed: what runs beside what, and what the cuts spare. */
#include "exec/exec.h"
#include "strategy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../check_and_compile.h"
#include "../point.h"

enum { GPUS = 8, LAYERS = 4 };

/* Seconds of a step of four of Llama's blocks on a node of H100, without the host and noise. */
static double step_s(const char *seq_len, struct model_parallel parallel)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    const struct scenario_override overrides[] = {{"cluster.gpus", "8"},
        {"train.attention", "flash"}, {"train.activation_checkpointing", "none"},
        {"train.seq_len", seq_len}, {"train.micro_batch", "1"}};
    if (scenario_load(&set, FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml",
            OVERRIDES(overrides), &arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    struct scenario_point *point = &set.points[0];
    struct strategy_options *options = &point->options.strategy;
    options->kind = STRATEGY_DDP;
    options->host = (struct host_options){0};
    struct model_shape shape = point->model.shape;
    shape.n_layers = LAYERS;
    options->parallelism.model = parallel;
    struct model model;
    model_build(&model, &shape, &arena);
    struct plan plan;
    struct exec_result result;
    struct exec_options exec = exec_default_options();
    exec.noise = (struct noise_options){0};
    char why[512] = "";
    if (check_and_compile(&plan, options, &model, &point->hw, GPUS, &arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    if (!plan_check(&plan, why, sizeof why))
        fail_msg("%s", why);
    exec_run(&result, &plan, &point->hw, &exec, &arena);
    assert_int_equal(result.status, EXEC_OK);
    plan_release(&plan);
    arena_release(&arena);
    return result.step_time_s;
}

/* The same bytes and products: what runs beside is faster. With sequence the all-reduces come in
 * halves, and norms and sums have an eighth of the rows. */
static void overlap_and_sequence_save_time(void **state)
{
    (void)state;
    double blocking = step_s("8192", (struct model_parallel){.tensor = GPUS});
    double async =
        step_s("8192", (struct model_parallel){.tensor = GPUS, .tensor_overlap = TENSOR_ASYNC});
    double sequence = step_s("8192", (struct model_parallel){.tensor = GPUS, .sequence = true});
    assert_true(async < blocking);
    assert_true(sequence < blocking);
}

/* User buffers hide what asynchronous communication waits for in forward, and take no longer than
 * one after the other. GEMMs of no rows to speak of hide nothing: there pieces only cost launches
 * and latency. */
static void pieces_hide_what_blocks_wait_for(void **state)
{
    (void)state;
    struct model_parallel parallel = {.tensor = 4, .sequence = true};
    double s[TENSOR_OVERLAP_COUNT];
    for (int overlap = 0; overlap < TENSOR_OVERLAP_COUNT; overlap++) {
        parallel.tensor_overlap = overlap;
        s[overlap] = step_s("16384", parallel);
    }
    assert_true(s[TENSOR_USER_BUFFERS] < s[TENSOR_ASYNC] && s[TENSOR_ASYNC] < s[TENSOR_BLOCKING]);
    parallel.tensor_overlap = TENSOR_ASYNC;
    double async = step_s("64", parallel);
    parallel.tensor_overlap = TENSOR_USER_BUFFERS;
    assert_true(step_s("64", parallel) > async);
}

/* 8192 positions of each rank take longer to attend to than to send (550 GFLOP at less than 1
 * PFLOP/s, 128 MiB at some 200 GB/s): a ring hides its exchanges, gathered keys are waited for. */
static void a_ring_hides_what_gathering_shows(void **state)
{
    (void)state;
    double ring = step_s("65536", (struct model_parallel){.context = GPUS});
    double gathered = step_s(
        "65536", (struct model_parallel){.context = GPUS, .context_kind = CONTEXT_ALL_GATHER});
    double ulysses =
        step_s("65536", (struct model_parallel){.context = GPUS, .context_kind = CONTEXT_A2A});
    double both = step_s(
        "65536", (struct model_parallel){
                     .tensor = 4, .sequence = true, .tensor_overlap = TENSOR_ASYNC, .context = 2});
    assert_true(ring < gathered);
    assert_true(ulysses > 0 && both > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_and_sequence_save_time),
        cmocka_unit_test(pieces_hide_what_blocks_wait_for),
        cmocka_unit_test(a_ring_hides_what_gathering_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
