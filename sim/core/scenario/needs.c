/* Settings that not every GPU can do. Where a stack profile gives one, meant for newer GPUs, the
 * job has what such a framework falls back to, and a warning says so; where the user does, it is
 * refused. Number formats are refused by strategy/check.c, by the peaks that a GPU file has. */
#include "scenario/file.h"

#include <string.h>

/* The oldest architecture of NVIDIA's that can do it; AMD's by itself. */
struct need {
    const char *path;
    bool (*asks)(const struct train_options *train);
    const char *what, *oldest;
    bool cdna;
    const char *instead;
    void (*fall_back)(struct train_options *train);
};

static bool asks_flash(const struct train_options *train)
{
    return train->attention == ATTENTION_FLASH;
}

static void take_naive(struct train_options *train)
{
    train->attention = ATTENTION_NAIVE;
}

static bool asks_mxfp8(const struct train_options *train)
{
    return train->fp8_recipe == FP8_MXFP8;
}

static void take_delayed(struct train_options *train)
{
    train->fp8_recipe = FP8_DELAYED;
}

static bool asks_flex(const struct train_options *train)
{
    return train->moe_token_dispatcher_type == DISPATCHER_FLEX;
}

static void take_alltoall(struct train_options *train)
{
    train->moe_token_dispatcher_type = DISPATCHER_ALLTOALL;
}

/* FlashAttention 2 (Dao-AILab/flash-attention README: Ampere, Ada, Hopper; CDNA by Composable
 * Kernel), which cuDNN's fused attention agrees with; TransformerEngine's recipe of blocks of 32;
 * DeepEP's README: SM80 and newer. */
static const struct need needs[] = {
    {"train.attention", asks_flash, "flash attention", "Ampere", true, "naive", take_naive},
    {"train.fp8_recipe", asks_mxfp8, "mxfp8", "Blackwell", false, "delayed", take_delayed},
    {"train.moe_token_dispatcher_type", asks_flex, "DeepEP", "Ampere", true, "alltoall",
        take_alltoall},
};
enum { NEEDS = sizeof needs / sizeof *needs };

static int age(const char *arch)
{
    int at = 0;
    while (at < HW_ARCHS && strcmp(hw_archs[at], arch) != 0)
        at++;
    return at;
}

static bool can(const struct hw_gpu *gpu, const struct need *need)
{
    if (!gpu->arch)
        return true;
    return strcmp(gpu->arch, "CDNA") == 0 ? need->cdna : age(gpu->arch) >= age(need->oldest);
}

/* The GPU of the job that cannot; NULL: it can. */
static const struct hw_gpu *lacking(const struct scenario_point *point, const struct need *need)
{
    return can(&point->hw.gpu, need) ? NULL : &point->hw.gpu;
}

/* FlashAttention and cuDNN have kernels in 16 bits and fewer only. PyTorch's memory-efficient
 * kernel does FP32, as it did on one H100 in TF32: 30.1 GiB, where naive attention needs 58
 * (results/measured/one_gpu.csv, OG-004). */
static bool has_flash(int precision)
{
    return precision != PRECISION_FP32 && precision != PRECISION_TF32;
}

void scenario_default_attention(struct scenario_point *point)
{
    struct train_options *train = &point->options.strategy.train;
    const struct model_shape *shape = &point->model.shape;
    if (train->attention >= 0)
        return;
    bool flash = has_flash(train->precision) && !lacking(point, &needs[0]) && shape->n_heads > 0 &&
                 model_takes_flash(shape);
    train->attention = flash ? ATTENTION_FLASH : ATTENTION_NAIVE;
}

static void fit_precision(struct scenario_point *point, struct diag *diag)
{
    struct train_options *train = &point->options.strategy.train;
    struct config_origin origin = scenario_origin(point, "train.attention");
    if (!asks_flash(train) || has_flash(train->precision))
        return;
    const char *precision = precision_names[train->precision];
    if (origin.kind == ORIGIN_STACK) {
        take_naive(train);
        diag_warn(diag, origin.at,
            "flash attention has no kernels in %s; the job has naive attention", precision);
    } else if (origin.kind != ORIGIN_TABLE) {
        diag_warn(diag, origin.at,
            "flash attention has no kernels in %s; PyTorch's memory-efficient kernel is taken to "
            "be as fast",
            precision);
    }
}

void needs_fall_back(struct scenario_point *point, struct diag *diag)
{
    struct train_options *train = &point->options.strategy.train;
    for (int i = 0; i < NEEDS; i++) {
        const struct hw_gpu *gpu = lacking(point, &needs[i]);
        struct config_origin origin = scenario_origin(point, needs[i].path);
        if (!gpu || !needs[i].asks(train) || origin.kind != ORIGIN_STACK)
            continue;
        needs[i].fall_back(train);
        diag_warn(diag, origin.at, "%s needs %s or newer, and GPU '%s' is %s; the job has %s",
            needs[i].what, needs[i].oldest, gpu->name, gpu->arch, needs[i].instead);
    }
    fit_precision(point, diag);
}

void needs_check(const struct scenario_point *point, struct diag *diag)
{
    for (int i = 0; i < NEEDS; i++) {
        const struct hw_gpu *gpu = lacking(point, &needs[i]);
        if (gpu && needs[i].asks(&point->options.strategy.train))
            diag_input(diag, check_place_of(point, needs[i].path),
                "%s needs %s or newer, and GPU '%s' is %s; take %s", needs[i].what, needs[i].oldest,
                gpu->name, gpu->arch, needs[i].instead);
    }
}
