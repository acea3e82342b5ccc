/* Private to plan/: the laws of plan_check() that a program of it obeys by itself. */
#ifndef FLOPCAST_PLAN_CHECK_H
#define FLOPCAST_PLAN_CHECK_H

#include "plan/fold.h"

/* Its ops have their positions, and it is not folded. False, and why. */
bool plan_program_holds(
    const struct plan *plan, const struct plan_program *program, char *why, size_t n);
/* The same of a program that is folded; what plan_folding_push() finds is not in it. */
bool plan_fold_holds(const struct plan *plan, const struct plan_fold *fold, char *why, size_t n);

#endif
