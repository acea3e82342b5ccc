/* The number of threads for independent work: points, samples, rows of a table. All cores, unless
 * limited here or by OpenMP's OMP_NUM_THREADS. Results do not depend on it. */
#ifndef FLOPCAST_BASE_THREADS_H
#define FLOPCAST_BASE_THREADS_H

enum { THREADS_MAX = 1024 };

/* Applies to parallel loops that begin later, in the whole program. Without OpenMP there is one
 * thread, and this does nothing. */
void threads_limit(int n);

/* A loop that begins now may have another one within, which asks for threads_count() itself. */
void threads_nest(void);

/* How many a parallel loop has; one within another: what each thread of that has for itself, as 4
 * of 16 cores in a loop over 4 points. */
int threads_count(void);

#endif
