/* Bytes a parameter that each kind of kernel of a step on 8 ranks reads and writes besides the
 * layers' own, and what stays from step to step: of 16-bit numbers (H) 2, of FP32 (F) 4, of a shard
 * (S) an eighth. Adam's step reads weights, gradients and two moments and writes all but the
 * gradients, 4 F and 3 F. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "compiled.h"

#define H 2.
#define F 4.
#define S (1. / 8)

enum { RANKS = 8, MOST_ROWS = 12, B = 1 << PHASE_BACKWARD, O = 1 << PHASE_OPTIMIZER };

enum one_job {
    NANOTRON_0,
    NANOTRON_1,
    INTERNEVO,
    INTERNEVO_2,
    MEGATRON,
    MEGATRON_1,
    ZERO_0,
    ZERO_1,
    ZERO_3,
    FSDP,
    FSDP_2,
    AUTOCAST,
    DDP,
    JOBS
};

struct row {
    const char *name; /* how ops end that are meant */
    int phases;
    double reads, writes;
};
static const struct {
    struct row rows[MOST_ROWS];
    double parameters, gradients, optimizer, buffers; /* kept */
} wanted[JOBS] = {
    /* Gradients are added to FP32 ones, which DDP's hook reduces; clipping reads all and scales all
     * in place. */
    [NANOTRON_0] = {{{"/copy_to_bucket", B, H, H}, {"/fp32_grad.add_", B, H + F, F},
                        {"/copy_from_bucket", B, H, H}, {"/grad_norm", O, F, 0},
                        {"grad_norm/mul_", O, F, F}, {"optimizer/fused_adamw", O, 4 * F, 3 * F},
                        {"optimizer/copy_to_weight", O, F, H}, {"fp32_grads.zero_", O, 0, F}},
        H, F, 3 * F, H},
    /* Each rank steps on its part; its part and those of all are made flat, gathered, copied out
     * and to their places. */
    [NANOTRON_1] = {{{"/fp32_grad.add_", B, H + F, F}, {"/grad_norm", O, F, 0},
                        {"grad_norm/mul_", O, F, F},
                        {"optimizer/fused_adamw", O, 4 * F *S, 3 * F *S},
                        {"optimizer/copy_to_weight", O, F *S, H *S}, {"fp32_grads.zero_", O, 0, F},
                        {"/flatten", O, H + H *S, H + H *S}, {"/copy_out", O, H, H},
                        {"all_gather_coalesced/copy_", O, H, H}},
        H, F, 3 * F *S, 0},
    [MEGATRON] = {{{"grad_buffer.zero_", 1 << PHASE_FORWARD, 0, F}, {"/check_for_nan", B, F, 0},
                      {"/scale", B | O, 2 * F, 2 * F}, {"/norm", O, F, 0},
                      {"optimizer/fused_adamw", O, 4 * F, 3 * F},
                      {"optimizer/weights_from_fp32", O, F, H}},
        H, F, 3 * F, 0},
    /* The mean over the ranks scales all gradients, clipping those of the own shard. */
    [MEGATRON_1] = {{{"grad_buffer.zero_", 1 << PHASE_FORWARD, 0, F}, {"/check_for_nan", B, F, 0},
                        {"/scale", B | O, F + F *S, F + F *S}, {"/norm", O, F *S, 0},
                        {"optimizer/fused_adamw", O, 4 * F *S, 3 * F *S},
                        {"optimizer/weights_from_fp32", O, F *S, H *S}},
        H, F, 3 * F *S, 0},
    /* BF16_Optimizer: FP32 gradients of all, reduced in 16 bits; a shard is stepped and all weights
     * are gathered. */
    [ZERO_0] = {{{"/fp32_grad.add_", B, H + F, F}, {"/flatten", B, F, H}, {"/mul_", B, H, H},
                    {"/copy_back", B, H, F}, {"/grad_norm", O, F, 0},
                    {"optimizer/clip_tensors", O, F, F},
                    {"optimizer/fused_adamw", O, 4 * F *S, 3 * F *S},
                    {"optimizer/weights_from_fp32", O, F *S, H *S}, {"/copy_list", O, H, H},
                    {"fp32_grads.zero_", O, 0, F}},
        H, F, 3 * F *S, 0},
    /* The norm is of doubles: a shard becomes 8 bytes an element. */
    [ZERO_1] = {{{"/copy_to_bucket", B, H, H}, {"/div", B, H, H}, {"/flatten", B, H, H},
                    {"/copy_owned", B, H *S, H *S}, {"/double", O, H *S, 8 * S},
                    {"/norm", O, 8 * S, 0}, {"optimizer/grads_to_fp32", O, H *S, F *S},
                    {"optimizer/unscale_and_clip_grads", O, F *S, F *S},
                    {"optimizer/fused_adamw", O, 4 * F *S, 3 * F *S},
                    {"optimizer/weights_from_fp32", O, F *S, H *S}},
        H, 0, 3 * F *S, -1},
    [ZERO_3] = {{{"/copy_to_bucket", B, H, H}, {"/copy_list", B, H, H}, {"/div", B, H, H},
                    {"/double", O, H *S, 8 * S}, {"/norm", O, 8 * S, 0},
                    {"optimizer/grads_to_fp32", O, H *S, F *S},
                    {"optimizer/unscale_and_clip_grads", O, F *S, F *S},
                    {"optimizer/fused_adamw", O, 4 * F *S, 3 * F *S},
                    {"optimizer/weights_from_fp32", O, F *S, H *S}},
        H *S, 0, 3 * F *S, -1},
    [FSDP] = {{{"/cat_grads", B, H, H}, {"/predivide", B, H, H}, {"/postdivide", B, H *S, H *S},
                  {"/cast_sharded_grad", B, H *S, F *S},
                  {"optimizer/fused_adamw", O, 4 * F *S, 3 * F *S}},
        F *S, 0, 0, 0},
    /* Clipping: the norm reads the shard, the scale writes it. */
    [FSDP_2] = {{{"/copy_in", B, H, H}, {"/cast_sharded_grad", B, H *S, F *S},
                    {"optimizer/clip_grad_norm_/norm", O, F *S, 0},
                    {"optimizer/clip_grad_norm_/mul_", O, F *S, F *S},
                    {"optimizer/fused_adamw", O, 4 * F *S, 3 * F *S}},
        F *S, 0, 0, 0},
    /* Weights and gradients stay FP32; what multiplies is a copy. */
    [AUTOCAST] =
        {{{"/autocast", 1 << PHASE_FORWARD, F, H}, {"/cast_grad", B, H, F}, {"/cat_grads", B, F, F},
             {"/predivide", B, F, F}, {"/postdivide", B, F *S, F *S},
             {"optimizer/fused_adamw", O, 4 * F *S, 3 * F *S}},
            F *S, 0, 0, 0},
    [DDP] = {{{"/autocast", 1 << PHASE_FORWARD, F, H}, {"/cast_grad", B, H, F},
                 {"/copy_to_bucket", B, F, F}, {"/copy_from_bucket", B, F, F},
                 {"optimizer/fused_adamw", O, 4 * F, 3 * F}},
        F, 0, 0, F},
};

static struct strategy_options options_of_job(enum one_job job)
{
    bool zero = job == ZERO_0 || job == ZERO_1 || job == ZERO_3;
    struct strategy_options options = zero ? zero_of(job == ZERO_0   ? 0
                                                     : job == ZERO_1 ? 1
                                                                     : 3)
                                           : options_of(FULL_SHARD);
    options.train.optimizer_impl = OPTIMIZER_FUSED;
    options.train.attention = ATTENTION_FLASH;
    if (job == NANOTRON_0 || job == NANOTRON_1)
        options.kind = STRATEGY_NANOTRON;
    if (job == INTERNEVO || job == INTERNEVO_2) {
        options.kind = STRATEGY_INTERNEVO;
        options.train.precision = PRECISION_BF16_MASTER;
    }
    if (job == MEGATRON || job == MEGATRON_1)
        options.kind = STRATEGY_MEGATRON;
    if (job == DDP)
        options.kind = STRATEGY_DDP;
    options.train.grad_accum = job == INTERNEVO_2 ? 2 : 1;
    options.nanotron.zero_stage = job == NANOTRON_1;
    options.megatron.use_distributed_optimizer = job == MEGATRON_1;
    options.train.clip_grad_norm = job == FSDP_2;
    options.fsdp.version = job == FSDP_2 ? 2 : 1;
    options.train.autocast = job == AUTOCAST;
    return options;
}

static bool ends_so(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Sums of all kernels that end so, a parameter. */
static struct row sum_of(const struct compiled *compiled, const char *end)
{
    const struct plan_program *program = compiled->plan.programs;
    struct row sum = {.name = end};
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind != OP_KERNEL || !ends_so(op->name, end) || ends_so(op->name, "model.norm"))
            continue;
        sum.phases |= 1 << op->phase;
        sum.reads +=
            compiled->plan.kernels.at[op->index].read_bytes / (double)compiled->model.params;
        sum.writes +=
            compiled->plan.kernels.at[op->index].write_bytes / (double)compiled->model.params;
    }
    return sum;
}

static double kept(const struct compiled *compiled, enum hbm_category category)
{
    const struct plan_program *program = compiled->plan.programs;
    double bytes = 0;
    for (int i = 0; i < program->setup.n; i++) {
        const struct plan_buffer *buffer = &program->buffers.at[program->setup.at[i]];
        bytes += buffer->category == category ? (double)buffer->bytes : 0;
    }
    return bytes / (double)compiled->model.params;
}

/* small_llama's tensors divide by 8. A norm's few numbers, of tensors instead of elements, are less
 * than 1e-3. */
static void each_kernel_moves_its_bytes(void **state)
{
    (void)state;
    static const double few = 1e-3;
    for (int job = 0; job < JOBS; job++) {
        struct strategy_options options = options_of_job((enum one_job)job);
        struct compiled compiled;
        if (!wanted[job].rows[0].name)
            continue;
        compile(&compiled, &options, &small_llama, RANKS);
        for (const struct row *row = wanted[job].rows;
             row < wanted[job].rows + MOST_ROWS && row->name; row++) {
            struct row sum = sum_of(&compiled, row->name);
            if (sum.phases != row->phases || !(fabs(sum.reads - row->reads) < few) ||
                !(fabs(sum.writes - row->writes) < few))
                fail_msg("job %d, %s: phases %x, reads %g, writes %g", job, row->name,
                    (unsigned)sum.phases, sum.reads, sum.writes);
        }
        assert_near(kept(&compiled, HBM_PARAMETERS), wanted[job].parameters, few);
        assert_near(kept(&compiled, HBM_GRADIENTS), wanted[job].gradients, few);
        assert_near(kept(&compiled, HBM_OPTIMIZER), wanted[job].optimizer, few);
        if (wanted[job].buffers >= 0) /* ZeRO's bucket has the size that is set */
            assert_near(kept(&compiled, HBM_BUFFERS), wanted[job].buffers, few);
        drop(&compiled);
    }
}

/* InternEvo gives whole tensors to ranks, the largest first to who has least. small_llama has an
 * embedding and a head of 1,000 x 64, which two ranks have alone; so the largest part is 64,000
 * parameters, which this rank is taken to have: 2 bytes of its gradients for the norm, then FP32.
 * All gradients of a step travel in 16 bits; a second micro-batch adds its own to those of the
 * first. */
static void internevo_steps_on_the_largest_part(void **state)
{
    (void)state;
    for (int accum = 1; accum <= 2; accum++) {
        struct strategy_options options = options_of_job(accum == 2 ? INTERNEVO_2 : INTERNEVO);
        struct compiled compiled;
        compile(&compiled, &options, &small_llama, RANKS);
        double part = 64000 / (double)compiled.model.params;
        const struct row rows[] = {{"grad_norm", O, H * part, 0},
            {"optimizer/grads_to_fp32", O, H * part, F * part},
            {"optimizer/fused_adamw", O, 4 * F * part, 3 * F * part},
            {"optimizer/params_from_fp32", O, F * part, H * part}, {"/flatten", B, H, H},
            {"/unflatten_and_copy", B, H, H},
            {"/accumulate_grad", accum == 2 ? B : 0, accum == 2 ? 2 * H : 0, accum == 2 ? H : 0}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct row sum = sum_of(&compiled, rows[i].name);
            assert_int_equal(sum.phases, rows[i].phases);
            assert_near(sum.reads, rows[i].reads, 1e-9);
            assert_near(sum.writes, rows[i].writes, 1e-9);
        }
        assert_near(kept(&compiled, HBM_PARAMETERS), H, 1e-9);
        assert_near(kept(&compiled, HBM_OPTIMIZER), 3 * F * part, 1e-9);
        drop(&compiled);
    }
}

/* Megatron-LM's moments in BF16: the fused kernel reads and writes 2 bytes less of each, and as
 * many less are kept. */
static void moments_in_bf16_are_read_so(void **state)
{
    (void)state;
    double before = 0;
    for (int narrow = 0; narrow <= 2; narrow++) {
        struct strategy_options options = options_of_job(MEGATRON);
        struct compiled compiled;
        options.megatron.exp_avg_dtype = narrow > 0 ? MOMENT_BF16 : MOMENT_FP32;
        options.megatron.exp_avg_sq_dtype = narrow > 1 ? MOMENT_BF16 : MOMENT_FP32;
        compile(&compiled, &options, &small_llama, RANKS);
        struct row sum = sum_of(&compiled, "optimizer/fused_adamw");
        assert_near(sum.reads, 4 * F - narrow * (F - H), 1e-9);
        assert_near(sum.writes, 3 * F - narrow * (F - H), 1e-9);
        before = narrow == 0 ? kept(&compiled, HBM_OPTIMIZER) : before;
        assert_near(before - kept(&compiled, HBM_OPTIMIZER), narrow * (F - H), 1e-9);
        drop(&compiled);
    }
}

/* Gradients that backward makes buffers for, and those that are left when the optimizer begins: all
 * as they are made (H, under autocast F), the reduced shards of FSDP and ZeRO; Megatron's products
 * add to main_grad, so that only the embedding (64,000 parameters) and seven norms of 64 have
 * buffers. InternEvo's are its tensors' own. */
#define UNFUSED (H * (64000 + 7 * 64))
static const struct {
    double made, left; /* of a parameter; MEGATRON's: bytes in all */
} gradients[JOBS] = {
    [NANOTRON_0] = {H, H},
    [NANOTRON_1] = {H, 0},
    [MEGATRON] = {UNFUSED, 0},
    [MEGATRON_1] = {UNFUSED, 0},
    [ZERO_0] = {H, 0},
    [ZERO_1] = {H, H *S},
    [ZERO_3] = {H, H *S},
    [FSDP] = {F * S, F *S},
    [FSDP_2] = {F * S, F *S},
    [AUTOCAST] = {F * S, F *S},
    [DDP] = {F, F},
};

static void gradients_live_as_long_as_they_are_read(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        struct strategy_options options = options_of_job((enum one_job)job);
        struct compiled compiled;
        compile(&compiled, &options, &small_llama, RANKS);
        const struct plan_program *program = compiled.plan.programs;
        double made = 0, live[HBM_CATEGORY_COUNT] = {0};
        for (int i = 0; program->ops.at[i].phase != PHASE_OPTIMIZER; i++) {
            const struct plan_op *op = &program->ops.at[i];
            if (op->kind != OP_ALLOC && op->kind != OP_FREE)
                continue;
            const struct plan_buffer *buffer = &program->buffers.at[op->index];
            live[buffer->category] += (op->kind == OP_ALLOC ? 1 : -1) * (double)buffer->bytes;
            if (op->kind == OP_ALLOC && op->phase == PHASE_BACKWARD &&
                buffer->category == HBM_GRADIENTS)
                made += (double)buffer->bytes;
        }
        double params = job == MEGATRON || job == MEGATRON_1 ? 1 : (double)compiled.model.params;
        assert_near(made / params, gradients[job].made, 1e-3);
        assert_near(live[HBM_GRADIENTS] / params, gradients[job].left, 1e-3);
        assert_true(
            live[HBM_ACTIVATIONS] == 0 && live[HBM_GATHERED] == 0 && live[HBM_BUFFERS] == 0);
        drop(&compiled);
    }
}

/* Where the host stands in a step, whatever the ranks: for the loss (nanotron, DeepSpeed's pipeline
 * engine without ZeRO), for the norm of gradients (InternEvo and ZeRO, by .item()), for the norm of
 * each tensor (BF16_Optimizer). FSDP's and DDP's loops here read no loss; how far FSDP1 and ZeRO-3
 * run ahead is another test's. */
static void hosts_wait_for_what_they_print(void **state)
{
    (void)state;
    static const struct {
        enum one_job job;
        int numbers, tensors;
    } jobs[] = {{NANOTRON_0, 1, 0}, {NANOTRON_1, 1, 0}, {INTERNEVO, 1, 0}, {INTERNEVO_2, 1, 0},
        {MEGATRON, 0, 0}, {MEGATRON_1, 0, 0}, {ZERO_0, 2, 1}, {ZERO_1, 1, 0}, {FSDP_2, 0, 0},
        {DDP, 0, 0}};
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++)
        for (int ranks = 1; ranks <= RANKS; ranks *= RANKS) {
            struct strategy_options options = options_of_job(jobs[j].job);
            struct compiled compiled;
            int waits = 0;
            compile(&compiled, &options, &small_llama, ranks);
            for (int i = 0; i < compiled.plan.programs->ops.n; i++)
                waits += compiled.plan.programs->ops.at[i].kind == OP_HOST_WAIT;
            assert_int_equal(waits, jobs[j].numbers + jobs[j].tensors * compiled.model.n_tensors);
            drop(&compiled);
        }
}

/* A reduction of DDP on one rank is the host's call alone, of which there are as many as
 * collectives on others. */
static void one_rank_has_the_hosts_part(void **state)
{
    (void)state;
    int calls[2] = {0}, collectives[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct strategy_options options = options_of_job(DDP);
        struct compiled compiled;
        compile(&compiled, &options, &small_llama, i ? RANKS : 1);
        for (int k = 0; k < compiled.plan.programs->ops.n; k++) {
            const struct plan_op *op = &compiled.plan.programs->ops.at[k];
            calls[i] += op->kind == OP_HOST && ends_so(op->name, "/all_reduce");
            collectives[i] += op->kind == OP_COLLECTIVE && ends_so(op->name, "/all_reduce");
        }
        drop(&compiled);
    }
    assert_true(calls[0] > 0 && calls[0] == collectives[1]);
    assert_true(calls[1] == 0 && collectives[0] == 0);
}

/* Whatever the job: what is named after the optimizer is its phase, and a step ends with as much as
 * it began with. */
static void steps_leave_nothing_behind(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        struct strategy_options options = options_of_job((enum one_job)job);
        struct compiled compiled;
        compile(&compiled, &options, &small_llama, RANKS);
        const struct plan_program *program = compiled.plan.programs;
        int64_t live = 0;
        for (int i = 0; i < program->ops.n; i++) {
            const struct plan_op *op = &program->ops.at[i];
            if (op->kind == OP_ALLOC || op->kind == OP_FREE)
                live += (op->kind == OP_ALLOC ? 1 : -1) * program->buffers.at[op->index].bytes;
            if (op->kind == OP_KERNEL && strncmp(op->name, "optimizer/", 10) == 0)
                assert_int_equal(op->phase, PHASE_OPTIMIZER);
        }
        assert_int_equal(live, 0);
        drop(&compiled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kernel_moves_its_bytes),
        cmocka_unit_test(moments_in_bf16_are_read_so),
        cmocka_unit_test(internevo_steps_on_the_largest_part),
        cmocka_unit_test(gradients_live_as_long_as_they_are_read),
        cmocka_unit_test(hosts_wait_for_what_they_print),
        cmocka_unit_test(one_rank_has_the_hosts_part),
        cmocka_unit_test(steps_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
