#include "base/units.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static void reads_value_in_base_si(void **state)
{
    (void)state;
    /* Each value is the written number times the prefix, by hand; exact, as the one rounding is
     * that of the literal. */
    static const struct {
        const char *text;
        enum dimension dimension;
        double value;
    } cases[] = {
        {"4", DIM_NONE, 4},
        {"-1.5e-3", DIM_NONE, -0.0015},
        {"+.5", DIM_NONE, 0.5},
        {"80 GiB", DIM_BYTES, 85899345920.0},
        {"80GB", DIM_BYTES, 80e9},
        {"512 B", DIM_BYTES, 512},
        {"512 bytes", DIM_BYTES, 512},
        {"25 MiB", DIM_BYTES, 26214400},
        {"1 KiB", DIM_BYTES, 1024},
        {"2 TiB", DIM_BYTES, 2199023255552.0},
        {"450 GB/s", DIM_BYTES_PER_S, 450e9},
        {"2 Tb/s", DIM_BYTES_PER_S, 250e9}, /* bits */
        {"200 Gbps", DIM_BYTES_PER_S, 25e9},
        {"200 GBps", DIM_BYTES_PER_S, 200e9},
        {"8 Mbit/s", DIM_BYTES_PER_S, 1e6},
        {"5 us", DIM_SECONDS, 5e-6},
        {"1.2 ms", DIM_SECONDS, 1.2e-3},
        {"9.5 us", DIM_SECONDS, 9.5e-6},
        {"3 ns", DIM_SECONDS, 3e-9},
        {"7 ps", DIM_SECONDS, 7e-12},
        {"2 min", DIM_SECONDS, 120},
        {"1 h", DIM_SECONDS, 3600},
        {"312 TFLOPS", DIM_FLOP_PER_S, 312e12},
        {"1 PFLOP/s", DIM_FLOP_PER_S, 1e15},
        {"624 TOPS", DIM_FLOP_PER_S, 624e12},
        {"700 W", DIM_WATT, 700},
        {"1.41 GHz", DIM_HERTZ, 1.41e9},
        {"5 %", DIM_FRACTION, 0.05},
        {"0.05", DIM_FRACTION, 0.05},
        {"2.50 $/h", DIM_USD_PER_HOUR, 2.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = -1;
        char why[128] = "";
        if (!quantity_parse(&value, cases[i].text, cases[i].dimension, why, sizeof why))
            fail_msg("%s: %s", cases[i].text, why);
        if (value != cases[i].value)
            fail_msg("%s is %.17g, not %.17g", cases[i].text, value, cases[i].value);
    }
}

static void refuses_with_a_remedy(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum dimension dimension;
        const char *why;
    } cases[] = {
        {"5 GB", DIM_SECONDS, "'5 GB' is not a time (examples: 5 us, 1.2 ms)"},
        {"5", DIM_SECONDS, "'5' has no unit; a time needs one (examples: 5 us, 1.2 ms)"},
        {"450", DIM_BYTES_PER_S,
            "'450' has no unit; a bandwidth needs one (examples: 450 GB/s, 200 Gb/s (bits))"},
        {"80 Gb", DIM_BYTES, "'80 Gb' is not a size (examples: 80 GiB, 25 MB)"},
        {"80 XB", DIM_BYTES, "'80 XB' is not a size (examples: 80 GiB, 25 MB)"},
        {"80 gb", DIM_BYTES, "'80 gb' is not a size (examples: 80 GiB, 25 MB)"},
        {"1 kmin", DIM_SECONDS, "'1 kmin' is not a time (examples: 5 us, 1.2 ms)"},
        {"", DIM_NONE, "'' is not a number (examples: 4, 0.5, 1e6)"},
        {"four", DIM_NONE, "'four' is not a number (examples: 4, 0.5, 1e6)"},
        {"4 GB", DIM_NONE, "'4 GB' is not a number (examples: 4, 0.5, 1e6)"},
        {"1,5", DIM_NONE, "'1,5' is not a number (examples: 4, 0.5, 1e6)"},
        {"--4", DIM_NONE, "'--4' is not a number (examples: 4, 0.5, 1e6)"},
        {"inf", DIM_NONE, "'inf' is not a number (examples: 4, 0.5, 1e6)"},
        {"nan", DIM_NONE, "'nan' is not a number (examples: 4, 0.5, 1e6)"},
        {"0x10", DIM_NONE, "'0x10' is not a number (examples: 4, 0.5, 1e6)"},
        {"1e999", DIM_NONE, "'1e999' is not a number (examples: 4, 0.5, 1e6)"},
        {"1e308 GB", DIM_BYTES, "'1e308 GB' is too large for a size"},
        {"700 W", DIM_HERTZ, "'700 W' is not a frequency (examples: 1.41 GHz)"},
        {"1 GHz", DIM_WATT, "'1 GHz' is not a power (examples: 700 W)"},
        {"3", DIM_FLOP_PER_S, "'3' has no unit; a compute rate needs one (examples: 312 TFLOPS)"},
        {"3", DIM_USD_PER_HOUR, "'3' has no unit; a price needs one (examples: 2.50 $/h)"},
        {"5 percent", DIM_FRACTION, "'5 percent' is not a fraction (examples: 0.05, 5 %)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = 42;
        char why[128] = "";
        if (quantity_parse(&value, cases[i].text, cases[i].dimension, why, sizeof why))
            fail_msg("%s is read as %g", cases[i].text, value);
        assert_string_equal(why, cases[i].why);
        assert_true(value == 42); /* untouched */
    }
}

static void counts_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t kilo;
        enum count_text result;
        int64_t value;
    } cases[] = {
        {"8", 1000, COUNT_OK, 8},
        {"-8", 1000, COUNT_OK, -8},
        {"+1_000_000", 1000, COUNT_OK, 1000000},
        {"8.0", 1000, COUNT_OK, 8},
        {"1e3", 1000, COUNT_OK, 1000},
        {"1.5E+3", 1000, COUNT_OK, 1500},
        {"1500e-2", 1000, COUNT_OK, 15},
        {"8k", 1000, COUNT_OK, 8000},
        {"8K", 1024, COUNT_OK, 8192},
        {"1M", 1024, COUNT_OK, 1 << 20},
        {"8Ki", 1000, COUNT_OK, 8192},
        {"1.5k", 1000, COUNT_OK, 1500},
        {"0.5k", 1024, COUNT_OK, 512},
        {"11.3B", 1000, COUNT_OK, 11300000000},
        {"15T", 1000, COUNT_OK, 15000000000000},
        {"7g", 1000, COUNT_OK, 7000000000},
        {"-9223372036854775808", 1000, COUNT_OK, INT64_MIN},
        {"0e99", 1000, COUNT_OK, 0},
        {"1.0005k", 1000, COUNT_NOT_WHOLE, 0},
        {"1e-1", 1000, COUNT_NOT_WHOLE, 0},
        {"8.5", 1000, COUNT_NOT_WHOLE, 0},
        {"9223372036854775808", 1000, COUNT_TOO_LARGE, 0},
        {"1e19", 1000, COUNT_TOO_LARGE, 0},
        {"1e99999999999", 1000, COUNT_TOO_LARGE, 0},
        {"10000000T", 1000, COUNT_TOO_LARGE, 0},
        {"", 1000, COUNT_NO_NUMBER, 0},
        {"k", 1000, COUNT_NO_NUMBER, 0},
        {"8kk", 1000, COUNT_NO_NUMBER, 0},
        {"8 k", 1000, COUNT_NO_NUMBER, 0},
        {"8KB", 1000, COUNT_NO_NUMBER, 0},
        {"8e", 1000, COUNT_NO_NUMBER, 0},
        {"1_", 1000, COUNT_NO_NUMBER, 0},
        {"1._5", 1000, COUNT_NO_NUMBER, 0},
        {"1.2.3", 1000, COUNT_NO_NUMBER, 0},
        {".5k", 1000, COUNT_NO_NUMBER, 0},
        {"0x10", 1000, COUNT_NO_NUMBER, 0},
        {"inf", 1000, COUNT_NO_NUMBER, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 42;
        enum count_text result = count_parse(&value, cases[i].text, cases[i].kilo);
        if (result != cases[i].result || value != (result == COUNT_OK ? cases[i].value : 42))
            fail_msg("'%s': %d, %lld", cases[i].text, (int)result, (long long)value);
    }
}

static void formats_with_a_fitting_prefix(void **state)
{
    (void)state;
    static const struct {
        double value;
        enum dimension dimension;
        const char *text;
    } cases[] = {
        {2.039e12, DIM_BYTES_PER_S, "2.039 TB/s"},
        {0x1p30 * 80, DIM_BYTES, "80 GiB"},
        {0x1p20 * 25, DIM_BYTES, "25 MiB"},
        {39.1e9, DIM_BYTES, "39.1 GB"},
        {512, DIM_BYTES, "512 B"},
        {9.5e-6, DIM_SECONDS, "9.5 us"},
        {0, DIM_SECONDS, "0 s"},
        {-2e-3, DIM_SECONDS, "-2 ms"},
        {312e12, DIM_FLOP_PER_S, "312 TFLOPS"},
        {0.25, DIM_FRACTION, "0.25"},
        {1024, DIM_NONE, "1024"},
        {2.5, DIM_USD_PER_HOUR, "2.5 $/h"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buffer[32];
        assert_string_equal(
            quantity_format(buffer, sizeof buffer, cases[i].value, cases[i].dimension),
            cases[i].text);
    }
}

static void what_is_formatted_reads_back(void **state)
{
    (void)state;
    /* Four digits are printed, so the value comes back to half a unit of the fourth: 5e-4 relative.
     */
    for (int d = 0; d < DIM_COUNT; d++)
        for (double value = 1e-9; value < 1e17; value *= 7.3) {
            char buffer[32], why[128] = "";
            double back = 0;
            quantity_format(buffer, sizeof buffer, value, (enum dimension)d);
            if (!quantity_parse(&back, buffer, (enum dimension)d, why, sizeof why))
                fail_msg("%g: %s", value, why);
            assert_true(fabs(back / value - 1) <= 5e-4);
        }
}

static void time_is_whole_picoseconds(void **state)
{
    (void)state;
    assert_true(ps_from_s(0) == 0);
    assert_true(ps_from_s(9.5e-6) == 9500000);
    assert_true(ps_from_s(0.4e-12) == 0); /* to the nearest */
    assert_true(ps_from_s(0.6e-12) == 1);
    assert_true(ps_from_s(1e6) == 1000000 * PS_PER_S);
    /* To the nearest, halves up, as llround() has it, at every size. */
    const double spans[] = {0, 0.49999999999999994, 0.5, 1.5, 2.5, 1e6 + 0.4999, 0x1p51 + 0.5,
        0x1p52 + 1, 0x1p53 + 2, 4e18};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        assert_true(ps_round(spans[i]) == llround(spans[i]));
    /* What no run lasts is beyond every run, and still a time when it is added to one. */
    assert_true(ps_from_s(1e300) == PS_OVERLONG && ps_round(HUGE_VAL) == PS_OVERLONG);
    assert_true(PS_OVERLONG > PS_HORIZON && PS_HORIZON < PS_NEVER - PS_OVERLONG);
    assert_true(s_from_ps(PS_PER_S / 4) == 0.25);
    assert_string_equal(dimension_unit(DIM_BYTES_PER_S), "B/s");
    assert_string_equal(dimension_unit(DIM_FRACTION), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_value_in_base_si),
        cmocka_unit_test(refuses_with_a_remedy),
        cmocka_unit_test(counts_as_people_write_them),
        cmocka_unit_test(formats_with_a_fitting_prefix),
        cmocka_unit_test(what_is_formatted_reads_back),
        cmocka_unit_test(time_is_whole_picoseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
