#include "strategy/schedule.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

/* F0 B0 F1 B1 F2 B2. */
static void one_stage_finishes_a_micro_batch_before_the_next(void **state)
{
    (void)state;
    enum { MICRO_BATCHES = 3 };
    struct cell cells[2 * MICRO_BATCHES];
    assert_int_equal(schedule_one_stage(cells, MICRO_BATCHES), 2 * MICRO_BATCHES);
    for (int i = 0; i < 2 * MICRO_BATCHES; i++) {
        assert_int_equal(cells[i].kind, i % 2 ? CELL_BACKWARD : CELL_FORWARD);
        assert_int_equal(cells[i].micro_batch, i / 2);
        assert_int_equal(cells[i].chunk, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_stage_finishes_a_micro_batch_before_the_next)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
