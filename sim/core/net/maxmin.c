/* Progressive filling, from scratch and over all flows: the reference that fair.c agrees with to
 * the last bit. In each round left and load of all links are summed anew from fixed and open flows,
 * in the order of flows. Keeping them up to date would be faster and would let rounding gather. */
#include "net/maxmin.h"

#include "base/status.h"

#include <math.h>

static const double MAXMIN_UNFIXED = -1;

/* The level to which all open flows can rise: the least of what links and rate caps allow. */
static double maxmin_next_level(const double *rates, const struct maxmin_flow *flows, int n_flows,
    const double *left, const double *load)
{
    double level = HUGE_VAL;
    for (int f = 0; f < n_flows; f++) {
        if (rates[f] != MAXMIN_UNFIXED)
            continue;
        if (flows[f].rate_cap < level)
            level = flows[f].rate_cap;
        for (int w = 0; w < flows[f].n_weights; w++) {
            int l = flows[f].weights[w].link;
            if (left[l] / load[l] < level)
                level = left[l] / load[l];
        }
    }
    return level;
}

/* Only the links that flows cross are looked at: the arrays may be those of a network of any size.
 */
static void set_loads(const double *rates, const struct maxmin_flow *flows, int n_flows,
    double *left, double *load, const double *capacity)
{
    for (int f = 0; f < n_flows; f++)
        for (int w = 0; w < flows[f].n_weights; w++) {
            int l = flows[f].weights[w].link;
            left[l] = capacity[l];
            load[l] = 0;
        }
    for (int f = 0; f < n_flows; f++)
        for (int w = 0; w < flows[f].n_weights; w++) {
            const struct link_weight *at = &flows[f].weights[w];
            if (rates[f] == MAXMIN_UNFIXED)
                load[at->link] += at->weight;
            else
                left[at->link] -= at->weight * rates[f];
        }
}

void maxmin_solve(double *rates, const struct maxmin_flow *flows, int n_flows,
    const double *capacity, double *left, double *load)
{
    for (int f = 0; f < n_flows; f++)
        rates[f] = MAXMIN_UNFIXED;
    for (int open = n_flows; open > 0;) {
        set_loads(rates, flows, n_flows, left, load, capacity);
        double level = maxmin_next_level(rates, flows, n_flows, left, load);
        BUG_IF(isinf(level), "a flow crosses no link and has no rate cap");
        if (level < 0) /* rounding only: left over from links that are exactly full */
            level = 0;
        int fixed = 0;
        for (int f = 0; f < n_flows; f++) {
            if (rates[f] != MAXMIN_UNFIXED)
                continue;
            bool stops = flows[f].rate_cap <= level * (1 + MAXMIN_SLACK);
            for (int w = 0; w < flows[f].n_weights && !stops; w++) {
                int l = flows[f].weights[w].link;
                stops = left[l] / load[l] <= level * (1 + MAXMIN_SLACK);
            }
            /* load is that of the round's start for every flow, so the order of flows does not
             * matter. */
            if (stops) {
                rates[f] = level;
                fixed++;
            }
        }
        BUG_IF(fixed == 0, "max-min filling does not advance");
        open -= fixed;
    }
}
