/* Nsight Systems exports made by hand: tables and columns as in an export of 2024.6 (schema 3.16),
 * what is not read left out. */
#include "store/measurement.h"

#include "check.h"

#include <sqlite3.h>

/* Two processes, 100 and 200, which both have a launch 7 (correlation ids repeat). Process 100
 * launches 7 at 150 ns inside "step" (100 to 500) and "allgather" (140 to 200), 8 at 300 inside
 * "step" alone, 9 at 600 outside; 200 launches its 7 at 150 outside of any range. Kernels start
 * 1000 ns later. The range that ends at 600 and the empty one at 600 are not around the launch at
 * 600. */
static const char tables[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllGather_RING_LL'), (2, 'sgemm'), (3, "
    "'allgather');CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, "
    "\"end\" INTEGER NOT NULL, deviceId INTEGER NOT "
    "NULL,"
    "  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, shortName INTEGER NOT "
    "NULL);INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
    "  (1150, 3150, 0, 20, 7, 100 << 24, 1), (1300, 1800, 0, 7, 8, 100 << "
    "24, 2), (1600, 1700, 0, 7, 9, 100 << 24, 2),"
    "  (1150, 1250, 1, 7, 7, 200 << 24, 2);";
static const char runtime[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, "
    "\"end\" INTEGER NOT NULL, globalTid INTEGER,"
    "  correlationId INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (150, 151, 100 << 24 | 5, 7), (300, 301, 100 "
    "<< 24 | 5, 8),  (600, 601, 100 << 24 | 5, 9), (150, 151, 200 << 24 | 6, 7);";
static const char ranges[] =
    "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, \"end\" INTEGER, eventType INTEGER NOT "
    "NULL, text TEXT,  globalTid INTEGER, textId INTEGER);"
    "INSERT INTO NVTX_EVENTS VALUES (100, 500, 59, 'step', 100 << 24 | 5, NULL), (140, 200, 59, "
    "NULL, 100 << 24 | 5, 3),  (550, 600, 59, 'before', 100 << 24 | 5, NULL), (600, 600, 59, "
    "'empty', 100 << 24 | 5, NULL),  (0, 900, 60, 'start/end range', 200 << 24 | 6, NULL), (0, "
    "900, 59, 'another thread', 200 << 24 | 9, NULL),  (10, NULL, 34, 'mark', 100 << 24 | 5, "
    "NULL);";
static const char gpus[] =
    "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES"
    "  (0, 'NVIDIA H100 80GB HBM3'), (1, 'NVIDIA H100 80GB HBM3');";

static void make(const char *path, const char *const *sql, size_t n)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(sqlite3_exec(db, sql[i], NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}
#define MAKE(path, ...)                                                                            \
    make(path, (const char *const[]){__VA_ARGS__},                                                 \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static enum status import(
    struct store *store, const char *path, struct store_nsys *result, struct diag *diag)
{
    struct store_import *import = NULL;
    struct store_known known;
    enum status status = store_import_begin(&import, store, diag);
    assert_int_equal(status, STATUS_OK);
    status = store_import_source(import, "nsys", path, 42, &known, diag);
    assert_false(known.known);
    if (status == STATUS_OK)
        status = store_import_nsys(import, path, result, diag);
    return store_import_end(import, status, diag);
}

static struct store *imported(const char *db, const char *path)
{
    struct store *store = must_open(db, STORE_WRITE);
    struct diag diag = DIAG_INIT;
    struct store_nsys result = {0};
    import(store, path, &result, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(result.kernels, 4);
    assert_int_equal(result.collectives, 1);
    return store;
}

static void whole_profile(void **state)
{
    (void)state;
    MAKE("odd %41?#'name.sqlite", tables, runtime, ranges, gpus);
    struct store *store = imported("whole.db", "odd %41?#'name.sqlite");
    assert_answer(store,
        "SELECT nvtx_range FROM v_kernel_measurement WHERE process = 100 AND start_s = 1150e-9",
        "allgather");
    assert_answer(
        store, "SELECT nvtx_range FROM v_kernel_measurement WHERE start_s = 1300e-9", "step");
    assert_answer(
        store, "SELECT nvtx_range FROM v_kernel_measurement WHERE start_s = 1600e-9", "NULL");
    assert_answer(store, "SELECT nvtx_range FROM v_kernel_measurement WHERE process = 200", "NULL");
    assert_answer(
        store, "SELECT collective FROM v_kernel_measurement WHERE stream = 20", "all_gather");
    assert_answer(store,
        "SELECT count(*) FROM v_kernel_measurement WHERE collective IS NULL AND name = 'sgemm'",
        "3");
    assert_answer(
        store, "SELECT duration_s FROM v_kernel_measurement WHERE stream = 20", "2.0e-06");
    assert_answer(store, "SELECT gpu FROM measurement_source", "NVIDIA H100 80GB HBM3");
    store_close(store);
}

/* Nsight Systems makes tables when they have a row, and columns when its version knows them. */
static void tables_left_out(void **state)
{
    (void)state;
    MAKE("bare.sqlite", tables);
    struct store *store = imported("bare.db", "bare.sqlite");
    assert_answer(store, "SELECT count(*) FROM kernel_measurement WHERE nvtx_range IS NULL", "4");
    assert_answer(store, "SELECT gpu FROM measurement_source", "NULL");
    store_close(store);
    MAKE("old.sqlite", tables, runtime, ranges, "ALTER TABLE NVTX_EVENTS DROP COLUMN textId");
    store = imported("old.db", "old.sqlite");
    assert_answer(
        store, "SELECT nvtx_range FROM v_kernel_measurement WHERE start_s = 1300e-9", "step");
    store_close(store);
    MAKE("new.sqlite", tables, runtime, ranges, "ALTER TABLE NVTX_EVENTS DROP COLUMN text");
    store = imported("new.db", "new.sqlite");
    assert_answer(
        store, "SELECT nvtx_range FROM v_kernel_measurement WHERE stream = 20", "allgather");
    store_close(store);
}

static void assert_refused(const char *path, const char *expected)
{
    struct store *store = must_open("refused.db", STORE_WRITE);
    struct diag diag = DIAG_INIT;
    struct store_nsys result = {0};
    assert_int_equal(import(store, path, &result, &diag), STATUS_INPUT);
    assert_int_equal(strncmp(diag.text, path, strlen(path)), 0);
    if (!strstr(diag.text, expected))
        fail_msg("'%s' is not in: %s", expected, diag.text);
    assert_answer(store, "SELECT count(*) FROM measurement_source", "0");
    assert_answer(store, "SELECT count(*) FROM kernel_measurement", "0");
    assert_answer(store, "SELECT count(*) FROM kernel_name", "0");
    store_close(store);
}

static void broken_profiles(void **state)
{
    (void)state;
    MAKE("empty.sqlite", "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)");
    assert_refused("empty.sqlite", "no GPU kernels in it");
    MAKE("none.sqlite", tables, "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL");
    assert_refused("none.sqlite", "no GPU kernels in it");
    MAKE("nameless.sqlite", tables, "DELETE FROM StringIds WHERE id = 2");
    assert_refused("nameless.sqlite", "NOT NULL constraint failed");
    MAKE("backwards.sqlite", tables, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET \"end\" = 5");
    assert_refused("backwards.sqlite", "CHECK constraint failed");
    MAKE("texts.sqlite", tables, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 'zero'");
    assert_refused("texts.sqlite", "cannot store TEXT value");
    /* A view may run anything, an endless recursion too; it is not looked at. */
    MAKE("view.sqlite", tables, "ALTER TABLE StringIds RENAME TO real_strings",
        "CREATE VIEW StringIds (id, value) AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i "
        "+ 1 FROM n)  SELECT i, 'name' FROM n");
    assert_refused("view.sqlite", "no GPU kernels in it");
    FILE *text = fopen("text.sqlite", "w");
    for (int i = 0; i < 1000; i++)
        fputs("this is no database\n", text);
    fclose(text);
    assert_refused("text.sqlite", "not a database");
}

/* Bytes of a small profile, and its length, damaged: imported or refused, and the database stays
 * sound. */
static void damaged_profiles(void **state)
{
    (void)state;
    MAKE("good.sqlite", "PRAGMA page_size = 512", tables, runtime, ranges, gpus);
    static char bytes[16384];
    FILE *file = fopen("good.sqlite", "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(n, 1024, sizeof bytes - 1);
    struct store *store = must_open("damaged.db", STORE_WRITE);
    for (size_t i = 0; i < n + n / 64; i += i < n - 31 ? 31 : 1) {
        char path[32];
        size_t length = i < n ? n : 64 * (i - n);
        char was = i < n ? bytes[i] : 0;
        if (i < n)
            bytes[i] = (char)(was ^ (1 + (int)(i * 37 % 255)));
        snprintf(path, sizeof path, "damaged.sqlite");
        file = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, length, file), length);
        fclose(file);
        if (i < n)
            bytes[i] = was;
        struct diag diag = DIAG_INIT;
        struct store_nsys result = {0};
        struct store_import *import = NULL;
        struct store_known known;
        assert_int_equal(store_import_begin(&import, store, &diag), STATUS_OK);
        assert_int_equal(store_import_source(import, "nsys", path, i, &known, &diag), STATUS_OK);
        enum status status = store_import_nsys(import, path, &result, &diag);
        assert_int_equal(status == STATUS_OK, diag.n_errors == 0);
        if (status != STATUS_OK && status != STATUS_INPUT)
            fail_msg("%zu: %s", i, diag.text);
        store_import_end(import, STATUS_INPUT, &diag); /* rolled back whatever came of it */
        store_close(store);
        store = must_open("damaged.db", STORE_WRITE);
    }
    assert_answer(store, "SELECT count(*) FROM measurement_source", "0");
    assert_answer(store, "SELECT * FROM pragma_integrity_check", "ok");
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_profile),
        cmocka_unit_test(tables_left_out), cmocka_unit_test(broken_profiles),
        cmocka_unit_test(damaged_profiles)};
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
