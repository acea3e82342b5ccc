/* A growing array of any type: VEC(struct op) ops = {0}; vec_push(&ops, op); ops.at[i];
 * vec_free(&ops); */
#ifndef FLOPCAST_BASE_VEC_H
#define FLOPCAST_BASE_VEC_H

#include "base/arena.h"
#include "base/status.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *at;                                                                                  \
        int n, capacity;                                                                           \
    }

#define vec_reserve(vec, count)                                                                    \
    do {                                                                                           \
        if ((count) > (vec)->capacity) {                                                           \
            BUG_IF((vec)->capacity > INT_MAX / 2, "%d elements are as many as an array grows to",  \
                (vec)->capacity);                                                                  \
            int grown_ = (vec)->capacity ? 2 * (vec)->capacity : 16;                               \
            (vec)->capacity = grown_ > (count) ? grown_ : (count);                                 \
            (vec)->at = xrealloc((vec)->at, sizeof *(vec)->at * (size_t)(vec)->capacity);          \
        }                                                                                          \
    } while (0)

/* The count goes up last: the value may be one that names the vector. */
#define vec_push(vec, ...)                                                                         \
    do {                                                                                           \
        vec_reserve((vec), (vec)->n + 1);                                                          \
        (vec)->at[(vec)->n] = (__VA_ARGS__);                                                       \
        (vec)->n++;                                                                                \
    } while (0)

/* No more room than for what is there; it may grow again. */
#define vec_fit(vec)                                                                               \
    do {                                                                                           \
        if ((vec)->capacity > (vec)->n) {                                                          \
            (vec)->capacity = (vec)->n;                                                            \
            (vec)->at = xrealloc((vec)->at, sizeof *(vec)->at * (size_t)(vec)->n);                 \
        }                                                                                          \
    } while (0)

/* The elements are the arena's from now on, at `to`; the vector is empty. */
#define vec_keep(to, vec, arena)                                                                   \
    do {                                                                                           \
        vec_fit(vec);                                                                              \
        arena_take((arena), (vec)->at);                                                            \
        (to) = (vec)->at;                                                                          \
        (vec)->at = NULL;                                                                          \
        (vec)->n = (vec)->capacity = 0;                                                            \
    } while (0)

/* What `to` held is not freed. */
#define vec_copy(to, from)                                                                         \
    do {                                                                                           \
        (to)->capacity = (to)->n = (from)->n;                                                      \
        (to)->at = NULL;                                                                           \
        if ((to)->n > 0) {                                                                         \
            (to)->at = xrealloc(NULL, sizeof *(to)->at * (size_t)(to)->n);                         \
            memcpy((to)->at, (from)->at, sizeof *(to)->at *(size_t)(to)->n);                       \
        }                                                                                          \
    } while (0)

#define vec_free(vec) (free((vec)->at), (vec)->at = NULL, (vec)->n = (vec)->capacity = 0)

#endif
