/* A faster link never makes a collective slower: random NICs, machines, groups and sizes. NCCL's own choices break this
 * (it lays another number of channels for another NIC, and each posts on its own; its estimate of a broadcast leaves
 * slots out): then coll_missed() says so, and with what it names the law holds. */
#include "base/rng.h"
#include "coll/coll.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

static const char *const clusters[] = {"h100-8x400g", "h200-4x400g", "b200-8x400g", "a800-4x100g", "aws-p5-efa"};
enum { CLUSTERS = sizeof clusters / sizeof *clusters, DRAWS = 4000 };
static struct hw systems[CLUSTERS];
static struct arena arena;

static int load(void **state)
{
    (void)state;
    for (int i = 0; i < CLUSTERS; i++) {
        struct diag diag = DIAG_INIT;
        const char *path = arena_printf(&arena, FLOPCAST_SOURCE_DIR "/topologies/clusters/%s.yaml", clusters[i]);
        if (hw_load(&systems[i], path, &arena, &diag) != STATUS_OK)
            return 1;
    }
    return 0;
}

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

/* One in (0, 1), the same for the same seed. */
static double draw(struct rng_stream *rng)
{
    return rng_uniform(rng);
}

/* NICs of 25 to 800 Gb/s, the faster one by up to four times; half of them behind PCIe that is no limit. */
static void faster_nics_are_no_slower(void **state)
{
    (void)state;
    struct rng_stream rng = rng_stream(1, 1, 1);
    int said = 0;
    for (int i = 0; i < DRAWS; i++) {
        struct hw slow = systems[(int)(CLUSTERS * draw(&rng))];
        double near = fmax(1, slow.node.nics.value / slow.node.gpus.value);
        slow.node.nic_bandwidth.value = 25e9 / 8 * exp2(5 * draw(&rng)) / near;
        if (draw(&rng) < 0.5)
            slow.node.pcie_bandwidth.value = 1e12;
        struct hw fast = slow;
        fast.node.nic_bandwidth.value *= exp2(2 * draw(&rng));
        enum coll_kind kind = (enum coll_kind)(COLL_KIND_COUNT * draw(&rng));
        double bytes = floor(exp2(10 + 24 * draw(&rng)));
        int gpus = (int)slow.node.gpus.value, nodes = 2 << (int)(6 * draw(&rng)), stride = draw(&rng) < 0.8 ? 1 : gpus;
        struct coll_shape shape = coll_shape((struct coll_group){0, stride, stride > 1 ? nodes : nodes * gpus}, gpus);
        double slow_s = coll_isolated_s(coll_choose(kind, bytes, shape, &slow, COLL_FREE));
        double fast_s = coll_isolated_s(coll_choose(kind, bytes, shape, &fast, COLL_FREE));
        if (fast_s <= 1.01 * slow_s)
            continue;
        struct coll_missed missed = coll_missed(kind, bytes, shape, &fast);
        said++;
        if (!(missed.isolated_s > 0 && missed.isolated_s <= 1.01 * slow_s))
            fail_msg("%s of %g B on %d x %d: %g s with %g GB/s, %g s with %g; missed %g s", coll_kind_names[kind],
                bytes, shape.nodes, shape.per_node, slow_s, slow.node.nic_bandwidth.value / 1e9, fast_s,
                fast.node.nic_bandwidth.value / 1e9, missed.isolated_s);
    }
    assert_true(said > 0 && said < DRAWS / 4); /* the exception that NCCL makes, and seldom */
    print_message("%d of %d draws are slower with the faster NIC, and said to be\n", said, DRAWS);
}

/* NVLinks and channels likewise; these change no choice of channels of NCCL's but by room for them. */
static void faster_nvlinks_and_channels_are_no_slower(void **state)
{
    (void)state;
    struct rng_stream rng = rng_stream(2, 1, 1);
    for (int i = 0; i < DRAWS; i++) {
        struct hw slow = systems[(int)(CLUSTERS * draw(&rng))];
        slow.cluster.nccl_channels = (struct quantity){.value = coll_channels(true, &slow), .kind = QUANTITY_ASSUMED};
        struct hw fast = slow;
        if (draw(&rng) < 0.5)
            fast.node.gpu_bandwidth.value *= exp2(2 * draw(&rng));
        else
            fast.cluster.nccl_channel_bandwidth.value *= exp2(2 * draw(&rng));
        enum coll_kind kind = (enum coll_kind)(COLL_KIND_COUNT * draw(&rng));
        double bytes = floor(exp2(10 + 24 * draw(&rng)));
        int gpus = (int)slow.node.gpus.value, nodes = 1 << (int)(6 * draw(&rng));
        struct coll_shape shape = coll_shape((struct coll_group){0, 1, nodes * gpus}, gpus);
        double slow_s = coll_isolated_s(coll_choose(kind, bytes, shape, &slow, COLL_FREE));
        double fast_s = coll_isolated_s(coll_choose(kind, bytes, shape, &fast, COLL_FREE));
        double missed_s = coll_missed(kind, bytes, shape, &fast).isolated_s;
        if (fast_s > 1.01 * slow_s && !(missed_s > 0 && missed_s <= 1.01 * slow_s))
            fail_msg("%s of %g B on %d nodes: %g s, and %g s with faster links", coll_kind_names[kind], bytes,
                shape.nodes, slow_s, fast_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faster_nics_are_no_slower),
        cmocka_unit_test(faster_nvlinks_and_channels_are_no_slower),
    };
    return cmocka_run_group_tests(tests, load, release);
}
