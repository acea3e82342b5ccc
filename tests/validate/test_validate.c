/* Tables of runs: rows to scenarios, errors and ratios by hand, mistakes reported where they stand.
 */
#include "../scenario/workspace.h"

#include "../near.h"
#include "validate/validate.h"

#define HEAD                                                                                       \
    "id,source,model,topology,gpus,micro_batch,grad_accum,tokens_per_s_per_gpu,tflops_per_gpu,"    \
    "oom,used_in_fit,not_"                                                                         \
    "simulated\n"
#define BASE_TEXT                                                                                  \
    "name: base\ncluster: {gpus: 8}\ntrain: {micro_batch: 1, seq_len: 128, precision: "            \
    "fp16_mixed}\nstrategy: ddp\n"                                                                 \
    "run: {steps: 1, warmup_steps: 0}\nnoise: {gpu_speed_spread: 0, kernel_jitter: 0, "            \
    "host_jitter: 0}\n"

struct loaded_table {
    struct validate_table table;
    struct diag diag;
    bool ok;
};

static struct loaded_table *load(const char *csv)
{
    struct loaded_table *loaded = xcalloc(1, sizeof *loaded);
    write_text("base.yaml", BASE_TEXT);
    write_text("runs.csv", csv);
    loaded->ok = validate_load(&loaded->table, "runs.csv", "base.yaml", NULL, &loaded->diag);
    return loaded;
}

static void drop(struct loaded_table *loaded)
{
    validate_release(&loaded->table);
    free(loaded);
}

static void errors_and_ratios(void **state)
{
    (void)state;
    /* Two runs of a curve, measured at 1000 and 900 tokens/s: ratio 0.9. The third differs in the
     * batch: another curve. */
    struct loaded_table *loaded = load(HEAD "a,s,tiny.json,cluster.yaml,8,2,1,1000,,no,fit.yaml,\n"
                                            "b,s,tiny.json,cluster.yaml,16,2,1,900,,no,,\n"
                                            "c,s,tiny.json,cluster.yaml,16,4,1,,0.5,no,,\n");
    assert_string_equal(loaded->diag.text, "");
    assert_true(loaded->ok);
    validate_run(&loaded->table, NULL, NULL, &loaded->diag);
    const struct validate_row *rows = loaded->table.rows.at;
    assert_int_equal(loaded->table.rows.n, 3);
    for (int i = 0; i < 2; i++)
        assert_near(
            rows[i].error, rows[i].predicted.tokens_per_s_per_gpu / (i ? 900 : 1000) - 1, 1e-12);
    assert_int_equal(rows[0].curve, rows[1].curve);
    assert_int_not_equal(rows[2].curve, rows[1].curve);
    assert_near(rows[1].measured_ratio, 0.9, 1e-12);
    assert_near(rows[1].predicted_ratio,
        rows[1].predicted.tokens_per_s_per_gpu / rows[0].predicted.tokens_per_s_per_gpu, 1e-12);
    /* TFLOPS only: the error is theirs, and tokens are worked out from them */
    assert_near(rows[2].error, rows[2].predicted.tflops_per_gpu / 0.5 - 1, 1e-12);
    assert_near(rows[2].predicted.tokens_per_s_per_gpu / rows[2].measured.tokens_per_s_per_gpu - 1,
        rows[2].error, 1e-12);
    /* a row is what a scenario with its settings is */
    const struct scenario_override same[] = {{"model", "tiny.json"},
        {"cluster.topology", "cluster.yaml"}, {"cluster.gpus", "16"}, {"train.micro_batch", "4"}};
    struct loaded *scenario = load_text(BASE_TEXT, same, 4);
    struct scenario_result result;
    scenario_simulate(&result, &scenario->set.points[0], &scenario->arena, &scenario->diag);
    assert_near(rows[2].predicted.step_time_s, result.exec.step_time_s, 0);
    unload(scenario);
    drop(loaded);
}

/* The model alone on one GPU is the smallest row of a DDP curve that has none of DDP there (batch
 * 4), else it is in no curve's way (batch 2: a). */
static void a_model_alone_begins_a_curve(void **state)
{
    (void)state;
    struct loaded_table *loaded =
        load("id,source,model,topology,gpus,strategy,micro_batch,tokens_per_s_per_gpu\n"
             "a,s,tiny.json,cluster.yaml,1,single_device,2,1000\n"
             "b,s,tiny.json,cluster.yaml,1,ddp,2,900\n"
             "c,s,tiny.json,cluster.yaml,8,ddp,2,810\n"
             "d,s,tiny.json,cluster.yaml,1,single_device,4,1000\n"
             "e,s,tiny.json,cluster.yaml,8,ddp,4,800\n");
    assert_string_equal(loaded->diag.text, "");
    validate_run(&loaded->table, NULL, NULL, &loaded->diag);
    const struct validate_row *rows = loaded->table.rows.at;
    assert_false(rows[0].has_ratio);
    assert_true(rows[1].has_ratio && rows[3].has_ratio);
    assert_int_equal(rows[2].smallest, 1);
    assert_near(rows[2].measured_ratio, 0.9, 1e-12);
    assert_int_equal(rows[4].smallest, 3);
    assert_near(rows[4].measured_ratio, 0.8, 1e-12);
    drop(loaded);
}

/* A row says that no fit rests on it by nothing, or in words. */
static void no_is_no_fit(void **state)
{
    (void)state;
    struct loaded_table *loaded =
        load(HEAD "a,s,tiny.json,cluster.yaml,8,2,1,1000,,no,,\n"
                  "b,s,tiny.json,cluster.yaml,8,2,1,1000,,no,no,\n"
                  "c,s,tiny.json,cluster.yaml,8,2,1,1000,,no,False,\n"
                  "d,s,tiny.json,cluster.yaml,8,2,1,1000,,no,0,\n"
                  "e,s,tiny.json,cluster.yaml,8,2,1,1000,,no,none.yaml,\n");
    assert_string_equal(loaded->diag.text, "");
    for (int i = 0; i < 4; i++)
        assert_string_equal(loaded->table.rows.at[i].used_in_fit, "");
    assert_string_equal(loaded->table.rows.at[4].used_in_fit, "none.yaml");
    drop(loaded);
}

/* A word is no file, but taken for one the row would count as fitted. */
static void a_fit_is_a_file(void **state)
{
    (void)state;
    struct loaded_table *loaded =
        load(HEAD "a,s,tiny.json,cluster.yaml,8,2,1,1000,,no,yes,\n"
                  "b,s,tiny.json,cluster.yaml,8,2,1,1000,,no,fit.yaml: gemm_sustained,\n"
                  "c,s,tiny.json,cluster.yaml,8,2,1,1000,,no,maybe,\n");
    assert_false(loaded->ok);
    assert_non_null(
        strstr(loaded->diag.text, "runs.csv:4:1: error: used_in_fit is 'maybe'; write the file"));
    assert_int_equal(loaded->diag.n_errors, 1);
    drop(loaded);
}

/* The tokens of a job of 8 GPUs, milliseconds, GiB: reported where they stand, with the unit of the
 * column. */
static void figures_in_another_unit_are_reported(void **state)
{
    (void)state;
    static const char head[] = "id,model,topology,gpus,micro_batch,tokens_per_s_per_gpu,step_time_"
                               "s,peak_allocated_bytes\n";
    char text[512];
    snprintf(text, sizeof text, "%sa,tiny.json,cluster.yaml,8,2,1,,\n", head);
    struct loaded_table *right = load(text);
    validate_run(&right->table, NULL, NULL, &right->diag);
    struct validate_figures found = right->table.rows.at[0].predicted;
    double mfu = right->table.rows.at[0].mfu;
    drop(right);

    snprintf(text, sizeof text,
        "%sa,tiny.json,cluster.yaml,8,2,%.9g,%.9g,%.9g\n" /* as predicted */
        "b,tiny.json,cluster.yaml,8,2,%.9g,,\n"           /* 2.5 times the peak */
        "c,tiny.json,cluster.yaml,8,2,,%.9g,%.9g\n",
        head, found.tokens_per_s_per_gpu, found.step_time_s, found.peak_allocated_bytes,
        found.tokens_per_s_per_gpu * 2.5 / mfu, 1000 * found.step_time_s,
        found.peak_allocated_bytes / 0x1p30);
    struct loaded_table *loaded = load(text);
    validate_run(&loaded->table, NULL, NULL, &loaded->diag);
    validate_check_units(&loaded->table, &loaded->diag);
    const char *reported = loaded->diag.text;
    assert_null(strstr(reported, "runs.csv:2:"));
    assert_non_null(strstr(reported, "runs.csv:3:1: warning: tokens_per_s_per_gpu is "));
    assert_non_null(strstr(
        reported, "more than the GPU can compute; the column is in tokens a second of one GPU"));
    assert_non_null(strstr(reported, ", 1000 times what is predicted; the column is in seconds"));
    assert_non_null(strstr(reported, "runs.csv:4:1: warning: peak_allocated_bytes is "));
    assert_int_equal(loaded->diag.n_errors, 0);
    drop(loaded);
}

/* A user's table may say more than is asked. */
static void a_column_of_ones_own_is_warned_of(void **state)
{
    (void)state;
    struct loaded_table *loaded =
        load("id,model,topology,gpus,rack_in_berlin\na,tiny.json,cluster.yaml,8,r7\n");
    assert_true(loaded->ok);
    assert_int_equal(loaded->diag.n_errors, 0);
    assert_non_null(
        strstr(loaded->diag.text, "runs.csv: warning: column 'rack_in_berlin' is not read; "));
    drop(loaded);
}

static void mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *csv, *expected;
    } tables[] = {
        {"id,model,topology,gpu\na,tiny.json,cluster.yaml,8\n",
            "runs.csv: error: column 'gpu' means nothing here; did you mean 'gpus'?\n"
            "runs.csv: error: no column 'gpus', which every table of runs has\n"},
        {HEAD "a,s,tiny.json,cluster.yaml,8,2,1,fast,,no,,\n", "runs.csv:2:1: error:"},
        {HEAD "a,s,tiny.json,cluster.yaml,8,2,1,-5,,no,,\n",
            "runs.csv:2:1: error: tokens_per_s_per_gpu is -5; a measurement is above 0, or "
            "empty\n"},
        {HEAD "a,s,tiny.json,cluster.yaml,8,2,1,0,,no,,\n",
            "runs.csv:2:1: error: tokens_per_s_per_gpu is 0; a measurement is above 0, or empty\n"},
        {HEAD, "runs.csv: error: no run below the names of the columns; write one a line\n"},
        {HEAD "a,s,tiny.json,cluster.yaml,8,2,1,5,,no,,\n,s,tiny.json,cluster.yaml,8,2,1,5,,no,,\n"
              "a,t,tiny.json,cluster.yaml,8,2,1,5,,no,,\n",
            "runs.csv:3:1: error: no id; give each row its own\n"
            "runs.csv:4:1: error: id 'a' is that of line 2, too; give each row its own\n"},
        {"id,model,topology,gpus,micro_batch,train.micro_batch\na,tiny.json,cluster.yaml,8,1,2\n",
            "runs.csv: error: columns 'micro_batch' and 'train.micro_batch' set the same option; "
            "leave one of them out\n"},
        {HEAD "a,s,tiny.json,cluster.yaml,8,2,1,5,,perhaps,,\n",
            "runs.csv:2:1: error: oom is 'perhaps'; write yes, no, or nothing\n"},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct loaded_table *loaded = load(tables[i].csv);
        assert_false(loaded->ok);
        if (strncmp(loaded->diag.text, tables[i].expected, strlen(tables[i].expected)) != 0)
            fail_msg("reported: %s", loaded->diag.text);
        drop(loaded);
    }
}

/* A row that makes no scenario is reported with file, line and column, and the others run. */
static void a_row_that_makes_no_scenario_is_named(void **state)
{
    (void)state;
    struct loaded_table *loaded = load(HEAD "a,s,tiny.json,cluster.yaml,12,2,1,5,,no,,\n"
                                            "b,s,tiny.json,cluster.yaml,8,2,1,5,,no,,\n");
    assert_true(loaded->ok);
    const char expected[] = "runs.csv:2:gpus:1:1: error: 12 GPUs leave a node";
    assert_memory_equal(loaded->diag.text, expected, strlen(expected));
    assert_int_equal(loaded->table.rows.at[0].status, VALIDATE_NOT_SIMULATED);
    assert_memory_equal(loaded->table.rows.at[0].reason, "12 GPUs leave a node", 20);
    validate_run(&loaded->table, NULL, NULL, &loaded->diag);
    assert_int_equal(loaded->table.rows.at[1].status, VALIDATE_OK);
    drop(loaded);
}

/* Also where the row does not suit what the base scenario says, and where a file is not there. */
static void a_row_is_named_for_the_base(void **state)
{
    (void)state;
    struct loaded_table *loaded = load("id,model,topology,gpus,micro_batch,seq_len,stack\n"
                                       "a,tiny.json,cluster.yaml,8,1,2048,\n"
                                       "b,tiny.json,cluster.yaml,-8,1,128,\n"
                                       "c,tiny.json,none.yaml,8,1,128,\n"
                                       "d,tiny.json,cluster.yaml,8,1,128,torchtitn\n");
    static const char expected[] =
        "runs.csv:2:seq_len:1:1: error: 2048 tokens, but model 'tiny.json' has 1024 learned "
        "positions; use at most that many or give max_positions\n"
        "runs.csv:3:gpus:1:1: error: '-8' is too small; the least allowed is 1\n"
        "runs.csv:4:topology:1:1: error: cannot open 'none.yaml': No such file or directory; paths "
        "are relative to the table\n"
        "runs.csv:5:stack:1:1: error: cannot open 'torchtitn': No such file or directory; paths "
        "are relative to the table; did you mean 'torchtitan'?\n";
    assert_string_equal(loaded->diag.text, expected);
    drop(loaded);
    write_text(
        "base.yaml", "name: base\ntrain: {seq_len: 128, precision: bf16_mixed}\nstrategy: ddp\n");
    write_text("runs.csv", "id,model,topology,gpus,micro_batch\na,tiny.json,cluster.yaml,8,1\n");
    struct validate_table table;
    struct diag diag = DIAG_INIT;
    assert_true(validate_load(&table, "runs.csv", "base.yaml", NULL, &diag));
    assert_string_equal(diag.text,
        "runs.csv:2:1: error: bf16_mixed multiplies in bf16, which GPU 'V100-SXM2-32GB' cannot; it "
        "can in fp32, fp16 (base.yaml:2:34)\n");
    validate_release(&table);
}

/* Three measurements of one run and another run: only the one that is more than 1.5 times slower
 * than another one of it stands apart, and one that says why keeps its reason. */
static void slow_reruns_stand_apart(void **state)
{
    (void)state;
    struct validate_table table = {0};
    const double measured[] = {300, 210, 190, 100, 100};
    for (int i = 0; i < 5; i++)
        vec_push(&table.rows, ((struct validate_row){.source = "",
                                  .apart = i == 4 ? "why" : "",
                                  .same = i == 3 ? 3 : 0,
                                  .curve = i,
                                  .gpus = 1,
                                  .status = VALIDATE_OK,
                                  .measured.tokens_per_s_per_gpu = measured[i],
                                  .predicted.tokens_per_s_per_gpu = 200}));
    validate_set_errors(&table);
    for (int i = 0; i < 5; i++)
        assert_int_equal(*table.rows.at[i].apart != '\0', i == 2 || i == 4);
    assert_string_equal(table.rows.at[4].apart, "why");
    assert_true(table.rows.at[4].has_ratio);
    table.rows.at[4].status = VALIDATE_NOT_SIMULATED;
    validate_set_errors(&table);
    assert_false(table.rows.at[4].has_error || table.rows.at[4].has_ratio);
    vec_free(&table.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_and_ratios),
        cmocka_unit_test(a_model_alone_begins_a_curve),
        cmocka_unit_test(no_is_no_fit),
        cmocka_unit_test(a_fit_is_a_file),
        cmocka_unit_test(figures_in_another_unit_are_reported),
        cmocka_unit_test(a_column_of_ones_own_is_warned_of),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(a_row_is_named_for_the_base),
        cmocka_unit_test(a_row_that_makes_no_scenario_is_named),
        cmocka_unit_test(slow_reruns_stand_apart),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
