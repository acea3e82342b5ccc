/* What tests of the search begin and end with. */
#ifndef FLOPCAST_TESTS_SCENARIO_CANDIDATES_H
#define FLOPCAST_TESTS_SCENARIO_CANDIDATES_H

#include "../scenario/workspace.h"

#include "../near.h"
#include "study/tune.h"

static inline struct tune candidates_of(struct loaded *loaded, struct tune_options options)
{
    struct tune tune;
    assert_int_equal(loaded->diag.n_errors, 0);
    tune_candidates(&tune, &loaded->set, &options, &loaded->arena);
    return tune;
}

static inline struct tune search(struct loaded *loaded, struct tune_options options)
{
    struct tune tune = candidates_of(loaded, options);
    assert_int_equal(tune_run(&tune, &options, NULL, NULL, &loaded->diag), STATUS_OK);
    return tune;
}

static inline void drop(struct tune *tune, struct loaded *loaded)
{
    vec_free(&tune->candidates);
    unload(loaded);
}

/* What is pruned is out of memory when it is simulated. At least one candidate is pruned, and not
 * all are. */
static inline void assert_pruned_are_oom(const struct tune *tune, struct diag *diag)
{
    int pruned = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        struct arena scratch = ARENA_INIT;
        struct scenario_result result;
        if (tune->candidates.at[i].state != TUNE_PRUNED)
            continue;
        pruned++;
        assert_int_equal(
            scenario_simulate(&result, &tune->candidates.at[i].point, &scratch, diag), STATUS_OK);
        if (result.exec.status != EXEC_OOM)
            fail_msg("pruned, but runs: candidate %d", i);
        arena_release(&scratch);
    }
    assert_true(pruned > 0 && pruned < tune->candidates.n);
}

/* The settings of every n-th candidate over text, the scenario searched, give its step, to the
 * picosecond. */
static inline void assert_settings_give_back(const struct tune *tune, int n, const char *text)
{
    for (int i = 0; i < tune->candidates.n; i += n) {
        struct arena arena = ARENA_INIT;
        struct tune_settings set = tune_settings(&tune->candidates.at[i], &arena);
        struct loaded *again = load_text(text, set.list, set.n);
        struct scenario_result result;
        assert_string_equal(again->diag.text, "");
        assert_int_equal(
            scenario_simulate(&result, &again->set.points[0], &again->arena, &again->diag),
            STATUS_OK);
        assert_near(result.exec.step_time_s, tune->candidates.at[i].quiet.step_time_s, 0);
        unload(again);
        arena_release(&arena);
    }
}

#endif
