/* optimizer.step() as the kernels that run. Each row of a table is one pass over a tensor; what
 * counts is how many elements it reads and writes. Sources: torch/optim/{adam,adamw,sgd}.py,
 * _multi_tensor_*, _single_tensor_* and _fused_* of PyTorch 2; lion_pytorch/lion_pytorch.py;
 * bitsandbytes csrc/kernels.cu, kOptimizerStatic8bit2StateBlockwise; transformers/optimization.py,
 * Adafactor.step; lomo_optim/lomo.py, fuse_update. */
#include "strategy/muon.h"

const char *const optimizer_names[OPTIMIZER_COUNT + 1] = {"adamw", "adam", "sgd", "sgd_momentum",
    "lion", "adam8bit", "adafactor", "adafactor_momentum", "lomo", "muon", NULL};
const char *const optimizer_impl_names[OPTIMIZER_IMPL_COUNT + 1] = {
    "foreach", "fused", "for_loop", NULL};

enum shape { ANY_SHAPE, MATRIX, VECTOR };

struct optimizer_pass {
    const char *name;
    int reads, writes; /* elements a parameter */
    int ops;          /* arithmetic operations a parameter, a root or a reciprocal counted as one */
    enum shape shape; /* of the tensors that it runs over */
    bool state;       /* reads and writes all state, too */
};

enum {
    MAX_PASSES = 18,
    /* bitsandbytes, optim/optimizer.py: elements to a scale (2,048 in the paper and in releases
     * before 0.44); smaller tensors than min_8bit_size keep 32-bit moments. */
    BNB_BLOCK = 256,
    BNB_MIN_8BIT = 4096,
    /* What one multi-tensor kernel takes at most (multi_tensor_apply, PyTorch 2): tensors
     * (depth_to_max_tensors for two to four lists), and blocks (depth_to_max_blocks) of kChunkSize
     * elements. */
    TENSORS_A_LAUNCH = 36,
    BLOCKS_A_LAUNCH = 320,
    ELEMENTS_A_BLOCK = 65536,
};

struct recipe {
    int moments;          /* elements kept a parameter, in its own format */
    int temporaries;      /* foreach: lists of tensors like the parameters, alive at once */
    int loop_temporaries; /* the same in a loop, of one tensor at a time */
    const char
        *fused; /* PyTorch's name of all passes in one kernel; NULL: there is only the loop */
    struct optimizer_pass passes[MAX_PASSES];
};

#define EACH(name, reads, writes, ops)                                                             \
    {                                                                                              \
        name, reads, writes, ops, ANY_SHAPE, false                                                 \
    }
#define ADAM_PASSES                                                                                \
    EACH("exp_avg.mul_", 1, 1, 1), EACH("exp_avg.add_", 2, 1, 2),                                  \
        EACH("exp_avg_sq.mul_", 1, 1, 1), EACH("exp_avg_sq.addcmul_", 2, 1, 3),                    \
        EACH("sqrt", 1, 1, 1), EACH("div_", 1, 1, 1), EACH("add_eps_", 1, 1, 1),                   \
        EACH("param.addcdiv_", 3, 1, 3)
#define SGD_DECAY EACH("grad.add", 2, 1, 2)
#define SGD_PASSES EACH("param.add_", 2, 1, 2)
#define SGD_MOMENTUM_PASSES                                                                        \
    EACH("momentum.mul_", 1, 1, 1), EACH("momentum.add_", 2, 1, 1), SGD_PASSES
#define ADAFACTOR_UPDATE                                                                           \
    EACH("grad.square", 1, 1, 1), EACH("grad.square.add_eps", 1, 1, 1),                            \
        {"row.mean", 1, 0, 1, MATRIX, false}, {"col.mean", 1, 0, 1, MATRIX, false},                \
        {"rows_by_columns", 0, 1, 1, MATRIX, false}, {"exp_avg_sq.mul_", 1, 1, 1, VECTOR, false},  \
        {"exp_avg_sq.add_", 2, 1, 2, VECTOR, false}, {"rsqrt", 1, 1, 1, VECTOR, false},            \
        EACH("mul_grad_", 2, 1, 1), EACH("update.rms", 1, 0, 2), EACH("update.div_", 1, 1, 1),     \
        EACH("update.mul_lr_", 1, 1, 1)
#define ADAFACTOR_APPLY                                                                            \
    EACH("param.rms", 1, 0, 2), EACH("update.neg", 1, 1, 1), EACH("param.add_", 2, 1, 1)

static const struct recipe recipes[OPTIMIZER_COUNT] = {
    [OPTIMIZER_ADAMW] = {2, 1, 2, "fused_adamw", {EACH("param.mul_", 1, 1, 1), ADAM_PASSES}},
    [OPTIMIZER_ADAM] = {2, 1, 2, "fused_adam", {ADAM_PASSES}},
    [OPTIMIZER_SGD] = {0, 0, 0, "fused_sgd", {SGD_PASSES}},
    [OPTIMIZER_SGD_MOMENTUM] = {1, 0, 0, "fused_sgd_momentum", {SGD_MOMENTUM_PASSES}},
    [OPTIMIZER_LION] = {1, 0, 2, NULL,
        {EACH("param.mul_", 1, 1, 1), EACH("exp_avg.clone", 1, 1, 0), EACH("update.mul_", 1, 1, 1),
            EACH("update.add", 2, 1, 2), EACH("update.sign_", 1, 1, 1), EACH("param.add_", 2, 1, 2),
            EACH("exp_avg.mul_", 1, 1, 1), EACH("exp_avg.add_", 2, 1, 2)}},
    /* Adam's 13 operations, and for each moment a product with its scale, a maximum for the new
     * one, a quotient and a search among 256 values. */
    [OPTIMIZER_ADAM_8BIT] = {0, 0, 0, NULL,
        {{"adam8bit_blockwise", 2, 1, 13 + 2 * (3 + 8), ANY_SHAPE, true}}},
    [OPTIMIZER_ADAFACTOR] = {0, 0, 2, NULL, {ADAFACTOR_UPDATE, ADAFACTOR_APPLY}},
    [OPTIMIZER_ADAFACTOR_MOMENTUM] = {0, 0, 2, NULL,
        {ADAFACTOR_UPDATE, EACH("exp_avg.mul_", 1, 1, 1), EACH("exp_avg.add_", 2, 1, 2),
            ADAFACTOR_APPLY}},
    [OPTIMIZER_LOMO] = {0, 0, 0, NULL, {EACH("lomo.add_", 2, 1, 2)}},
    /* Of what is no matrix of a block. */
    [OPTIMIZER_MUON] = {2, 1, 2, "fused_adamw", {EACH("param.mul_", 1, 1, 1), ADAM_PASSES}},
};

/* weight_decay: grad = grad.add(param, alpha=weight_decay), a new tensor. */
static const struct recipe decaying_sgd = {0, 1, 1, "fused_sgd", {SGD_DECAY, SGD_PASSES}},
                           decaying_sgd_momentum = {
                               1, 1, 1, "fused_sgd_momentum", {SGD_DECAY, SGD_MOMENTUM_PASSES}};

static const struct recipe *recipe_of(const struct emit *emit)
{
    const struct train_options *train = &emit->options->train;
    if (train->weight_decay && train->optimizer == OPTIMIZER_SGD)
        return &decaying_sgd;
    if (train->weight_decay && train->optimizer == OPTIMIZER_SGD_MOMENTUM)
        return &decaying_sgd_momentum;
    return &recipes[train->optimizer];
}

static int64_t adam_8bit_bytes(int64_t numel)
{
    int64_t blocks = (numel + BNB_BLOCK - 1) / BNB_BLOCK;
    return 2 * (numel < BNB_MIN_8BIT ? FLOAT_BYTES * numel : numel + FLOAT_BYTES * blocks);
}

const char *const moment_dtype_names[MOMENT_DTYPE_COUNT + 1] = {
    [MOMENT_FP32] = "fp32", [MOMENT_BF16] = "bf16"};

int64_t optimizer_moment_bytes(const struct strategy_options *options, int64_t step_bytes)
{
    enum { HALF_BYTES = 2 };
    const struct megatron_options *megatron = &options->megatron;
    int64_t one = megatron->exp_avg_dtype == MOMENT_BF16 ? HALF_BYTES : FLOAT_BYTES,
            other = megatron->exp_avg_sq_dtype == MOMENT_BF16 ? HALF_BYTES : FLOAT_BYTES;
    return options->kind == STRATEGY_MEGATRON && step_bytes == FLOAT_BYTES ? (one + other) / 2
                                                                           : step_bytes;
}

static int moments_of(int optimizer, struct optimizer_tensor tensor)
{
    return tensor.matrices > 0 ? 1 : recipes[optimizer].moments;
}

int64_t optimizer_state_bytes(int optimizer, struct optimizer_tensor tensor, int64_t element_bytes)
{
    int64_t numel = optimizer_numel(tensor);
    int64_t sums = tensor.cols > 1 ? tensor.rows + tensor.cols : tensor.rows;
    if (optimizer == OPTIMIZER_ADAM_8BIT)
        return adam_8bit_bytes(numel);
    if (optimizer == OPTIMIZER_ADAFACTOR)
        return FLOAT_BYTES * sums;
    if (optimizer == OPTIMIZER_ADAFACTOR_MOMENTUM)
        return FLOAT_BYTES * (sums + numel);
    return moments_of(optimizer, tensor) * numel * element_bytes;
}

static int64_t moments_bytes(const struct emit *emit, struct optimizer_tensor tensor)
{
    return optimizer_state_bytes(emit->options->train.optimizer, tensor,
        optimizer_moment_bytes(emit->options, emit->step_bytes));
}

int64_t emit_state_bytes(const struct emit *emit, struct optimizer_tensor tensor)
{
    int64_t copy =
        emit->step_bytes != emit->master_bytes ? optimizer_numel(tensor) * emit->step_bytes : 0;
    return copy + moments_bytes(emit, tensor);
}

void emit_first_state(struct emit *emit, const struct optimizer_tensor *tensors, int n)
{
    int copies = emit->step_bytes != emit->master_bytes;
    for (int i = 0; i < n; i++) {
        int moments = moments_of(emit->options->train.optimizer, tensors[i]),
            blocks = moments > 0 ? moments + copies : 1;
        for (int k = 0; k < blocks; k++)
            plan_keep_from_here(&emit->builder, "optimizer/state",
                emit_state_bytes(emit, tensors[i]) / blocks, HBM_OPTIMIZER);
    }
}

/* One kernel of a pass; numel may be a launch's share of many tensors. */
static void emit_pass(struct emit *emit, int stream, struct optimizer_pass pass, double numel,
    double state_bytes, double host_s)
{
    double bytes = numel * (double)emit->step_bytes, state = pass.state ? state_bytes : 0;
    struct kernel_work work = kernel_stream(KERNEL_OPTIMIZER, pass.reads * bytes + state,
        pass.writes * bytes + state, pass.ops * numel);
    plan_kernel(
        &emit->builder, stream, arena_printf(emit->arena, "optimizer/%s", pass.name), work, host_s);
}

static struct optimizer_pass fused_pass(const struct recipe *recipe)
{
    struct optimizer_pass pass = {.name = recipe->fused, .reads = 2, .writes = 1, .state = true};
    for (int i = 0; i < MAX_PASSES && recipe->passes[i].name; i++)
        pass.ops += recipe->passes[i].ops;
    return pass;
}

static bool runs_over(struct optimizer_pass pass, struct optimizer_tensor tensor)
{
    return pass.shape == ANY_SHAPE || (pass.shape == MATRIX) == (tensor.cols > 1);
}

/* The results of foreach operations are lists with a tensor for each of the arguments', which fit
 * where one large block would not: at [list x n + tensor]. */
static int *temporaries_of(
    struct emit *emit, const struct recipe *recipe, const struct optimizer_tensor *tensors, int n)
{
    int *blocks = ARENA_ARRAY(emit->arena, int, recipe->temporaries *n);
    for (int k = 0; k < recipe->temporaries * n; k++)
        blocks[k] = plan_alloc(&emit->builder, STREAM_COMPUTE, "optimizer/temporaries",
            optimizer_numel(tensors[k % n]) * emit->step_bytes, HBM_OPTIMIZER);
    return blocks;
}

int optimizer_launches(const struct optimizer_tensor *tensors, int n)
{
    int launches = 0, held = 0;
    int64_t blocks = 0; /* of the launch that is being filled */
    for (int i = 0; i < n; i++) {
        blocks += (optimizer_numel(tensors[i]) + ELEMENTS_A_BLOCK - 1) / ELEMENTS_A_BLOCK;
        launches += (int)(blocks / BLOCKS_A_LAUNCH);
        held = blocks >= BLOCKS_A_LAUNCH ? 0 : held;
        blocks %= BLOCKS_A_LAUNCH;
        held += blocks > 0;
        if (held == TENSORS_A_LAUNCH) {
            launches++;
            held = 0;
            blocks = 0;
        }
    }
    return launches + (blocks > 0);
}

/* All tensors in a few launches a pass. */
static void emit_together(
    struct emit *emit, const struct recipe *recipe, const struct optimizer_tensor *tensors, int n)
{
    int64_t numel = 0, state_bytes = 0;
    for (int i = 0; i < n; i++) {
        numel += optimizer_numel(tensors[i]);
        state_bytes += moments_bytes(emit, tensors[i]);
    }
    int launches = optimizer_launches(tensors, n);
    bool fused = recipe->fused && emit->options->train.optimizer_impl == OPTIMIZER_FUSED;
    double host_s = emit->options->host.kernel_issue_s;
    int n_temporaries = fused ? 0 : recipe->temporaries * n;
    int *temporaries = fused ? NULL : temporaries_of(emit, recipe, tensors, n);
    for (int i = 0; i < MAX_PASSES && recipe->passes[i].name; i++) {
        struct optimizer_pass pass = fused ? fused_pass(recipe) : recipe->passes[i];
        for (int k = 0; k < launches; k++)
            emit_pass(emit, STREAM_COMPUTE, pass, (double)numel / launches,
                (double)state_bytes / launches, host_s);
        if (fused)
            break;
    }
    for (int k = 0; k < n_temporaries; k++)
        plan_free(&emit->builder, temporaries[k], PLAN_NO_OP);
}

static void emit_one_by_one(
    struct emit *emit, const struct recipe *recipe, struct optimizer_tensor tensor)
{
    int64_t numel = optimizer_numel(tensor);
    double state = (double)moments_bytes(emit, tensor);
    int temporary = plan_alloc(&emit->builder, STREAM_COMPUTE, "optimizer/temporaries",
        recipe->loop_temporaries * numel * emit->step_bytes, HBM_OPTIMIZER);
    for (int i = 0; i < MAX_PASSES && recipe->passes[i].name; i++)
        if (runs_over(recipe->passes[i], tensor))
            emit_pass(emit, STREAM_COMPUTE, recipe->passes[i], (double)numel, state,
                emit->options->host.kernel_issue_s);
    plan_free(&emit->builder, temporary, PLAN_NO_OP);
}

bool emit_updates_in_backward(const struct emit *emit)
{
    return emit->options->train.optimizer == OPTIMIZER_LOMO;
}

void emit_update(struct emit *emit, int stream, int64_t numel)
{
    const struct recipe *recipe = recipe_of(emit);
    emit_pass(
        emit, stream, recipe->passes[0], (double)numel, 0, emit->options->host.backward_issue_s);
}

static void optimizer_cast(
    struct emit *emit, const char *name, double numel, int64_t from_bytes, int64_t to_bytes)
{
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, name, numel * (double)from_bytes,
        numel * (double)to_bytes);
}

static bool clips(const struct emit *emit)
{
    return emit->hooks->clips_by_option && emit->options->train.clip_grad_norm;
}

/* The norm of all gradients, over the ranks that share them; what is larger than it may be is
 * scaled, be it by 1. */
static void clip_grad_norm(struct emit *emit, const struct optimizer_tensor *tensors, int n)
{
    struct plan_builder *builder = &emit->builder;
    static const struct recipe norm = {.passes = {{"clip_grad_norm_/norm", 1, 0, 2, ANY_SHAPE,
                                           false}}},
                               scale = {
                                   .passes = {{"clip_grad_norm_/mul_", 1, 1, 1, ANY_SHAPE, false}}};
    emit_together(emit, &norm, tensors, n);
    if (emit->norm_group != PLAN_NO_OP) {
        plan_stream_wait(builder, STREAM_COMPUTE,
            emit_collective(emit, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE),
                "clip_grad_norm_/all_reduce", COLL_ALL_REDUCE, FLOAT_BYTES, emit->norm_group));
    }
    if (emit->schedule.stages > 1)
        emit_all_reduce(emit, "clip_grad_norm_/all_reduce.pp", FLOAT_BYTES,
            emit_group(emit, "pp", 1U << AXIS_PP), PARALLEL_PIPELINE);
    emit_together(emit, &scale, tensors, n);
}

void emit_optimizer(struct emit *emit, const struct optimizer_tensor *tensors, int n)
{
    const struct recipe *recipe = recipe_of(emit);
    int64_t numel = 0;
    if (emit_updates_in_backward(emit))
        return;
    emit->builder.phase = PHASE_OPTIMIZER;
    for (int i = 0; i < n; i++)
        numel += optimizer_numel(tensors[i]);
    bool copies = emit->step_bytes != emit->master_bytes;
    int grads = plan_alloc(&emit->builder, STREAM_COMPUTE, "optimizer/fp32_grads",
        copies ? numel * emit->step_bytes : 0, HBM_GRADIENTS);
    if (copies)
        optimizer_cast(
            emit, "optimizer/grads_to_fp32", (double)numel, emit->master_bytes, emit->step_bytes);
    if (emit->options->train.precision == PRECISION_FP16_MIXED) {
        static const struct recipe unscale = {
            .passes = {{"unscale_and_check_inf", 1, 1, 1, ANY_SHAPE, false}}};
        emit_together(emit, &unscale, tensors, n);
        /* GradScaler.step reads found_inf (_maybe_opt_step), unless the optimizer does so on the
         * GPU. */
        if (!recipe->fused || emit->options->train.optimizer_impl != OPTIMIZER_FUSED)
            plan_host_wait(&emit->builder, "optimizer/found_inf.item",
                plan_last_op(&emit->builder, STREAM_COMPUTE), 0);
    }
    if (clips(emit))
        clip_grad_norm(emit, tensors, n);
    int left = n;
    if (emit->options->train.optimizer == OPTIMIZER_MUON)
        tensors = muon_step(emit, tensors, &left);
    bool loop = !recipe->fused || emit->options->train.optimizer_impl == OPTIMIZER_FOR_LOOP;
    if (!loop)
        emit_together(emit, recipe, tensors, left);
    for (int i = 0; i < left && loop; i++)
        emit_one_by_one(emit, recipe, tensors[i]);
    plan_free(&emit->builder, grads, PLAN_NO_OP);
    if (copies)
        optimizer_cast(emit, "optimizer/params_from_fp32", (double)numel, emit->step_bytes,
            emit->master_bytes);
}

void emit_keep_on_host(struct emit *emit, int64_t bytes)
{
    emit->builder.program->host_bytes += (double)bytes;
}

void emit_host_copy(struct emit *emit, int stream, const char *name, double bytes)
{
    plan_kernel(&emit->builder, stream, name, kernel_stream(KERNEL_HOST_COPY, bytes, 0, 0),
        emit->options->host.kernel_issue_s);
}

/* Bytes that a step on a tensor moves between memory and cores. */
static double step_bytes(const struct emit *emit, struct optimizer_tensor tensor, bool in_one)
{
    const struct recipe *recipe = recipe_of(emit);
    double numel = (double)optimizer_numel(tensor), moved = 0;
    double state = (double)moments_bytes(emit, tensor);
    if (in_one)
        return 3 * numel * (double)emit->step_bytes + 2 * state;
    for (int i = 0; i < MAX_PASSES && recipe->passes[i].name; i++)
        if (runs_over(recipe->passes[i], tensor))
            moved += (recipe->passes[i].reads + recipe->passes[i].writes) * numel *
                         (double)emit->step_bytes +
                     (recipe->passes[i].state ? 2 * state : 0);
    return moved;
}

void emit_host_optimizer(
    struct emit *emit, const struct optimizer_tensor *tensors, int n, bool in_one, plan_wait op)
{
    double bytes = 0;
    int sharers = hw_ranks_of_host(emit->hw, emit->builder.plan->mesh.ranks),
        clipped = clips(emit) ? 1 + 2 : 0; /* norm; scale in place */
    for (int i = 0; i < n; i++)
        bytes += step_bytes(emit, tensors[i], in_one) +
                 (double)(clipped * optimizer_numel(tensors[i]) * emit->step_bytes);
    emit->builder.phase = PHASE_OPTIMIZER;
    plan_host_wait(&emit->builder, "optimizer/gradients_on_host", op, 0);
    double host_Bps = emit->hw->node.host_bandwidth.value / hw_hosts_per_node(emit->hw);
    plan_host(&emit->builder, "optimizer/cpu_step", bytes * sharers / host_Bps);
}
