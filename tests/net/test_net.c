#include "net/net.h"

#include "base/rng.h"
#include "net/fair.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

struct fixture {
    struct engine engine;
    struct net net;
    uint32_t ended, starter, capacity, rerouter, asker;
    ps_t end[4];
    struct link_weight use, detour;
    double carried; /* when the asker was there */
};

static void on_ended(void *self, const struct event *event)
{
    ((struct fixture *)self)->end[event->target] = event->time;
}

/* arg: bytes of the flow that starts, target: its id. */
static void on_start(void *self, const struct event *event)
{
    struct fixture *fixture = self;
    net_start(&fixture->net, (int)event->target, (double)event->arg, HUGE_VAL, &fixture->use, 1,
        (struct net_listener){fixture->ended, event->target});
}

/* arg: the capacity in B/s that the link of all flows has from now on. */
static void on_capacity(void *self, const struct event *event)
{
    struct fixture *fixture = self;
    net_set_capacity(&fixture->net, fixture->use.link, (double)event->arg);
}

/* Slot target takes the detour. */
static void on_reroute(void *self, const struct event *event)
{
    struct fixture *fixture = self;
    net_reroute(&fixture->net, (int)event->target, &fixture->detour, 1);
}

static void on_ask(void *self, const struct event *event)
{
    struct fixture *fixture = self;
    (void)event;
    fixture->carried = net_carried(&fixture->net, fixture->use.link);
}

static void set_up(struct fixture *fixture, double capacity)
{
    engine_init(&fixture->engine);
    net_init(&fixture->net, &fixture->engine);
    fixture->ended = engine_register(&fixture->engine, on_ended, fixture);
    fixture->starter = engine_register(&fixture->engine, on_start, fixture);
    fixture->capacity = engine_register(&fixture->engine, on_capacity, fixture);
    fixture->rerouter = engine_register(&fixture->engine, on_reroute, fixture);
    fixture->asker = engine_register(&fixture->engine, on_ask, fixture);
    fixture->use = (struct link_weight){net_add_link(&fixture->net, capacity), 1};
    for (int i = 0; i < 4; i++)
        net_add_flow(&fixture->net);
}

static void tear_down(struct fixture *fixture)
{
    net_release(&fixture->net);
    engine_release(&fixture->engine);
}

static void expect_s(ps_t got, double want_s)
{
    assert_true(llabs((long long)(got - ps_from_s(want_s))) <= 2);
}

/* 100 B/s. A: 300 B from 0 s, B: 100 B from 1 s. A alone moves 100 B; then both get 50 B/s: B ends
 * at 3 s; A has 100 B left and ends at 4 s. */
static void two_flows_share_a_link(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    set_up(&fixture, 100);
    engine_at(&fixture.engine, 0, fixture.starter, 0, 300);
    engine_at(&fixture.engine, PS_PER_S, fixture.starter, 1, 100);
    engine_run(&fixture.engine);
    expect_s(fixture.end[1], 3);
    expect_s(fixture.end[0], 4);
    assert_true(
        fabs(net_carried(&fixture.net, fixture.use.link) - 400) < 1e-6); /* bytes are conserved */
    tear_down(&fixture);
}

/* 100 B/s. A: 1000 B from 0 s; B: 10 B at 1, 2, 3, 4 and 5 s, each time 0.2 s beside A, whose rate
 * falls and rises and whose end comes 0.1 s later, to 10.5 s. That costs one event, at 10 s, where
 * the end had been at first; each B costs its start, its end, two solutions and its listener's; A
 * the same but a second solution, as there is nobody left. */
static void an_end_that_comes_later_costs_no_event(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    set_up(&fixture, 100);
    engine_at(&fixture.engine, 0, fixture.starter, 0, 1000);
    for (int s = 1; s <= 5; s++)
        engine_at(&fixture.engine, s * PS_PER_S, fixture.starter, 1, 10);
    engine_run(&fixture.engine);
    expect_s(fixture.end[1], 5.2);
    expect_s(fixture.end[0], 10.5);
    assert_int_equal(fixture.engine.events, 1 + 5 * 5 + 4);
    tear_down(&fixture);
}

/* A: 300 B, B: 100 B from 1 s: at 2.5 s, in the middle of both, the link has carried 250 B; who
 * asks changes nothing. */
static void bytes_count_while_they_move(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    set_up(&fixture, 100);
    engine_at(&fixture.engine, 0, fixture.starter, 0, 300);
    engine_at(&fixture.engine, PS_PER_S, fixture.starter, 1, 100);
    engine_at(&fixture.engine, 5 * PS_PER_S / 2, fixture.asker, 0, 0);
    engine_run(&fixture.engine);
    assert_true(fabs(fixture.carried - 250) < 1e-6);
    expect_s(fixture.end[1], 3);
    expect_s(fixture.end[0], 4);
    assert_true(fabs(net_carried(&fixture.net, fixture.use.link) - 400) < 1e-6);
    tear_down(&fixture);
}

/* Four equal flows at the same instant: 4 x 100 B at 25 B/s each end together at 4 s, whatever the
 * order of their start. */
static void flows_of_one_instant_are_settled_together(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    set_up(&fixture, 100);
    for (uint32_t i = 0; i < 4; i++)
        engine_at(&fixture.engine, 0, fixture.starter, 3 - i, 100);
    engine_run(&fixture.engine);
    for (int i = 0; i < 4; i++)
        expect_s(fixture.end[i], 4);
    tear_down(&fixture);
}

/* Nothing else happens when the link changes. 300 B: 100 in the first second, 50 in the next at 50
 * B/s, the last 150 from then on at 300 B/s. */
static void a_flow_has_what_its_link_gives_at_each_moment(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    set_up(&fixture, 100);
    engine_at(&fixture.engine, 0, fixture.starter, 0, 300);
    engine_at(&fixture.engine, PS_PER_S, fixture.capacity, 0, 50);
    engine_at(&fixture.engine, 2 * PS_PER_S, fixture.capacity, 0, 300);
    engine_run(&fixture.engine);
    expect_s(fixture.end[0], 2.5);
    assert_true(fabs(net_carried(&fixture.net, fixture.use.link) - 300) < 1e-6);
    tear_down(&fixture);
}

/* A and B, 300 B each, share 100 B/s for 2 s. Then A takes its last 200 B over a link of 25 B/s, to
 * 10 s; B has the first link alone and needs 2 s for its last 200 B. */
static void a_flow_on_another_way_leaves_its_share_behind(void **state)
{
    (void)state;
    struct fixture fixture = {0};
    set_up(&fixture, 100);
    fixture.detour = (struct link_weight){net_add_link(&fixture.net, 25), 1};
    engine_at(&fixture.engine, 0, fixture.starter, 0, 300);
    engine_at(&fixture.engine, 0, fixture.starter, 1, 300);
    engine_at(&fixture.engine, 2 * PS_PER_S, fixture.rerouter, 0, 0);
    engine_run(&fixture.engine);
    expect_s(fixture.end[1], 4);
    expect_s(fixture.end[0], 10);
    assert_true(fabs(net_carried(&fixture.net, fixture.use.link) - 400) < 1e-6);
    assert_true(fabs(net_carried(&fixture.net, fixture.detour.link) - 200) < 1e-6);
    tear_down(&fixture);
}

enum { LINKS = 12, FLOWS = 60, STARTS = 2000 };

/* Flows over random links, most of them over link 0 too, come and go, some at one instant; after
 * each solution the rates must be those that solving every active flow anew gives. Bits may differ
 * where two components fill within 1e-12 of each other. */
struct churn {
    struct engine engine;
    struct net net;
    struct rng_stream rng;
    struct link_weight weights[FLOWS][4];
    uint32_t ended, starter, checker;
    int checked;
};

static void on_churn_start(void *self, const struct event *event)
{
    struct churn *churn = self;
    int id = (int)event->target;
    if (churn->net.flows.at[id].active)
        return;
    int first = 1 + (int)(rng_uniform(&churn->rng) * (LINKS - 1)),
        n = 1 + (int)(rng_uniform(&churn->rng) * 3);
    for (int u = 0; u < n; u++)
        churn->weights[id][u] =
            (struct link_weight){1 + (first + 5 * u) % (LINKS - 1), 0.5 + rng_uniform(&churn->rng)};
    if (rng_uniform(&churn->rng) < 0.6)
        churn->weights[id][n++] = (struct link_weight){0, 0.5 + rng_uniform(&churn->rng)};
    double rate_cap = rng_uniform(&churn->rng) < 0.3 ? 5 + 20 * rng_uniform(&churn->rng) : HUGE_VAL;
    net_start(&churn->net, id, 1 + 99 * rng_uniform(&churn->rng), rate_cap, churn->weights[id], n,
        (struct net_listener){churn->ended, event->target});
    engine_at(&churn->engine, event->time + 1, churn->checker, 0, 0);
}

static void on_churn_end(void *self, const struct event *event)
{
    struct churn *churn = self;
    engine_at(&churn->engine, event->time + 1, churn->checker, 0, 0);
}

static void on_churn_check(void *self, const struct event *event)
{
    (void)event;
    struct churn *churn = self;
    struct maxmin_flow all[FLOWS];
    double rates[FLOWS], left[LINKS], load[LINKS];
    int ids[FLOWS], n = 0;
    for (int s = 0; s < FLOWS; s++) {
        const struct net_flow *flow = &churn->net.flows.at[s];
        if (!flow->active)
            continue;
        all[n] = (struct maxmin_flow){flow->rate_cap, flow->weights, flow->n_weights};
        ids[n++] = s;
    }
    maxmin_solve(rates, all, n, churn->net.capacity.at, left, load);
    for (int i = 0; i < n; i++)
        assert_true(fabs(churn->net.flows.at[ids[i]].rate - rates[i]) <= 1e-11 * rates[i]);
    churn->checked += n > 1;
}

static void only_what_changed_is_solved_and_all_rates_hold(void **state)
{
    (void)state;
    struct churn churn = {.rng = rng_stream(3, 1, 4)};
    engine_init(&churn.engine);
    net_init(&churn.net, &churn.engine);
    churn.ended = engine_register(&churn.engine, on_churn_end, &churn);
    churn.starter = engine_register(&churn.engine, on_churn_start, &churn);
    churn.checker = engine_register(&churn.engine, on_churn_check, &churn);
    for (int l = 0; l < LINKS; l++)
        net_add_link(&churn.net, (l == 0 ? 100 : 10) + 90 * rng_uniform(&churn.rng));
    for (int s = 0; s < FLOWS; s++)
        net_add_flow(&churn.net);
    for (int i = 0; i < STARTS; i++)
        engine_at(&churn.engine, (ps_t)(rng_uniform(&churn.rng) * 400) * PS_PER_S, churn.starter,
            (uint32_t)(rng_uniform(&churn.rng) * FLOWS), 0);
    engine_run(&churn.engine);
    for (int s = 0; s < FLOWS; s++)
        assert_false(churn.net.flows.at[s].active);
    assert_true(churn.checked > STARTS / 2);
    net_release(&churn.net);
    engine_release(&churn.engine);
}

/* Flows 0 and 1 share link 0 of 100 B/s, 50 each; flow 1 also crosses link 1 of 100 B/s, on which
 * flow 2 starts and finds 50, which is its share there: nobody else is solved anew. Where link 1
 * has 99 B/s it finds 49, and its share is 49.5, which flow 1 comes down to; flow 0 rises to 50.5.
 */
static void who_finds_its_share_leaves_the_others_alone(void **state)
{
    (void)state;
    static const struct {
        double capacity, rates[3];
        int solved;
    } cases[] = {{100, {50, 50, 50}, 1}, {99, {50.5, 49.5, 49.5}, 3}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct engine engine;
        struct net net;
        engine_init(&engine);
        net_init(&net, &engine);
        const int shared = net_add_link(&net, 100), crossed = net_add_link(&net, cases[c].capacity);
        const struct link_weight both[] = {{shared, 1}, {crossed, 1}};
        for (int i = 0; i < 3; i++)
            net_add_flow(&net);
        net_start(&net, 0, 1000, HUGE_VAL, both, 1, (struct net_listener){0});
        net_start(&net, 1, 1000, HUGE_VAL, both, 2, (struct net_listener){0});
        fair_solve(&net);
        assert_int_equal(net.solved.n, 2);
        net_start(&net, 2, 1000, HUGE_VAL, both + 1, 1, (struct net_listener){0});
        fair_solve(&net);
        assert_int_equal(net.solved.n, cases[c].solved);
        for (int i = 0; i < 3; i++)
            assert_true(net.flows.at[i].fair == cases[c].rates[i]);
        net_release(&net);
        engine_release(&engine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_flows_share_a_link),
        cmocka_unit_test(an_end_that_comes_later_costs_no_event),
        cmocka_unit_test(bytes_count_while_they_move),
        cmocka_unit_test(flows_of_one_instant_are_settled_together),
        cmocka_unit_test(a_flow_has_what_its_link_gives_at_each_moment),
        cmocka_unit_test(a_flow_on_another_way_leaves_its_share_behind),
        cmocka_unit_test(only_what_changed_is_solved_and_all_rates_hold),
        cmocka_unit_test(who_finds_its_share_leaves_the_others_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
