/* The driver of fits on a model that is one line: y = a x, y = b x, y = (a + c) x. */
#include "calibrate/fit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"

enum { OF_A, OF_B, OF_SUM, KINDS };

struct line {
    int kind;
    double x;
};

struct model {
    struct quantity a, b, c;
};
static int asked[KINDS];

static double predict(const void *self, const void *row)
{
    const struct model *model = self;
    const struct line *line = row;
    asked[line->kind]++;
    const double slopes[KINDS] = {model->a.value, model->b.value, model->a.value + model->c.value};
    return slopes[line->kind] * line->x;
}

static bool reads(const void *self, const void *row, const struct fit_parameter *parameter)
{
    const struct model *model = self;
    const struct line *line = row;
    const struct quantity *at = parameter->at[0];
    return line->kind == OF_B ? at == &model->b
                              : at == &model->a || (line->kind == OF_SUM && at == &model->c);
}

static void solve(struct model *model, const struct line *lines, int n, bool says)
{
    static const double off[] = {1.01, 0.98, 1, 1.03, 0.99};
    static const double slopes[KINDS] = {2, 3, 2 + 5};
    struct fit fit = {.self = model,
        .predict = predict,
        .reads = says ? reads : NULL,
        .scale = 0.1,
        .source = "test"};
    *model = (struct model){0};
    fit_add(&fit, "a", DIM_NONE, &model->a, 1);
    fit_add(&fit, "b", DIM_NONE, &model->b, 1);
    fit_add(&fit, "c", DIM_NONE, &model->c, 1);
    for (int i = 0; i < n; i++)
        fit_add_row(&fit, &lines[i], slopes[lines[i].kind] * lines[i].x * off[i % 5]);
    assert_true(fit_solve(&fit));
    fit_free(&fit);
}

/* Rows that do not read a parameter are not asked for differences in it: fewer calls, the same
 * bits. */
static void who_says_what_rows_read_gets_the_same(void **state)
{
    (void)state;
    enum { N = 30 };
    struct line lines[N];
    struct model plain, saying;
    for (int i = 0; i < N; i++)
        lines[i] = (struct line){i % KINDS, 1 + i};
    solve(&plain, lines, N, false);
    int all = asked[OF_B];
    solve(&saying, lines, N, true);
    assert_near(plain.a.value, 2, 0.02);
    assert_near(plain.b.value, 3, 0.02);
    assert_near(plain.c.value, 5, 0.03);
    const struct quantity *found[] = {&plain.a, &plain.b, &plain.c},
                          *same[] = {&saying.a, &saying.b, &saying.c};
    for (int i = 0; i < 3; i++) {
        assert_true(found[i]->std_error > 0);
        assert_true(found[i]->value == same[i]->value);
        assert_true(found[i]->std_error == same[i]->std_error);
    }
    assert_true(3 * (asked[OF_B] - all) < 2 * all); /* one parameter of three */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_says_what_rows_read_gets_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
