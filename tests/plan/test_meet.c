/* Plans of several programs: what plan_check() says where they do not meet, and how they are
 * printed. */
#include "plan/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const struct plan_channel NEXT = {AXIS_PP, 1, 0}, PREVIOUS = {AXIS_PP, -1, 0};

struct fixture {
    struct plan plan;
    struct plan_builder builder;
    int recv_queue;
};

/* Stages of two ranks each. */
static void begin(struct fixture *f, int stages)
{
    struct mesh mesh;
    const char *bad;
    const int size[AXIS_COUNT] = {[AXIS_DP_SHARD] = 2, [AXIS_PP] = stages};
    *f = (struct fixture){0};
    assert_true(mesh_build(&mesh, size, mesh_order_default, &bad));
    plan_begin_programs(&f->builder, &f->plan, &mesh, AXIS_PP);
    f->recv_queue = plan_queue(&f->builder, "recv", QUEUE_COMM);
}

static int kernel(struct fixture *f, const char *name)
{
    return plan_kernel(
        &f->builder, STREAM_COMPUTE, name, kernel_stream(KERNEL_COPY, 1e6, 1e6, 0), 0);
}

static int sends(struct fixture *f, const char *name, struct plan_channel channel, double bytes)
{
    return plan_send(&f->builder, STREAM_COMM, name, channel, bytes, 0);
}

static int receives(
    struct fixture *f, int queue, const char *name, struct plan_channel channel, double bytes)
{
    return plan_recv(&f->builder, queue, name, channel, bytes, 0);
}

static void holds(struct fixture *f)
{
    char why[512] = "";
    plan_end(&f->builder);
    if (!plan_check(&f->plan, why, sizeof why))
        fail_msg("%s", why);
    plan_release(&f->plan);
}

static void refused(struct fixture *f, const char *words)
{
    char why[512] = "";
    plan_end(&f->builder);
    assert_false(plan_check(&f->plan, why, sizeof why));
    if (strcmp(why, words) != 0)
        fail_msg("'%s' is not '%s'", why, words);
    plan_release(&f->plan);
}

static void a_send_meets_its_receive(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    sends(&f, "a", NEXT, 100);
    sends(&f, "b", NEXT, 200);
    plan_next_program(&f.builder);
    receives(&f, f.recv_queue, "a", NEXT, 100);
    receives(&f, f.recv_queue, "b", NEXT, 200);
    holds(&f);
}

static void a_send_without_receive_is_named(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    kernel(&f, "kernel");
    sends(&f, "a", NEXT, 100);
    sends(&f, "b", NEXT, 100);
    plan_next_program(&f.builder);
    receives(&f, f.recv_queue, "a", NEXT, 100);
    refused(&f, "op 2 (b) of program 0 is send number 2 there, and program 1 has no counterpart");

    begin(&f, 2); /* stage 1 waits for what stage 0 sends the other way around: with two stages both
                     are its neighbour, but these are two channels */
    sends(&f, "a", PREVIOUS, 100);
    plan_next_program(&f.builder);
    receives(&f, f.recv_queue, "a", NEXT, 100);
    refused(&f, "op 0 (a) of program 0 is send number 1 there, and program 1 has no counterpart");
}

/* The other way around: it is the later program that has one more. */
static void what_only_a_later_program_has_is_named(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    sends(&f, "a", NEXT, 100);
    plan_next_program(&f.builder);
    receives(&f, f.recv_queue, "a", NEXT, 100);
    receives(&f, f.recv_queue, "b", NEXT, 100);
    refused(&f, "op 1 (b) of program 1 is recv number 2 there, and program 0 has no counterpart");

    begin(&f, 2);
    int world = plan_group_of(&f.builder, "world", mesh_group(&f.plan.mesh, AXES_ALL));
    plan_collective(&f.builder, STREAM_COMM, "a", COLL_ALL_REDUCE, 4, world, 0);
    plan_next_program(&f.builder);
    plan_collective(&f.builder, STREAM_COMM, "a", COLL_ALL_REDUCE, 4, world, 0);
    plan_collective(&f.builder, STREAM_COMM, "b", COLL_ALL_REDUCE, 4, world, 0);
    refused(
        &f, "op 1 (b) of program 1 is all_reduce number 2 there, and program 0 has no counterpart");
}

static void a_crossed_order_is_named(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    sends(&f, "a", NEXT, 100);
    sends(&f, "b", NEXT, 200);
    plan_next_program(&f.builder);
    receives(&f, f.recv_queue, "b", NEXT, 200);
    receives(&f, f.recv_queue, "a", NEXT, 100);
    refused(
        &f, "op 0 (a) of program 0, send of 100 bytes, meets op 0 (b) of program 1, recv of 200");
}

/* Two channels, each in its order. */
static void messages_of_two_tags_may_cross(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int queue = plan_queue(&f.builder, "send", QUEUE_COMM),
        again = plan_queue(&f.builder, "recv again", QUEUE_COMM);
    struct plan_channel tagged = NEXT;
    tagged.tag = 1;
    sends(&f, "a", NEXT, 100);
    plan_send(&f.builder, queue, "b", tagged, 200, 0);
    plan_next_program(&f.builder);
    receives(&f, f.recv_queue, "b", tagged, 200);
    receives(&f, again, "a", NEXT, 100);
    assert_int_equal(f.plan.channels.n, 2);
    holds(&f);
}

/* Both first receive, then send, each on one queue: neither receive can end. On two queues they
 * can. */
static void a_cycle_of_messages_is_a_deadlock(void **state)
{
    (void)state;
    for (int queues = 1; queues <= 2; queues++) {
        struct fixture f;
        begin(&f, 2);
        int queue = queues == 1 ? STREAM_COMM : f.recv_queue;
        receives(&f, queue, "gradient", PREVIOUS, 100);
        sends(&f, "activation", NEXT, 100);
        plan_next_program(&f.builder);
        receives(&f, queue, "activation", NEXT, 100);
        sends(&f, "gradient", PREVIOUS, 100);
        if (queues == 2)
            holds(&f);
        else
            refused(&f, "deadlock: these wait for each other: op 0 (gradient) of program 0, op 0 "
                        "(activation) of program 1");
    }
}

/* The host of stage 0 waits for a gradient before it issues the send without which stage 1 has none
 * to give. */
static void the_host_is_part_of_a_cycle(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct fixture f;
        begin(&f, 2);
        int gradient = receives(&f, f.recv_queue, "gradient", PREVIOUS, 100);
        if (late)
            plan_host_wait(&f.builder, "item", gradient, 0);
        sends(&f, "activation", NEXT, 100);
        plan_next_program(&f.builder);
        plan_stream_wait(
            &f.builder, STREAM_COMPUTE, receives(&f, f.recv_queue, "activation", NEXT, 100));
        plan_stream_wait(&f.builder, STREAM_COMM, kernel(&f, "kernel"));
        sends(&f, "gradient", PREVIOUS, 100);
        if (late)
            refused(&f, "deadlock: these wait for each other: op 0 (gradient) of program 0, op 0 "
                        "(activation) of program 1");
        else
            holds(&f);
    }
}

/* Four stages; the first and the last reduce the gradient of the tied embedding. */
static void collectives_of_some_programs_meet(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct fixture f;
        begin(&f, 4);
        int ends = plan_group_of(&f.builder, "embedding", mesh_pair(&f.plan.mesh, AXIS_PP, 0, 3));
        int stage = plan_group_of(&f.builder, "data", mesh_group(&f.plan.mesh, AXES_DP));
        for (int p = 0; p < 4; p++) {
            if (p > 0)
                plan_next_program(&f.builder);
            kernel(&f, "kernel");
            plan_collective(&f.builder, STREAM_COMM, "data", COLL_ALL_REDUCE, 100 + p, stage, 0);
            if (p == 0 || p == 3 || (p == 1 && kind == 1))
                plan_collective(&f.builder, STREAM_REPLICATE, "embedding", COLL_ALL_REDUCE,
                    kind == 2 && p ? 8 : 4, ends, 0);
        }
        if (kind == 0)
            holds(&f);
        else if (kind == 1)
            refused(&f, "op 2 (embedding) of program 1 is a collective of the group embedding, "
                        "which has no rank of it");
        else
            refused(&f, "op 2 (embedding) of program 0, all_reduce of 4 bytes, meets op 2 "
                        "(embedding) of program 3, all_reduce of 8");
    }
}

/* Two groups of the same ranks on one queue, in two orders. */
static void two_orders_of_collectives_are_a_deadlock(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int pair = plan_group_of(&f.builder, "pipeline", mesh_group(&f.plan.mesh, 1U << AXIS_PP));
    int world = plan_group_of(&f.builder, "world", mesh_group(&f.plan.mesh, AXES_ALL));
    for (int p = 0; p < 2; p++) {
        if (p > 0)
            plan_next_program(&f.builder);
        plan_collective(
            &f.builder, STREAM_COMM, "first", COLL_BROADCAST, 4, p == 0 ? pair : world, 0);
        plan_collective(
            &f.builder, STREAM_COMM, "second", COLL_BROADCAST, 4, p == 0 ? world : pair, 0);
    }
    refused(&f, "deadlock: these wait for each other: op 0 (first) of program 0, op 0 (first) of "
                "program 1");
}

/* A ring in which every rank runs the same program: all of them first send, on the queue on which
 * they would receive. */
static void a_ring_of_one_program_needs_two_queues(void **state)
{
    (void)state;
    for (int queues = 1; queues <= 2; queues++) {
        struct fixture f;
        struct mesh mesh;
        const char *bad;
        const int size[AXIS_COUNT] = {[AXIS_CP] = 4};
        assert_true(mesh_build(&mesh, size, mesh_order_default, &bad));
        plan_begin_programs(&f.builder, &f.plan, &mesh, AXIS_PP);
        f.recv_queue = plan_queue(&f.builder, "recv", QUEUE_COMM);
        sends(&f, "kv", (struct plan_channel){AXIS_CP, 1, 0}, 100);
        receives(&f, queues == 1 ? STREAM_COMM : f.recv_queue, "kv",
            (struct plan_channel){AXIS_CP, 1, 0}, 100);
        if (queues == 2)
            holds(&f);
        else
            refused(&f, "deadlock: these wait for each other: op 0 (kv) of program 0");
    }
}

static void one_channel_is_on_one_queue(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    sends(&f, "a", NEXT, 100);
    plan_send(&f.builder, f.recv_queue, "b", NEXT, 100, 0);
    plan_next_program(&f.builder);
    receives(&f, f.recv_queue, "a", NEXT, 100);
    receives(&f, f.recv_queue, "b", NEXT, 100);
    refused(&f, "a channel on pp has sends on two streams: a on 'comm', b on 'recv'");
}

/* Lines of device ops: a send stands beside its receive, and what comes before it on lines above.
 */
static void programs_are_printed_side_by_side(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    plan_stream_wait(&f.builder, STREAM_COMM, kernel(&f, "forward.0"));
    sends(&f, "activation", NEXT, 100);
    plan_next_program(&f.builder);
    plan_stream_wait(
        &f.builder, STREAM_COMPUTE, receives(&f, f.recv_queue, "activation", NEXT, 100));
    kernel(&f, "forward.1");
    plan_end(&f.builder);
    struct hw hw = {0};
    hw.gpu.sms.value = hw.gpu.memory_sms.value = 100;
    hw.gpu.hbm_bandwidth.value = 1e12;
    hw.gpu.hbm_efficiency.value = hw.gpu.vector_flops.value = 1;
    char text[4096] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    plan_explain(out, &f.plan, &hw);
    fclose(out);
    static const char *const lines[] = {
        "plan of one step of 4 ranks in 2 programs: 4 ops",
        "program 1, for each of 2 ranks: 2 ops",
        "send        100 B to the rank at +1 on pp",
        "recv        100 B from the rank at -1 on pp",
        "\n    0 compute  forward.0           | \n",
        "\n    1 comm     activation          |     0 recv     activation\n",
        "\n                                   |     1 compute  forward.1\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(text, lines[i]))
            fail_msg("no '%s' in:\n%s", lines[i], text);
    plan_release(&f.plan);
}

/* 24 ranks, two stages of 12, of which every third pair begins anew: a, a, b, b, c, c, a ...
 * Programs of a stage come one after the other, and messages go from each to the one in its place
 * in the next stage. */
static void programs_by_two_axes(void **state)
{
    (void)state;
    enum { STAGE = 12, WIDTH = 2, PLACES = 3 };
    struct fixture f = {0};
    struct mesh mesh;
    const char *bad;
    const int size[AXIS_COUNT] = {[AXIS_TP] = WIDTH,
        [AXIS_CP] = PLACES,
        [AXIS_DP_SHARD] = STAGE / WIDTH / PLACES,
        [AXIS_PP] = 2};
    assert_true(mesh_build(&mesh, size, "tp-cp-dp_shard-pp", &bad));
    plan_begin_programs_by_two(&f.builder, &f.plan, &mesh, AXIS_PP, AXIS_CP);
    f.recv_queue = plan_queue(&f.builder, "recv", QUEUE_COMM);
    assert_int_equal(f.plan.n_programs, 2 * PLACES);
    for (int r = 0; r < 2 * STAGE; r++) {
        assert_int_equal(plan_program_of(&f.plan, r), r / STAGE * PLACES + r / WIDTH % PLACES);
        assert_int_equal(plan_stage_of(&f.plan, r), r / STAGE);
    }
    for (int p = 0; p < 2 * PLACES; p++) {
        if (p > 0)
            plan_next_program(&f.builder);
        assert_int_equal(plan_first_rank(&f.plan, p), p / PLACES * STAGE + p % PLACES * WIDTH);
        assert_int_equal(plan_program_ranks(&f.plan), STAGE / PLACES);
        if (p < PLACES)
            sends(&f, "a", NEXT, 100 + p);
        else
            receives(&f, f.recv_queue, "a", NEXT, 100 + p % PLACES);
    }
    holds(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_send_meets_its_receive),
        cmocka_unit_test(a_send_without_receive_is_named),
        cmocka_unit_test(what_only_a_later_program_has_is_named),
        cmocka_unit_test(a_crossed_order_is_named),
        cmocka_unit_test(messages_of_two_tags_may_cross),
        cmocka_unit_test(a_cycle_of_messages_is_a_deadlock),
        cmocka_unit_test(the_host_is_part_of_a_cycle),
        cmocka_unit_test(collectives_of_some_programs_meet),
        cmocka_unit_test(two_orders_of_collectives_are_a_deadlock),
        cmocka_unit_test(a_ring_of_one_program_needs_two_queues),
        cmocka_unit_test(one_channel_is_on_one_queue),
        cmocka_unit_test(programs_are_printed_side_by_side),
        cmocka_unit_test(programs_by_two_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
