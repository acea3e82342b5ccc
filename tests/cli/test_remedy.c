/* What would make a job fit: the remedy fits, and none that is cheaper does. */
#include "cli/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../shapes.h"

#include <string.h>

/* A GPU with `capacity` bytes in a cluster of any size. */
static struct memory_job job_of(double capacity, int kind, int64_t gpus)
{
    struct memory_job job = {.point.options = scenario_default()};
    job.point.options.cluster.gpus = gpus;
    job.point.options.strategy.kind = kind;
    job.point.options.strategy.train.precision = PRECISION_BF16_MIXED;
    job.point.options.strategy.train.attention = ATTENTION_NAIVE;
    job.point.hw.gpu.hbm_capacity.value = capacity;
    for (int d = 0; d < DTYPE_COUNT; d++)
        job.point.hw.gpu.gemm[d].peak = (struct quantity){.value = 1e12, .kind = QUANTITY_ASSUMED};
    memory_unlimited(&job.point.hw);
    return job;
}

static struct memory_job planned_job(struct arena *arena, int64_t micro_batch)
{
    struct memory_job job = job_of(1e15, STRATEGY_SINGLE_DEVICE, 1);
    model_build(&job.point.model, &small_llama, arena);
    job.params = job.point.model.params;
    job.has_model = job.counted = true;
    job.point.options.strategy.train.micro_batch = micro_batch;
    job.point.options.strategy.train.seq_len = 32;
    assert_int_equal(memory_check(&job, &(struct diag){0}), STATUS_OK);
    return job;
}

static double bytes_of(struct memory_job job)
{
    struct diag diag = DIAG_INIT;
    struct memory_need need;
    assert_int_equal(memory_check(&job, &diag), STATUS_OK);
    assert_int_equal(memory_need(&need, &job, &diag), STATUS_OK);
    return need.peak.total_bytes;
}

static const char *remedy_of(
    struct memory_job *changed, const struct memory_job *job, struct arena *arena)
{
    struct memory_change change;
    return memory_remedy(&change, changed, job, arena) ? memory_said(&change, arena) : NULL;
}

/* Less and less room: the remedy gets dearer, always makes the job fit, and none before it in the
 * list does. */
static void remedies_come_from_cheap_to_dear(void **state)
{
    (void)state;
    static const char *const order[] = {"--attention flash", "--set train.cross_entropy=fused",
        "--checkpointing selective", "--checkpointing full", "--micro-batch",
        "--optimizer adam8bit", "--strategy fsdp --set fsdp.cpu_offload=true",
        "--strategy fsdp --gpus", "--strategy megatron", "--attention flash --set", "--lora 16"};
    struct arena arena = ARENA_INIT;
    struct memory_job job = planned_job(&arena, 8), changed;
    double whole = bytes_of(job);
    size_t last = 0;
    int seen = 0;
    for (int percent = 99; percent > 30; percent -= 3) {
        job.point.hw.gpu.hbm_capacity.value = whole * percent / 100;
        const char *what = remedy_of(&changed, &job, &arena);
        assert_non_null(what);
        assert_true(bytes_of(changed) <= whole * percent / 100);
        size_t at =
            sizeof order / sizeof *order; /* from the end: the last one begins as the first does */
        while (at > 0 && strncmp(order[at - 1], what, strlen(order[at - 1])) != 0)
            at--;
        assert_true(at > 0 && at >= last);
        seen += at > last;
        last = at;
    }
    assert_true(seen >= 3);
    job.point.hw.gpu.hbm_capacity.value = 1;
    assert_null(remedy_of(&changed, &job, &arena));
    arena_release(&arena);
}

/* 1B in pure 16-bit with Adam: 8 GB on one GPU. FSDP over N leaves 8 / N GB: 4.1 GB need two, 0.9
 * GB sixteen (0.5), with one the room for 8 GB suffices. DDP never gets there: its states stay
 * whole. */
static void the_fewest_gpus(void **state)
{
    (void)state;
    static const struct {
        double capacity;
        int strategy, gpus;
    } cases[] = {{8e9, STRATEGY_FSDP, 1}, {4.1e9, STRATEGY_FSDP, 2}, {0.9e9, STRATEGY_FSDP, 16},
        {4.1e9, STRATEGY_DDP, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct memory_job job = job_of(cases[i].capacity, cases[i].strategy, 1);
        job.point.options.strategy.train.precision = PRECISION_BF16;
        job.params = 1000000000;
        assert_int_equal(memory_fewest_gpus(&job), cases[i].gpus);
    }
}

/* 7e9 parameters in mixed precision take 16 bytes: 112 GB. Eight GPUs that are there: DeepSpeed's
 * stage 1 leaves 4 + 12 / 8 bytes, 38.5 GB. Alone: 8-bit Adam leaves 10 bytes, 70 GB, so nothing
 * but host memory does: 112 GB of it. */
static void sharding_over_what_is_there(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct memory_job job = job_of(60e9, STRATEGY_DDP, 8), changed;
    struct memory_need need;
    struct diag diag = DIAG_INIT;
    job.params = 7000000000;
    assert_string_equal(remedy_of(&changed, &job, &arena), "--strategy zero1");
    job.point.options.cluster.gpus = 1;
    assert_string_equal(
        remedy_of(&changed, &job, &arena), "--strategy fsdp --set fsdp.cpu_offload=true");
    assert_int_equal(memory_need(&need, &changed, &diag), STATUS_OK);
    assert_true(need.peak.host_bytes == 16.0 * 7e9 && exec_tensors(&need.peak) == 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remedies_come_from_cheap_to_dear),
        cmocka_unit_test(the_fewest_gpus),
        cmocka_unit_test(sharding_over_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
