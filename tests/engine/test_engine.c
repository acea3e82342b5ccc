#include "engine/engine.h"

#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

struct log {
    struct engine *engine;
    uint32_t kind;
    ps_t times[64];
    uint32_t targets[64];
    int n;
};

static void record(void *self, const struct event *event)
{
    struct log *log = self;
    log->times[log->n] = event->time;
    log->targets[log->n++] = event->target;
}

static void events_run_in_order_of_time_then_of_scheduling(void **state)
{
    (void)state;
    struct engine engine;
    engine_init(&engine);
    struct log log = {.engine = &engine};
    uint32_t kind = engine_register(&engine, record, &log);
    engine_at(&engine, 30, kind, 1, 0);
    engine_at(&engine, 10, kind, 2, 0);
    engine_at(&engine, 30, kind, 3, 0);
    engine_at(&engine, 10, kind, 4, 0);
    engine_run(&engine);
    const uint32_t expected[] = {2, 4, 1, 3};
    assert_int_equal(log.n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(log.targets[i], expected[i]);
    assert_int_equal(engine.now, 30);
    assert_int_equal(engine.events, 4);
    engine_release(&engine);
}

static void relay(void *self, const struct event *event)
{
    struct log *log = self;
    record(self, event);
    if (event->arg > 0)
        engine_at(log->engine, event->time + 5, log->kind, event->target + 1, event->arg - 1);
}

static void a_handler_may_schedule_at_the_present_and_later(void **state)
{
    (void)state;
    struct engine engine;
    engine_init(&engine);
    struct log log = {.engine = &engine};
    log.kind = engine_register(&engine, relay, &log);
    engine_at(&engine, 0, log.kind, 0, 3);
    engine_run(&engine);
    assert_int_equal(log.n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(log.times[i], 5 * i);
    engine_release(&engine);
}

/* Schedules at the present instant. */
static void follow(void *self, const struct event *event)
{
    struct log *log = self;
    record(self, event);
    if (event->arg > 0)
        engine_at(log->engine, event->time, log->kind, event->target + 10, event->arg - 1);
}

static void events_of_the_present_come_after_those_scheduled_for_it_before(void **state)
{
    (void)state;
    struct engine engine;
    engine_init(&engine);
    struct log log = {.engine = &engine};
    log.kind = engine_register(&engine, follow, &log);
    engine_at(&engine, 10, log.kind, 1, 2);
    engine_at(&engine, 20, log.kind, 3, 0);
    engine_at(&engine, 10, log.kind, 2, 1);
    engine_at(&engine, 0, log.kind, 0, 1);
    engine_run(&engine);
    const uint32_t expected[] = {0, 10, 1, 2, 11, 12, 21, 3};
    assert_int_equal(log.n, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(log.targets[i], expected[i]);
    engine_release(&engine);
}

static void check_not_before(void *self, const struct event *event)
{
    struct log *log = self;
    assert_true(event->time >= log->times[0]);
    log->times[0] = event->time;
    log->n++;
}

static uint64_t run_random(uint64_t seed)
{
    enum { EVENTS = 20000 };
    struct engine engine;
    engine_init(&engine);
    struct log log = {.engine = &engine};
    uint32_t kind = engine_register(&engine, check_not_before, &log);
    struct rng_stream rng = rng_stream(seed, 1, 1);
    for (int i = 0; i < EVENTS; i++)
        engine_at(&engine, (ps_t)(rng_uniform(&rng) * 1000), kind, (uint32_t)i, 0);
    engine_run(&engine);
    assert_int_equal(log.n, EVENTS);
    uint64_t digest = engine.digest;
    engine_release(&engine);
    return digest;
}

static void time_never_runs_backwards_and_the_digest_tells_runs_apart(void **state)
{
    (void)state;
    assert_true(run_random(1) == run_random(1));
    assert_true(run_random(1) != run_random(2));
}

static void stop(void *self, const struct event *event)
{
    struct log *log = self;
    record(self, event);
    engine_stop(log->engine);
}

static void a_stopped_engine_runs_no_more_events(void **state)
{
    (void)state;
    struct engine engine;
    engine_init(&engine);
    struct log log = {.engine = &engine};
    uint32_t kind = engine_register(&engine, stop, &log);
    engine_at(&engine, 1, kind, 0, 0);
    engine_at(&engine, 2, kind, 0, 0);
    engine_run(&engine);
    assert_int_equal(log.n, 1);
    engine_release(&engine);
}

static void an_event_beyond_the_horizon_ends_the_run(void **state)
{
    (void)state;
    struct engine engine;
    engine_init(&engine);
    struct log log = {.engine = &engine};
    uint32_t kind = engine_register(&engine, record, &log);
    engine_at(&engine, PS_HORIZON, kind, 1, 0);
    assert_false(engine.overlong);
    engine_run(&engine);
    assert_int_equal(log.n, 1);
    engine_at(&engine, PS_HORIZON + PS_OVERLONG, kind, 2, 0);
    engine_run(&engine);
    assert_int_equal(log.n, 1);
    assert_true(engine.overlong && engine.stopped);
    engine_release(&engine);
}

/* Goes on with itself where it can. */
struct walker {
    struct engine *engine;
    uint32_t kind;
    struct rng_stream draws;
    bool at_once;
    int left, gone_on, n;
    ps_t times[4096];
};

static void walk(void *self, const struct event *event)
{
    struct walker *walker = self;
    uint32_t target = event->target;
    for (bool here = true; here && walker->left-- > 0;) {
        ps_t now = walker->engine->now, next = now + (ps_t)(4 * rng_uniform(&walker->draws));
        walker->times[walker->n++] = now;
        here = walker->at_once && engine_goes_on(walker->engine, next, walker->kind, target);
        walker->gone_on += here;
        if (!here)
            engine_at(walker->engine, next, walker->kind, target, 0);
    }
}

/* Of one walker, and of several at a time that come before each other: the same events, and the
 * same digest. */
static void a_handler_that_goes_on_is_an_event(void **state)
{
    (void)state;
    for (uint32_t walkers = 1; walkers <= 7; walkers++) {
        struct walker runs[2];
        uint64_t digests[2], events[2];
        for (int at_once = 0; at_once < 2; at_once++) {
            struct engine engine;
            engine_init(&engine);
            runs[at_once] = (struct walker){.engine = &engine,
                .draws = rng_stream(3, 3, walkers),
                .at_once = at_once == 1,
                .left = 4000};
            runs[at_once].kind = engine_register(&engine, walk, &runs[at_once]);
            for (uint32_t w = 0; w < walkers; w++)
                engine_at(&engine, w % 3, runs[at_once].kind, w, 0);
            engine_run(&engine);
            digests[at_once] = engine.digest;
            events[at_once] = engine.events;
            engine_release(&engine);
        }
        assert_true(digests[0] == digests[1] && events[0] == events[1]);
        assert_int_equal(runs[0].n, runs[1].n);
        assert_memory_equal(
            runs[0].times, runs[1].times, sizeof *runs[0].times * (size_t)runs[0].n);
        assert_int_equal(runs[0].gone_on, 0);
        assert_true(runs[1].gone_on > (walkers == 1 ? 3990 : 100));
    }
}

/* Events in line, of which one has run, in the heap, and one that is scheduled thereafter. */
static void a_shift_moves_the_clock_and_all_that_is_pending(void **state)
{
    (void)state;
    struct engine engine;
    engine_init(&engine);
    struct log log = {.engine = &engine};
    uint32_t stops = engine_register(&engine, stop, &log),
             kind = engine_register(&engine, record, &log);
    engine_at(&engine, 20, kind, 4, 0);
    engine_at(&engine, 10, stops, 1, 0);
    engine_at(&engine, 30, kind, 5, 0);
    engine_run(&engine);
    engine_at(&engine, 10, stops, 2, 0);
    engine_at(&engine, 10, kind, 3, 0);
    engine.stopped = false;
    engine_run(&engine);
    assert_int_equal(log.n, 2);
    engine_shift(&engine, 100);
    assert_int_equal(engine.now, 110);
    engine_at(&engine, 120, kind, 6, 0);
    engine.stopped = false;
    engine_run(&engine);
    const uint32_t targets[] = {1, 2, 3, 4, 6, 5};
    const ps_t times[] = {10, 10, 110, 120, 120, 130};
    assert_int_equal(log.n, 6);
    assert_memory_equal(log.targets, targets, sizeof targets);
    assert_memory_equal(log.times, times, sizeof times);
    engine_release(&engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_run_in_order_of_time_then_of_scheduling),
        cmocka_unit_test(a_handler_may_schedule_at_the_present_and_later),
        cmocka_unit_test(events_of_the_present_come_after_those_scheduled_for_it_before),
        cmocka_unit_test(time_never_runs_backwards_and_the_digest_tells_runs_apart),
        cmocka_unit_test(a_stopped_engine_runs_no_more_events),
        cmocka_unit_test(an_event_beyond_the_horizon_ends_the_run),
        cmocka_unit_test(a_handler_that_goes_on_is_an_event),
        cmocka_unit_test(a_shift_moves_the_clock_and_all_that_is_pending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
