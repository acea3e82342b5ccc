/* Durations from work and share, by hand. */
#include "kernel/kernel.h"

#include "kernel/attention.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"
#include "../number.h"

#include <math.h>

#include <string.h>

/* 100 GB/s of HBM reached (200 x 50 %), saturated by 5 of 10 SMs; 1 TFLOPS of vector units;
 * attention at 2 x 25 % = 0.5 TFLOPS. */
static const struct hw_gpu gpu = {
    .name = "ten SMs",
    .sms = NUMBER(10),
    .hbm_bandwidth = NUMBER(200e9),
    .hbm_efficiency = NUMBER(0.5),
    .vector_flops = NUMBER(1e12),
    .kernel_floor = NUMBER(2e-6),
    .gemm_floor = NUMBER(5e-6),
    .memory_sms = NUMBER(5),
    .attention_efficiency = NUMBER(0.25),
    .gemm[DTYPE_BF16] = {.peak = NUMBER(2e12),
        .efficiency = NUMBER(1),
        .k_overhead = NUMBER(0),
        .load_bandwidth = NUMBER(1e15)},
};

static double alone_s(struct kernel_work work)
{
    return kernel_duration_s(&work, &gpu, kernel_whole_gpu(&gpu));
}

static double shared_s(struct kernel_work work, double sms, double hbm_Bps)
{
    return kernel_duration_s(&work, &gpu, (struct kernel_share){.sms = sms, .hbm_Bps = hbm_Bps});
}

/* Two units that hide each other's time but where both take nearly as long. */
static double both(double a, double b)
{
    return pow(pow(a, 4) + pow(b, 4), 0.25);
}

static void test_the_longer_of_compute_and_memory(void **state)
{
    (void)state;
    /* 600 MB read + 400 MB written at 100 GB/s = 10 ms; 1 GFLOP at 1 TFLOPS = 1 ms; floor 2 us */
    assert_near(
        alone_s(kernel_stream(KERNEL_NORM, 600e6, 400e6, 1e9)), both(10e-3, 1e-3) + 2e-6, 1e-12);
    assert_near(alone_s(kernel_stream(KERNEL_NORM, 600e6, 400e6, 0)), 10.002e-3, 1e-15);
    /* 50 GFLOP: 50 ms of compute */
    assert_near(
        alone_s(kernel_stream(KERNEL_NORM, 600e6, 400e6, 50e9)), both(50e-3, 10e-3) + 2e-6, 1e-12);
    /* as long: 2^(1/4) of one, where nothing hidden were 2 */
    assert_near(kernel_busy_s(1, 1), 1.189207115, 1e-9);
    assert_near(kernel_busy_s(0, 3), 3, 0);
    assert_near(kernel_busy_s(3, 0), 3, 0);
    /* nothing to do still costs the floor */
    assert_near(alone_s(kernel_stream(KERNEL_COPY, 0, 0, 0)), 2e-6, 1e-15);
}

static void test_pointwise_efficiency(void **state)
{
    (void)state;
    struct hw_gpu eager = gpu;
    eager.pointwise_efficiency = (struct quantity)NUMBER(0.8);
    struct kernel_share whole = kernel_whole_gpu(&eager);
    struct kernel_work norm = kernel_stream(KERNEL_NORM, 600e6, 400e6, 0);
    struct kernel_work copy = kernel_stream(KERNEL_COPY, 600e6, 400e6, 0);
    /* 1 GB at 80 % of 100 GB/s: 12.5 ms; a copy streams as hbm_efficiency says */
    assert_near(kernel_duration_s(&norm, &eager, whole), 12.502e-3, 1e-12);
    assert_near(kernel_duration_s(&copy, &eager, whole), 10.002e-3, 1e-12);
    /* a collective that takes 60 GB/s leaves 20 */
    assert_near(
        kernel_duration_s(&norm, &eager, (struct kernel_share){10, 60e9}), 50.002e-3, 1e-12);
}

static void test_hbm_share(void **state)
{
    (void)state;
    struct kernel_work work = kernel_stream(KERNEL_ELEMENTWISE, 500e6, 500e6, 0);
    /* a collective takes 60 of 100 GB/s: 1 GB at 40 GB/s = 25 ms */
    assert_near(shared_s(work, 10, 60e9), 25.002e-3, 1e-12);
    /* it may ask for all, or more than there is: a tenth is left, 100 ms */
    assert_near(shared_s(work, 10, 100e9), 100.002e-3, 1e-12);
    assert_near(shared_s(work, 10, 500e9), 100.002e-3, 1e-12);
}

static void test_sm_share(void **state)
{
    (void)state;
    struct kernel_work work = kernel_stream(KERNEL_ELEMENTWISE, 500e6, 500e6, 0);
    /* 5 SMs saturate HBM; 2 draw 40 GB/s */
    assert_near(shared_s(work, 5, 0), 10.002e-3, 1e-12);
    assert_near(shared_s(work, 2, 0), 25.002e-3, 1e-12);
    /* 2 SMs and 30 GB/s taken: the SMs are the tighter limit still (40 < 70); with 80 taken, HBM is
     * (20 < 40): 50 ms */
    assert_near(shared_s(work, 2, 30e9), 25.002e-3, 1e-12);
    assert_near(shared_s(work, 2, 80e9), 50.002e-3, 1e-12);
    /* compute scales with SMs: 50 GFLOP on 8 of 10 SMs = 62.5 ms */
    assert_near(shared_s(kernel_stream(KERNEL_NORM, 0, 0, 50e9), 8, 0), 62.502e-3, 1e-12);
}

/* Gradients of a layer norm's weight: a block of threads for 32 columns, an SM each, walks down all
 * rows. */
static void test_rows_of_a_norm(void **state)
{
    (void)state;
    struct hw_gpu torch = gpu;
    torch.norm_row_time = (struct quantity)NUMBER(20e-9);
    struct kernel_work work = kernel_stream(KERNEL_NORM, 100e6, 0, 0); /* 1 ms of HBM */
    work.m = 100000;
    work.n = 256;
    struct kernel_share whole = kernel_whole_gpu(&torch), shared = {7, 0};
    /* 8 blocks on 10 SMs: 100,000 rows of 20 ns, 2 ms; on 7 SMs one block waits for another: 4 ms
     */
    assert_near(kernel_duration_s(&work, &torch, whole), both(2e-3, 1e-3) + 2e-6, 1e-12);
    assert_near(kernel_duration_s(&work, &torch, shared), both(4e-3, 1e-3) + 2e-6, 1e-12);
    /* 321 columns are 11 blocks, twice around */
    work.n = 321;
    assert_near(kernel_duration_s(&work, &torch, whole), both(4e-3, 1e-3) + 2e-6, 1e-12);
    /* few rows: HBM limits; a norm of other shape, and a GPU that does not say: bytes alone */
    work.m = 1000;
    assert_near(kernel_duration_s(&work, &torch, whole), both(1e-3, 40e-6) + 2e-6, 1e-12);
    assert_near(alone_s(work), 1.002e-3, 1e-12);
    work.m = work.n = 0;
    assert_near(kernel_duration_s(&work, &torch, whole), 1.002e-3, 1e-12);
}

/* The host decodes for all GPUs of the node, whatever this one is busy with. */
static void test_decoding_images(void **state)
{
    (void)state;
    struct hw_gpu fed = gpu;
    fed.host_image_s = 100e-6;
    struct kernel_work work = {.kind = KERNEL_DECODE, .m = 64, .batch = 8};
    /* 512 images of 100 us, with and without a collective beside it */
    assert_near(kernel_duration_s(&work, &fed, kernel_whole_gpu(&fed)), 51.2e-3, 1e-12);
    assert_near(kernel_duration_s(&work, &fed, (struct kernel_share){1, 90e9}), 51.2e-3, 1e-12);
}

static void test_attention(void **state)
{
    (void)state;
    struct kernel_work work = kernel_stream(KERNEL_ATTENTION, 1e6, 1e6, 5e9);
    work.math = DTYPE_BF16;
    work.m = work.n = 512;
    work.k = 64;
    work.batch = 5; /* 20 blocks of 128 queries, two waves on 10 SMs */
    /* 5 GFLOP at 0.5 TFLOPS = 10 ms */
    assert_near(alone_s(work), 10.002e-3, 1e-12);
    /* a head of 80 is filled up to 96: 12 ms */
    work.k = 80;
    assert_near(alone_s(work), 12.002e-3, 1e-12);
    work.k = 64;
    /* the blocks of queries on the diagonal walk over 128 keys more than the half of 512 that the
     * flop count: x 1.25 */
    work.causal = true;
    assert_near(alone_s(work), 12.502e-3, 1e-12);

    /* With a window of 128 a query sees 128 - 128^2 / 1024 = 112 of 512 keys in the mean. The first
     * block walks over 128 keys, the other three over 256: 224 in the mean, x 2. */
    work.window = 128;
    assert_near(attention_window_pairs(512, 128), 512 * 112, 0);
    assert_near(alone_s(work), 20.002e-3, 1e-12);
    work.window = 0;

    /* start and end cost 64 keys: (512 + 64) / 512 without the mask, (512 + 128 + 2 x 64) / 512
     * with it; the backward kernel at half the rate of the forward one */
    struct hw_gpu other = gpu;
    other.attention_overhead = (struct quantity)NUMBER(64);
    other.attention_backward = (struct quantity)NUMBER(0.5);
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 15.002e-3, 1e-12);
    work.window = 128; /* (112 + 112 + 64) / 112, at half the rate */
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)),
        10e-3 * 288 / 112 + 2e-6, 1e-12);
    work.window = 0;
    work.causal = false;
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 11.252e-3, 1e-12);
    work.backward = true;
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 22.502e-3, 1e-12);
    /* its own overhead: (512 + 320) / (512 + 64) of that */
    other.attention_backward_overhead = (struct quantity)NUMBER(320);
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 32.502e-3, 1e-12);
    work.backward = false;
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 11.252e-3, 1e-12);
}

static void test_attention_waves(void **state)
{
    (void)state;
    struct kernel_work work = kernel_stream(KERNEL_ATTENTION, 1e6, 1e6, 5e9);
    work.math = DTYPE_BF16;
    work.m = work.n = 512;
    work.k = 64;
    work.batch = 1;
    /* four blocks on 10 SMs: the 10 ms of all SMs on four of them; on 3.5 SMs, of which three hold
     * a block, two waves: 100 ms of one SM in three, of which six blocks of time are four of work
     */
    assert_near(alone_s(work), 25.002e-3, 1e-12);
    assert_near(shared_s(work, 3.5, 0), 100e-3 / 3 * 6 / 4 + 2e-6, 1e-11);
    /* a decoder's 512 queries of 1,280 keys: forward has a block for 128 queries, four again;
     * backward one for 128 keys, ten, which fill the SMs */
    work.n = 1280;
    assert_near(alone_s(work), 25.002e-3, 1e-12);
    work.backward = true;
    assert_near(alone_s(work), 10.002e-3, 1e-12);
    work.backward = false;
    work.n = 512;
    /* causal: 12.5 ms of all SMs; the longest of the four blocks is twice the mean's length */
    work.causal = true;
    assert_near(alone_s(work), 2 * 125e-3 / 4 + 2e-6, 1e-11);
    work.batch = 10; /* 40 blocks, the longest first, end together */
    assert_near(alone_s(work), 12.502e-3, 1e-12);
}

static void test_attention_head(void **state)
{
    (void)state;
    struct hw_gpu other = gpu;
    struct kernel_work work = kernel_stream(KERNEL_ATTENTION, 1e6, 1e6, 5e9);
    work.math = DTYPE_BF16;
    work.m = work.n = 512;
    work.k = 64;
    work.batch = 5;
    /* the softmax of a pair takes as long as 16 elements of the head: 10 ms x 80 / 64; of 160: x
     * 176 / 160 */
    other.attention_softmax = (struct quantity)NUMBER(16);
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 12.502e-3, 1e-12);
    work.k = 160;
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 11.002e-3, 1e-12);
    /* wide heads at half the rate: twice as long; 128 is not wide: 10 ms x 144 / 128 */
    other.attention_wide = (struct quantity)NUMBER(0.5);
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 22.002e-3, 1e-12);
    work.k = 128;
    assert_near(kernel_duration_s(&work, &other, kernel_whole_gpu(&other)), 11.252e-3, 1e-12);
}

static void test_gemm_work(void **state)
{
    (void)state;
    /* 3 products of 2 x 5 by 5 x 7: 2 x 2 x 7 x 5 x 3 = 420 flop; operands (2 + 7) x 5 x 3 = 135 of
     * 2 B; result 42 of 4 B */
    struct kernel_work work = kernel_gemm(2, 7, 5, 3, DTYPE_BF16, 2, 4);
    assert_int_equal(work.kind, KERNEL_GEMM);
    assert_near(work.flop, 420, 0);
    assert_near(work.read_bytes, 270, 0);
    assert_near(work.write_bytes, 168, 0);
    /* its floor is the GEMM's */
    assert_near(kernel_time(&work, &gpu, kernel_whole_gpu(&gpu)).floor_s, 5e-6, 1e-18);
    /* 1e5 x 1e5 x 1: 2e10 B of result and 4e5 B of operands */
    work = kernel_gemm(100000, 100000, 1, 1, DTYPE_BF16, 2, 2);
    assert_near(
        kernel_time(&work, &gpu, kernel_whole_gpu(&gpu)).memory_s, (2e10 + 4e5) / 100e9, 1e-9);
}

/* What a product that adds to its result moves more is exposed by a share of the time it takes, on
 * top of the multiplication; where memory decides it is in the kernel's time already. */
static void test_gemm_that_adds(void **state)
{
    (void)state;
    struct hw_gpu other = gpu;
    struct kernel_work plain = kernel_gemm(2048, 2048, 1 << 16, 1, DTYPE_BF16, 2, 2), adds = plain;
    adds.added_bytes = 6.0 * 2048 * 2048;
    adds.read_bytes += 4.0 * 2048 * 2048;
    adds.write_bytes += 2.0 * 2048 * 2048;
    double plain_s = kernel_duration_s(&plain, &other, kernel_whole_gpu(&other));
    struct kernel_time before = kernel_time(&adds, &other, kernel_whole_gpu(&other));
    double added_s = before.memory_s * adds.added_bytes / (adds.read_bytes + adds.write_bytes);
    other.accumulate_exposed = (struct quantity)NUMBER(0.5);
    struct kernel_time after = kernel_time(&adds, &other, kernel_whole_gpu(&other));
    double least_s = before.compute_s + 0.5 * added_s;
    assert_near(kernel_busy_s(after.compute_s, after.memory_s),
        fmax(least_s, kernel_busy_s(before.compute_s, before.memory_s)), 1e-15);
    assert_true(kernel_duration_s(&adds, &other, kernel_whole_gpu(&other)) > plain_s);
    assert_near(kernel_duration_s(&plain, &other, kernel_whole_gpu(&other)), plain_s,
        0); /* it adds nothing */
    assert_false(kernel_same(&plain, &adds));
    /* few terms: memory decides, compute is no longer */
    struct kernel_work thin = kernel_gemm(8192, 8192, 16, 1, DTYPE_BF16, 2, 2);
    thin.added_bytes = 6.0 * 8192 * 8192;
    thin.read_bytes += 4.0 * 8192 * 8192;
    thin.write_bytes += 2.0 * 8192 * 8192;
    struct kernel_time time = kernel_time(&thin, &other, kernel_whole_gpu(&other));
    struct kernel_time alone = kernel_time(&thin, &gpu, kernel_whole_gpu(&gpu));
    assert_true(alone.compute_s + 0.5 * 0.75 * alone.memory_s <
                alone.memory_s); /* 6 of 8 bytes are added */
    assert_near(time.compute_s, alone.compute_s, 0);
}

/* Of A100's and H200's files: what H200's power in the benchmark that the rule is from shows. */
static void test_power_limit(void **state)
{
    (void)state;
    static const char *const gpus[] = {"a100-sxm4-80gb", "h200-sxm-141gb"};
    for (int i = 0; i < 2; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct hw_gpu card;
        hw_load_gpu(&card,
            arena_printf(&arena, FLOPCAST_SOURCE_DIR "/topologies/gpus/%s.yaml", gpus[i]), &arena,
            &diag);
        assert_string_equal(diag.text, "");
        struct kernel_work large = kernel_gemm(8192, 8192, 8192, 1, DTYPE_BF16, 2, 2),
                           small = large, add;
        small = kernel_gemm(1024, 1024, 512, 1, DTYPE_BF16, 2, 2); /* 1e9 FLOP: 170 W of 700 */
        add = kernel_stream(KERNEL_ELEMENTWISE, 1e9, 1e9, 1e9);
        struct kernel_work attention = kernel_gemm(4096, 4096, 128, 64, DTYPE_BF16, 2, 2);
        attention.kind = KERNEL_ATTENTION;
        attention.flop *= 2;
        assert_true(kernel_power_limited(&large, &card));
        assert_true(kernel_power_limited(&attention, &card));
        assert_false(kernel_power_limited(&small, &card));
        assert_false(kernel_power_limited(&add, &card));
        arena_release(&arena);
    }
}

static void test_supported(void **state)
{
    (void)state;
    assert_true(kernel_supported(&gpu, DTYPE_BF16));
    assert_false(kernel_supported(&gpu, DTYPE_FP8));
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < KERNEL_KIND_COUNT; i++)
        assert_non_null(kernel_kind_names[i]);
    assert_null(kernel_kind_names[KERNEL_KIND_COUNT]);
    assert_string_equal(kernel_kind_names[KERNEL_OPTIMIZER], "optimizer");
}

/* Kernels that differ in anything are two: a plan holds each once, and what it took for another
 * would run as that. */
static void test_kernels_are_the_same_in_everything(void **state)
{
    (void)state;
    const struct kernel_work work = kernel_gemm(8, 16, 32, 2, DTYPE_BF16, 2, 2);
    struct kernel_work others[16];
    enum { N = sizeof others / sizeof *others };
    for (int i = 0; i < N; i++)
        others[i] = work;
    others[0].kind = KERNEL_ATTENTION;
    others[1].math = DTYPE_FP16;
    others[2].flop += 1;
    others[3].read_bytes += 1;
    others[4].write_bytes += 1;
    others[5].row_pieces += 1;
    others[6].m++;
    others[7].n++;
    others[8].k++;
    others[9].batch++;
    others[10].gathers = true;
    others[11].causal = true;
    others[12].backward = true;
    others[13].pieces = 2;
    others[14].recorded_ns = 1;
    others[15].window = 4;
    assert_true(kernel_same(&work, &work));
    for (int i = 0; i < N; i++)
        if (kernel_same(&work, &others[i]) || kernel_same(&others[i], &work))
            fail_msg("number %d is taken for the same", i);
    static const int told_apart[] = {0, 2, 3, 4, 6, 7, 8, 14}; /* by the digest, too */
    for (size_t i = 0; i < sizeof told_apart / sizeof *told_apart; i++)
        assert_true(kernel_digest(&work) != kernel_digest(&others[told_apart[i]]));
}

/* 1 GB that takes 10 ms and the floor of 2 us, recorded as 5 ms: alone it takes 5 ms, and beside a
 * collective that leaves 40 of 100 GB/s what is not floor takes 2.5 times as long. Nothing is
 * shorter than recorded: 1 us is all floor, and so is all of a kernel without work. */
static void test_recorded_kernels(void **state)
{
    (void)state;
    struct kernel_work work = kernel_stream(KERNEL_ELEMENTWISE, 500e6, 500e6, 0);
    work.recorded_ns = 5000000;
    assert_near(alone_s(work), 5e-3, 1e-15);
    assert_near(shared_s(work, 10, 60e9), 2.5 * 4.998e-3 + 2e-6, 1e-12);
    work.recorded_ns = 1000;
    assert_near(alone_s(work), 1e-6, 1e-18);
    assert_near(shared_s(work, 10, 60e9), 1e-6, 1e-18);
    struct kernel_work nothing = kernel_stream(KERNEL_COPY, 0, 0, 0);
    nothing.recorded_ns = 7000;
    assert_near(alone_s(nothing), 7e-6, 1e-18);
    /* kernels of a trace: 3 ms on any GPU; those that the SMs limit take twice as long on half of
     * them */
    struct kernel_work traced = {.kind = KERNEL_RECORDED, .m = 3000000};
    assert_near(alone_s(traced), 3e-3, 1e-15);
    assert_near(shared_s(traced, 5, 60e9), 3e-3, 1e-15);
    traced.n = 1;
    assert_near(alone_s(traced), 3e-3, 1e-15);
    assert_near(shared_s(traced, 5, 0), 6e-3, 1e-15);
    assert_near(kernel_time(&traced, &gpu, kernel_whole_gpu(&gpu)).floor_s, 0, 0);
}

/* 20 MB over a link of 20 GB/s: 1 ms and the floor, whatever collectives do. */
static void test_host_copies(void **state)
{
    (void)state;
    struct hw_gpu linked = gpu;
    linked.host_link_Bps = 20e9;
    struct kernel_work work = kernel_stream(KERNEL_HOST_COPY, 20e6, 0, 0);
    assert_near(kernel_duration_s(&work, &linked, kernel_whole_gpu(&linked)), 1.002e-3, 1e-15);
    assert_near(kernel_duration_s(&work, &linked, (struct kernel_share){1, 90e9}), 1.002e-3, 1e-15);
}

/* Beside a collective a kernel starts 3 us later, if that holds SMs; and where it moves 50 of HBM's
 * 200 GB/s, a quarter of the half by which traffic slows. 1 GB at what is left of 100 GB/s. More
 * than all of HBM's is all. */
static void test_beside_a_collective(void **state)
{
    (void)state;
    struct hw_gpu busy = gpu;
    busy.overlap_start = (struct quantity)NUMBER(3e-6);
    busy.overlap_traffic = (struct quantity)NUMBER(0.5);
    struct kernel_work work = kernel_stream(KERNEL_ELEMENTWISE, 500e6, 500e6, 0);
    assert_near(kernel_duration_s(&work, &busy, kernel_whole_gpu(&busy)), 10.002e-3, 1e-12);
    assert_near(kernel_duration_s(&work, &busy, (struct kernel_share){5, 0}), 10.005e-3, 1e-12);
    assert_near(kernel_duration_s(&work, &busy, (struct kernel_share){10, 50e9}), 22.502e-3, 1e-12);
    assert_near(kernel_traffic(&busy, 900e9), 1.5, 0);
}

/* All pointwise kernels reach 80 % of what copies and optimizers do: 12.5 and 10 ms for 1 GB. */
static void test_which_kernels_are_pointwise(void **state)
{
    (void)state;
    struct hw_gpu eager = gpu;
    eager.pointwise_efficiency = (struct quantity)NUMBER(0.8);
    static const enum kernel_kind slow[] = {
        KERNEL_SOFTMAX, KERNEL_NORM, KERNEL_ELEMENTWISE, KERNEL_EMBEDDING, KERNEL_LOSS};
    static const enum kernel_kind fast[] = {KERNEL_OPTIMIZER, KERNEL_COPY};
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        struct kernel_work work = kernel_stream(slow[i], 1e9, 0, 0);
        assert_near(kernel_duration_s(&work, &eager, kernel_whole_gpu(&eager)), 12.502e-3, 1e-12);
    }
    for (size_t i = 0; i < sizeof fast / sizeof *fast; i++) {
        struct kernel_work work = kernel_stream(fast[i], 1e9, 0, 0);
        assert_near(kernel_duration_s(&work, &eager, kernel_whole_gpu(&eager)), 10.002e-3, 1e-12);
    }
}

/* The limit counts from what the GPU sustains. 100 tiles on 10 SMs reach all of that, be it half of
 * the peak or of what GEMMs get: limited. Attention of a sequence reaches 25 % of the peak, below
 * 30, or 35. */
static void test_power_of_what_is_sustained(void **state)
{
    (void)state;
    struct kernel_work gemm = kernel_gemm(1280, 1280, 8192, 1, DTYPE_BF16, 2, 2);
    struct hw_gpu card = gpu;
    assert_true(kernel_power_limited(&gemm, &card));
    card.gemm_sustained = (struct quantity)NUMBER(0.5);
    assert_true(kernel_power_limited(&gemm, &card));
    card.gemm[DTYPE_BF16].efficiency.value = 0.5;
    assert_true(kernel_power_limited(&gemm, &card));
    struct kernel_work attention = kernel_stream(KERNEL_ATTENTION, 1e6, 1e6, 5e10);
    attention.math = DTYPE_BF16;
    attention.m = attention.n = 512;
    attention.k = 64;
    attention.batch = 50;
    assert_false(kernel_power_limited(&attention, &card));
    card.attention_efficiency.value = 0.35;
    assert_true(kernel_power_limited(&attention, &card));
    struct kernel_work norm =
        kernel_stream(KERNEL_NORM, 1, 1, 1e12); /* as many FLOP as the vector units do */
    assert_false(kernel_power_limited(&norm, &card));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longer_of_compute_and_memory),
        cmocka_unit_test(test_pointwise_efficiency),
        cmocka_unit_test(test_hbm_share),
        cmocka_unit_test(test_sm_share),
        cmocka_unit_test(test_rows_of_a_norm),
        cmocka_unit_test(test_decoding_images),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_waves),
        cmocka_unit_test(test_attention_head),
        cmocka_unit_test(test_gemm_work),
        cmocka_unit_test(test_gemm_that_adds),
        cmocka_unit_test(test_power_limit),
        cmocka_unit_test(test_supported),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_kernels_are_the_same_in_everything),
        cmocka_unit_test(test_recorded_kernels),
        cmocka_unit_test(test_host_copies),
        cmocka_unit_test(test_beside_a_collective),
        cmocka_unit_test(test_which_kernels_are_pointwise),
        cmocka_unit_test(test_power_of_what_is_sustained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
