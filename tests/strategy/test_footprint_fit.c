/* Searches over the closed form: what they find fits, and what is next to it does not. */
#include "strategy/footprint_fit.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../shapes.h"

#include <string.h>

static struct footprint_job job_of(const struct model *model, int64_t micro_batch)
{
    return (struct footprint_job){.params = model->params,
        .model = model,
        .options = {.dtype = FOOTPRINT_BF16_MIXED, .gpus = 1, .micro_batch = micro_batch, .seq_len = 32}};
}

static bool fits_with(struct footprint_job job, int64_t micro_batch, double room)
{
    job.options.micro_batch = micro_batch;
    return footprint_job_bytes(&job) <= room;
}

static void the_largest_batch(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model;
    model_build(&model, &small_llama, &arena);
    struct footprint_job job = job_of(&model, 0);
    const double rooms[] = {5e6, 10e6, 33e6, 100e6, 700e6};
    int64_t last = 0;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        int64_t most = footprint_largest_batch(&job, rooms[i]);
        assert_true(most > last || (i == 0 && most == 0));
        assert_true(most == 0 || fits_with(job, most, rooms[i]));
        assert_false(fits_with(job, most + 1, rooms[i]));
        last = most;
    }
    assert_int_equal(footprint_largest_batch(&job, 1e15), FOOTPRINT_MOST_BATCH);
    arena_release(&arena);
}

/* 1B in pure 16-bit with Adam: 8 GB on one GPU. FSDP over N leaves 8 / N GB: 4.1 GB need two, 0.9 GB sixteen (0.5),
 * with one the room for 8 GB suffices. DDP never gets there: its states stay whole. */
static void the_fewest_gpus(void **state)
{
    (void)state;
    struct footprint_job job = {.params = 1000000000, .options = {.dtype = FOOTPRINT_BF16, .strategy = FOOTPRINT_FSDP}};
    assert_int_equal(footprint_fewest_gpus(&job, 8e9), 1);
    assert_int_equal(footprint_fewest_gpus(&job, 4.1e9), 2);
    assert_int_equal(footprint_fewest_gpus(&job, 0.9e9), 16);
    job.options.strategy = FOOTPRINT_DDP;
    assert_int_equal(footprint_fewest_gpus(&job, 4.1e9), 0);
}

/* Less and less room: the remedy gets dearer, always makes the job fit, and none before it in the list does. */
static void remedies_come_from_cheap_to_dear(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model;
    model_build(&model, &small_llama, &arena);
    struct footprint_job job = job_of(&model, 8), changed;
    double whole = footprint_job_bytes(&job);
    static const char *const order[] = {"--attention flash", "--cross-entropy fused", "--checkpointing selective",
        "--checkpointing full", "--micro-batch", "--optimizer adam8bit", "--strategy fsdp --offload",
        "--strategy fsdp --gpus", "--lora 16", "--attention flash --cross"};
    size_t last = 0;
    bool seen_batch = false;
    for (double share = 0.999; share > 0.3; share *= 0.97) {
        const char *what = footprint_remedy(&changed, &job, share * whole, &arena);
        assert_non_null(what);
        assert_true(footprint_job_bytes(&changed) <= share * whole);
        size_t at = sizeof order / sizeof *order; /* from the end: the last one begins as the first does */
        while (at > 0 && strncmp(order[at - 1], what, strlen(order[at - 1])) != 0)
            at--;
        assert_true(at > 0 && at >= last);
        last = at;
        seen_batch |= strncmp(what, "--micro-batch", 13) == 0;
    }
    assert_true(seen_batch);
    assert_null(footprint_remedy(&changed, &job, 1, &arena));
    arena_release(&arena);
}

/* 7e9 parameters in mixed precision take 16 bytes and autocast's 2: 126 GB. Eight GPUs that are there: DeepSpeed's
 * stage 1 leaves 4 + 12 / 8 bytes, 38.5 GB, and two buckets' 1 GB. Alone: nothing but host memory: 112 GB of it. */
static void sharding_over_what_is_there(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct footprint_job job = {
        .params = 7000000000, .options = {.dtype = FOOTPRINT_BF16_MIXED, .strategy = FOOTPRINT_DDP, .gpus = 8}};
    struct footprint_job changed;
    assert_string_equal(footprint_remedy(&changed, &job, 80e9, &arena), "--strategy zero1");
    job.options.gpus = 1;
    assert_string_equal(footprint_remedy(&changed, &job, 80e9, &arena), "--strategy fsdp --offload");
    struct footprint footprint = footprint_of(changed.params, NULL, &changed.options, &arena);
    assert_true(footprint.host == 16.0 * 7e9 && footprint.weights + footprint.optimizer == 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_batch),
        cmocka_unit_test(the_fewest_gpus),
        cmocka_unit_test(remedies_come_from_cheap_to_dear),
        cmocka_unit_test(sharding_over_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
