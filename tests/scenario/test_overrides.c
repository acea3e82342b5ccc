/* Numbers of the hardware that a scenario gives itself: cluster.KEY, cluster.node.KEY, gpu.KEY
 * (hw/override.h). */
#include "workspace.h"

static struct source_pos origin(const struct scenario_point *point, const char *path)
{
    struct source_pos at = {0};
    for (int i = 0; i < point->origins.list.n; i++)
        if (strcmp(point->origins.list.at[i].path, path) == 0)
            at = point->origins.list.at[i].at;
    return at;
}

/* In a file, by --set, in a sweep; each with its unit, and of the kind that a choice is. */
static void numbers_are_given_in_place_of_the_files(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.node.nic_bandwidth", "[100 Gb/s, 200Gb/s]"},
        {"gpu.gemm.fp16.peak", "250 TFLOPS"}};
    struct loaded *loaded =
        load_text("name: base\nmodel: tiny.json\n"
                  "cluster:\n  topology: cluster.yaml\n  gpus: 8\n  nodes: 2\n  node: "
                  "{nic_bandwidth: 50 Gb/s, nics: 8}\n"
                  "gpu: {hbm_capacity: 24 GiB, hbm_bandwidth: {value: 1 TB/s, kind: measured, "
                  "source: mine}}\n"
                  "train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}\nstrategy: ddp\n",
            set, 2);
    assert_string_equal(loaded->diag.text, "");
    assert_int_equal(loaded->set.n_points, 2);
    for (int i = 0; i < 2; i++) {
        const struct scenario_point *point = &loaded->set.points[i];
        const struct hw *hw = &point->hw;
        assert_true(hw->node.nic_bandwidth.value == (i ? 25e9 : 12.5e9));
        assert_string_equal(hw->node.nic_bandwidth.source, "--set cluster.node.nic_bandwidth");
        assert_int_equal(hw->node.nic_bandwidth.kind, QUANTITY_ASSUMED);
        assert_true(hw->gpu.gemm[DTYPE_FP16].peak.value == 250e12);
        assert_null(strstr(
            hw->gpu.gemm[DTYPE_FP16].efficiency.source, "--set")); /* the file's own, beside it */
        assert_true(hw->cluster.nodes.value == 2);
        assert_string_equal(hw->cluster.nodes.source, "x.yaml:6");
        assert_true(hw->node.nics.value == 8);
        assert_true(hw->gpu.hbm_capacity.value == 24 * 0x1p30);
        assert_string_equal(hw->gpu.hbm_capacity.source, "x.yaml:8");
        assert_string_equal(hw->gpu.hbm_bandwidth.source, "mine");
        assert_int_equal(hw->gpu.hbm_bandwidth.kind, QUANTITY_MEASURED);
        assert_string_equal(hw->gpu.name, "V100-SXM2-32GB");
        assert_string_equal(
            origin(point, "cluster.node.nic_bandwidth").file, "--set cluster.node.nic_bandwidth");
        assert_int_equal(origin(point, "gpu.hbm_capacity").line, 8);
    }
    unload(loaded);
}

/* zero3 is deepspeed of stage 3, on the command line and in a file, as one value and in lists; it
 * takes the place of the file's stage, be that swept or not. */
static void a_word_is_a_strategy_with_its_setting(void **state)
{
    (void)state;
    static const char head[] =
        "name: base\nmodel: tiny.json\ncluster: {topology: cluster.yaml, gpus: 8}\n"
        "train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}\n";
    static const struct {
        const char *text;
        struct scenario_override set;
        const char *labels; /* of the points */
        int versions;       /* of FSDP, in decimal digits */
    } cases[] = {
        {"strategy: zero3\n", {0}, "ZeRO-3 ", 1},
        {"strategy: fsdp\n", {"strategy", "zero2"}, "ZeRO-2 ", 1},
        {"strategy: ddp\n", {"strategy", "[zero1, fsdp2, ddp, SHARD_GRAD_OP]"},
            "ZeRO-1 FULL_SHARD DDP SHARD_GRAD_OP ", 1211},
        {"strategy: deepspeed\ndeepspeed: {zero_optimization: {stage: 1}}\n", {"strategy", "zero3"},
            "ZeRO-3 ", 1},
        {"strategy: deepspeed\nsweep: [{deepspeed.zero_optimization.stage: [1, 2]}]\n",
            {"strategy", "zero3"}, "ZeRO-3 ", 1},
        {"strategy: zero2\n", {"deepspeed.zero_optimization.stage", "3"}, "ZeRO-3 ", 1},
        {"strategy: ddp\nsweep: [{strategy: [zero2, ddp]}]\n", {0}, "ZeRO-2 DDP ", 11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512], labels[128] = "";
        snprintf(text, sizeof text, "%s%s", head, cases[i].text);
        struct loaded *loaded = load_text(text, &cases[i].set, cases[i].set.key != NULL);
        assert_string_equal(loaded->diag.text, "");
        int versions = 0;
        for (int p = 0; p < loaded->set.n_points; p++) {
            const struct strategy_options *strategy = &loaded->set.points[p].options.strategy;
            strcat(strcat(labels, strategy_label(strategy)), " ");
            versions = 10 * versions + (int)strategy->fsdp.version;
        }
        assert_string_equal(labels, cases[i].labels);
        assert_int_equal(versions, cases[i].versions);
        unload(loaded);
    }
    struct loaded *loaded =
        load_text("name: base\nmodel: tiny.json\ncluster: {topology: cluster.yaml, gpus: 8}\n"
                  "train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}\n"
                  "strategy: zero3\ndeepspeed: {zero_optimization: {stage: 1}}\n",
            NULL, 0);
    assert_string_equal(loaded->diag.text,
        "x.yaml:6:40: error: 'deepspeed.zero_optimization.stage' is 1, but "
        "strategy 'zero3' means 3; leave one of the two out\n");
    unload(loaded);
}

/* --set noise=off: whatever varies, in place of the cluster's, the file's and a sweep's. */
static void noise_is_one_word(void **state)
{
    (void)state;
    const struct scenario_override off = {"noise", "off"}, gpus = {"cluster.gpus", "[8, 16]"};
    struct loaded *loaded =
        load_text("name: base\nmodel: tiny.json\ncluster: {topology: cluster.yaml, gpus: 8}\n"
                  "train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}\nstrategy: ddp\n"
                  "noise: {host_pause: 1 s, host_pause_interval: 10 s, kernel_jitter: 0.1}\n"
                  "sweep: [{noise.host_jitter: [0.1, 0.2]}]\n",
            (const struct scenario_override[]){off, gpus}, 2);
    assert_string_equal(loaded->diag.text, "");
    assert_int_equal(loaded->set.n_points, 2);
    for (int i = 0; i < 2; i++)
        assert_false(exec_noise_is_on(&loaded->set.points[i].options.exec.noise));
    unload(loaded);
}

/* A context of 8k has 8192 tokens; GPUs are counted by thousands. */
static void counts_have_letters(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"train.seq_len", "0.5k"}, {"train.global_batch", "1e3"}};
    struct loaded *loaded =
        load_text("name: base\nmodel: tiny.json\ncluster: {topology: cluster.yaml, gpus: 8}\n"
                  "train: {micro_batch: 5, seq_len: 128, precision: fp16_mixed}\nstrategy: ddp\n"
                  "run: {max_split_size_mb: 1k}\n",
            set, 2);
    assert_string_equal(loaded->diag.text, "");
    const struct scenario *options = &loaded->set.points[0].options;
    assert_int_equal(options->strategy.train.seq_len, 512);
    assert_int_equal(options->strategy.train.global_batch, 1000);
    assert_int_equal(options->exec.allocator.max_split_size_mb, 1000);
    unload(loaded);
}

/* The names that PyTorch's frameworks have are read too; a sweep of one is overridden by the other.
 */
static void settings_have_aliases(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"train.micro_batch_size", "[3, 6]"}, {"train.recompute_every", "2"}};
    struct loaded *loaded =
        load_text("name: base\nmodel: tiny.json\ncluster: {topology: cluster.yaml, gpus: 8}\n"
                  "train: {micro_batch_size: 2, gradient_accumulation_steps: 5, seq_len: 128,"
                  " precision: fp16_mixed, activation_checkpointing: full}\nstrategy: ddp\n"
                  "sweep: [{train.micro_batch: [1, 2, 4]}]\n",
            set, 2);
    assert_string_equal(loaded->diag.text, "");
    assert_int_equal(loaded->set.n_points, 2);
    for (int i = 0; i < 2; i++) {
        const struct scenario_point *point = &loaded->set.points[i];
        assert_int_equal(point->options.strategy.train.micro_batch, i ? 6 : 3);
        assert_int_equal(point->options.strategy.train.grad_accum, 5);
        assert_int_equal(point->options.strategy.train.checkpoint_interval, 2);
        assert_string_equal(
            origin(point, "train.micro_batch").file, "--set train.micro_batch_size");
        assert_int_equal(origin(point, "train.grad_accum").line, 4);
    }
    unload(loaded);
    struct arena arena = ARENA_INIT;
    assert_string_equal(scenario_key_path("train.local_batch_size", &arena), "train.device_batch");
    assert_string_equal(scenario_key_path("node.nics", &arena), "cluster.node.nics");
    arena_release(&arena);
}

/* node.KEY is short for cluster.node.KEY; the GPU is the cluster's, however one gets there. A later
 * one wins. */
static void paths_that_mean_the_same(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "gpu.tdp", "cluster.gpu.tdp", "cluster.node.gpu.tdp", "node.gpu.tdp"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct scenario_override set[] = {{paths[i], "123 W"}, {"node.nics", "2"}};
        struct loaded *loaded = load_text(BASE "sweep: [{node.nics: [1, 8]}]\n", set, 2);
        assert_string_equal(loaded->diag.text, "");
        assert_int_equal(loaded->set.n_points, 1);
        assert_true(loaded->set.points[0].hw.gpu.tdp.value == 123);
        assert_true(loaded->set.points[0].hw.node.nics.value == 2);
        unload(loaded);
    }
}

/* What follows from a number follows from the given one: the link to the host, the noise. */
static void what_is_derived_follows(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.node.pcie_bandwidth", "7 GB/s"}, {"cluster.kernel_jitter", "4 %"}};
    struct loaded *loaded = load_text(BASE, set, 2);
    assert_string_equal(loaded->diag.text, "");
    assert_true(loaded->set.points[0].hw.gpu.host_link_Bps == 7e9);
    assert_true(loaded->set.points[0].options.exec.noise.kernel_jitter == 0.04);
    assert_string_equal(
        origin(&loaded->set.points[0], "noise.kernel_jitter").file, "--set cluster.kernel_jitter");
    assert_string_equal(origin(&loaded->set.points[0], "noise.host_jitter").file, "cluster.yaml");
    unload(loaded);
}

/* Of a rack of 18 hosts with 72 GPUs fewer GPUs are fewer hosts of four; hosts that are given are
 * as many as that. */
static void a_smaller_rack_has_fewer_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *gpus, *hosts;
        int in_host, of_ten;
    } cases[] = {{"72", NULL, 4, 3}, {"64", NULL, 4, 3}, {"8", NULL, 4, 3}, {"2", NULL, 2, 5},
        {"64", "8", 8, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct scenario_override set[] = {{"cluster.topology", "gb200-nvl72"},
            {"train.precision", "bf16_mixed"}, {"cluster.gpus", "2"},
            {"cluster.node.gpus", cases[i].gpus}, {"cluster.node.hosts", cases[i].hosts}};
        struct loaded *loaded = load_text(BASE, set, cases[i].hosts ? 5 : 4);
        assert_string_equal(loaded->diag.text, "");
        assert_int_equal(hw_gpus_per_host(&loaded->set.points[0].hw), cases[i].in_host);
        assert_int_equal(hw_hosts(&loaded->set.points[0].hw, 10), cases[i].of_ten);
        assert_int_equal(hw_ranks_of_host(&loaded->set.points[0].hw, 1), 1);
        unload(loaded);
    }
}

/* A profile says what a framework makes of a GPU; who gives a number means that number. */
static void a_given_number_outranks_the_stacks(void **state)
{
    (void)state;
    write_text("stack.yaml",
        "name: s\nrates: {Volta: {gemm_sustained: {value: 0.5, kind: assumed, source: s}, "
        "conv_efficiency: {value: 0.6, kind: assumed, source: s}}}\n");
    const struct scenario_override set[] = {{"gpu.gemm_sustained", "0.75"}};
    struct loaded *loaded = load_text(BASE "stack: stack.yaml\n", set, 1);
    assert_string_equal(loaded->diag.text, "");
    assert_true(loaded->set.points[0].hw.gpu.gemm_sustained.value == 0.75);
    assert_true(loaded->set.points[0].hw.gpu.conv_efficiency.value == 0.6);
    unload(loaded);
}

/* Of DDP between two nodes all of whose NICs are half as fast nothing else is slower. */
static void a_slower_nic_makes_a_longer_step(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.node.nic_bandwidth", "[1 Gb/s, 2 Gb/s, 4 Gb/s]"}, {"cluster.gpus", "16"}};
    struct loaded *loaded = load_text(BASE, set, 2);
    assert_string_equal(loaded->diag.text, "");
    struct scenario_result results[3] = {0};
    struct arena arenas[3] = {0};
    assert_int_equal(
        scenario_simulate_all(results, arenas, &loaded->set, NULL, NULL, &loaded->diag), STATUS_OK);
    assert_true(results[0].exec.step_time_s > results[1].exec.step_time_s);
    assert_true(results[1].exec.step_time_s > results[2].exec.step_time_s);
    for (int i = 0; i < 3; i++)
        arena_release(&arenas[i]);
    unload(loaded);
}

static void mistakes_are_reported_where_they_are_made(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *expected;
    } cases[] = {
        {"cluster.node.nic_bandwith", "1 GB/s",
            "unknown key 'nic_bandwith' in a node; did you mean 'nic_bandwidth'?"},
        {"nic_bandwidth", "1 GB/s", "did you mean 'cluster.node.nic_bandwidth'?"},
        {"cluster.nic_bandwidth", "1 GB/s", "did you mean 'node.nic_bandwidth'?"},
        {"hbm_capacity", "1 GB", "did you mean 'gpu.hbm_capacity'?"},
        {"gpu.gemm.bf17.peak", "1 TFLOPS", "did you mean 'bf16'?"},
        {"cluster.node.nic_bandwidth", "400", "nic_bandwidth:1:1: error: '400' has no unit"},
        {"cluster.node.nic_bandwidth", "[8 Gb/s, 8 Gb]",
            "nic_bandwidth:1:10: error: '8 Gb' is not a bandwidth"},
        {"cluster.node.nic_bandwidth", "8 kB/s",
            "'8 kB/s' is too small; the least allowed is 100 MB/s"},
        {"cluster.node.nic_bandwidth", "800 GB/s",
            "warning: a NIC of 800 GB/s is one of 6400 Gb/s; bytes have a"},
        {"gpu.memory_sms", "100", "--set gpu.memory_sms:1:1: error: memory_sms is 100 of 80 SMs"},
        {"gpu.sms", "79.5", "--set gpu.sms:1:1: error: sms is 79.5; it counts things"},
        {"cluster.node.hosts", "2.5",
            "--set cluster.node.hosts:1:1: error: hosts is 2.5; it counts things"},
        {"cluster.node.hosts", "3",
            "--set cluster.node.hosts:1:1: error: 3 hosts do not share 8 GPUs evenly; give a"},
        {"gpu.sms", "75", ":13: error: memory_sms is 75.3 of 75 SMs"},
        {"gpu.gemm.fp8.peak", "1 PFLOPS",
            "gpu.gemm.fp8.peak:1:1: error: gemm.fp8 of 'V100-SXM2-32GB' is incomplete"},
        {"cluster.node.nics", "0", "cluster.yaml:3:8: error: 4 nodes without a NIC"},
        {"cluster.nodes", "[4, 1.5]",
            "--set cluster.nodes:1:5: error: nodes is 1.5; it counts things"},
        {"cluster.network.kind", "fat_tree",
            "network.kind:1:1: error: network: a fat_tree needs leaf_ports"},
        {"cluster.network.wiring", "railway",
            "'railway' is not one of plain, rail; did you mean 'rail'?"},
        {"cluster.node.name", "x", "'name' of a node cannot be set"},
        {"gpu.name", "x", "'name' of a GPU cannot be set"},
        {"cluster.node", "x",
            "'cluster.node' holds several values; set one, as in 'cluster.node.gpus'"},
        {"gpu.hbm_capacity", "{value: 9 GB, kind: measured}",
            "a sourced value needs the key 'source'"},
        {"cluster.gpu", "8", "unknown key 'gpu' in 'cluster'; did you mean 'gpus'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct scenario_override set = {cases[i].key, cases[i].value};
        struct loaded *loaded = load_text(BASE, &set, 1);
        if (!strstr(loaded->diag.text, cases[i].expected))
            fail_msg("%s=%s: %s", cases[i].key, cases[i].value, loaded->diag.text);
        assert_int_equal(loaded->status == STATUS_OK, strstr(cases[i].expected, "warning") != NULL);
        unload(loaded);
    }
    struct loaded *loaded = load_text(BASE "gpu:\n  hbm_capacity: 24\n  nics: 4\n", NULL, 0);
    assert_non_null(strstr(loaded->diag.text, "x.yaml:8:17: error: '24' has no unit"));
    assert_non_null(strstr(loaded->diag.text, "x.yaml:9:3: error: unknown key 'nics' in a GPU"));
    unload(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_given_in_place_of_the_files),
        cmocka_unit_test(a_word_is_a_strategy_with_its_setting),
        cmocka_unit_test(noise_is_one_word),
        cmocka_unit_test(counts_have_letters),
        cmocka_unit_test(settings_have_aliases),
        cmocka_unit_test(paths_that_mean_the_same),
        cmocka_unit_test(what_is_derived_follows),
        cmocka_unit_test(a_smaller_rack_has_fewer_hosts),
        cmocka_unit_test(a_given_number_outranks_the_stacks),
        cmocka_unit_test(a_slower_nic_makes_a_longer_step),
        cmocka_unit_test(mistakes_are_reported_where_they_are_made),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
