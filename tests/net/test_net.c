#include "net/net.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

struct fixture {
    struct engine engine;
    struct net net;
    uint32_t ended, starter;
    ps_t end[4];
    struct maxmin_use use;
};

static void on_ended(void *self, const struct event *event)
{
    ((struct fixture *)self)->end[event->target] = event->time;
}

/* arg: bytes of the flow that starts in slot target. */
static void on_start(void *self, const struct event *event)
{
    struct fixture *fixture = self;
    net_start(&fixture->net, (int)event->target, (double)event->arg, HUGE_VAL, &fixture->use, 1,
        (struct net_listener){fixture->ended, event->target});
}

static void set_up(struct fixture *fixture, double capacity)
{
    engine_init(&fixture->engine);
    net_init(&fixture->net, &fixture->engine);
    fixture->ended = engine_register(&fixture->engine, on_ended, fixture);
    fixture->starter = engine_register(&fixture->engine, on_start, fixture);
    fixture->use = (struct maxmin_use){net_add_link(&fixture->net, capacity), 1};
    for (int i = 0; i < 4; i++)
        net_add_slot(&fixture->net);
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

/* 100 B/s. A: 300 B from 0 s, B: 100 B from 1 s. A alone moves 100 B; then both get 50 B/s: B ends at 3 s; A has 100 B
 * left and ends at 4 s. */
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
    assert_true(fabs(net_carried(&fixture.net, fixture.use.link) - 400) < 1e-6); /* bytes are conserved */
    tear_down(&fixture);
}

/* Four equal flows at the same instant: 4 x 100 B at 25 B/s each end together at 4 s, whatever the order of their
 * start. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_flows_share_a_link),
        cmocka_unit_test(flows_of_one_instant_are_settled_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
