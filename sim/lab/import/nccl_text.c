/* nccl-tests' text output, with whatever stands around it in a log.
 *
 * Line by line: comments "# key: value" of ours hold for the whole file; a banner (program,
 * ranks with hosts, settings) belongs to a run; the line of column names begins a table and says
 * what stands behind the type; rows are found by their type, as a launcher may put words before
 * them, even without a blank. A banner after rows begins a new run and forgets the last one's.
 *
 * What is subtle: a row that is cut must not pass for a shorter one. So the number of values
 * behind the type has to match the columns, a line that begins like a row without a type is an
 * error, and so is one before any column names. Ranks are counted only when the list is
 * complete: as many lines as the highest rank + 1. mpirun's tags are blanked also within lines.
 * Texts that are no UTF-8 get '?', as they go into the database. */
#include "import/nccl_table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NCCL_MAX_WORDS = 64, NCCL_MAX_TRAIL = 32 };

struct nccl_words {
    char *at[NCCL_MAX_WORDS]; /* the first words of the line, split in place */
    int n;
};

/* size and count stand before the type, perhaps after "nodes"; then redop and root where the
 * version has them; then, from the first "time" on, the trail: both blocks. */
struct nccl_columns {
    int before_type, middle;
    enum nccl_column {
        NCCL_TIME,
        NCCL_ALGBW,
        NCCL_BUSBW,
        NCCL_WRONG,
        NCCL_OTHER
    } trail[NCCL_MAX_TRAIL];
    int n_trail;
    bool has_nodes, cpu_time;
};

/* columns NULL: no table has begun. terminated: as in struct input_line. NCCL_ROW_BROKEN: why (n
 * bytes) says why. */
enum nccl_row_kind { NCCL_ROW_NONE, NCCL_ROW_FIGURES, NCCL_ROW_WRONG, NCCL_ROW_BROKEN };

static void nccl_split(struct nccl_words *out, char *line)
{
    char *rest = NULL;
    out->n = 0;
    for (char *word = strtok_r(line, " \t\r", &rest); word && out->n < NCCL_MAX_WORDS;
         word = strtok_r(NULL, " \t\r", &rest))
        out->at[out->n++] = word;
}

const char *nccl_dtype(const char *word)
{
    static const char *const names[] = {"int8", "char", "uint8", "int32", "int", "uint32", "int64",
        "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3",
        "fp8_e5m2"};
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

/* Whether the line holds the column names; *out is then filled. */
static bool nccl_columns(struct nccl_columns *out, const struct nccl_words *words)
{
    int size = 0;
    while (size + 3 < words->n &&
           !(strcmp(words->at[size], "size") == 0 && strcmp(words->at[size + 1], "count") == 0 &&
               strcmp(words->at[size + 2], "type") == 0))
        size++;
    int i = size + 3;
    if (i >= words->n)
        return false;
    struct nccl_columns found = {
        .has_nodes = size > 0 && strcmp(words->at[size - 1], "nodes") == 0};
    found.before_type = 2 + found.has_nodes;
    for (; i < words->n && column(words->at[i]) != NCCL_TIME; i++)
        found.middle++;
    for (; i < words->n && found.n_trail < NCCL_MAX_TRAIL && strcmp(words->at[i], "timestamp") != 0;
         i++) {
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
    if (!isdigit((unsigned char)*word) && *word != '.' && *word != '-' &&
        strcasecmp(word, "nan") != 0)
        return false;
    *out = strtod(word, &end);
    return *end == '\0' && !isinf(*out);
}

/* The word that names the type, behind size and count; the launcher's words stand before these,
 * perhaps without a space between. -1: none. */
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

static enum nccl_row_kind take_trail(struct nccl_row *out, char *const *words,
    const struct nccl_columns *columns, char *why, size_t n)
{
    int block = -1;
    bool wrong = false;
    for (int i = 0; i < columns->n_trail; i++) {
        double value = (double)NAN;
        if (!parse_figure(words[i], &value)) {
            snprintf(
                why, n, "'%.40s' where a number or N/A is wanted; is the row whole?", words[i]);
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

static enum nccl_row_kind nccl_row(struct nccl_row *out, const struct nccl_words *words,
    const struct nccl_columns *columns, bool terminated, char *why, size_t n)
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
        snprintf(why, n,
            "figures before any column names; keep the line with size, count, type, time ...");
        return NCCL_ROW_BROKEN;
    }
    const struct nccl_block none = {(double)NAN, (double)NAN, (double)NAN};
    out->dtype = nccl_dtype(words->at[type]);
    out->blocks[0] = out->blocks[1] = none;
    int after = without_timestamp(words) - type - 1, middle = after - columns->n_trail;
    if (middle != columns->middle && middle != 0) { /* blank columns are left blank together */
        snprintf(why, n,
            "%d values behind the type where the column names have %d; is the row cut?", after,
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

enum { TEXT_MAX_RANKS = 1 << 16 };

/* What is known before a table, from the comments of the whole file and from the banner of the run.
 */
struct text_reader {
    struct nccl_tables *t;
    struct nccl_table stated;      /* by comments */
    struct nccl_table run;         /* by the banner: collective, ambiguous, algorithm, protocol */
    VEC(const char *) hosts;       /* of group 0, of neighbours on one the first */
    int listed, in_group, highest; /* ranks: lines; those of group 0; the highest number */
    const char *listed_gpu, *run_version;
    struct nccl_columns columns;
    bool in_table; /* columns hold */
    bool had_rows; /* since the run began */
    bool footer;   /* the run came to its end */
};

/* Texts go into the database: valid UTF-8, or the bytes that are not ASCII become '?'. */
static bool is_utf8(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    while (*c) {
        int more = *c < 0x80                 ? 0
                   : *c >= 0xc2 && *c < 0xe0 ? 1
                   : *c >= 0xe0 && *c < 0xf0 ? 2
                   : *c >= 0xf0 && *c < 0xf5 ? 3
                                             : -1;
        if (more < 0)
            return false;
        for (c++; more > 0; more--, c++)
            if ((*c & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static const char *nccl_text_keep(struct text_reader *r, const char *text, size_t n)
{
    char *copy = arena_printf(r->t->arena, "%.*s", (int)n, text);
    bool valid = is_utf8(copy);
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f || (!valid && (unsigned char)*c >= 0x80))
            *c = '?';
    return copy;
}

static void forget_list(struct text_reader *r)
{
    r->listed = r->in_group = r->highest = r->hosts.n = 0;
}

/* A run begins with its command or banner; one that had figures is over. */
static void new_run(struct text_reader *r)
{
    if (!r->had_rows)
        return;
    r->run = (struct nccl_table){0};
    r->had_rows = r->in_table = r->footer = false;
    forget_list(r);
}

/* Comments */

static void set_text(struct text_reader *r, const char **at, const char *value, int line)
{
    if (!*value || strncmp(value, "not stated", 10) == 0 || strncmp(value, "see ", 4) == 0)
        return;
    const char *text = nccl_text_keep(r, value, strlen(value));
    if (*at && strcmp(*at, text) != 0)
        nccl_refuse(r->t, line, "a second value for this; one system a file");
    *at = text;
}

static int nccl_text_whole_number(const char *value)
{
    char *end = NULL;
    errno = 0;
    long n = strtol(value, &end, 10);
    return errno == 0 && end != value && (*end == '\0' || *end == ' ') && n > 0 && n <= INT32_MAX
               ? (int)n
               : 0;
}

/* Words, as "not stated" or "8-32", state nothing; a number is one that can be. */
static int stated_number(struct text_reader *r, const char *value, int line)
{
    int n = nccl_text_whole_number(value);
    const char *digits = value + (*value == '-');
    if (n == 0 && *digits && digits[strspn(digits, "0123456789")] == '\0')
        nccl_refuse(r->t, line, "'%.40s' is no whole number from 1 to 2147483647", value);
    return n;
}

/* "# key: value" at the start of the line; false: no comment of ours. */
static bool take_comment(struct text_reader *r, char *line, int number)
{
    struct measurement_about *about = &r->t->log->about;
    const struct {
        const char *key, **at;
    } texts[] = {{"source", &about->source}, {"gpu", &about->gpu}, {"network", &about->network},
        {"nccl_version", &about->nccl_version}, {"note", &about->note}};
    if (line[0] != '#' || line[1] != ' ')
        return false;
    size_t n = strspn(line + 2, "abcdefghijklmnopqrstuvwxyz_");
    if (n == 0 || line[2 + n] != ':')
        return false;
    char *value = line + 2 + n + 1;
    value += strspn(value, " \t");
    for (char *end = value + strlen(value); end > value && isspace((unsigned char)end[-1]); end--)
        end[-1] = '\0';
    line[2 + n] = '\0';
    const char *key = line + 2;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(key, texts[i].key) == 0)
            set_text(r, texts[i].at, value, number);
    if (strcmp(key, "collective") == 0 && !(r->stated.collective = nccl_collective(value)))
        nccl_refuse(r->t, number, "'%.40s' is no collective of nccl-tests", value);
    else if (strcmp(key, "n_nodes") == 0)
        r->stated.stated_nodes = stated_number(r, value, number);
    else if (strcmp(key, "n_gpus") == 0)
        r->stated.stated_ranks = stated_number(r, value, number);
    else if (strcmp(key, "algo") == 0)
        r->stated.algorithm = nccl_algorithm(value);
    else if (strcmp(key, "proto") == 0)
        r->stated.protocol = nccl_protocol(value);
    else if (strcmp(key, "healthy") == 0)
        about->unhealthy = *value == 'n';
    else if (strcmp(key, "partial") == 0)
        about->partial = *value == 'y';
    line[2 + n] = ':';
    return true;
}

/* Banner */

/* "Rank 0 Group 0 Pid 123 on HOST device 0 [0000:19:00] NAME"; older versions have no group. */
static void take_rank(struct text_reader *r, const char *text)
{
    int rank = 0, group = 0, at = 0;
    char host[256];
    if (sscanf(text, "Rank %d Group %d Pid %*d on %255s device %*d [%*[^]]]%n", &rank, &group, host,
            &at) < 3 ||
        at == 0) {
        group = 0;
        if (sscanf(text, "Rank %d Pid %*d on %255s device %*d [%*[^]]]%n", &rank, host, &at) < 2 ||
            at == 0)
            return;
    }
    if (rank < 0 || rank >= TEXT_MAX_RANKS)
        return;
    new_run(r);
    if (rank == 0) /* the list begins, perhaps again */
        forget_list(r);
    r->listed++;
    r->highest = rank > r->highest ? rank : r->highest;
    if (group != 0)
        return;
    r->in_group++;
    const char *name = text + at + strspn(text + at, " ");
    if (*name)
        r->listed_gpu = nccl_text_keep(r, name, strcspn(name, "\t\r"));
    if (r->hosts.n == 0 || strcmp(r->hosts.at[r->hosts.n - 1], host) != 0)
        vec_push(&r->hosts, arena_strdup(r->t->arena, host));
}

/* NCCL_ALGO and NCCL_PROTO in a command or in NCCL's own log. */
static const char *setting(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    if (!at)
        return NULL;
    static const char by_environment[] = " set by environment to ";
    at += strlen(name);
    if (*at == '=')
        return at + 1;
    return strncmp(at, by_environment, sizeof by_environment - 1) == 0
               ? at + sizeof by_environment - 1
               : NULL;
}

/* The program's name: letters before "_perf". */
static void nccl_text_take_program(struct text_reader *r, const char *line)
{
    for (const char *at = line; (at = strstr(at, "_perf")); at++) {
        const char *start = at;
        while (start > line && (islower((unsigned char)start[-1]) || start[-1] == '_'))
            start--;
        const char *name =
            nccl_collective(arena_printf(r->t->arena, "%.*s", (int)(at - start), start));
        if (!name)
            continue;
        new_run(r);
        r->run.ambiguous |= r->run.collective && strcmp(r->run.collective, name) != 0;
        r->run.collective = name;
    }
}

static void take_banner(struct text_reader *r, const char *line)
{
    static const char version[] = "NCCL version ";
    const char *at;
    if (strstr(line, "nThread ") && strstr(line, "minBytes "))
        new_run(r);
    nccl_text_take_program(r, line);
    if ((at = strstr(line, "Rank ")))
        take_rank(r, at);
    if ((at = strstr(line, version)) && isdigit((unsigned char)at[sizeof version - 1]))
        r->run_version =
            nccl_text_keep(r, at + sizeof version - 1, strcspn(at + sizeof version - 1, " \t"));
    if ((at = setting(line, "NCCL_ALGO"))) {
        new_run(r);
        r->run.algorithm = nccl_algorithm(at);
    }
    if ((at = setting(line, "NCCL_PROTO"))) {
        new_run(r);
        r->run.protocol = nccl_protocol(at);
    }
    r->footer |= strstr(line, "Avg bus bandwidth") || strstr(line, "Out of bounds values");
}

/* Tables */

static int nccl_text_by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int count_hosts(struct text_reader *r)
{
    int n = 0;
    qsort(r->hosts.at, (size_t)r->hosts.n, sizeof *r->hosts.at, nccl_text_by_name);
    for (int i = 0; i < r->hosts.n; i++)
        n += i == 0 || strcmp(r->hosts.at[i], r->hosts.at[i - 1]) != 0;
    return n;
}

static void begin_table(struct text_reader *r, int line)
{
    struct nccl_table table = r->stated;
    bool complete = r->listed > 0 && r->listed == r->highest + 1;
    table.line = line;
    table.first_row = r->t->rows.n;
    table.ambiguous = !table.collective && r->run.ambiguous;
    table.collective = table.collective ? table.collective : r->run.collective;
    table.algorithm = table.algorithm ? table.algorithm : r->run.algorithm;
    table.protocol = table.protocol ? table.protocol : r->run.protocol;
    table.listed_ranks = complete ? r->in_group : 0;
    table.listed_nodes = complete && r->hosts.n > 0 ? count_hosts(r) : 0;
    vec_push(&r->t->tables, table);
    r->in_table = true;
    r->footer = false;
}

/* What mpirun --tag-output puts before what a rank prints, "[1,0]<stdout>:" or "[0]", and again
 * where the rank printed a line in parts, so within rows. All of them are taken out. */
static void take_out_tags(char *line)
{
    enum { MOST_TAG = 64 };
    char tag[MOST_TAG + 1];
    size_t inside = *line == '[' ? strspn(line + 1, "0123456789,") : 0, n = inside + 2;
    if (inside == 0 || inside > MOST_TAG / 2 || line[n - 1] != ']')
        return;
    if (strncmp(line + n, "<stdout>:", 9) == 0 || strncmp(line + n, "<stderr>:", 9) == 0)
        n += 9;
    memcpy(tag, line, n);
    tag[n] = '\0';
    char *from = line + n + (line[n] == ' '); /* a comment begins its line */
    memmove(line, from, strlen(from) + 1);
    for (char *at = line; (at = strstr(at, tag)); at += n)
        memset(at, ' ', n);
}

static void take_line(struct text_reader *r, const struct input_line *line)
{
    take_out_tags(line->text);
    nccl_settings_line(&r->t->log->said, line->text, r->t->arena);
    if (!take_comment(r, line->text, line->number) || strncmp(line->text, "# env:", 6) == 0)
        take_banner(r, line->text);
    struct nccl_words words;
    nccl_split(&words, line->text);
    if (nccl_columns(&r->columns, &words)) {
        if (r->columns.cpu_time)
            nccl_refuse(r->t, line->number,
                "these are CPU times (-C 1), not durations; measure without -C");
        begin_table(r, line->number);
        return;
    }
    struct nccl_row row = {.position = line->number, .line = line->number};
    char why[160];
    switch (nccl_row(
        &row, &words, r->in_table ? &r->columns : NULL, line->terminated, why, sizeof why)) {
    case NCCL_ROW_NONE:
        return;
    case NCCL_ROW_BROKEN:
        nccl_refuse(r->t, line->number, "%s", why);
        return;
    case NCCL_ROW_WRONG:
        r->t->log->wrong++;
        break;
    case NCCL_ROW_FIGURES:
        nccl_add_row(r->t, &row);
        break;
    }
    r->had_rows = true;
}

void nccl_read_text(struct nccl_tables *t)
{
    struct text_reader r = {.t = t};
    struct input_line line = {0};
    struct measurement_about *about = &t->log->about;
    enum status status;
    while ((status = input_line(t->input, &line, t->diag)) == STATUS_OK && line.text)
        take_line(&r, &line);
    if (status != STATUS_OK)
        t->worst = status;
    t->log->ended = r.footer;
    if (!about->gpu)
        about->gpu = r.listed_gpu;
    if (r.run_version)
        about->nccl_version = r.run_version;
    vec_free(&r.hosts);
}
