/* InternEvo's hybrid ZeRO-1: who owns, broadcasts and waits for what. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

/* small_gpt (../shapes.h): two embeddings, 12 in each of 3 blocks (2 norms, 4 linear layers, each
 * with a bias), 2 of the last norm. The head is tied to the embedding of tokens. */
enum { N_TENSORS = 2 + 3 * 12 + 2 };

static struct strategy_options internevo_of(int64_t zero1, bool overlap_sync_param)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.kind = STRATEGY_INTERNEVO;
    options.train.precision = PRECISION_BF16_MASTER;
    options.internevo.zero1 = zero1;
    options.internevo.overlap_sync_param = overlap_sync_param;
    return options;
}

static double most_bytes(const struct plan *plan, enum coll_kind kind)
{
    double most = 0;
    for (int c = 0; c < plan->collectives.n; c++)
        if (plan->collectives.at[c].kind == kind && plan->collectives.at[c].bytes > most)
            most = plan->collectives.at[c].bytes;
    return most;
}

/* Every weight is broadcast once a step (16 bits): by size, by as many owners as there are ranks in
 * the zero1 group, or tensors where those are fewer; in the model's order, each owner has n / ranks
 * + 1 of n tensors, the last what is left. Every gradient is all-reduced once over all ranks,
 * beside the 4 bytes of the norm. */
static void broadcasts_by_owner(void **state)
{
    (void)state;
    const struct {
        int64_t zero1;
        int gpus;
    } cases[] = {{-1, 8}, {8, 32}, {-1, 1024}, {0, 16}, {1, 8}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct strategy_options options = internevo_of(cases[i / 2].zero1, i % 2);
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, cases[i / 2].gpus);
        int64_t group = internevo_zero1_size(&options.internevo, cases[i / 2].gpus);
        int most = N_TENSORS / (int)group + 1, by_size = group < N_TENSORS ? (int)group : N_TENSORS;
        int owners = i % 2 ? (N_TENSORS + most - 1) / most : by_size;
        bool shares = group > 1; /* alone, a rank has nobody to send to */
        assert_int_equal(count(&compiled.plan, COLL_BROADCAST), shares ? owners : 0);
        double all = 2 * (double)compiled.model.params;
        assert_true(bytes_of(&compiled.plan, COLL_BROADCAST) == (shares ? all : 0));
        assert_true(
            bytes_of(&compiled.plan, COLL_ALL_REDUCE) == all + (shares ? sizeof(float) : 0));
        assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), 1 + shares);
        drop(&compiled);
    }
}

/* By size, the largest tensor, the embedding of tokens (vocab x d, 2 bytes an element), is a
 * separate part where there are ranks enough. In the model's order 8 ranks have 40 / 8 + 1 = 6
 * tensors each, the first: the embeddings of tokens and positions, and of block 0 the norm before
 * attention (2 d) and c_attn (3 d x d and 3 d). */
static void parts(void **state)
{
    (void)state;
    const int64_t d = small_gpt.d_model;
    struct strategy_options options = internevo_of(-1, false);
    struct compiled compiled;
    compile(&compiled, &options, &small_gpt, 1024);
    assert_int_equal(compiled.model.n_tensors, N_TENSORS);
    assert_true(most_bytes(&compiled.plan, COLL_BROADCAST) == 2.0 * (double)(small_gpt.vocab * d));
    drop(&compiled);
    options.internevo.overlap_sync_param = true;
    compile(&compiled, &options, &small_gpt, 8);
    assert_true(compiled.plan.collectives.at[0].bytes ==
                2.0 * (double)(small_gpt.vocab * d + small_gpt.max_positions * d + 2 * d +
                               3 * d * d + 3 * d));
    drop(&compiled);
}

/* Broadcasts that the first kernel of a step waits for: those of the embeddings, or all. */
static void what_forward_waits_for(void **state)
{
    (void)state;
    for (int overlap = 0; overlap < 2; overlap++) {
        struct strategy_options options = internevo_of(-1, overlap);
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 1024);
        const struct plan *plan = &compiled.plan;
        int first = 0;
        while (plan->programs[0].ops.at[first].kind != OP_KERNEL)
            first++;
        assert_int_equal(plan->programs[0].ops.at[first].n_waits, overlap ? 2 : N_TENSORS);
        for (int w = 0; w < plan->programs[0].ops.at[first].n_waits; w++)
            assert_int_equal(
                plan->programs[0]
                    .ops
                    .at[plan->programs[0].waits.at[plan->programs[0].ops.at[first].first_wait + w]]
                    .kind,
                OP_COLLECTIVE);
        drop(&compiled);
    }
}

/* Without overlap_sync_grad the compute stream waits for every bucket, with it the optimizer for
 * the last. */
static void what_backward_waits_for(void **state)
{
    (void)state;
    for (int overlap = 0; overlap < 2; overlap++) {
        struct strategy_options options = internevo_of(-1, false);
        options.internevo.overlap_sync_grad = overlap;
        options.internevo.reduce_bucket_size = 1; /* a tensor a bucket */
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 8);
        const struct plan *plan = &compiled.plan;
        int waits = 0;
        for (int i = 0; i < plan->programs[0].ops.n; i++)
            for (int w = 0; w < plan->programs[0].ops.at[i].n_waits &&
                            plan->programs[0].ops.at[i].kind == OP_KERNEL;
                 w++) {
                int32_t waited =
                    plan->programs[0].waits.at[plan->programs[0].ops.at[i].first_wait + w];
                waits += plan->programs[0].ops.at[i].stream == STREAM_COMPUTE &&
                         plan->programs[0].ops.at[waited].stream == STREAM_POST;
            }
        assert_int_equal(count(plan, COLL_ALL_REDUCE), N_TENSORS + 1);
        assert_int_equal(waits, overlap ? 1 : N_TENSORS + 1);
        drop(&compiled);
    }
}

/* Weights are sent when their owners have stepped, and not before. */
static void broadcasts_wait_for_the_step_before(void **state)
{
    (void)state;
    for (int gpus = 2; gpus <= 8; gpus *= 2) {
        struct strategy_options options = internevo_of(-1, false);
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, gpus);
        const struct plan *plan = &compiled.plan;
        int first = 0, waits = 0;
        while (plan->programs[0].ops.at[first].kind != OP_COLLECTIVE)
            first++;
        const struct plan_op *op = &plan->programs[0].ops.at[first];
        assert_int_equal(plan->collectives.at[op->index].kind, COLL_BROADCAST);
        for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++)
            waits += (plan->programs[0].waits.at[w] & PLAN_PREVIOUS_STEP) != 0;
        assert_int_equal(waits, 1);
        drop(&compiled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(broadcasts_by_owner),
        cmocka_unit_test(broadcasts_wait_for_the_step_before), cmocka_unit_test(parts),
        cmocka_unit_test(what_forward_waits_for), cmocka_unit_test(what_backward_waits_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
