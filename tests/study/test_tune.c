/* The search: which candidates there are, that pruning is sound, that the settings give back the
 * candidate. */
#include "candidates.h"

#define QUIET "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}\n"

static int count(const char *text, int64_t max_batch, int64_t global_batch)
{
    struct loaded *loaded = load_text(text, NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    struct tune tune =
        candidates_of(loaded, (struct tune_options){max_batch, global_batch, 0, 0, 0, 0, 0});
    int n = tune.candidates.n;
    drop(&tune, loaded);
    return n;
}

static void candidates(void **state)
{
    (void)state;
    /* In a node: FULL_SHARD and SHARD_GRAD_OP with three prefetches each, three stages of ZeRO,
     * DDP: 10; without checkpointing, full, selective; batches 1, 2, 4: 10 x 3 x 3. */
    assert_int_equal(count(BASE, 4, 0), 90);
    assert_int_equal(count(BASE, 5, 0), 90);
    /* Two nodes: HYBRID_SHARD over a node too. Four: over one and two. */
    assert_int_equal(count(BASE "sweep: [{cluster.gpus: [16]}]\n", 4, 0), 117);
    assert_int_equal(count(BASE "sweep: [{cluster.gpus: [32]}]\n", 4, 0), 144);
    /* One GPU: nothing to share out. */
    assert_int_equal(count(BASE "sweep: [{cluster.gpus: [1]}]\n", 4, 0), 9);
    /* What is searched anyway adds nothing when the scenario sweeps it; what is not makes a
     * separate search for each value. */
    assert_int_equal(
        count(BASE "sweep: [{train.micro_batch: [1, 2]}, {strategy: [ddp, fsdp]}]\n", 4, 0), 90);
    assert_int_equal(count(BASE "sweep: [{train.seq_len: [64, 128]}]\n", 4, 0), 180);
    /* 32 sequences on 8 GPUs: batches 1, 2, 4 accumulated 4, 2, 1 times; 8 would be too many, 12
     * divide by none. */
    assert_int_equal(count(BASE, 8, 32), 90);
    assert_int_equal(count(BASE, 8, 12), 0);
}

static int count_set(const struct scenario_override *set, int n, int64_t max_batch, int *refused)
{
    struct loaded *loaded =
        load_text(BASE, set, n); /* the file's strategy does not read all of set: a warning */
    struct tune tune = candidates_of(loaded, (struct tune_options){max_batch, 0, 0, 0, 0, 0, 0});
    int candidates = tune.candidates.n;
    const struct fsdp_options *given = &loaded->set.points[0].options.strategy.fsdp;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < candidates; c++) {
            const struct fsdp_options *fsdp = &tune.candidates.at[c].point.options.strategy.fsdp;
            if (strcmp(set[i].key, "fsdp.backward_prefetch") == 0)
                assert_int_equal(fsdp->backward_prefetch, given->backward_prefetch);
            if (strcmp(set[i].key, "fsdp.forward_prefetch") == 0)
                assert_int_equal(fsdp->forward_prefetch, given->forward_prefetch);
        }
    *refused = tune.n_refused;
    if (*refused)
        assert_non_null(strstr(tune.refusal, "LOMO"));
    drop(&tune, loaded);
    return candidates;
}

/* Of 10 strategies, 3 kinds of checkpointing and 3 batches up to 4. */
static void what_is_set_is_not_searched(void **state)
{
    (void)state;
    static const struct {
        struct scenario_override set[2];
        int n, refused;
    } cases[] = {
        {{{"strategy", "ddp"}}, 9, 0}, {{{"strategy", "[ddp, deepspeed]"}}, 36, 0},
        {{{"strategy", "internevo"}, {"train.precision", "fp32"}}, 9, 0},
        {{{"strategy", "nanotron"}}, 9, 0}, {{{"train.micro_batch", "12"}}, 30, 0},
        {{{"train.activation_checkpointing", "core_attn"}}, 30, 0},
        {{{"deepspeed.zero_optimization.stage", "0"}}, 72, 0},
        {{{"train.activation_checkpointing", "selective"}}, 30, 0},
        {{{"fsdp.backward_prefetch", "None"}, {"strategy", "fsdp"}}, 36,
            0}, /* 2 shardings, forward or not */
        {{{"fsdp.forward_prefetch", "true"}, {"strategy", "fsdp"}}, 36,
            0}, /* 2 shardings, PRE or POST */
        {{{"fsdp.sharding_strategy", "NO_SHARD"}, {"strategy", "fsdp"}}, 27, 0}, /* 3 prefetches */
        {{{"fsdp.sharding_group_size", "4"}, {"strategy", "fsdp"}}, 81, 0}, /* HYBRID_SHARD, too */
        {{{"deepspeed.zero_optimization.stage", "2"}}, 72, 0},              /* 8 strategies */
        {{{"train.optimizer", "lomo"}}, 63, 27},                            /* ZeRO cannot */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int refused = 0, n = count_set(cases[i].set, cases[i].set[1].key ? 2 : 1, 4, &refused);
        if (n != cases[i].n || refused != cases[i].refused)
            fail_msg("%s: %d candidates, %d refused", cases[i].set[0].value, n, refused);
    }
}

static void global_batch_is_kept(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE, NULL, 0);
    struct tune tune = candidates_of(loaded, (struct tune_options){8, 32, 0, 0, 0, 0, 0});
    for (int i = 0; i < tune.candidates.n; i++) {
        const struct train_options *train = &tune.candidates.at[i].point.options.strategy.train;
        assert_int_equal(train->micro_batch * train->grad_accum * 8, 32);
    }
    drop(&tune, loaded);
}

/* Without one, gradients accumulate as the scenario says. */
static void accumulation_of_the_scenario_is_kept(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE "sweep: [{train.grad_accum: [3]}]\n", NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    struct tune tune = candidates_of(loaded, (struct tune_options){4, 0, 0, 0, 0, 0, 0});
    assert_int_equal(tune.candidates.n, 90);
    for (int i = 0; i < tune.candidates.n; i++)
        assert_int_equal(tune.candidates.at[i].point.options.strategy.train.grad_accum, 3);
    drop(&tune, loaded);
}

/* What is pruned is out of memory when it is simulated after all. Batches to 2^14: the logits
 * alone, 2^14 x 128 x 1000 x 4 bytes, are half of the GPU's 16 GiB. */
static void assert_sound(const char *text, const struct scenario_override *overrides, int n)
{
    struct loaded *loaded = load_text(text, overrides, n);
    struct tune tune = search(loaded, (struct tune_options){1 << 14, 0, 1000, 0, 0, 0, 0});
    assert_true(tune.count[TUNE_RAN] > 0);
    for (int i = 0; i < tune.candidates.n; i++) {
        const struct tune_candidate *at = &tune.candidates.at[i];
        if (at->state == TUNE_RAN && at->quiet.peak_bytes < at->least_bytes)
            fail_msg(
                "candidate %d: %g bytes, at least %g", i, at->quiet.peak_bytes, at->least_bytes);
    }
    assert_pruned_are_oom(&tune, &loaded->diag);
    drop(&tune, loaded);
}

static void pruning_is_sound(void **state)
{
    (void)state;
    assert_sound(BASE QUIET, NULL, 0);
}

/* What is in host memory is no reason to prune. */
static void pruning_is_sound_with_offload(void **state)
{
    (void)state;
    static const struct scenario_override offload[] = {
        {"cluster.topology",
            FLOPCAST_SOURCE_DIR "/topologies/clusters/dgx-2-ib.yaml"}, /* a node with host_memory */
        {"fsdp.cpu_offload", "true"}, {"deepspeed.zero_optimization.offload_optimizer", "true"}};
    assert_sound(BASE QUIET, offload, 3);
}

static void settings_give_back_the_candidate(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE QUIET "sweep: [{cluster.gpus: [16]}]\n", NULL, 0);
    struct tune tune = search(loaded, (struct tune_options){2, 64, 1000, 0, 0, 0, 0});
    assert_int_equal(tune.count[TUNE_RAN], 78); /* 13 x 3 x batches 1, 2 */
    assert_settings_give_back(&tune, 1, BASE QUIET);
    drop(&tune, loaded);
}

/* Dollars where there is a price; GPU-hours of those that have none, apart. */
static void ranks(void **state)
{
    (void)state;
    struct tune tune = {0};
    static const double speed[] = {10, 40, 20, 40, 80}, usd[] = {3, 9, 1, 8, 0},
                        hours[] = {1, 1, 1, 1, 0.5};
    int order[6];
    for (int i = 0; i < 5; i++) {
        struct tune_candidate candidate = {
            .state = TUNE_RAN, .quiet = {1, 1, speed[i], hours[i], usd[i], 0, 0, 0, 0}};
        candidate.point.hw.gpu.price.value = usd[i] > 0 ? 1 : 0;
        vec_push(&tune.candidates, candidate);
    }
    vec_push(&tune.candidates, (struct tune_candidate){.state = TUNE_OOM});
    static const int fastest[] = {4, 1, 3, 2, 0}, cheapest[] = {2, 0, 3, 1}, unpriced[] = {4};
    assert_int_equal(tune_rank(order, &tune, TUNE_BY_SPEED), 5);
    assert_memory_equal(order, fastest, sizeof fastest);
    assert_int_equal(
        tune_rank(order, &tune, TUNE_BY_COST), 4); /* the one without a price is not the cheapest */
    assert_memory_equal(order, cheapest, sizeof cheapest);
    assert_int_equal(tune_rank(order, &tune, TUNE_UNPRICED), 1);
    assert_memory_equal(order, unpriced, sizeof unpriced);
    vec_free(&tune.candidates);
}

static void finals(struct tune *tune, enum tune_order by, int rows, struct diag *diag)
{
    assert_int_equal(tune_finals(tune, by, rows, NULL, NULL, diag), STATUS_OK);
}

/* Packed sequences have the mean of their documents at first; finalists take what `flopcast run`
 * draws. */
static void documents_are_drawn_for_finalists(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.topology", FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml"},
        {"train.attention", "flash"}, {"train.seq_len", "4096"}, {"max_positions", "4096"},
        {"train.document_lengths", "64, 4096"}, {"host.kernel_issue", "0 s"},
        {"host.backward_issue", "0 s"}, {"host.unit_hook", "0 s"}, {"host.collective_issue", "0 s"},
        {"host.step", "0 s"}};
    struct loaded *loaded = load_text(BASE QUIET, set, sizeof set / sizeof *set);
    struct tune tune = search(loaded, (struct tune_options){1, 0, 1000, 0, 0, 0, 0});
    struct scenario_result result;
    struct arena scratch = ARENA_INIT;
    int order[60];
    finals(&tune, TUNE_BY_SPEED, 1, &loaded->diag);
    assert_true(tune_rank(order, &tune, TUNE_BY_SPEED) > 0);
    const struct tune_candidate *best = &tune.candidates.at[order[0]];
    assert_int_equal(scenario_simulate(&result, &best->point, &scratch, &loaded->diag), STATUS_OK);
    assert_near(best->noisy.step_time_s, result.exec.step_time_s, 0);
    assert_true(best->noisy.step_time_s < best->quiet.step_time_s ||
                best->noisy.step_time_s > best->quiet.step_time_s);
    arena_release(&scratch);
    drop(&tune, loaded);
}

/* Two of each candidate, alike without noise; the host of the first one jitters. With noise the
 * other is ahead. */
static void noise_decides(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(
        BASE QUIET "sweep: [{noise.host_jitter: [0.5, 0]}, {train.micro_batch: [2]}]\n", NULL, 0);
    struct tune tune = search(loaded, (struct tune_options){1, 0, 1000, 0, 0, 0, 0});
    int order[60], first;
    assert_int_equal(tune.candidates.n, 60);
    assert_int_equal(tune_rank(order, &tune, TUNE_BY_SPEED), 60);
    first = order[0];
    assert_near(tune.candidates.at[first].point.options.exec.noise.host_jitter, 0.5, 0);
    finals(&tune, TUNE_BY_SPEED, 3, &loaded->diag);
    int n = tune_rank(order, &tune, TUNE_BY_SPEED);
    assert_true(n >= 3 && n <= 6 && n == tune.n_finalists);
    const struct tune_candidate *best = &tune.candidates.at[order[0]];
    assert_near(best->point.options.exec.noise.host_jitter, 0, 0);
    assert_near(best->noisy.step_time_s, best->quiet.step_time_s, 0); /* nothing to run again */
    for (int i = 0; i < n; i++) {
        const struct tune_candidate *final = &tune.candidates.at[order[i]];
        struct arena scratch = ARENA_INIT;
        struct scenario_result result;
        assert_true(i == 0 || final->noisy.tokens_per_s <=
                                  tune.candidates.at[order[i - 1]].noisy.tokens_per_s);
        assert_int_equal(
            scenario_simulate(&result, &final->point, &scratch, &loaded->diag), STATUS_OK);
        assert_near(
            final->noisy.step_time_s, result.exec.step_time_s, 0); /* what `flopcast run` says */
        assert_true(final->noisy.step_time_s >= final->quiet.step_time_s);
        arena_release(&scratch);
    }
    drop(&tune, loaded);
}

/* A finalist stands for those that differ in prefetch alone, to no effect: NO_SHARD prefetches
 * nothing. */
static void finalists_represent_those_alike(void **state)
{
    (void)state;
    static const struct scenario_override set[] = {{"strategy", "fsdp"},
        {"fsdp.sharding_strategy", "NO_SHARD"}, {"train.activation_checkpointing", "none"}};
    struct loaded *loaded = load_text(BASE, set, 3);
    struct tune tune = search(loaded, (struct tune_options){1, 0, 1000, 0, 0, 0, 0});
    int order[3];
    assert_int_equal(tune.count[TUNE_RAN], 3);
    finals(&tune, TUNE_BY_SPEED, 3, &loaded->diag);
    assert_int_equal(tune_rank(order, &tune, TUNE_BY_SPEED), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tune.candidates.at[i].represents, order[0]);
    drop(&tune, loaded);
}

/* One GPU has no communicator: half of what NCCL would take for one is no reason to prune. */
static void nccl_takes_nothing_on_one_gpu(void **state)
{
    (void)state;
    for (int gpus = 1; gpus <= 2; gpus++) {
        struct loaded *loaded =
            load_text(gpus == 1 ? BASE "sweep: [{cluster.gpus: [1]}]\n" : BASE, NULL, 0);
        struct hw *hw = &loaded->set.points[0].hw;
        struct tune tune;
        assert_true(hw->node.nccl_bytes.value > 0);
        tune_candidates(
            &tune, &loaded->set, &(struct tune_options){1, 0, 0, 0, 0, 0, 0}, &loaded->arena);
        double most = 0;
        for (int i = 0; i < tune.candidates.n; i++)
            most =
                most < tune.candidates.at[i].least_bytes ? tune.candidates.at[i].least_bytes : most;
        vec_free(&tune.candidates);
        hw->gpu.hbm_capacity.value =
            hw->gpu.context_bytes.value + most + hw->node.nccl_bytes.value / 2;
        tune_candidates(
            &tune, &loaded->set, &(struct tune_options){1, 0, 0, 0, 0, 0, 0}, &loaded->arena);
        int pruned = 0;
        for (int i = 0; i < tune.candidates.n; i++)
            pruned += tune.candidates.at[i].state == TUNE_PRUNED;
        assert_true(gpus == 1 ? pruned == 0 : pruned > 0);
        drop(&tune, loaded);
    }
}

/* 10^9 tokens at s tokens/s and GPU are 10^9 / s / 3600 GPU-hours; times $/h, times kW: a V100 of
 * 300 W that is busy and waits alike, in a host of 150 W a GPU without NICs and switches, PUE 2: 2
 * x (0.5 x 300 + 150) = 600 W. */
static void cost(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE QUIET, NULL, 0);
    struct hw *hw = &loaded->set.points[0].hw;
    hw->gpu.price = (struct quantity){2, 0, QUANTITY_ASSUMED, "test", NULL};
    hw->gpu.power.busy = hw->gpu.power.waiting =
        (struct quantity){0.5, 0, QUANTITY_ASSUMED, "test", NULL};
    hw->node.host_power = (struct quantity){1200, 0, QUANTITY_ASSUMED, "test", NULL};
    hw->node.nic_power = hw->cluster.switch_port_power =
        (struct quantity){0, 0, QUANTITY_ASSUMED, "test", NULL};
    hw->cluster.pue = (struct quantity){2, 0, QUANTITY_ASSUMED, "test", NULL};
    struct tune tune = search(loaded, (struct tune_options){1, 0, 1, 0, 0, 0, 0});
    assert_int_equal(tune.count[TUNE_RAN], 1);
    assert_int_equal(tune.count[TUNE_LEFT_OUT], 29);
    const struct tune_candidate *first = &tune.candidates.at[0];
    double hours = 1e9 / (first->quiet.tokens_per_s / 8) / 3600;
    assert_near(first->quiet.gpu_hours_per_gtokens, hours, 1e-9 * hours);
    assert_near(first->quiet.usd_per_gtokens, 2 * hours, 1e-9 * hours);
    assert_near(first->quiet.kwh_per_gtokens, 0.6 * hours, 1e-9 * hours);
    drop(&tune, loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates),
        cmocka_unit_test(what_is_set_is_not_searched),
        cmocka_unit_test(global_batch_is_kept),
        cmocka_unit_test(accumulation_of_the_scenario_is_kept),
        cmocka_unit_test(pruning_is_sound),
        cmocka_unit_test(pruning_is_sound_with_offload),
        cmocka_unit_test(settings_give_back_the_candidate),
        cmocka_unit_test(ranks),
        cmocka_unit_test(noise_decides),
        cmocka_unit_test(documents_are_drawn_for_finalists),
        cmocka_unit_test(finalists_represent_those_alike),
        cmocka_unit_test(nccl_takes_nothing_on_one_gpu),
        cmocka_unit_test(cost),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
