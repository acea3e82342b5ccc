/* Traces of PyTorch's profiler, with the keys that Kineto writes. */
#include "import/kineto_collectives.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct rows {
    struct collective_measurement collectives[8];
    struct kernel_measurement kernels[8];
    char text[8][128]; /* texts of the rows live only during the call */
    int n_collectives, n_kernels;
};

static enum status take_collective(
    void *self, const struct collective_measurement *row, struct diag *diag)
{
    struct rows *rows = self;
    (void)diag;
    rows->collectives[rows->n_collectives++] = *row;
    return STATUS_OK;
}

static enum status take_kernel(void *self, const struct kernel_measurement *row, struct diag *diag)
{
    struct rows *rows = self;
    (void)diag;
    snprintf(rows->text[rows->n_kernels], sizeof *rows->text, "%s", row->name);
    rows->kernels[rows->n_kernels++] = *row;
    return STATUS_OK;
}

static enum status read_trace(struct rows *rows, struct kineto_trace *trace, struct arena *arena,
    const char *text, struct diag *diag)
{
    *rows = (struct rows){0};
    const struct kineto_sink sink = {take_collective, take_kernel, rows};
    struct input *input = input_open_text("x.json", text, strlen(text));
    enum status status = kineto_read(trace, input, &sink, arena, diag);
    assert_int_equal(status == STATUS_OK, diag->n_errors == 0);
    input_close(input);
    return status;
}

#define KERNEL "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "

static void whole_trace(void **state)
{
    struct rows rows;
    struct kineto_trace trace;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    (void)state;
    read_trace(&rows, &trace, &arena,
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H100\"}, "
        "{\"id\": 1, \"name\": \"x\"}],\n"
        " \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"nccl_version\": "
        "\"2.21.5\"},\n"
        " \"traceEvents\": [\n"
        "  {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"ts\": 1, \"dur\": 2},\n"
        /* 2^20 elements of 2 B a rank, 16 ranks: 2^25 B gathered */
        "  " KERNEL "\"ncclDevKernel_AllGather_RING_LL\", \"ts\": 1000.5, \"dur\": 250.25, "
        "\"args\": {\"device\": 0,    \"stream\": 20, \"Collective name\": "
        "\"_allgather_base\", \"In msg nelems\": 1048576,"
        "    \"Out msg nelems\": 16777216, \"Group size\": 16, \"dtype\": \"BFloat16\", \"grid\": "
        "[1, 2, 3]}},\n"
        "  " KERNEL
        "\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\", \"ts\": 2, \"dur\": 40, \"args\": {"
        "    \"Collective name\": \"allreduce\", \"In msg nelems\": 256, \"Out msg nelems\": 256, "
        "\"Group size\": 8,    \"dtype\": \"Float\"}},\n"
        "  " KERNEL
        "\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\", \"ts\": 2, \"dur\": 40, \"args\": {"
        "    \"Collective name\": \"barrier\", \"In msg nelems\": 1, \"Group size\": 8, \"dtype\": "
        "\"Float\"}},\n"
        "  " KERNEL "\"sm90_xmma_gemm \\u00e9\", \"ts\": 3, \"dur\": 12.5, \"args\": {\"device\": "
        "1, \"stream\": 7}},\n"
        "  {\"ph\": \"M\", \"name\": \"process_name\", \"args\": {\"name\": \"python\"}}]}",
        &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(rows.n_collectives, 2);
    const struct collective_measurement *gather = &rows.collectives[0],
                                        *reduce = &rows.collectives[1];
    assert_string_equal(gather->collective, "all_gather");
    assert_int_equal(gather->bytes, 1 << 25);
    assert_int_equal(gather->ranks, 16);
    assert_int_equal(gather->position, 2);
    assert_true(gather->out_of_place_s == 250.25e-6 && gather->in_place_s == 0);
    assert_int_equal(reduce->bytes, 1024);
    assert_true(reduce->out_of_place_s == 0 && reduce->in_place_s == 40 * 1e-6);
    assert_int_equal(rows.n_kernels, 1);
    assert_string_equal(rows.text[0], "sm90_xmma_gemm \xc3\xa9");
    assert_int_equal(rows.kernels[0].device, 1);
    assert_true(rows.kernels[0].duration_s == 12.5 * 1e-6);
    assert_int_equal(trace.left_out, 1);
    assert_string_equal(trace.about.gpu, "NVIDIA H100");
    assert_string_equal(trace.about.nccl_version, "2.21.5");
    arena_release(&arena);
}

/* Names that ProcessGroupNCCL gives collectives, and the sizes of PyTorch's types (torch.dtype's
 * itemsize): 1000 elements into the collective, 500 out of it. */
static void collectives_and_types_of_pytorch(void **state)
{
    (void)state;
    static const struct {
        const char *torch, *name;
        bool in_place;
    } collectives[] = {{"allreduce", "all_reduce", true},
        {"allreduce_coalesced", "all_reduce", true}, {"_allgather_base", "all_gather", false},
        {"all_gather", "all_gather", false}, {"allgather", "all_gather", false},
        {"all_gather_into_tensor_coalesced", "all_gather", false},
        {"allgather_into_tensor_coalesced", "all_gather", false},
        {"_reduce_scatter_base", "reduce_scatter", false},
        {"reduce_scatter", "reduce_scatter", false},
        {"reduce_scatter_tensor_coalesced", "reduce_scatter", false},
        {"broadcast", "broadcast", true}, {"reduce", "reduce", true},
        {"all_to_all", "all_to_all", false}, {"alltoall", "all_to_all", false},
        {"alltoall_base", "all_to_all", false}, {"all_to_allv", "all_to_all", false},
        {"gather", "gather", false}, {"scatter", "scatter", false}};
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"Float", 4}, {"BFloat16", 2}, {"Half", 2}, {"Double", 8}, {"Byte", 1},
        {"Char", 1}, {"Bool", 1}, {"Short", 2}, {"Int", 4}, {"Long", 8}, {"Float8_e4m3fn", 1},
        {"Float8_e5m2", 1}, {"Float8_e4m3fnuz", 1}, {"Float8_e5m2fnuz", 1}, {"ComplexFloat", 8},
        {"ComplexDouble", 16}};
    enum {
        COLLECTIVES = sizeof collectives / sizeof *collectives,
        TYPES = sizeof types / sizeof *types
    };
    for (int i = 0; i < COLLECTIVES + TYPES; i++) { /* each at least once */
        int c = i % COLLECTIVES, t = i % TYPES;
        struct rows rows;
        struct kineto_trace trace;
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        read_trace(&rows, &trace, &arena,
            arena_printf(&arena,
                "{\"traceEvents\": [" KERNEL
                "\"nccl\", \"ts\": 1, \"dur\": 3, \"args\": {\"Collective name\": \"%s\","
                " \"In msg nelems\": 1000, \"Out msg nelems\": 500, \"Group size\": 2, \"dtype\": "
                "\"%s\"}}]}",
                collectives[c].torch, types[t].name),
            &diag);
        assert_string_equal(diag.text, "");
        assert_int_equal(rows.n_collectives, 1);
        const struct collective_measurement *row = &rows.collectives[0];
        assert_string_equal(row->collective, collectives[c].name);
        assert_int_equal(row->bytes, 1000 * types[t].bytes);
        assert_true((collectives[c].in_place ? row->in_place_s : row->out_of_place_s) == 3 * 1e-6);
        assert_true((collectives[c].in_place ? row->out_of_place_s : row->in_place_s) == 0);
        arena_release(&arena);
    }
}

static void broken_traces(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "premature EOF"},
        {"[1, 2", "premature EOF"},
        {"{}", "no traceEvents"},
        {"{\"traceEvents\": []}", "no GPU kernels in it"},
        {"{\"traceEvents\": [{\"ph\": \"X\"}, 5, [], null]}", "no GPU kernels in it"},
        {"{\"traceEvents\": [\n" KERNEL "\"k\", \"ts\": 1, \"dur\": \"long\"}]}",
            "x.json:2:1: error: 'long' is no number for dur"},
        {"{\"traceEvents\": [\n" KERNEL "\"k\", \"ts\": 1, \"dur\": 1e999}]}",
            "is no number for dur"},
        {"{\"traceEvents\": [\n" KERNEL "\"k\", \"ts\": 1, \"dur\": -5}]}", "a kernel of -5 us"},
        {"{\"traceEvents\": [\n\n" KERNEL "\"\", \"dur\": 5}]}",
            "x.json:3:1: error: a kernel without a name"},
        {"{\"traceEvents\": [" KERNEL "\"k\", \"dur\": 5}]}\n{}", "trailing garbage"},
        {"{\"traceEvents\": [" KERNEL "\"k\xff\", \"dur\": 5}]}", "invalid bytes in UTF8 string"},
        {"{\"traceEvents\": [" KERNEL
         "\"nccl\", \"dur\": 5, \"args\": {\"Collective name\": \"allreduce\", \"Group size\": 8,"
         " \"In msg nelems\": 9223372036854775807, \"dtype\": \"Float\"}}]}",
            "no GPU kernels in it (1 collective without size left out)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rows rows;
        struct kineto_trace trace;
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        assert_int_equal(read_trace(&rows, &trace, &arena, cases[i].text, &diag), STATUS_INPUT);
        if (!strstr(diag.text, cases[i].expected))
            fail_msg("'%s' is not in: %s", cases[i].expected, diag.text);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_trace),
        cmocka_unit_test(collectives_and_types_of_pytorch), cmocka_unit_test(broken_traces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
