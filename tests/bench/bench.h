/* What benchmarks share. */
#ifndef FLOPCAST_TESTS_BENCH_H
#define FLOPCAST_TESTS_BENCH_H

#include <time.h>

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
