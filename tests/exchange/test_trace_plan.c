/* A step of a trace as a plan, op by op; the durations on another GPU by hand. */
#include "exchange/trace_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "../number.h"

#include <string.h>

#define US ((ps_t)1000000)
static const double SAME = 1e-12;

enum { COMPUTE = 7, NCCL = 20 };

static const struct hw hw = {
    .gpu = {.name = "from",
        .gemm[DTYPE_BF16] = {.peak = NUMBER(100e12), .efficiency = NUMBER(0.8)},
        .gemm_sustained = NUMBER(0.9),
        .attention_efficiency = NUMBER(0.5),
        .hbm_bandwidth = NUMBER(1e12),
        .hbm_efficiency = NUMBER(0.9),
        .host_link_Bps = 10e9,
        .kernel_floor = NUMBER(2e-6),
        .gemm_floor = NUMBER(5e-6)},
    .node.gpus = NUMBER(8),
    .node.nics = NUMBER(8)};

/* Four times the peak, twice the HBM, half the link, half the floor. */
static struct hw_gpu faster(void)
{
    struct hw_gpu gpu = hw.gpu;
    gpu.gemm[DTYPE_BF16].peak.value = 400e12;
    gpu.hbm_bandwidth.value = 2e12;
    gpu.host_link_Bps = 5e9;
    gpu.kernel_floor.value = 1e-6;
    return gpu;
}

/* GEMMs by what they reach, attention by its own share of the peak besides, what streams by HBM,
 * copies by the link. Errors add in squares: of peaks known to 3 and 4 % that are all there is, 5
 * %. */
static void ratios_of_two_gpus(void **state)
{
    (void)state;
    struct hw_gpu to = faster();
    double error;
    to.gemm[DTYPE_BF16].efficiency.value = 0.4;
    to.gemm_sustained.value = 0.45;
    assert_near(trace_gpu_ratio(KERNEL_GEMM, &hw.gpu, &to, &error), 1. / 4 * 2 * 2, SAME);
    to.attention_efficiency.value = 0.125;
    assert_near(trace_gpu_ratio(KERNEL_ATTENTION, &hw.gpu, &to, &error), 1. / 4 * 2 * 2 * 4, SAME);
    to.hbm_efficiency.value = 0.6;
    assert_near(trace_gpu_ratio(KERNEL_NORM, &hw.gpu, &to, &error), 0.5 * 0.9 / 0.6, SAME);
    assert_near(trace_gpu_ratio(KERNEL_HOST_COPY, &hw.gpu, &to, &error), 2, SAME);
    assert_near(error, 0, 0);
    struct hw_gpu a = {.gemm[DTYPE_FP16].peak = {100e12, 3e12, QUANTITY_MEASURED, "test", NULL}},
                  b = a;
    b.gemm[DTYPE_FP16].peak = (struct quantity){200e12, 8e12, QUANTITY_MEASURED, "test", NULL};
    a.gemm[DTYPE_BF16].peak = (struct quantity)NUMBER(1e12); /* the other has none: FP16 */
    assert_near(trace_gpu_ratio(KERNEL_GEMM, &a, &b, &error), 0.5, SAME);
    assert_near(error, 0.05, SAME);
}

static void put(struct trace *trace, struct arena *arena, int class, int stream, int phase,
    double launched_us, double start_us, double end_us)
{
    vec_push(&trace->activities,
        (struct trace_activity){.start = (ps_t)(start_us * (double)US),
            .end = (ps_t)(end_us * (double)US),
            .name = trace_name(trace, arena_printf(arena, "k%d", trace->activities.n), arena),
            .stream = stream,
            .class = (uint8_t) class,
            .phase = (uint8_t)phase,
            .kind = COLL_ALL_GATHER,
            .ranks = class == TRACE_COLLECTIVE ? 8 : 0,
            .group = -1,
            .bytes = 1e6,
            .launched = (ps_t)(launched_us * (double)US),
            .returned = (ps_t)((launched_us + 5) * (double)US),
            .product = -1});
}

/* A millisecond of one of 8 ranks: a GEMM of 500 us, a pointwise kernel of 30, an all_gather that
 * follows them, and an update of 102 us that begins 4 us after it and waited for it. */
static void fill(struct trace *trace, struct arena *arena)
{
    *trace = (struct trace){.world_size = 8, .found = TRACE_ANNOTATED, .has_launches = true};
    put(trace, arena, KERNEL_GEMM, COMPUTE, PHASE_FORWARD, 10, 30, 530);
    put(trace, arena, KERNEL_ELEMENTWISE, COMPUTE, PHASE_BACKWARD, 25, 531, 561);
    put(trace, arena, TRACE_COLLECTIVE, NCCL, PHASE_BACKWARD, 40, 565, 665);
    put(trace, arena, KERNEL_OPTIMIZER, COMPUTE, PHASE_OPTIMIZER, 60, 669, 771);
    vec_push(&trace->steps, (struct trace_step){30 * US, 771 * US, 0, 1000 * US, 3});
}

static void make(
    struct trace_planned *out, const struct hw *on, int gpus, bool recorded, struct arena *arena)
{
    struct trace trace;
    struct diag diag = DIAG_INIT;
    fill(&trace, arena);
    const struct trace_plan_options options = {
        .step = -1, .gpus = gpus, .recorded = recorded, .hw = on, .traced = &hw.gpu};
    if (trace_plan(out, &(struct traced_rank){&trace, "t"}, 1, &options, arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    trace_free(&trace);
}

static const struct plan_op *op_named(const struct trace_planned *planned, const char *name)
{
    const struct plan_program *program = planned->plan.programs;
    for (int i = 0; i < program->ops.n; i++)
        if (strcmp(program->ops.at[i].name, name) == 0)
            return &program->ops.at[i];
    fail_msg("no op %s", name);
    return NULL;
}

static const struct kernel_work *work_named(const struct trace_planned *planned, const char *name)
{
    return &planned->plan.kernels.at[op_named(planned, name)->index];
}

/* The host takes 15 us up to the first launch, then 15, 15 and 20; the rest of the millisecond at
 * the end. Kernels have their durations with the microsecond or 4 that the GPU took to come to
 * them; the GEMM, of unknown shape, is one that the SMs limit. */
static void the_same_on_as_many(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct trace_planned planned;
    make(&planned, &hw, 0, false, &arena);
    static const double host_us[] = {15, 15, 15, 20};
    for (int i = 0; i < 4; i++)
        assert_near((double)op_named(&planned, arena_printf(&arena, "k%d", i))->host_s,
            host_us[i] * 1e-6, 1e-11);
    assert_near((double)op_named(&planned, "host")->host_s, 935e-6, 1e-9);
    assert_int_equal(work_named(&planned, "k0")->kind, KERNEL_RECORDED);
    assert_int_equal(work_named(&planned, "k0")->m, 500000);
    assert_int_equal(work_named(&planned, "k0")->n, 1);
    assert_int_equal(work_named(&planned, "k1")->kind, KERNEL_ELEMENTWISE);
    assert_int_equal(work_named(&planned, "k1")->recorded_ns, 31000);
    assert_int_equal(work_named(&planned, "k3")->recorded_ns, 106000);
    assert_int_equal(op_named(&planned, "k1")->phase, PHASE_BACKWARD);
    const struct plan_op *update = op_named(&planned, "k3"), *gather = op_named(&planned, "k2");
    assert_int_equal(update->n_waits, 1);
    assert_ptr_equal(
        &planned.plan.programs[0].ops.at[planned.plan.programs[0].waits.at[update->first_wait]],
        gather);
    assert_int_equal(gather->kind, OP_COLLECTIVE);
    assert_true(gather->n_waits > 0);
    for (int w = 0; w < gather->n_waits;
         w++) /* as NCCL's stream does, for what compute had been given */
        assert_ptr_equal(&planned.plan.programs[0]
                              .ops.at[planned.plan.programs[0].waits.at[gather->first_wait + w]],
            op_named(&planned, "k1"));
    assert_int_equal(planned.ranks, 8);
    assert_int_equal(planned.step, 3);
    assert_int_equal(planned.kernels, 3);
    assert_near(planned.step_s, 1000e-6, SAME); /* the host takes longer than the GPU, 741 us */
    plan_release(&planned.plan);
    make(
        &planned, &hw, 0, true, &arena); /* the collective, first of its stream, takes its 100 us */
    assert_int_equal(work_named(&planned, "k2")->m, 100000);
    plan_release(&planned.plan);
    arena_release(&arena);
}

static int queue_kind(const struct trace_planned *planned, const struct plan_op *op)
{
    return (int)planned->plan.queues.at[op->stream].kind;
}

/* async_op=False of PyTorch 2.8: the gather of the second step in it is on the compute stream,
 * behind k1, and k3 comes after it; that of the first is on NCCL's stream. They are of one group,
 * so on one queue; each stream goes on after its own, by a kernel of no length. A stream with
 * little else than copies beside its collectives is NCCL's. */
static void a_collective_in_the_order_of_compute(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct trace_planned planned;
    struct trace trace = {.world_size = 8, .found = TRACE_ANNOTATED, .has_launches = true};
    put(&trace, &arena, TRACE_COLLECTIVE, NCCL, PHASE_FORWARD, 10, 20, 300);
    put(&trace, &arena, KERNEL_GEMM, COMPUTE, PHASE_FORWARD, 20, 30, 530);
    put(&trace, &arena, TRACE_COLLECTIVE, COMPUTE, PHASE_BACKWARD, 40, 531, 631);
    put(&trace, &arena, KERNEL_ELEMENTWISE, COMPUTE, PHASE_BACKWARD, 60, 632, 642);
    put(&trace, &arena, KERNEL_COPY, NCCL, PHASE_BACKWARD, 70, 640, 650);
    vec_push(&trace.steps, (struct trace_step){20 * US, 650 * US, 0, 650 * US, 3});
    const struct trace_plan_options options = {.step = -1, .hw = &hw, .traced = &hw.gpu};
    if (trace_plan(&planned, &(struct traced_rank){&trace, "t"}, 1, &options, &arena, &diag) !=
        STATUS_OK)
        fail_msg("%s", diag.text);
    const struct plan_program *program = planned.plan.programs;
    const struct plan_op *reduce = op_named(&planned, "k2"), *after = reduce + 1;
    assert_int_equal(reduce->kind, OP_COLLECTIVE);
    assert_int_equal(queue_kind(&planned, reduce), QUEUE_COMM);
    assert_int_equal(reduce->stream, op_named(&planned, "k0")->stream);
    assert_ptr_equal(
        &program->ops.at[program->waits.at[reduce->first_wait]], op_named(&planned, "k1"));
    assert_string_equal(after->name, "k2");
    assert_int_equal(after->kind, OP_KERNEL);
    assert_int_equal(after->stream, STREAM_COMPUTE);
    assert_ptr_equal(&program->ops.at[program->waits.at[after->first_wait]], reduce);
    assert_int_equal(planned.plan.kernels.at[after->index].m, 0);
    assert_int_equal(op_named(&planned, "k3")->stream, STREAM_COMPUTE);
    assert_int_equal(op_named(&planned, "k4")->stream, STREAM_COMM);
    plan_release(&planned.plan);
    trace_free(&trace);
    arena_release(&arena);
}

/* On 16 the gather is over 16 ranks, and the update of a shard takes half of what is above its
 * floor of 2 us: 54. */
static void shards_become_smaller(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct trace_planned planned;
    make(&planned, &hw, 16, false, &arena);
    assert_int_equal(work_named(&planned, "k3")->recorded_ns, 54000);
    assert_int_equal(work_named(&planned, "k1")->recorded_ns, 31000);
    assert_int_equal(planned.sharded, 1);
    assert_int_equal(planned.grown, 1);
    const struct plan_collective *gather =
        &planned.plan.collectives.at[op_named(&planned, "k2")->index];
    assert_int_equal(planned.plan.groups.at[gather->group].ranks.size, 16);
    assert_int_equal(gather->serves, PARALLEL_DATA);
    assert_near(gather->bytes, 1e6, 0);
    plan_release(&planned.plan);
    arena_release(&arena);
}

/* A copy on a stream beside compute waits for a reduction: of a reduce_scatter it copies a shard,
 * of an all_reduce, beside the gather of shards, the whole. */
static void what_follows_an_all_reduce_is_whole(void **state)
{
    enum { BESIDE = 9 };
    (void)state;
    for (int scatter = 0; scatter <= 1; scatter++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct trace_planned planned;
        struct trace trace = {.world_size = 8, .found = TRACE_ANNOTATED, .has_launches = true};
        put(&trace, &arena, TRACE_COLLECTIVE, NCCL, PHASE_FORWARD, 5, 20, 30);
        put(&trace, &arena, KERNEL_GEMM, COMPUTE, PHASE_BACKWARD, 10, 31, 500);
        put(&trace, &arena, TRACE_COLLECTIVE, NCCL, PHASE_BACKWARD, 20, 501, 600);
        put(&trace, &arena, KERNEL_COPY, BESIDE, PHASE_BACKWARD, 30, 601, 650);
        trace.activities.at[2].kind = (int8_t)(scatter ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE);
        vec_push(&trace.steps, (struct trace_step){20 * US, 650 * US, 0, 650 * US, 3});
        const struct trace_plan_options options = {
            .step = -1, .gpus = 16, .hw = &hw, .traced = &hw.gpu};
        if (trace_plan(&planned, &(struct traced_rank){&trace, "t"}, 1, &options, &arena, &diag) !=
            STATUS_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(planned.grown, 2);
        assert_int_equal(planned.sharded, scatter);
        plan_release(&planned.plan);
        trace_free(&trace);
        arena_release(&arena);
    }
}

/* On the faster GPU what is above the floor changes: 495 us of GEMM to a quarter, 29 of the
 * pointwise kernel to half; the floor is the new one where that is lower, 1 us for 2. */
static void another_gpu_has_another_floor(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct trace_planned planned;
    struct hw other = hw;
    other.gpu = faster();
    make(&planned, &other, 0, false, &arena);
    assert_int_equal(work_named(&planned, "k0")->m, 5000 + 495000 / 4);
    assert_int_equal(work_named(&planned, "k1")->recorded_ns, 1000 + 29000 / 2);
    plan_release(&planned.plan);
    arena_release(&arena);
}

/* Without events a kernel waits for what ended last on another stream, up to 15 us before it
 * begins: b for e, not for a, which ended a microsecond before, nor for f, which ended later. c
 * began right behind b, of the same stream, and long after d's launch nothing had ended: they wait
 * for nothing. */
static void a_kernel_follows_what_ended(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct trace_planned planned;
    struct trace trace = {.world_size = 8, .found = TRACE_ANNOTATED, .has_launches = true};
    static const struct {
        const char *name;
        int stream;
        double launched_us, start_us, end_us;
    } kernels[] = {{"a", COMPUTE, 10, 30, 530}, {"e", 12, 12, 100, 531}, {"f", 13, 14, 100, 552},
        {"b", 9, 20, 533, 560}, {"c", 9, 40, 565, 600}, {"d", 11, 50, 700, 710}};
    enum { KERNELS = sizeof kernels / sizeof *kernels };
    for (int i = 0; i < KERNELS; i++)
        put(&trace, &arena, KERNEL_ELEMENTWISE, kernels[i].stream, PHASE_FORWARD,
            kernels[i].launched_us, kernels[i].start_us, kernels[i].end_us);
    vec_push(&trace.steps, (struct trace_step){30 * US, 710 * US, 0, 1000 * US, 3});
    const struct trace_plan_options options = {.step = -1, .hw = &hw, .traced = &hw.gpu};
    if (trace_plan(&planned, &(struct traced_rank){&trace, "t"}, 1, &options, &arena, &diag) !=
        STATUS_OK)
        fail_msg("%s", diag.text);
    const struct plan_program *program = planned.plan.programs;
    for (int i = 0; i < KERNELS; i++) {
        const struct plan_op *op = op_named(&planned, arena_printf(&arena, "k%d", i));
        assert_int_equal(op->n_waits, *kernels[i].name == 'b');
        if (op->n_waits)
            assert_string_equal(program->ops.at[program->waits.at[op->first_wait]].name, "k1");
    }
    plan_release(&planned.plan);
    trace_free(&trace);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios_of_two_gpus),
        cmocka_unit_test(the_same_on_as_many),
        cmocka_unit_test(a_collective_in_the_order_of_compute),
        cmocka_unit_test(shards_become_smaller),
        cmocka_unit_test(what_follows_an_all_reduce_is_whole),
        cmocka_unit_test(another_gpu_has_another_floor),
        cmocka_unit_test(a_kernel_follows_what_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
