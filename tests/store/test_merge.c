/* Databases of parts of a run into one, from a file and from SQLite's bytes; what both have
 * otherwise. */
#include "store/merge.h"

#include "check.h"
#include "sample.h"

#include "store/database.h"

/* The points [from, to) of a run, each of another cluster, in the file. */
static void make_part(const struct sample *sample, const char *path, int from, int to)
{
    struct diag diag = DIAG_INIT;
    struct scenario_result results[SAMPLE_POINTS];
    struct arena arenas[SAMPLE_POINTS] = {0};
    bool known[SAMPLE_POINTS] = {false};
    struct store *store = must_open(path, STORE_WRITE);
    struct store_run *run = NULL;
    const struct store_run_options options = {.set = &sample->set};
    store_run_begin(&run, store, &options, results, arenas, known, &diag);
    for (int i = from; i < to; i++)
        store_run_point(run, i, &sample->results[i], &diag);
    store_run_end(run);
    store_close(store);
    for (int i = 0; i < SAMPLE_POINTS; i++)
        arena_release(&arenas[i]);
    assert_string_equal(diag.text, "");
}

static struct store_merged merge_file(struct store *into, const char *path, const char *said)
{
    struct diag diag = DIAG_INIT;
    struct store_merged added;
    store_merge(into, path, &added, &diag);
    assert_string_equal(diag.text, said);
    return added;
}

static struct store_merged merge_as_bytes(struct store *into, const char *path)
{
    struct diag diag = DIAG_INIT;
    struct store_merged added;
    struct store *from = must_open(path, STORE_WRITE);
    size_t n = 0;
    unsigned char *bytes = database_bytes(from, &n);
    store_close(from);
    assert_int_equal(store_merge_bytes(into, bytes, n, &added, &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
    sqlite3_free(bytes);
    return added;
}

/* All rows of points and what belongs to them, by place. */
static const char rows[] =
    "SELECT group_concat(row, '; ') FROM (SELECT printf('%d %s %.17g %d %d', position, p.identity, "
    "step_time_s, (SELECT count(*) FROM memory WHERE point_id = p.id), (SELECT count(*) FROM "
    "timeline WHERE point_id = p.id)) AS row FROM point AS p JOIN run ON run.id = run_id JOIN "
    "document AS hardware ON hardware.id = hardware_id JOIN document AS model ON model.id = "
    "model_id ORDER BY run_id, position)";

static void parts_make_the_whole(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample);
    make_part(&sample, "whole.db", 0, SAMPLE_POINTS);
    make_part(&sample, "a.db", 0, 2);
    make_part(&sample, "b.db", 2, SAMPLE_POINTS);
    struct answer expected;
    struct store *whole = must_open("whole.db", STORE_READ),
                 *into = must_open("into.db", STORE_WRITE);
    ask(whole, &expected, rows);
    assert_int_equal(expected.rows, 2);
    struct store_merged added = merge_file(into, "b.db", "");
    assert_true(added.runs == 1 && added.points == SAMPLE_POINTS - 2 && added.samples == 0 &&
                added.outcomes == 0);
    added = merge_as_bytes(into, "a.db");
    assert_true(added.runs == 0 && added.points == 2);
    assert_answer(into, rows, expected.text);
    added = merge_as_bytes(into, "b.db");
    assert_true(added.runs == 0 && added.points == 0);
    added = merge_file(into, "whole.db", "");
    assert_true(added.runs == 0 && added.points == 0);
    assert_answer(into, rows, expected.text);
    assert_answer(into, "SELECT count(*) FROM pragma_database_list WHERE name = 'source'", "0");
    store_close(into);
    store_close(whole);
}

static void a_point_that_differs_is_refused_with_all_beside_it(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample);
    make_part(&sample, "left.db", 0, 2);
    sample.results[1].mfu += 0x1p-40;
    make_part(&sample, "right.db", 1, SAMPLE_POINTS);
    struct store *into = must_open("left.db", STORE_WRITE);
    merge_file(into, "right.db",
        "right.db: error: point 2 of its run differs in 'mfu' from the same point of 'left.db'; a "
        "run gives the same results wherever it runs, so one of them was changed: leave one of the "
        "two out\n");
    assert_answer(into, "SELECT count(*) FROM point", "2");
    store_close(into);
}

/* A run whose points were taken from another one's says so by the target's numbers. */
static void what_was_taken_is_still_named(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample);
    make_part(&sample, "other.db", 0, 1); /* numbers of the target are not those of the source */
    sample.points[0].options.name = sample.points[1].options.name = sample.points[2].options.name =
        sample.points[3].options.name = "first";
    make_part(&sample, "taken.db", 0, SAMPLE_POINTS);
    sample.points[0].options.name = sample.points[1].options.name = sample.points[2].options.name =
        sample.points[3].options.name = "second";
    make_part(&sample, "taken.db", 0, 0); /* knows them all */
    struct store *into = must_open("other.db", STORE_WRITE);
    struct store_merged added = merge_file(into, "taken.db", "");
    assert_true(added.runs == 2 && added.points == 2 * SAMPLE_POINTS);
    assert_answer(into,
        "SELECT count(*) FROM point AS p JOIN run ON run.id = p.run_id JOIN point AS o ON o.id = "
        "p.simulated_id JOIN run AS r ON r.id = o.run_id WHERE run.scenario = 'second' AND "
        "r.scenario = 'first' AND o.position = p.position AND o.identity = p.identity",
        "4");
    assert_answer(into, "SELECT count(*) FROM point WHERE simulated_id IS NOT NULL", "4");
    store_close(into);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_make_the_whole, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(
            a_point_that_differs_is_refused_with_all_beside_it, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(what_was_taken_is_still_named, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
