/* Of every cluster file: a message between two GPUs of a node is no faster than the links that only
 * they have, nor than their all_to_all, which does the same both ways. */
#include "base/rng.h"
#include "coll/coll.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "../hw/clusters.h"
#include "../near.h"

static double seconds(
    const struct hw *hw, enum coll_kind kind, double bytes, struct coll_cost *cost)
{
    static const struct coll_group pair = {0, 1, 2};
    struct hw bridge;
    *cost = coll_choose(kind, bytes, coll_shape(pair, hw_gpus_per_node(hw)),
        coll_hw_of(&bridge, pair, hw), COLL_FREE);
    return coll_isolated_s(*cost);
}

/* Blocks that copy what an all_to_all has for the rank itself may bound it; then it says so. */
static void is_no_faster_than_its_pair(const char *path, struct hw *hw)
{
    static const double noise = 0.02;
    struct rng_stream rng = rng_stream(7, 1, 1);
    for (int i = 0; i < 50 && hw->node.gpus.value >= 2; i++) {
        double bytes = floor(exp2(10 + 24 * rng_uniform(&rng))),
               links_Bps = coll_pair_Bps(hw, 0, 1);
        struct coll_cost message, exchange;
        double message_s = seconds(hw, COLL_SEND_RECV, bytes, &message);
        double exchange_s = seconds(hw, COLL_ALL_TO_ALL, 2 * bytes, &exchange);
        bool links = coll_bound(&exchange) != COLL_BOUND_CHANNELS;
        links_Bps = links_Bps > 0 ? links_Bps : hw->node.gpu_bandwidth.value;
        if (bytes / message_s > links_Bps || (links && message_s < (1 - noise) * exchange_s))
            fail_msg("%s: %g B take %g s, both ways %g s, over %g B/s", path, bytes, message_s,
                exchange_s, links_Bps);
    }
}

static void a_message_is_no_faster_than_its_pair(void **state)
{
    (void)state;
    each_cluster(is_no_faster_than_its_pair);
}

/* Two of 4 A100 with four links of 25 GB/s between each two reach about 72 GB/s
 * (NVIDIA/nccl-tests#331). */
static void as_measured_on_four_a100(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    struct coll_cost cost;
    assert_int_equal(hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/perlmutter-a100.yaml",
                         &arena, &diag),
        STATUS_OK);
    double bytes = 0x1p30;
    assert_near(bytes / seconds(&hw, COLL_SEND_RECV, bytes, &cost), 72e9, 0.07 * 72e9);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_no_faster_than_its_pair),
        cmocka_unit_test(as_measured_on_four_a100),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
