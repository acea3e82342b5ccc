#include "store/run.h"

#include "check.h"
#include "sample.h"

#include "store/database.h"
#include "store/record.h"

struct held {
    struct scenario_result results[SAMPLE_POINTS];
    struct arena arenas[SAMPLE_POINTS];
    bool known[SAMPLE_POINTS];
    struct store_run *run;
};

static void begin(struct held *held, struct store *store, const struct sample *sample)
{
    struct diag diag = DIAG_INIT;
    const struct store_run_options options = {.set = &sample->set};
    *held = (struct held){0};
    store_run_begin(&held->run, store, &options, held->results, held->arenas, held->known, &diag);
    assert_string_equal(diag.text, "");
}

static void put(struct held *held, const struct sample *sample, int from, int to)
{
    struct diag diag = DIAG_INIT;
    for (int i = from; i < to; i++)
        store_run_point(held->run, i, &sample->results[i], &diag);
    assert_string_equal(diag.text, "");
}

static void end(struct held *held)
{
    store_run_end(held->run);
    for (int i = 0; i < SAMPLE_POINTS; i++)
        arena_release(&held->arenas[i]);
}

/* Every number that a result holds gets a different value; what comes back makes the same record.
 */
static void number_all(struct sample *sample, int i)
{
    struct scenario_result *result = &sample->results[i];
    struct exec_breakdown *part = &result->exec.breakdown;
    struct exec_memory *memory = &result->exec.memory;
    bool ok = i != SAMPLE_OOM;
    double *const of_ok[] = {&result->tflops_per_gpu, &result->model_tflops_per_gpu,
        &result->hw_tflops_per_gpu, &result->mfu, &result->hfu, &result->tokens_per_s_per_gpu,
        &result->samples_per_s, &result->exec.step_time_s, &result->exec.step_time_sd_s,
        &result->exec.step_time_p05_s, &result->exec.step_time_p95_s, &part->compute_s,
        &part->contention_s, &part->exposed_comm_s, &part->host_bound_s, &part->other_idle_s,
        &part->comm_s, &part->comm_latency_s, &part->comm_wait_s, &memory->peak_allocated_bytes,
        &memory->peak_reserved_bytes, &memory->alloc_retries, &memory->alloc_retries_a_step,
        &memory->alloc_stall_s, &result->exec.nvlink_utilisation, &result->exec.nic_utilisation};
    double *const of_all[] = {
        &result->exec.events, &result->plan_ops, &result->wall_s, &memory->capacity_bytes};
    for (size_t k = 0; k < sizeof of_ok / sizeof *of_ok && ok; k++)
        *of_ok[k] = 1000 * i + (double)k + 1.0 / 3;
    for (size_t k = 0; k < sizeof of_all / sizeof *of_all; k++)
        *of_all[k] = -1000 * i - (double)k - 1.0 / 7;
    result->exec.ranks_simulated = 77 + i;
    if (i > 0) /* the first one has no slow nodes */
        result->slow = (struct scenario_slow){i / 10., i + 1. / 3, i + 2. / 3};
    static struct exec_program programs[2];
    if (i != 1)
        return;
    part->bubble_s = 1.0 / 11; /* what only a point of several programs has */
    part->stage_wait_s = 1.0 / 13;
    result->exec.n_programs = 2;
    result->exec.programs = programs;
    result->exec.fullest = 1;
    for (int p = 0, n = 0; p < 2; p++)
        for (int c = 0; c < n_record_columns; c++)
            if (record_columns[c].program)
                *record_of_program(&programs[p], &record_columns[c]) = n++ + 1.0 / 7;
}

static void assert_alike(const struct sample *sample, int i, const struct scenario_result *got)
{
    struct record expected, found;
    record_fill(&expected, &sample->points[i], &sample->results[i]);
    record_fill(&found, &sample->points[i], got);
    assert_int_equal(expected.n, found.n);
    for (int c = 0; c < expected.n; c++) {
        const struct record_cell *a = &expected.cells[c], *b = &found.cells[c];
        bool alike = a->kind == b->kind && a->integer == b->integer &&
                     memcmp(&a->real, &b->real, sizeof a->real) == 0 &&
                     (a->kind != RECORD_TEXT || strcmp(a->text, b->text) == 0);
        if (!alike)
            fail_msg("%s of point %d is not what was stored", a->name, i);
    }
    const struct exec_memory *memory = &sample->results[i].exec.memory;
    assert_memory_equal(got->exec.memory.peak_category_bytes, memory->peak_category_bytes,
        sizeof memory->peak_category_bytes);
    assert_memory_equal(got->exec.memory.required_category_bytes, memory->required_category_bytes,
        sizeof memory->required_category_bytes);
    assert_true(got->wall_s == sample->results[i].wall_s);
    assert_memory_equal(&got->slow, &sample->results[i].slow, sizeof got->slow);
    const struct exec_result *stored = &sample->results[i].exec;
    assert_int_equal(got->exec.n_programs, stored->n_programs);
    assert_int_equal(got->exec.fullest, stored->fullest);
    for (int p = 0; p < stored->n_programs; p++)
        for (const struct record_column *c = record_columns; c < record_columns + n_record_columns;
             c++)
            assert_true(!c->program || *record_of_program(&got->exec.programs[p], c) ==
                                           *record_of_program(&stored->programs[p], c));
}

static void what_was_stored_comes_back(void **state)
{
    (void)state;
    struct sample sample;
    struct held held;
    sample_init(&sample);
    for (int i = 0; i < SAMPLE_POINTS; i++)
        number_all(&sample, i);
    struct store *store = must_open("back.db", STORE_WRITE);
    begin(&held, store, &sample);
    for (int i = 0; i < SAMPLE_POINTS; i++)
        assert_false(held.known[i]);
    put(&held, &sample, 0, SAMPLE_POINTS);
    end(&held);
    begin(&held, store, &sample);
    for (int i = 0; i < SAMPLE_POINTS; i++) {
        assert_true(held.known[i]);
        assert_alike(&sample, i, &held.results[i]);
    }
    end(&held);
    assert_answer(store, "SELECT count(*) FROM run", "1");
    store_close(store);
}

static void a_run_goes_on_with_what_is_missing(void **state)
{
    (void)state;
    struct sample sample;
    struct held held;
    sample_init(&sample);
    struct store *store = must_open("on.db", STORE_WRITE);
    begin(&held, store, &sample); /* no point: no run */
    end(&held);
    assert_answer(store, "SELECT count(*) FROM run", "0");
    begin(&held, store, &sample);
    put(&held, &sample, 1, 3);
    end(&held);
    assert_answer(store, "SELECT printf('%d of %d', finished, points) FROM v_unfinished", "2 of 4");
    assert_answer(store, "SELECT count(*) FROM v_scaling", "2");
    begin(&held, store, &sample);
    assert_true(!held.known[0] && held.known[1] && held.known[2] && !held.known[3]);
    put(&held, &sample, 0, 1);
    put(&held, &sample, 3, 4);
    end(&held);
    assert_answer(store, "SELECT count(*) FROM v_unfinished", "0");
    assert_answer(
        store, "SELECT printf('%d %d', (SELECT count(*) FROM run), count(*)) FROM point", "1 4");
    store_close(store);
}

/* Another sweep with the same points, here in another order and under another name: separate rows.
 */
static void another_run_takes_what_is_alike(void **state)
{
    (void)state;
    struct sample sample, other;
    struct held held;
    sample_init(&sample);
    sample_init(&other);
    for (int i = 0; i < SAMPLE_POINTS; i++) {
        other.points[i] = sample.points[SAMPLE_POINTS - 1 - i];
        other.points[i].options.name = "other";
        other.points[i].published.id = "Q";
    }
    struct store *store = must_open("other.db", STORE_WRITE);
    begin(&held, store, &sample);
    put(&held, &sample, 0, 2);
    end(&held);
    begin(&held, store, &other);
    assert_true(!held.known[0] && !held.known[1] && held.known[2] && held.known[3]);
    assert_true(held.results[3].exec.step_time_s == sample.results[0].exec.step_time_s);
    end(&held);
    assert_answer(
        store, "SELECT group_concat(simulated_id) FROM point WHERE published_id = 'Q'", "2,1");
    assert_answer(
        store, "SELECT count(*) FROM timeline", "8"); /* two of each of four points that ran */
    assert_answer(store, "SELECT count(*) FROM memory", "32");
    assert_answer(
        store, "SELECT DISTINCT scenario FROM v_scaling WHERE published_id = 'Q'", "other");
    begin(&held, store, &other); /* as it was left */
    end(&held);
    assert_answer(store, "SELECT count(*) FROM run", "2");
    for (int i = 0; i < SAMPLE_POINTS; i++) {
        other.points[i].options.name = "third";
        other.points[i].published.id = "R";
    }
    begin(&held, store,
        &other); /* of the rows that are alike, those that were simulated; copies are newer */
    end(&held);
    assert_answer(
        store, "SELECT group_concat(simulated_id) FROM point WHERE published_id = 'R'", "2,1");
    store_close(store);
}

enum { SAMPLES = 2 };

/* A run of the first point with samples of such an uncertainty; known: whether they are there. */
static void begin_sampled(struct held *held, struct store *store, struct sample *sample,
    const struct scenario_uncertainty *uncertainty, bool *known)
{
    struct diag diag = DIAG_INIT;
    sample->set.n_points = 1;
    const struct store_run_options options = {
        .set = &sample->set, .uncertainty = uncertainty, .samples = SAMPLES};
    *held = (struct held){0};
    store_run_begin(&held->run, store, &options, held->results, held->arenas, held->known, &diag);
    if (!held->known[0])
        put(held, sample, 0, 1);
    store_run_samples(held->run, held->results, held->arenas, known, &diag);
    assert_string_equal(diag.text, "");
}

/* Samples are taken from where numbers were drawn alike; a point's band is stored once. */
static void samples_of_the_same_draws_are_taken(void **state)
{
    (void)state;
    struct sample sample;
    struct held held;
    struct diag diag = DIAG_INIT;
    const struct scenario_uncertainty none = {0};
    const char *key = "sms", *id = "a/fit";
    double factor = 1;
    struct hw_fit fit = {.keys = &key, .ids = &id, .n = 1, .factor = &factor};
    const struct scenario_uncertainty other = {.fits = {.list = &fit, .n = 1}};
    struct store *store = must_open("draws.db", STORE_WRITE);
    sample_init(&sample);
    bool first[SAMPLES] = {0}, again[SAMPLES] = {0}, differs[SAMPLES] = {0};
    begin_sampled(&held, store, &sample, &none, first);
    assert_true(!first[0] && !first[1]);
    for (int k = 0; k < SAMPLES; k++) {
        held.results[0].samples[k] = (struct scenario_sample){true, {100 + k, 2, 10}};
        store_run_sample(held.run, 0, k, &held.results[0], &diag);
    }
    assert_string_equal(diag.text, "");
    end(&held);
    begin_sampled(&held, store, &sample, &none, again);
    assert_true(again[0] && again[1] && held.results[0].samples[1].value[0] == 101);
    end(&held);
    assert_answer(
        store, "SELECT printf('%d %d', (SELECT count(*) FROM sample), count(*)) FROM band", "2 1");
    begin_sampled(&held, store, &sample, &other, differs);
    assert_true(!differs[0] && !differs[1]);
    end(&held);
    store_close(store);
}

/* The first transaction makes the row of the run and fails after that: the row is gone with it, and
 * the next attempt makes another one, whole. */
static void a_run_that_was_rolled_back_is_made_anew(void **state)
{
    (void)state;
    struct sample sample;
    struct held held;
    struct diag diag = DIAG_INIT;
    struct store *store = must_open("again.db", STORE_WRITE);
    begin(&held, store, sample_init(&sample));
    database_exec(store,
        "CREATE TEMP TRIGGER full BEFORE INSERT ON memory BEGIN SELECT raise(ABORT, 'full'); END",
        "make it fail", &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(store_run_point(held.run, 0, &sample.results[0], &diag), STATUS_IO);
    assert_non_null(strstr(diag.text, "again.db: error: cannot store the run: full"));
    assert_answer(store, "SELECT count(*) FROM run", "0");
    diag = DIAG_INIT;
    database_exec(store, "DROP TRIGGER full", "let it go on", &diag);
    assert_string_equal(diag.text, "");
    put(&held, &sample, 0, SAMPLE_POINTS);
    end(&held);
    assert_answer(store, "SELECT count(*) FROM run", "1");
    assert_answer(store, "SELECT count(*) FROM point JOIN run ON run.id = run_id", "4");
    store_close(store);
}

/* A commit does not wait for the disk, so what is read in the meantime is the newest; in the end it
 * is one file. */
static void the_log_of_the_database_is_gone_in_the_end(void **state)
{
    (void)state;
    struct sample sample;
    struct held held;
    sample_init(&sample);
    struct store *store = must_open("log.db", STORE_WRITE);
    begin(&held, store, &sample);
    put(&held, &sample, 0, 1);
    assert_int_equal(access("log.db-wal", F_OK), 0);
    struct store *reader = must_open("log.db", STORE_READ);
    assert_answer(reader, "SELECT count(*) FROM v_scaling", "1");
    store_close(reader);
    end(&held);
    store_close(store);
    assert_int_not_equal(access("log.db-wal", F_OK), 0);
    FILE *file = fopen(
        "log.db", "rb"); /* byte 18 of the header: 1 without such a log, 2 with one (fileformat2) */
    assert_non_null(file);
    assert_int_equal(fseek(file, 18, SEEK_SET), 0);
    assert_int_equal(fgetc(file), 1);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_stored_comes_back),
        cmocka_unit_test(a_run_goes_on_with_what_is_missing),
        cmocka_unit_test(another_run_takes_what_is_alike),
        cmocka_unit_test(samples_of_the_same_draws_are_taken),
        cmocka_unit_test(a_run_that_was_rolled_back_is_made_anew),
        cmocka_unit_test(the_log_of_the_database_is_gone_in_the_end)};
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
