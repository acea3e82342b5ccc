/* Draws of numbers: their median and spread, what stays, what is shared, what goes together. */
#include "config/config.h"
#include "hw/draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <gsl/gsl_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../near.h"

enum { N = 10000 };
static const struct hw_fits none;
static const struct quantity fitted = {100e9, 5e9, QUANTITY_FITTED, "these words", "a/fit"};

static struct hw machine(void)
{
    struct hw hw = {0};
    hw.gpu.hbm_bandwidth = (struct quantity){2e12, 0, QUANTITY_DATASHEET, "a datasheet", NULL};
    hw.gpu.gemm[DTYPE_BF16].load_bandwidth = hw.gpu.gemm[DTYPE_FP16].load_bandwidth = fitted;
    hw.gpu.gemm[DTYPE_FP32].load_bandwidth = fitted;
    hw.gpu.gemm[DTYPE_FP16].load_bandwidth.source = "other words of the same fit";
    hw.gpu.gemm[DTYPE_FP32].load_bandwidth.fit = "another/fit";
    hw.gpu.gemm_sustained = (struct quantity){0.9, 0.09, QUANTITY_FITTED, "a table", "a/fit"};
    hw.gpu.attention_efficiency = (struct quantity){0.6, 0, QUANTITY_ASSUMED, "a guess", NULL};
    hw.gpu.hbm_efficiency = (struct quantity){0.8, 0, QUANTITY_MEASURED, "a table", NULL};
    hw.gpu.kernel_floor = (struct quantity){2e-6, 0, QUANTITY_ASSUMED, "a guess", NULL};
    hw.gpu.sms = (struct quantity){108, 0, QUANTITY_ASSUMED, "a guess", NULL};
    hw.gpu.context_bytes = (struct quantity){5e8, 0, QUANTITY_ASSUMED, "a guess", NULL};
    hw.gpu.pointwise_efficiency = (struct quantity){1, 0, QUANTITY_ASSUMED, "a guess", NULL};
    return hw;
}

/* Kernels read the node's numbers from the GPU, where hw_derive puts them: a draw must reach these,
 * too. */
static void a_draw_reaches_what_the_gpu_has_of_its_node(void **state)
{
    (void)state;
    struct hw hw = machine();
    hw.node.pcie_bandwidth = (struct quantity){25e9, 0, QUANTITY_ASSUMED, "a guess", NULL};
    hw.node.image_time = (struct quantity){1e-4, 0, QUANTITY_MEASURED, "a row", NULL};
    hw_draw(&hw, &none, 1, 1);
    assert_true(hw.node.pcie_bandwidth.value != 25e9 && hw.node.image_time.value != 1e-4);
    assert_true(hw.gpu.host_link_Bps == hw.node.pcie_bandwidth.value);
    assert_true(hw.gpu.host_image_s == hw.node.image_time.value);
}

/* A guess in each file of a cluster moves. */
static void all_files_are_drawn(void **state)
{
    (void)state;
    struct hw hw = machine();
    hw.node.nccl_hop_latency = hw.cluster.nccl_net_latency =
        (struct quantity){1e-6, 0, QUANTITY_ASSUMED, "a guess", NULL};
    hw_draw(&hw, &none, 1, 1);
    assert_true(hw.gpu.kernel_floor.value != 2e-6);
    assert_true(hw.node.nccl_hop_latency.value != 1e-6);
    assert_true(hw.cluster.nccl_net_latency.value != 1e-6);
}

static double log_odds(double share)
{
    return log(share / (1 - share));
}

/* Of 10^4 draws the mean is within 4 sigma / sqrt(n) = 4 % of sigma, the variance within 4 sqrt(2 /
 * n) = 5.7 %. */
struct moments {
    double sum, squares;
};

static void add(struct moments *m, double z)
{
    m->sum += z;
    m->squares += z * z;
}

static void check_standard(const struct moments *m)
{
    assert_near(m->sum / N, 0, 0.04);
    assert_near(m->squares / N, 1, 0.057);
}

static void median_and_spread(void **state)
{
    (void)state;
    struct moments rate = {0}, share = {0}, guess = {0}, table = {0}, latency = {0};
    double product = 0;
    for (int k = 0; k < N; k++) {
        struct hw hw = machine();
        hw_draw(&hw, &none, 1, (uint64_t)k);
        double z = log(hw.gpu.gemm[DTYPE_BF16].load_bandwidth.value / fitted.value) /
                   0.05; /* 5 GB/s of 100 */
        add(&rate, z);
        product += z * log(hw.gpu.gemm[DTYPE_FP32].load_bandwidth.value / fitted.value) / 0.05;
        add(&share,
            (log_odds(hw.gpu.gemm_sustained.value) - log_odds(0.9))); /* 0.09 / (0.9 x 0.1) = 1 */
        add(&guess, (log_odds(hw.gpu.attention_efficiency.value) - log_odds(0.6)) / DRAW_ASSUMED);
        add(&table, (log_odds(hw.gpu.hbm_efficiency.value) - log_odds(0.8)) / DRAW_MEASURED);
        add(&latency, log(hw.gpu.kernel_floor.value / 2e-6) / DRAW_ASSUMED);
        assert_near(hw.gpu.gemm[DTYPE_FP16].load_bandwidth.value,
            hw.gpu.gemm[DTYPE_BF16].load_bandwidth.value, 0);
        /* a datasheet's number, counts, sizes, and all of something stay */
        assert_near(hw.gpu.hbm_bandwidth.value, 2e12, 0);
        assert_near(hw.gpu.sms.value, 108, 0);
        assert_near(hw.gpu.context_bytes.value, 5e8, 0);
        assert_near(hw.gpu.pointwise_efficiency.value, 1, 0);
    }
    check_standard(&rate);
    check_standard(&share);
    check_standard(&guess);
    check_standard(&table);
    check_standard(&latency);
    assert_near(product / N, 0, 0.04); /* another fit is another draw */
}

static void draws_are_reproducible(void **state)
{
    (void)state;
    struct hw a = machine(), b = machine(), other_draw = machine(), other_seed = machine();
    hw_draw(&a, &none, 7, 3);
    hw_draw(&b, &none, 7, 3);
    hw_draw(&other_draw, &none, 7, 4);
    hw_draw(&other_seed, &none, 8, 3);
    double value = a.gpu.gemm[DTYPE_BF16].load_bandwidth.value;
    assert_near(b.gpu.gemm[DTYPE_BF16].load_bandwidth.value, value, 0);
    assert_true(other_draw.gpu.gemm[DTYPE_BF16].load_bandwidth.value != value);
    assert_true(other_seed.gpu.gemm[DTYPE_BF16].load_bandwidth.value != value);
    assert_near(hw_draw_normal("k", "s", 7, 3), hw_draw_normal("k", "s", 7, 3), 0);
    assert_true(hw_draw_normal("k", "s", 7, 3) != hw_draw_normal("k", "s", 7, 4));
}

static enum status load(
    struct hw_fits *fits, const char *text, struct arena *arena, struct diag *diag)
{
    char path[] = "/tmp/flopcast_fits_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    enum status status = hw_fits_load(fits, path, arena, diag);
    unlink(path);
    return status;
}

#define FITS(rows)                                                                                 \
    "fits:\n  - parameters:\n      - {key: absent, fit: a/fit}\n      - {key: load_bandwidth, "    \
    "fit: a/fit}\n"                                                                                \
    "      - {key: gemm_sustained, fit: a/fit}\n    correlations: " rows "\n"

/* Parameters of a fit go together as the file says, also through one that the machine does not
 * have. The standard error of a correlation r of 10^4 draws is (1 - r^2) / 100. */
static void fits_are_drawn_with_their_correlations(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_fits fits;
    assert_int_equal(load(&fits, FITS("[[0.3], [0.3, -0.8]]"), &arena, &diag), STATUS_OK);
    struct moments rate = {0}, share = {0};
    double together = 0;
    for (int k = 0; k < N; k++) {
        struct hw hw = machine();
        hw_draw(&hw, &fits, 1, (uint64_t)k);
        double x = log(hw.gpu.gemm[DTYPE_BF16].load_bandwidth.value / fitted.value) / 0.05;
        double y = log_odds(hw.gpu.gemm_sustained.value) - log_odds(0.9);
        add(&rate, x);
        add(&share, y);
        together += x * y;
    }
    check_standard(&rate);
    check_standard(&share);
    assert_near(together / sqrt(rate.squares * share.squares), -0.8, 4 * 0.0036);
    arena_release(&arena);
}

static void correlations_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } files[] = {
        {FITS("[[0.9], [0.9, -0.9]]"),
            "not positive definite"}, /* 1 + 2 (0.9)(0.9)(-0.9) - 3 (0.81) < 0 */
        {FITS("[[0.9]]"), "1 lists for 3 parameters; one less than those is wanted"},
        {FITS("[[0.9], [0.1]]"),
            "1 numbers here; 2 are wanted: with each parameter before 'gemm_sustained'"},
        {FITS("[[x], [0, 0]]"), "'x'"},
        {"fit: []\n", "did you mean 'fits'?"},
        {"fits: [{parameters: [{key: a}], correlations: []}]\n", "needs the key 'fit'"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct hw_fits fits;
        gsl_set_error_handler_off();
        assert_int_equal(load(&fits, files[i].text, &arena, &diag), STATUS_INPUT);
        if (!strstr(diag.text, files[i].expected))
            fail_msg("reported: %s", diag.text);
        arena_release(&arena);
    }
}

/* What the sampler reads stands for numbers that the files still have, with these ids. */
static void the_projects_correlations_can_be_read(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_fits fits;
    hw_fits_load(&fits, FLOPCAST_SOURCE_DIR "/topologies/fitted/correlations.yaml", &arena, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(fits.n, 4); /* of NCCL, of training rates, of the hosts of two stacks */
    struct hw hw;
    assert_int_equal(
        hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml", &arena, &diag),
        STATUS_OK);
    int found = 0;
    for (int f = 0; f < fits.n; f++)
        for (int i = 0; i < fits.list[f].n; i++)
            found += strcmp(fits.list[f].ids[i], hw.gpu.gemm_sustained.fit) == 0 ||
                     strcmp(fits.list[f].ids[i], hw.gpu.norm_row_time.fit) == 0;
    assert_true(found >= 2);
    arena_release(&arena);
}

/* Walks the sourced numbers of a table: gives each an error of ten times itself, or counts those at
 * a limit of their field, beyond which none may be. */
static int walk(void *into, const struct config_table *table, bool check)
{
    int at_limit = 0;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        void *at = (unsigned char *)into + field->offset;
        if (field->type == FIELD_SECTION)
            at_limit += walk(at, field->section, check);
        if (field->type != FIELD_SOURCED || !quantity_is_set(*(struct quantity *)at) ||
            field->max == 0)
            continue;
        struct quantity *q = at;
        if (!check)
            q->std_error = 10 * q->value;
        else if (q->value < field->min || q->value > field->max)
            fail_msg("%s is %g, not from %g to %g", field->key, q->value, field->min, field->max);
        at_limit += check && (q->value == field->min || q->value == field->max);
    }
    return at_limit;
}

/* However little is known of a number: what is drawn is one that its file could say. */
static void draws_stay_within_the_limits_of_their_fields(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    int at_limit = 0;
    hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml", &arena, &diag);
    assert_string_equal(diag.text, "");
    for (uint64_t k = 0; k < 20; k++) {
        struct hw drawn = hw;
        for (int check = 0; check < 2; check++) {
            if (check)
                hw_draw(&drawn, &none, 1, k);
            at_limit += walk(&drawn.gpu, &hw_gpu_table, check) +
                        walk(&drawn.node, &hw_node_table, check) +
                        walk(&drawn.cluster, &hw_cluster_table, check);
        }
    }
    assert_true(at_limit > 100); /* the limits were tried */
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_files_are_drawn),
        cmocka_unit_test(median_and_spread),
        cmocka_unit_test(draws_are_reproducible),
        cmocka_unit_test(a_draw_reaches_what_the_gpu_has_of_its_node),
        cmocka_unit_test(fits_are_drawn_with_their_correlations),
        cmocka_unit_test(draws_stay_within_the_limits_of_their_fields),
        cmocka_unit_test(correlations_that_cannot_be),
        cmocka_unit_test(the_projects_correlations_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
