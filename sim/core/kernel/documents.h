/* Sequences that are packed of documents, as THD batches of Megatron-Core and NeMo, varlen kernels
 * of FlashAttention and block-causal masks have it: a position attends to those of the same
 * document. Which share of the pairs of positions of a sequence that leaves is drawn, sequence by
 * sequence.
 *
 * Lengths of documents are independent: from a list with weights; or log-normal with a mean and a
 * standard deviation, which is such a list, too, an eighth of a log-standard deviation apart with
 * the density as weights (the trapezoid rule, whose moments are exact to the rounding to whole
 * tokens), from 4 below the median to 4 above that of the square. A sequence begins with a
 * document; the last one is cut where the sequence ends, as Megatron-Core's and torchtitan's data
 * sets cut them; none is longer than the sequence.
 *
 * Packed to a fixed sum of tokens, that is. With DOCUMENTS_FIXED_NUMBER it is the number of
 * documents that is fixed, as where each sample is one sequence, or a rollout of reinforcement
 * learning: a micro-batch of s sequences has as many documents as they hold in the mean, N = s x
 * seq_len / mean, whole ones, and the tokens of all. By their lengths' mean m and coefficient of
 * variation c its tokens are X of the mean, with a standard deviation of
 *
 *   c / sqrt(N)
 *
 * its pairs the sum of squares. All kernels of the model go with X, so of a rank with a
 * micro-batches a step varies by c / sqrt(N a) of what goes with tokens, and the slowest of R ranks
 * takes 1 + z_R c / sqrt(N a) of it in the mean (z_R: the expected greatest of R normal draws).
 *
 * Ignored: that a data set's stream goes on with what was cut off; that packers which keep
 * documents whole (NeMo's first_fit_shuffle) leave padding at the end, and put long with short
 * ones; padding of documents to a multiple of twice the ranks of context parallelism. */
#ifndef FLOPCAST_KERNEL_DOCUMENTS_H
#define FLOPCAST_KERNEL_DOCUMENTS_H

#include "base/arena.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What micro-batches have alike: tokens, or documents. */
enum document_packing { DOCUMENTS_FIXED_TOKENS, DOCUMENTS_FIXED_NUMBER, DOCUMENT_PACKING_COUNT };
extern const char
    *const document_packing_names[DOCUMENT_PACKING_COUNT + 1]; /* "tokens", "documents" */

/* As a scenario says it. Neither a mean nor lengths: a sequence is one document. */
struct document_options {
    double mean, sd;     /* tokens, of log-normal lengths; sd 0: all have the mean */
    const char *lengths; /* "512=3, 2048": tokens, and a weight where it is not 1; NULL: none */
    int packing;         /* enum document_packing */
};

/* Whether lengths may differ. */
static inline bool document_options_vary(const struct document_options *options)
{
    return options->sd > 0 || options->lengths;
}

struct document_length {
    int64_t tokens;
    double up_to; /* probability of this or one before it in the list; of the last 1 */
};

struct documents {
    int n; /* of the list; 0: a sequence is one document. 1: every draw gives the same */
    const struct document_length *lengths;
    int64_t seq_len;
    double fixed_number; /* DOCUMENTS_FIXED_NUMBER: the mean length; 0: tokens are fixed */
};

enum { DOCUMENTS_WHY = 160 };

/* The list is in the arena. False: it is none of sequences of this length, and why, as "what is
 * wrong; what would be right". */
bool documents_read(struct documents *out, const struct document_options *options, int64_t seq_len,
    struct arena *arena, char why[DOCUMENTS_WHY]);

/* Of all pairs of positions of a sequence those within a document, 0 to 1: the sum of squared
 * lengths over that of the sequence. Of one drawn sequence. */
double documents_draw(const struct documents *documents, struct rng_stream *stream);
/* The expectation, E(s) = sum of p(l) (min(l, s)^2 + E(s - l)), which takes a time of seq_len x n;
 * with a fixed number of documents that of l^2 over m x seq_len. */
double documents_mean(const struct documents *documents);
/* Of one drawn micro-batch of sequences with a fixed number of documents: pairs over those of whole
 * sequences, and tokens over the mean. */
double documents_draw_number(const struct documents *documents, struct rng_stream *stream,
    int32_t sequences, double *tokens);

#endif
