#include "plan/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

struct fixture {
    struct plan plan;
    struct plan_builder builder;
};

static struct kernel_work byte_work(void)
{
    return kernel_stream(KERNEL_ELEMENTWISE, 1e6, 1e6, 0);
}

static int kernel(struct fixture *fixture, int stream, const char *name)
{
    return plan_kernel(&fixture->builder, stream, name, byte_work(), 1e-6);
}

static void begin(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    plan_begin(&fixture->builder, &fixture->plan, 8);
}

static void end(struct fixture *fixture)
{
    plan_release(&fixture->plan);
}

/* An event on the compute stream behind a wait: what waits for it waits for both. A stream need not
 * wait for itself. */
static void a_stream_waits_for_another_with_its_waits(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    int a = kernel(&f, STREAM_COMPUTE, "a"), b = kernel(&f, STREAM_UNSHARD, "b"),
        c = kernel(&f, STREAM_POST, "c");
    plan_stream_wait(&f.builder, STREAM_COMPUTE, b);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, c);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, PLAN_PREVIOUS_STEP + 0);
    plan_stream_wait_stream(&f.builder, STREAM_POST, STREAM_COMPUTE);
    plan_stream_wait_stream(&f.builder, STREAM_UNSHARD, STREAM_LOADER); /* nothing there */
    int d = kernel(&f, STREAM_POST, "d"), e = kernel(&f, STREAM_UNSHARD, "e"),
        g = kernel(&f, STREAM_COMPUTE, "g");
    plan_end(&f.builder);
    const struct plan_op *ops = f.plan.programs[0].ops.at;
    const plan_wait *waits = f.plan.programs[0].waits.at;
    assert_int_equal(ops[d].n_waits, 3);
    assert_int_equal(waits[ops[d].first_wait], a);
    assert_int_equal(waits[ops[d].first_wait + 1], b);
    assert_int_equal(waits[ops[d].first_wait + 2], PLAN_PREVIOUS_STEP + 0);
    assert_int_equal(ops[e].n_waits, 0);
    assert_int_equal(ops[g].n_waits, 3); /* still its own */
    end(&f);
}

static void ops_take_their_places_and_waits(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    int a = kernel(&f, STREAM_COMPUTE, "a");
    int b = kernel(&f, STREAM_UNSHARD, "b");
    plan_stream_wait(&f.builder, STREAM_COMPUTE, b);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, PLAN_NO_OP);
    int c = kernel(&f, STREAM_COMPUTE, "c");
    int d = kernel(&f, STREAM_COMPUTE, "d");
    plan_host(&f.builder, "host", 0);
    plan_free(&f.builder, plan_alloc(&f.builder, STREAM_COMPUTE, "buffer", 1, HBM_ACTIVATIONS),
        PLAN_NO_OP);
    assert_int_equal(
        plan_last_op(&f.builder, STREAM_COMPUTE), d); /* what runs on no stream does not count */
    assert_int_equal(plan_last_op(&f.builder, STREAM_UNSHARD), b);
    assert_int_equal(plan_last_op(&f.builder, STREAM_COMM), PLAN_NO_OP);
    plan_end(&f.builder);
    const struct plan_op *ops = f.plan.programs[0].ops.at;
    assert_int_equal(ops[a].position, 0);
    assert_int_equal(ops[c].position, 1);
    assert_int_equal(ops[b].position, 0);
    assert_int_equal(ops[c].n_waits, 1);
    assert_int_equal(f.plan.programs[0].waits.at[ops[c].first_wait], b);
    assert_int_equal(ops[d].n_waits, 0); /* a wait is taken once */
    char why[128];
    assert_true(plan_check(&f.plan, why, sizeof why));
    end(&f);
}

static void groups_are_shared_and_a_lone_rank_communicates_with_nobody(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    int world = plan_group(&f.builder, "world", 8, 1);
    assert_int_equal(plan_group(&f.builder, "shard", 8, 1), world);
    int alone = plan_group(&f.builder, "alone", 1, 1);
    assert_int_not_equal(alone, world);
    assert_int_equal(
        plan_collective(&f.builder, STREAM_COMM, "x", COLL_ALL_GATHER, 1, alone, 0), PLAN_NO_OP);
    assert_true(plan_collective(&f.builder, STREAM_COMM, "x", COLL_ALL_GATHER, 1, world, 0) >= 0);
    plan_end(&f.builder);
    end(&f);
}

static void the_same_kernel_twice_stands_once(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    int first = kernel(&f, STREAM_COMPUTE, "a"), again = kernel(&f, STREAM_COMPUTE, "b");
    struct kernel_work other = byte_work();
    other.read_bytes++;
    int third = plan_kernel(&f.builder, STREAM_COMPUTE, "c", other, 0);
    plan_end(&f.builder);
    assert_int_equal(
        f.plan.programs[0].ops.at[again].index, f.plan.programs[0].ops.at[first].index);
    assert_int_not_equal(
        f.plan.programs[0].ops.at[third].index, f.plan.programs[0].ops.at[first].index);
    assert_int_equal(f.plan.kernels.n, 2);
    end(&f);
}

static void refuses(struct fixture *f, const char *words)
{
    char why[256];
    plan_end(&f->builder);
    assert_false(plan_check(&f->plan, why, sizeof why));
    if (!strstr(why, words))
        fail_msg("'%s' does not say '%s'", why, words);
    end(f);
}

static void check_refuses_broken_plans(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f); /* memory that is never given back */
    plan_alloc(&f.builder, STREAM_COMPUTE, "leak", 100, HBM_ACTIVATIONS);
    refuses(&f, "never freed");

    begin(&f); /* given back twice */
    int buffer = plan_alloc(&f.builder, STREAM_COMPUTE, "twice", 100, HBM_ACTIVATIONS);
    plan_free(&f.builder, buffer, PLAN_NO_OP);
    plan_free(&f.builder, buffer, PLAN_NO_OP);
    refuses(&f, "already freed");

    begin(&f); /* what is kept, allocated in the step: no builder makes such an op */
    plan_keep(&f.builder, "weights", 100, HBM_PARAMETERS);
    plan_alloc(&f.builder, STREAM_COMPUTE, "again", 100, HBM_PARAMETERS);
    f.plan.programs[0].ops.at[0].index = f.plan.programs[0].setup.at[0];
    plan_free(&f.builder, f.plan.programs[0].setup.at[0], PLAN_NO_OP);
    refuses(&f, "op 0 allocates buffer again, which is already freed");

    begin(&f); /* a wait that could never end */
    plan_stream_wait(&f.builder, STREAM_COMPUTE, 0);
    kernel(&f, STREAM_COMPUTE, "itself");
    refuses(&f, "does not come before");

    begin(&f); /* a wait for something that is no device op */
    int host = plan_host(&f.builder, "host", 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, host);
    kernel(&f, STREAM_COMPUTE, "waits for the host");
    refuses(&f, "runs on no stream");

    begin(&f); /* 8 ranks in threes */
    plan_group(&f.builder, "odd", 3, 1);
    refuses(&f, "do not divide 8 ranks");

    begin(&f); /* one communicator, two orders */
    int world = plan_group(&f.builder, "world", 8, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 1, world, 0);
    plan_collective(&f.builder, STREAM_REPLICATE, "exchange", COLL_ALL_TO_ALL, 1, world, 0);
    refuses(&f,
        "group world has collectives on two streams: gather on 'comm', exchange on 'replicate'");
}

/* No builder makes these: numbers one past the end, and one below 0, of all that an op points at.
 */
static void check_refuses_what_points_nowhere(void **state)
{
    (void)state;
    for (int c = 0; c < 8; c++) {
        struct fixture f;
        char why[256];
        begin(&f);
        kernel(&f, STREAM_COMPUTE, "kernel");
        plan_stream_wait(&f.builder, STREAM_COMM, 0);
        int world = plan_group(&f.builder, "world", 8, 1);
        plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 1, world, 0);
        plan_free(&f.builder, plan_alloc(&f.builder, STREAM_COMPUTE, "b", 1, HBM_ACTIVATIONS),
            PLAN_NO_OP);
        plan_end(&f.builder);
        assert_true(plan_check(&f.plan, why, sizeof why));
        struct plan_op *ops = f.plan.programs[0].ops.at; /* kernel, gather, alloc, free */
        switch (c) {
        case 0:
            ops[0].stream = STREAM_COUNT;
            break;
        case 1:
            ops[0].index = f.plan.kernels.n;
            break;
        case 2:
            ops[1].index = f.plan.collectives.n;
            break;
        case 3:
            ops[2].index = f.plan.programs[0].buffers.n;
            break;
        case 4:
            ops[3].index = -1;
            break;
        case 5:
            f.plan.collectives.at[0].group = f.plan.groups.n;
            break;
        case 6:
            f.plan.collectives.at[0].group = -1;
            break;
        case 7:
            f.plan.programs[0].waits.at[0] = PLAN_PREVIOUS_STEP + f.plan.programs[0].ops.n;
            break;
        }
        if (plan_check(&f.plan, why, sizeof why))
            fail_msg("case %d is a plan", c);
        end(&f);
    }
}

static void a_wait_may_name_the_step_before(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, PLAN_PREVIOUS_STEP + 1);
    kernel(&f, STREAM_COMPUTE, "first");
    kernel(&f, STREAM_COMPUTE, "last");
    plan_end(&f.builder);
    char why[128];
    assert_true(plan_check(&f.plan, why, sizeof why));
    end(&f);
}

static void the_digest_tells_plans_apart(void **state)
{
    (void)state;
    uint64_t digests[2];
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        begin(&f);
        plan_kernel(
            &f.builder, STREAM_COMPUTE, "k", kernel_stream(KERNEL_COPY, 1e6 + i, 0, 0), 1e-6);
        plan_end(&f.builder);
        digests[i] = plan_digest(&f.plan);
        end(&f);
    }
    assert_true(digests[0] != digests[1]);
}

/* By the axes over which ranks meet; of several the first of data, pipeline, expert, tensor,
 * context. */
static void parallelism_by_axes(void **state)
{
    (void)state;
    const unsigned pp = 1U << AXIS_PP, ep = 1U << AXIS_EP, tp = 1U << AXIS_TP, cp = 1U << AXIS_CP;
    assert_int_equal(plan_parallelism_of(pp), PARALLEL_PIPELINE);
    assert_int_equal(plan_parallelism_of(ep), PARALLEL_EXPERT);
    assert_int_equal(plan_parallelism_of(tp), PARALLEL_TENSOR);
    assert_int_equal(plan_parallelism_of(cp), PARALLEL_CONTEXT);
    assert_int_equal(plan_parallelism_of(tp | cp), PARALLEL_TENSOR);
    assert_int_equal(plan_parallelism_of(ep | tp), PARALLEL_EXPERT);
    assert_int_equal(plan_parallelism_of(pp | ep | tp | cp), PARALLEL_PIPELINE);
    assert_int_equal(plan_parallelism_of(AXES_DP | pp | tp), PARALLEL_DATA);
    assert_int_equal(plan_parallelism_of(0), PARALLEL_DATA);
}

/* Ops 1 and 2 lie in the cell that begins with op 1, those from 3 on in the next, op 0 before all.
 */
static void cells_hold_the_ops_behind_them(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    kernel(&f, STREAM_COMPUTE, "before");
    plan_begin_cell(&f.builder, "forward", 4, 0);
    kernel(&f, STREAM_COMPUTE, "a");
    kernel(&f, STREAM_COMPUTE, "b");
    plan_begin_cell(&f.builder, "backward", 5, 1);
    kernel(&f, STREAM_COMPUTE, "c");
    kernel(&f, STREAM_COMPUTE, "d");
    plan_begin_cell(&f.builder, "forward", 6, 0);
    kernel(&f, STREAM_COMPUTE, "e");
    plan_end(&f.builder);
    static const int micro_batches[] = {-1, 4, 4, 5, 5, 6};
    assert_null(plan_cell_of(f.plan.programs, 0).pass);
    for (int op = 1; op < 6; op++)
        assert_int_equal(plan_cell_of(f.plan.programs, op).micro_batch, micro_batches[op]);
    assert_string_equal(plan_cell_of(f.plan.programs, 4).pass, "backward");
    end(&f);
}

/* What stays from the first step on is an op that no step frees; nothing is none. */
static void what_is_kept_from_here_on(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    plan_keep_from_here(&f.builder, "nothing", 0, HBM_OPTIMIZER);
    plan_keep_from_here(&f.builder, "state", 4096, HBM_OPTIMIZER);
    plan_end(&f.builder);
    const struct plan_program *program = f.plan.programs;
    assert_int_equal(program->ops.n, 1);
    assert_int_equal(program->ops.at[0].kind, OP_KEEP);
    assert_int_equal(program->buffers.at[program->ops.at[0].index].bytes, 4096);
    assert_int_equal(program->setup.n, 0);
    end(&f);
}

/* FLOP of a model are with what causal masks hide or without; those of hardware without what
 * kernels skip or with. */
static void flop_by_how_attention_is_counted(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    kernel(&f, STREAM_COMPUTE, "a");
    plan_end(&f.builder);
    f.plan.programs[0].model_flop = 100;
    f.plan.programs[0].masked_flop = 30;
    f.plan.programs[0].hardware_flop = 200;
    f.plan.programs[0].skipped_flop = 7;
    assert_true(plan_model_flop(&f.plan, ATTENTION_FLOP_CAUSAL) == 70);
    assert_true(plan_model_flop(&f.plan, ATTENTION_FLOP_FULL) == 100);
    assert_true(plan_hardware_flop(&f.plan, ATTENTION_FLOP_CAUSAL) == 200);
    assert_true(plan_hardware_flop(&f.plan, ATTENTION_FLOP_FULL) == 207);
    end(&f);
}

/* A buffer that another queue uses last goes when that op has ended; else it goes by itself. */
static void a_buffer_goes_behind_its_last_use(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    int one = plan_alloc(&f.builder, STREAM_COMPUTE, "one", 512, HBM_BUFFERS);
    int two = plan_alloc(&f.builder, STREAM_COMPUTE, "two", 512, HBM_BUFFERS);
    int use = kernel(&f, STREAM_UNSHARD, "use");
    plan_free(&f.builder, one, use);
    plan_free(&f.builder, two, PLAN_NO_OP);
    plan_end(&f.builder);
    const struct plan_program *program = f.plan.programs;
    const struct plan_op *first = &program->ops.at[use + 1], *second = &program->ops.at[use + 2];
    assert_true(first->kind == OP_FREE && second->kind == OP_FREE);
    assert_int_equal(first->n_waits, 1);
    assert_int_equal(program->waits.at[first->first_wait], use);
    assert_int_equal(second->n_waits, 0);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_take_their_places_and_waits),
        cmocka_unit_test(a_stream_waits_for_another_with_its_waits),
        cmocka_unit_test(groups_are_shared_and_a_lone_rank_communicates_with_nobody),
        cmocka_unit_test(the_same_kernel_twice_stands_once),
        cmocka_unit_test(check_refuses_broken_plans),
        cmocka_unit_test(check_refuses_what_points_nowhere),
        cmocka_unit_test(a_wait_may_name_the_step_before),
        cmocka_unit_test(the_digest_tells_plans_apart),
        cmocka_unit_test(parallelism_by_axes),
        cmocka_unit_test(cells_hold_the_ops_behind_them),
        cmocka_unit_test(what_is_kept_from_here_on),
        cmocka_unit_test(flop_by_how_attention_is_counted),
        cmocka_unit_test(a_buffer_goes_behind_its_last_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
