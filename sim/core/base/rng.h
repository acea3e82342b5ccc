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
double rng_uniform(struct rng_stream *stream); /* [0, 1), 53 bits */

/* Draws by GSL, rounded to a multiple of 2^-30, so that libm's last bit, which differs between
 * machines, has no effect. */
double rng_gaussian(struct rng_stream *stream, double sigma);        /* mean 0 */
double rng_lognormal_mean1(struct rng_stream *stream, double sigma); /* mean 1, log-sd sigma */
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
