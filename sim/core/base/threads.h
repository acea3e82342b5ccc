/* The number of threads for independent work: points, samples, rows of a table. All cores, unless
 * limited here or by OpenMP's OMP_NUM_THREADS. Results do not depend on it. */
#ifndef FLOPCAST_BASE_THREADS_H
#define FLOPCAST_BASE_THREADS_H

enum { THREADS_MAX = 1024 };

/* Applies to parallel loops that begin later, in the whole program. Without OpenMP there is one
 * thread, and this does nothing. */
void threads_limit(int n);

/* How many a parallel loop has. */
int threads_count(void);

#endif
