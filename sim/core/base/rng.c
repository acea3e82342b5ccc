/* Counter-based streams: draw i of a stream is a hash of its key and i (SplitMix64's finaliser), so
 * a stream is 16 bytes, needs no warm-up, and any two entities' streams are independent of each
 * other and of the order of draws.
 *
 * GSL's distributions run on a stream through a gsl_rng that points at it. Each result of libm is
 * rounded to a multiple of 2^-30: libm's last bit differs between machines, and a run's digest must
 * not. A draw that lies within that bit of a rounding border could still differ; with 2^-30 and
 * doubles that is one in millions. */
#include "base/rng.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

struct rng_stream rng_stream(uint64_t seed, uint32_t entity_kind, uint64_t entity_id)
{
    uint64_t key = rng_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    key = rng_mix(key ^ ((uint64_t)entity_kind << 32) ^ UINT64_C(0x5851f42d4c957f2d));
    return (struct rng_stream){.key = rng_mix(key ^ entity_id)};
}

/* GSL's view of a stream. GSL wants an unsigned long of at most max; 32 bits are enough for
 * gsl_randist. */
static void gsl_set(void *state, unsigned long seed)
{
    *(struct rng_stream *)state = rng_stream(seed, 0, 0);
}
static unsigned long gsl_get(void *state)
{
    return (unsigned long)(rng_next(state) >> 32);
}
static double gsl_get_double(void *state)
{
    return rng_uniform(state);
}

static const gsl_rng_type stream_type = {"flopcast-splitmix64", UINT32_MAX, 0,
    sizeof(struct rng_stream), gsl_set, gsl_get, gsl_get_double};

static gsl_rng as_gsl(struct rng_stream *stream)
{
    return (gsl_rng){&stream_type, stream};
}

/* To a multiple of 2^-30, ties to even, as nearbyint() would, for |x| below 2^21: at the magnitude
 * of `unit` doubles are 2^-30 apart. Larger ones have no such digits to lose, or few: they go the
 * long way. */
static double rng_rounded(double x)
{
    static const double unit = 0x1.8p22;
    return fabs(x) < 0x1p21 ? (x + unit) - unit : nearbyint(x * 0x1p30) * 0x1p-30;
}

double rng_gaussian(struct rng_stream *stream, double sigma)
{
    gsl_rng rng = as_gsl(stream);
    return rng_rounded(gsl_ran_gaussian(&rng, sigma));
}

double rng_lognormal_mean1(struct rng_stream *stream, double sigma)
{
    gsl_rng rng = as_gsl(stream);
    /* exp(N(zeta, sigma)) has mean exp(zeta + sigma^2 / 2). */
    return rng_rounded(exp(gsl_ran_gaussian_ziggurat(&rng, sigma) - sigma * sigma / 2));
}

/* (0, 1) -> quantile */
static double lognormal_quantile(double sigma, double uniform)
{
    return rng_rounded(exp(sigma * gsl_cdf_ugaussian_Pinv(uniform) - sigma * sigma / 2));
}

void rng_lognormal_prepare(struct rng_lognormal *jitter, double sigma)
{
    jitter->sigma = sigma;
    for (int i = 1; i < RNG_PARTS; i++)
        jitter->at[i] = lognormal_quantile(sigma, (double)i / RNG_PARTS);
}

double rng_lognormal_outer(const struct rng_lognormal *jitter, double uniform)
{
    return lognormal_quantile(jitter->sigma, fmax(uniform, 0x1p-54));
}

/* Of n independent draws with distribution F the greatest is at F^-1(u^(1/n)); expm1 keeps the
 * digits of 1 - u^(1/n). */
double rng_lognormal_max(struct rng_stream *stream, double sigma, double n)
{
    double uniform = fmin(1 - rng_uniform(stream), 1 - 0x1p-53); /* (0, 1) */
    double above = -expm1(log(uniform) / n); /* the chance of one draw above the greatest */
    return rng_rounded(exp(sigma * gsl_cdf_ugaussian_Qinv(above) - sigma * sigma / 2));
}

double rng_exponential(struct rng_stream *stream, double mean)
{
    gsl_rng rng = as_gsl(stream);
    return rng_rounded(gsl_ran_exponential(&rng, mean));
}

static const double BLOM =
    0.375; /* Blom 1958: the i-th of n is at the quantile (i - BLOM) / (n + 1 - 2 BLOM) */

double rng_normal_score(int i, int n)
{
    return rng_rounded(gsl_cdf_ugaussian_Pinv((i + 1 - BLOM) / (n + 1 - 2 * BLOM)));
}

void rng_normal_scores(struct rng_stream *stream, double *out, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = rng_normal_score(i, n);
    gsl_rng rng = as_gsl(stream);
    gsl_ran_shuffle(&rng, out, (size_t)n, sizeof *out);
}
