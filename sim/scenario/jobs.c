#include "scenario/jobs.h"

struct jobs jobs_begin(int n, const struct scenario_work *work)
{
    struct jobs jobs = {.work = work, .told = told_begin(n), .n = n};
    for (int i = 0; i < n && work->known; i++)
        jobs.done += work->known[i];
    return jobs;
}

bool jobs_wants(struct jobs *jobs, int job)
{
    return !atomic_load(&jobs->ended) && !(jobs->work->known && jobs->work->known[job]);
}

void jobs_end_one(struct jobs *jobs, int job, enum status status, const struct diag *diag)
{
    const struct scenario_work *work = jobs->work;
    told_keep(&jobs->told, job, diag);
#ifdef _OPENMP
#pragma omp critical(jobs_end_one)
#endif
    {
        jobs->done++;
        if (work->keep && status == STATUS_OK && !work->keep(work->self, job))
            atomic_store(&jobs->ended, true);
        if (work->progress)
            work->progress(work->self, jobs->done, jobs->n);
    }
}

enum status jobs_end(struct jobs *jobs, struct diag *diag)
{
    return told_end(&jobs->told, diag);
}
