/* Numbers with units, both ways, and whole numbers as people write them.
 *
 * A unit is matched at the end of what follows the number; what is left before it must be a prefix.
 * The match must reach the end, so "B/s" is never taken for "B". Factors below
 * one divide by their whole inverse, since 1e6 is a double and 1e-6 is not: "9.5 us" then is the
 * same double as 9.5e-6.
 *
 * count_parse() works in int64 alone, with overflow checks: digits, less the decimals behind the
 * point, times powers of ten and kilo. A result that is not whole is an error, not a rounding. */
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One spelling of a unit: factor turns it into base SI; where it is below one, its inverse is a
 * whole number. Prefixes are applied by the parser where prefixed is set. */
struct unit {
    const char *name;
    double factor;
    bool prefixed;
};

struct dimension_info {
    const char *what; /* "a size", as in "is not a size" */
    const char *base; /* printed unit */
    const char *examples;
    struct unit units[6]; /* ended by a NULL name */
};

static const struct dimension_info dimensions[DIM_COUNT] = {
    [DIM_NONE] = {"a number", "", "4, 0.5, 1e6", {{"", 1, false}}},
    [DIM_BYTES] = {"a size", "B", "80 GiB, 25 MB", {{"B", 1, true}, {"bytes", 1, false}}},
    [DIM_BYTES_PER_S] = {"a bandwidth", "B/s", "450 GB/s, 200 Gb/s (bits)",
        {{"B/s", 1, true}, {"b/s", 0.125, true}, {"bps", 0.125, true}, {"Bps", 1, true},
            {"bit/s", 0.125, true}}},
    [DIM_SECONDS] = {"a time", "s", "5 us, 1.2 ms",
        {{"s", 1, true}, {"min", 60, false}, {"h", 3600, false}}},
    [DIM_FLOP_PER_S] = {"a compute rate", "FLOPS", "312 TFLOPS",
        {{"FLOPS", 1, true}, {"FLOP/s", 1, true}, {"OPS", 1, true}}},
    [DIM_WATT] = {"a power", "W", "700 W", {{"W", 1, true}}},
    [DIM_HERTZ] = {"a frequency", "Hz", "1.41 GHz", {{"Hz", 1, true}}},
    [DIM_FRACTION] = {"a fraction", "", "0.05, 5 %", {{"", 1, false}, {"%", 0.01, false}}},
    [DIM_USD_PER_HOUR] = {"a price", "$/h", "2.50 $/h", {{"$/h", 1, false}, {"USD/h", 1, false}}},
};

static double prefix_factor(const char *prefix, size_t length)
{
    static const struct {
        const char *name;
        double factor;
    } prefixes[] = {{"", 1}, {"p", 1e-12}, {"n", 1e-9}, {"u", 1e-6}, {"m", 1e-3}, {"k", 1e3},
        {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}, {"Ki", 0x1p10},
        {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strlen(prefixes[i].name) == length && strncmp(prefixes[i].name, prefix, length) == 0)
            return prefixes[i].factor;
    return 0;
}

/* The factor of a written unit, 0 when this dimension has no such unit. */
static double unit_factor(const char *written, const struct dimension_info *info)
{
    size_t length = strlen(written);
    for (const struct unit *unit = info->units; unit->name; unit++) {
        size_t tail = strlen(unit->name);
        if (tail > length || strcmp(written + length - tail, unit->name) != 0)
            continue;
        if (tail == length)
            return unit->factor;
        double prefix = unit->prefixed ? prefix_factor(written, length - tail) : 0;
        if (prefix > 0)
            return prefix * unit->factor;
    }
    return 0;
}

bool quantity_parse(double *out, const char *text, enum dimension dimension, char *why, size_t n)
{
    const struct dimension_info *info = &dimensions[dimension];
    /* strtod also reads "inf", "nan" and hexadecimal; a quantity is written in plain decimal. */
    bool plain = text[strspn(text, "+-.")] >= '0' && text[strspn(text, "+-.")] <= '9' &&
                 !strpbrk(text, "xX");
    char *end = NULL;
    errno = 0;
    double value = plain ? strtod(text, &end) : 0;
    if (!plain || end == text || !isfinite(value)) {
        snprintf(why, n, "'%.40s' is not %s (examples: %s)", text, info->what, info->examples);
        return false;
    }
    while (*end == ' ')
        end++;
    double factor = unit_factor(end, info);
    if (factor == 0) {
        if (*end == '\0')
            snprintf(why, n, "'%.40s' has no unit; %s needs one (examples: %s)", text, info->what,
                info->examples);
        else
            snprintf(why, n, "'%.40s' is not %s (examples: %s)", text, info->what, info->examples);
        return false;
    }
    /* 1e-6 is no double, 1e6 is: dividing rounds once, and 9.5 us is the same double as 9.5e-6. */
    value = factor < 1 ? value / round(1 / factor) : value * factor;
    if (!isfinite(value)) {
        snprintf(why, n, "'%.40s' is too large for %s", text, info->what);
        return false;
    }
    *out = value;
    return true;
}

/* Digits with _ between them and a point somewhere; decimals: behind it. */
struct digits {
    int64_t value;
    int decimals;
    bool any, too_large;
};

static struct digits read_digits(const char **text, bool negative)
{
    struct digits out = {0};
    const char *at = *text;
    bool point = false, after_digit = false;
    for (;; at++) {
        bool digit = *at >= '0' && *at <= '9', next = at[0] && at[1] >= '0' && at[1] <= '9';
        if (!digit && !(after_digit && next && (*at == '_' || (*at == '.' && !point))))
            break;
        point = point || *at == '.';
        after_digit = digit;
        if (!digit)
            continue;
        int units = negative ? '0' - *at : *at - '0';
        out.any = true;
        out.decimals += point;
        out.too_large |= __builtin_mul_overflow(out.value, 10, &out.value) ||
                         __builtin_add_overflow(out.value, units, &out.value);
    }
    *text = at;
    return out;
}

/* "e6"; behind it *text goes on. */
static int read_exponent(const char **text)
{
    enum { MOST = 99 };
    const char *at = *text + (**text == 'e' || **text == 'E');
    bool negative = *at == '-';
    at += *at == '-' || *at == '+';
    if (at == *text || *at < '0' || *at > '9')
        return 0;
    int value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        value = value < MOST ? 10 * value + (*at - '0') : MOST;
    *text = at;
    return negative ? -value : value;
}

/* What a letter multiplies by, as a power of kilo; with an i, of 1024. */
static int read_letter(const char **text, int64_t *kilo)
{
    static const char letters[] = "KkMmBbTtGg";
    static const int powers[] = {1, 2, 3, 4, 3};
    const char *found = **text ? strchr(letters, **text) : NULL;
    if (!found)
        return 0;
    *kilo = (*text)[1] == 'i' ? 1024 : *kilo;
    *text += (*text)[1] == 'i' ? 2 : 1;
    return powers[(found - letters) / 2];
}

enum count_text count_parse(int64_t *out, const char *text, int64_t kilo)
{
    bool negative = *text == '-';
    text += *text == '-' || *text == '+';
    struct digits digits = read_digits(&text, negative);
    int exponent = read_exponent(&text) - digits.decimals;
    int power = read_letter(&text, &kilo);
    int64_t value = digits.value;
    if (!digits.any || *text)
        return COUNT_NO_NUMBER;
    bool too_large = digits.too_large;
    for (; power > 0; power--)
        too_large |= __builtin_mul_overflow(value, kilo, &value);
    for (; exponent > 0 && value != 0; exponent--)
        too_large |= __builtin_mul_overflow(value, 10, &value);
    if (too_large)
        return COUNT_TOO_LARGE;
    for (; exponent < 0 && value != 0; exponent++) {
        if (value % 10 != 0)
            return COUNT_NOT_WHOLE;
        value /= 10;
    }
    *out = value;
    return COUNT_OK;
}

const char *dimension_unit(enum dimension dimension)
{
    return dimensions[dimension].base;
}

const char *quantity_format(char *buffer, size_t n, double value, enum dimension dimension)
{
    static const struct {
        double factor;
        const char *name;
    } prefixes[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""},
        {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}, {1e-12, "p"}};
    const char *base = dimensions[dimension].base;
    double size = fabs(value);
    if (dimension == DIM_NONE || dimension == DIM_FRACTION || dimension == DIM_USD_PER_HOUR ||
        size == 0) {
        snprintf(buffer, n, "%.6g%s%s", value, *base ? " " : "", base);
        return buffer;
    }
    if (dimension == DIM_BYTES && size >= 0x1p20 && fmod(size, 0x1p20) == 0) {
        bool gib = fmod(size, 0x1p30) == 0;
        snprintf(buffer, n, "%.6g %s", value / (gib ? 0x1p30 : 0x1p20), gib ? "GiB" : "MiB");
        return buffer;
    }
    size_t i = 0, last = sizeof prefixes / sizeof *prefixes - 1;
    while (i < last && size < prefixes[i].factor)
        i++;
    snprintf(buffer, n, "%.4g %s%s", value / prefixes[i].factor, prefixes[i].name, base);
    return buffer;
}
