/* A job checked and compiled, for tests of plans. */
#ifndef FLOPCAST_TESTS_CHECK_AND_COMPILE_H
#define FLOPCAST_TESTS_CHECK_AND_COMPILE_H

#include "strategy/strategy.h"

static inline struct source_pos no_place(const void *self, const char *path)
{
    (void)self;
    (void)path;
    return (struct source_pos){0};
}

static inline enum status check_and_compile(struct plan *plan,
    const struct strategy_options *options, const struct model *model, const struct hw *hw,
    int gpus, struct arena *arena, struct diag *diag)
{
    const struct strategy_places places = {no_place, NULL};
    if (strategy_check(options, model, hw, gpus, &places, diag) != STATUS_OK)
        return STATUS_INPUT;
    struct job job = strategy_job(options, model, hw, gpus);
    return strategy_compile(plan, &job, (struct source_pos){0}, arena, diag);
}

#endif
