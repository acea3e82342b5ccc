/* Which numbers are known for one of two machines only. */
#include "hw/evidence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"

#include <string.h>

#define NUMBER(value, kind) ((struct quantity){(value), 0, QUANTITY_##kind, "test", NULL})

static const struct hw nothing;

/* Two machines that are known alike, whatever their numbers. */
static void alike(struct hw *a, struct hw *b)
{
    *a = *b = (struct hw){0};
    a->gpu.hbm_efficiency = NUMBER(0.9, MEASURED);
    b->gpu.hbm_efficiency = NUMBER(0.8, FITTED);
    a->cluster.nccl_efficiency = NUMBER(0.9, ASSUMED);
    b->cluster.nccl_efficiency = NUMBER(0.7, ASSUMED);
    a->gpu.kernel_floor = NUMBER(2e-6, ASSUMED); /* borrowed: the same number */
    b->gpu.kernel_floor = NUMBER(2e-6, MEASURED);
    a->gpu.hbm_bandwidth = NUMBER(2e12, DATASHEET); /* a rate */
    b->gpu.hbm_bandwidth = NUMBER(3e12, ASSUMED);
    a->gpu.sms = NUMBER(108, DATASHEET); /* a count */
    b->gpu.sms = NUMBER(132, ASSUMED);
    a->gpu.price = NUMBER(1, ASSUMED);
    a->gpu.power.busy = NUMBER(0.9, MEASURED); /* power: no time depends on it */
    a->node.host_power = NUMBER(2000, MEASURED);
    b->cluster.pue = NUMBER(1.1, MEASURED);
}

static void list(
    struct hw_unlikes *out, const struct hw *a, const struct hw *b, const struct hw *given, struct arena *arena)
{
    const struct hw *const machines[2] = {a, b}, *const gave[2] = {&nothing, given};
    hw_unlike(out, machines, gave, arena);
}

static void what_is_known_alike_is_not_reported(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw_unlikes found;
    struct hw a, b;
    alike(&a, &b);
    list(&found, &a, &b, &nothing, &arena);
    assert_int_equal(found.list.n, 0);
    arena_release(&arena);
}

/* The better known number goes to both, on whichever side it is. */
static void what_one_side_knows_goes_to_both(void **state)
{
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        struct arena arena = ARENA_INIT;
        struct hw_unlikes found;
        struct hw machines[2], *known = &machines[swap], *other = &machines[!swap];
        alike(&machines[0], &machines[1]);
        known->gpu.gemm_sustained = NUMBER(0.792, FITTED);
        known->gpu.gemm[DTYPE_BF16].k_overhead = NUMBER(166, MEASURED);
        other->gpu.gemm[DTYPE_BF16].k_overhead = NUMBER(190, ASSUMED);
        known->node.nccl_hop_latency = NUMBER(3e-6, ASSUMED);  /* better than nothing */
        known->cluster.nccl_net_latency = NUMBER(0, MEASURED); /* known to be nothing */
        list(&found, &machines[0], &machines[1], &nothing, &arena);
        assert_int_equal(found.list.n, 4);
        static const char *const keys[] = {"gpu.gemm_sustained", "gpu.gemm.bf16.k_overhead",
            "cluster.node.nccl_hop_latency", "cluster.nccl_net_latency"};
        for (int i = 0; i < 4; i++) {
            assert_string_equal(found.list.at[i].key, keys[i]);
            hw_even_out(&machines[0], &machines[1], &found.list.at[i]);
        }
        assert_string_equal(hw_unlike_text(&found.list.at[0], swap, &arena), "0.792 (fitted)");
        assert_string_equal(hw_unlike_text(&found.list.at[0], !swap, &arena), "none");
        assert_string_equal(hw_unlike_text(&found.list.at[2], swap, &arena), "3 us (assumed)");
        for (int m = 0; m < 2; m++) {
            assert_near(machines[m].gpu.gemm_sustained.value, 0.792, 0);
            assert_near(machines[m].gpu.gemm[DTYPE_BF16].k_overhead.value, 166, 0);
            assert_near(machines[m].node.nccl_hop_latency.value, 3e-6, 0);
        }
        vec_free(&found.list);
        list(&found, &machines[0], &machines[1], &nothing, &arena);
        assert_int_equal(found.list.n, 0);
        arena_release(&arena);
    }
}

/* What somebody gives in place of the file's number is a choice. */
static void what_is_given_is_no_evidence(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw_unlikes found;
    struct hw a, b, given = nothing;
    alike(&a, &b);
    a.gpu.gemm_sustained = NUMBER(0.792, FITTED);
    b.gpu.gemm_sustained = given.gpu.gemm_sustained = NUMBER(0.9, ASSUMED);
    list(&found, &a, &b, &given, &arena);
    assert_int_equal(found.list.n, 0);
    list(&found, &a, &b, &nothing, &arena);
    assert_int_equal(found.list.n, 1);
    vec_free(&found.list);
    arena_release(&arena);
}

/* Every number of a file can be looked at. */
static void own_clusters(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_unlikes found;
    struct hw h100, h200, hbm2e;
    const char *folder = FLOPCAST_SOURCE_DIR "/topologies/clusters";
    assert_int_equal(hw_load(&h100, arena_printf(&arena, "%s/h100-8x400g.yaml", folder), &arena, &diag), STATUS_OK);
    assert_int_equal(hw_load(&h200, arena_printf(&arena, "%s/h200-8x400g.yaml", folder), &arena, &diag), STATUS_OK);
    assert_int_equal(
        hw_load(&hbm2e, arena_printf(&arena, "%s/h100-hbm2e-8x400g.yaml", folder), &arena, &diag), STATUS_OK);
    list(&found, &h100, &h200, &nothing, &arena);
    for (int i = 0; i < found.list.n; i++) /* one silicon, so what training showed is not among them */
        if (strstr(found.list.at[i].key, "sustained") || strstr(found.list.at[i].key, "overlap"))
            fail_msg("%s: %s, %s", found.list.at[i].key, hw_unlike_text(&found.list.at[i], 0, &arena),
                hw_unlike_text(&found.list.at[i], 1, &arena));
    vec_free(&found.list);
    list(&found, &h100, &hbm2e, &nothing, &arena);
    assert_true(found.list.n > 0); /* hbm_efficiency, measured on the one */
    vec_free(&found.list);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_alike_is_not_reported),
        cmocka_unit_test(what_one_side_knows_goes_to_both),
        cmocka_unit_test(what_is_given_is_no_evidence),
        cmocka_unit_test(own_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
