/* DDP's buffers: what broadcast_buffers sends. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

/* Once a step, before forward: small_resnet has a norm in its stem (8 channels), three in each of 6 blocks and one in
 * each of 4 shortcuts: 8 + 2 (8 + 8 + 16) + 16, 8 + 8 + 32 + 32, 2 (16 + 16 + 64) + 64, 32 + 32 + 128 + 128 = 744
 * channels, of which mean and variance go in FP32; and 23 counters of 8 bytes. */
static void ddp_broadcasts_statistics(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_DDP;
    options.train.grad_accum = 3;
    for (int gpus = 1; gpus <= 8; gpus += 7) {
        struct compiled compiled;
        compile(&compiled, &options, &small_resnet, gpus);
        assert_int_equal(count(&compiled.plan, COLL_BROADCAST), gpus > 1 ? 2 : 0);
        assert_true(bytes_of(&compiled.plan, COLL_BROADCAST) == (gpus > 1 ? 2 * 4 * 744 + 23 * 8 : 0));
        drop(&compiled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ddp_broadcasts_statistics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
