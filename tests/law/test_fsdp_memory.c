/* What FSDP1 holds at its fullest moments, in closed form. */
#include "exec/peak.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../strategy/compiled.h"

/* small_gpt: a root of 1,000 x 64 + 32 x 64 + 2 x 64 and three blocks of 49,984 parameters (see
 * tests/strategy/test_optimizer.c), all divisible by 8 ranks. */
enum { ROOT = 66176, BLOCK = 49984, BLOCKS = 3, RANKS = 8 };

static int64_t rounded(int64_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

/* Gradients of a block in BF16, tensor by tensor: four vectors of norms and four of biases of 512 B
 * or less each, matrices of 49,152 elements, each a multiple of 512 B. Of the root, from the loss
 * on: the embedding, tied to the head, and the two vectors of the last norm. */
enum { BLOCK_GRADS = 8 * 512 + 2 * 49152, HEAD_GRADS = 2 * 64000 + 2 * 512 };

static struct exec_peak peak_of(int sharding_strategy, int reduce_dtype)
{
    struct strategy_options options = options_of(sharding_strategy);
    struct hw hw = test_hw();
    struct compiled compiled;
    struct exec_peak peak;
    options.fsdp.reduce_dtype = reduce_dtype;
    options.train.optimizer = OPTIMIZER_ADAMW;
    options.train.optimizer_impl = OPTIMIZER_FOREACH;
    options.train.precision = PRECISION_BF16_MIXED;
    compile(&compiled, &options, &small_gpt, RANKS);
    exec_peak(&peak, &compiled.plan, &hw);
    drop(&compiled);
    return peak;
}

/* Unsharded parameters and gradients are fullest when autograd has put the flat gradient of a block
 * together and has not let go of its tensors: FULL_SHARD then has the root, which was not resharded
 * after forward, this block and the one that BACKWARD_PRE has gathered ahead; SHARD_GRAD_OP all of
 * them. Low-precision copies of shards are gone by then. */
static void unsharded(void **state)
{
    (void)state;
    int64_t root = rounded(2 * ROOT), block = rounded(2 * BLOCK);
    int64_t grads = BLOCK_GRADS + rounded(2 * BLOCK) + HEAD_GRADS;
    struct exec_peak full = peak_of(FULL_SHARD, REDUCE_PARAM_DTYPE),
                     grad_op = peak_of(SHARD_GRAD_OP, REDUCE_PARAM_DTYPE);
    assert_int_equal((int64_t)full.largest_category[HBM_GATHERED], root + 2 * block + grads);
    assert_int_equal(
        (int64_t)grad_op.largest_category[HBM_GATHERED], root + BLOCKS * block + grads);
}

/* Reduced in FP32, the flat gradient has a copy of twice its size in the post-backward hook, when
 * the block itself has been resharded and its gradients by tensor are gone. */
static void reduced_in_fp32(void **state)
{
    (void)state;
    int64_t root = rounded(2 * ROOT), block = rounded(2 * BLOCK), flat = rounded(2 * BLOCK),
            copy = rounded(4 * BLOCK);
    struct exec_peak peak = peak_of(FULL_SHARD, REDUCE_FP32);
    int64_t joined = root + 2 * block + BLOCK_GRADS + flat, cast = root + block + flat + copy;
    assert_int_equal(
        (int64_t)peak.largest_category[HBM_GATHERED], HEAD_GRADS + (joined > cast ? joined : cast));
}

/* Sharded: FP32 parameters, two moments of them, made in the first step, gradients when all are
 * reduced; and in the step a list of results like the parameters. 4 + 8 + 4 + 4 bytes a parameter
 * over the ranks, each of a unit's tensors rounded. */
static void sharded(void **state)
{
    (void)state;
    const int64_t shards = rounded(4 * ROOT / RANKS) + BLOCKS * rounded(4 * BLOCK / RANKS);
    for (int dtype = REDUCE_PARAM_DTYPE; dtype <= REDUCE_FP32; dtype++) {
        struct exec_peak peak = peak_of(FULL_SHARD, dtype);
        assert_int_equal((int64_t)peak.largest_category[HBM_PARAMETERS], shards);
        assert_int_equal((int64_t)peak.largest_category[HBM_GRADIENTS], shards);
        assert_int_equal((int64_t)peak.largest_category[HBM_OPTIMIZER], 3 * shards);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsharded), cmocka_unit_test(reduced_in_fp32), cmocka_unit_test(sharded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
