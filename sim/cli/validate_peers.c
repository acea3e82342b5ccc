/* Other simulators on the same rows: results/peers.csv beside what flopcast predicts. */
#include "cli/validate_parts.h"

#include "cli/words.h"
#include "config/csv.h"

#include <math.h>
#include <string.h>

/* Rows with errors of step times in place of theirs. */
struct errors {
    struct validate_table peer, own;
    int nearer; /* flopcast */
};

static bool is_any(const struct validate_row *row, const void *self)
{
    (void)row;
    (void)self;
    return true;
}

static void add(struct errors *errors, const struct validate_row *row, double peer, double own)
{
    struct validate_row of_peer = *row, of_own = *row;
    of_peer.has_ratio = of_own.has_ratio = false; /* its smallest cluster is a row of the whole table */
    of_peer.same = of_own.same = errors->peer.rows.n;
    of_peer.error = peer;
    of_own.error = own;
    vec_push(&errors->peer.rows, of_peer);
    vec_push(&errors->own.rows, of_own);
    errors->nearer += fabs(own) < fabs(peer);
}

static const struct validate_row *row_of(const struct validate_table *rows, const char *id)
{
    for (int i = 0; i < rows->rows.n; i++)
        if (strcmp(rows->rows.at[i].id, id) == 0)
            return rows->rows.at[i].has_error ? &rows->rows.at[i] : NULL;
    return NULL;
}

static void put_errors(FILE *out, struct arena *arena, struct errors *errors)
{
    if (errors->peer.rows.n == 0) {
        fputs("| - | | ", out);
        return;
    }
    struct validate_summary peer = validate_summarise(&errors->peer, is_any, NULL),
                            own = validate_summarise(&errors->own, is_any, NULL);
    fprintf(out, "| %s / %s | %s / %s | %d of %d ", words_number(arena, 100 * peer.median, 1, false),
        words_number(arena, 100 * peer.p90, 1, false), words_number(arena, 100 * own.median, 1, false),
        words_number(arena, 100 * own.p90, 1, false), errors->nearer, errors->peer.rows.n);
    vec_free(&errors->peer.rows);
    vec_free(&errors->own.rows);
}

/* The lines of one sample and tool, which row r of the file opens. */
static void put_line(
    FILE *out, struct arena *arena, const struct validate_table *rows, const struct csv_table *csv, int first)
{
    const int sample = csv_column(csv, "sample"), tool = csv_column(csv, "tool"), id = csv_column(csv, "id"),
              time = csv_column(csv, "step_time_s");
    struct errors blind = {0}, today = {0};
    struct diag unread = DIAG_INIT;
    for (int r = first; r < csv_rows(csv); r++) {
        const struct validate_row *row = row_of(rows, csv_cell(csv, r, id));
        double step_time_s = 0;
        if (!row || strcmp(csv_cell(csv, r, sample), csv_cell(csv, first, sample)) != 0 ||
            strcmp(csv_cell(csv, r, tool), csv_cell(csv, first, tool)) != 0 ||
            csv_number(csv, r, time, 0, &step_time_s, &unread) != STATUS_OK)
            continue;
        double measured = row->predicted.step_time_s * (1 + row->error), peer = step_time_s / measured - 1;
        add(&today, row, peer, 1 / (1 + row->error) - 1);
        if (row->has_first_sight)
            add(&blind, row, peer, 1 / (1 + row->first_sight_error) - 1);
    }
    fprintf(out, "| %s | %s %s ", csv_cell(csv, first, sample), csv_cell(csv, first, tool),
        csv_cell(csv, first, csv_column(csv, "version")));
    put_errors(out, arena, &blind);
    put_errors(out, arena, &today);
    fputs("|\n", out);
}

void validate_peers_put(FILE *out, const struct validate_table *rows, const char *peers, struct diag *diag)
{
    struct csv_table *csv = NULL;
    struct arena arena = ARENA_INIT;
    if (csv_load(&csv, peers, diag) != STATUS_OK)
        return;
    const int sample = csv_column(csv, "sample"), tool = csv_column(csv, "tool");
    fputs("| runs | simulator | on blind runs | flopcast blind | nearer | on all | flopcast today | nearer |\n"
          "|---|---|--:|--:|--:|--:|--:|--:|\n",
        out);
    for (int r = 0; r < csv_rows(csv); r++) {
        bool opens = true;
        for (int before = 0; before < r && opens; before++)
            opens = strcmp(csv_cell(csv, before, sample), csv_cell(csv, r, sample)) != 0 ||
                    strcmp(csv_cell(csv, before, tool), csv_cell(csv, r, tool)) != 0;
        if (opens)
            put_line(out, &arena, rows, csv, r);
    }
    csv_release(csv);
    arena_release(&arena);
}
