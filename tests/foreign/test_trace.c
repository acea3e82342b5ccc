/* Traces of real runs: where their steps are, and what they sum up to. */
#include "foreign/trace_file.h"
#include "foreign/trace_sum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"

struct read {
    struct arena arena;
    struct diag diag;
    struct trace trace;
    struct trace_sum sum;
    enum status status;
};

static void read_text(struct read *r, const char *text, int64_t device)
{
    *r = (struct read){.trace = {.rank = -1}};
    struct input *input = input_open_text("x.json", text, strlen(text));
    r->status = trace_read_kineto(&r->trace, input, device, &r->arena, &r->diag);
    input_close(input);
    assert_int_equal(r->status == STATUS_OK, r->diag.n_errors == 0);
    if (r->status == STATUS_OK)
        trace_sum(&r->sum, &r->trace);
}

static void done(struct read *r)
{
    trace_free(&r->trace);
    trace_sum_free(&r->sum);
    arena_release(&r->arena);
}

#define EVENT(category, name, pid, tid, ts, dur, args)                                             \
    "{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":" #pid ",\"tid\":" #tid  \
    ",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{" args "}}"
#define HOST 900 /* process, and its main thread */
#define STEP(n, ts, dur) EVENT("user_annotation", "ProfilerStep#" #n, 900, 900, ts, dur, "")
#define LAUNCH(id, ts)                                                                             \
    EVENT("cuda_runtime", "cudaLaunchKernel", 900, 900, ts, 2, "\"correlation\":" #id)
#define KERNEL(name, id, ts, dur)                                                                  \
    EVENT("kernel", name, 0, 7, ts, dur, "\"device\":0,\"stream\":7,\"correlation\":" #id)
#define NCCL(name, id, ts, dur, more)                                                              \
    EVENT("kernel", name, 0, 20, ts, dur, "\"device\":0,\"stream\":20,\"correlation\":" #id more)
#define TRACE(events) "{\"traceEvents\":[" events "]}"

/* Two steps of the host, 0 to 100 us and 100 to 200; the GPU is behind.
 *   kernel 1, launched before the profile, ends at 30; so step 1 begins on the GPU at 30. step 1:
 *   gemm 2 from 30 to 80, all-reduce 3 from 60 to 110, elementwise 4 from 110 to 140, launched at
 *   10, 20, 30 step 2: gemm 5 from 150 to 210, copy 6 from the host from 210 to 215, launched at
 *   110, 115
 * Step 1 ends when its kernels have ended and the host has begun step 2: at 140. Step 2 ends at
 * 210, with its kernels; the copy lies outside. In 180 us: kernels 50 + 30 + 60; exposed 80 to 110;
 * hidden 60 to 80; idle 140 to 150. */
static void steps_by_annotations(void **state)
{
    struct read r;
    (void)state;
    read_text(&r,
        TRACE(STEP(7, 0, 100) "," STEP(8, 100, 100) "," KERNEL("old_gemm", 1, 5, 25) "," LAUNCH(
            2, 10) "," LAUNCH(3, 20) "," LAUNCH(4, 30) "," LAUNCH(5, 110) "," LAUNCH(6,
            115) "," KERNEL("sm90_xmma_gemm_bf16", 2, 30,
            50) "," NCCL("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3, 60, 50,
            ",\"Collective name\":\"allreduce\",\"In msg nelems\":250,\"Out msg "
            "nelems\":250,\"Group size\":4,\"dtype\":\"Float\"") "," KERNEL("void "
                                                                            "at::native::"
                                                                            "vectorized_"
                                                                            "elementwise_kernel<4>",
            4, 110, 30) "," KERNEL("sm90_xmma_gemm_bf16", 5, 150, 60) "," EVENT("gpu_memcpy",
            "Memcpy HtoD (Pinned -> Device)", 0, 7, 210, 5,
            "\"device\":0,\"stream\":7,\"correlation\":6")),
        -1);
    assert_string_equal(r.diag.text, "");
    assert_int_equal(r.trace.found, TRACE_ANNOTATED);
    assert_int_equal(r.trace.outside, 1);
    assert_int_equal(r.sum.steps, 2);
    assert_near(r.sum.step_s, 90e-6, 1e-12);
    assert_near(r.sum.shortest_s, 70e-6, 1e-12);
    assert_near(r.sum.longest_s, 110e-6, 1e-12);
    assert_near(r.sum.compute_s, 70e-6, 1e-12);
    assert_near(r.sum.exposed_s, 15e-6, 1e-12);
    assert_near(r.sum.hidden_s, 10e-6, 1e-12);
    assert_near(r.sum.idle_s, 5e-6, 1e-12);
    assert_near(r.sum.class_s[KERNEL_GEMM], 55e-6, 1e-12);
    assert_true(r.sum.class_count[KERNEL_GEMM] == 1);
    assert_true(r.sum.class_count[KERNEL_HOST_COPY] == 0.5);
    assert_int_equal(r.sum.groups.n, 1);
    const struct trace_group *group = &r.sum.groups.at[0];
    assert_int_equal(group->kind, COLL_ALL_REDUCE);
    assert_int_equal(group->ranks, 4);
    assert_true(group->bytes == 1000 && group->count == 0.5);
    assert_near(group->time_s, 25e-6, 1e-12);
    assert_near(trace_bus_bytes(group), 1500, 1e-12);
    done(&r);
}

/* Microseconds since 1970 have more digits than a double: a kernel of 10 us, 0.1 us of nothing, and
 * one of 9.9 us. */
static void times_of_a_clock_are_exact(void **state)
{
    struct read r;
    (void)state;
    read_text(&r,
        TRACE(STEP(1, 1735689600000000, 20) "," LAUNCH(1, 1735689600000000.000) "," LAUNCH(
            2, 1735689600000001.001) "," KERNEL("gemm", 1, 1735689600000000.101,
            10.000) "," KERNEL("gemm", 2, 1735689600000010.201, 9.900)),
        -1);
    assert_string_equal(r.diag.text, "");
    assert_int_equal(r.trace.activities.n, 2);
    const struct trace_activity *gemms = r.trace.activities.at;
    assert_int_equal(gemms[1].start - gemms[0].end, 100000); /* picoseconds */
    done(&r);
}

/* Where no kernel runs, in 200 us: the first is launched at 2 and begins at 10. The host is blocked
 * from 20 to 52 by the first, which ends at 50; loads data from 60 to 90, and has launched the
 * second at 102, which begins at 104 and ends at 120. An all-reduce runs from 121 to 150, for which
 * the third waits, from 151 to 160; a copy from the host from 165 to 170; the last is launched at
 * 174 and runs from 180 to 200. */
static void why_no_kernel_runs(void **state)
{
    struct read r;
    (void)state;
    read_text(&r,
        TRACE(STEP(1, 0, 200) "," LAUNCH(1, 0) "," EVENT("cuda_runtime", "hipStreamSynchronize",
            900, 900, 20, 32, "\"correlation\":9") "," EVENT("user_annotation",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter."
            "__next__",
            900, 900, 60, 30, "") "," LAUNCH(2, 100) "," LAUNCH(3, 110) "," LAUNCH(4,
            115) "," LAUNCH(5, 118) "," LAUNCH(6, 172) "," KERNEL("gemm", 1, 10,
            40) "," KERNEL("gemm", 2, 104, 16) "," NCCL("ncclDevKernel_AllReduce", 3, 121, 29,
            "") "," KERNEL("elementwise", 4, 151, 9) "," EVENT("gpu_memcpy", "Memcpy HtoD", 0, 7,
            165, 5, "\"device\":0,\"stream\":7,\"correlation\":5") "," KERNEL("gemm", 6, 180, 20)),
        -1);
    assert_string_equal(r.diag.text, "");
    assert_near(r.sum.compute_s, 85e-6, 1e-12);
    assert_near(r.sum.exposed_s, 29e-6, 1e-12);
    assert_near(r.sum.host_s, 58e-6, 1e-12);
    assert_near(r.sum.sync_s, 22e-6, 1e-12);
    assert_near(r.sum.loader_s, 30e-6, 1e-12);
    assert_near(r.sum.copies_s, 5e-6, 1e-12);
    assert_near(r.sum.idle_s, 23e-6, 1e-12);
    done(&r);
}

/* Nothing of the step before is in the trace, but the step's own annotation on the GPU is: it
 * begins at 40. */
static void a_step_begins_where_the_gpu_is_said_to(void **state)
{
    struct read r;
    (void)state;
    read_text(&r,
        TRACE(STEP(7, 0, 100) "," EVENT("gpu_user_annotation", "ProfilerStep#7", 0, 7, 40, 80,
            "") "," LAUNCH(1, 10) "," KERNEL("gemm", 1, 50, 70)),
        -1);
    assert_int_equal(r.sum.steps, 1);
    assert_near(r.sum.step_s, 80e-6, 1e-12); /* to the end of its kernel, at 120 */
    assert_near(r.sum.idle_s, 10e-6, 1e-12);
    done(&r);
}

/* Without annotations: a b b c four times, 10 us apart. The rarest that repeats, a, marks steps of
 * four kernels; the last has no end but its last kernel's. */
static void steps_by_repetition(void **state)
{
    struct read r;
    (void)state;
#define LOOP(at)                                                                                   \
    KERNEL("a_gemm", 0, 1##at##0, 10)                                                              \
    "," KERNEL("b_gemm", 0, 1##at##1, 1) "," KERNEL("b_gemm", 0, 1##at##3, 1) "," KERNEL(          \
        "c_gemm", 0, 1##at##5, 5)
    read_text(&r, TRACE(LOOP(1) "," LOOP(2) "," LOOP(3) "," LOOP(4)), -1);
    assert_string_equal(r.diag.text, "");
    assert_int_equal(r.trace.found, TRACE_REPEATED);
    assert_int_equal(r.trace.period, 4);
    assert_int_equal(r.sum.steps, 4);
    assert_true(r.trace.alike == 1);
    assert_near(r.sum.longest_s, 10e-6, 1e-12);
    assert_int_equal(r.trace.outside, 0);
    done(&r);
    /* no repetition at all: one step from the first beginning to the last end */
    read_text(&r, TRACE(KERNEL("a_gemm", 0, 10, 5) "," KERNEL("b_gemm", 0, 20, 5)), -1);
    assert_int_equal(r.trace.found, TRACE_WHOLE);
    assert_int_equal(r.sum.steps, 1);
    assert_near(r.sum.step_s, 15e-6, 1e-6);
    done(&r);
}

#define COMMS(name, ts, dur, args) EVENT("user_annotation", "nccl:" name, 900, 901, ts, dur, args)
#define COMM_LAUNCH(id, ts)                                                                        \
    EVENT("cuda_runtime", "cudaLaunchKernel", 900, 901, ts, 2, "\"correlation\":" #id)

/* Before PyTorch 2.2 a kernel says nothing: what was launched is in the annotation around its
 * launch, with the shapes of the inputs (128 x 100 floats, 51,200 B, are a rank's share of an
 * all-gather over 8: 409,600 B), or in record_param_comms. Two kernels of one annotation share its
 * bytes in a way that nobody says. Without any of them the kernel's name is left. All collectives
 * are on one stream, so the group is the world. */
static void what_the_host_says_of_collectives(void **state)
{
    static const struct {
        int kind, ranks;
        double bytes;
    } expected[] = {{COLL_ALL_GATHER, 8, 409600}, {COLL_REDUCE_SCATTER, 8, 800},
        {COLL_ALL_TO_ALL, 8, 0}, {COLL_ALL_TO_ALL, 8, 0}, {COLL_SEND_RECV, 8, 0},
        {COLL_ALL_REDUCE, 8, 0}};
    struct read r;
    (void)state;
    read_text(&r,
        "{\"distributedInfo\":{\"rank\":3,\"world_size\":8},\"traceEvents\":["
        /* not in the order of time, as Kineto writes them */
        NCCL("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 1, 100, 1, "") "," NCCL(
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 2, 110, 1,
            "") "," NCCL("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 3, 120, 1,
            "") "," NCCL("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 4, 130, 1,
            "") "," NCCL("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 5, 140, 1,
            "") "," NCCL("ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)", 0, 150, 1,
            "") "," COMMS("_all_gather_base", 10, 5,
            "\"Input Dims\":[[128,100]],\"Input type\":[\"float\"]") "," EVENT("cpu_op",
            "record_param_comms", 900, 901, 20, 9,
            "\"Collective name\":\"_reduce_scatter_base\",\"In msg nelems\":400,\"Out msg "
            "nelems\":50,\"dtype\":\"Half\"") "," COMMS("_reduce_scatter_base", 21, 5,
            "\"Input Dims\":[],\"Input type\":[]") "," COMMS("all_to_all", 30, 9,
            "\"Input Dims\":[[10]],\"Input type\":[\"long\"]") "," COMM_LAUNCH(1,
            12) "," COMM_LAUNCH(2, 22) "," COMM_LAUNCH(3, 31) "," COMM_LAUNCH(4,
            35) "," COMM_LAUNCH(5, 50) "]}",
        -1);
    assert_string_equal(r.diag.text, "");
    assert_int_equal(r.trace.rank, 3);
    assert_int_equal(r.trace.ranks_assumed, 6);
    assert_int_equal(r.trace.activities.n, 6);
    for (int i = 0; i < 6; i++) {
        const struct trace_activity *activity = &r.trace.activities.at[i];
        assert_int_equal(activity->kind, expected[i].kind);
        assert_int_equal(activity->ranks, expected[i].ranks);
        assert_true(activity->bytes == expected[i].bytes);
    }
    done(&r);
}

/* A file with the kernels of two GPUs: the lower one, or the one asked for. */
static void one_gpu_of_several(void **state)
{
#define ON(device, ts) EVENT("kernel", "gemm", device, 7, ts, 5, "\"stream\":7,\"device\":" #device)
    static const char both[] = TRACE(ON(3, 10) "," ON(1, 20) "," ON(1, 30));
    struct read r;
    (void)state;
    read_text(&r, both, -1);
    assert_int_equal(r.trace.device, 1);
    assert_int_equal(r.trace.devices, 2);
    assert_int_equal(r.trace.activities.n, 2);
    done(&r);
    read_text(&r, both, 3);
    assert_int_equal(r.trace.activities.n, 1);
    done(&r);
    read_text(&r, both, 2);
    assert_string_equal(r.diag.text, "x.json: error: no kernel of GPU 2 in it, but of 2 others\n");
    done(&r);
    read_text(&r, TRACE(ON(1, 20) "," EVENT("kernel", "gemm", 5, 7, 30, 5, "\"device\":1")), -1);
    assert_non_null(strstr(r.diag.text, "kernels of several processes on GPU 1"));
    done(&r);
    read_text(&r, TRACE(STEP(1, 0, 5)), -1);
    assert_non_null(strstr(r.diag.text, "no GPU kernels in it"));
    done(&r);
    read_text(&r, TRACE(ON(1, 20) "," ON(1, 3e15)), -1);
    assert_non_null(strstr(r.diag.text, "its kernels lie more than 46 days apart"));
    done(&r);
}

/* Names as PyTorch's profiler gives them. */
static void classes_by_name(void **state)
{
    static const struct {
        const char *name;
        int class, kind;
    } cases[] = {
        {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", TRACE_COLLECTIVE,
            COLL_ALL_GATHER},
        {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
            TRACE_COLLECTIVE, COLL_REDUCE_SCATTER},
        {"ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)", TRACE_COLLECTIVE, COLL_ALL_REDUCE},
        {"ncclDevKernel_Reduce_Sum_f32_RING_LL", TRACE_COLLECTIVE, COLL_REDUCE},
        {"ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", TRACE_COLLECTIVE, COLL_BROADCAST},
        {"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", TRACE_COLLECTIVE,
            TRACE_UNKNOWN_KIND},
        {"volta_sgemm_64x64_tn", KERNEL_GEMM, TRACE_UNKNOWN_KIND},
        {"sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", KERNEL_GEMM,
            TRACE_UNKNOWN_KIND},
        {"nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTN", KERNEL_GEMM, TRACE_UNKNOWN_KIND},
        {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>", KERNEL_GEMM,
            TRACE_UNKNOWN_KIND},
        {"sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32", KERNEL_GEMM,
            TRACE_UNKNOWN_KIND},
        {"void cublasLt::splitKreduce_kernel<32, 16, int, float>", KERNEL_GEMM, TRACE_UNKNOWN_KIND},
        {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>", KERNEL_ATTENTION,
            TRACE_UNKNOWN_KIND},
        {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80", KERNEL_ATTENTION, TRACE_UNKNOWN_KIND},
        {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float, "
         "at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>",
            KERNEL_LOSS, TRACE_UNKNOWN_KIND},
        {"void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 10, false, "
         "true>",
            KERNEL_SOFTMAX, TRACE_UNKNOWN_KIND},
        {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
            KERNEL_NORM, TRACE_UNKNOWN_KIND},
        {"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 128, true, 1, true>",
            KERNEL_NORM, TRACE_UNKNOWN_KIND},
        {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
         "namespace)::FusedOptimizerTensorListMetadata<4>>",
            KERNEL_OPTIMIZER, TRACE_UNKNOWN_KIND},
        {"void "
         "split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float>",
            KERNEL_EMBEDDING, TRACE_UNKNOWN_KIND},
        {"triton_poi_fused__to_copy_add_native_layer_norm_3", KERNEL_ELEMENTWISE,
            TRACE_UNKNOWN_KIND},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
            KERNEL_COPY, TRACE_UNKNOWN_KIND},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
            KERNEL_ELEMENTWISE, TRACE_UNKNOWN_KIND},
        {"Memcpy DtoD (Device -> Device)", KERNEL_COPY, TRACE_UNKNOWN_KIND},
        {"void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long>>", TRACE_OTHER,
            TRACE_UNKNOWN_KIND},
    };
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct trace trace = {0};
    assert_int_equal(trace_names_load(&trace, &arena, &diag), STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int8_t kind;
        int class = trace_classify(&trace, cases[i].name, &kind);
        if (class != cases[i].class || kind != cases[i].kind)
            fail_msg("%s: %s %d", cases[i].name, trace_class_name(class), kind);
    }

    /* Of a name that is not in the list nothing is known; a class that is none has its place. */
    char folder[] = "/tmp/flopcast-names-XXXXXX", path[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "mkdir -p %s/scenarios/import", folder);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/scenarios/import/kernels.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("kernels:\n  mine: gemm\n  yours: gem\n", file);
    fclose(file);
    setenv("FLOPCAST_DATA", folder, 1);
    assert_int_equal(trace_names_load(&trace, &arena, &diag), STATUS_INPUT);
    assert_non_null(strstr(
        diag.text, "/scenarios/import/kernels.yaml:3:10: error: 'gem' is no class of kernels"));
    int8_t kind;
    assert_int_equal(trace_classify(&trace, "void MINE<4>", &kind), KERNEL_GEMM);
    assert_int_equal(trace_classify(&trace, "layer_norm", &kind), TRACE_OTHER);
    unsetenv("FLOPCAST_DATA");
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
    arena_release(&arena);
}

/* A real trace (../import/data/kineto/LICENSE), counted by a dozen lines of Python over its JSON,
 * which share nothing with the program: kernels by name and collectives by size, summed over the
 * file and divided by its 3 steps; exposed and hidden time from merged lists of intervals, in
 * decimals (of the three steps 118,309.345 us of kernels, 7,685.824 hidden, the rest without
 * kernels: 542,813.799 the compute stream's next kernel is not launched, 454.7 it or a host that is
 * blocked waits for a collective). ResNet-50 has 25,557,032 parameters, which DDP reduces as FP32
 * in five buckets.
 *
 * Steps of the host: 222,442.191, 219,726.905 and 224,936.243 us, 222,408.653 us from beginning to
 * beginning and to the end of the last. All kernels are in them. */
static void counted_by_hand(void **state)
{
    static const struct {
        const char *begins;
        double count, time_us; /* a step */
    } kernels[] = {{"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128,", 11, 3197.429},
        {"void cudnn::ops::nchwToNhwcKernel<float,", 158, 4205.658},
        {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>", 23, 1860.453},
        {"Memcpy DtoD (Device -> Device)", 320, 754.260}};
    /* in elements of 4 B: 2,049,000 (3,306.963, 2,520.607, 5,993.392 us), 7,875,584 (2,424.415,
     * 2,673.916, 5,983.024) and 53,120 broadcast (30.975, 30.848, 29.184) */
    static const struct {
        int kind;
        double bytes, time_us;
    } collectives[] = {{COLL_ALL_REDUCE, 8196000, 3940.321}, {COLL_ALL_REDUCE, 31502336, 3693.785},
        {COLL_ALL_REDUCE, 9724160, 1949.083}, {COLL_BROADCAST, 212480, 30.336}};
    struct read r = {0};
    double reduced = 0;
    (void)state;
    r.status = trace_load(&r.trace,
        FLOPCAST_SOURCE_DIR "/tests/import/data/kineto/resnet50_2xa100.json.gz", -1, NULL, &r.arena,
        &r.diag);
    assert_string_equal(r.diag.text, "");
    trace_sum(&r.sum, &r.trace);
    assert_int_equal(r.sum.steps, 3);
    assert_int_equal(r.trace.outside, 0);
    static const double as_written =
        1e-9; /* nanoseconds, which the file's decimals are, in thirds of the sum */
    assert_near(r.sum.step_s * 1e6 / (667225.958 / 3), 1, as_written);
    assert_near(r.sum.compute_s * 1e6 / (118309.345 / 3), 1, as_written);
    assert_near(r.sum.exposed_s * 1e6 / (454.7 / 3), 1, 1e-3);
    assert_near(r.sum.host_s * 1e6 / (542813.799 / 3), 1, 1e-6);
    assert_near(r.sum.hidden_s * 1e6 / (7685.824 / 3), 1, as_written);
    double without_s = r.sum.exposed_s + r.sum.host_s + r.sum.idle_s + r.sum.copies_s;
    assert_near(without_s * 1e6 / ((667225.958 - 118309.345) / 3), 1, as_written);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        double count = 0, time_s = 0;
        for (int i = 0; i < r.sum.kernels.n; i++)
            if (strncmp(r.sum.kernels.at[i].name, kernels[k].begins, strlen(kernels[k].begins)) ==
                0) {
                count += r.sum.kernels.at[i].count;
                time_s += r.sum.kernels.at[i].time_s;
            }
        assert_near(count, kernels[k].count, 1e-12);
        assert_near(time_s * 1e6 / kernels[k].time_us, 1, 1e-6);
    }
    for (size_t c = 0; c < sizeof collectives / sizeof *collectives; c++) {
        const struct trace_group *found = NULL;
        for (int i = 0; i < r.sum.groups.n; i++)
            if (r.sum.groups.at[i].kind == collectives[c].kind &&
                r.sum.groups.at[i].bytes == collectives[c].bytes)
                found = &r.sum.groups.at[i];
        assert_non_null(found);
        assert_true(found->count == 1 && found->ranks == 2);
        assert_near(found->time_s * 1e6 / collectives[c].time_us, 1, 2e-5);
    }
    for (int i = 0; i < r.sum.groups.n; i++)
        reduced += r.sum.groups.at[i].kind == COLL_ALL_REDUCE ? r.sum.groups.at[i].bytes : 0;
    assert_true(reduced == 4 * 25557032.0);
    done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_by_annotations),
        cmocka_unit_test(times_of_a_clock_are_exact), cmocka_unit_test(why_no_kernel_runs),
        cmocka_unit_test(a_step_begins_where_the_gpu_is_said_to),
        cmocka_unit_test(steps_by_repetition), cmocka_unit_test(what_the_host_says_of_collectives),
        cmocka_unit_test(one_gpu_of_several), cmocka_unit_test(classes_by_name),
        cmocka_unit_test(counted_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
