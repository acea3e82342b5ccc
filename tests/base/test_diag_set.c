/* Mistakes of jobs come in the order of the jobs. */
#include "base/diag_set.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void say(struct diag_set *set, int job, enum status status, const char *what)
{
    struct diag diag = DIAG_INIT;
    if (status == STATUS_IO)
        diag_io(&diag, (struct source_pos){0}, "%s", what);
    else if (status == STATUS_INPUT)
        diag_input(&diag, (struct source_pos){0}, "%s", what);
    else if (what)
        diag_warn(&diag, (struct source_pos){0}, "%s", what);
    diag_set_keep(set, job, &diag);
}

/* The last job ends first; the first says nothing, and what two say alike is reported once. */
static void in_the_order_of_jobs(void **state)
{
    (void)state;
    struct diag_set set = diag_set_begin(5);
    struct diag diag = DIAG_INIT;
    say(&set, 4, STATUS_INPUT, "four");
    say(&set, 3, STATUS_INPUT, "one");
    say(&set, 2, STATUS_OK, "two");
    say(&set, 1, STATUS_IO, "one");
    say(&set, 0, STATUS_OK, NULL);
    assert_int_equal(diag_set_end(&set, &diag), STATUS_IO);
    assert_string_equal(diag.text, "error: one\nwarning: two\nerror: four\n");
    assert_int_equal(diag.n_errors, 2);
    assert_null(set.by_job);
}

static void no_jobs_no_diagnostics(void **state)
{
    (void)state;
    struct diag_set set = diag_set_begin(0);
    struct diag diag = DIAG_INIT;
    assert_int_equal(diag_set_end(&set, &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_order_of_jobs),
        cmocka_unit_test(no_jobs_no_diagnostics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
