#include "base/threads.h"

#ifdef _OPENMP
#include <omp.h>
#endif

void threads_limit(int n)
{
#ifdef _OPENMP
    omp_set_num_threads(n);
#else
    (void)n;
#endif
}

void threads_nest(void)
{
#ifdef _OPENMP
    omp_set_max_active_levels(2);
#endif
}

int threads_count(void)
{
#ifdef _OPENMP
    int all = omp_get_max_threads(), team = omp_in_parallel() ? omp_get_num_threads() : 1;
    return all > team ? all / team : 1;
#else
    return 1;
#endif
}
