/* optimizer.step() as the kernels that PyTorch 2 launches. Each row of a table is one pass over all parameters of the
 * rank; what counts is how many elements it reads and writes. Source: torch/optim/{adam,adamw,sgd}.py, _multi_tensor_*
 * and _fused_*. */
#include "strategy/emit.h"

struct pass {
    const char *name;
    int reads, writes; /* elements a parameter */
};

enum { MAX_PASSES = 10 };

struct recipe {
    int states; /* elements kept a parameter */
    int temporaries;
    struct pass foreach[MAX_PASSES];
    struct pass fused;
};

#define ADAM_PASSES                                                                                                    \
    {"exp_avg.mul_", 1, 1}, {"exp_avg.add_", 2, 1}, {"exp_avg_sq.mul_", 1, 1}, {"exp_avg_sq.addcmul_", 2, 1},          \
        {"sqrt", 1, 1}, {"div_", 1, 1}, {"add_eps_", 1, 1},                                                            \
    {                                                                                                                  \
        "param.addcdiv_", 3, 1                                                                                         \
    }

static const struct recipe recipes[OPTIMIZER_COUNT] = {
    [OPTIMIZER_ADAMW] = {2, 1, {{"param.mul_", 1, 1}, ADAM_PASSES}, {"fused_adamw", 4, 3}},
    [OPTIMIZER_ADAM] = {2, 1, {ADAM_PASSES}, {"fused_adam", 4, 3}},
    [OPTIMIZER_SGD] = {0, 0, {{"param.add_", 2, 1}}, {"fused_sgd", 2, 1}},
    [OPTIMIZER_SGD_MOMENTUM] = {1, 0, {{"momentum.mul_", 1, 1}, {"momentum.add_", 2, 1}, {"param.add_", 2, 1}},
        {"fused_sgd_momentum", 3, 2}},
};

/* Tensors that one multi-tensor kernel takes at most (depth_to_max_tensors of multi_tensor_apply for two to four lists,
 * PyTorch 2): more tensors mean more launches. */
enum { TENSORS_A_LAUNCH = 36 };

int64_t optimizer_state_bytes(const struct emit *emit)
{
    return recipes[emit->options->train.optimizer].states * emit->master_bytes;
}

static void emit_pass(struct emit *emit, struct pass pass, int64_t numel, int n_tensors)
{
    int launches = (n_tensors + TENSORS_A_LAUNCH - 1) / TENSORS_A_LAUNCH;
    double bytes = (double)(numel * emit->master_bytes) / launches;
    for (int i = 0; i < launches; i++) {
        struct kernel_work work = kernel_stream(KERNEL_OPTIMIZER, pass.reads * bytes, pass.writes * bytes, 0);
        plan_kernel(&emit->builder, STREAM_COMPUTE, arena_printf(emit->arena, "optimizer/%s", pass.name), work,
            emit->options->host.kernel_issue_s);
    }
}

void emit_optimizer(struct emit *emit, int64_t numel, int n_tensors)
{
    const struct recipe *recipe = &recipes[emit->options->train.optimizer];
    emit->builder.phase = PHASE_OPTIMIZER;
    if (emit->options->train.precision == PRECISION_FP16_MIXED)
        emit_pass(emit, (struct pass){"unscale_and_check_inf", 1, 1}, numel, n_tensors);
    if (emit->options->train.optimizer_impl == OPTIMIZER_FUSED) {
        emit_pass(emit, recipe->fused, numel, n_tensors);
        return;
    }
    int temporary = plan_alloc(&emit->builder, STREAM_COMPUTE, "optimizer/denominator",
        recipe->temporaries * numel * emit->master_bytes, HBM_OPTIMIZER);
    for (int i = 0; i < MAX_PASSES && recipe->foreach[i].name; i++)
        emit_pass(emit, recipe->foreach[i], numel, n_tensors);
    plan_free(&emit->builder, temporary, PLAN_NO_OP);
}
