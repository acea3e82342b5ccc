/* results/measured/direct.csv determines what is fitted to it, and the model describes shapes that
 * fit nothing as well as is claimed. */
#include "calibrate/direct_fit.h"
#include "calibrate/recipes.h"
#include "scenario/stack.h"

#include <gsl/gsl_statistics.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../near.h"

#define MEASURED FLOPCAST_SOURCE_DIR "/results/measured"
#define GPUS FLOPCAST_SOURCE_DIR "/topologies/gpus"

struct solved {
    struct arena arena;
    struct hw_gpu filed;
    struct direct_fit fit;
};

static void solve(struct solved *s, const char *gpu)
{
    struct diag diag = DIAG_INIT;
    *s = (struct solved){.arena = ARENA_INIT};
    const char *path = arena_printf(&s->arena, GPUS "/%s.yaml", gpu);
    assert_int_equal(hw_load_gpu(&s->filed, path, &s->arena, &diag), STATUS_OK);
    if (direct_fit_solve(&s->fit, &s->filed, gpu, MEASURED "/direct.csv", &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
}

static void drop(struct solved *s)
{
    direct_fit_free(&s->fit);
    arena_release(&s->arena);
}

static void check(
    const char *gpu, const char *what, struct fit_error error, double median, double p90)
{
    if (error.n == 0)
        return;
    print_message("%s, %s: %d rows held out, median %.1f %%, p90 %.1f %%\n", gpu, what, error.n,
        100 * error.median, 100 * error.p90);
    assert_true(error.median <= median);
    assert_true(error.p90 <= p90);
}

/* Bounds a little over what is reached. Attention is asked where cuDNN's forward and backward
 * kernels are. */
static void held_out_shapes_are_predicted(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct recipes recipes;
    assert_int_equal(recipes_load(&recipes, &arena, &diag), STATUS_OK);
    assert_true(recipes.direct.n >= 7);
    for (int i = 0; i < recipes.direct.n; i++) {
        const char *gpu = recipes.direct.list[i];
        struct solved s;
        solve(&s, gpu);
        check(gpu, "BF16 products", s.fit.product_error[DTYPE_BF16], 0.08, 0.24);
        check(gpu, "FP8 products", s.fit.product_error[DTYPE_FP8], 0.06, 0.16);
        check(gpu, "FP4 products", s.fit.product_error[DTYPE_FP4], 0.12, 0.42);
        if (s.fit.cudnn)
            check(gpu, "attention", s.fit.error[DIRECT_ATTENTION], 0.06, 0.15);
        check(gpu, "experts", s.fit.error[DIRECT_EXPERTS], 0.12, 0.38);
        check(gpu, "casts", s.fit.error[DIRECT_CAST], 0.10, 0.25);
        check(gpu, "largest values", s.fit.error[DIRECT_AMAX], 0.10, 0.25);
        drop(&s);
    }
    arena_release(&arena);
}

/* A fit to the model's own times gives the model's numbers back, whatever it starts from; within a
 * percent, as what is called a floor is a median of small casts. */
static void a_fit_gives_back_what_times_were_made_of(void **state)
{
    (void)state;
    struct solved s;
    struct diag diag = DIAG_INIT;
    solve(&s, "h200-sxm-141gb");
    char path[] = "direct_XXXXXX";
    FILE *csv = fopen(path, "w");
    assert_non_null(csv);
    fprintf(csv, "class,gpu,software,dtype,regime,m,n,k,batch,heads,kv_heads,value_dim,experts,"
                 "topk,causal,pass,time_us,power_w\n");
    for (int i = 0; i < s.fit.rows.list.n; i++) {
        const struct direct_row *row = &s.fit.rows.list.at[i];
        if (row->kind == DIRECT_CAST || row->kind == DIRECT_AMAX)
            fprintf(csv, "%s,h200-sxm-141gb,x,fp8,short,%.0f,,%.0f,,,,,,,,,%.9g,\n",
                direct_kind_names[row->kind], row->m, row->k, 1e6 * direct_predict_s(&s.fit, row));
    }
    fclose(csv);
    struct direct_fit again;
    s.filed.hbm_efficiency.value = 0.5;
    assert_int_equal(direct_fit_solve(&again, &s.filed, "h200-sxm-141gb", path, &diag), STATUS_OK);
    assert_near(again.gpu.hbm_efficiency.value / s.fit.gpu.hbm_efficiency.value, 1, 0.01);
    assert_near(again.amax_share.value / s.fit.amax_share.value, 1, 0.02);
    direct_fit_free(&again);
    drop(&s);
    remove(path);
}

static double median_share(const struct direct_fit *fit, double from_w, double to_w)
{
    VEC(double) shares = {0};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct direct_row *row = &fit->rows.list.at[i];
        if (row->kind == DIRECT_PRODUCT && row->math == DTYPE_BF16 && row->work.flop >= 3e11 &&
            row->power_w >= from_w && row->power_w < to_w)
            vec_push(&shares, direct_predict_s(fit, row) / row->measured_s);
    }
    assert_true(shares.n >= 5);
    double median = gsl_stats_median(shares.at, 1, (size_t)shares.n);
    vec_free(&shares);
    return median;
}

/* Why GB200's products count as settled: those sampled at its limit of 1,200 W and those sampled
 * far below it have the same rate. */
static void sampled_power_does_not_tell_gb200s_rate(void **state)
{
    (void)state;
    struct solved s;
    solve(&s, "gb200-186gb");
    double at_limit = median_share(&s.fit, 0.95 * 1200, 1300),
           below = median_share(&s.fit, 500, 0.85 * 1200);
    print_message("of the model's rate: %.3f at the limit, %.3f below\n", at_limit, below);
    assert_near(at_limit / below, 1, 0.03);
    drop(&s);
}

static void same(struct quantity filed, struct quantity fitted)
{
    assert_near(filed.value / fitted.value, 1, 1e-4);
    assert_near(filed.std_error / fitted.std_error, 1, 0.01);
}

/* The profile of PyTorch 2.11 has what cuDNN's attention says that PyTorch ran on H100. */
static void a_profile_says_what_the_fit_says(void **state)
{
    (void)state;
    struct solved s;
    struct stack stack;
    struct diag diag = DIAG_INIT;
    const char *path = FLOPCAST_SOURCE_DIR "/scenarios/stacks/pytorch-2.11.yaml";
    solve(&s, "h100-sxm5-80gb");
    assert_int_equal(stack_load(&stack, path, &s.arena, &diag), STATUS_OK);
    int hopper = 0;
    while (strcmp(hw_archs[hopper], "Hopper") != 0)
        hopper++;
    const struct hw_gpu *rates = &stack.rates[hopper];
    same(rates->attention_efficiency, s.fit.gpu.attention_efficiency);
    same(rates->attention_backward, s.fit.gpu.attention_backward);
    same(rates->attention_overhead, s.fit.gpu.attention_overhead);
    same(rates->attention_backward_overhead, s.fit.gpu.attention_backward_overhead);
    same(rates->attention_softmax, s.fit.gpu.attention_softmax);
    drop(&s);
}

/* A GPU without rows is named. */
static void wrong_tables_are_refused(void **state)
{
    (void)state;
    struct direct_rows rows;
    struct hw_gpu gpu = {0};
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        direct_rows_load(&rows, MEASURED "/direct.csv", "no-such-gpu", &gpu, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "no-such-gpu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_out_shapes_are_predicted),
        cmocka_unit_test(a_fit_gives_back_what_times_were_made_of),
        cmocka_unit_test(sampled_power_does_not_tell_gb200s_rate),
        cmocka_unit_test(a_profile_says_what_the_fit_says),
        cmocka_unit_test(wrong_tables_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
