/* Several tables at once: curves go through the files of a source, rows that are the same run are
 * simulated once, and results that are kept in a file and read back. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "validate/first_sight.h"
#include "validate/stored.h"

#include <sys/stat.h>

#define HEAD                                                                                       \
    "id,source,model,topology,gpus,micro_batch,tokens_per_s_per_gpu,peak_allocated_bytes,oom,"     \
    "used_in_fit,not_"                                                                             \
    "simulated\n"
#define BASE_TEXT                                                                                  \
    "name: base\ncluster: {gpus: 8}\ntrain: {micro_batch: 1, seq_len: 128, precision: "            \
    "fp16_mixed}\nstrategy: ddp\n"                                                                 \
    "run: {steps: 1, warmup_steps: 0}\n"

/* Two files: a, b and c of one.csv are one run measured three times, and so is x of two.csv, by
 * another source. */
static struct validate_table two_tables(struct diag *diag)
{
    struct validate_table table = {0};
    write_text("base.yaml", BASE_TEXT);
    write_text("one.csv", HEAD "a,s,tiny.json,cluster.yaml,8,2,1000,1e9,no,,\n"
                               "b,s,tiny.json,cluster.yaml,8,2,1100,,,,\n"
                               "c,s,tiny.json,cluster.yaml,8,2,5000,,,,\n"
                               "d,s,tiny.json,cluster.yaml,16,2,900,,,yes,\n"
                               "e,s,tiny.json,cluster.yaml,16,4,,,,,nobody says how\n");
    write_text("two.csv", "id,source,model,topology,gpus,micro_batch,tokens_per_s_per_gpu,oom\n"
                          "x,t,tiny.json,cluster.yaml,8,2,2000,\n"
                          "a,t,tiny.json,cluster.yaml,8,1000000,100,no\n"
                          "z,t,tiny.json,cluster.yaml,8,1000000,,yes\n");
    assert_true(validate_add(&table, "one.csv", "base.yaml", NULL, diag));
    assert_true(validate_add(&table, "two.csv", "base.yaml", NULL, diag));
    return table;
}

static int counted;
static void count_runs(void *self, int done, int total)
{
    (void)self;
    (void)done;
    counted = total;
}

static void a_run_is_simulated_once(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct validate_table table = two_tables(&diag);
    validate_run(&table, count_runs, NULL, &diag);
    assert_string_equal(diag.text, "");
    const struct validate_row *rows = table.rows.at;
    assert_int_equal(table.rows.n, 8);
    assert_int_equal(counted, 3); /* on 8 GPUs, on 16, and the one that is too large */
    static const int same[] = {0, 0, 0, 3, 4, 0, 6, 6};
    for (int i = 0; i < 8; i++)
        assert_int_equal(rows[i].same, same[i]);
    for (int i = 1; i < 3; i++)
        assert_true(
            rows[i].predicted.tokens_per_s_per_gpu == rows[0].predicted.tokens_per_s_per_gpu);
    assert_int_equal(rows[7].status, VALIDATE_OOM);
    assert_string_equal(rows[5].file, "two.csv");
    assert_int_not_equal(rows[5].curve, rows[0].curve); /* of another source */
    assert_true(rows[3].has_ratio && rows[3].smallest == 0);
    validate_release(&table);
}

/* A sweep of one source in two files, with other columns in another order: one curve, measured at
 * 1000, 800 and 500 on a node of 8 GPUs, on two and on four. A curve that begins on two nodes is
 * none of a layout in one node. */
static void a_curve_goes_through_files(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct validate_table table = {0};
    write_text("base.yaml", BASE_TEXT);
    write_text("one.csv", "id,source,model,topology,gpus,micro_batch,tokens_per_s_per_gpu\n"
                          "a,s,tiny.json,cluster.yaml,16,2,800\n"
                          "b,s,tiny.json,cluster.yaml,8,2,1000\n"
                          "c,s,tiny.json,cluster.yaml,16,4,1000\n");
    write_text("two.csv",
        "micro_batch,id,source,tokens_per_s_per_gpu,gpus,grad_accum,topology,model\n"
        "2,x,s,500,32,,cluster.yaml,tiny.json\n"
        "2,y,s,500,32,2,cluster.yaml,tiny.json\n"
        "4,z,s,600,32,,cluster.yaml,tiny.json\n");
    assert_true(validate_add(&table, "one.csv", "base.yaml", NULL, &diag));
    assert_true(validate_add(&table, "two.csv", "base.yaml", NULL, &diag));
    validate_run(&table, NULL, NULL, &diag);
    assert_string_equal(diag.text, "");
    const struct validate_row *rows = table.rows.at;
    static const int curves[] = {0, 0, 2, 0, 4, 2}, smallest[] = {1, 1, 2, 1, 4, 2};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(rows[i].curve, curves[i]);
        assert_int_equal(rows[i].smallest, smallest[i]);
    }
    assert_near(rows[0].measured_ratio, 0.8, 1e-12);
    assert_near(rows[3].measured_ratio, 0.5, 1e-12);
    assert_near(rows[5].measured_ratio, 0.6, 1e-12);
    validate_release(&table);
}

static void what_is_kept_reads_back(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct validate_table table = two_tables(&diag), back;
    validate_run(&table, NULL, NULL, &diag);
    assert_int_equal(validate_stored_write(&table, "base.yaml", "results.csv", &diag), STATUS_OK);
    assert_true(validate_stored_read(&back, "results.csv", NULL, &diag));
    assert_string_equal(diag.text, "");
    assert_int_equal(back.rows.n, table.rows.n);
    for (int i = 0; i < back.rows.n; i++) {
        const struct validate_row *a = &table.rows.at[i], *b = &back.rows.at[i];
        assert_string_equal(a->id, b->id);
        assert_string_equal(a->layout, b->layout);
        assert_string_equal(a->reason, b->reason);
        assert_int_equal(a->status, b->status);
        assert_int_equal(a->same, b->same);
        assert_int_equal(a->has_error, b->has_error);
        assert_near(a->error, b->error, 1e-5);
        assert_near(a->predicted_ratio, b->predicted_ratio, 1e-5);
        assert_near(a->waiting_share, b->waiting_share, 1e-5);
        assert_int_equal(a->has_verdict, b->has_verdict);
    }
    validate_release(&back);
    validate_release(&table);

    /* Of one source; then a row that is new, and one with another batch. */
    assert_true(validate_stored_read(&back, "results.csv", "TWO", &diag));
    assert_int_equal(back.rows.n, 3);
    assert_int_equal(back.rows.at[2].same, 1);
    validate_release(&back);
    write_text("two.csv", "id,source,model,topology,gpus,micro_batch,tokens_per_s_per_gpu,oom\n"
                          "x,t,tiny.json,cluster.yaml,8,3,2000,\n"
                          "new,t,tiny.json,cluster.yaml,8,2,100,no\n"
                          "z,t,tiny.json,cluster.yaml,8,1000000,,yes\n");
    assert_true(validate_stored_read(&back, "results.csv", "TWO", &diag));
    assert_int_equal(diag.n_errors, 0);
    assert_non_null(strstr(
        diag.text, "two.csv: warning: 1 row not in 'results.csv', 1 with other settings there; "));
    assert_string_equal(back.rows.at[0].reason, "its settings have changed since");
    assert_string_equal(back.rows.at[1].reason, "not in the file of results");
    assert_int_equal(back.rows.at[2].status, VALIDATE_OOM);
    validate_release(&back);
}

/* Whether a number of the cluster, of the model or of the errors was changed since; names and
 * sources are no inputs. */
static void what_changed_makes_rows_stale(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct validate_table table = two_tables(&diag), back;
    static const struct {
        const char *file, *from, *to;
        int stale; /* of the 7 rows that are simulated */
    } changes[] = {
        {"cluster.yaml", "", "", 0}, {"cluster.yaml", "kind: assumed", "kind: datasheet", 0},
        {"cluster.yaml", "latency: {value: 2 us", "latency: {value: 3 us", 7},
        {"tiny.json", "\"vocab_size\": 1000", "\"vocab_size\": 1001", 7},
        {"base.yaml", "seq_len: 128", "seq_len: 64", 7},
        {"base.yaml", "cluster: {gpus: 8}", "cluster: {gpus: 16}", 0}, /* every row says its own */
    };
    validate_run(&table, NULL, NULL, &diag);
    assert_int_equal(validate_stored_write(&table, "base.yaml", "results.csv", &diag), STATUS_OK);
    validate_release(&table);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *text = i < 3    ? cluster_yaml
                           : i == 3 ? model_json
                                    : BASE_TEXT,
                   *at = strstr(text, changes[i].from);
        char changed[4096];
        assert_non_null(at);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, changes[i].to,
            at + strlen(changes[i].from));
        write_text(changes[i].file, changed);
        assert_true(validate_stored_read(&back, "results.csv", NULL, &diag));
        struct diag own = DIAG_INIT;
        validate_stored_check(&back, &own);
        int stale = 0;
        for (int r = 0; r < back.rows.n; r++)
            stale += back.rows.at[r].stale;
        assert_int_equal(stale, changes[i].stale);
        assert_true((own.n_warnings > 0) == (stale > 0));
        if (stale > 0)
            assert_non_null(strstr(own.text,
                "one.csv: warning: 4 rows of it would be predicted from other settings, "
                "hardware, stack profiles or fitted numbers today (a, b, c, d); "));
        validate_release(&back);
        write_text(changes[i].file, text);
    }
    assert_string_equal(diag.text, "");
}

/* A row that is taken from elsewhere keeps what made it; a file from before says nothing of it. */
static void a_row_says_what_made_it(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct validate_table table = two_tables(&diag), back;
    write_text("old.csv",
        "file,id,settings,model,gpu,strategy,framework,layout,status,reason,waiting_"
        "share,tokens_per_s_per_gpu,tflops_per_gpu,step_time_s,peak_allocated_bytes,peak_reserved_"
        "bytes,mfu\n");
    validate_run(&table, NULL, NULL, &diag);
    validate_stored_write(&table, "base.yaml", "results.csv", &diag);
    assert_true(validate_stored_read(&back, "results.csv", NULL, &diag));
    assert_int_equal(strlen(back.rows.at[0].inputs), 16);
    assert_true(strchr(back.rows.at[0].made_by, ' ') == back.rows.at[0].made_by + 16);
    assert_string_equal(back.rows.at[0].base, "base.yaml");
    assert_string_equal(back.rows.at[4].inputs, ""); /* it makes no scenario */
    validate_release(&back);
    assert_true(validate_stored_read(&back, "old.csv", NULL, &diag));
    assert_string_equal(diag.text, "");
    validate_release(&back);
    validate_release(&table);
}

/* What has the columns of a table is one; they come by name; predictions are none. */
static void a_folder_has_tables(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    assert_true(mkdir("folder", 0777) == 0);
    write_text(
        "folder/b.csv", "id,model,topology,gpus,step_time_s\nx,tiny.json,cluster.yaml,8,1\n");
    write_text("folder/a.csv",
        "id,model,topology,gpus,tokens_per_s_per_gpu\nx,tiny.json,cluster.yaml,8,1\n");
    write_text(
        "folder/c.txt", "id,model,topology,gpus,step_time_s\nx,tiny.json,cluster.yaml,8,1\n");
    write_text("folder/d.csv",
        "id,model,topology,gpus,step_time_s,predicted_by\nx,tiny.json,cluster.yaml,8,1,me\n");
    write_text("folder/e.csv", "id,model,topology,gpus\nx,tiny.json,cluster.yaml,8\n");
    write_text("folder/f.csv", "id,model,gpus,step_time_s\nx,tiny.json,8,1\n");
    write_text("folder/g.csv", "model,topology,gpus,step_time_s\ntiny.json,cluster.yaml,8,1\n");
    write_text("folder/.csv", "id,model,topology,gpus,step_time_s\nx,tiny.json,cluster.yaml,8,1\n");
    struct validate_files files = validate_files_in("folder", &arena);
    assert_int_equal(files.n, 2);
    assert_string_equal(files.paths[0], "folder/a.csv");
    assert_string_equal(files.paths[1], "folder/b.csv");
    assert_int_equal(validate_files_in("no folder", &arena).n, 0);
    arena_release(&arena);
}

/* What was predicted before is compared with what was measured, of a step time the other way round:
 * 1100 of 1000 is 10 % too fast, 2 s of 3 s 50 %; memory that ran out is missed. */
static void what_was_predicted_first_is_read(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct validate_table table = {0};
    write_text("base.yaml", BASE_TEXT);
    write_text("p.csv",
        "id,tokens_per_s_per_gpu,tflops_per_gpu,step_time_s,oom,predicted_by,inputs\n"
        "a,1100,7,9,no,flopcast 0.1 abc,\nb,5,7,2,no,flopcast 0.1 abc,\nc,,,,yes,flopcast 0.1 "
        "abc,\n"
        "f,1,1,1,no,flopcast 0.1 abc with uncommitted changes,\n");
#define SEEN                                                                                       \
    "id,source,model,topology,gpus,micro_batch,tokens_per_s_per_gpu,step_time_s,first_sight\n"
    write_text("seen.csv",
        SEEN "a,s,tiny.json,cluster.yaml,8,2,1000,,p.csv\nb,s,tiny.json,cluster.yaml,8,2,,3,p.csv\n"
             "c,s,tiny.json,cluster.yaml,8,2,500,,p.csv\nd,s,tiny.json,cluster.yaml,8,2,500,,\n");
    assert_true(validate_add(&table, "seen.csv", "base.yaml", NULL, &diag));
    validate_first_sight(&table, &diag);
    assert_string_equal(diag.text, "");
    const struct validate_row *rows = table.rows.at;
    assert_true(rows[0].has_first_sight && rows[1].has_first_sight && !rows[2].has_first_sight);
    assert_near(rows[0].first_sight_error, 0.1, 1e-12);
    assert_near(rows[1].first_sight_error, 0.5, 1e-12);
    assert_true(rows[2].first_sight_missed && !rows[0].first_sight_missed);
    assert_true(!rows[3].has_first_sight && !rows[3].first_sight_missed);
    assert_string_equal(rows[0].predicted_by, "flopcast 0.1 abc");
    validate_release(&table);
    table = (struct validate_table){0};
    write_text("seen.csv",
        SEEN "e,s,tiny.json,cluster.yaml,8,2,1,,p.csv\nf,s,tiny.json,cluster.yaml,8,2,1,,p.csv\n");
    assert_true(validate_add(&table, "seen.csv", "base.yaml", NULL, &diag));
    validate_first_sight(&table, &diag);
    assert_non_null(strstr(diag.text, "seen.csv:2:"));
    assert_non_null(strstr(diag.text, "'p.csv' has no prediction of 'e'"));
    assert_non_null(strstr(diag.text, "'p.csv' was predicted with uncommitted changes"));
    assert_false(table.rows.at[1].has_first_sight);
    validate_release(&table);
}

/* Rows of which nothing is measured are kept to be predicted, and the file that is written has a
 * line of each. */
static void predictions_are_written_once(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct validate_table table = {0};
    write_text("base.yaml", BASE_TEXT);
    write_text("new.csv", "id,source,model,topology,gpus,micro_batch,tokens_per_s_per_gpu,oom\n"
                          "a,s,tiny.json,cluster.yaml,8,2,1000,\nb,s,tiny.json,cluster.yaml,8,2,,\n"
                          "c,s,tiny.json,cluster.yaml,8,1000000,,\n");
    assert_true(validate_add(&table, "new.csv", "base.yaml", NULL, &diag));
    validate_keep_unmeasured(&table);
    assert_int_equal(table.rows.n, 2);
    assert_string_equal(table.rows.at[0].id, "b");
    validate_run(&table, NULL, NULL, &diag);
    remove("pre.csv");
    assert_int_equal(validate_predict(&table, "pre.csv", true, &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
    struct csv_table *csv = NULL;
    assert_int_equal(csv_load(&csv, "pre.csv", &diag), STATUS_OK);
    assert_int_equal(csv_rows(csv), 2);
    assert_near(strtod(csv_cell(csv, 0, csv_column(csv, "tokens_per_s_per_gpu")), NULL) /
                    table.rows.at[0].predicted.tokens_per_s_per_gpu,
        1, 1e-9);
    assert_string_equal(csv_cell(csv, 0, csv_column(csv, "oom")), "no");
    assert_string_equal(csv_cell(csv, 1, csv_column(csv, "oom")), "yes");
    assert_string_equal(csv_cell(csv, 1, csv_column(csv, "tokens_per_s_per_gpu")), "");
    assert_non_null(
        strstr(csv_cell(csv, 0, csv_column(csv, "predicted_by")), " with uncommitted changes"));
    csv_release(csv);
    assert_int_equal(validate_predict(&table, "pre.csv", true, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "predictions are not made twice"));
    validate_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_has_tables),
        cmocka_unit_test(what_was_predicted_first_is_read),
        cmocka_unit_test(predictions_are_written_once),
        cmocka_unit_test(a_run_is_simulated_once),
        cmocka_unit_test(a_curve_goes_through_files),
        cmocka_unit_test(what_is_kept_reads_back),
        cmocka_unit_test(what_changed_makes_rows_stale),
        cmocka_unit_test(a_row_says_what_made_it),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
