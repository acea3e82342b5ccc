/* What `run` prints of a job whose ranks run several programs: no scenario has such a job yet, so
 * the result is made up. */
#include "cli/output.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "../store/sample.h"

static void each_program_has_a_line(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample);
    const double GiB = 1024.0 * 1024 * 1024;
    struct exec_program programs[2] = {
        {.breakdown = {.compute_s = 1.5,
             .exposed_comm_s = 0.25,
             .bubble_s = 0.5,
             .host_bound_s = 0.125,
             .other_idle_s = 2},
            .memory = {.peak_allocated_bytes = 30 * GiB, .peak_reserved_bytes = 31 * GiB}},
        {.breakdown = {.compute_s = 1, .exposed_comm_s = 0.75, .bubble_s = 1.25},
            .memory = {.peak_allocated_bytes = 40 * GiB, .peak_reserved_bytes = 45.5 * GiB}}};
    for (int several = 0; several < 2; several++) {
        char text[8192] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        sample.results[0].exec.programs = programs;
        sample.results[0].exec.n_programs = 1 + several;
        sample.results[0].exec.fullest = several;
        struct sure sure = {0};
        output_table(out, &sample.set, sample.results, &sure);
        sure_end(&sure);
        fclose(out);
        assert_true((strstr(text, "by program:") != NULL) == several);
        assert_true((strstr(text, "exposed comm     bubble") != NULL) ==
                    several); /* of pipelines, beside each other */
        if (!several)
            continue;
        static const char *const rows[] = {
            "0   1.5000        0.2500  0.5000      0.1250      2.0000      30.0      31.0",
            "1 (fullest)   1.0000        0.7500  1.2500      0.0000      0.0000      40.0      "
            "45.5"};
        for (int p = 0; p < 2; p++)
            if (!strstr(text, rows[p]))
                fail_msg("no '%s' in:\n%s", rows[p], text);
    }
}

/* Programs 0 to 3 are alike and have one row, then each has another time; of more than eight rows
 * the fullest stands alone. */
static void alike_ones_share_a_line(void **state)
{
    (void)state;
    enum { MOST = 20 };
    struct sample sample;
    sample_init(&sample);
    for (int n = 6; n <= MOST; n += MOST - 6) {
        struct exec_program programs[MOST];
        memset(programs, 0, sizeof programs);
        for (int p = 0; p < n; p++)
            programs[p].breakdown.compute_s = p < 4 ? 1 : 1 + p;
        char text[8192] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        sample.results[0].exec.programs = programs;
        sample.results[0].exec.n_programs = n;
        sample.results[0].exec.fullest = 5;
        struct sure sure = {0};
        output_table(out, &sample.set, sample.results, &sure);
        sure_end(&sure);
        fclose(out);
        assert_true((strstr(text, "0 to 3   1.0000") != NULL) == (n == 6));
        assert_true((strstr(text, " 4   5.0000") != NULL) == (n == 6));
        assert_non_null(strstr(text, "5 (fullest)   6.0000"));
        assert_true(
            (strstr(text, "of more than 8 lines the fullest of each point") != NULL) == (n > 6));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_program_has_a_line), cmocka_unit_test(alike_ones_share_a_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
