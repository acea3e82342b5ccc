/* Lengths of documents as a list with cumulative probabilities, and what they leave of a sequence's
 * pairs: drawn, or in the mean.
 *
 * A log-normal is made such a list when it is read, so drawing is one uniform number and a binary
 * search for both forms. Probabilities are rounded to 2^-30, so that draws do not depend on libm. A
 * sequence is filled with documents until it is full, and the last is cut; the share of pairs is
 * the sum of squares over the square.
 *
 * The mean for a fixed sum of tokens is a recursion over the tokens that are left: E(s) = sum of
 * p(l) (min(l, s)^2 + E(s - l)), in seq_len x n steps. With a fixed number of documents it is a
 * ratio of moments. */
#include "kernel/documents.h"

#include "base/vec.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const document_packing_names[DOCUMENT_PACKING_COUNT + 1] = {
    [DOCUMENTS_FIXED_TOKENS] = "tokens", [DOCUMENTS_FIXED_NUMBER] = "documents"};

typedef VEC(struct document_length) length_list; /* up_to: the weight alone, until close_list() */

/* Sums of weights, of which the last is 1; rounded, so that libm's last bit, which differs between
 * machines, has no effect. */
static void close_list(struct documents *out, const length_list *list, struct arena *arena)
{
    double sum = 0, so_far = 0;
    for (int i = 0; i < list->n; i++)
        sum += list->at[i].up_to;
    struct document_length *lengths = ARENA_ARRAY(arena, struct document_length, list->n);
    for (int i = 0; i < list->n; i++) {
        so_far += list->at[i].up_to;
        lengths[i] = (struct document_length){
            list->at[i].tokens, nearbyint(so_far / sum * 0x1p30) * 0x1p-30};
    }
    lengths[list->n - 1].up_to = 1;
    out->lengths = lengths;
    out->n = list->n;
}

static void documents_add(length_list *list, int64_t tokens, double weight)
{
    if (list->n > 0 && list->at[list->n - 1].tokens == tokens)
        list->at[list->n - 1].up_to += weight;
    else
        vec_push(list, (struct document_length){tokens, weight});
}

/* Points an eighth of a log-standard deviation apart, weighted by the density: the trapezoid rule.
 * In units of z the list reaches higher than lower by 2 x deviation, where the squares of lengths
 * have their median. */
static void add_lognormal(length_list *list, double mean, double sd, int64_t seq_len)
{
    enum { A_DEVIATION = 8, REACH = 4 };
    double variance = log1p(sd / mean * (sd / mean)), deviation = sqrt(variance);
    int last = (int)ceil((REACH + 2 * deviation) * A_DEVIATION);
    for (int i = -REACH * A_DEVIATION; i <= last; i++) {
        double z = (double)i / A_DEVIATION, tokens = mean * exp(deviation * z - variance / 2);
        documents_add(list, llround(fmax(1, fmin(tokens, (double)seq_len))), exp(-z * z / 2));
    }
}

/* The mean length, or that of its square. */
static double moment(const struct documents *documents, int power)
{
    double sum = 0, before = 0;
    for (int i = 0; i < documents->n; i++) {
        double tokens = (double)documents->lengths[i].tokens;
        sum += (documents->lengths[i].up_to - before) * (power == 2 ? tokens * tokens : tokens);
        before = documents->lengths[i].up_to;
    }
    return sum;
}

static const char *after_spaces(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static const double MOST_WEIGHT = 1e9; /* sums stay finite */

/* "512=3", up to a comma or the end. False: it is none. */
static bool read_length(length_list *list, const char **text, int64_t seq_len)
{
    char *end;
    double tokens = strtod(*text, &end), weight = 1;
    bool is_number = end != *text;
    *text = after_spaces(end);
    if (is_number && **text == '=') {
        const char *from = *text + 1;
        weight = strtod(from, &end);
        is_number = end != from;
        *text = after_spaces(end);
    }
    if (!is_number || !(tokens >= 1 && tokens <= (double)seq_len && tokens == floor(tokens)) ||
        !(weight > 0 && weight <= MOST_WEIGHT) || (**text && **text != ','))
        return false;
    documents_add(list, (int64_t)tokens, weight);
    return true;
}

static bool documents_read_list(
    length_list *list, const char *text, int64_t seq_len, char why[DOCUMENTS_WHY])
{
    for (const char *at = text;; at++) {
        const char *from = after_spaces(at);
        if (!read_length(list, &at, seq_len)) {
            snprintf(why, DOCUMENTS_WHY,
                "'%.40s' is no length of a document; take whole tokens from 1 to seq_len, %lld, "
                "and a weight, as in 512=3, 2048=1",
                from, (long long)seq_len);
            return false;
        }
        if (!*at)
            return true;
    }
}

bool documents_read(struct documents *out, const struct document_options *options, int64_t seq_len,
    struct arena *arena, char why[DOCUMENTS_WHY])
{
    length_list list = {0};
    bool known = true;
    *out = (struct documents){.seq_len = seq_len};
    if (options->lengths && options->mean > 0) {
        snprintf(why, DOCUMENTS_WHY,
            "lengths of documents are a list or have a mean; leave one of them out");
        known = false;
    } else if (options->lengths) {
        known = documents_read_list(&list, options->lengths, seq_len, why);
    } else if (options->mean > (double)seq_len) {
        snprintf(why, DOCUMENTS_WHY,
            "documents of %.0f tokens in sequences of %lld; use at most that many, or longer "
            "sequences",
            options->mean, (long long)seq_len);
        known = false;
    } else if (options->mean > 0) {
        add_lognormal(&list, options->mean, options->sd, seq_len);
    }
    if (known && list.n > 0)
        close_list(out, &list, arena);
    if (out->n > 0 && options->packing == DOCUMENTS_FIXED_NUMBER)
        out->fixed_number = moment(out, 1);
    vec_free(&list);
    return known;
}

static int64_t drawn_tokens(const struct documents *documents, struct rng_stream *stream)
{
    double drawn = rng_uniform(stream);
    int low = 0, high = documents->n - 1; /* the first whose up_to is greater is in [low, high] */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (documents->lengths[middle].up_to > drawn)
            high = middle;
        else
            low = middle + 1;
    }
    return documents->lengths[low].tokens;
}

static double documents_share(const struct documents *documents, double squares)
{
    return squares / ((double)documents->seq_len * (double)documents->seq_len);
}

double documents_draw(const struct documents *documents, struct rng_stream *stream)
{
    double squares = 0;
    for (int64_t left = documents->seq_len; left > 0;) {
        int64_t tokens = drawn_tokens(documents, stream);
        double length = (double)(tokens < left ? tokens : left);
        squares += length * length;
        left -= tokens;
    }
    return documents_share(documents, squares);
}

double documents_draw_number(
    const struct documents *documents, struct rng_stream *stream, int32_t sequences, double *tokens)
{
    double mean = documents->fixed_number, whole = (double)sequences * (double)documents->seq_len;
    int64_t number = llround(fmax(1, whole / mean));
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < number; i++) {
        double length = (double)drawn_tokens(documents, stream);
        sum += length;
        squares += length * length;
    }
    *tokens = sum / ((double)number * mean);
    return squares / ((double)number * mean * (double)documents->seq_len);
}

double documents_mean(const struct documents *documents)
{
    if (documents->fixed_number > 0)
        return moment(documents, 2) / (documents->fixed_number * (double)documents->seq_len);
    double *expected =
        xcalloc((size_t)documents->seq_len + 1, sizeof *expected); /* of what is left: squares */
    for (int64_t left = 1; left <= documents->seq_len; left++) {
        double before = 0;
        for (int i = 0; i < documents->n; i++) {
            int64_t tokens =
                documents->lengths[i].tokens < left ? documents->lengths[i].tokens : left;
            double p = documents->lengths[i].up_to - before, length = (double)tokens;
            expected[left] += p * (length * length + expected[left - tokens]);
            before = documents->lengths[i].up_to;
        }
    }
    double mean = documents_share(documents, expected[documents->seq_len]);
    free(expected);
    return mean;
}
