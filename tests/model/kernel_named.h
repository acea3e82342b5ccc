/* Include after cmocka.h. */
#ifndef FLOPCAST_TESTS_MODEL_KERNEL_NAMED_H
#define FLOPCAST_TESTS_MODEL_KERNEL_NAMED_H

#include "model/model.h"

#include <string.h>

static inline const struct model_op *kernel_named(
    const struct model_op *kernels, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    fail_msg("no kernel %s", name);
    return NULL;
}

static inline int count_named(const struct model_op *ops, int n, const char *name)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += strcmp(ops[i].name, name) == 0;
    return found;
}

#endif
