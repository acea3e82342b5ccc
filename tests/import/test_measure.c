/* Files of flopcast_measure: a small table whose rates follow from its numbers, and tables with one
 * mistake each. */
#include "import/measure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"

#define HEADER                                                                                     \
    "category,kernel,dtype,bytes,flop,time_us_median,time_us_min,time_us_max,sm_clock_MHz,gpu,"    \
    "driver,cuda,date,"                                                                            \
    "version,kind\n"
#define FROM ",\"A, B\",550.1,13.0,2026-01-31,0.1.0,measured\n"
#define GEMM_ROW "gemm,tn,bf16,100,2e9,10,9,12,1700" FROM

/* The burst makes 1e12 flop in 1000 us; windows slow down to 1250 us. */
static const char whole[] = HEADER GEMM_ROW
    "hbm,copy,fp32,2e6,,4,3,5," FROM "hbm,copy,fp32,2e9,,1000,900,1100," FROM
    "memory,context,,5e8,,,,," FROM "sustained,burst,bf16,1,1e12,1000,1000,1000,1980" FROM
    "sustained,window,bf16,1,1e12,1000,1000,1000,1900" FROM
    "sustained,window,bf16,1,1e12,1100,1000,1200,1800" FROM
    "sustained,window,bf16,1,1e12,1250,1200,1300,1500" FROM
    "sustained,window,bf16,1,1e12,1250,1200,1300,1400" FROM
    "sustained,burst,fp8,1,1e12,500,500,500," FROM;

static enum status read_text(struct measured_file *file, const char *text, struct diag *diag)
{
    enum status status = measured_read_text(file, "x.csv", text, strlen(text), diag);
    assert_int_equal(status == STATUS_OK, diag->n_errors == 0);
    return status;
}

static void whole_file(void **state)
{
    struct measured_file file;
    struct measured_sustained s;
    struct diag diag = DIAG_INIT;
    (void)state;
    assert_int_equal(read_text(&file, whole, &diag), STATUS_OK);
    assert_int_equal(file.rows.n, 10);
    assert_string_equal(file.gpu, "A, B");
    assert_string_equal(file.date, "2026-01-31");
    assert_string_equal(file.rows.at[0].kernel, "tn");
    assert_near(file.rows.at[0].time_s, 10e-6, 1e-18);
    assert_near(file.rows.at[0].sm_clock_hz, 1.7e9, 1);
    /* burst 1e12 / 1 ms; settled: both windows of the later half take 1.25 ms; their clocks' mean
     * is 1450 MHz */
    assert_true(measured_sustained(&s, &file, "bf16"));
    assert_near(s.burst_flops, 1e15, 1);
    assert_near(s.sustained_flops, 8e14, 1);
    assert_near(s.sustained_clock_hz, 1.45e9, 1);
    assert_false(measured_sustained(&s, &file, "fp8")); /* no windows */
    assert_false(measured_sustained(&s, &file, "fp16"));
    measured_file_free(&file);
}

/* gemm: 2e9 flop in 10 us. hbm: the larger copy, 2e9 B in 1 ms, is the faster (2e12 against 5e11
 * B/s); the smaller, 4 us, the shorter. */
static void summary(void **state)
{
    struct measured_file file;
    struct diag diag = DIAG_INIT;
    char *text = NULL;
    size_t n = 0;
    (void)state;
    assert_int_equal(read_text(&file, whole, &diag), STATUS_OK);
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    measured_print(out, &file);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text,
        "10 rows of A, B, driver 550.1, CUDA 13.0, 2026-01-31, by flopcast_measure 0.1.0\n"
        "  gemm         bf16     1 row   from 10 us, up to 200 TFLOPS\n"
        "  hbm          fp32     2 rows  from 4 us, up to 2 TB/s\n"
        "  memory                1 row   up to 500 MB\n"
        "  sustained    bf16     5 rows  from 1 ms, up to 1 PFLOPS\n"
        "  bf16 sustained: 800 TFLOPS, 80.0 % of the 1 PFLOPS in the burst, at 1.45 GHz\n"
        "  sustained    fp8      1 row   from 500 us, up to 2 PFLOPS\n");
    free(text);
    measured_file_free(&file);
}

static void mistakes(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {HEADER, "x.csv: error: no row: nothing was measured"},
        {"category,kernel\ngemm,tn\n",
            "no column 'time_us_median'; a file of flopcast_measure is wanted"},
        {HEADER GEMM_ROW "gemm,tn,bf16,1,1,,,," FROM, "x.csv:3:1: error: no time_us_median"},
        {HEADER "gemm,tn,bf16,1,1,10,11,12," FROM,
            "x.csv:2:1: error: a median of 10 us is not between"},
        {HEADER "gemm,tn,bf16,1,1,10,9,9.5," FROM, "the least, 9 us, and the most, 9.5 us"},
        {HEADER "gemm,tn,bf16,-1,1,10,9,11," FROM, "x.csv:2:1: error: -1 is negative"},
        {HEADER "gemm,tn,bf16,1,many,10,9,11," FROM, "x.csv:2:1: error: column 'flop': "},
        {HEADER ",tn,bf16,1,1,10,9,11," FROM, "x.csv:2:1: error: no category"},
        {HEADER "gemm,,bf16,1,1,10,9,11," FROM, "x.csv:2:1: error: no kernel"},
        {HEADER "gemm,tn,bf16,1,1,10,9,11,,g,1,2,3,4,planned\n",
            "x.csv:2:1: error: a row of a dry run"},
        {HEADER "gemm,tn,bf16,1,1,10,9,11,,g,1,2,3,4,guessed\n",
            "kind 'guessed'; 'measured' is wanted"},
        {HEADER GEMM_ROW
            "gemm,tn,bf16,1,1,10,9,11,,\"A, B\",550.1,13.0,2026-02-01,0.1.0,measured\n",
            "x.csv:3:1: error: date '2026-02-01' where the first row has '2026-01-31'; one run a "
            "file"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct measured_file file;
        struct diag diag = DIAG_INIT;
        assert_int_equal(read_text(&file, cases[i].text, &diag), STATUS_INPUT);
        if (!strstr(diag.text, cases[i].says))
            fail_msg("case %zu says '%s', not '%s'", i, diag.text, cases[i].says);
        measured_file_free(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_file),
        cmocka_unit_test(summary),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
