/* How a step grows, whatever the job. Bytes, FLOP and buffers of each op are affine in the samples
 * of a micro-batch (16, 32 and 48, as FP8 takes multiples of 16 rows). The sums over a step of what
 * kernels read, write and compute and collectives carry, and what is kept, are affine in the number
 * of blocks; InternEvo's are not, as it gives whole tensors to ranks. */
#include "strategy/strategy.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "layouts.h"

#include <string.h>

enum { CASES = 600, SIZES = 3, ROUNDED = 2, ROW = 3 * 4 * 64, PADDED = 1024 };

/* Values at sizes in equal distances. */
static bool is_affine(const double *at, double within)
{
    return fabs(at[0] - 2 * at[1] + at[2]) <= within + 1e-12 * fabs(at[2]);
}

static void release(struct plan *plans)
{
    for (int s = 0; s < SIZES; s++)
        plan_release(&plans[s]);
}

static double of_kernel(const struct plan *plan, const struct plan_op *op, int what)
{
    const struct kernel_work *work = &plan->kernels.at[op->index];
    return what == 0 ? work->read_bytes : what == 1 ? work->write_bytes : work->flop;
}

static double of_op(const struct plan *plan, const struct plan_program *program, int i, int what)
{
    const struct plan_op *op = &program->ops.at[i];
    switch ((enum op_kind)op->kind) {
    case OP_KERNEL:
        return of_kernel(plan, op, what);
    case OP_COLLECTIVE:
        return plan->collectives.at[op->index].bytes;
    case OP_SEND:
    case OP_RECV:
        return plan->messages.at[op->index].bytes;
    case OP_ALLOC:
    case OP_FREE:
    case OP_KEEP:
        return (double)program->buffers.at[op->index].bytes;
    case OP_HOST:
    case OP_HOST_WAIT:
        break;
    }
    return 0;
}

static bool ends_so(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* A copy writes as many elements as it reads, in the same number format, half or twice (FP64: four
 * times) its bytes; but what is zeroed, widened from 4 bits, put before an image, the first of a
 * pair, or cast from a shard that others pad. */
static void check_copy(const char *name, const struct kernel_work *work)
{
    static const char *const others[] = {"dequantize", "cls_token", "/next", "/cast_shard"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_so(name, others[i]))
            return;
    double ratio = work->read_bytes > 0 ? work->write_bytes / work->read_bytes : 1;
    if (ratio != 0.5 && ratio != 1 && ratio != 2 && ratio != 4)
        fail_msg("%s reads %.12g and writes %.12g", name, work->read_bytes, work->write_bytes);
}

/* False where the plans have other ops (a kernel that FP8 takes at some sizes). */
static bool ops_are_affine(const struct plan *plans, int program, const struct drawn *drawn)
{
    const struct plan_program *at[SIZES];
    for (int s = 0; s < SIZES; s++)
        at[s] = &plans[s].programs[program];
    if (at[0]->ops.n != at[1]->ops.n || at[0]->ops.n != at[2]->ops.n)
        return false;
    for (int i = 0; i < at[0]->ops.n; i++) {
        const struct plan_op *op = &at[0]->ops.at[i];
        if (op->kind == OP_KERNEL && plans[0].kernels.at[op->index].kind == KERNEL_COPY)
            check_copy(op->name, &plans[0].kernels.at[op->index]);
        for (int what = 0; what < 3; what++) {
            double of[SIZES];
            for (int s = 0; s < SIZES; s++)
                of[s] = of_op(&plans[s], at[s], i, what);
            if (!is_affine(of, drawn->shape->moe.experts > 0
                                   ? ROW
                                   : ROUNDED)) /* rows that come to an expert are whole */
                fail_msg("%s %d, %s (%d): %.12g, %.12g, %.12g",
                    strategy_kind_names[drawn->options.kind], drawn->number, op->name, what, of[0],
                    of[1], of[2]);
        }
    }
    return true;
}

/* The case with 0, 2 and 4 more blocks (where every second is recomputed, as many of each), or of
 * these micro-batches. */
static bool compile_sizes(struct plan *plans, const struct drawn *drawn, bool blocks,
    const struct hw *hw, struct arena *arena)
{
    bool taken = true;
    for (int i = 0; i < SIZES; i++) {
        struct model_shape *shape = ARENA_ARRAY(arena, struct model_shape, 1);
        struct drawn sized = *drawn;
        *shape = *drawn->shape;
        sized.shape = shape;
        if (blocks) {
            shape->n_layers += 2 * i;
            shape->n_decoder_layers += shape->n_decoder_layers > 0 ? 2 * i : 0;
        } else {
            sized.options.train.device_batch = 0;
            sized.options.train.micro_batch = 16 * (1 + i);
        }
        taken = compile_drawn(&plans[i], &sized, hw, arena) && taken;
    }
    return taken;
}

/* Of each drawn case at three sizes: `check` says whether it counts, and fails if it is not affine.
 */
static void check_drawn(
    bool blocks, bool check(const struct plan *plans, const struct drawn *drawn))
{
    struct arena kept = ARENA_INIT;
    struct hw hw;
    load_cluster(&hw, "h100-8x400g", &kept);
    int taken = 0;
    for (int i = 0; i < CASES; i++) {
        struct arena arena = ARENA_INIT;
        struct drawn drawn = draw(i);
        struct plan plans[SIZES];
        if (blocks &&
            (drawn.shape->family == MODEL_CONVNET || drawn.options.kind == STRATEGY_INTERNEVO))
            continue;
        if (compile_sizes(plans, &drawn, blocks, &hw, &arena))
            taken += check(plans, &drawn);
        release(plans);
        arena_release(&arena);
    }
    assert_true(taken > CASES / 2);
    arena_release(&kept);
}

static bool first_ops_are_affine(const struct plan *plans, const struct drawn *drawn)
{
    return ops_are_affine(plans, 0, drawn);
}

static void ops_grow_with_the_micro_batch(void **state)
{
    (void)state;
    check_drawn(false, first_ops_are_affine);
}

/* Of FP8 and FP4, tokens that are sent to experts, sequences that are shared. */
static struct drawn draw_layout(int kind, int number)
{
    static const struct model_shape *const shapes[] = {
        &small_llama, &small_gpt, &small_moe, &small_deepseek};
    struct drawn drawn = {.number = number, .gpus = 8, .options = layout(kind, number)};
    struct train_options *train = &drawn.options.train;
    struct model_parallel *parallel = &drawn.options.parallelism.model;
    static struct model_shape deep;
    deep = *shapes[kind == STRATEGY_MEGATRON ? number % 4 : number % 4 == 1];
    deep.n_layers = 4;
    drawn.shape = &deep;
    train->cross_entropy = number / 3 % 2 ? CROSS_ENTROPY_FUSED : CROSS_ENTROPY_EAGER;
    if (kind == STRATEGY_MEGATRON) {
        static const int formats[] = {
            PRECISION_BF16_MIXED, PRECISION_FP8_MIXED, PRECISION_FP16_MIXED};
        train->precision = formats[number / 2 % 3];
        train->fusion = number / 3 % 2 ? FUSION_TRANSFORMER_ENGINE : FUSION_EAGER;
        parallel->context = number / 5 % 2 ? 2 : 1;
        parallel->context_kind = number / 10 % CONTEXT_PARALLEL_COUNT;
        parallel->expert = deep.moe.experts > 0 ? 2 : 1;
        train->moe_token_dispatcher_type = number / 4 % DISPATCHER_COUNT;
        train->moe_flex_dispatcher_backend = number / 12 % 2;
        train->moe_shared_expert_overlap = number / 6 % 2;
        train->expert_kernels = number / 7 % 2;
    }
    if (kind == STRATEGY_FSDP && number % 3 == 0) {
        train->precision = PRECISION_FP8_MIXED;
        train->fp8_recipe = 1 + number / 3 % 2;
        train->fusion = FUSION_INDUCTOR;
    }
    return drawn;
}

static void layouts_grow_with_the_micro_batch(void **state)
{
    (void)state;
    struct arena kept = ARENA_INIT;
    struct hw hw;
    load_cluster(&hw, "h100-8x400g", &kept);
    for (int k = 0; k < LAYOUT_KINDS; k++) {
        int taken = 0;
        for (int i = 0; i < LAYOUTS; i++) {
            struct arena arena = ARENA_INIT;
            struct drawn drawn = draw_layout(layout_kinds[k], i);
            struct plan plans[SIZES];
            if (compile_sizes(plans, &drawn, false, &hw, &arena))
                for (int p = 0; p < plans[0].n_programs; p++)
                    taken += ops_are_affine(plans, p, &drawn);
            release(plans);
            arena_release(&arena);
        }
        assert_true(taken > LAYOUTS / 8);
    }
    arena_release(&kept);
}

enum { READS, WRITES, FLOP, CARRIED, KEPT, SUMS = KEPT + HBM_CATEGORY_COUNT };

static void sum_up(const struct plan *plan, double *sums)
{
    const struct plan_program *program = plan->programs;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind == OP_COLLECTIVE)
            sums[CARRIED] += plan->collectives.at[op->index].bytes;
        for (int what = READS; what <= FLOP && op->kind == OP_KERNEL; what++)
            sums[what] += of_kernel(plan, op, what);
        if (op->kind == OP_KEEP)
            sums[KEPT + program->buffers.at[op->index].category] +=
                (double)program->buffers.at[op->index].bytes;
    }
    for (int i = 0; i < program->setup.n; i++) {
        const struct plan_buffer *buffer = &program->buffers.at[program->setup.at[i]];
        sums[KEPT + buffer->category] += (double)buffer->bytes;
    }
}

static bool sums_are_affine(const struct plan *plans, const struct drawn *drawn)
{
    double sums[SIZES][SUMS] = {{0}};
    for (int s = 0; s < SIZES; s++)
        sum_up(&plans[s], sums[s]);
    for (int what = 0; what < SUMS; what++)
        if (!is_affine((const double[]){sums[0][what], sums[1][what], sums[2][what]}, PADDED))
            fail_msg("case %d, %s, %d: %.12g, %.12g, %.12g", drawn->number,
                strategy_kind_names[drawn->options.kind], what, sums[0][what], sums[1][what],
                sums[2][what]);
    return true;
}

static void sums_grow_with_the_blocks(void **state)
{
    (void)state;
    check_drawn(true, sums_are_affine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ops_grow_with_the_micro_batch),
        cmocka_unit_test(layouts_grow_with_the_micro_batch),
        cmocka_unit_test(sums_grow_with_the_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
