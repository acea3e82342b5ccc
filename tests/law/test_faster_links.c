/* Laws of collectives, without an exception: faster NICs, NVLinks and channels are no slower, and
 * more ranks of the same message are no faster. Where NCCL's own choice breaks them, the model does
 * not follow it (coll/coll.h). Every cluster file, every kind. FLOPCAST_LAW_DRAWS=2000 in the
 * environment: that many points of each instead of DRAWS. */
#include "base/rng.h"
#include "coll/coll.h"
#include "draws.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <math.h>
#include <stdlib.h>

enum { DRAWS = 400, MOST_CLUSTERS = 64 };
static const double TOLERANCE = 1.005;
static struct hw systems[MOST_CLUSTERS];
static int clusters;
static struct arena arena;

static int load(void **state)
{
    (void)state;
    glob_t paths;
    if (glob(FLOPCAST_SOURCE_DIR "/topologies/clusters/*.yaml", 0, NULL, &paths) != 0)
        return 1;
    for (size_t i = 0; i < paths.gl_pathc && clusters < MOST_CLUSTERS; i++) {
        struct diag diag = DIAG_INIT;
        if (hw_load(&systems[clusters++], paths.gl_pathv[i], &arena, &diag) != STATUS_OK)
            return 1;
    }
    globfree(&paths);
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

struct message {
    const struct hw *hw;
    enum coll_kind kind;
    double bytes;
    struct coll_shape shape;
};

/* 1 KiB to 16 GiB on 2 to 128 nodes of a cluster, whole or one GPU of each. */
static struct message draw_message(struct rng_stream *rng)
{
    struct message m = {.hw = &systems[(int)(clusters * draw(rng))]};
    m.kind = (enum coll_kind)(COLL_KIND_COUNT * draw(rng));
    m.bytes = floor(exp2(10 + 24 * draw(rng)));
    int gpus = (int)m.hw->node.gpus.value, nodes = 2 << (int)(7 * draw(rng)),
        stride = draw(rng) < 0.8 ? 1 : gpus;
    m.shape = coll_shape((struct coll_group){0, stride, stride > 1 ? nodes : nodes * gpus}, gpus);
    return m;
}

static double isolated_s(const struct message *m, const struct hw *hw)
{
    return coll_isolated_s(coll_choose(m->kind, m->bytes, m->shape, hw, COLL_FREE));
}

static void check(const struct message *m, const char *what, double slow, double fast,
    double slow_s, double fast_s)
{
    if (!(fast_s <= TOLERANCE * slow_s))
        fail_msg("%s: %s of %g B on %d x %d: %g s with %s %g, %g s with %g", m->hw->cluster.name,
            coll_kind_names[m->kind], m->bytes, m->shape.nodes, m->shape.per_node, slow_s, what,
            slow, fast_s, fast);
}

/* NICs of 25 to 800 Gb/s, the faster one by up to four times; half of them behind PCIe that is no
 * limit. */
static void faster_nics_are_no_slower(void **state)
{
    (void)state;
    struct rng_stream rng = rng_stream(1, 1, 1);
    for (int i = 0; i < law_draws(DRAWS); i++) {
        struct message m = draw_message(&rng);
        struct hw slow = *m.hw;
        double near = fmax(1, slow.node.nics.value / slow.node.gpus.value);
        slow.node.nic_bandwidth.value = 25e9 / 8 * exp2(5 * draw(&rng)) / near;
        if (draw(&rng) < 0.5)
            slow.node.pcie_bandwidth.value = 1e12;
        struct hw fast = slow;
        fast.node.nic_bandwidth.value *= exp2(2 * draw(&rng));
        check(&m, "NICs of B/s", slow.node.nic_bandwidth.value, fast.node.nic_bandwidth.value,
            isolated_s(&m, &slow), isolated_s(&m, &fast));
    }
}

/* In steps of 25 Gb/s a GPU, each beside the one before. */
static void nics_step_by_step(void **state)
{
    (void)state;
    static const double step_Bps = 25e9 / 8;
    struct rng_stream rng = rng_stream(3, 1, 1);
    for (int i = 0; i < law_draws(DRAWS); i++) {
        struct message m = draw_message(&rng);
        struct hw slow = *m.hw;
        double near = fmax(1, slow.node.nics.value / slow.node.gpus.value),
               steps = 1 + floor(31 * draw(&rng));
        slow.node.nic_bandwidth.value = steps * step_Bps / near;
        struct hw fast = slow;
        fast.node.nic_bandwidth.value = (steps + 1) * step_Bps / near;
        check(&m, "NICs of B/s", slow.node.nic_bandwidth.value, fast.node.nic_bandwidth.value,
            isolated_s(&m, &slow), isolated_s(&m, &fast));
    }
}

/* NVLinks and channels likewise, with the channels that are laid. */
static void faster_nvlinks_and_channels_are_no_slower(void **state)
{
    (void)state;
    struct rng_stream rng = rng_stream(2, 1, 1);
    for (int i = 0; i < law_draws(DRAWS); i++) {
        struct message m = draw_message(&rng);
        struct hw slow = *m.hw;
        slow.cluster.nccl_channels =
            (struct quantity){.value = coll_channels(true, &slow), .kind = QUANTITY_ASSUMED};
        struct hw fast = slow;
        double by = exp2(2 * draw(&rng));
        if (draw(&rng) < 0.5)
            fast.node.gpu_bandwidth.value *= by;
        else
            fast.cluster.nccl_channel_bandwidth.value *= by;
        check(&m, "links times", 1, by, isolated_s(&m, &slow), isolated_s(&m, &fast));
    }
}

/* The same message on twice the nodes, from one on. Of send_recv and copies each has its own peer.
 */
static void more_ranks_are_no_faster(void **state)
{
    (void)state;
    struct rng_stream rng = rng_stream(4, 1, 1);
    for (int i = 0; i < law_draws(DRAWS); i++) {
        struct message more = draw_message(&rng);
        if (more.kind >= COLL_SEND_RECV)
            continue;
        struct message few = more;
        if (more.shape.per_node > 1 && draw(&rng) < 0.3) /* from one node to two */
            few.shape.nodes = 1;
        more.shape.nodes = 2 * few.shape.nodes;
        few.shape.ranks = few.shape.nodes * few.shape.per_node;
        more.shape.ranks = 2 * few.shape.ranks;
        check(&more, "ranks", more.shape.ranks, few.shape.ranks, isolated_s(&more, more.hw),
            isolated_s(&few, few.hw));
    }
}

/* What used to break them: 1 GiB on 64 p5 GPUs took 3.42 ms with 90 Gb/s and 5.25 with 100, 128 MiB
 * 0.95 ms on 16 and 0.51 on 32; 16 MiB on 16 H100 82 % longer with 75 Gb/s than with 50. And an
 * exception that stays out of the model: NCCL's own choice does so. */
static void known_breaches(void **state)
{
    (void)state;
    struct hw p5 = {0}, h100 = {0};
    struct diag diag = DIAG_INIT;
    const char *folder = FLOPCAST_SOURCE_DIR "/topologies/clusters";
    assert_int_equal(
        hw_load(&p5, arena_printf(&arena, "%s/aws-p5-efa.yaml", folder), &arena, &diag), STATUS_OK);
    assert_int_equal(
        hw_load(&h100, arena_printf(&arena, "%s/h100-8x400g.yaml", folder), &arena, &diag),
        STATUS_OK);
    struct hw p5_90 = p5, h100_50 = h100, h100_75 = h100;
    p5_90.node.nic_bandwidth.value = 90e9 / 8;
    h100_50.node.nic_bandwidth.value = 50e9 / 8;
    h100_75.node.nic_bandwidth.value = 75e9 / 8;
    struct message m = {&p5, COLL_ALL_GATHER, 0x1p30, {64, 8, 8}};
    assert_true(isolated_s(&m, &p5) <= isolated_s(&m, &p5_90));
    struct message few = {&p5, COLL_ALL_GATHER, 0x1p27, {16, 2, 8}},
                   more = {&p5, COLL_ALL_GATHER, 0x1p27, {32, 4, 8}};
    assert_true(isolated_s(&few, &p5) <= isolated_s(&more, &p5));
    m = (struct message){&h100, COLL_ALL_REDUCE, 0x1p24, {16, 2, 8}};
    assert_true(isolated_s(&m, &h100_75) <= isolated_s(&m, &h100_50));
    double slow_s =
        coll_isolated_s(coll_nccl_choice(m.kind, m.bytes, m.shape, &h100_50, COLL_FREE));
    assert_true(
        coll_isolated_s(coll_nccl_choice(m.kind, m.bytes, m.shape, &h100_75, COLL_FREE)) > slow_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faster_nics_are_no_slower),
        cmocka_unit_test(nics_step_by_step),
        cmocka_unit_test(faster_nvlinks_and_channels_are_no_slower),
        cmocka_unit_test(more_ranks_are_no_faster),
        cmocka_unit_test(known_breaches),
    };
    return cmocka_run_group_tests(tests, load, release);
}
