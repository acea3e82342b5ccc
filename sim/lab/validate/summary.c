/* What curves lose, a number of the file of intervals. Counts, medians and percentiles of rows
 * are SQL (tables.h).
 *
 * Only data parallelism alone counts (DDP, FSDP), each ratio to its curve's smallest cluster. The
 * losses, measured and predicted, are means over makers of each one's mean, as one maker's runs are
 * off together; the standard error of their difference is that of these means. Rows off by more
 * than 100 % are left out. A maker is what stands before the first comma of a source. */
#include "validate/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool validate_same_maker(const char *a, const char *b)
{
    size_t n = strcspn(a, ",");
    return n == strcspn(b, ",") && strncmp(a, b, n) == 0;
}

/* Doublings from the curve's smallest cluster; 0 where the row has no ratio to another. */
static double doublings(const struct validate_table *table, const struct validate_row *row)
{
    return row->has_ratio ? log2((double)row->gpus / (double)table->rows.at[row->smallest].gpus)
                          : 0;
}

static bool summary_is_data_parallel(const struct validate_row *row)
{
    bool ours = strcmp(row->strategy, "DDP") == 0;
    for (int i = 0; sharding_strategy_names[i]; i++)
        ours |= strcmp(row->strategy, sharding_strategy_names[i]) == 0;
    return ours && (strcmp(row->layout, "DP") == 0 || strcmp(row->layout, "one GPU") == 0);
}

struct maker_loss {
    const char *source; /* of its first row */
    double measured, predicted;
    int n;
};

struct validate_loss validate_loss(const struct validate_table *table)
{
    static const double MOST_OFF = 1;
    struct validate_loss loss = {0};
    struct maker_loss *makers = xcalloc((size_t)table->rows.n + 1, sizeof *makers);
    for (int r = 0; r < table->rows.n; r++) {
        const struct validate_row *row = &table->rows.at[r];
        if (doublings(table, row) <= 0 || !summary_is_data_parallel(row) ||
            fabs(row->error) > MOST_OFF)
            continue;
        struct maker_loss *maker = makers;
        while (maker->n > 0 && !validate_same_maker(maker->source, row->source))
            maker++;
        maker->source = row->source;
        maker->measured += 1 - row->measured_ratio;
        maker->predicted += 1 - row->predicted_ratio;
        maker->n++;
        loss.n++;
        loss.too_small += row->predicted_ratio > row->measured_ratio;
    }
    double squares = 0, n = 0;
    for (const struct maker_loss *maker = makers; maker->n > 0; maker++, n++) {
        double measured = maker->measured / maker->n, predicted = maker->predicted / maker->n;
        loss.measured += measured;
        loss.predicted += predicted;
        squares += (measured - predicted) * (measured - predicted);
    }
    loss.sources = (int)n;
    if (n > 0)
        loss.measured /= n, loss.predicted /= n;
    double mean = loss.measured - loss.predicted;
    if (n > 1)
        loss.std_error = sqrt(fmax(0, squares / n - mean * mean) / (n - 1));
    free(makers);
    return loss;
}
