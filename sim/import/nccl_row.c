#include "import/nccl_row.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nccl_split(struct nccl_words *out, char *line)
{
    char *rest = NULL;
    out->n = 0;
    for (char *word = strtok_r(line, " \t\r", &rest); word && out->n < NCCL_MAX_WORDS;
         word = strtok_r(NULL, " \t\r", &rest))
        out->at[out->n++] = word;
}

const char *nccl_dtype(const char *word)
{
    static const char *const names[] = {"int8", "char", "uint8", "int32", "int", "uint32", "int64", "uint64", "half",
        "float", "double", "bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i]) == 0)
            return names[i];
    return NULL;
}

static enum nccl_column column(const char *name)
{
    if (strcmp(name, "time") == 0 || strcmp(name, "cputime") == 0)
        return NCCL_TIME;
    if (strcmp(name, "algbw") == 0)
        return NCCL_ALGBW;
    if (strcmp(name, "busbw") == 0)
        return NCCL_BUSBW;
    if (strcmp(name, "#wrong") == 0 || strcmp(name, "wrong") == 0)
        return NCCL_WRONG;
    return NCCL_OTHER; /* "error" is the largest deviation, not a count; -I 1 adds more */
}

bool nccl_columns(struct nccl_columns *out, const struct nccl_words *words)
{
    int size = 0;
    while (size + 3 < words->n && !(strcmp(words->at[size], "size") == 0 && strcmp(words->at[size + 1], "count") == 0 &&
                                      strcmp(words->at[size + 2], "type") == 0))
        size++;
    int i = size + 3;
    if (i >= words->n)
        return false;
    struct nccl_columns found = {.has_nodes = size > 0 && strcmp(words->at[size - 1], "nodes") == 0};
    found.before_type = 2 + found.has_nodes;
    for (; i < words->n && column(words->at[i]) != NCCL_TIME; i++)
        found.middle++;
    for (; i < words->n && found.n_trail < NCCL_MAX_TRAIL && strcmp(words->at[i], "timestamp") != 0; i++) {
        found.cpu_time |= strcmp(words->at[i], "cputime") == 0;
        found.trail[found.n_trail++] = column(words->at[i]);
    }
    if (found.n_trail == 0)
        return false;
    *out = found;
    return true;
}

static bool is_digits(const char *word)
{
    return *word && word[strspn(word, "0123456789")] == '\0';
}

static bool parse_count(const char *word, int64_t *out)
{
    errno = 0;
    *out = is_digits(word) ? strtoll(word, NULL, 10) : 0;
    return is_digits(word) && errno == 0;
}

/* Figures only, or N/A. */
static bool parse_figure(const char *word, double *out)
{
    char *end = NULL;
    *out = (double)NAN;
    if (strcmp(word, "N/A") == 0)
        return true;
    if (!isdigit((unsigned char)*word) && *word != '.' && *word != '-' && strcasecmp(word, "nan") != 0)
        return false;
    *out = strtod(word, &end);
    return *end == '\0' && !isinf(*out);
}

/* The word that names the type, behind size and count; the launcher's words stand before these, perhaps without a space
 * between. -1: none. */
static int find_type(const struct nccl_words *words, int64_t *bytes)
{
    int64_t count = 0;
    for (int i = 2; i < words->n; i++) {
        if (!nccl_dtype(words->at[i]) || !parse_count(words->at[i - 1], &count))
            continue;
        const char *glued = strrchr(words->at[i - 2], ':');
        if (parse_count(words->at[i - 2], bytes) || (glued && parse_count(glued + 1, bytes)))
            return i;
    }
    return -1;
}

/* A line that begins like a row, but has no type: cut in the middle. */
static bool begins_like_row(const struct nccl_words *words, bool terminated)
{
    int first = words->n > 0 && strchr(words->at[0], ':') ? 1 : 0, numbers = 0;
    while (first + numbers < words->n && is_digits(words->at[first + numbers]))
        numbers++;
    return numbers >= 2 || (numbers == 1 && words->n == first + 1 && !terminated);
}

/* A date and a time of day may end the row. */
static int without_timestamp(const struct nccl_words *words)
{
    int n = words->n;
    while (n > 0 && isdigit((unsigned char)*words->at[n - 1]) &&
           (strchr(words->at[n - 1], ':') || strspn(words->at[n - 1], "0123456789-") == 10) &&
           (strchr(words->at[n - 1], ':') || strchr(words->at[n - 1], '-')))
        n--;
    return n;
}

static enum nccl_row_kind take_trail(
    struct nccl_row *out, char *const *words, const struct nccl_columns *columns, char *why, size_t n)
{
    int block = -1;
    bool wrong = false;
    for (int i = 0; i < columns->n_trail; i++) {
        double value = (double)NAN;
        if (!parse_figure(words[i], &value)) {
            snprintf(why, n, "'%.40s' where a number or N/A is wanted; is the row whole?", words[i]);
            return NCCL_ROW_BROKEN;
        }
        if (columns->trail[i] == NCCL_TIME && ++block > 1) {
            snprintf(why, n, "more than two columns of times");
            return NCCL_ROW_BROKEN;
        }
        if (columns->trail[i] == NCCL_TIME)
            out->blocks[block].time_us = value;
        else if (columns->trail[i] == NCCL_ALGBW)
            out->blocks[block].algbw_GBps = value;
        else if (columns->trail[i] == NCCL_BUSBW)
            out->blocks[block].busbw_GBps = value;
        else if (columns->trail[i] == NCCL_WRONG)
            wrong |= value > 0;
    }
    return wrong ? NCCL_ROW_WRONG : NCCL_ROW_FIGURES;
}

enum nccl_row_kind nccl_row(struct nccl_row *out, const struct nccl_words *words, const struct nccl_columns *columns,
    bool terminated, char *why, size_t n)
{
    int type = find_type(words, &out->bytes);
    if (type < 0) {
        if (!columns || !begins_like_row(words, terminated))
            return NCCL_ROW_NONE;
        snprintf(why, n, "this row is cut: size, count, type and times are wanted");
        return NCCL_ROW_BROKEN;
    }
    if (!columns) {
        if (words->n - type < 5) /* words of a sentence */
            return NCCL_ROW_NONE;
        snprintf(why, n, "figures before any column names; keep the line with size, count, type, time ...");
        return NCCL_ROW_BROKEN;
    }
    const struct nccl_block none = {(double)NAN, (double)NAN, (double)NAN};
    out->dtype = nccl_dtype(words->at[type]);
    out->blocks[0] = out->blocks[1] = none;
    int after = without_timestamp(words) - type - 1, middle = after - columns->n_trail;
    if (middle != columns->middle && middle != 0) { /* blank columns are left blank together */
        snprintf(why, n, "%d values behind the type where the column names have %d; is the row cut?", after,
            columns->middle + columns->n_trail);
        return NCCL_ROW_BROKEN;
    }
    if (columns->has_nodes) {
        int64_t nodes = 0;
        if (type < 3 || !parse_count(words->at[type - 3], &nodes) || nodes < 1 || nodes > 1 << 20) {
            snprintf(why, n, "the column nodes has no number of nodes");
            return NCCL_ROW_BROKEN;
        }
        out->nodes = (int)nodes;
    }
    return take_trail(out, words->at + type + 1 + middle, columns, why, n);
}
