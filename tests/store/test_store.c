#include "store/store.h"

#include "check.h"
#include "sample.h"

#include "store/database.h"

static void put(struct store *store, const struct sample *sample)
{
    struct diag diag = DIAG_INIT;
    sample_put(store, sample, &diag);
    assert_string_equal(diag.text, "");
}

static struct store *with_sample(const char *path, struct sample *sample)
{
    struct store *store = must_open(path, STORE_WRITE);
    put(store, sample_init(sample));
    return store;
}

static void round_trip(void **state)
{
    struct sample sample;
    (void)state;
    struct store *store = with_sample("round.db", &sample);
    store_close(store);
    store = must_open("round.db", STORE_READ);
    assert_answer(store, "SELECT count(*) FROM point", "4");
    assert_answer(store, "SELECT model FROM point WHERE gpus = 8", "tiny, \"quoted\"");
    assert_answer(store, "SELECT step_time_s FROM point WHERE gpus = 16", "2.4");
    assert_answer(store, "SELECT step_time_s FROM point WHERE status = 'oom'", "NULL");
    assert_answer(
        store, "SELECT shortfall_bytes / 0x40000000 FROM point WHERE status = 'oom'", "20.0");
    assert_answer(store,
        "SELECT json_extract(config, '$.train.micro_batch.value') FROM point WHERE gpus = 8", "8");
    assert_answer(store,
        "SELECT json_extract(json, '$.gpu.name.value') FROM document JOIN point ON hardware_id = "
        "document.id",
        "a GPU");
    assert_answer(store, "SELECT count(*) FROM document",
        "2"); /* four points share the hardware and the model */
    assert_answer(
        store, "SELECT count(*) FROM timeline", "6"); /* two samples of each of three points */
    assert_answer(store, "SELECT count(*) FROM pragma_foreign_key_check", "0");
    store_close(store);
}

/* A column a setting, whatever program made the view before. */
static void settings_view(void **state)
{
    struct sample sample;
    (void)state;
    struct store *store = with_sample("settings.db", &sample);
    assert_answer(store,
        "SELECT \"train.micro_batch\" FROM v_settings JOIN point ON point.id = point_id WHERE gpus "
        "= 8",
        "8");
    assert_answer(store, "SELECT count(*) FROM v_settings", "4");
    assert_answer(store, "SELECT count(*) > 100 FROM pragma_table_info('v_settings')", "1");
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        database_exec(
            store, "DROP VIEW v_settings; CREATE VIEW v_settings AS SELECT 1 AS older", "", &diag),
        STATUS_OK);
    store_close(store);
    store = must_open("settings.db", STORE_WRITE);
    assert_answer(store, "SELECT \"cluster.gpus\" FROM v_settings LIMIT 1", "8");
    store_close(store);
}

static void scaling_view(void **state)
{
    struct sample sample;
    (void)state;
    struct store *store = with_sample("scaling.db", &sample);
    /* 150, 125, 100 simulated and 160, 144, 120 published: 1 - 100 / 150, 1 - 120 / 160, 100 / 120
     * - 1 */
    assert_answer(store, "SELECT printf('%.6f', loss) FROM v_scaling WHERE gpus = 32", "0.333333");
    assert_answer(store, "SELECT published_loss FROM v_scaling WHERE gpus = 32", "0.25");
    assert_answer(
        store, "SELECT printf('%.6f', deviation) FROM v_scaling WHERE gpus = 32", "-0.166667");
    assert_answer(store, "SELECT loss FROM v_scaling WHERE gpus = 8", "0.0");
    assert_answer(store, "SELECT loss FROM v_scaling WHERE gpus = 64",
        "NULL"); /* another curve: another batch */
    store_close(store);
}

static void memory_and_breakdown_add_up(void **state)
{
    struct sample sample;
    (void)state;
    struct store *store = with_sample("sums.db", &sample);
    /* categories hold 1, 2, ... 8 GiB */
    assert_answer(store,
        "SELECT (parameters_bytes + gradients_bytes + optimizer_bytes + activations_bytes + "
        "gathered_bytes + buffers_bytes + context_bytes + nccl_bytes) / 0x40000000 FROM v_memory "
        "WHERE gpus = 8",
        "36.0");
    assert_answer(
        store, "SELECT optimizer_bytes / 0x40000000 FROM v_memory WHERE status = 'oom'", "100.0");
    assert_answer(store,
        "SELECT count(*) FROM v_breakdown WHERE abs(compute_alone_s + contention_s + "
        "exposed_comm_s + bubble_s + host_bound_s + "
        "other_idle_s - step_time_s) < 1e-12",
        "3");
    store_close(store);
}

static void newest_run_is_shown_and_none_is_lost(void **state)
{
    struct sample sample;
    (void)state;
    struct store *store = with_sample("rerun.db", &sample);
    sample.results[0].tflops_per_gpu = 77;
    put(store, &sample);
    assert_answer(store, "SELECT count(*) FROM run", "2");
    assert_answer(store, "SELECT count(*) FROM point", "8");
    assert_answer(store, "SELECT count(*) FROM v_scaling", "4");
    assert_answer(store, "SELECT tflops_per_gpu FROM v_scaling WHERE gpus = 8", "77.0");
    store_close(store);
}

static void query_only_reads(void **state)
{
    static const struct {
        const char *sql, *says;
    } cases[] = {{"DELETE FROM run", "write one SELECT"},
        {"SELECT 1; SELECT 2", "more than one statement"},
        {"SELECT nosuch FROM run", "no such column: nosuch"}, {"-- nothing", "write one SELECT"}};
    struct sample sample;
    (void)state;
    struct store *store = with_sample("query.db", &sample);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diag diag = DIAG_INIT;
        struct answer answer = {0};
        struct source_pos at = {"fig.sql", 7, 1};
        assert_int_equal(store_query(store, cases[i].sql, at, take, &answer, &diag), STATUS_INPUT);
        assert_non_null(strstr(diag.text, "fig.sql:7:1: error: SQL:"));
        assert_non_null(strstr(diag.text, cases[i].says));
    }
    assert_answer(store, "SELECT count(*) FROM run", "1");
    store_close(store);
}

/* Opening must fail with these words and leave the file as it is. */
static void assert_refused(const char *path, enum store_mode mode, const char *says)
{
    char before[128] = {0}, after[128] = {0};
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(before, 1, sizeof before, file) : 0;
    if (file)
        fclose(file);
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    assert_int_equal(store_open(&store, path, mode, &diag), STATUS_IO);
    assert_null(store);
    assert_non_null(strstr(diag.text, says));
    assert_int_equal(strncmp(diag.text, path, strlen(path)), 0);
    file = fopen(path, "rb");
    assert_true(
        (file ? fread(after, 1, sizeof after, file) : 0) == n && memcmp(before, after, n) == 0);
    if (file)
        fclose(file);
}

/* The header of an SQLite file: user_version at byte 60, application_id at byte 68, four bytes,
 * highest first (sqlite.org/fileformat2). */
static void patch(const char *path, long at, unsigned char lowest)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at + 3, SEEK_SET), 0);
    fputc(lowest, file);
    assert_int_equal(fclose(file), 0);
}

static void others_databases_are_refused(void **state)
{
    struct sample sample;
    (void)state;
    store_close(with_sample("other.db", &sample));
    patch("other.db", 60, 99);
    assert_refused("other.db", STORE_WRITE, "another version of flopcast (schema 99; this one, ");
    assert_refused("other.db", STORE_READ, "simulate again into another file");
    patch("other.db", 60, 4); /* with tables for each kind of answer */
    assert_refused("other.db", STORE_WRITE, "another version of flopcast (schema 4; this one, ");

    store_close(with_sample("foreign.db", &sample));
    patch("foreign.db", 68, 1);
    assert_refused("foreign.db", STORE_WRITE, "of another program");

    FILE *file = fopen("text.db", "w");
    for (int i = 0; i < 100; i++)
        fputs("this is no database\n", file);
    fclose(file);
    assert_refused("text.db", STORE_WRITE, "file is not a database");
    assert_refused("text.db", STORE_READ, "file is not a database");

    assert_refused("absent.db", STORE_READ, "make one with: flopcast run SCENARIO --db absent.db");
    assert_int_equal(access("absent.db", F_OK), -1);
    assert_refused("no/such/folder.db", STORE_WRITE, "in a folder that exists");
    store_close(must_open("empty.db", STORE_WRITE));
    struct store *store = must_open("empty.db", STORE_READ); /* tables, but no run yet */
    assert_answer(store, "SELECT count(*) FROM v_scaling", "0");
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip),
        cmocka_unit_test(settings_view), cmocka_unit_test(scaling_view),
        cmocka_unit_test(memory_and_breakdown_add_up),
        cmocka_unit_test(newest_run_is_shown_and_none_is_lost), cmocka_unit_test(query_only_reads),
        cmocka_unit_test(others_databases_are_refused)};
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
