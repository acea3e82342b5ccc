/* Any bytes as the condition of `plot --where` over a small database. What must hold: no crash, no
 * leak, a message for every refusal, and a database that is as it was. */
#include "store/shown.h"

#include "../store/sample.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char path[] = "fuzz-where.db";

static void leave(void)
{
    unlink(path);
}

__attribute__((constructor)) static void enter(void)
{
    leave();
    struct sample sample;
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    BUG_IF(store_open(&store, path, STORE_WRITE, &diag) != STATUS_OK, "%s", diag.text);
    BUG_IF(sample_put(store, sample_init(&sample), &diag) != STATUS_OK, "%s", diag.text);
    store_close(store);
    BUG_IF(atexit(leave) != 0, "cannot clean up");
}

static void count(void *self, int n, const struct store_value *values)
{
    (void)n;
    *(int *)self = values[0].kind == STORE_NUMBER ? atoi(values[0].text)
                                                  : -1; /* the names of columns come first */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *where = xcalloc(size + 1, 1);
    if (size)
        memcpy(where, data, size);
    struct store *store = NULL;
    struct diag diag = DIAG_INIT;
    const struct store_show show = {.where = where};
    BUG_IF(store_open(&store, path, STORE_READ, &diag) != STATUS_OK, "%s", diag.text);
    enum status status = store_show(store, &show, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    int points = 0;
    struct source_pos at = {.file = "points"};
    status = store_query(store, "SELECT count(*) FROM main.point", at, count, &points, &diag);
    BUG_IF(status != STATUS_OK || points != SAMPLE_POINTS, "%d points: %s", points, diag.text);
    store_close(store);
    free(where);
    return 0;
}
