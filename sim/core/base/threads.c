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

int threads_count(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}
