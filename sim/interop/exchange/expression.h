/* Private to exchange: whole numbers and lists of them as a shell and Python write them in what
 * they pass on: "$((8 * N))" of a script, "([0]*3+[1]*58)" of an argument. + - * / % and
 * parentheses; + of two lists joins them, a list * n repeats it. What is no such expression,
 * overflows 64 bits, divides by less than 1, or has more items or brackets in one another than
 * these, is none. */
#ifndef FLOPCAST_EXCHANGE_EXPRESSION_H
#define FLOPCAST_EXCHANGE_EXPRESSION_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { EXPRESSION_MOST_ITEMS = 4096, EXPRESSION_MOST_DEPTH = 32 };

struct expression_value {
    int64_t number;
    int64_t *items; /* of a list, in the arena, with room for more; NULL: it is a number */
    int n, room;
};

/* name: the number of a name that begins at `at`, which it moves behind the name; it says whether
 * there is none, and whether its number is not known, which makes the value one that is not known.
 * NULL: there are no names. */
struct expression {
    const char *at;
    int64_t (*name)(struct expression *expression, void *self);
    void *self;
    struct arena *arena;
    bool bad, unknown;
    int depth;
};

/* All of the text; false: it is none. */
bool expression_read(struct expression_value *out, struct expression *expression);

#endif
