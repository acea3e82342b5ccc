/* A stack profile takes the place of a GPU's numbers, for the architectures that it names. */
#include "workspace.h"

#include "../near.h"
#include "config/config.h"
#include "scenario/stack.h"

#include <glob.h>

static const char stack_yaml[] =
    "name: eager\n"
    "settings:\n"
    "  train: {cross_entropy: fused, optimizer_impl: fused}\n"
    "  fsdp: {version: 2}\n"
    "  ddp: {broadcast_buffers: false, bucket_cap: 50 MiB}\n"
    "  host: {step: 3 ms}\n"
    "  run: {expandable_segments: true}\n"
    "rates:\n"
    "  Volta:\n"
    "    pointwise_efficiency: {value: 0.5, kind: fitted, std_error: 0.1, source: test}\n"
    "    conv_efficiency: {value: 0.7, kind: assumed, source: test}\n"
    "    norm_row_time: {value: 5 ns, kind: assumed, source: test}\n"
    "    step_pause: {value: 20 ms, kind: fitted, std_error: 2 ms, source: test}\n"
    "  Hopper:\n"
    "    attention_efficiency: {value: 0.2, kind: assumed, source: test}\n";

/* Each generation's rates go to its GPUs and to no others. */
static void every_generation_has_its_own(void **state)
{
    (void)state;
    for (int a = 0; a < HW_ARCHS; a++) {
        char text[200];
        struct stack stack;
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        snprintf(text, sizeof text,
            "name: x\nrates: {%s: {conv_efficiency: {value: 0.25, kind: assumed, source: test}}}\n",
            hw_archs[a]);
        write_text("stack.yaml", text);
        assert_int_equal(stack_load(&stack, "stack.yaml", &arena, &diag), STATUS_OK);
        for (int b = 0; b < HW_ARCHS; b++) {
            struct scenario_point point = {
                .hw.gpu = {.arch = hw_archs[b],
                    .conv_efficiency = {.value = 0.5, .kind = QUANTITY_ASSUMED}}};
            stack_apply(&point, &stack);
            assert_near(point.hw.gpu.conv_efficiency.value, a == b ? 0.25 : 0.5, 0);
        }
        arena_release(&arena);
    }
}

static void a_stack_replaces_what_it_names(void **state)
{
    (void)state;
    write_text("stack.yaml", stack_yaml);
    struct loaded *without = load_text(BASE, NULL, 0);
    struct hw_gpu plain = without->set.points[0].hw.gpu;
    struct loaded *with = load_text(BASE "stack: stack.yaml\n", NULL, 0);
    assert_string_equal(with->diag.text, "");
    const struct hw_gpu *gpu = &with->set.points[0].hw.gpu; /* V100 */
    assert_near(gpu->pointwise_efficiency.value, 0.5, 0);
    assert_near(gpu->pointwise_efficiency.std_error, 0.1, 0);
    assert_near(gpu->conv_efficiency.value, 0.7, 0);
    assert_near(gpu->norm_row_time.value, 5e-9, 0);
    assert_near(gpu->step_pause.value, 0.02, 0);
    assert_false(quantity_is_set(plain.step_pause));
    assert_true(plain.conv_efficiency.value > 0.7); /* the GPU file's own */
    assert_near(gpu->attention_efficiency.value, plain.attention_efficiency.value,
        0); /* only Hopper's is given */
    assert_near(gpu->gemm_sustained.value, plain.gemm_sustained.value, 0);
    unload(without);
    unload(with);
}

static const struct config_origin *origin_of(const struct scenario_point *point, const char *path)
{
    const struct config_origin *found = NULL;
    for (int i = 0; i < point->origins.list.n; i++)
        if (strcmp(point->origins.list.at[i].path, path) == 0)
            found = &point->origins.list.at[i];
    return found;
}

/* Settings of every type, each the stack's where nobody else says it. */
static void settings_give_way_to_the_scenarios(void **state)
{
    (void)state;
    write_text("stack.yaml", stack_yaml);
    const struct scenario_override own[] = {{"train.cross_entropy", "eager"}};
    struct loaded *loaded =
        load_text(BASE "stack: stack.yaml\nddp: {broadcast_buffers: true}\n", own, 1);
    assert_int_equal(loaded->status, STATUS_OK);
    const struct scenario_point *point = &loaded->set.points[0];
    const struct strategy_options *strategy = &point->options.strategy;
    assert_int_equal(strategy->train.cross_entropy, CROSS_ENTROPY_EAGER);
    assert_int_equal(strategy->train.optimizer_impl, OPTIMIZER_FUSED);
    assert_int_equal(strategy->fsdp.version, 2);
    assert_true(strategy->ddp.broadcast_buffers);
    assert_true(strategy->ddp.zero_grad); /* the default */
    assert_near(strategy->ddp.bucket_cap_bytes, 50 * 0x1p20, 0);
    assert_near(strategy->host.step_s, 3e-3, 0);
    assert_true(point->options.exec.allocator.expandable_segments);
    assert_int_equal(origin_of(point, "train.cross_entropy")->kind, ORIGIN_COMMAND_LINE);
    assert_int_equal(origin_of(point, "ddp.broadcast_buffers")->kind, ORIGIN_FILE);
    assert_int_equal(origin_of(point, "fsdp.version")->kind, ORIGIN_STACK);
    assert_string_equal(origin_of(point, "fsdp.version")->at.file, "stack.yaml");
    assert_int_equal(origin_of(point, "fsdp.version")->at.line, 4);
    unload(loaded);
}

#define HOST_FITTED(value)                                                                         \
    "{value: " value ", kind: fitted, std_error: 2 us, source: test, fit: here}"

/* Costs of the host with their evidence: the point has the number, and who says so; what a scenario
 * sets is a choice. */
static void costs_of_the_host_carry_evidence(void **state)
{
    (void)state;
    write_text("stack.yaml",
        "name: x\nhost: {kernel_issue: " HOST_FITTED("22 us") ", pass: " HOST_FITTED("1 ms") "}\n");
    struct loaded *loaded = load_text(BASE "stack: stack.yaml\nhost: {pass: 3 ms}\n", NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    struct scenario_point *point = &loaded->set.points[0];
    assert_near(point->options.strategy.host.kernel_issue_s, 22e-6, 0);
    assert_near(point->options.strategy.host.pass_s, 3e-3, 0);
    assert_int_equal(origin_of(point, "host.kernel_issue")->kind, ORIGIN_STACK);
    assert_int_equal(origin_of(point, "host.pass")->kind, ORIGIN_FILE);
    int kernel_issue = 0, pass = 0;
    for (int i = 0; i < STRATEGY_HOST_COSTS; i++) {
        kernel_issue =
            strcmp(stack_host_table.fields[i].key, "kernel_issue") == 0 ? i : kernel_issue;
        pass = strcmp(stack_host_table.fields[i].key, "pass") == 0 ? i : pass;
    }
    assert_near(point->stack_host[kernel_issue].std_error, 2e-6, 0);
    assert_string_equal(point->stack_host[kernel_issue].fit, "here");
    assert_false(quantity_is_set(point->stack_host[pass]));
    stack_set_host(point, kernel_issue, 30e-6);
    assert_near(point->options.strategy.host.kernel_issue_s, 30e-6, 0);
    assert_near(point->stack_host[kernel_issue].value, 30e-6, 0);
    unload(loaded);
}

/* Points of a sweep share the files, not what a stack makes of them. */
static void a_sweep_compares_stacks(void **state)
{
    (void)state;
    write_text("stack.yaml", stack_yaml);
    write_text("other.yaml",
        "name: compiled\n"
        "settings: {train: {cross_entropy: fused, optimizer_impl: fused}}\n"
        "rates: {Volta: {pointwise_efficiency: {value: 0.9, kind: assumed, source: test}}}\n");
    struct loaded *loaded =
        load_text(BASE "sweep:\n  - stack: [stack.yaml, other.yaml]\n", NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    struct scenario_result results[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            scenario_simulate(&results[i], &loaded->set.points[i], &loaded->arena, &loaded->diag),
            STATUS_OK);
    assert_near(loaded->set.points[0].hw.gpu.pointwise_efficiency.value, 0.5, 0);
    assert_near(loaded->set.points[1].hw.gpu.pointwise_efficiency.value, 0.9, 0);
    assert_true(results[1].exec.breakdown.compute_s < results[0].exec.breakdown.compute_s);
    unload(loaded);
}

static void mistakes_are_reported_where_they_stand(void **state)
{
    (void)state;
    write_text("stack.yaml",
        "name: x\nrates:\n  Hoper:\n    gemm_sustained: {value: 1.2, kind: assumed, source: t}\n"
        "  Volta: {gemm_sustained: {value: 1.2, kind: assumed, source: t}}\n");
    struct loaded *loaded = load_text(BASE "stack: stack.yaml\n", NULL, 0);
    assert_int_equal(loaded->status, STATUS_INPUT);
    assert_non_null(strstr(loaded->diag.text, "stack.yaml:3:3: error: unknown key 'Hoper'"));
    assert_non_null(strstr(loaded->diag.text, "did you mean 'Hopper'?"));
    assert_non_null(strstr(loaded->diag.text, "stack.yaml:5:35: error:")); /* a share above 1 */
    unload(loaded);
    write_text("stack.yaml", "name: x\nkernels: {fusion: inductor}\nsettings: {train: {fusoin: "
                             "none}, noise: {}, run: {steps: 2}}\n");
    loaded = load_text(BASE "stack: stack.yaml\n", NULL, 0);
    assert_non_null(strstr(loaded->diag.text,
        "stack.yaml:2:1: error: 'kernels': a stack's settings are called as the "
        "scenario's; write them as in 'settings: {train: {fusion: inductor}}'"));
    assert_non_null(strstr(loaded->diag.text,
        "stack.yaml:3:20: error: unknown key 'fusoin' in 'train'; did you mean"));
    assert_non_null(strstr(loaded->diag.text,
        "stack.yaml:3:35: error: unknown key 'noise' in the settings of a stack"));
    assert_non_null(strstr(
        loaded->diag.text, "stack.yaml:3:52: error: unknown key 'steps' in 'run' of a stack"));
    unload(loaded);
    write_text("stack.yaml",
        "name: x\nsettings: {host: {pass: 3 ms}}\nhost: {pass: " HOST_FITTED("1 ms") "}\n");
    loaded = load_text(BASE "stack: stack.yaml\n", NULL, 0);
    assert_non_null(strstr(loaded->diag.text,
        "stack.yaml:2:25: error: 'host.pass' stands under settings and under "
        "host; leave one of the two out"));
    unload(loaded);
}

static struct quantity sustained_of(const char *file, struct arena *arena)
{
    struct stack stack;
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        stack_load(&stack, arena_printf(arena, FLOPCAST_SOURCE_DIR "/scenarios/stacks/%s", file),
            arena, &diag),
        STATUS_OK);
    for (int a = 0; a < HW_ARCHS; a++)
        if (strcmp(hw_archs[a], "Ampere") == 0)
            return stack.rates[a].gemm_sustained;
    return (struct quantity){0};
}

/* DeepSpeed 0.3 has what was fitted to DeepSpeed of 2022, as its file says. */
static void what_is_borrowed_follows_the_fit(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct quantity fitted = sustained_of("deepspeed-2022.yaml", &arena),
                    borrowed = sustained_of("deepspeed-0.3.yaml", &arena);
    assert_int_equal(fitted.kind, QUANTITY_FITTED);
    assert_int_equal(borrowed.kind, QUANTITY_ASSUMED);
    assert_near(borrowed.value, fitted.value, 0);
    arena_release(&arena);
}

/* "91 us": a quantity; switches and choices are words, and whole numbers without a unit. */
static bool is_quantity(const char *text)
{
    char *end = NULL;
    strtod(text, &end);
    return end != text && *end == ' ';
}

static bool says(struct config_node sourced, const char *key)
{
    struct config_node node = config_find(sourced, key);
    return config_kind(node) == CONFIG_SCALAR && *config_text(node);
}

/* Numbers that a stack has without saying how well they are known: those that stand bare, and
 * sourced ones without kind, source, or an error above 0. */
static int bare_numbers(struct config_node node)
{
    int n = 0;
    if (config_kind(node) == CONFIG_SCALAR)
        return is_quantity(config_text(node));
    if (config_kind(config_find(node, "value")) != CONFIG_NONE)
        return !(says(node, "kind") && says(node, "source") && says(node, "std_error") &&
                 strtod(config_text(config_find(node, "std_error")), NULL) > 0);
    for (int i = 0; i < config_count(node); i++)
        n += bare_numbers(config_item(node, i));
    return n;
}

static int bare_numbers_of(const char *path)
{
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(config_load(&doc, path, &diag), STATUS_OK);
    struct config_node root = config_root(doc);
    int n = bare_numbers(config_find(root, "settings")) + bare_numbers(config_find(root, "host")) +
            bare_numbers(config_find(root, "rates"));
    config_free(doc);
    return n;
}

static void every_number_has_a_kind_and_an_error(void **state)
{
    (void)state;
    write_text("bare.yaml",
        "name: x\n"
        "settings: {host: {step: 3 ms}, fsdp: {version: 2}}\n"
        "host:\n"
        "  view: {value: 1 us, kind: assumed, source: test}\n"
        "  pass: {value: 1 us, kind: assumed, std_error: 0 us, source: test}\n"
        "rates:\n"
        "  Volta: {step_pause: {value: 1 ms, kind: assumed, std_error: 1 ms, source: test}}\n");
    assert_int_equal(bare_numbers_of("bare.yaml"), 3);
    glob_t stacks;
    assert_int_equal(glob(FLOPCAST_SOURCE_DIR "/scenarios/stacks/*.yaml", 0, NULL, &stacks), 0);
    assert_true(stacks.gl_pathc >= 17);
    for (size_t i = 0; i < stacks.gl_pathc; i++)
        if (bare_numbers_of(stacks.gl_pathv[i]) > 0)
            fail_msg("%s has a number without kind, source and error", stacks.gl_pathv[i]);
    globfree(&stacks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_a_kind_and_an_error),
        cmocka_unit_test(every_generation_has_its_own),
        cmocka_unit_test(a_stack_replaces_what_it_names),
        cmocka_unit_test(settings_give_way_to_the_scenarios),
        cmocka_unit_test(costs_of_the_host_carry_evidence),
        cmocka_unit_test(a_sweep_compares_stacks),
        cmocka_unit_test(mistakes_are_reported_where_they_stand),
        cmocka_unit_test(what_is_borrowed_follows_the_fit),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
