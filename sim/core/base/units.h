/* Units: text with a unit in, base SI out. "450 GB/s" -> 4.5e11, "2 Tb/s" -> 2.5e11 (b is bits, B
 * bytes), "80 GiB", "5 us", "312 TFLOPS", "700 W", "1.5 GHz", "5 %". Prefixes are decimal (k M G T
 * P) unless the i is written (Ki Mi Gi Ti). A bare number is an error for every dimension except
 * DIM_NONE, because it means nothing without its unit.
 *
 * Simulated time is int64 picoseconds: integers are the same on every compiler, and 2^63 ps are 106
 * days. A run ends at PS_HORIZON, 46 days; a longer span is PS_OVERLONG, which lies beyond it and
 * can be added to any time before it. */
#ifndef FLOPCAST_BASE_UNITS_H
#define FLOPCAST_BASE_UNITS_H

#include "base/status.h"

#include <stdint.h>

typedef int64_t ps_t; /* simulated time or a span of it, picoseconds */
#define PS_PER_S ((ps_t)1000000000000)
#define PS_NEVER INT64_MAX
#define PS_HORIZON ((ps_t)4000000 * PS_PER_S)
#define PS_OVERLONG ((ps_t)4500000 * PS_PER_S)

static const double S_PER_DAY = 86400, MS_PER_S = 1e3, PERCENT = 100;
static const double GIB = 0x1p30; /* what PyTorch and nvidia-smi count in */

/* Bytes of a tensor's element: PyTorch's uint8 and bool, FP8, float, long. */
enum { BYTE = 1, FP8_BYTES = 1, FLOAT_BYTES = 4, LONG_BYTES = 8 };

/* To the nearest picosecond, at most PS_OVERLONG. BUG on a span that is negative or no number.
 * Every kernel asks for it, twice: here, for the compiler to see; a call is a tenth of a run's
 * time. */
static inline ps_t ps_round(double ps)
{
    BUG_IF(!(ps >= 0), "span of %g ps", ps);
    if (ps >= (double)PS_OVERLONG)
        return PS_OVERLONG;
    ps_t whole = (ps_t)ps; /* and the rest is exact: what llround() does, without a call */
    return whole + (ps - (double)whole >= 0.5);
}
static inline ps_t ps_from_s(double seconds)
{
    return ps_round(seconds * (double)PS_PER_S);
}
static inline double s_from_ps(ps_t time)
{
    return (double)time / (double)PS_PER_S;
}

enum dimension {
    DIM_NONE = 0,     /* a plain number */
    DIM_BYTES,        /* B */
    DIM_BYTES_PER_S,  /* B/s; "b/s" and "bps" are bits */
    DIM_SECONDS,      /* s */
    DIM_FLOP_PER_S,   /* FLOP/s, written FLOPS, TFLOPS ... */
    DIM_WATT,         /* W */
    DIM_HERTZ,        /* Hz */
    DIM_FRACTION,     /* 0.05 is written "5 %"; a bare number is a fraction */
    DIM_USD_PER_HOUR, /* $/h */
    DIM_COUNT,
};

/* Parse text as a value of this dimension into *out (base SI). On failure false, and why (n bytes,
 * n >= 128) says what would be right, as in "'5 GB' is not a time (examples: 5 us, 1.2 ms)". *out
 * is then untouched. */
bool quantity_parse(double *out, const char *text, enum dimension dimension, char *why, size_t n);

/* A whole number as people write it: "8", "1_000_000", "1e6", "8k", "1.5K", "11.3B", "15T"; k, M, B
 * (or G) and T, in any case, are powers of kilo, with an i (Ki, Mi) of 1024. What it comes to must
 * be whole: "1.0005k" is not. Only COUNT_OK sets *out. */
enum count_text { COUNT_OK, COUNT_NO_NUMBER, COUNT_NOT_WHOLE, COUNT_TOO_LARGE };
enum count_text count_parse(int64_t *out, const char *text, int64_t kilo);

/* value (base SI) with a fitting prefix: "2.04 TB/s", "80 GiB" when an even binary size, else "39.1
 * GB". Returns buffer. */
const char *quantity_format(char *buffer, size_t n, double value, enum dimension dimension);

/* "B/s" and so on, for column heads and JSON; "" for DIM_NONE and DIM_FRACTION. */
const char *dimension_unit(enum dimension dimension);

#endif
