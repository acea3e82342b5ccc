/* Laws of DeepEP's dispatch and combine: which ranks and nodes a token reaches, and the bytes that
 * follow. */
#include "round.h"

/* Every way to choose k of the experts of `kept` of the groups, as likely as any other: the mean
 * number of parts that have one of them, by counting. */
static double counted(int experts, int k, int groups, int kept, int units)
{
    double ways = 0, reached = 0;
    for (unsigned chosen_groups = 0; chosen_groups < 1U << groups; chosen_groups++)
        for (unsigned chosen = 0; chosen < 1U << experts; chosen++) {
            unsigned touched = 0;
            bool possible =
                __builtin_popcount(chosen_groups) == kept && __builtin_popcount(chosen) == k;
            for (int e = 0; e < experts && possible; e++)
                if (chosen & 1U << e) {
                    possible = chosen_groups & 1U << (e * groups / experts);
                    touched |= 1U << (e * units / experts);
                }
            ways += possible;
            reached += possible ? __builtin_popcount(touched) : 0;
        }
    return reached / ways;
}

static void a_token_reaches_what_counting_says(void **state)
{
    (void)state;
    static const struct {
        int experts, k, groups, kept, units;
    } cases[] = {{8, 2, 1, 1, 4}, {8, 3, 1, 1, 2}, {8, 2, 1, 1, 8}, {8, 2, 1, 1, 1},
        {12, 3, 4, 2, 4}, {12, 3, 4, 2, 2}, {12, 3, 4, 2, 12}, {8, 2, 4, 3, 2}, {12, 4, 6, 4, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct coll_routing routing = {
            cases[i].experts, cases[i].k, cases[i].groups, cases[i].kept, .width = 1, .sms = 20};
        double want =
            counted(cases[i].experts, cases[i].k, cases[i].groups, cases[i].kept, cases[i].units);
        double got = coll_reach(&routing, cases[i].units);
        if (fabs(got - want) > 1e-12 * want)
            fail_msg("case %zu: %.17g, counted %.17g", i, got, want);
    }
}

/* DeepSeek-V3 goes to 4 of 8 groups: with a group a node to 4 nodes at most, where without groups
 * it would reach 5.3. */
static void groups_limit_nodes(void **state)
{
    (void)state;
    const struct coll_routing limited = {256, 8, 8, 4, 1, 20}, unlimited = {256, 8, 1, 1, 1, 20};
    assert_true(coll_reach(&limited, 8) < 4 && coll_reach(&limited, 8) > 3.5);
    assert_true(coll_reach(&unlimited, 8) > 5.2 && coll_reach(&unlimited, 8) < 5.4);
    assert_true(coll_reach(&limited, 64) <= 8);
}

/* In a node a rank sends R (n - 1) / n of its tokens over NVLink, nothing over NICs. All k experts
 * apart, as many as ranks: NCCL's all_to_all of k copies sends the same. */
static void a_node_sends_a_copy_to_each_rank(void **state)
{
    (void)state;
    const struct coll_routing two = {8, 2, 1, 1, 1, 20};
    const double tokens = 64e6;
    struct coll_cost cost = coll_routed(tokens, &two, shape_of(4, 1), &test_hw);
    double reached = 4 * (1 - 6.0 / 8 * 5 / 7); /* a rank has two of the eight */
    near(cost.bus_bytes, tokens * reached * 3 / 4);
    near(cost.gpu_out_factor, 1);
    near(cost.node_out_factor, 0);
    near(cost.max_rate_Bps, 100e9);
    near(cost.sms, 20);
    assert_int_equal(cost.algorithm, COLL_DEEPEP);
    struct coll_cost apart = coll_routed(tokens, &two, shape_of(8, 1), &test_hw);
    struct coll_cost copies =
        coll_choose(COLL_ALL_TO_ALL, 2 * tokens, shape_of(8, 1), &test_hw, COLL_FREE);
    near(apart.bus_bytes, copies.bus_bytes);
}

/* Over N nodes of p: M (N - 1) / N of the tokens of each rank pass its NIC, R (p - 1) / p its
 * NVLink; NCCL's copies would be k (N - 1) / N. Ranks that share each expert get all that it gets.
 */
static void nodes_get_a_token_once(void **state)
{
    (void)state;
    const struct coll_routing routing = {64, 8, 1, 1, 1, 20};
    const double tokens = 64e6, ranks = coll_reach(&routing, 32), nodes = coll_reach(&routing, 4);
    struct coll_shape shape = shape_of(32, 1);
    struct coll_cost cost = coll_routed(tokens, &routing, shape, &test_hw);
    near(cost.node_out_factor * cost.bus_bytes, 8 * tokens * nodes * 3 / 4);
    near(cost.gpu_out_factor * cost.bus_bytes, tokens * ranks * 7 / 8);
    assert_true(cost.all_pairs);
    near(cost.bus_bytes / cost.max_rate_Bps,
        tokens * nodes * 3 / 4 / (0.883 * 10e9)); /* a NIC of 10 GB/s a GPU */
    struct coll_cost copies = coll_choose(COLL_ALL_TO_ALL, 8 * tokens, shape, &test_hw, COLL_FREE);
    near(copies.node_out_factor * copies.bus_bytes, 8 * tokens * 8 * 3 / 4);
    const struct coll_routing wide = {64, 8, 1, 1, 2, 20};
    near(coll_routed(tokens, &wide, shape, &test_hw).bus_bytes,
        tokens * 2 * coll_reach(&wide, 16) * 31 / 32);
}

static void alone_there_is_nothing_to_send(void **state)
{
    (void)state;
    const struct coll_routing routing = {8, 2, 1, 1, 1, 20};
    near(coll_isolated_s(coll_routed(1e6, &routing, shape_of(1, 1), &test_hw)), 0);
}

/* 5 us and a hop of 2 inside; over nodes one of 20 besides. What leaves is read once, what arrives
 * is written. */
static void latency_and_traffic(void **state)
{
    (void)state;
    const struct coll_routing routing = {64, 8, 1, 1, 1, 20};
    near(coll_routed(64e6, &routing, shape_of(8, 1), &test_hw).latency_s, 7e-6);
    near(coll_routed(64e6, &routing, shape_of(32, 1), &test_hw).latency_s, 27e-6);
    const struct coll_routing every = {
        8, 8, 1, 1, 1, 20}; /* all experts: a token goes everywhere */
    near(coll_routed(64e6, &every, shape_of(8, 1), &test_hw).hbm_bytes, 9 * 64e6);
    near(coll_of(COLL_ALL_TO_ALL, 64e6, &every, shape_of(8, 1), &test_hw).sms, 20);
    assert_int_equal(
        coll_of(COLL_ALL_TO_ALL, 64e6, NULL, shape_of(8, 1), &test_hw).algorithm, COLL_P2P);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_reaches_what_counting_says),
        cmocka_unit_test(groups_limit_nodes),
        cmocka_unit_test(a_node_sends_a_copy_to_each_rank),
        cmocka_unit_test(nodes_get_a_token_once),
        cmocka_unit_test(alone_there_is_nothing_to_send),
        cmocka_unit_test(latency_and_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
