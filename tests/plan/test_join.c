/* Plans of two kinds of GPU as one. */
#include "plan/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

enum { RANKS = 16, FIRST_OF_SECOND = 12 };

/* A step of a kernel of these bytes, a collective among all, and one of these bytes among pairs. */
static struct plan plan_of(double kernel_bytes, double pair_bytes, double flop)
{
    struct plan plan = {0};
    struct plan_builder builder;
    plan_begin(&builder, &plan, RANKS);
    int world = plan_group(&builder, "world", RANKS, 1), pair = plan_group(&builder, "pair", 2, 1);
    plan_kernel(&builder, STREAM_COMPUTE, "kernel", kernel_stream(KERNEL_COPY, kernel_bytes, kernel_bytes, 0), 0);
    plan_collective(&builder, STREAM_COMM, "all", COLL_ALL_REDUCE, 1e6, world, 0);
    plan_collective(&builder, STREAM_REPLICATE, "pairs", COLL_ALL_REDUCE, pair_bytes, pair, 0);
    plan.programs[0].model_flop = plan.programs[0].hardware_flop = flop;
    plan.tokens = 1000 * flop;
    plan.samples = flop;
    plan_end(&builder);
    return plan;
}

static void holds(const struct plan *plan)
{
    char why[512] = "";
    if (!plan_check(plan, why, sizeof why))
        fail_msg("%s", why);
}

static const struct plan_op *op_of(const struct plan *plan, int program, int op)
{
    return &plan->programs[program].ops.at[op];
}

static void ranks_run_the_program_of_their_kind(void **state)
{
    (void)state;
    struct plan plan = plan_of(1e6, 2e6, 8), second = plan_of(3e6, 4e6, 4);
    plan_join(&plan, &second, FIRST_OF_SECOND);
    holds(&plan);
    assert_int_equal(plan.n_programs, 2);
    assert_int_equal(plan_program_of(&plan, FIRST_OF_SECOND - 1), 0);
    assert_int_equal(plan_program_of(&plan, FIRST_OF_SECOND), 1);
    assert_int_equal(plan_first_rank(&plan, 1), FIRST_OF_SECOND);
    assert_int_equal(plan_program_ranks(&plan, 0), 12);
    assert_int_equal(plan_program_ranks(&plan, 1), 4);
    /* means over ranks: (12 x 8 + 4 x 4) / 16 = 7 */
    assert_true(fabs(plan_model_flop(&plan, ATTENTION_FLOP_FULL) - 7) < 1e-12);
    assert_true(fabs(plan_hardware_flop(&plan, ATTENTION_FLOP_CAUSAL) - 7) < 1e-12);
    assert_true(fabs(plan.samples - 7) < 1e-12 && fabs(plan.tokens - 7000) < 1e-9);
    plan_release(&plan);
}

/* A collective of both kinds is one; one inside a kind has the bytes of that kind; kernels are each kind's. */
static void what_both_run_is_one(void **state)
{
    (void)state;
    bool all;
    struct plan plan = plan_of(1e6, 2e6, 8), second = plan_of(3e6, 4e6, 4);
    plan_join(&plan, &second, FIRST_OF_SECOND);
    assert_int_equal(op_of(&plan, 0, 1)->index, op_of(&plan, 1, 1)->index);
    assert_true(plan.collectives.at[op_of(&plan, 0, 2)->index].bytes == 2e6);
    assert_true(plan.collectives.at[op_of(&plan, 1, 2)->index].bytes == 4e6);
    assert_int_equal(plan.second_kernels, 1);
    assert_int_equal(op_of(&plan, 1, 0)->index, 1);
    assert_true(plan.kernels.at[1].read_bytes == 3 * plan.kernels.at[0].read_bytes);
    assert_true(plan_group_meets_kinds(&plan, 0, &all) && all);
    assert_false(plan_group_meets_kinds(&plan, 1, &all));
    plan_release(&plan);
}

/* Of pairs of ranks, the sixth (10, 11) ends the first kind: with 11 of the first it is of both kinds, and its
 * collectives would have to be the same. */
static void what_does_not_meet_is_found(void **state)
{
    (void)state;
    bool all;
    char why[512] = "";
    struct plan plan = plan_of(1e6, 2e6, 8), second = plan_of(3e6, 4e6, 4);
    plan_join(&plan, &second, FIRST_OF_SECOND - 1);
    assert_true(plan_group_meets_kinds(&plan, 1, &all));
    assert_false(all);
    assert_false(plan_check(&plan, why, sizeof why));
    assert_string_equal(why, "op 2 (pairs) of program 0, all_reduce of 2000000 bytes, meets op 2 (pairs) of program 1, "
                             "all_reduce of 4000000");
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_run_the_program_of_their_kind),
        cmocka_unit_test(what_both_run_is_one),
        cmocka_unit_test(what_does_not_meet_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
