/* Attention that nobody states: flash where PyTorch takes it by itself. What is published says
 * which it had. */
#include "workspace.h"

#include "config/csv.h"
#include "scenario/stack.h"

#include <glob.h>

#define JOB(topology, gpus, train)                                                                 \
    "name: x\nmodel: llama3.1-8b\ncluster: {topology: " topology ", gpus: " gpus                   \
    "}\nstrategy: ddp\n"                                                                           \
    "train: {micro_batch: 1, seq_len: 128" train "}\n"
static int attention_of(const char *text, const char *key, const char *value)
{
    struct scenario_override set = {key, value};
    struct loaded *loaded = load_text(text, &set, 1);
    assert_string_equal(loaded->diag.text, "");
    int attention = loaded->set.points[0].options.strategy.train.attention;
    unload(loaded);
    return attention;
}

static void the_gpu_decides(void **state)
{
    (void)state;
    static const char job[] = JOB("h100", "1", ""),
                      fp16[] = JOB("h100", "1", ", precision: fp16_mixed");
    static const char *const flash[] = {
        "a100", "h100", "l40s-2x200g", "b200-8x400g", "rtx-3090-1x100g"};
    static const char *const naive[] = {"dgx-1v-ib", "aws-g4dn-efa"}; /* Volta, Turing */
    for (size_t i = 0; i < sizeof flash / sizeof *flash; i++)
        assert_int_equal(attention_of(job, "cluster.topology", flash[i]), ATTENTION_FLASH);
    for (size_t i = 0; i < sizeof naive / sizeof *naive; i++)
        assert_int_equal(attention_of(fp16, "cluster.topology", naive[i]), ATTENTION_NAIVE);
    assert_int_equal(attention_of(fp16, "cluster.gpus", "8"), ATTENTION_FLASH);
    assert_int_equal(attention_of(job, "train.precision", "fp32"), ATTENTION_NAIVE);
    assert_int_equal(attention_of(job, "train.precision", "tf32"), ATTENTION_NAIVE);
    assert_int_equal(attention_of(job, "train.precision", "fp8_mixed"), ATTENTION_FLASH);
    assert_int_equal(attention_of(job, "model", "t5-11b"), ATTENTION_NAIVE); /* a position bias */
}

static void what_is_said_holds(void **state)
{
    (void)state;
    assert_int_equal(
        attention_of(JOB("h100", "8", ""), "train.attention", "naive"), ATTENTION_NAIVE);
    assert_int_equal(
        attention_of(JOB("h100", "8", ""), "stack", "megatron-deepspeed-2022"), ATTENTION_NAIVE);
}

/* Loads a job with a setting; returns its attention. says: part of what is said of it, at this
 * place. */
static int attention_beside(
    const char *job, const char *key, const char *value, const char *place, const char *says)
{
    struct scenario_override set = {key, value};
    struct loaded *loaded = load_text(job, &set, 1);
    int attention =
        loaded->set.n_points ? loaded->set.points[0].options.strategy.train.attention : -1;
    if (!strstr(loaded->diag.text, place) || !strstr(loaded->diag.text, says))
        fail_msg("'%s' and '%s' are not in: %s", place, says, loaded->diag.text);
    assert_int_equal(loaded->diag.n_errors > 0, strstr(place, "error") != NULL);
    unload(loaded);
    return attention;
}

/* A stack profile is of newer GPUs: what an older one lacks falls back. What the user says is
 * refused. */
static void what_a_gpu_lacks_falls_back_or_is_refused(void **state)
{
    (void)state;
    static const char volta[] = JOB("dgx-1v-ib", "8", ", precision: fp16_mixed"),
                      ampere[] = JOB("a100", "8", "");
    static const char *const stacks[] = {"megatron-core", "nanotron"};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(attention_beside(volta, "stack", stacks[i], ".yaml:",
                             "warning: flash attention needs Ampere or newer, and GPU "
                             "'V100-SXM2-32GB' is Volta; the job has naive"),
            ATTENTION_NAIVE);
    assert_int_equal(attention_of(ampere, "stack", "megatron-core"), ATTENTION_FLASH);
    attention_beside(volta, "train.attention", "flash", "--set train.attention:1:1: error: ",
        "flash attention needs Ampere or newer, and GPU 'V100-SXM2-32GB' is Volta; take naive");
    attention_beside(ampere, "train.fp8_recipe", "mxfp8", "--set train.fp8_recipe:1:1: error: ",
        "mxfp8 needs Blackwell or newer, and GPU 'A100-SXM4-80GB' is Ampere; take delayed");
    attention_beside(volta, "train.moe_token_dispatcher_type", "flex",
        "--set train.moe_token_dispatcher_type:1:1: error: ",
        "DeepEP needs Ampere or newer, and GPU 'V100-SXM2-32GB' is Volta; take alltoall");
    attention_beside(volta, "train.precision", "bf16_mixed", "--set train.precision:1:1: error: ",
        "bf16_mixed multiplies in bf16, which GPU 'V100-SXM2-32GB' cannot; it can");
}

static void flash_is_for_sixteen_bits(void **state)
{
    (void)state;
    static const char stack[] = JOB("a100", "8", ", precision: fp32") "stack: megatron-core\n";
    assert_int_equal(attention_beside(stack, "run.steps", "1",
                         "megatron-core.yaml:", "no kernels in fp32; the job has naive"),
        ATTENTION_NAIVE);
    static const char own[] = JOB("a100", "8", ", precision: tf32");
    assert_int_equal(
        attention_beside(own, "train.attention", "flash", "--set train.attention:1:1: warning: ",
            "no kernels in tf32; PyTorch's memory-efficient kernel"),
        ATTENTION_FLASH);
}

static bool stack_says(const char *name)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct stack stack;
    const char *slash = strrchr(name, '/');
    char path[300];
    snprintf(path, sizeof path, FLOPCAST_SOURCE_DIR "/scenarios/stacks/%s%s",
        slash ? slash + 1 : name, slash ? "" : ".yaml");
    assert_int_equal(stack_load(&stack, path, &arena, &diag), STATUS_OK);
    bool says = false;
    for (int i = 0; i < stack.given.list.n; i++)
        says |= strcmp(stack.given.list.at[i].path, "settings.train.attention") == 0;
    arena_release(&arena);
    return says;
}

static int rows_that_leave_it_out(const char *path)
{
    struct diag diag = DIAG_INIT;
    struct csv_table *table = NULL;
    assert_int_equal(csv_load(&table, path, &diag), STATUS_OK);
    int topology = csv_column(table, "topology"), out = 0; /* tables of runs name one */
    for (int r = 0; topology >= 0 && csv_column(table, "model") >= 0 && r < csv_rows(table); r++) {
        const char *stack = csv_cell(table, r, csv_column(table, "stack"));
        const char *model = csv_cell(table, r, csv_column(table, "model"));
        bool has_none = strstr(model, "/resn") != NULL; /* ResNet, ResNeXt */
        if (has_none || *csv_cell(table, r, csv_column(table, "not_simulated")) ||
            *csv_cell(table, r, csv_column(table, "attention")) || (*stack && stack_says(stack)))
            continue;
        fprintf(stderr, "%s:%d: attention is left out\n", path, csv_pos(table, r).line);
        out++;
    }
    csv_release(table);
    return out;
}

/* So that another default moves none of them. */
static void published_runs_state_theirs(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob(FLOPCAST_SOURCE_DIR "/results/measured/*.csv", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        assert_int_equal(rows_that_leave_it_out(found.gl_pathv[i]), 0);
    globfree(&found);
}

static void scenarios_state_theirs(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob(FLOPCAST_SOURCE_DIR "/scenarios/*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct scenario_set set;
        assert_int_equal(scenario_load(&set, found.gl_pathv[i], NULL, 0, &arena, &diag), STATUS_OK);
        for (int p = 0; p < set.n_points; p++) {
            bool said = set.points[p].model.shape.n_heads == 0;
            for (int o = 0; o < set.points[p].origins.list.n; o++)
                said |= strcmp(set.points[p].origins.list.at[o].path, "train.attention") == 0;
            if (!said)
                fail_msg("%s leaves train.attention out", found.gl_pathv[i]);
        }
        arena_release(&arena);
    }
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gpu_decides),
        cmocka_unit_test(what_is_said_holds),
        cmocka_unit_test(what_a_gpu_lacks_falls_back_or_is_refused),
        cmocka_unit_test(flash_is_for_sixteen_bits),
        cmocka_unit_test(published_runs_state_theirs),
        cmocka_unit_test(scenarios_state_theirs),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
