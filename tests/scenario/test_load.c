#include "workspace.h"

#include "config/config.h"

/* "file:line:column" of the value at a path, as the last origin that names it says. */
static const char *origin(const struct scenario_point *point, const char *path)
{
    static char text[256];
    snprintf(text, sizeof text, "default");
    for (int i = 0; i < point->origins.list.n; i++) {
        const struct config_origin *o = &point->origins.list.at[i];
        if (strcmp(o->path, path) == 0)
            snprintf(text, sizeof text, "%s:%d:%d", o->at.file, o->at.line, o->at.column);
    }
    return text;
}

static void every_value_knows_its_origin(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"train.seq_len", "256"}};
    struct loaded *loaded = load_text(BASE "sweep:\n  - train.micro_batch: [1, 3]\n", set, 1);
    assert_string_equal(loaded->diag.text, "");
    const struct scenario_point *point = &loaded->set.points[1];
    assert_string_equal(origin(point, "strategy"), "x.yaml:5:11");
    assert_string_equal(origin(point, "cluster.gpus"), "x.yaml:3:41");
    assert_string_equal(origin(point, "train.micro_batch"), "x.yaml:8:28");
    assert_string_equal(origin(point, "train.seq_len"), "--set train.seq_len:1:1");
    assert_string_equal(origin(point, "train.optimizer"), "default");
    assert_int_equal(point->options.strategy.train.seq_len, 256);
    assert_string_equal(point->gpus_at.file, "x.yaml");
    assert_int_equal(point->gpus_at.line, 3);
    unload(loaded);
}

/* As LLM Foundry does it; what is reported is what is simulated. */
static void a_micro_batch_is_no_larger_than_the_batch(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"train.device_batch", "[1, 5]"}};
    struct loaded *loaded = load_text(BASE, set, 1);
    assert_string_equal(loaded->diag.text,
        "--set train.device_batch:1:2: warning: train.micro_batch of 2 is more "
        "than train.device_batch, and is taken to be 1, too\n");
    assert_int_equal(loaded->diag.n_errors, 0);
    assert_int_equal(loaded->set.points[0].options.strategy.train.micro_batch, 1);
    assert_int_equal(loaded->set.points[1].options.strategy.train.micro_batch, 2);
    unload(loaded);
}

static void noise_is_the_clusters_unless_set(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE "noise: {kernel_jitter: 0}\n", NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    const struct scenario_point *point = &loaded->set.points[0];
    assert_true(point->options.exec.noise.kernel_jitter ==
                0); /* set to nothing, though the cluster has 1 % */
    assert_true(point->options.exec.noise.host_jitter == 0.05); /* the cluster's */
    assert_true(point->options.exec.noise.network_jitter == 0); /* neither says */
    assert_string_equal(origin(point, "noise.host_jitter"), "cluster.yaml:0:0");
    unload(loaded);
}

static void points_share_their_inputs(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE "sweep:\n  - cluster.gpus: [8, 16]\n", NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    assert_ptr_equal(loaded->set.points[0].model.tensors, loaded->set.points[1].model.tensors);
    assert_ptr_equal(loaded->set.points[0].hw.gpu.name, loaded->set.points[1].hw.gpu.name);
    unload(loaded);
}

#define COLUMNS                                                                                    \
    "id,figure,model,strategy,gpus,micro_batch,tflops_per_gpu,peak_allocated_bytes,peak_reserved_" \
    "bytes,oom,kind,"                                                                              \
    "source\n"

static void published_rows_are_found_by_what_they_state(void **state)
{
    (void)state;
    write_text("figures.csv", COLUMNS "a,1,,DDP,8,,10.5,1e9,,n,table,paper\n"
                                      "b,1,,FULL_SHARD,,,,,,y,text,paper\n"
                                      "c,2,,DDP,16,,99,,,n,table,paper\n"
                                      "d,1,other,DDP,16,,99,,,n,table,paper\n");
    struct loaded *loaded =
        load_text(BASE "published: {file: figures.csv, figure: 1}\n"
                       "sweep:\n  - strategy: [ddp, fsdp]\n  - cluster.gpus: [8, 16]\n",
            NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    const struct scenario_point *points = loaded->set.points;
    assert_true(points[0].published.found);
    assert_string_equal(points[0].published.id, "a");
    assert_string_equal(points[0].published.source, "paper (table)");
    assert_true(points[0].published.tflops_per_gpu == 10.5);
    assert_true(points[0].published.peak_allocated_bytes == 1e9);
    assert_true(points[0].published.peak_reserved_bytes == 0);
    assert_false(points[0].published.oom);
    assert_false(points[1].published.found); /* rows of 16 GPUs: another figure, another model */
    assert_string_equal(points[2].published.id, "b");
    assert_true(points[2].published.oom);
    assert_string_equal(points[3].published.id, "b"); /* a blank cell matches all */
    unload(loaded);
}

static void assumptions_are_kept_as_text(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE "assumptions:\n  - one thing\n  - another\n", NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    assert_string_equal(loaded->set.points[0].options.assumptions, "one thing\nanother");
    char *json = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&json, &n);
    config_write_json(
        out, &scenario_table, &loaded->set.points[0].options, &loaded->set.points[0].origins);
    fclose(out);
    assert_non_null(strstr(json, "\"micro_batch\": {\"value\": 2, \"origin\": \"x.yaml:4:22\"}"));
    assert_non_null(strstr(json, "\"one thing\\nanother\""));
    assert_null(strstr(json, "\"sweep\""));
    free(json);
    unload(loaded);
}

/* The scenarios of the project load, and each published figure belongs to a point. */
static void shipped_scenarios_load(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int points, published;
    } files[] = {
        {FLOPCAST_SOURCE_DIR "/scenarios/t5_scaling.yaml", 84, 84},
        {FLOPCAST_SOURCE_DIR "/scenarios/t5_model_scale.yaml", 12, 12},
        {FLOPCAST_SOURCE_DIR "/scenarios/gpt2_ddp_v100.yaml", 6, 0},
        {FLOPCAST_SOURCE_DIR "/scenarios/resnet50_ddp_v100.yaml", 6, 0},
        {FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", 14, 0},
        {FLOPCAST_SOURCE_DIR "/scenarios/sharding_strategies_7b.yaml", 6, 0},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct loaded *loaded = xcalloc(1, sizeof *loaded);
        scenario_load(&loaded->set, files[i].path, NULL, 0, &loaded->arena, &loaded->diag);
        assert_string_equal(loaded->diag.text, "");
        assert_int_equal(loaded->set.n_points, files[i].points);
        int found = 0;
        for (int j = 0; j < loaded->set.n_points; j++)
            found += loaded->set.points[j].published.found;
        assert_int_equal(found, files[i].published);
        unload(loaded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_knows_its_origin),
        cmocka_unit_test(a_micro_batch_is_no_larger_than_the_batch),
        cmocka_unit_test(noise_is_the_clusters_unless_set),
        cmocka_unit_test(points_share_their_inputs),
        cmocka_unit_test(published_rows_are_found_by_what_they_state),
        cmocka_unit_test(assumptions_are_kept_as_text),
        cmocka_unit_test(shipped_scenarios_load),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
