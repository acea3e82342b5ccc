#include "base/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* A program always is the same one; another one is another. */
static void a_program_knows_itself(void **state)
{
    (void)state;
    assert_true(build_digest() == build_digest());
    char before[32], after[32] = "";
    snprintf(before, sizeof before, "%llx", (unsigned long long)build_digest());
    FILE *copy = popen("cp /proc/$PPID/exe copy-of-test-build && strip copy-of-test-build && "
                       "TEST_BUILD_COPY=1 ./copy-of-test-build build; rm -f copy-of-test-build",
        "r");
    assert_non_null(copy);
    assert_non_null(fgets(after, sizeof after, copy));
    pclose(copy);
    assert_string_equal(after, before);
}

int main(void)
{
    if (getenv("TEST_BUILD_COPY")) {
        printf("%llx", (unsigned long long)build_digest());
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_program_knows_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
