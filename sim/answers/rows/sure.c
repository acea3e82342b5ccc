#include "rows/sure.h"

#include "rows/words.h"

#include <math.h>
#include <stdlib.h>

static int sure_digits_of(const struct sure_range *range, double value, int digits)
{
    return range->known ? sure_digits(value * range->low, value * range->high, digits) : digits;
}

static const char *sure_rounded(struct arena *arena, double value, int digits)
{
    double unit = pow(10, -digits);
    return digits >= 0 ? words_number(arena, value, digits, false)
                       : words_number(arena, round(value / unit) * unit, 0, false);
}

const char *sure_number(
    struct arena *arena, const struct sure_range *range, double value, int digits)
{
    return sure_rounded(arena, value, sure_digits_of(range, value, digits));
}

const char *sure_with_range(
    struct arena *arena, const struct sure_range *range, double value, int digits)
{
    if (!range->known)
        return sure_number(arena, range, value, digits);
    digits = sure_digits_of(range, value, digits);
    return arena_printf(arena, "%s (%s-%s)", sure_rounded(arena, value * range->middle, digits),
        sure_rounded(arena, value * range->low, digits),
        sure_rounded(arena, value * range->high, digits));
}

/* With commas where there are thousands. */
static const char *rows_sure_said(struct arena *arena, double value, int digits)
{
    const char *text = sure_rounded(arena, value, digits);
    return digits > 0 ? text : words_count(arena, strtod(text, NULL));
}

const char *sure_said(
    struct arena *arena, const struct sure_range *range, double value, const char *of)
{
    int digits = sure_digits_of(range, value, value < 100 ? 2 : 0);
    const char *text = arena_printf(arena, "%s %s",
        rows_sure_said(arena, value * (range->known ? range->middle : 1), digits), of);
    return range->known ? arena_printf(arena, "%s (%s to %s)", text,
                              rows_sure_said(arena, value * range->low, digits),
                              rows_sure_said(arena, value * range->high, digits))
                        : text;
}

const char *sure_said_to_fit(struct arena *arena, struct sure *sure, double peak, double capacity)
{
    double share = sure_of_fit(sure, peak, capacity);
    return share > SCENARIO_SURE_TO_FIT
               ? "fits"
               : arena_printf(
                     arena, "close: fits in %.0f of 10 such cases", fmax(1, floor(10 * share)));
}

void sure_print(FILE *out, struct sure *sure)
{
    const struct sure_numbers *numbers = &sure->numbers;
    if (sure->asked.n > 0 || sure->asked_peak)
        fputs("\n", out);
    for (int i = 0; i < sure->asked.n; i++)
        words_paragraph_of(
            out, "how sure: %s", sure_sentence(&sure->arena, numbers, sure->asked.at[i]));
    for (int shared = 0; shared <= 1; shared++)
        if (sure->asked_ratio[shared])
            words_paragraph_of(out, "%s", sure_ratio_sentence(&sure->arena, numbers, shared));
    if (sure->asked_peak)
        words_paragraph_of(out, "how sure: %s", sure_peak_sentence(&sure->arena, numbers));
}
