/* A table of texts and one of numbers say which columns a row has; everything else goes through
 * them. */
#include "calibrate/kernel_rows.h"

#include "base/digest.h"
#include "calibrate/fit.h"

#include <string.h>

static const struct {
    const char *names[3];
    size_t offset;
} text_columns[] = {{{"class", "operator", "kernel"}, offsetof(struct kernel_row, class)},
    {{"dtype"}, offsetof(struct kernel_row, dtype)},
    {{"layout"}, offsetof(struct kernel_row, layout)},
    {{"session"}, offsetof(struct kernel_row, session)},
    {{"regime"}, offsetof(struct kernel_row, regime)},
    {{"software"}, offsetof(struct kernel_row, software)},
    {{"causal"}, offsetof(struct kernel_row, causal)},
    {{"pass"}, offsetof(struct kernel_row, pass)}};

static const struct number_column {
    const char *names[2];
    size_t offset;
} number_columns[] = {{{"m"}, offsetof(struct kernel_row, m)},
    {{"n"}, offsetof(struct kernel_row, n)}, {{"k"}, offsetof(struct kernel_row, k)},
    {{"batch"}, offsetof(struct kernel_row, batch)},
    {{"heads"}, offsetof(struct kernel_row, heads)},
    {{"kv_heads"}, offsetof(struct kernel_row, kv_heads)},
    {{"value_dim"}, offsetof(struct kernel_row, value_dim)},
    {{"experts"}, offsetof(struct kernel_row, experts)},
    {{"topk"}, offsetof(struct kernel_row, topk)},
    {{"time_us", "forward_us"}, offsetof(struct kernel_row, time_us)},
    {{"backward_us"}, offsetof(struct kernel_row, backward_us)},
    {{"power_w"}, offsetof(struct kernel_row, power_w)}};
enum { NUMBER_COLUMNS = sizeof number_columns / sizeof *number_columns };

static int find_column(const struct csv_table *table, const char *const *names, int n)
{
    int column = -1;
    for (int i = 0; i < n && names[i] && column < 0; i++)
        column = csv_column(table, names[i]);
    return column;
}

enum status kernel_row_load(
    struct kernel_row *out, const struct csv_table *table, int row, struct diag *diag)
{
    *out = (struct kernel_row){.at = csv_pos(table, row)};
    for (size_t i = 0; i < sizeof text_columns / sizeof *text_columns; i++)
        *(const char **)((char *)out + text_columns[i].offset) =
            csv_cell(table, row, find_column(table, text_columns[i].names, 3));
    for (int i = 0; i < NUMBER_COLUMNS; i++) {
        int column = find_column(table, number_columns[i].names, 2);
        double *number = (double *)((char *)out + number_columns[i].offset);
        enum status status = csv_number(table, row, column, 0, number, diag);
        if (status)
            return status;
        if (*number < 0)
            return diag_input(
                diag, out->at, "%s is missing or not positive", csv_name(table, column));
    }
    return STATUS_OK;
}

enum status kernel_rows_read(const char *csv_path, const char *gpu,
    enum status (*take)(void *self, const struct kernel_row *row, struct diag *diag), void *self,
    struct diag *diag)
{
    struct csv_table *table = NULL;
    int found = 0;
    enum status status = csv_load(&table, csv_path, diag);
    for (int i = 0; status == STATUS_OK && i < csv_rows(table); i++) {
        struct kernel_row row;
        if (strcmp(csv_cell(table, i, csv_column(table, "gpu")), gpu) != 0)
            continue;
        found++;
        status = kernel_row_load(&row, table, i, diag);
        status = status ? status : take(self, &row, diag);
    }
    csv_release(table);
    if (status == STATUS_OK && found == 0)
        status =
            diag_input(diag, (struct source_pos){.file = csv_path}, "no row for GPU '%s'", gpu);
    return status;
}

enum status kernel_row_needs(const struct kernel_row *row, const char *columns, struct diag *diag)
{
    for (const char *at = columns; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        const struct number_column *column = number_columns;
        while (strlen(column->names[0]) != n || strncmp(column->names[0], at, n) != 0)
            column++;
        if (!(*(const double *)((const char *)row + column->offset) > 0))
            return diag_input(diag, row->at, "%s is missing or not positive", column->names[0]);
    }
    return STATUS_OK;
}

enum status kernel_row_math(enum dtype *out, const struct kernel_row *row, struct diag *diag)
{
    int found = fit_find_name(dtype_names, row->dtype);
    if (found < 0)
        return diag_input(diag, row->at,
            "unknown number format '%s'; one of fp32, tf32, bf16, fp16, fp8, int8", row->dtype);
    *out = (enum dtype)found;
    return STATUS_OK;
}

bool kernel_row_folded(const double *numbers, int n, int shift)
{
    uint64_t digest = DIGEST_INIT;
    for (int i = 0; i < n; i++)
        digest = digest_word(digest, (uint64_t)numbers[i]);
    return (digest >> shift) % KERNEL_ROW_FOLDS == 0;
}
