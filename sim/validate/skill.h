/* Skill: how much nearer predicted ratios are than those of a rule with one parameter, a loss of so much of the speed
 * with each doubling of the GPUs. The loss is found by least squares on ratios of rows that fits rest on, and the skill
 * is 1 - mean |error| / mean |error of the rule| of all other ratios: 1 is perfect, 0 no better than the rule. */
#ifndef FLOPCAST_VALIDATE_SKILL_H
#define FLOPCAST_VALIDATE_SKILL_H

#include "validate/validate.h"

struct validate_skill {
    int n_fitted, n;           /* ratios that the rule is fitted to, that it is compared on; 0: nothing is known */
    double loss_of_doubling;   /* of the rule, a fraction */
    double mean, mean_of_rule; /* of |error|, fractions of 1 */
};

/* After validate_run(). */
struct validate_skill validate_skill(const struct validate_table *table);

#endif
