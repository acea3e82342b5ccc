#include "workspace.h"

#include "base/vec.h"
#include "scenario/file.h"

#include <glob.h>

/* Points as "batch x gpus", in order. */
static void assert_points(const struct loaded *loaded, const int (*expected)[2], int n)
{
    assert_string_equal(loaded->diag.text, "");
    assert_int_equal(loaded->set.n_points, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(loaded->set.points[i].options.strategy.train.micro_batch, expected[i][0]);
        assert_int_equal(loaded->set.points[i].options.cluster.gpus, expected[i][1]);
    }
}

#define SWEEP                                                                                      \
    "sweep:\n"                                                                                     \
    "  - train.micro_batch: [1, 3]\n"                                                              \
    "  - cluster.gpus: [8, 16, 32]\n"

static void first_axis_varies_slowest(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE SWEEP, NULL, 0);
    const int expected[][2] = {{1, 8}, {1, 16}, {1, 32}, {3, 8}, {3, 16}, {3, 32}};
    assert_points(loaded, expected, 6);
    unload(loaded);
}

static void keys_of_an_axis_go_together(void **state)
{
    (void)state;
    struct loaded *loaded =
        load_text(BASE "sweep:\n"
                       "  - {train.micro_batch: [1, 3, 5], cluster.gpus: [32, 16, 8]}\n"
                       "  - strategy: [ddp, fsdp]\n",
            NULL, 0);
    const int expected[][2] = {{1, 32}, {1, 32}, {3, 16}, {3, 16}, {5, 8}, {5, 8}};
    assert_points(loaded, expected, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(
            loaded->set.points[i].options.strategy.kind, i % 2 ? STRATEGY_FSDP : STRATEGY_DDP);
    unload(loaded);
}

static void no_sweep_is_one_point(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE, NULL, 0);
    const int expected[][2] = {{2, 8}};
    assert_points(loaded, expected, 1);
    unload(loaded);
}

static void an_override_replaces_the_axis(void **state)
{
    (void)state;
    const struct scenario_override one[] = {{"cluster.gpus", "16"}};
    struct loaded *loaded = load_text(BASE SWEEP, one, 1);
    const int fixed[][2] = {{1, 16}, {3, 16}};
    assert_points(loaded, fixed, 2);
    unload(loaded);

    const struct scenario_override list[] = {
        {"train.micro_batch", "[7, 6, 5]"}, {"cluster.gpus", "[8]"}};
    loaded = load_text(BASE SWEEP, list, 2);
    const int replaced[][2] = {
        {7, 8}, {6, 8}, {5, 8}}; /* the axis keeps its place, not its length */
    assert_points(loaded, replaced, 3);
    unload(loaded);
}

static void an_override_frees_the_keys_beside_it(void **state)
{
    (void)state;
    const struct scenario_override one[] = {{"train.micro_batch", "9"}};
    struct loaded *loaded =
        load_text(BASE "sweep:\n  - {train.micro_batch: [1, 3], cluster.gpus: [8, 16]}\n", one, 1);
    const int expected[][2] = {{9, 8}, {9, 16}};
    assert_points(loaded, expected, 2);
    unload(loaded);
}

/* Three points that differ by their GPUs alone are one where those are given. */
static void an_override_leaves_no_point_twice(void **state)
{
    (void)state;
    static const char sweep[] =
        BASE "sweep:\n  - {train.micro_batch: [2, 1, 1, 1], cluster.gpus: [8, 16, 32, 64]}\n";
    const struct scenario_override one[] = {{"cluster.gpus", "16"}};
    struct loaded *loaded = load_text(sweep, one, 1);
    const int expected[][2] = {{2, 16}, {1, 16}};
    assert_points(loaded, expected, 2);
    unload(loaded);

    const struct scenario_override list[] = {
        {"cluster.gpus", "16"}, {"train.micro_batch", "[4, 2, 3]"}};
    loaded = load_text(sweep, list, 2);
    const int replaced[][2] = {{4, 16}, {2, 16}, {3, 16}};
    assert_points(loaded, replaced, 3);
    unload(loaded);
}

static void an_override_list_makes_a_new_last_axis(void **state)
{
    (void)state;
    const struct scenario_override list[] = {{"train.micro_batch", "[4, 2]"}};
    struct loaded *loaded = load_text(BASE "sweep:\n  - cluster.gpus: [8, 16]\n", list, 1);
    const int expected[][2] = {{4, 8}, {2, 8}, {4, 16}, {2, 16}};
    assert_points(loaded, expected, 4);
    unload(loaded);
}

static void write_axis(FILE *out, const char *key, int length)
{
    fprintf(out, "  - %s: [", key);
    for (int i = 1; i <= length; i++)
        fprintf(out, "%s%d", i > 1 ? ", " : "", i);
    fputs("]\n", out);
}

/* A sweep of SCENARIO_MAX_POINTS points is one, a sweep of more is refused. 100,000 is 250 x 400.
 */
static void a_sweep_ends_at_its_limit(void **state)
{
    (void)state;
    enum { FIRST = 250 };
    for (int more = 0; more < 2; more++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct sweep sweep = {0};
        struct config_doc *doc = NULL;
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        fputs("sweep:\n", out);
        write_axis(out, "train.micro_batch", FIRST);
        write_axis(out, "train.grad_accum", SCENARIO_MAX_POINTS / FIRST + more);
        fclose(out);
        assert_int_equal(config_parse(&doc, "x.yaml", text, size, &diag), STATUS_OK);
        sweep_read(&sweep, config_item(config_root(doc), 0), &arena, &diag);
        sweep_check(&sweep, &arena, &diag);
        assert_int_equal(sweep_points(&sweep), SCENARIO_MAX_POINTS + more * FIRST);
        assert_int_equal(diag.n_errors, more);
        assert_true(
            !more || strstr(diag.text, "the sweep has more than 100000 points; shorten its lists"));
        vec_free(&sweep.keys);
        config_free(doc);
        arena_release(&arena);
        free(text);
    }
}

/* The axis that lost a key has more values than another one. */
static void an_override_beside_a_shorter_axis(void **state)
{
    (void)state;
    const struct scenario_override one[] = {{"train.micro_batch", "1"}};
    struct loaded *loaded =
        load_text(BASE "sweep:\n"
                       "  - {train.micro_batch: [1, 1, 3, 3], cluster.gpus: [8, 16, 16, 32]}\n"
                       "  - strategy: [ddp, fsdp]\n",
            one, 1);
    const int expected[][2] = {{1, 8}, {1, 8}, {1, 16}, {1, 16}, {1, 32}, {1, 32}};
    assert_points(loaded, expected, 6);
    unload(loaded);
}

/* Whatever is set of any scenario, it is loaded or refused in words. */
static void any_scenario_can_be_set(void **state)
{
    (void)state;
    static const struct scenario_override each[] = {{"cluster.gpus", "16"},
        {"cluster.gpus", "[16, 8]"}, {"train.micro_batch", "1"}, {"train.precision", "bf16_mixed"},
        {"train.activation_checkpointing", "full"}, {"cluster.nccl_protocols", "all"},
        {"strategy", "fsdp"}, {"parallelism.tensor", "2"}, {"model", "gpt2-xl"}};
    glob_t found;
    assert_int_equal(glob(FLOPCAST_SOURCE_DIR "/scenarios/*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
            struct arena arena = ARENA_INIT;
            struct diag diag = DIAG_INIT;
            struct scenario_set set;
            enum status status = scenario_load(&set, found.gl_pathv[i], &each[k], 1, &arena, &diag);
            assert_true(status == STATUS_OK ? set.n_points > 0 : *diag.text != '\0');
            arena_release(&arena);
        }
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_axis_varies_slowest),
        cmocka_unit_test(keys_of_an_axis_go_together),
        cmocka_unit_test(a_sweep_ends_at_its_limit),
        cmocka_unit_test(no_sweep_is_one_point),
        cmocka_unit_test(an_override_replaces_the_axis),
        cmocka_unit_test(an_override_frees_the_keys_beside_it),
        cmocka_unit_test(an_override_leaves_no_point_twice),
        cmocka_unit_test(an_override_beside_a_shorter_axis),
        cmocka_unit_test(an_override_list_makes_a_new_last_axis),
        cmocka_unit_test(any_scenario_can_be_set),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
