/* Packed sequences in whole jobs: documents that are alike, and documents that are drawn. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "../point.h"

#include <string.h>

#define SCENARIO FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml"
#define MODEL FLOPCAST_SOURCE_DIR "/scenarios/models/gpt2.yaml"

/* gpt2 on 8 H100 without noise and hosts that need time, sequences of 1,024 tokens. */
#define BASE                                                                                       \
    {"model", MODEL}, {"cluster.gpus", "8"}, {"strategy", "ddp"}, {"train.micro_batch", "4"},      \
        {"train.seq_len", "1024"}, {"train.attention", "flash"}, {"run.steps", "4"},               \
        {"run.warmup_steps", "3"}, {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"},  \
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"},                                 \
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"host.kernel_issue", "0 s"},                    \
        {"host.backward_issue", "0 s"}, {"host.unit_hook", "0 s"},                                 \
        {"host.collective_issue", "0 s"},                                                          \
    {                                                                                              \
        "host.step", "0 s"                                                                         \
    }
enum { BASE_SETTINGS = 18, MOST = BASE_SETTINGS + 8 };

static const struct scenario_override no_more[1];

/* That, then more. */
static struct scenario_result simulate(
    const struct scenario_override *more, int n, struct arena *arena)
{
    struct scenario_override list[MOST] = {BASE};
    memcpy(list + BASE_SETTINGS, more, (size_t)n * sizeof *more);
    return simulate_point(SCENARIO, list, BASE_SETTINGS + n, arena);
}

#define SIMULATE(arena, ...)                                                                       \
    simulate((const struct scenario_override[]){__VA_ARGS__},                                      \
        (int)(sizeof((const struct scenario_override[]){__VA_ARGS__}) /                            \
              sizeof(struct scenario_override)),                                                   \
        (arena))

static void assert_same(const struct scenario_result *a, const struct scenario_result *b)
{
    assert_true(a->exec.step_time_s == b->exec.step_time_s);
    assert_true(a->tflops_per_gpu == b->tflops_per_gpu);
    assert_true(a->hfu == b->hfu);
    assert_memory_equal(&a->exec.memory, &b->exec.memory, sizeof a->exec.memory);
}

static void a_document_that_fills_the_sequence_changes_nothing(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_result plain = simulate(no_more, 0, &arena);
    struct scenario_result mean = SIMULATE(&arena, {"train.document_mean", "1024"});
    struct scenario_result list = SIMULATE(&arena, {"train.document_lengths", "1024=2"});
    assert_same(&plain, &mean);
    assert_same(&plain, &list);
    assert_true(plain.exec.digest == mean.exec.digest && plain.exec.digest == list.exec.digest);
    arena_release(&arena);
}

/* FLOP of a step are a + b L for documents of L tokens; b = 3 x 12 blocks x 4 sequences x 1,024
 * queries x 2 products x 2 x 768 / 2 keys. */
static double step_flop(const char *tokens, struct arena *arena)
{
    struct scenario_result result = SIMULATE(arena, {"train.document_mean", tokens});
    return result.model_tflops_per_gpu * 1e12 * result.exec.step_time_s;
}

static void flop_go_with_the_length(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    double whole = step_flop("1024", &arena), half = step_flop("512", &arena),
           eighth = step_flop("128", &arena);
    double of_a_key = 3.0 * 12 * 4 * 1024 * 2 * 2 * 768 / 2;
    assert_near((whole - half) / (512 * of_a_key), 1, 1e-9);
    assert_near((half - eighth) / (384 * of_a_key), 1, 1e-9);
    arena_release(&arena);
}

/* The same by two ranks of context parallelism, half of it each, and the products that are
 * executed: forward 2, backward 5 of kernels that compute the scores again. */
static void flop_go_with_the_length_on_parts_of_a_sequence(void **state)
{
    (void)state;
    const char *const kinds[] = {"p2p", "all_gather", "a2a"}, *const tokens[] = {"1024", "512"};
    const double of_a_product = 12.0 * 4 * 1024 * 2 * 768 / 2 / 2;
    for (int k = 0; k < 3; k++) {
        struct arena arena = ARENA_INIT;
        double model[2], hardware[2];
        for (int i = 0; i < 2; i++) {
            struct scenario_result result = SIMULATE(&arena, {"train.document_mean", tokens[i]},
                {"strategy", "megatron"}, {"cluster.gpus", "2"}, {"parallelism.context", "2"},
                {"parallelism.context_kind", kinds[k]});
            model[i] = result.model_tflops_per_gpu * 1e12 * result.exec.step_time_s;
            hardware[i] = result.hw_tflops_per_gpu * 1e12 * result.exec.step_time_s;
        }
        assert_near((model[0] - model[1]) / (512 * 6 * of_a_product), 1, 1e-9);
        assert_near((hardware[0] - hardware[1]) / (512 * 7 * of_a_product), 1, 1e-9);
        arena_release(&arena);
    }
}

/* One rank stands for all where documents are alike, to the bit; where they are drawn none does,
 * whatever is asked. */
static void only_documents_alike_are_folded(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_result folded = SIMULATE(&arena, {"train.document_mean", "300"});
    struct scenario_result all =
        SIMULATE(&arena, {"train.document_mean", "300"}, {"run.fold", "off"});
    assert_int_equal(folded.exec.ranks_simulated, 1);
    assert_int_equal(all.exec.ranks_simulated, 8);
    assert_same(&folded, &all);
    struct scenario_result drawn = SIMULATE(&arena, {"train.document_lengths", "300, 301"});
    struct scenario_result slowest =
        SIMULATE(&arena, {"train.document_lengths", "300, 301"}, {"run.fold", "slowest"});
    assert_int_equal(drawn.exec.ranks_simulated, 8);
    assert_true(drawn.exec.digest == slowest.exec.digest);
    arena_release(&arena);
}

/* What is drawn is a matter of the seed; memory is that of whole sequences. */
static void the_seed_draws(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_result plain = simulate(no_more, 0, &arena);
    struct scenario_result one =
        SIMULATE(&arena, {"train.document_mean", "200"}, {"train.document_sd", "300"});
    struct scenario_result again =
        SIMULATE(&arena, {"train.document_mean", "200"}, {"train.document_sd", "300"});
    struct scenario_result other = SIMULATE(
        &arena, {"train.document_mean", "200"}, {"train.document_sd", "300"}, {"run.seed", "2"});
    assert_true(one.exec.digest == again.exec.digest && one.exec.digest != other.exec.digest);
    assert_true(one.exec.step_time_sd_s > 0 && plain.exec.step_time_sd_s == 0);
    assert_true(one.exec.memory.peak_reserved_bytes == plain.exec.memory.peak_reserved_bytes);
    assert_true(one.exec.step_time_s < plain.exec.step_time_s);
    arena_release(&arena);
}

/* Ranks of tensor, context and pipeline parallelism work on the same documents and do not wait for
 * one another; those of data parallelism do. */
static double wait_s(const char *key, const char *lengths, struct arena *arena)
{
    struct scenario_result result =
        SIMULATE(arena, {"train.document_lengths", lengths}, {"strategy", "megatron"}, {key, "2"},
            {"cluster.gpus", "2"}, {"run.fold", "off"}, {"train.device_batch", "8"});
    return result.exec.breakdown.comm_wait_s - result.exec.breakdown.stage_wait_s;
}

static void ranks_of_one_sequence_draw_alike(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const char *const keys[] = {
        "parallelism.tensor", "parallelism.context", "parallelism.pipeline"};
    for (int k = 0; k < 3; k++) {
        double alike_s = wait_s(keys[k], "512", &arena),
               drawn_s = wait_s(keys[k], "128, 1024", &arena);
        assert_near(drawn_s, alike_s, 1e-6);
    }
    assert_true(wait_s("train.grad_accum", "128, 1024", &arena) > 1e-4);
    arena_release(&arena);
}

/* Halves or a whole sequence, of one sequence a rank and step: n ranks, which wait for each other,
 * take what a whole one takes with the probability 1 - (1/2)^n. */
static void data_parallel_ranks_wait_for_the_longest(void **state)
{
    (void)state;
    enum { STEPS = 60 };
    struct arena arena = ARENA_INIT;
    const char *const gpus[] = {"1", "2", "8"};
    for (int g = 0; g < 3; g++) {
        struct scenario_override at[] = {{"train.document_lengths", "1024"},
            {"cluster.gpus", gpus[g]}, {"train.micro_batch", "1"}, {"run.steps", "60"},
            {"run.fold", "off"}};
        double whole_s = simulate(OVERRIDES(at), &arena).exec.step_time_s;
        at[0].value = "512";
        double half_s = simulate(OVERRIDES(at), &arena).exec.step_time_s;
        at[0].value = "512, 1024";
        struct scenario_result drawn = simulate(OVERRIDES(at), &arena);
        double p = 1 - pow(0.5, atof(gpus[g])), sd = sqrt(p * (1 - p));
        double got = (drawn.exec.step_time_s - half_s) / (whole_s - half_s);
        assert_near(got, p, 4 * sd / sqrt(STEPS) + 0.02);
        if (g == 0)
            assert_near(drawn.exec.step_time_sd_s / (whole_s - half_s), sd, 0.05);
    }
    arena_release(&arena);
}

/* As many documents in each micro-batch, tokens differ: N = 4 x 1024 / 512 documents of 256 or 768
 * tokens, c = 1/2. One rank's step varies by c / sqrt(N) = 0.177 of what goes with tokens; of 8
 * ranks it takes 1 + 1.42 x 0.177 of it. Packed to a fixed sum, a twentieth. */
static void a_fixed_number_of_documents_varies(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const double deviation = 0.5 / sqrt(8), greatest = 1.42;
    struct scenario_override at[] = {{"train.document_lengths", "256, 768"}, {"cluster.gpus", "1"},
        {"run.steps", "120"}, {"run.fold", "off"}, {"train.document_packing", "tokens"}};
    struct scenario_result fixed = simulate(OVERRIDES(at), &arena);
    at[4].value = "documents";
    struct scenario_result one = simulate(OVERRIDES(at), &arena);
    at[1].value = "8";
    struct scenario_result all = simulate(OVERRIDES(at), &arena);
    double share =
        one.exec.step_time_sd_s / one.exec.step_time_s / deviation; /* goes with tokens */
    assert_true(share > 0.7 && share < 1.1);
    assert_near(one.exec.step_time_s / fixed.exec.step_time_s, 1, 4 * deviation / sqrt(120));
    assert_near((all.exec.step_time_s / one.exec.step_time_s - 1) / (share * deviation * greatest),
        1, 0.35);
    assert_true(fixed.exec.step_time_sd_s / fixed.exec.step_time_s < deviation / 20);
    arena_release(&arena);
}

/* Where none is drawn, as in a waterfall without stragglers, ranks are alike, and a step of halves
 * and whole sequences is the mean of both. */
static void none_is_drawn_where_all_have_the_mean(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    struct scenario_result result;
    const struct scenario_override list[] = {BASE, {"train.document_lengths", "512, 1024"}};
    assert_int_equal(scenario_load(&set, SCENARIO, OVERRIDES(list), &arena, &diag), STATUS_OK);
    set.points[0].options.exec.mean_documents = true;
    assert_int_equal(scenario_simulate(&result, &set.points[0], &arena, &diag), STATUS_OK);
    double whole_s = simulate(no_more, 0, &arena).exec.step_time_s,
           half_s = SIMULATE(&arena, {"train.document_mean", "512"}).exec.step_time_s;
    assert_int_equal(result.exec.ranks_simulated, 1);
    assert_near(result.exec.step_time_s / ((whole_s + half_s) / 2), 1, 1e-4);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_that_fills_the_sequence_changes_nothing),
        cmocka_unit_test(flop_go_with_the_length),
        cmocka_unit_test(flop_go_with_the_length_on_parts_of_a_sequence),
        cmocka_unit_test(only_documents_alike_are_folded),
        cmocka_unit_test(the_seed_draws),
        cmocka_unit_test(ranks_of_one_sequence_draw_alike),
        cmocka_unit_test(data_parallel_ranks_wait_for_the_longest),
        cmocka_unit_test(a_fixed_number_of_documents_varies),
        cmocka_unit_test(none_is_drawn_where_all_have_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
