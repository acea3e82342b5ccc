/* Scenario points for laws: a scenario file of the project with some fields set. */
#ifndef FLOPCAST_TESTS_LAW_POINT_H
#define FLOPCAST_TESTS_LAW_POINT_H

#include "scenario/scenario.h"

#include <stdlib.h>

/* Simulates the only point of a scenario with overrides; its arrays live in arena. Include after
 * cmocka.h. */
static inline struct scenario_result simulate_point(
    const char *scenario, const struct scenario_override *overrides, int n, struct arena *arena)
{
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set set = {0};
    struct scenario_result result = {0};
    if (scenario_load(&set, scenario, overrides, n, arena, diag) !=
        STATUS_OK) /* there may be warnings */
        fail_msg("%s", diag->text);
    assert_int_equal(set.n_points, 1);
    assert_int_equal(scenario_simulate(&result, &set.points[0], arena, diag), STATUS_OK);
    free(diag);
    return result;
}

#define OVERRIDES(list) (list), (int)(sizeof(list) / sizeof *(list))

#endif
