/* Private to strategy/: a job whose options are looked at, of check.c (what excludes one another)
 * and check_parallelism.c (how it is cut). */
#ifndef FLOPCAST_STRATEGY_CHECK_H
#define FLOPCAST_STRATEGY_CHECK_H

#include "strategy/strategy.h"

struct job_check {
    const struct strategy_options *options;
    const struct model *model; /* NULL: not known */
    const struct hw *hw;
    int gpus;
    const struct strategy_places *places;
    struct diag *diag;
};

/* Where the setting was given. */
static inline struct source_pos job_at(const struct job_check *job, const char *path)
{
    return job->places->at(job->places->self, path);
}

#endif
