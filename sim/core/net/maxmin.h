/* Max-min fair rates: pure arrays in, rates out. Knows no network.
 *
 * Flow f puts weight x rate_f on each link that it crosses. Rates are raised together until a link
 * is full or a flow reaches its rate cap; those flows stop there, the rest go on (progressive
 * filling; Bertsekas and Gallager, Data Networks, 6.5.2). The result is the unique allocation where
 * no rate can rise without lowering a smaller or equal one. Cost: O(rounds x weights), rounds <=
 * flows. */
#ifndef FLOPCAST_NET_MAXMIN_H
#define FLOPCAST_NET_MAXMIN_H

/* A link counts as full, and a flow as at its rate cap, when within this relative distance: rates
 * are sums of up to a few thousand doubles, whose rounding stays far below it. */
#define MAXMIN_SLACK 1e-12

struct link_weight {
    int link;
    double weight; /* > 0 */
};

struct maxmin_flow {
    double rate_cap; /* > 0; may be infinite when the flow crosses a link */
    const struct link_weight *weights;
    int n_weights;
};

/* rates[n_flows] out. capacity (> 0), left and load are indexed by link; the last two are scratch,
 * and of all three only the links that the flows cross are touched. */
void maxmin_solve(double *rates, const struct maxmin_flow *flows, int n_flows,
    const double *capacity, double *left, double *load);

#endif
