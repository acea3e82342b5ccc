/* How many jobs a law is tried on: FLOPCAST_LAW_DRAWS in the environment, else its usual number. */
#ifndef FLOPCAST_TESTS_LAW_DRAWS_H
#define FLOPCAST_TESTS_LAW_DRAWS_H

#include <stdlib.h>

static inline int law_draws(int usual)
{
    const char *given = getenv("FLOPCAST_LAW_DRAWS");
    return given ? atoi(given) : usual;
}

#endif
