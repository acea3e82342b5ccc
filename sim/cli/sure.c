#include "cli/sure.h"

#include "base/files.h"
#include "cli/words.h"

#include <math.h>

static void read_runs(struct sure *sure)
{
    struct diag unread = DIAG_INIT; /* then nothing is known */
    sure->read = true;
    sure->runs.arena = sure->arena = ARENA_INIT;
    nearest_load(&sure->runs, files_own(&sure->arena, "results/validated.csv"), &unread);
}

static struct sure_regime *find(struct sure *sure, const struct nearest_job *job, enum regime_of of)
{
    for (int i = 0; i < sure->regimes.n; i++)
        if (sure->regimes.at[i]->regime.of == of && regime_rung_of(&sure->regimes.at[i]->job, job) == REGIME_ALIKE)
            return sure->regimes.at[i];
    struct sure_regime *found = ARENA_NEW(&sure->arena, struct sure_regime);
    *found = (struct sure_regime){.job = *job};
    regime_find(&found->regime, &sure->runs, job, of, 0, NULL);
    vec_push(&sure->regimes, found);
    return found;
}

const struct regime *sure_of(struct sure *sure, const struct scenario_point *point, enum regime_of of, double waiting)
{
    if (!sure->read)
        read_runs(sure);
    struct nearest_job job = nearest_job_of(&sure->arena, point);
    struct sure_regime *found = find(sure, &job, of);
    struct regime *out = ARENA_NEW(&sure->arena, struct regime);
    *out = regime_waiting(&found->regime, &sure->runs, waiting);
    if (waiting > found->regime.waiting)
        found->regime = *out;
    return out;
}

/* Digits behind the point, below 0 before it, of which the last is worth at most a twentieth of half the interval. */
static int digits_of(const struct regime *regime, double value, int digits)
{
    double half = fabs(value) * (regime->factors.high - regime->factors.low) / 2;
    return regime->known && half > 0 ? (int)fmin(digits, -floor(log10(half / 20))) : digits;
}

static const char *rounded(struct arena *arena, double value, int digits)
{
    double unit = pow(10, -digits);
    return digits >= 0 ? words_number(arena, value, digits, false)
                       : words_number(arena, round(value / unit) * unit, 0, false);
}

const char *sure_number(struct arena *arena, const struct regime *regime, double value, int digits)
{
    return rounded(arena, value, digits_of(regime, value, digits));
}

const char *sure_range(struct arena *arena, const struct regime *regime, double value, int digits)
{
    if (!regime->known)
        return "-";
    digits = digits_of(regime, value, digits);
    return arena_printf(arena, "%s .. %s", rounded(arena, value * regime->factors.low, digits),
        rounded(arena, value * regime->factors.high, digits));
}

void sure_print(FILE *out, struct sure *sure)
{
    for (int i = 0; i < sure->regimes.n; i++) {
        const struct sure_regime *found = sure->regimes.at[i];
        fputs(i == 0 ? "\n" : "", out);
        words_paragraph(
            out, arena_printf(&sure->arena, "how sure: %s", regime_text(&sure->arena, &found->regime, &found->job)));
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
