/* The best interval between checkpoints, by simulation.
 *
 * The mean share of training over n histories is a noisy and flat function of the interval. All
 * intervals of a round are simulated with the same seeds, so with the same failures, which makes
 * their differences far less noisy than the shares. Nine intervals in equal factors about a middle
 * are fitted by a parabola in the logarithm, and its top is the next middle, with narrower spread:
 * three rounds, 27 n histories. Histories are as long as it takes to see 400 failures in all.
 *
 * Subtle: a parabola that opens upwards has no top; then the best of the nine points is taken.
 * Daly's interval is where the search begins, and the answer where checkpoints and lost work are
 * too small to tell intervals apart. */
#include "goodput/goodput.h"

#include "base/vec.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

/* Intervals about the middle, apart by equal factors. */
enum { POINTS = 9, ROUNDS = 3 };
static const double SPREAD[ROUNDS] = {
    4, 2, 2}; /* of a round: from middle / SPREAD to middle x SPREAD */
static const double SEEN =
    3e-4; /* assumed: share of the time that checkpoints and lost work take, to be searched */

static double mean_share(
    const struct goodput_job *job, double interval_s, int n, double days, uint64_t seed)
{
    struct goodput_run *runs = xcalloc((size_t)n, sizeof *runs);
    double sum = 0;
    goodput_simulate_all(runs, n, job, interval_s, days, seed);
    for (int i = 0; i < n; i++)
        sum += goodput_share(&runs[i]);
    free(runs);
    return sum / n;
}

/* Where the parabola through the points (-1 ... 1, shares), by least squares, is highest: a place
 * in [-1, 1]. Points lie evenly, so x and x^2 - mean are orthogonal. */
static double top(const double shares[POINTS])
{
    double xx = 0, xy = 0, qq = 0, qy = 0, mean = 0;
    int best = 0;
    for (int i = 0; i < POINTS; i++) {
        double x = 2.0 * i / (POINTS - 1) - 1;
        mean += x * x / POINTS;
        best = shares[i] > shares[best] ? i : best;
    }
    for (int i = 0; i < POINTS; i++) {
        double x = 2.0 * i / (POINTS - 1) - 1, q = x * x - mean;
        xx += x * x;
        xy += x * shares[i];
        qq += q * q;
        qy += q * shares[i];
    }
    double slope = xy / xx, curve = qy / qq;
    if (curve >= 0)
        return 2.0 * best / (POINTS - 1) - 1;
    return fmin(1, fmax(-1, -slope / (2 * curve)));
}

double goodput_search_s(const struct goodput_job *job, int n, double days, uint64_t seed)
{
    struct goodput_costs costs = goodput_costs(job);
    if (isinf(costs.mtbf_s))
        return days * S_PER_DAY;
    if (costs.stall_s <= 0)
        return job->step_s;
    double enough = GOODPUT_SEARCH_FAILURES * costs.mtbf_s / n / S_PER_DAY;
    double long_days = fmin(GOODPUT_MAX_DAYS, fmax(days, enough));
    double middle = fmax(goodput_daly_s(&costs), fmax(job->step_s, costs.write_s));
    if (costs.stall_s / middle + middle / (2 * costs.mtbf_s) < SEEN)
        return middle;
    for (int round = 0; round < ROUNDS; round++) {
        double shares[POINTS];
        for (int i = 0; i < POINTS; i++)
            shares[i] = mean_share(
                job, middle * pow(SPREAD[round], 2.0 * i / (POINTS - 1) - 1), n, long_days, seed);
        middle *= pow(SPREAD[round], top(shares));
    }
    return fmax(middle, job->step_s);
}

struct goodput_band goodput_band(double *values, int n)
{
    static const double LOW = 0.05, HIGH = 0.95;
    gsl_sort(values, 1, (size_t)n);
    return (struct goodput_band){gsl_stats_mean(values, 1, (size_t)n),
        gsl_stats_quantile_from_sorted_data(values, 1, (size_t)n, LOW),
        gsl_stats_quantile_from_sorted_data(values, 1, (size_t)n, HIGH)};
}
