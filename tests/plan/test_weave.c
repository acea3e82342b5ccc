/* Two passes in turns: the order in which their ops are launched, what they wait for then, and
 * whose they are. */
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
    int group, queue;
};

static int kernel(struct fixture *f, const char *name)
{
    return plan_kernel(
        &f->builder, STREAM_COMPUTE, name, kernel_stream(KERNEL_ELEMENTWISE, 1e6, 1e6, 0), 0);
}

/* Of what is computed so far; the next kernel needs it. */
static int exchange(struct fixture *f, const char *name)
{
    f->builder.serves = PARALLEL_EXPERT;
    plan_stream_wait_stream(&f->builder, f->queue, STREAM_COMPUTE);
    int op = plan_collective(&f->builder, f->queue, name, COLL_ALL_TO_ALL, 1e6, f->group, 0);
    f->builder.serves = PARALLEL_DATA;
    plan_stream_wait(&f->builder, STREAM_COMPUTE, op);
    return op;
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){0};
    plan_begin(&f->builder, &f->plan, 8);
    f->group = plan_group(&f->builder, "ep", 8, 1);
    f->queue = plan_queue(&f->builder, "ep", QUEUE_COMM);
}

/* A block forward: attention, the host waits for counts, tokens go to their experts and come back.
 */
static void block_forward(struct fixture *f)
{
    int a = kernel(f, "F.attention");
    plan_host_wait(&f->builder, "F.counts", a, 0);
    exchange(f, "F.dispatch");
    kernel(f, "F.experts");
    exchange(f, "F.combine");
}

static void block_backward(struct fixture *f)
{
    exchange(f, "B.combine");
    kernel(f, "B.experts");
    exchange(f, "B.dispatch");
    kernel(f, "B.attention");
}

static const char *name_of(const struct fixture *f, int op)
{
    return f->plan.programs[0].ops.at[op].name;
}

static int find(const struct fixture *f, const char *name)
{
    int i = 0;
    while (i < f->plan.programs[0].ops.n && strcmp(name_of(f, i), name) != 0)
        i++;
    return i;
}

/* The order of Megatron-LM's model_chunk_schedule_plan.py. */
static void blocks_take_turns(void **state)
{
    (void)state;
    static const char *const wanted[] = {"before", "B.loss", "B.combine", "F.attention",
        "B.experts", "F.counts", "F.dispatch", "B.dispatch", "F.experts", "B.attention",
        "F.combine", "F.head", "behind"};
    struct fixture f;
    struct plan_pair pair;
    begin(&f);
    int before = kernel(&f, "before");
    plan_begin_cell(&f.builder, "forward", 1, 0);
    pair.first = find(&f, "none");
    block_forward(&f);
    int head = kernel(&f, "F.head");
    plan_begin_cell(&f.builder, "backward", 0, 0);
    pair.second = find(&f, "none");
    plan_host_wait(&f.builder, "B.loss", head, 0); /* what the compute stream has so far */
    block_backward(&f);
    pair.end = find(&f, "none");
    plan_begin_cell(&f.builder, NULL, 0, 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, PLAN_PREVIOUS_STEP + head);
    int behind = kernel(&f, "behind");
    plan_weave(&f.builder, &pair, 1);
    plan_end(&f.builder);
    const struct plan_program *program = &f.plan.programs[0];
    char why[256];
    if (!plan_check(&f.plan, why, sizeof why))
        fail_msg("%s", why);
    assert_int_equal(program->ops.n, sizeof wanted / sizeof *wanted);
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        assert_string_equal(name_of(&f, i), wanted[i]);
        struct plan_cell cell = plan_cell_of(program, i);
        bool forward = wanted[i][0] == 'F', of_pair = forward || wanted[i][0] == 'B';
        assert_true(of_pair == (cell.pass != NULL));
        if (of_pair)
            assert_int_equal(cell.micro_batch, forward ? 1 : 0);
        for (int w = 0; w < op->n_waits && i != behind; w++)
            assert_true(program->waits.at[op->first_wait + w] < i);
    }
    const struct plan_op *loss = &program->ops.at[find(&f, "B.loss")];
    assert_int_equal(program->waits.at[loss->first_wait],
        before); /* nothing of the first pass comes before it now */
    assert_int_equal(program->waits.at[program->ops.at[behind].first_wait],
        PLAN_PREVIOUS_STEP + find(&f, "F.head"));
    plan_release(&f.plan);
}

/* A pass of more blocks goes on alone; each kernel still waits for its own exchange. */
static void the_longer_pass_goes_on(void **state)
{
    (void)state;
    struct fixture f;
    struct plan_pair pair;
    begin(&f);
    kernel(&f, "before");
    pair.first = find(&f, "none");
    block_forward(&f);
    kernel(&f, "F.head");
    pair.second = find(&f, "none");
    for (int b = 0; b < 3; b++)
        block_backward(&f);
    pair.end = find(&f, "none");
    plan_weave(&f.builder, &pair, 1);
    plan_end(&f.builder);
    const struct plan_program *program = &f.plan.programs[0];
    int exchanges = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        bool needs = op->kind == OP_KERNEL && op->n_waits > 0;
        exchanges += op->kind == OP_COLLECTIVE;
        if (!needs)
            continue;
        const char *exchanged = name_of(&f, program->waits.at[op->first_wait]);
        assert_int_equal(exchanged[0], op->name[0]);
        assert_int_equal(strcmp(op->name + 2, "experts") == 0,
            strcmp(exchanged, op->name[0] == 'F' ? "F.dispatch" : "B.combine") == 0);
    }
    assert_int_equal(exchanges, 2 + 3 * 2);
    assert_string_equal(name_of(&f, program->ops.n - 1), "B.attention");
    plan_release(&f.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_take_turns),
        cmocka_unit_test(the_longer_pass_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
