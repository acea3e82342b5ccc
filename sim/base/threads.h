/* How many threads work on what can be done at a time: points, samples, rows of a table. All cores unless it is limited
 * here, or by OpenMP's OMP_NUM_THREADS. No result depends on it. */
#ifndef FLOPCAST_BASE_THREADS_H
#define FLOPCAST_BASE_THREADS_H

enum { THREADS_MAX = 1024 };

/* Of loops that begin later, for the whole program. Without OpenMP there is one thread, and this does nothing. */
void threads_limit(int n);

#endif
