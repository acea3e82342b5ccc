/* Tables of nccl-tests to measurements: which collective, how many ranks, and whether the
 * figures agree with each other.
 *
 * The readers (nccl_text.c, nccl_json.c) give rows and tables; a table is the rows up to the
 * next one's first, cut where the column nodes changes. The number of ranks is what the user
 * says, then the file's comments, then the list of devices, and at last what the bandwidths
 * allow: busbw / algbw is 2 (n - 1) / n or (n - 1) / n, and each row narrows the range of n by
 * the rounding of the two printed figures. Where the range has one whole number, that is it.
 *
 * What is subtle: the same range contradicts a wrong number of ranks or a wrong collective,
 * which is then refused. A row whose time does not fit its algbw was cut or joined by a
 * terminal, and is refused too. Rows of 0 bytes are counted and left out. */
#include "import/nccl_table.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RANKS = 1 << 20 };

/* Half a unit of the last digit that nccl-tests prints of a bandwidth, GB/s, and a little for the
 * decimal point. */
static const double rounding_GBps = 0.0051;

/* Times have four digits or more; algbw may have been computed from more of them. */
static const double time_tolerance = 0.01;

static const struct {
    const char *program, *name;
    enum { RATIO_NONE, RATIO_TWICE, RATIO_ONCE } ratio; /* busbw / algbw: 1; 2 (n-1)/n; (n-1)/n */
} collectives[] = {
    {"all_reduce", "all_reduce", RATIO_TWICE},
    {"all_gather", "all_gather", RATIO_ONCE},
    {"reduce_scatter", "reduce_scatter", RATIO_ONCE},
    {"alltoall", "all_to_all", RATIO_ONCE},
    {"all_to_all", "all_to_all", RATIO_ONCE},
    {"broadcast", "broadcast", RATIO_NONE},
    {"reduce", "reduce", RATIO_NONE},
    {"sendrecv", "send_recv", RATIO_NONE},
    {"send_recv", "send_recv", RATIO_NONE},
    {"gather", "gather", RATIO_ONCE},
    {"scatter", "scatter", RATIO_ONCE},
    {"hypercube", "hypercube", RATIO_NONE},
};
enum { N_COLLECTIVES = sizeof collectives / sizeof *collectives };

const char *nccl_collective(const char *name)
{
    for (int i = 0; i < N_COLLECTIVES; i++)
        if (strcmp(name, collectives[i].program) == 0)
            return collectives[i].name;
    return NULL;
}

static const char *nccl_first_word(const char *text, const char *const *names)
{
    for (; *names; names++) {
        size_t n = strlen(*names);
        if (strncasecmp(text, *names, n) == 0 && !isalnum((unsigned char)text[n]) &&
            !strchr(",^:;", text[n] ? text[n] : ' '))
            return *names;
    }
    return NULL;
}

const char *nccl_algorithm(const char *text)
{
    static const char *const names[] = {"Ring", "Tree", "CollNetDirect", "CollNetChain", "CollNet",
        "NVLSTree", "NVLS", "PAT", NULL};
    return nccl_first_word(text, names);
}

const char *nccl_protocol(const char *text)
{
    static const char *const names[] = {"LL128", "LL", "Simple", NULL};
    return nccl_first_word(text, names);
}

/* Also called by the readers for rows that they have parsed; NaN is a figure that is not there. */
void nccl_add_row(struct nccl_tables *t, const struct nccl_row *row)
{
    bool timed = false;
    if (row->bytes == 0) {
        t->log->empty++;
        return;
    }
    for (int i = 0; i < 2; i++) {
        const struct nccl_block *block = &row->blocks[i];
        double time_s = block->time_us * 1e-6, algbw_GBps = (double)row->bytes / time_s * 1e-9;
        if (isnan(block->time_us))
            continue;
        timed = true;
        if (!(block->time_us > 0 && block->time_us <= 1e12))
            nccl_refuse(t, row->line, "a time of %g us", block->time_us);
        else if (!isnan(block->algbw_GBps) &&
                 fabs(algbw_GBps - block->algbw_GBps) > rounding_GBps + time_tolerance * algbw_GBps)
            nccl_refuse(t, row->line,
                "%lld bytes in %g us are %.2f GB/s, not algbw %.2f; is the row whole?",
                (long long)row->bytes, block->time_us, algbw_GBps, block->algbw_GBps);
    }
    if (!timed)
        nccl_refuse(t, row->line, "no time in this row");
    else if (t->rows.n == NCCL_MAX_ROWS)
        nccl_refuse(t, row->line, "more than %d rows; split the file", NCCL_MAX_ROWS);
    else if (t->rows.n < NCCL_MAX_ROWS)
        vec_push(&t->rows, *row);
}

/* Ranks that the printed bandwidths allow. */
struct range {
    double low, high;
};

static double nccl_ranks_of(double ratio, int kind)
{
    double whole = kind == RATIO_TWICE ? 2 : 1;
    return ratio < whole ? whole / (whole - ratio) : HUGE_VAL;
}

static void nccl_narrow(struct range *range, const struct nccl_row *row, const char *collective)
{
    int kind = RATIO_NONE;
    for (int i = 0; i < N_COLLECTIVES; i++)
        if (strcmp(collective, collectives[i].name) == 0)
            kind = (int)collectives[i].ratio;
    for (int i = 0; i < 2 && kind != RATIO_NONE; i++) {
        double a = row->blocks[i].algbw_GBps, b = row->blocks[i].busbw_GBps;
        if (isnan(a) || isnan(b) || a <= 2 * rounding_GBps)
            continue;
        range->low =
            fmax(range->low, nccl_ranks_of((b - rounding_GBps) / (a + rounding_GBps), kind));
        range->high =
            fmin(range->high, nccl_ranks_of((b + rounding_GBps) / (a - rounding_GBps), kind));
    }
}

struct group {
    const struct nccl_table *table;
    const char *collective;
    int first, end; /* rows */
};

/* Ranks and nodes of rows that have them in common, into *out. */
static bool find_ranks(
    struct nccl_tables *t, const struct group *group, struct collective_measurement *out)
{
    const struct nccl_table *table = group->table;
    const struct nccl_row *row = &t->rows.at[group->first];
    struct range range = {1, HUGE_VAL};
    for (int i = group->first; i < group->end; i++)
        nccl_narrow(&range, &t->rows.at[i], group->collective);
    out->nodes = t->options->nodes     ? t->options->nodes
                 : row->nodes          ? row->nodes
                 : table->stated_nodes ? table->stated_nodes
                                       : table->listed_nodes;
    out->ranks = t->options->ranks     ? t->options->ranks
                 : table->stated_ranks ? table->stated_ranks
                                       : table->listed_ranks;
    if (out->ranks == 0 && range.high <= MOST_RANKS && ceil(range.low) == floor(range.high))
        out->ranks = (int)ceil(range.low);
    if (isinf(range.low))
        nccl_refuse(t, row->line,
            "busbw is larger against algbw than %s has it on any number of ranks; correct the "
            "collective",
            group->collective);
    else if (out->ranks == 0)
        nccl_refuse(t, row->line, "how many ranks ran is not in the file; say it with --ranks");
    else if (out->ranks < range.low - 1e-6 || out->ranks > range.high + 1e-6)
        nccl_refuse(t, row->line,
            "busbw and algbw are those of %.3g ranks, not of %d; correct the number of ranks",
            (range.low + fmin(range.high, 2 * range.low)) / 2, out->ranks);
    else if (table->listed_ranks > table->stated_ranks && table->stated_ranks)
        nccl_refuse(t, table->line, "the log lists %d ranks where n_gpus is %d",
            table->listed_ranks, table->stated_ranks);
    else if (out->nodes > out->ranks)
        nccl_refuse(t, row->line, "%d ranks on %d nodes", out->ranks, out->nodes);
    else
        return true;
    return false;
}

static void nccl_take_group(struct nccl_tables *t, const struct group *group)
{
    const struct nccl_table *table = group->table;
    struct collective_measurement out = {.collective = group->collective,
        .algorithm = table->algorithm,
        .protocol = table->protocol};
    if (!find_ranks(t, group, &out))
        return;
    for (int i = group->first; i < group->end; i++) {
        const struct nccl_row *row = &t->rows.at[i];
        out.position = row->position;
        out.dtype = row->dtype;
        out.bytes = row->bytes;
        out.out_of_place_s = isnan(row->blocks[0].time_us) ? 0 : row->blocks[0].time_us * 1e-6;
        out.in_place_s = isnan(row->blocks[1].time_us) ? 0 : row->blocks[1].time_us * 1e-6;
        vec_push(&t->log->rows, out);
    }
}

static void nccl_take_table(struct nccl_tables *t, int index)
{
    const struct nccl_table *table = &t->tables.at[index];
    int end = index + 1 < t->tables.n ? t->tables.at[index + 1].first_row : t->rows.n;
    struct group group = {table,
        t->options->collective ? t->options->collective : table->collective, table->first_row, 0};
    if (group.first == end)
        return;
    if (!t->options->collective && table->ambiguous)
        nccl_refuse(t, table->line,
            "several programs are named before this table; say which with --collective");
    else if (!group.collective)
        nccl_refuse(t, table->line,
            "which collective this is does not stand before it; say it with --collective");
    else
        for (; group.first < end; group.first = group.end) {
            group.end = group.first + 1;
            while (group.end < end && t->rows.at[group.end].nodes == t->rows.at[group.first].nodes)
                group.end++;
            nccl_take_group(t, &group);
        }
}

enum status nccl_read(struct nccl_log *out, struct input *input, const struct nccl_options *options,
    struct arena *arena, struct diag *diag)
{
    *out = (struct nccl_log){0};
    struct nccl_tables t = {
        .log = out, .input = input, .options = options, .arena = arena, .diag = diag};
    char first = '\0';
    t.worst = input_peek(input, &first, diag);
    if (t.worst == STATUS_OK && first == '{')
        nccl_read_json(&t);
    else if (t.worst == STATUS_OK)
        nccl_read_text(&t);
    if (t.worst == STATUS_OK && t.rows.n == 0)
        t.worst = diag_input(diag, (struct source_pos){.file = input_name(input)},
            out->empty + out->wrong > 0 ? "no row of figures that can be used"
            : first == '{' || first == '['
                ? "no figures of nccl-tests in it; a trace of PyTorch's profiler is for "
                  "`flopcast calibrate check trace FILE`"
                : "no figures of nccl-tests in it; a table begins with the column names");
    for (int i = 0; i < t.tables.n && t.worst == STATUS_OK; i++)
        nccl_take_table(&t, i);
    vec_free(&t.tables);
    vec_free(&t.rows);
    return t.worst;
}
