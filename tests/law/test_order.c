/* What waits for what, in the plans of every strategy. An op comes after those before it in its
 * queue, those that it waits for, and those that the host had waited for when it issued the op.
 * Whatever the job:
 *  - gradients are made before they are reduced: a reduction over the data ranks comes after the
 *    last kernel of
 * backward that was issued before it, by way of the copies, casts and divisions of side streams;
 *  - the optimizer's first kernel comes after all of them;
 *  - somebody reads what arrives: a kernel of this step or of the next comes after each collective
 *    and receive.
 * Not asked of what is stepped in backward or on the host. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "draws.h"
#include "layouts.h"

#include <string.h>

enum { QUEUES = 16 };

/* The last op of each queue that is over before an op starts; op + n: of the second step of two. */
struct clock {
    int32_t at[QUEUES];
};

struct order {
    const struct plan *plan;
    const struct plan_program *program;
    struct clock *clocks; /* of the ops of two steps */
};

static void merge(struct clock *into, const struct clock *from)
{
    for (int q = 0; q < QUEUES; q++)
        into->at[q] = from->at[q] > into->at[q] ? from->at[q] : into->at[q];
}

static void after_waited(
    const struct order *order, struct clock *clock, int step, const struct plan_op *op)
{
    int n = order->program->ops.n;
    for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
        int32_t waited = order->program->waits.at[w];
        int of_step = step - (waited & PLAN_PREVIOUS_STEP ? 1 : 0),
            i = (waited & ~PLAN_PREVIOUS_STEP) + of_step * n;
        if (of_step < 0)
            continue;
        struct clock over = order->clocks[i];
        over.at[order->program->ops.at[i % n].stream] = i;
        merge(clock, &over);
    }
}

/* The clocks of two steps. */
static void find_order(
    struct order *order, const struct plan *plan, const struct plan_program *program)
{
    int n = program->ops.n;
    struct clock none, host, queues[QUEUES];
    memset(&none, -1, sizeof none);
    *order = (struct order){plan, program, xcalloc(2 * (size_t)n, sizeof *order->clocks)};
    assert_true(plan->queues.n <= QUEUES);
    host = none;
    for (int q = 0; q < QUEUES; q++)
        queues[q] = none;
    for (int i = 0; i < 2 * n; i++) {
        const struct plan_op *op = &program->ops.at[i % n];
        struct clock *clock = &order->clocks[i];
        *clock = host;
        if (op->position >= 0)
            merge(clock, &queues[op->stream]);
        after_waited(order, clock, i / n, op);
        if (op->kind == OP_HOST_WAIT)
            host = *clock;
        if (op->position >= 0) {
            queues[op->stream] = *clock;
            queues[op->stream].at[op->stream] = i;
        }
    }
}

static bool comes_after(const struct order *order, int op, int earlier)
{
    return order->clocks[op].at[order->program->ops.at[earlier % order->program->ops.n].stream] >=
           earlier;
}

static bool is_reduction(const struct plan *plan, const struct plan_op *op)
{
    if (op->kind != OP_COLLECTIVE || op->phase != PHASE_BACKWARD)
        return false;
    const struct plan_collective *collective = &plan->collectives.at[op->index];
    return collective->serves == PARALLEL_DATA && collective->bytes > 1000 &&
           (collective->kind == COLL_ALL_REDUCE || collective->kind == COLL_REDUCE_SCATTER ||
               collective->kind == COLL_REDUCE);
}

static void must(
    const struct order *order, const char *job, int number, int op, int earlier, const char *law)
{
    const struct plan_op *ops = order->program->ops.at;
    if (!comes_after(order, op, earlier))
        fail_msg("%s %d: %s (op %d) does not come after %s (op %d): %s", job, number,
            ops[op % order->program->ops.n].name, op, ops[earlier].name, earlier, law);
}

static void check_program(const struct plan *plan, const struct plan_program *program,
    const struct strategy_options *options, int number)
{
    struct order order;
    const char *job = strategy_kind_names[options->kind];
    int n = program->ops.n, made = -1, step = -1, compute = -1;
    find_order(&order, plan, program);
    for (int i = 0; i < n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->stream == STREAM_COMPUTE && op->kind == OP_KERNEL) {
            made = op->phase == PHASE_BACKWARD ? i : made;
            step = op->phase == PHASE_OPTIMIZER && step < 0 ? i : step;
            compute = i;
        }
        bool side =
            op->kind == OP_KERNEL && op->stream == STREAM_POST && op->phase == PHASE_BACKWARD;
        if ((side || is_reduction(plan, op)) && made >= 0)
            must(&order, job, number, i, made, "made");
    }
    for (int i = 0; i < n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (is_reduction(plan, op) && step > i)
            must(&order, job, number, step, i, "reduced");
        if (plan_op_is_comm(op) && op->kind != OP_SEND && step >= 0)
            must(&order, job, number, compute + n, i, "read");
    }
    free(order.clocks);
}

static void check(const struct plan *plan, const struct strategy_options *options, int number)
{
    for (int p = 0; p < plan->n_programs; p++)
        check_program(plan, &plan->programs[p], options, number);
}

static void drawn_jobs_wait_for_what_they_read(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw;
    load_cluster(&hw, "h100-8x400g", &arena);
    int taken = 0, cases = law_draws(1500);
    for (int i = 0; i < cases; i++) {
        struct arena scratch = ARENA_INIT;
        struct drawn drawn = draw(i);
        struct plan plan;
        if (compile_drawn(&plan, &drawn, &hw, &scratch)) {
            check(&plan, &drawn.options, i);
            taken++;
        }
        plan_release(&plan);
        arena_release(&scratch);
    }
    assert_true(taken > cases / 2);
    arena_release(&arena);
}

static void layouts_wait_for_what_they_read(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model_shape shape = small_llama;
    struct model model;
    struct hw hw;
    load_cluster(&hw, "h100-8x400g", &arena);
    shape.n_layers = 4;
    model_build(&model, &shape, &arena);
    for (int k = 0; k < LAYOUT_KINDS; k++) {
        int taken = 0;
        for (int i = 0; i < LAYOUTS; i++) {
            struct arena scratch = ARENA_INIT;
            struct strategy_options options = layout(layout_kinds[k], i);
            struct diag diag = DIAG_INIT;
            struct plan plan = {0};
            if (check_and_compile(&plan, &options, &model, &hw, 8, &scratch, &diag) == STATUS_OK) {
                check(&plan, &options, i);
                taken++;
            }
            plan_release(&plan);
            arena_release(&scratch);
        }
        assert_true(taken > LAYOUTS / 4);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_jobs_wait_for_what_they_read),
        cmocka_unit_test(layouts_wait_for_what_they_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
