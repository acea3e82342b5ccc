/* Losses of words that ranks share out: what they keep, make and send. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "exchanges.h"
#include "kernel_named.h"

enum { BF16_BYTES = 2 };

/* Bytes of what a loss of T tokens and V words keeps for its backward pass, and takes for it: by
 * Megatron-LM's functions the softmax in FP32, 4 T V, and the gradient of BF16 logits, 2 T V, where
 * they are fused; TransformerEngine's kernels write the gradient over the logits, 2 T V, and gather
 * three FP32 numbers a token of every rank. On one rank all do so without collectives, with
 * Megatron-Core's kernels. */
static void losses_keep_logits_in_their_format(void **state)
{
    (void)state;
    const int64_t tokens = (int64_t)BATCH * LENGTH;
    for (int ranks = 1; ranks <= 4; ranks += 3)
        for (int loss = CROSS_ENTROPY_FUSED; loss <= CROSS_ENTROPY_TE; loss++) {
            struct model_workload w = workload(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
            w.parallel.tensor = ranks;
            w.cross_entropy = loss;
            w.fusion = FUSION_TRANSFORMER_ENGINE;
            w.drops_logits = true;
            struct run r = shard_of(&small_llama, w);
            const struct model_program *head = r.segments.at[r.segments.n - 1].program;
            const int64_t words = kernel_named(head->forward, head->n_forward, "lm_head")->work.n;
            int64_t kept = 0, taken = 0;
            for (int i = 0; i < head->n_activations; i++) {
                const struct model_activation *at = &head->activations[i];
                bool of_words = at->bytes >= BF16_BYTES * tokens * words;
                kept += of_words && !at->born_in_backward && at->backward_last >= 0 ? at->bytes : 0;
                taken += of_words && at->born_in_backward ? at->bytes : 0;
            }
            bool te = loss == CROSS_ENTROPY_TE;
            assert_int_equal(kept, (te ? BF16_BYTES : FLOAT_BYTES) * tokens * words);
            assert_int_equal(taken, te ? 0 : BF16_BYTES * tokens * words);
            double gathered = 3 * FLOAT_BYTES * (double)(tokens * ranks);
            assert_int_equal(exchanges(head->forward, head->n_forward, COLL_ALL_GATHER, gathered),
                te && ranks > 1);
            if (ranks == 1)
                assert_int_equal(all_exchanges(head->forward, head->n_forward), 0);
            double logits = (double)(BF16_BYTES * tokens * words);
            if (te) /* its kernel reads what all ranks said of each token, and a loss each */
                assert_near(kernel_named(head->forward, head->n_forward, "loss")->work.read_bytes,
                    logits + gathered + (double)(FLOAT_BYTES * tokens), 0);
            arena_release(&r.arena);
        }
}

/* FP32 tensors of all logits that are there at once. */
static int most_at_once(const struct model_program *p, bool backward, int64_t bytes)
{
    int most = 0;
    for (int k = 0; k < (backward ? p->n_backward : p->n_forward); k++) {
        int there = 0;
        for (int i = 0; i < p->n_activations; i++) {
            const struct model_activation *at = &p->activations[i];
            bool born =
                at->born_in_backward ? backward && at->born <= k : backward || at->born <= k;
            there += at->bytes == bytes && born &&
                     (backward ? at->backward_last : at->forward_last) >= k;
        }
        most = there > most ? there : most;
    }
    return most;
}

/* DTensor's loss of T tokens, of whose L = T V / t logits this rank has its columns. All-reduces:
 * the largest, the sum of exponentials, the label's: 4 T bytes each. Bytes that kernels move for
 * each logit, forward: cast 2 + 4, max 4, subtract 4 + 4, exp 4 + 4, sum 4, log-softmax 4 + 4: 38;
 * backward: zeros 4, exp 4 + 4, add 8 + 4, multiply 4 + 4, cast 4 + 2: 38. Numbers of a row,
 * forward: the largest and the sum are written and read, the label's is read, written and read: 7;
 * backward: the label's is written: 1. And the loss or its gradient. FP32 tensors of all logits at
 * once: the logits, shifted, exponentials (then the log-softmax): 3; the log-softmax, labels,
 * exponentials, sum (then the gradient): 4. */
static void dtensors_loss_makes_new_tensors(void **state)
{
    (void)state;
    const double tokens = (double)BATCH * LENGTH;
    struct model_workload w = workload(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
    w.parallel = (struct model_parallel){.tensor = 4, .sequence = true};
    w.cross_entropy = CROSS_ENTROPY_LOSS_PARALLEL;
    w.drops_logits = true;
    struct run r = shard_of(&small_llama, w);
    const struct model_program *head = r.segments.at[r.segments.n - 1].program;
    assert_int_equal(
        exchanges(head->forward, head->n_forward, COLL_ALL_REDUCE, FLOAT_BYTES * tokens), 3);
    assert_int_equal(
        all_exchanges(head->backward, head->n_backward), 1); /* of what the head reads */
    const double logits =
        tokens * (double)kernel_named(head->forward, head->n_forward, "lm_head")->work.n;
    double moved[2] = {0};
    for (int pass = 0; pass < 2; pass++) {
        const struct model_op *ops = pass ? head->backward : head->forward;
        for (int i = 0; i < (pass ? head->n_backward : head->n_forward); i++)
            if (ops[i].kind == MODEL_KERNEL && strncmp(ops[i].name, "loss", 4) == 0)
                moved[pass] += ops[i].work.read_bytes + ops[i].work.write_bytes;
        assert_near(
            moved[pass], 38 * logits + (pass ? 1 : 7) * FLOAT_BYTES * tokens + FLOAT_BYTES, 0);
        assert_int_equal(
            most_at_once(head, pass != 0, FLOAT_BYTES * (int64_t)logits), pass ? 4 : 3);
    }
    arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_keep_logits_in_their_format),
        cmocka_unit_test(dtensors_loss_makes_new_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
