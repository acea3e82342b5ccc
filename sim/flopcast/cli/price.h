/* --price NAME=DOLLARS: of the GPUs of a command's scenario whose name has all words of NAME, in
 * that order: "h100" and "h100-80gb" are H100-SXM5-80GB. */
#ifndef FLOPCAST_CLI_PRICE_H
#define FLOPCAST_CLI_PRICE_H

#include "options/arguments.h"

struct gpu_price {
    const char *name, *text; /* the text is all of it */
    double usd_per_hour;
};

/* Texts and the list in the heap until prices_free(). */
struct prices {
    VEC(struct gpu_price) list;
    struct arena texts;
};
void prices_free(struct prices *prices);

/* In `prices` of type. */
#define PRICE_OPTION(type)                                                                         \
    {                                                                                              \
        "price", "NAME=DOLLARS",                                                                   \
            "Dollars an hour of a GPU, as in h100=3.2, instead of its file's; may be repeated",    \
            OPTION_TAKE, .member = offsetof(type, prices), .take = argument_price,                 \
                         .flags = OPTION_KEYS                                                      \
    }
void argument_price(void *self, const struct argument *argument);

/* These prices in place of the files'. A name that several of the GPUs are called is an error, one
 * that none is, as in a list of prices for all, a warning. */
enum status prices_set(
    const struct prices *prices, struct scenario_set *set, struct arena *arena, struct diag *diag);

#endif
