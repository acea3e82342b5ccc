#include "net/maxmin.h"

#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

enum { MOST = 40 };

static void solve(
    double *rates, const struct maxmin_flow *flows, int n_flows, const double *capacity)
{
    double left[MOST], load[MOST];
    maxmin_solve(rates, flows, n_flows, capacity, left, load);
}

static void near(double got, double want)
{
    assert_true(fabs(got - want) <= 1e-9 * fabs(want));
}

/* The textbook example (Bertsekas and Gallager, Data Networks, figure 6.14, in other numbers):
 * three links of 1, 2, 1; flow 0 crosses all of them, flows 1..3 one each, flow 4 shares link 0.
 * Link 0 carries three flows: 1/3 each. Link 2 then leaves flow 3 1 - 1/3 = 2/3, link 1 leaves flow
 * 2 2 - 1/3 = 5/3. */
static void three_links_in_a_row(void **state)
{
    (void)state;
    const double capacity[] = {1, 2, 1};
    const struct link_weight all[] = {{0, 1}, {1, 1}, {2, 1}}, first[] = {{0, 1}},
                             second[] = {{1, 1}}, third[] = {{2, 1}};
    const struct maxmin_flow flows[] = {{HUGE_VAL, all, 3}, {HUGE_VAL, first, 1},
        {HUGE_VAL, second, 1}, {HUGE_VAL, third, 1}, {HUGE_VAL, first, 1}};
    double rates[5];
    solve(rates, flows, 5, capacity);
    near(rates[0], 1.0 / 3);
    near(rates[1], 1.0 / 3);
    near(rates[4], 1.0 / 3);
    near(rates[2], 5.0 / 3);
    near(rates[3], 2.0 / 3);
}

/* A flow with a rate cap leaves the rest to the other: cap 2 of a link of 10 leaves 8. Weight 4
 * makes it 10 = 2 + 4 x, x = 2. */
static void bounds_and_weights(void **state)
{
    (void)state;
    const double capacity[] = {10};
    const struct link_weight once[] = {{0, 1}}, four[] = {{0, 4}};
    const struct maxmin_flow plain[] = {{2, once, 1}, {HUGE_VAL, once, 1}};
    const struct maxmin_flow weighted[] = {{2, once, 1}, {HUGE_VAL, four, 1}};
    double rates[2];
    solve(rates, plain, 2, capacity);
    near(rates[0], 2);
    near(rates[1], 8);
    solve(rates, weighted, 2, capacity);
    near(rates[0], 2);
    near(rates[1], 2);
}

struct network {
    double capacity[MOST];
    struct link_weight weights[MOST][4];
    struct maxmin_flow flows[MOST];
    int n_flows, n_links;
};

static void draw_network(struct network *net, struct rng_stream *rng)
{
    net->n_links = 2 + (int)(rng_uniform(rng) * 20);
    net->n_flows = 1 + (int)(rng_uniform(rng) * (MOST - 1));
    for (int l = 0; l < net->n_links; l++)
        net->capacity[l] = 1 + 99 * rng_uniform(rng);
    for (int f = 0; f < net->n_flows; f++) {
        int n = 1 + (int)(rng_uniform(rng) * 3), first = (int)(rng_uniform(rng) * net->n_links);
        int used = 0;
        for (; used < n && first + used < net->n_links; used++)
            net->weights[f][used] = (struct link_weight){first + used, 0.5 + rng_uniform(rng)};
        double rate_cap = rng_uniform(rng) < 0.3 ? 10 * rng_uniform(rng) + 0.1 : HUGE_VAL;
        net->flows[f] = (struct maxmin_flow){rate_cap, net->weights[f], used};
    }
}

/* The law that defines max-min fairness: no link is overfull, and every flow is at its rate cap or
 * crosses a full link on which no flow is faster (Bertsekas and Gallager: a bottleneck). */
static void random_networks_obey_the_law(void **state)
{
    (void)state;
    struct rng_stream rng = rng_stream(7, 1, 1);
    for (int i = 0; i < 1000; i++) {
        struct network net;
        double rates[MOST], used[MOST] = {0}, fastest[MOST] = {0};
        draw_network(&net, &rng);
        solve(rates, net.flows, net.n_flows, net.capacity);
        for (int f = 0; f < net.n_flows; f++)
            for (int u = 0; u < net.flows[f].n_weights; u++) {
                int l = net.weights[f][u].link;
                used[l] += net.weights[f][u].weight * rates[f];
                fastest[l] = fmax(fastest[l], rates[f]);
            }
        for (int l = 0; l < net.n_links; l++)
            assert_true(used[l] <= net.capacity[l] * (1 + 1e-9));
        for (int f = 0; f < net.n_flows; f++) {
            int has_bottleneck = rates[f] >= net.flows[f].rate_cap * (1 - 1e-9);
            for (int u = 0; u < net.flows[f].n_weights; u++) {
                int l = net.weights[f][u].link;
                has_bottleneck |=
                    used[l] >= net.capacity[l] * (1 - 1e-9) && rates[f] >= fastest[l] * (1 - 1e-9);
            }
            assert_true(has_bottleneck);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_links_in_a_row),
        cmocka_unit_test(bounds_and_weights),
        cmocka_unit_test(random_networks_obey_the_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
