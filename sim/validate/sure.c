#include "validate/sure.h"

#include "base/files.h"

static void read_runs(struct sure *sure)
{
    struct diag unread = DIAG_INIT; /* then nothing is known */
    sure->read = true;
    sure->runs.arena = sure->arena = ARENA_INIT;
    nearest_load(&sure->runs, files_own(&sure->arena, "results/validated.csv"), &unread);
}

static struct sure_regime *find(struct sure *sure, const struct nearest_job *job, enum regime_of of, double waiting)
{
    for (int i = 0; i < sure->regimes.n; i++)
        if (sure->regimes.at[i]->regime.of == of && regime_rung_of(&sure->regimes.at[i]->job, job) == REGIME_ALIKE)
            return sure->regimes.at[i];
    struct sure_regime *found = ARENA_NEW(&sure->arena, struct sure_regime);
    *found = (struct sure_regime){.job = *job};
    regime_find(&found->regime, &sure->runs, job, of, waiting, NULL);
    found->narrow = found->regime;
    vec_push(&sure->regimes, found);
    return found;
}

const struct regime *sure_of(struct sure *sure, const struct scenario_point *point, enum regime_of of, double waiting)
{
    if (!sure->read)
        read_runs(sure);
    struct nearest_job job = nearest_job_of(&sure->arena, point);
    struct sure_regime *found = find(sure, &job, of, waiting);
    struct regime *out = ARENA_NEW(&sure->arena, struct regime);
    *out = regime_waiting(&found->regime, &sure->runs, waiting);
    if (waiting > found->regime.waiting)
        found->regime = *out;
    if (waiting < found->narrow.waiting)
        found->narrow = *out;
    return out;
}

void sure_set(struct sure *sure, const struct scenario_point *points, struct scenario_result *results, int n)
{
    for (int i = 0; i < n; i++) {
        struct scenario_result *result = &results[i];
        result->sure = (struct scenario_sure){0};
        if (result->exec.status != EXEC_OK)
            continue;
        const struct regime *regime = sure_of(sure, &points[i], REGIME_OF_SPEED, scenario_waiting_share(result));
        if (regime->known)
            result->sure = (struct scenario_sure){result->tflops_per_gpu * regime->factors.low,
                result->tflops_per_gpu * regime->factors.high, result->tokens_per_s_per_gpu * regime->factors.low,
                result->tokens_per_s_per_gpu * regime->factors.high};
    }
}

void sure_end(struct sure *sure)
{
    if (!sure->read)
        return;
    nearest_release(&sure->runs);
    vec_free(&sure->regimes);
    arena_release(&sure->arena);
}
