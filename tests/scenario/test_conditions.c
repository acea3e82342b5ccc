/* Where settings count: each condition of a table can hold, and says what it means. */
#include "scenario/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static bool holds(struct config_unmet *unmet, const char *condition, const struct scenario *options,
    struct arena *arena)
{
    return config_condition(unmet, condition, &scenario_table, options, NULL, NULL, arena);
}

static void a_condition_says_what_it_means(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario options = scenario_default();
    struct config_unmet unmet;
    options.strategy.train.optimizer = OPTIMIZER_LION;
    options.strategy.parallelism.pipeline = 1;
    assert_true(holds(&unmet, "train.optimizer = adamw | lion", &options, &arena));
    assert_false(holds(&unmet, "train.optimizer = sgd|muon | adam", &options, &arena));
    assert_string_equal(unmet.path, "train.optimizer");
    assert_string_equal(unmet.value, "lion");
    assert_string_equal(unmet.wanted, "sgd, muon or adam");
    assert_false(
        holds(&unmet, "train.optimizer = lion & parallelism.pipeline > 1", &options, &arena));
    assert_string_equal(unmet.path, "parallelism.pipeline");
    assert_string_equal(unmet.wanted, "2 or more");
    options.strategy.parallelism.pipeline = 2;
    assert_true(
        holds(&unmet, "train.optimizer = lion & parallelism.pipeline > 1", &options, &arena));
    assert_false(holds(&unmet, "run.memory_fraction > 0", &options, &arena));
    assert_string_equal(unmet.wanted, "more than 0");
    options.exec.allocator.memory_fraction = 0.5;
    assert_true(holds(&unmet, "run.memory_fraction > 0", &options, &arena));
    arena_release(&arena);
}

/* The values of a choice that a condition names. */
static void check_values(const char *part, const char *of)
{
    size_t at = 0;
    char path[100], values[200], *rest = NULL;
    if (strncmp(part, "model = ", strlen("model = ")) == 0 ||
        sscanf(part, "%99[a-z0-9_.] = %199[^&]", path, values) != 2)
        return;
    const struct config_field *field = config_field_at(&scenario_table, path, &at);
    for (char *one = strtok_r(values, " |", &rest); one; one = strtok_r(NULL, " |", &rest)) {
        bool known = field->type != FIELD_ENUM;
        for (const char *const *name = field->names; !known && *name; name++)
            known = strcmp(*name, one) == 0;
        if (!known)
            fail_msg("%s counts where %s, but %s is never %s", of, part, path, one);
    }
}

static int check_table(const struct config_table *table, struct arena *arena)
{
    struct scenario options = scenario_default();
    struct config_unmet unmet;
    int n = 0;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        if (field->type == FIELD_SECTION)
            n += check_table(field->section, arena);
        if (!field->when)
            continue;
        n++;
        for (const char *part = field->when; part;
             part = strstr(part, "& ") ? strstr(part, "& ") + 2 : NULL)
            check_values(part, field->key);
        if (!strstr(field->when, "model = "))
            holds(&unmet, field->when, &options, arena); /* a path that is unknown is a BUG */
    }
    return n;
}

static void every_condition_can_hold(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    assert_true(check_table(&scenario_table, &arena) >= 30);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_says_what_it_means),
        cmocka_unit_test(every_condition_can_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
