#include "cli/validate_parts.h"

#include "cli/table.h"
#include "cli/words.h"

#include <string.h>

/* Rows of a class, of which a fit rests on all or none. */
struct part {
    enum validate_by by;
    const char *name; /* NULL: any class */
    bool fitted;
};

static bool in_part(const struct validate_row *row, const void *self)
{
    const struct part *part = self;
    return (*row->used_in_fit != '\0') == part->fitted &&
           (!part->name || strcmp(validate_class(row, part->by), part->name) == 0);
}

static void count(struct table *table, const char *name, int n)
{
    table_number(table, name, "", 0, n);
}

static void percent(struct table *table, const char *name, const char *unit, bool known, double part)
{
    table_number_as(table, name, unit, known ? words_number(&table->numbers, 100 * part, 1, false) : "-");
}

static void add_part(struct table *table, const struct validate_table *rows, const char *name, const struct part *part)
{
    struct validate_summary s = validate_summarise(rows, in_part, part);
    if (s.n_rows == 0)
        return;
    table_row(table);
    table_text(table, validate_by_names[part->by], "", name);
    table_text(table, "in fit", "", part->fitted ? "yes" : "no");
    count(table, "rows", s.n_rows);
    count(table, "not simulated", s.n_not_simulated);
    count(table, "speeds", s.n_errors);
    percent(table, "bias", "%", s.n_errors > 0, s.bias);
    percent(table, "median", "%", s.n_errors > 0, s.median);
    percent(table, "p90", "%", s.n_errors > 0, s.p90);
    percent(table, "MAD", "%", s.n_errors > 0, s.mad);
    count(table, "runs", s.n_runs);
    percent(table, "median", "%", s.n_runs > 0, s.runs_median);
    count(table, "ratios", s.n_ratios);
    percent(table, "mean", "points", s.n_ratios > 0, s.ratio_mean);
    count(table, "to a node", s.n_node_ratios);
    percent(table, "mean", "points", s.n_node_ratios > 0, s.node_ratio_mean);
    percent(table, "median", "points", s.n_node_ratios > 0, s.node_ratio_median);
    count(table, "allocated", s.n_allocated);
    percent(table, "median", "%", s.n_allocated > 0, s.allocated_median);
    count(table, "reserved", s.n_reserved);
    percent(table, "median", "%", s.n_reserved > 0, s.reserved_median);
    count(table, "fits", s.fits_right);
    count(table, "OOM", s.oom_right);
    count(table, "false fits", s.false_fits);
    count(table, "false OOM", s.false_oom);
    percent(table, "in 90 %", "%", s.n_intervals > 0, (double)s.n_covered / (s.n_intervals + !s.n_intervals));
    percent(table, "width", "%", s.n_intervals > 0, s.width_median);
    percent(table, "as new", "%", s.n_intervals > 0, (double)s.n_covered_as_new / (s.n_intervals + !s.n_intervals));
}

void validate_by_print(FILE *out, const struct validate_table *rows, enum validate_by by)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    struct validate_classes classes = validate_classes(rows, by, &arena);
    for (int i = 0; i < classes.n; i++)
        for (int fitted = 1; fitted >= 0; fitted--)
            add_part(&table, rows, *classes.names[i] ? classes.names[i] : "(no source)",
                &(struct part){by, classes.names[i], fitted == 1});
    add_part(&table, rows, "all that fits rest on", &(struct part){by, NULL, true});
    add_part(&table, rows, "all others", &(struct part){by, NULL, false});
    fprintf(out, "\nby %s\n", validate_by_names[by]);
    table_finish(out, &table);
    arena_release(&arena);
}

void validate_verdicts_print(FILE *out, const struct validate_table *rows)
{
    static const struct {
        bool oom;
        const char *heading;
    } wrong[] = {{true, "simulated out of memory, but ran"}, {false, "simulated to fit, but ran out of memory"}};
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        const char *source = NULL;
        int n = 0;
        for (int i = 0; i < rows->rows.n; i++) {
            const struct validate_row *row = &rows->rows.at[i];
            if (!row->has_verdict || row->status == VALIDATE_NOT_SIMULATED ||
                (row->status == VALIDATE_OOM) != wrong[w].oom || row->measured_oom == wrong[w].oom)
                continue;
            if (n++ == 0)
                fprintf(out, "\n%s:", wrong[w].heading);
            if (!source || strcmp(source, row->source) != 0)
                fprintf(out, "\n  %s:", *row->source ? row->source : "(no source)");
            source = row->source;
            fprintf(out, " %s", row->id);
        }
        if (n > 0)
            fputc('\n', out);
    }
}
