/* A stack profile: what a framework, in the versions of a time, makes of a GPU, and its settings. A
 * file under scenarios/stacks, named by the scenario's key `stack`; without one, the GPU file's own
 * numbers hold.
 *
 *   name: Composer with llm-foundry, 2023-24
 *   description: MPT in eager mode, Triton's FlashAttention
 *   settings:               # a partial scenario: what holds where the scenario says nothing
 *     train: {cross_entropy: fused, optimizer_impl: for_loop}
 *     run: {expandable_segments: true} # of section run what its launcher sets: PyTorch's allocator
 *   host:                   # the same of section host, for numbers that rest on measurements
 *     kernel_issue: {value: 22 us, kind: fitted, std_error: 2 us, source: "..."}
 *   rates:                  # by architecture; an architecture that is not listed keeps the GPU
 *     file's numbers Ampere:
 *       attention_efficiency: {value: 0.33, kind: fitted, std_error: 0.01, source: "..."}
 *
 * A rate takes the place of the GPU file's number of that name (hw/hw.h): one profile for a
 * framework, never one for a run. */
#ifndef FLOPCAST_SCENARIO_STACK_H
#define FLOPCAST_SCENARIO_STACK_H

#include "scenario/scenario.h"

struct stack {
    const char *name, *description;
    struct hw_gpu rates[HW_ARCHS];             /* in the order of hw_archs; unset: the GPU file's */
    struct quantity host[STRATEGY_HOST_COSTS]; /* as stack_host_table */
    struct scenario settings;                  /* those that given names */
    struct config_origins given;               /* "settings.train.fusion", in the arena */
};

extern const struct config_table stack_table;
extern const struct config_table
    stack_host_table; /* struct quantity[STRATEGY_HOST_COSTS]; the keys of section host */
struct stack stack_default(void); /* says nothing */

enum status stack_load(struct stack *out, const char *path, struct arena *arena, struct diag *diag);

/* Its rates for the point's GPU, and its settings where the point has the defaults. */
void stack_apply(struct scenario_point *point, const struct stack *stack);

/* The value of key `cost` of section host in the point's options. */
double *stack_host_setting(struct scenario_point *point, int cost);
/* Another value for a cost of the host that the point has from its stack profile. */
void stack_set_host(struct scenario_point *point, int cost, double value);

#endif
