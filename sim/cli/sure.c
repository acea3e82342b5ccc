#include "cli/sure.h"

#include "cli/words.h"

#include <math.h>
#include <stdlib.h>

static int digits_of(const struct regime *regime, double value, int digits)
{
    return regime->known ? regime_digits(value * regime->factors.low, value * regime->factors.high, digits) : digits;
}

static const char *rounded(struct arena *arena, double value, int digits)
{
    double unit = pow(10, -digits);
    return digits >= 0 ? words_number(arena, value, digits, false)
                       : words_number(arena, round(value / unit) * unit, 0, false);
}

const char *sure_number(struct arena *arena, const struct regime *regime, double value, int digits)
{
    return rounded(arena, value, digits_of(regime, value, digits));
}

const char *sure_with_range(struct arena *arena, const struct regime *regime, double value, int digits)
{
    if (!regime->known)
        return sure_number(arena, regime, value, digits);
    digits = digits_of(regime, value, digits);
    return arena_printf(arena, "%s (%s-%s)", rounded(arena, value, digits),
        rounded(arena, value * regime->factors.low, digits), rounded(arena, value * regime->factors.high, digits));
}

/* With commas where there are thousands. */
static const char *said(struct arena *arena, double value, int digits)
{
    const char *text = rounded(arena, value, digits);
    return digits > 0 ? text : words_count(arena, strtod(text, NULL));
}

const char *sure_said(struct arena *arena, const struct regime *regime, double value, const char *of)
{
    int digits = digits_of(regime, value, value < 100 ? 2 : 0);
    const char *text = arena_printf(arena, "%s %s", said(arena, value, digits), of);
    return regime->known ? arena_printf(arena, "%s (%s to %s)", text, said(arena, value * regime->factors.low, digits),
                               said(arena, value * regime->factors.high, digits))
                         : text;
}

/* What rows that wait less have. */
static const char *narrower(struct arena *arena, const struct sure_regime *found)
{
    const struct validate_sides *wide = &found->regime.factors, *narrow = &found->narrow.factors;
    static const double LEAST = 0.02; /* else it is the same for a reader */
    double low = 100 * (narrow->low - 1), high = 100 * (narrow->high - 1);
    if (!found->regime.known || fmax(narrow->low - wide->low, wide->high - narrow->high) < LEAST)
        return "";
    return arena_printf(arena, "; where least waits %+.0f to %+.0f %%", low, high);
}

void sure_print(FILE *out, struct sure *sure)
{
    for (int i = 0; i < sure->regimes.n; i++) {
        const struct sure_regime *found = sure->regimes.at[i];
        fputs(i == 0 ? "\n" : "", out);
        words_paragraph(
            out, arena_printf(&sure->arena, "how sure: %s%s", regime_text(&sure->arena, &found->regime, &found->job),
                     narrower(&sure->arena, found)));
    }
}
