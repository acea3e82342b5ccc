// Something that is called every so often, and ends at once.
#include "options/ticker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

struct counted {
    int ticks, together; // together: changed by whoever has the lock, in two steps
    int between;         // ticks that saw one step alone
};

static void count(void *self)
{
    struct counted *counted = self;
    counted->together++;
    counted->ticks++;
    counted->between += counted->together != counted->ticks;
}

// An hour before the first tick, which nobody waits for: `run` of a small job took 0.1 s, of which
// it slept 0.1.
static void test_that_it_ends_in_the_middle_of_a_pause(void **state)
{
    (void)state;
    struct counted counted = {0};
    for (int i = 0; i < 1000; i++) {
        struct ticker *ticker = ticker_begin(3600, count, &counted);
        assert_non_null(ticker);
        ticker_end(ticker);
    }
    assert_int_equal(counted.ticks, 0);
}

static void test_that_it_ticks_and_waits_for_the_lock(void **state)
{
    (void)state;
    struct counted counted = {0};
    struct ticker *ticker = ticker_begin(1e-4, count, &counted);
    const struct timespec moment = {.tv_nsec = 300000};
    for (int seen = 0; seen < 100;) {
        ticker_lock(ticker);
        counted.together++; // no tick sees this
        seen = counted.ticks;
        nanosleep(&moment, NULL);
        counted.together--;
        ticker_unlock(ticker);
        nanosleep(&moment, NULL);
    }
    ticker_end(ticker);
    assert_int_equal(counted.between, 0);
    int ticks = counted.ticks;
    nanosleep(&moment, NULL);
    assert_int_equal(counted.ticks, ticks);
}

static void test_that_none_is_fine(void **state)
{
    (void)state;
    ticker_lock(NULL);
    ticker_unlock(NULL);
    ticker_end(NULL);
    double first = ticker_now_s();
    assert_true(isfinite(first) && ticker_now_s() >= first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_that_it_ends_in_the_middle_of_a_pause),
        cmocka_unit_test(test_that_it_ticks_and_waits_for_the_lock),
        cmocka_unit_test(test_that_none_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
