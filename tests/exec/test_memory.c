/* HBM in a run: out of memory, retries, events that malloc asks for. */
#include "exec/exec.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

/* 1 GB of HBM, of which the CUDA context takes 50 MB and NCCL 30: 600 MB are kept, 500 MB more do
 * not fit: 180 MB short (in whole 2 MiB steps and 512 B; here exact enough). */
static void out_of_memory_is_a_result(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    plan_group(&f.builder, "world", 2, 1);
    f.hw.gpu.context_bytes.value = 50 << 20;
    f.hw.node.nccl_bytes.value = 30 << 20;
    plan_keep(&f.builder, "weights", 600 << 20, HBM_PARAMETERS);
    mover(&f, STREAM_COMPUTE, 1, 0);
    int buffer = plan_alloc(&f.builder, STREAM_COMPUTE, "scores", 500 << 20, HBM_ACTIVATIONS);
    mover(&f, STREAM_COMPUTE, 1, 0);
    plan_free(&f.builder, buffer, PLAN_NO_OP);
    run(&f);
    assert_int_equal(f.result.status, EXEC_OOM);
    assert_string_equal(f.result.memory.oom_op, "scores");
    assert_int_equal(f.result.memory.oom_category, HBM_ACTIVATIONS);
    assert_true(f.result.memory.oom_request_bytes == 500 << 20);
    assert_true(f.result.memory.required_bytes == 1180 << 20);
    assert_true(f.result.memory.required_category_bytes[HBM_PARAMETERS] == 600 << 20);
    assert_true(f.result.memory.required_category_bytes[HBM_CONTEXT] == 50 << 20);
    assert_true(f.result.memory.required_category_bytes[HBM_NCCL] == 30 << 20);
    assert_true(f.result.memory.peak_allocated_bytes == 600 << 20);
    end(&f);
}

/* Of 1000 MiB the context takes 50 and NCCL's buffers 30 for each group of more than one rank: 920
 * are left, and 950 of one rank alone. */
static void nccl_takes_its_buffers_before(void **state)
{
    (void)state;
    static const struct {
        int ranks, kept_mib;
        enum exec_status status;
    } cases[] = {{2, 920, EXEC_OK}, {2, 922, EXEC_OOM}, {1, 950, EXEC_OK}, {1, 952, EXEC_OOM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        begin(&f, cases[i].ranks);
        plan_group(&f.builder, "world", cases[i].ranks, 1);
        f.hw.gpu.hbm_capacity.value = 1000 << 20;
        f.hw.gpu.context_bytes.value = 50 << 20;
        f.hw.node.nccl_bytes.value = 30 << 20;
        plan_keep(&f.builder, "weights", (int64_t)cases[i].kept_mib << 20, HBM_PARAMETERS);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        assert_int_equal(f.result.status, cases[i].status);
        end(&f);
    }
}

/* 300 MB in every step, given back, then as many that are kept from the first step on: those take
 * the block, so the second step's cudaMalloc of 1 ms makes the second block, and from the third
 * step on there is none: 2 ms in four steps. A run of one step has what is kept from the start. */
static void what_the_first_step_keeps_takes_free_blocks(void **state)
{
    (void)state;
    static const struct {
        int warmup, steps;
        double stall_s;
    } runs[] = {{0, 1, 1e-3}, {1, 1, 1e-3}, {2, 1, 0}, {0, 4, 0.5e-3}};
    for (int i = 0; i < 4; i++) {
        struct fixture f;
        begin(&f, 1);
        f.hw.gpu.cuda_malloc.value = 1e-3;
        f.options.steps = runs[i].steps;
        f.options.warmup_steps = runs[i].warmup;
        int scores = plan_alloc(&f.builder, STREAM_COMPUTE, "scores", 300 << 20, HBM_ACTIVATIONS);
        mover(&f, STREAM_COMPUTE, 1, 0);
        plan_free(&f.builder, scores, PLAN_NO_OP);
        plan_keep_from_here(&f.builder, "moments", 300 << 20, HBM_OPTIMIZER);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        near(f.result.memory.alloc_stall_s, runs[i].stall_s);
        assert_true(f.result.memory.peak_allocated_bytes == 600 << 20);
        assert_true(f.result.memory.peak_reserved_bytes == 600 << 20);
        end(&f);
    }
}

/* A block of 400 MB that a kernel of 10 ms on another stream uses, then one of 700 MB, then another
 * kernel of 10 ms; a cudaMalloc or cudaFree takes 1 ms. In 2 GB the second cudaMalloc lies beside
 * the first kernel: 1 + 10 + 10 ms. In 1 GB it fails at 1 ms; the host waits for the kernel to 11
 * ms, frees the first block, tries again and issues the second kernel at 13 ms: 23 ms, of which the
 * host stood 1 + 10 + 2. */
static void a_retry_drains_the_gpu(void **state)
{
    (void)state;
    for (int limited = 0; limited < 2; limited++) {
        struct fixture f;
        begin(&f, 1);
        f.hw.gpu.cuda_malloc.value = f.hw.gpu.cuda_free.value = 1e-3;
        f.hw.gpu.hbm_capacity.value = limited ? 1e9 : 2e9;
        int first = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 400000000, HBM_GATHERED);
        plan_free(&f.builder, first, mover(&f, STREAM_COMPUTE, 10, 0));
        int second = plan_alloc(&f.builder, STREAM_COMPUTE, "scores", 700000000, HBM_ACTIVATIONS);
        mover(&f, STREAM_COMPUTE, 10, 0);
        plan_free(&f.builder, second, PLAN_NO_OP);
        run(&f);
        assert_int_equal(f.result.status, EXEC_OK);
        near(f.result.step_time_s, limited ? 23e-3 : 21e-3);
        near(f.result.memory.alloc_stall_s, limited ? 13e-3 : 2e-3);
        assert_true(f.result.memory.alloc_retries_a_step == limited);
        end(&f);
    }
}

/* Two GPUs, one faster and one slower than 10 ms by a few per cent. A block of 700 MB of 1 GB is
 * freed after a kernel of 10 ms, and as much asked for 9.99 ms later: the slower one has to drain
 * for it, the faster one has the block by then. The result is the slower one's, whichever of the
 * two it is. */
static void the_rank_that_stands_longest_is_the_result(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 6; seed++) {
        struct fixture f;
        begin(&f, 2);
        f.options.seed = seed;
        f.options.noise.gpu_speed_spread = f.options.noise.gpu_speed_spread_below = 0.05;
        int first = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 700000000, HBM_GATHERED);
        plan_free(&f.builder, first, computer(&f, 10));
        plan_host(&f.builder, "work", 9.99e-3);
        int second = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 700000000, HBM_GATHERED);
        plan_free(&f.builder, second, computer(&f, 1));
        run(&f);
        assert_false(f.result.folded);
        assert_true(f.result.memory.alloc_retries == 1);
        assert_true(f.result.memory.alloc_stall_s > 0.01e-3);
        end(&f);
    }
}

/* Blocks of 20 MiB, each of which a kernel of 10 ms of another stream uses before it is freed.
 * Events are asked for by malloc, and nowhere else: the second malloc comes while the first kernel
 * runs, so it makes a segment. The third finds the first block when the host has meanwhile worked
 * 15 ms, and makes a segment when it has not. The fourth comes after another 15 ms: the second
 * block's event, recorded when it was freed, has passed by then, as its kernel ended at 20 ms. */
static void malloc_asks_for_events(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct fixture f;
        begin(&f, 1);
        for (int i = 0; i < 4; i++) {
            if (late && i >= 2)
                plan_host(&f.builder, "work", 15e-3);
            int block = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 20 << 20, HBM_GATHERED);
            plan_free(&f.builder, block, mover(&f, STREAM_COMPUTE, 10, 0));
        }
        run(&f);
        assert_true(f.result.memory.peak_reserved_bytes == (late ? 40 : 80) << 20);
        assert_true(f.result.memory.peak_allocated_bytes == 20 << 20);
        end(&f);
    }
}

/* The host takes 1 ms before each of three kernels. 512 MiB are kept; 64 MiB come after the first
 * and 32 more after the second, and go at the end. The samples are of the last step, from its
 * begin, of each change in turn. */
static void the_timeline_is_of_one_step(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    plan_keep(&f.builder, "weights", 512 << 20, HBM_PARAMETERS);
    mover(&f, STREAM_COMPUTE, 0.1, 1e-3);
    int one = plan_alloc(&f.builder, STREAM_COMPUTE, "one", 64 << 20, HBM_ACTIVATIONS);
    mover(&f, STREAM_COMPUTE, 0.1, 1e-3);
    int two = plan_alloc(&f.builder, STREAM_COMPUTE, "two", 32 << 20, HBM_GRADIENTS);
    int last = mover(&f, STREAM_COMPUTE, 0.1, 1e-3);
    plan_host_wait(&f.builder, "item", last, 0);
    plan_free(&f.builder, one, PLAN_NO_OP);
    plan_free(&f.builder, two, PLAN_NO_OP);
    f.options.steps = 2;
    f.options.warmup_steps = 1;
    run(&f);
    double most[2] = {0}, before = -1;
    for (int i = 0; i < f.result.n_timeline; i++) {
        const struct exec_memory_sample *sample = &f.result.timeline[i];
        double sum = 0;
        for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
            sum += sample->category_bytes[c];
        assert_true(sample->time_s >= before && sample->time_s >= 0 &&
                    sample->time_s <= f.result.step_time_s + 1e-9);
        assert_true(sample->category_bytes[HBM_PARAMETERS] == 512 << 20);
        assert_true(sample->reserved_bytes >= sum);
        most[0] = fmax(most[0], sample->category_bytes[HBM_ACTIVATIONS]);
        most[1] = fmax(most[1], sample->category_bytes[HBM_GRADIENTS]);
        before = sample->time_s;
    }
    assert_true(most[0] == 64 << 20 && most[1] == 32 << 20);
    assert_true(f.result.memory.peak_allocated_bytes == 608 << 20);
    assert_true(f.result.memory.capacity_bytes == 1e9);
    end(&f);
}

/* 1,000 times a buffer of 1 to 7 MiB comes and goes: 2,000 samples, of which each row has five, and
 * the fullest. */
static void long_timelines_have_the_highest_of_each_stretch(void **state)
{
    (void)state;
    enum { PAIRS = 1000, ROWS = 400, EACH = 2 * PAIRS / ROWS };
    struct fixture f;
    begin(&f, 1);
    for (int i = 0; i < PAIRS; i++) {
        int64_t bytes = (int64_t)(i * 5 % 7 + 1) << 20;
        int one = plan_alloc(&f.builder, STREAM_COMPUTE, "one", bytes, HBM_ACTIVATIONS);
        plan_free(&f.builder, one, PLAN_NO_OP);
    }
    mover(&f, STREAM_COMPUTE, 0.1, 1e-3);
    run(&f);
    assert_int_equal(f.result.n_timeline, ROWS);
    for (int row = 0; row < ROWS; row++) {
        int64_t most = 0;
        for (int i = row * EACH; i < (row + 1) * EACH; i++)
            if (i % 2 == 0 && i / 2 * 5 % 7 + 1 > most)
                most = i / 2 * 5 % 7 + 1;
        assert_int_equal(
            (int64_t)f.result.timeline[row].category_bytes[HBM_ACTIVATIONS], most << 20);
    }
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory_is_a_result),
        cmocka_unit_test(nccl_takes_its_buffers_before),
        cmocka_unit_test(what_the_first_step_keeps_takes_free_blocks),
        cmocka_unit_test(a_retry_drains_the_gpu),
        cmocka_unit_test(the_rank_that_stands_longest_is_the_result),
        cmocka_unit_test(malloc_asks_for_events),
        cmocka_unit_test(the_timeline_is_of_one_step),
        cmocka_unit_test(long_timelines_have_the_highest_of_each_stretch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
