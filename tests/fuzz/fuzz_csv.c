/* Any bytes as a CSV table; every cell of what parses is read. What must hold: no crash, no leak, a
 * message for every refusal, lines that only grow, and column names that find their own column. */
#include "base/arena.h"
#include "config/csv.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct csv_table *table = NULL;
    struct diag diag = DIAG_INIT;
    enum status status = csv_load_text(&table, "fuzz.csv", (const char *)data, size, &diag);
    BUG_IF((status == STATUS_OK) != (table && diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    if (!table)
        return 0;
    int line = 0, bytes = csv_column(table, "bytes");
    for (int row = 0; row < csv_rows(table); row++) {
        int at = csv_pos(table, row).line;
        BUG_IF(at < line || at < 1, "row %d at line %d behind line %d", row, at, line);
        line = at;
        double value = 0;
        int before = diag.n_errors;
        status = csv_number(table, row, bytes, -1, &value, &diag);
        BUG_IF((status == STATUS_OK) != (diag.n_errors == before), "status %d", status);
    }
    csv_release(table);
    return 0;
}
