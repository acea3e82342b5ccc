/* What curves lose, a number of the file of intervals. Counts, medians and percentiles of rows
 * are SQL (tables.h).
 *
 * Only data parallelism alone counts (DDP, FSDP), each ratio to its curve's smallest cluster.
 * The losses, measured and predicted, are means over rows. The standard error of their
 * difference is that of one mean a maker, not of rows: one maker's runs are off together. Rows
 * off by more than 100 % are left out. A maker is what stands before the first comma of a
 * source. */
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

struct validate_loss validate_loss(const struct validate_table *table)
{
    static const double MOST_OFF = 1;
    struct validate_loss loss = {0};
    const struct validate_row *rows = table->rows.at;
    double *sums = xcalloc((size_t)table->rows.n + 1, sizeof *sums), squares = 0, sum = 0;
    int *counts = xcalloc((size_t)table->rows.n + 1, sizeof *counts),
        *of = xcalloc((size_t)table->rows.n + 1, sizeof *of);
    for (int r = 0; r < table->rows.n; r++) {
        if (doublings(table, &rows[r]) <= 0 || !summary_is_data_parallel(&rows[r]) ||
            fabs(rows[r].error) > MOST_OFF)
            continue;
        int s = 0;
        while (s < loss.sources && !validate_same_maker(rows[of[s]].source, rows[r].source))
            s++;
        if (s == loss.sources)
            of[loss.sources++] = r;
        double lacking = rows[r].predicted_ratio - rows[r].measured_ratio;
        sums[s] += lacking;
        counts[s]++;
        loss.n++;
        loss.too_small += lacking > 0;
        loss.measured += 1 - rows[r].measured_ratio;
        loss.predicted += 1 - rows[r].predicted_ratio;
    }
    for (int s = 0; s < loss.sources; s++) {
        sum += sums[s] / counts[s];
        squares += sums[s] / counts[s] * sums[s] / counts[s];
    }
    double n = loss.sources;
    if (n > 1)
        loss.std_error = sqrt(fmax(0, squares / n - sum / n * sum / n) / (n - 1));
    loss.measured /= loss.n ? loss.n : 1;
    loss.predicted /= loss.n ? loss.n : 1;
    free(of);
    free(counts);
    free(sums);
    return loss;
}
