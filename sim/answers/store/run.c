/* One run of a scenario's points and how it continues: what is known already is taken from the
 * database, what is simulated is added, each point in a transaction. Each point has an identity
 * (scenario/identity.h), a digest of all that its result depends on. The digest of all identities
 * and names in their order is the sweep. The newest run of the scenario is continued if its sweep
 * is the same; otherwise a run is added with the first row that is written. A point's result is
 * taken from its own row, or else from any row of the same identity.
 *
 * What is subtle: another program may write at the same time, so after BEGIN IMMEDIATE the run and
 * the row are looked up again, and a point that is there is not stored a second time. After a
 * rollback the run's number, the note of the shard and cached documents are as before, because
 * their rows are gone. A statement that has returned a row is reset at once: it holds a lock until
 * then. */
#include "store/run.h"

#include "store/fetch.h"
#include "store/put.h"

#include "base/digest.h"
#include "scenario/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run_point {
    struct scenario_identity identity, draws; /* draws: where samples are asked for */
    int64_t id;                               /* of its row; 0: none yet */
    int64_t from;                             /* of a row to take the result from; 0: none */
    int left;                                 /* samples that are not stored */
};

struct store_run {
    struct store *store;
    struct store_run_options options;
    int64_t id; /* 0: none yet */
    bool written, shard_noted;
    char sweep[17];
    struct run_point *points;
    struct put put;
};

/* The first row of a statement: SQLITE_ROW, SQLITE_DONE or an error. */
static int first_row(struct store_run *run, sqlite3_stmt **statement, const char *sql,
    const char *text, int64_t a, int64_t b)
{
    int code = SQLITE_OK, next = 1;
    *statement = database_statement(run->store, sql);
    if (!*statement)
        return SQLITE_ERROR;
    if (text)
        code = sqlite3_bind_text(*statement, next++, text, -1, SQLITE_TRANSIENT);
    if (code == SQLITE_OK && next <= sqlite3_bind_parameter_count(*statement))
        code = sqlite3_bind_int64(*statement, next++, a);
    if (code == SQLITE_OK && next <= sqlite3_bind_parameter_count(*statement))
        code = sqlite3_bind_int64(*statement, next, b);
    return code == SQLITE_OK ? sqlite3_step(*statement) : code;
}

static enum status read_end(
    struct store_run *run, sqlite3_stmt *statement, int code, struct diag *diag)
{
    enum status status = code == SQLITE_ROW || code == SQLITE_DONE
                             ? STATUS_OK
                             : database_fail(run->store, fetch_what, diag);
    sqlite3_reset(statement); /* a statement that is not ended keeps a lock */
    return status;
}

static const char *scenario_of(const struct store_run *run)
{
    return run->options.set->points[0].options.name;
}

/* The newest run of the scenario, if it is of this sweep, is the run. */
static enum status find_run(struct store_run *run, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    int code = first_row(run, &statement,
        "SELECT id, sweep FROM run WHERE scenario = ? ORDER BY id DESC LIMIT 1", scenario_of(run),
        0, 0);
    if (code == SQLITE_ROW) {
        const char *sweep = (const char *)sqlite3_column_text(statement, 1);
        if (strcmp(sweep, run->sweep) == 0)
            run->id = sqlite3_column_int64(statement, 0);
    }
    return read_end(run, statement, code, diag);
}

static enum status add_run(struct store_run *run, struct diag *diag)
{
    const struct scenario_set *set = run->options.set;
    enum status status = insert_row(run->store, "INTO run",
        RECORD_CELLS(cell_text("scenario", scenario_of(run)),
            cell_text("description", set->points[0].options.description),
            cell_text("file", set->file), cell_text("version", FLOPCAST_VERSION),
            cell_int("points", set->n_points), cell_text("sweep", run->sweep)),
        put_what, diag);
    if (status == STATUS_OK)
        run->id = sqlite3_last_insert_rowid(run->store->db);
    return status;
}

/* This shard, of a run that is there. */
static enum status note_shard(struct store_run *run, bool finished, struct diag *diag)
{
    const struct store_run_options *options = &run->options;
    char sql[320];
    if (options->shards == 0 || run->id == 0)
        return STATUS_OK;
    snprintf(sql, sizeof sql,
        "INSERT INTO shard (run_id, shards, shard, points, finished) VALUES (%lld, %d, %d, %d, %d) "
        "ON CONFLICT DO UPDATE SET finished = max(finished, excluded.finished)",
        (long long)run->id, options->shards, options->shard, options->shard_points, finished);
    return database_exec(run->store, sql, put_what, diag);
}

/* Begin a transaction of a run that is there in its end. Another program may have added it since we
 * looked. */
static enum status run_own_begin(struct store_run *run, struct diag *diag)
{
    if (!run->written)
        database_begin_wal(run->store);
    run->written = true;
    enum status status = database_exec(run->store, "BEGIN IMMEDIATE", put_what, diag);
    if (status == STATUS_OK && run->id == 0 && !run->options.again)
        status = find_run(run, diag);
    if (status == STATUS_OK && run->id == 0)
        status = add_run(run, diag);
    if (status == STATUS_OK && !run->shard_noted)
        status = note_shard(run, false, diag);
    run->shard_noted = status == STATUS_OK;
    return status;
}

/* had: the run before the transaction. */
static enum status run_own_end(
    struct store_run *run, int64_t had, enum status status, struct diag *diag)
{
    status = database_end(run->store, status, put_what, diag);
    if (status != STATUS_OK) {
        run->id = had;
        run->shard_noted = false;
        put_forget(&run->put);
    }
    return status;
}

/* The row of the point in the run, or 0. */
static enum status find_own(struct store_run *run, int i, int64_t *id, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    int code = first_row(run, &statement, "SELECT id FROM point WHERE run_id = ? AND position = ?",
        NULL, run->id, (int64_t)i);
    *id = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return read_end(run, statement, code, diag);
}

/* A row of the same identity, of whatever run, or 0. A row that was simulated comes before one
 * that was taken itself, since only the former has a time line to copy. */
static enum status store_run_find_alike(
    struct store_run *run, int i, int64_t *id, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    int code = first_row(run, &statement,
        "SELECT id FROM point WHERE identity = ? ORDER BY simulated_id IS NOT NULL, id DESC LIMIT "
        "1",
        run->points[i].identity.text, 0, 0);
    *id = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return read_end(run, statement, code, diag);
}

/* The number of samples is part of the sweep: a run with other samples is another run. */
static void identify(struct store_run *run)
{
    const struct store_run_options *options = &run->options;
    uint64_t sweep = digest_word(DIGEST_INIT, (uint64_t)options->samples);
    for (int i = 0; i < options->set->n_points; i++) {
        const struct scenario_point *point = &options->set->points[i];
        struct run_point *own = &run->points[i];
        scenario_identify(&own->identity, point);
        if (options->samples > 0)
            scenario_identify_samples(&own->draws, point, options->uncertainty);
        for (int c = 0; c < IDENTITY_BYTES; c++)
            sweep = digest_word(digest_word(sweep, (unsigned char)own->identity.text[c]),
                (unsigned char)own->draws.text[c]);
        sweep = scenario_digest_label(sweep, point);
    }
    snprintf(run->sweep, sizeof run->sweep, "%016" PRIx64, sweep);
}

/* Where a point stands in the database, and its result. */
static enum status store_run_take(struct store_run *run, int i, struct scenario_result *result,
    struct arena *arena, bool *known, struct diag *diag)
{
    struct run_point *point = &run->points[i];
    enum status status = run->id > 0 ? find_own(run, i, &point->id, diag) : STATUS_OK;
    if (status == STATUS_OK && point->id == 0)
        status = store_run_find_alike(run, i, &point->from, diag);
    int64_t id = point->id > 0 ? point->id : point->from;
    *known = id > 0;
    return status == STATUS_OK && id > 0 ? fetch_result(run->store, id, result, arena, diag)
                                         : status;
}

static enum status store_run_add_point(
    struct store_run *run, int i, const struct scenario_result *result, struct diag *diag)
{
    struct run_point *point = &run->points[i];
    const struct put_place place = {.run_id = run->id,
        .position = i,
        .identity = point->identity.text,
        .simulated_id = point->from};
    int64_t id = 0;
    enum status status = find_own(run, i, &id, diag); /* another program may be at the same sweep */
    if (status == STATUS_OK && id == 0)
        status = put_point(&run->put, &place, &run->options.set->points[i], result, &id, diag);
    if (status == STATUS_OK)
        point->id = id;
    return status;
}

/* Points whose results another run has, as points of this one. */
static enum status add_taken(
    struct store_run *run, const struct scenario_result *results, struct diag *diag)
{
    int n = run->options.set->n_points, first = 0;
    while (first < n && !(run->points[first].id == 0 && run->points[first].from > 0))
        first++;
    if (first == n)
        return STATUS_OK;
    int64_t had = run->id;
    enum status status = run_own_begin(run, diag);
    for (int i = first; i < n && status == STATUS_OK; i++)
        if (run->points[i].id == 0 && run->points[i].from > 0)
            status = store_run_add_point(run, i, &results[i], diag);
    return run_own_end(run, had, status, diag);
}

/* Reading comes first for all points; only then, if some were found in other runs, is there a
 * transaction. */
enum status store_run_begin(struct store_run **out, struct store *store,
    const struct store_run_options *options, struct scenario_result *results, struct arena *arenas,
    bool *known, struct diag *diag)
{
    int n = options->set->n_points;
    BUG_IF(n == 0, "a run without points");
    struct store_run *run = xcalloc(1, sizeof *run);
    *run = (struct store_run){.store = store,
        .put = {.store = store},
        .options = *options,
        .points = xcalloc((size_t)n, sizeof *run->points)};
    *out = NULL;
    identify(run);
    enum status status = options->again ? STATUS_OK : find_run(run, diag);
    for (int i = 0; i < n && status == STATUS_OK && !options->again; i++)
        status = store_run_take(run, i, &results[i], &arenas[i], &known[i], diag);
    if (status == STATUS_OK)
        status = add_taken(run, results, diag);
    if (status == STATUS_OK)
        *out = run;
    else
        store_run_end(run);
    return status;
}

enum status store_run_point(
    struct store_run *run, int point, const struct scenario_result *result, struct diag *diag)
{
    int64_t had = run->id;
    enum status status = run_own_begin(run, diag);
    if (status == STATUS_OK)
        status = store_run_add_point(run, point, result, diag);
    return run_own_end(run, had, status, diag);
}

/* ---- samples ---- */

/* The band of a point all of whose samples are stored, unless it is there. */
static enum status add_band(
    struct store_run *run, int i, const struct scenario_result *result, struct diag *diag)
{
    int64_t id = run->points[i].id;
    sqlite3_stmt *statement = NULL;
    int code = first_row(run, &statement, "SELECT 1 FROM band WHERE point_id = ?", NULL, id, 0);
    bool there = code == SQLITE_ROW;
    enum status status = read_end(run, statement, code, diag);
    return status == STATUS_OK && !there ? put_band(&run->put, id, result, diag) : status;
}

/* left counts what is still to be simulated; a sample that was read twice counts once. Rows of
 * samples carry the digest of the draws as well, so samples that were drawn from other
 * distributions are not counted. */
static enum status take_samples(
    struct store_run *run, int i, struct scenario_result *result, bool *known, struct diag *diag)
{
    struct run_point *point = &run->points[i];
    sqlite3_stmt *statement = NULL;
    int code = first_row(run, &statement,
        "SELECT sample, status, tflops_per_gpu, step_time_s, tokens_per_s_per_gpu, draw FROM "
        "sample WHERE identity = ? AND sample < ?",
        point->identity.text, run->options.samples, 0);
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
        if (strcmp((const char *)sqlite3_column_text(statement, 5), point->draws.text) != 0)
            continue;
        int k = sqlite3_column_int(statement, 0);
        struct scenario_sample *sample = &result->samples[k];
        sample->ok = strcmp((const char *)sqlite3_column_text(statement, 1),
                         exec_status_names[EXEC_OK]) == 0;
        for (int q = 0; q < SAMPLED_COUNT; q++)
            sample->value[q] = sqlite3_column_double(statement, 2 + q);
        point->left -= !known[k];
        known[k] = true;
    }
    return read_end(run, statement, code, diag);
}

enum status store_run_samples(struct store_run *run, struct scenario_result *results,
    struct arena *arenas, bool *known, struct diag *diag)
{
    const struct store_run_options *options = &run->options;
    int n = options->set->n_points;
    enum status status = STATUS_OK;
    scenario_sample_prepare(results, arenas, options->set, options->samples);
    for (int i = 0; i < n; i++)
        run->points[i].left = options->samples;
    for (int i = 0; i < n && status == STATUS_OK && !options->again; i++)
        status =
            take_samples(run, i, &results[i], &known[(size_t)i * (size_t)options->samples], diag);
    for (int i = 0; i < n && status == STATUS_OK; i++) {
        if (run->points[i].left > 0 || run->points[i].id == 0) /* without a row: another shard's */
            continue;
        status = run_own_begin(run, diag);
        if (status == STATUS_OK)
            status = add_band(run, i, &results[i], diag);
        status = run_own_end(run, run->id, status, diag);
    }
    return status;
}

/* The last sample that is missing brings the band, in the same transaction. */
enum status store_run_sample(struct store_run *run, int point, int sample,
    const struct scenario_result *result, struct diag *diag)
{
    struct run_point *own = &run->points[point];
    const struct scenario_sample *drawn = &result->samples[sample];
    struct record_cell cells[4 + SAMPLED_COUNT] = {cell_text("identity", own->identity.text),
        cell_text("draw", own->draws.text), cell_int("sample", sample),
        cell_text("status", exec_status_names[drawn->ok ? EXEC_OK : EXEC_OOM])};
    for (int q = 0; q < SAMPLED_COUNT; q++)
        cells[4 + q] = cell_real(scenario_sampled_names[q], drawn->ok, drawn->value[q]);
    enum status status = run_own_begin(run, diag);
    if (status == STATUS_OK)
        status = insert_row(
            run->store, "OR REPLACE INTO sample", cells, 4 + SAMPLED_COUNT, put_what, diag);
    if (status == STATUS_OK && own->left == 1)
        status = add_band(run, point, result, diag);
    status = run_own_end(run, run->id, status, diag);
    own->left -= status == STATUS_OK;
    return status;
}

/* ---- what was measured ---- */

static enum status add_given(
    struct store_run *run, int64_t id, const struct store_given *given, struct diag *diag)
{
    return insert_row(run->store, "INTO given",
        RECORD_CELLS(cell_int("point_id", id),
            cell_real("measured", given->measured > 0, given->measured),
            cell_real("middle", true, given->range.middle),
            cell_real("low", true, given->range.low), cell_real("high", true, given->range.high)),
        put_what, diag);
}

static bool has_given(struct store_run *run, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    int code = first_row(run, &statement,
        "SELECT 1 FROM given JOIN point ON point.id = point_id WHERE run_id = ? LIMIT 1", NULL,
        run->id, 0);
    bool has = code == SQLITE_ROW;
    read_end(run, statement, code, diag);
    return has;
}

/* Rows of before go first: the command that measured again stands for the ones before it. */
enum status store_run_given(
    struct store_run *run, const struct store_given *given, struct diag *diag)
{
    char sql[128];
    struct diag own = DIAG_INIT;
    bool had_given = given || has_given(run, &own);
    enum status status = own.worst;
    diag_merge(diag, &own);
    if (!had_given)
        return status;
    int64_t had = run->id;
    status = run_own_begin(run, diag);
    snprintf(sql, sizeof sql,
        "DELETE FROM given WHERE point_id IN (SELECT id FROM point WHERE run_id = %lld)",
        (long long)run->id);
    if (status == STATUS_OK)
        status = database_exec(run->store, sql, put_what, diag);
    for (int i = 0; given && i < run->options.set->n_points && status == STATUS_OK; i++)
        if (run->points[i].id > 0 && given[i].range.known)
            status = add_given(run, run->points[i].id, &given[i], diag);
    return run_own_end(run, had, status, diag);
}

enum status store_run_shard_done(struct store_run *run, struct diag *diag)
{
    return note_shard(run, true, diag);
}

void store_run_end(struct store_run *run)
{
    if (!run)
        return;
    put_end(&run->put);
    database_end_wal(run->store);
    free(run->points);
    free(run);
}
