/* How much a prediction depends on each number that has a standard error: two simulations a
 * parameter, one standard error lower and higher, all of them at once.
 *
 * The effect is half the logarithm of the ratio of both speeds. Squares of effects add up to the
 * variance where numbers are independent; sensitivity_sum() also adds the products weighted by
 * the correlations of fits. What is subtle: the host's costs are one part (parameter NULL),
 * drawn together; a parameter whose two runs are equal to the bit is only counted, and so is one
 * with which the job does not fit. */
#include "study/sensitivity.h"

#include "study/fit.h"

#include <math.h>
#include <stdlib.h>

static int by_effect(const void *a, const void *b)
{
    const struct sensitivity_part *one = a, *two = b;
    double first = fabs(one->effect), second = fabs(two->effect);
    return (first < second) - (first > second);
}

static double sensitivity_correlation(
    const struct hw_fits *fits, const struct sensitivity_part *a, const struct sensitivity_part *b)
{
    if (!a->parameter || !b->parameter)
        return a->parameter == b->parameter;
    return hw_correlation(fits, a->parameter, b->parameter);
}

void sensitivity_sum(struct sensitivity *out, const struct hw_fits *fits)
{
    double squares = 0, together = 0;
    for (int i = 0; i < out->n_parts; i++)
        out->parts[i].effect = log(out->parts[i].high / out->parts[i].low) / 2;
    qsort(out->parts, (size_t)out->n_parts, sizeof *out->parts, by_effect);
    for (int i = 0; i < out->n_parts; i++)
        for (int j = 0; j < out->n_parts; j++) {
            double product = out->parts[i].effect * out->parts[j].effect;
            squares += i == j ? product : 0;
            together += sensitivity_correlation(fits, &out->parts[i], &out->parts[j]) * product;
        }
    out->independent = sqrt(squares);
    out->correlated = sqrt(
        fmax(0, together)); /* parameters without an effect are left out: no rounding below 0 */
}

/* The point as it is, then each parameter lower and higher, the host's costs last. */
static struct scenario_set variants(const struct scenario_point *point,
    const struct hw_parameter *parameters, int n, struct arena *arena)
{
    struct scenario_set set = {.file = point->file,
        .points = ARENA_ARRAY(arena, struct scenario_point, 2 * n + 3),
        .n_points = 2 * n + 3};
    for (int i = 0; i < set.n_points; i++) {
        set.points[i] = *point;
        set.points[i].options.exec.n_trace_ranks = 0;
        if (i > 0)
            scenario_shift(
                &set.points[i], i <= 2 * n ? &parameters[(i - 1) / 2] : NULL, i % 2 ? -1 : 1);
    }
    return set;
}

static void sensitivity_collect(struct sensitivity *out, const struct scenario_result *results,
    const struct hw_parameter *parameters, int n, struct arena *arena)
{
    *out = (struct sensitivity){.tflops_per_gpu = results[0].tflops_per_gpu,
        .parts = ARENA_ARRAY(arena, struct sensitivity_part, n + 1)};
    for (int i = 0; i <= n; i++) {
        const struct scenario_result *low = &results[2 * i + 1], *high = &results[2 * i + 2];
        bool ran = low->exec.status == EXEC_OK && high->exec.status == EXEC_OK;
        if (ran && low->tflops_per_gpu != high->tflops_per_gpu)
            out->parts[out->n_parts++] = (struct sensitivity_part){i < n ? &parameters[i] : NULL,
                low->tflops_per_gpu, high->tflops_per_gpu, .effect = 0};
        else
            out->n_idle++;
    }
}

static enum status sensitivity_refuse(const struct scenario_point *point, struct diag *diag)
{
    return diag_input(diag, (struct source_pos){.file = point->file},
        "the point is out of memory, so that it has no speed that could depend on anything; "
        "`flopcast run` says what it needs");
}

enum status scenario_sensitivity(struct sensitivity *out, const struct scenario_point *point,
    const struct scenario_uncertainty *uncertainty, scenario_progress progress, void *self,
    struct arena *arena, struct diag *diag)
{
    const struct hw_parameter *parameters;
    struct scenario_point quiet = *point;
    exec_be_quiet(&quiet.options.exec);
    if (!fit_fits(fit_verdict(&quiet))) /* a hundred simulations would find the same */
        return sensitivity_refuse(point, diag);
    int n = hw_parameters(&parameters, &point->hw, arena);
    struct scenario_set set = variants(point, parameters, n, arena);
    struct scenario_result *results = xcalloc((size_t)set.n_points, sizeof *results);
    struct arena *arenas = xcalloc((size_t)set.n_points, sizeof *arenas);
    enum status status = scenario_simulate_all(results, arenas, &set, progress, self, diag);
    if (status == STATUS_OK && results[0].exec.status != EXEC_OK)
        status = sensitivity_refuse(point, diag);
    if (status == STATUS_OK) {
        sensitivity_collect(out, results, parameters, n, arena);
        sensitivity_sum(out, &uncertainty->fits);
    }
    for (int i = 0; i < set.n_points; i++)
        arena_release(&arenas[i]);
    free(arenas);
    free(results);
    return status;
}
