/* A stack profile: what a framework, in the versions of a time, makes of a GPU. A file under scenarios/stacks, named by
 * the scenario's key `stack`; without one, the GPU file's own numbers hold.
 *
 *   name: Composer with llm-foundry, 2023-24
 *   description: MPT in eager mode, Triton's FlashAttention
 *   rates:                  # by architecture; an architecture that is not listed keeps the GPU file's numbers
 *     Ampere:
 *       attention_efficiency: {value: 0.33, kind: fitted, std_error: 0.01, source: "..."}
 *   kernels: {cross_entropy: fused, optimizer_impl: for_loop} # what it launches, where the scenario does not say
 *
 * Each number takes the place of the GPU file's number of that name (hw/hw.h): one profile for a framework, never one
 * for a run. */
#ifndef FLOPCAST_SCENARIO_STACK_H
#define FLOPCAST_SCENARIO_STACK_H

#include "config/config.h"
#include "hw/hw.h"
#include "strategy/strategy.h"

struct stack_rates { /* unset: the GPU file's */
    struct quantity gemm_sustained, attention_efficiency, attention_backward, pointwise_efficiency, norm_row_time,
        conv_efficiency, overlap_slowdown, step_pause;
};

struct stack {
    const char *name, *description;
    struct stack_rates rates[HW_ARCHS];
    struct stack_kernels {  /* -1: the stack says nothing */
        int cross_entropy;  /* enum cross_entropy */
        int optimizer_impl; /* enum optimizer_impl */
        int fusion;         /* enum kernel_fusion */
        int memory_format;  /* enum image_format */
        int64_t fsdp_version;
        int stage3_fetch;                                 /* enum stage3_fetch: of DeepSpeed, by its version */
        int broadcast_buffers, zero_grad, divide_buckets; /* 0, 1: of DDP */
        int clip_grad_norm;                               /* 0, 1 */
        int weight_decay;                                 /* 0, 1: of SGD */
        int overlap_sync_param;                           /* 0, 1: of InternEvo */
    } kernels;
};

extern const struct config_table stack_table;
struct stack stack_default(void); /* says nothing */

enum status stack_load(struct stack *out, const char *path, struct arena *arena, struct diag *diag);

void stack_apply(struct hw_gpu *gpu, const struct stack *stack);

#endif
