/* The search over layouts: what is a candidate, that bounds are bounds, that pruning by them
 * changes no answer. */
#include "candidates.h"

#include <math.h>

#define HEAD(model, gpus, train)                                                                   \
    "name: layouts\n"                                                                              \
    "model: " model "\n"                                                                           \
    "cluster: {topology: " FLOPCAST_SOURCE_DIR                                                     \
    "/topologies/clusters/h100-8x400g.yaml, gpus: " gpus "}\n"                                     \
    "train: {micro_batch: 1, seq_len: 256, " train "}\n"                                           \
    "strategy: megatron\n"                                                                         \
    "run: {steps: 1, warmup_steps: 1}\n"                                                           \
    "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}\n"
#define TINY(train) HEAD("deep.json", "16", "attention: naive, " train)

static void write_models(void)
{
    write_text("deep.json", "{\"model_type\": \"gpt2\", \"n_embd\": 256, \"n_layer\": 8, "
                            "\"n_head\": 4, \"vocab_size\": 32000, \"n_positions\": 512}\n");
    write_text("wide.json", "{\"model_type\": \"llama\", \"hidden_size\": 4096, "
                            "\"intermediate_size\": 11008, \"num_hidden_layers\": 6, "
                            "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
                            "\"vocab_size\": 32000, \"tie_word_embeddings\": "
                            "false}\n");
    write_text("experts.json", "{\"model_type\": \"mixtral\", \"hidden_size\": 1024, "
                               "\"intermediate_size\": 3584, \"num_hidden_layers\": 4, "
                               "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, "
                               "\"vocab_size\": 32000, \"num_local_experts\": 4, "
                               "\"num_experts_per_tok\": 2, \"tie_word_embeddings\": false}\n");
    write_text("after.json",
        "{\"model_type\": \"bert\", \"hidden_size\": 512, \"num_hidden_layers\": 4, "
        "\"num_attention_heads\": 8, \"intermediate_size\": 2048, \"vocab_size\": "
        "32000, \"max_position_embeddings\": 512}\n");
}

static struct loaded *begin(const char *text, const struct scenario_override *set, int n)
{
    write_models();
    struct loaded *loaded = load_text(text, set, n);
    if (loaded->diag.n_errors > 0)
        fail_msg("%s", loaded->diag.text);
    return loaded;
}

static int count(const struct scenario_override *set, int n_set)
{
    struct loaded *loaded = begin(TINY("global_batch: 16"), set, n_set);
    struct tune tune = candidates_of(loaded, (struct tune_options){.max_batch = 1});
    int n = tune.candidates.n;
    drop(&tune, loaded);
    return n;
}

/* 16 GPUs, 4 heads, 8 blocks, 16 sequences, micro-batches of one: tensor 1, 2, 4. Stages divide 16
 * / tensor, at most 8; chunks of a stage divide its blocks; p stages and t tensor ranks leave 16 /
 * (t p) of data, hence t p micro-batches, which p divides. So p = 1 gives 1 layout, 2 gives chunks
 * of 1, 2, 4, 4 gives 1, 2, 8 gives 1:
 *   tensor 1: p = 1, 2, 4, 8: 1 + 3 + 2 + 1 = 7; tensor 2: the same; tensor 4: p = 1, 2, 4: 6.
 * Checkpointing none, full, and core_attn as attention is naive: 3 x 20. */
static void candidates(void **state)
{
    (void)state;
    static const struct {
        struct scenario_override set;
        int n;
    } cases[] = {
        {{"train.attention", "flash"}, 40}, {{"parallelism.tensor", "2"}, 21},
        {{"parallelism.pipeline", "2"}, 27}, {{"train.activation_checkpointing", "selective"}, 20},
        {{"parallelism.schedule", "GPipe"}, 33}, /* one chunk: 4 + 4 + 3 */
        {{"parallelism.schedule", "ZBVZeroBubble"},
            27}, /* two chunks, where 8 blocks are 2 p of them: 3 x 3 */
    };
    assert_int_equal(count(NULL, 0), 60);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = count(&cases[i].set, 1);
        if (n != cases[i].n)
            fail_msg("%s: %d candidates", cases[i].set.key, n);
    }
}

/* With flash attention parts of sequences of 1,024 tokens and more: of 4,096 on 16 GPUs 1, 2, 4. */
static void context_is_tried(void **state)
{
    (void)state;
    static const struct scenario_override set[] = {
        {"train.seq_len", "4096"}, {"train.micro_batch", "1"}, {"train.attention", "naive"}};
    for (int n = 2; n <= 3; n++) {
        struct loaded *loaded = begin(HEAD("wide.json", "16", "global_batch: 16"), set, n);
        struct tune tune = candidates_of(loaded, (struct tune_options){.max_batch = 1});
        int64_t most = 0;
        for (int i = 0; i < tune.candidates.n; i++) {
            int64_t ranks = tune.candidates.at[i].point.options.strategy.parallelism.model.context;
            most = ranks > most ? ranks : most;
            assert_true(ranks == 1 || ranks == 2 || ranks == 4);
        }
        assert_int_equal(most, n == 3 ? 1 : 4);
        drop(&tune, loaded);
    }
}

/* Blocks that do not divide: the ends have fewer, alike to one, and all others the same; of two
 * stages the last. */
static void blocks_that_do_not_divide(void **state)
{
    (void)state;
    static const struct {
        int64_t stages, chunks, first, last;
    } meant[] = {{2, 1, -1, 3}, {4, 1, 2, 1}, {2, 2, 2, 1}};
    static const struct scenario_override set[] = {
        {"parallelism.tensor", "4"}, {"train.activation_checkpointing", "full"}};
    write_text("seven.json", "{\"model_type\": \"gpt2\", \"n_embd\": 256, \"n_layer\": 7, "
                             "\"n_head\": 4, \"vocab_size\": 32000, \"n_positions\": 512}\n");
    struct loaded *loaded = begin(HEAD("seven.json", "16", "global_batch: 16"), set, 2);
    struct tune tune = candidates_of(loaded, (struct tune_options){.max_batch = 1});
    int found = 0;
    for (int i = 0; i < tune.candidates.n; i++) {
        const struct parallelism_options *at =
            &tune.candidates.at[i].point.options.strategy.parallelism;
        for (size_t k = 0; k < sizeof meant / sizeof *meant; k++)
            if (at->pipeline == meant[k].stages && at->virtual_stages == meant[k].chunks) {
                assert_int_equal(at->first_layers, meant[k].first);
                assert_int_equal(at->last_layers, meant[k].last);
                found++;
            }
    }
    assert_int_equal(found, sizeof meant / sizeof *meant);
    drop(&tune, loaded);
}

/* All have the job's batch: of the file, of --global-batch, or what the scenario makes (2 x 3 x 16
 * ranks). */
static void the_global_batch_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t asked, batch;
    } cases[] = {{TINY("global_batch: 32"), 0, 32}, {TINY("global_batch: 32"), 64, 64},
        {TINY("grad_accum: 3"), 0, 48}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded *loaded = begin(cases[i].text, NULL, 0);
        struct tune tune = candidates_of(
            loaded, (struct tune_options){.max_batch = 8, .global_batch = cases[i].asked});
        assert_true(tune.candidates.n > 20);
        for (int k = 0; k < tune.candidates.n; k++) {
            const struct strategy_options *strategy = &tune.candidates.at[k].point.options.strategy;
            assert_int_equal(strategy_batch(&strategy->train).samples *
                                 strategy_data_ranks(&strategy->parallelism, 16),
                cases[i].batch);
        }
        drop(&tune, loaded);
    }
}

/* Every layout is simulated: none is faster than its bound or takes less than its bytes. How far
 * the bounds are below, in the mean, says that they are of use. */
static void assert_bounds(
    const char *text, const struct scenario_override *set, int n_set, double least_share)
{
    struct loaded *loaded = begin(text, set, n_set);
    struct tune tune = candidates_of(loaded, (struct tune_options){.max_batch = 2});
    double share = 0;
    assert_true(tune.candidates.n >= 6);
    for (int i = 0; i < tune.candidates.n; i++) {
        const struct tune_candidate *at = &tune.candidates.at[i];
        const struct parallelism_options *parallel = &at->point.options.strategy.parallelism;
        struct arena scratch = ARENA_INIT;
        struct scenario_result result;
        double bytes =
            0; /* of the program that allocates most: the fullest one is that which reserves most */
        assert_int_equal(
            scenario_simulate(&result, &at->point, &scratch, &loaded->diag), STATUS_OK);
        assert_int_equal(result.exec.status, EXEC_OK);
        for (int p = 0; p < result.exec.n_programs; p++)
            bytes = fmax(bytes, result.exec.programs[p].memory.peak_allocated_bytes);
        if (at->bound.step_s > result.exec.step_time_s || at->least_bytes > bytes)
            fail_msg("tp %d cp %d pp %d vp %d ep %d, %s: %g s, at least %g; %g bytes, at least %g",
                (int)parallel->model.tensor, (int)parallel->model.context, (int)parallel->pipeline,
                (int)parallel->virtual_stages, (int)parallel->model.expert,
                checkpointing_names[at->point.options.strategy.train.activation_checkpointing],
                result.exec.step_time_s, at->bound.step_s, bytes, at->least_bytes);
        share += at->bound.step_s / result.exec.step_time_s / tune.candidates.n;
        arena_release(&scratch);
    }
    if (share < least_share)
        fail_msg("bounds are %g of the times", share);
    drop(&tune, loaded);
}

/* Work of 5 s and of 1 s on two side queues; the compute queue's op of 2 s waits for both, for the
 * longer one first: it ends after 7 s. */
static void an_op_waits_for_all_its_waits(void **state)
{
    (void)state;
    static const double kernel_s[] = {5, 1, 2};
    struct plan plan;
    struct plan_builder builder;
    plan_begin(&builder, &plan, 1);
    builder.phase = PHASE_FORWARD;
    int longer = plan_kernel(&builder, STREAM_POST, "a", (struct kernel_work){.read_bytes = 1}, 0);
    int shorter =
        plan_kernel(&builder, STREAM_UNSHARD, "b", (struct kernel_work){.read_bytes = 2}, 0);
    builder.phase = PHASE_BACKWARD;
    plan_stream_wait(&builder, STREAM_COMPUTE, longer);
    plan_stream_wait(&builder, STREAM_COMPUTE, shorter);
    plan_kernel(&builder, STREAM_COMPUTE, "c", (struct kernel_work){.read_bytes = 3}, 0);
    plan_end(&builder);
    assert_int_equal(plan.kernels.n, 3);
    struct bound_passes passes = bound_passes(&plan, &plan.programs[0], kernel_s, NULL);
    assert_near(passes.forward_s, 0, 1e-12);
    assert_near(passes.backward_s, 7, 1e-12);
    assert_near(passes.kernels_s, 2, 1e-12);
    plan_release(&plan);
}

/* Blocks of a model of three, which are all compiled, and those of one of eight, of which some are.
 */
static void a_short_model_stands_for_all(void **state)
{
    (void)state;
    static const int blocks[] = {3, 8}, at[][3] = {{0, 1, 2}, {0, 5, 7}};
    struct bound_block found[2][3];
    for (int m = 0; m < 2; m++) {
        char config[300];
        snprintf(config, sizeof config,
            "{\"model_type\": \"gpt2\", \"n_embd\": 256, \"n_layer\": %d, \"n_head\": 4, "
            "\"vocab_size\": 32000, \"n_positions\": 512}\n",
            blocks[m]);
        write_text("some.json", config);
        struct loaded *loaded = begin(HEAD("some.json", "8", "global_batch: 8"), NULL, 0);
        struct bound_costs costs;
        assert_int_equal(
            bound_costs(&costs, &loaded->set.points[0], &loaded->arena, &loaded->diag), STATUS_OK);
        assert_int_equal(costs.n, blocks[m]);
        for (int b = 0; b < 3; b++)
            found[m][b] = costs.blocks[at[m][b]];
        unload(loaded);
    }
    assert_memory_equal(found[0], found[1], sizeof found[0]);
}

static void bounds_are_bounds(void **state)
{
    (void)state;
    static const struct scenario_override context[] = {
        {"parallelism.context", "2"}, {"train.attention", "flash"}};
    static const struct scenario_override split[] = {{"parallelism.schedule", "ZBH1"}};
    static const struct scenario_override zbv[] = {{"parallelism.schedule", "ZBVZeroBubble"}};
    static const struct scenario_override dual[] = {{"parallelism.schedule", "DualPipeV"},
        {"parallelism.pipeline", "2"}, {"parallelism.virtual", "2"}};
    static const struct scenario_override empty[] = {{"parallelism.first_layers", "0"},
        {"parallelism.last_layers", "0"}, {"parallelism.pipeline", "2"},
        {"parallelism.virtual", "3"}, {"train.micro_batch", "1"}};
    assert_bounds(
        TINY("global_batch: 16"), NULL, 0, 0); /* the host is what takes time in so small a model */
    assert_bounds(TINY("global_batch: 16"), context, 2, 0);
    assert_bounds(TINY("global_batch: 16"), split, 1, 0);
    assert_bounds(TINY("global_batch: 16"), zbv, 1, 0);
    assert_bounds(TINY("global_batch: 32"), dual, 3, 0);
    assert_bounds(TINY("global_batch: 16"), empty, 5, 0);
    assert_bounds(HEAD("experts.json", "16", "global_batch: 16, attention: flash"), NULL, 0, 0);
    assert_bounds(HEAD("after.json", "16", "global_batch: 16"), NULL, 0, 0);
}

/* Where kernels are what takes time, bounds are most of it. */
static void bounds_are_near(void **state)
{
    (void)state;
    static const struct scenario_override set[] = {{"train.seq_len", "4096"}};
    assert_bounds(HEAD("wide.json", "8", "global_batch: 32, attention: flash"), set, 1, 0.7);
}

/* The first ones and their times are those of a search that simulates all. */
static void pruning_changes_no_answer(void **state)
{
    (void)state;
    enum { KEEP = 3 };
    static const struct scenario_override set[] = {
        {"train.seq_len", "2048"}, {"cluster.gpus", "[8, 16]"}};
    int order[2][1000];
    double step_s[2][KEEP];
    int ran[2];
    for (int all = 0; all < 2; all++) {
        struct loaded *loaded =
            begin(HEAD("wide.json", "8", "global_batch: 32, attention: flash"), set, 2);
        struct tune_options options = {
            .max_batch = 4, .max_simulations = 10000, .keep = all ? 10000 : KEEP};
        struct tune tune = search(loaded, options);
        assert_true(
            tune.candidates.n < 1000 && tune_rank(order[all], &tune, TUNE_BY_SPEED) >= KEEP);
        for (int i = 0; i < KEEP; i++)
            step_s[all][i] = tune.candidates.at[order[all][i]].quiet.step_time_s;
        ran[all] = tune.count[TUNE_RAN];
        assert_true(all ? tune.count[TUNE_SLOWER] == 0 : tune.count[TUNE_SLOWER] > 0);
        drop(&tune, loaded);
    }
    assert_true(ran[0] < ran[1]);
    for (int i = 0; i < KEEP; i++) {
        assert_int_equal(order[0][i], order[1][i]);
        assert_near(step_s[0][i], step_s[1][i], 0);
    }
}

static void pruning_by_bytes_is_sound(void **state)
{
    (void)state;
    static const struct scenario_override set[] = {{"train.seq_len", "4096"},
        {"cluster.node.gpu.hbm_capacity", "10 GB"}, {"train.micro_batch", "1"}};
    struct loaded *loaded =
        begin(HEAD("wide.json", "8", "global_batch: 16, attention: flash"), set, 3);
    struct tune tune = candidates_of(loaded, (struct tune_options){.max_batch = 1});
    assert_pruned_are_oom(&tune, &loaded->diag);
    drop(&tune, loaded);
}

static void settings_give_back_the_layout(void **state)
{
    (void)state;
    static const char text[] = HEAD("experts.json", "16", "global_batch: 16, attention: flash");
    struct loaded *loaded = begin(text, NULL, 0);
    struct tune tune = search(
        loaded, (struct tune_options){.max_batch = 2, .max_simulations = 10000, .keep = 10000});
    assert_settings_give_back(&tune, 5, text);
    drop(&tune, loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates),
        cmocka_unit_test(context_is_tried),
        cmocka_unit_test(blocks_that_do_not_divide),
        cmocka_unit_test(an_op_waits_for_all_its_waits),
        cmocka_unit_test(a_short_model_stands_for_all),
        cmocka_unit_test(the_global_batch_is_kept),
        cmocka_unit_test(bounds_are_bounds),
        cmocka_unit_test(bounds_are_near),
        cmocka_unit_test(pruning_changes_no_answer),
        cmocka_unit_test(pruning_by_bytes_is_sound),
        cmocka_unit_test(settings_give_back_the_layout),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
