/* A trace of 1 GB fits 500 MB of memory: here half of a smaller one of the same kind, as Kineto
 * writes an operator with its launch, kernel and arrow. (1 GB of them, 780,000 kernels in 20 steps:
 * 224 MB.) */
#include "foreign/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KERNELS = 32000, STEPS = 4 };

/* The most that was there at once. A sanitizer keeps what is freed and is asked for what is
 * allocated. */
#ifdef __SANITIZE_ADDRESS__
/* Of sanitizer/allocator_interface.h, which GCC does not install everywhere. */
int __sanitizer_install_malloc_and_free_hooks(
    void (*)(const volatile void *, size_t), void (*)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *);

static long live, peak;

static void on_malloc(const volatile void *at, size_t size)
{
    (void)at;
    live += (long)size;
    peak = live > peak ? live : peak;
}

static void on_free(const volatile void *at)
{
    live -= at ? (long)__sanitizer_get_allocated_size(at) : 0;
}

static void watch(void)
{
    assert_true(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
}

static long peak_bytes(void)
{
    return peak;
}
#else
static void watch(void) {}

static long peak_bytes(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss * 1024;
}
#endif

static void put_operator(FILE *out, int n)
{
    int ts = 10 * n;
    fprintf(out,
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::addmm\", \"pid\": 4242, \"tid\": "
        "4242, \"ts\": %d, \"dur\": 8, \"args\": {\"External id\": %d, \"Record function id\": 0, "
        "\"Concrete Inputs\": [\"\", \"\", \"\", \"1\", \"1\"], \"Input type\": "
        "[\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\", "
        "\"Scalar\", \"Scalar\"], \"Input Dims\": [[4096], [8192, 4096], [4096, %d], [], []], \"Ev "
        "Idx\": %d}},\n",
        ts, n, 4096 + n % 7, n);
    fprintf(out,
        "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 4242, "
        "\"tid\": 4242, \"ts\": %d, \"dur\": 4, \"args\": {\"External id\": %d, \"cbid\": 211, "
        "\"correlation\": %d}},\n",
        ts + 2, n, n);
    fprintf(out,
        "{\"ph\": \"s\", \"id\": %d, \"pid\": 4242, \"tid\": 4242, \"ts\": %d, \"cat\": \"ac2g\", "
        "\"name\": \"ac2g\"},\n",
        n, ts + 2);
    fprintf(out,
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
        "\"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_"
        "warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas\", \"pid\": 0, \"tid\": 7, "
        "\"ts\": %d, \"dur\": 9, \"args\": {\"External id\": %d, \"queued\": 0, \"device\": 0, "
        "\"context\": 1, \"stream\": 7, \"correlation\": %d, "
        "\"registers per thread\": 168, \"shared memory\": 205824, \"blocks per SM\": 1.939394, "
        "\"warps per SM\": 23.272728, \"grid\": [16, 16, 1], \"block\": [384, 1, 1], \"est. "
        "achieved occupancy %%\": 36}},\n",
        ts + 100, n, n);
    fprintf(out,
        "{\"ph\": \"f\", \"id\": %d, \"pid\": 0, \"tid\": 7, \"ts\": %d, \"cat\": \"ac2g\", "
        "\"name\": \"ac2g\", \"bp\": \"e\"},\n",
        n, ts + 100);
}

/* Its size in bytes. */
static long write_trace(const char *path)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs("{\"traceEvents\": [\n", out);
    for (int n = 1; n <= KERNELS; n++)
        put_operator(out, n);
    for (int s = 0; s < STEPS; s++)
        fprintf(out,
            "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%d\", \"pid\": "
            "4242, \"tid\": 4242, \"ts\": %d, \"dur\": %d}%s\n",
            s, 10 * KERNELS / STEPS * s, 10 * KERNELS / STEPS, s + 1 < STEPS ? "," : "");
    fputs("]}\n", out);
    long size = ftell(out);
    assert_int_equal(fclose(out), 0);
    return size;
}

static void half_of_its_size(void **state)
{
    (void)state;
    char path[] = "/tmp/flopcast-memory-XXXXXX.json";
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct trace trace;
    int file = mkstemps(path, (int)sizeof ".json" - 1);
    assert_true(file >= 0);
    close(file);
    long size = write_trace(path);
    watch();
    long before = peak_bytes();
    enum status status = trace_load(&trace, path, -1, NULL, &arena, &diag);
    unlink(path);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(trace.activities.n, KERNELS);
    assert_int_equal(trace.steps.n, STEPS);
    long took = peak_bytes() - before;
    if (took >= size / 2)
        fail_msg("%ld bytes for a trace of %ld", took, size);
    assert_true(took > (long)sizeof(struct trace_activity) * KERNELS); /* it is seen */
    trace_free(&trace);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(half_of_its_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
