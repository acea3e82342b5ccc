/* Operators of a run without a GPU: what kernel each is, and the trace that they become, read back. */
#include "foreign/ops.h"
#include "foreign/trace_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"

#define MM                                                                                                             \
    "{\"op\": \"aten.mm.default\", \"dtype\": \"torch.float16\", \"in\": [[64, 32], [32, 16]], \"out\": [[64, "        \
    "16]]}\n"
#define REDUCE(ranks)                                                                                                  \
    "{\"op\": \"c10d.allreduce_\", \"collective\": \"allreduce\", \"group\": \"dp\", \"ranks\": " ranks                \
    ", \"dtype\": \"float32\", \"phase\": \"backward\", \"in\": [[1000]], \"out\": [[1000]]}\n"

/* A V100, which has no BF16. */
static struct hw_gpu gpu_of(struct arena *arena)
{
    struct hw_gpu gpu;
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        hw_load_gpu(&gpu, FLOPCAST_SOURCE_DIR "/topologies/gpus/v100-sxm2-32gb.yaml", arena, &diag), STATUS_OK);
    return gpu;
}

struct made {
    char *text;
    size_t n;
    struct ops_counts counts;
    struct diag diag;
    enum status status;
};

static struct made make(const char *lines)
{
    struct made made = {.diag = DIAG_INIT};
    struct arena arena = ARENA_INIT;
    struct hw_gpu gpu = gpu_of(&arena);
    const struct ops_options options = {.gpu = &gpu, .issue_s = 10e-6};
    FILE *out = open_memstream(&made.text, &made.n);
    made.status = ops_write_trace_of(&made.counts, out, lines, strlen(lines), &options, &made.diag);
    fclose(out);
    arena_release(&arena);
    assert_int_equal(made.status == STATUS_OK, made.diag.n_errors == 0);
    return made;
}

static struct kernel_work kernel_of(const char *name, struct op_shapes shapes)
{
    struct kernel_work work;
    assert_int_equal(ops_kernel(&work, name, &shapes, DTYPE_BF16, 2), OPS_KERNEL);
    return work;
}

/* m n k of each product, batched and behind a bias; pairs of attention, backward 2.5 times; bytes of what streams. */
static void operators_are_kernels(void **state)
{
    (void)state;
    const struct op_tensor x = {2, {64, 32}}, w = {2, {32, 16}}, y = {2, {64, 16}}, bias = {1, {16}};
    struct kernel_work work = kernel_of("aten.mm.default", (struct op_shapes){{x, w}, {y}, 2, 1, 2560, 1024});
    assert_true(work.kind == KERNEL_GEMM && work.flop == 2.0 * 64 * 32 * 16);
    assert_true(work.read_bytes == 2.0 * (64 * 32 + 32 * 16) && work.write_bytes == 2.0 * 64 * 16);
    work = kernel_of("aten::addmm", (struct op_shapes){{bias, x, w}, {y}, 3, 1, 2576, 1024});
    assert_true(work.flop == 2.0 * 64 * 32 * 16);
    const struct op_tensor b = {3, {5, 64, 32}}, c = {3, {5, 32, 16}}, d = {3, {5, 64, 16}};
    work = kernel_of("aten.bmm.default", (struct op_shapes){{b, c}, {d}, 2, 1, 12800, 5120});
    assert_true(work.batch == 5 && work.flop == 2.0 * 5 * 64 * 32 * 16);
    const struct op_tensor q = {4, {2, 4, 128, 64}};
    const double forward = 4.0 * 128 * 128 * 64 * 8 / 2;
    work =
        kernel_of("aten._scaled_dot_product_flash_attention.default", (struct op_shapes){{q, q, q}, {q}, 3, 1, 3, 1});
    assert_true(work.kind == KERNEL_ATTENTION && work.causal && !work.backward && work.flop == forward);
    work = kernel_of("aten._scaled_dot_product_flash_attention_backward.default",
        (struct op_shapes){{q, q, q, q}, {q, q, q}, 5, 3, 5, 3});
    assert_true(work.backward && work.flop == 2.5 * forward);
    work = kernel_of("aten.add.Tensor", (struct op_shapes){{x, x}, {x}, 2, 1, 4096, 2048});
    assert_true(work.kind == KERNEL_ELEMENTWISE && work.read_bytes == 8192 && work.write_bytes == 4096);
    work = kernel_of("aten._fused_adamw_.default", (struct op_shapes){{x}, {x}, 4, 3, 8192, 6144});
    assert_true(work.kind == KERNEL_OPTIMIZER && work.read_bytes == 16384 && work.write_bytes == 12288);
    /* of a table of 64 x 32 the rows that are wanted */
    const struct op_tensor rows = {2, {3, 32}}, indices = {1, {3}};
    work = kernel_of("aten.embedding.default", (struct op_shapes){{x, indices}, {rows}, 2, 1, 2051, 96});
    assert_true(work.kind == KERNEL_EMBEDDING && work.read_bytes == 192 && work.write_bytes == 192);
}

static void views_are_none(void **state)
{
    (void)state;
    static const char *const views[] = {"aten.view.default", "aten.t.default", "aten._unsafe_view.default",
        "aten::transpose", "aten.split.Tensor", "aten.detach.default", "aten.empty.memory_format"};
    struct op_shapes shapes = {.n_out = 1};
    struct kernel_work work;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        assert_int_equal(ops_kernel(&work, views[i], &shapes, DTYPE_BF16, 2), OPS_VIEW);
    assert_int_equal(ops_kernel(&work, "aten.convolution.default", &shapes, DTYPE_BF16, 2), OPS_REFUSED);
    assert_int_equal(ops_kernel(&work, "aten.tanh.default", &shapes, DTYPE_BF16, 2), OPS_KERNEL); /* no t */
}

/* A product, a reduction over ranks 0, 4, 8, 12 that it precedes, another product beside it, a wait, a third one. */
static void a_trace_is_read_back(void **state)
{
    (void)state;
    struct made made = make(MM REDUCE("[0, 4, 8, 12]") MM "{\"wait\": 2}\n" MM);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct trace trace = {.rank = -1};
    struct input *input = input_open_text("step.json", made.text, made.n);
    assert_int_equal(made.counts.kernels, 3);
    assert_int_equal(made.counts.collectives, 1);
    assert_int_equal(made.counts.ranks, 13);
    assert_int_equal(trace_read_kineto(&trace, input, -1, &arena, &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
    assert_int_equal(trace.activities.n, 4);
    assert_int_equal(trace.steps.n, 1);
    assert_int_equal(trace.found, TRACE_ANNOTATED);
    double took_s = 0;
    for (int i = 0; i < 4; i++) {
        const struct trace_activity *at = &trace.activities.at[i];
        assert_int_equal(at->step, 0);
        took_s += at->class == TRACE_COLLECTIVE ? 0 : s_from_ps(at->end - at->start);
        if (at->class != TRACE_COLLECTIVE)
            continue;
        assert_int_equal(at->kind, COLL_ALL_REDUCE);
        assert_int_equal(at->ranks, 4);
        assert_true(at->bytes == 4000);
        assert_int_equal(at->phase, PHASE_BACKWARD);
        assert_int_equal(trace.groups.at[at->group].stride, 4);
    }
    assert_near(took_s, made.counts.kernels_s, 1e-3);
    assert_true(trace.says_waits);
    assert_int_equal(trace.waits.n, 2);
    assert_int_equal(trace.waits.at[0].stream, 20);
    assert_int_equal(trace.waits.at[0].on, 7);
    assert_int_equal(trace.waits.at[1].stream, 7);
    assert_int_equal(trace.waits.at[1].on, 20);
    input_close(input);
    trace_free(&trace);
    arena_release(&arena);
    free(made.text);
}

static void errors_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *why;
    } cases[] = {{MM "{\"op\": 1", "ops.jsonl:2:"}, {MM "{}\n", "ops.jsonl:2:1: error: an operator is wanted"},
        {MM "[\"op\"]", "ops.jsonl:2:1: error: a line is an object"},
        {MM MM "{\"op\": \"aten.mm.default\", \"dtype\": \"bf16\", \"out\": [[2]]}",
            "ops.jsonl:3:1: error: 'bf16' is no \"dtype\" that is known"},
        {"{\"op\": \"aten.mm.default\", \"dtype\": \"bfloat16\", \"in\": [2], \"out\": [[2]]}",
            "ops.jsonl:1:1: error: shapes are lists in a list"},
        {"{\"op\": \"aten.mm.default\", \"dtype\": \"bfloat16\", \"in\": [[-2]], \"out\": [[2]]}",
            "ops.jsonl:1:1: error: '-2' is no size of a tensor"},
        {"{\"op\": \"aten.convolution.default\", \"dtype\": \"bfloat16\", \"in\": [[2]], \"out\": [[2]]}",
            "ops.jsonl:1:1: error: 'aten.convolution.default' of these shapes has no time"},
        {"{\"op\": \"aten.mm.default\", \"dtype\": \"bfloat16\", \"in\": [[2, 3], [3, 4]], \"out\": [[2, 4]]}",
            "ops.jsonl:1:1: error: GPU 'V100-SXM2-32GB' cannot multiply in bf16"},
        {MM REDUCE("[0, 1, 3]"), "ops.jsonl:2:1: error: the ranks of group 'dp' are not evenly apart"},
        {MM REDUCE("[]"), "ops.jsonl:2:1: error: a collective has a \"group\" and its \"ranks\""},
        {MM REDUCE("[-1]"), "ops.jsonl:2:1: error: '-1' is no rank"},
        {MM "{\"op\": \"x\", \"collective\": \"gossip\", \"dtype\": \"float32\"}",
            "ops.jsonl:2:1: error: 'gossip' is no collective that is known"},
        {MM "{\"wait\": 2}", "ops.jsonl:2:1: error: \"wait\" is the line of a collective before this one"},
        {REDUCE("[0, 1]"), "ops.jsonl: error: no operator of these launches a kernel"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = make(cases[i].lines);
        if (!strstr(made.diag.text, cases[i].why))
            fail_msg("'%s', not '%s'", made.diag.text, cases[i].why);
        free(made.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_are_kernels),
        cmocka_unit_test(views_are_none),
        cmocka_unit_test(a_trace_is_read_back),
        cmocka_unit_test(errors_say_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
