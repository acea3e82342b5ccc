/* What fits by the peak of a plan. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "study/fit.h"

#include <math.h>

static bool fits(struct scenario_point point, int64_t micro_batch)
{
    struct diag diag = DIAG_INIT;
    struct exec_peak peak;
    point.options.strategy.train.micro_batch = micro_batch;
    assert_int_equal(fit_peak(&peak, &point, &diag), STATUS_OK);
    return peak.total_bytes <= point.hw.gpu.hbm_capacity.value;
}

/* From a GPU that holds nothing to one that holds all that is asked for. */
static void the_largest_micro_batch_by_the_peak(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE, NULL, 0);
    struct scenario_point *point = &loaded->set.points[0];
    int64_t last = 0;
    for (int step = 0; step < 32; step++) {
        point->hw.gpu.hbm_capacity.value = 1e9 * pow(1.1, step);
        int64_t most = fit_largest_by_peak(point, 100);
        assert_true(most >= last && most <= 100);
        assert_true(most == 0 || fits(*point, most));
        assert_true(most == 100 || !fits(*point, most + 1));
        last = most;
    }
    assert_int_equal(last, 100);
    point->hw.gpu.hbm_capacity.value = 1;
    assert_int_equal(fit_largest_by_peak(point, 100), 0);
    unload(loaded);
}

/* Bytes a parameter on 32 GPUs, without activations. FP32 weights, gradients and two moments of
 * AdamW are 4 + 4 + 8 bytes, all of them sharded by FSDP over its group (0: a node of 8), the
 * moments by InternEvo over its own. Shards are rounded up to whole elements, blocks to 512 bytes.
 * InternEvo gives whole tensors to ranks: of 2,098,176 parameters in all, a rank of 32 has 1,024 x
 * 256 at least. */
static void state_is_shared_out_over_the_group(void **state)
{
    (void)state;
    static const struct {
        struct scenario_override set[3];
        double bytes;
    } cases[] = {
        {{{"strategy", "fsdp"}, {"fsdp.sharding_strategy", "FULL_SHARD"},
             {"fsdp.sharding_group_size", "0"}},
            16. / 32},
        {{{"strategy", "fsdp"}, {"fsdp.sharding_strategy", "HYBRID_SHARD"},
             {"fsdp.sharding_group_size", "0"}},
            16. / 8},
        {{{"strategy", "fsdp"}, {"fsdp.sharding_strategy", "HYBRID_SHARD"},
             {"fsdp.sharding_group_size", "16"}},
            16. / 16},
        {{{"strategy", "fsdp"}, {"fsdp.sharding_strategy", "_HYBRID_SHARD_ZERO2"},
             {"fsdp.sharding_group_size", "0"}},
            16. / 8},
        {{{"strategy", "internevo"}, {"train.precision", "fp32"}, {"internevo.zero1", "8"}},
            8 + 8. / 8},
        {{{"strategy", "internevo"}, {"train.precision", "fp32"}, {"internevo.zero1", "-1"}},
            8 + 8. * 1024 * 256 / 2098176},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scenario_override set[6] = {
            {"cluster.gpus", "32"}, {"train.micro_batch", "1"}, {"train.optimizer_impl", "fused"}};
        memcpy(set + 3, cases[i].set, sizeof cases[i].set);
        struct loaded *loaded = load_text(BASE, set, 6);
        assert_int_equal(loaded->diag.n_errors, 0);
        const struct scenario_point *point = &loaded->set.points[0];
        struct exec_peak peak;
        assert_int_equal(fit_peak(&peak, point, &loaded->diag), STATUS_OK);
        double bytes = peak.largest_category[HBM_PARAMETERS] +
                       peak.largest_category[HBM_GRADIENTS] + peak.largest_category[HBM_OPTIMIZER];
        assert_near(bytes / (double)point->model.params, cases[i].bytes, 5e-3 * cases[i].bytes);
        unload(loaded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_micro_batch_by_the_peak),
        cmocka_unit_test(state_is_shared_out_over_the_group),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
