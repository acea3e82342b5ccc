/* Random numbers: one independent stream per entity, so that a draw of one entity never depends on
 * what others drew before (results then do not depend on execution order). A stream is a counter
 * run through the SplitMix64 finaliser (Steele, Lea, Flood, OOPSLA 2014), keyed by (seed, kind of
 * entity, id); it plugs into GSL as a gsl_rng_type, so every distribution of gsl_randist works on
 * it. Period 2^64. Plain value; needs no release. */
#ifndef FLOPCAST_BASE_RNG_H
#define FLOPCAST_BASE_RNG_H

#include <stdint.h>

struct rng_stream {
    uint64_t key, counter;
};

struct rng_stream rng_stream(uint64_t seed, uint32_t entity_kind, uint64_t entity_id);
/* SplitMix64's finaliser. */
static inline uint64_t rng_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static inline uint64_t rng_next(struct rng_stream *stream)
{
    return rng_mix(stream->key + UINT64_C(0x9e3779b97f4a7c15) * ++stream->counter);
}
static inline double rng_uniform(struct rng_stream *stream) /* [0, 1), 53 bits */
{
    return (double)(rng_next(stream) >> 11) * 0x1p-53;
}

/* Draws by GSL, rounded to a multiple of 2^-30, so that libm's last bit, which differs between
 * machines, has no effect. */
double rng_gaussian(struct rng_stream *stream, double sigma);        /* mean 0 */
double rng_lognormal_mean1(struct rng_stream *stream, double sigma); /* mean 1, log-sd sigma */
/* The same where many are drawn with one sigma: its quantile function in RNG_PARTS parts of equal
 * probability, each a straight line but the first and the last, which are drawn as they are. The
 * mean of draws is off by less than 2e-6 and their standard deviation by 0.05 % for sigma up to
 * 0.05; a draw is one step of the stream, always. */
enum { RNG_PARTS = 256 };
struct rng_lognormal {
    double sigma;
    double at[RNG_PARTS + 1]; /* quantiles; the two outer ones are not used */
};
void rng_lognormal_prepare(struct rng_lognormal *jitter, double sigma);
double rng_lognormal_outer(const struct rng_lognormal *jitter, double uniform);
static inline double rng_lognormal_drawn(
    const struct rng_lognormal *jitter, struct rng_stream *stream)
{
    double uniform = rng_uniform(stream) * RNG_PARTS;
    int part = (int)uniform;
    if (part == 0 || part == RNG_PARTS - 1)
        return rng_lognormal_outer(jitter, uniform / RNG_PARTS);
    return jitter->at[part] + (jitter->at[part + 1] - jitter->at[part]) * (uniform - part);
}
/* The greatest of n of these, n >= 1, not drawn one by one: a quantile of the n-th root of one
 * uniform draw. */
double rng_lognormal_max(struct rng_stream *stream, double sigma, double n);
double rng_exponential(struct rng_stream *stream, double mean);

/* The expected order statistics of n standard normal draws (Blom's approximation, 1958: off by
 * 0.026 for two draws, by at most 0.011 for eight), in an order that the stream draws: a typical
 * sample, without the luck of one. */
double rng_normal_score(int i, int n); /* of the i-th smallest, from 0 on */
void rng_normal_scores(struct rng_stream *stream, double *out, int n);

#endif
