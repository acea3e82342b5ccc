/* A scenario's results made by hand, for the tests of store and report: one curve of three clusters
 * with published figures, and one point that is out of memory. */
#ifndef FLOPCAST_TESTS_STORE_SAMPLE_H
#define FLOPCAST_TESTS_STORE_SAMPLE_H

#include "store/run.h"

enum { SAMPLE_POINTS = 4, SAMPLE_OOM = 3 };

struct sample {
    struct scenario_point points[SAMPLE_POINTS];
    struct scenario_result results[SAMPLE_POINTS];
    struct exec_memory_sample timeline[2];
    struct scenario_set set;
};

static void sample_fill_result(struct sample *sample, int i, double step_time_s)
{
    struct scenario_result *result = &sample->results[i];
    result->tflops_per_gpu = 300 / step_time_s; /* 2, 2.4, 3 s: 150, 125, 100 */
    result->hw_tflops_per_gpu = result->tflops_per_gpu;
    result->exec.step_time_s = step_time_s;
    /* compute + exposed + host + other = step; contention is part of compute */
    result->exec.breakdown = (struct exec_breakdown){.compute_s = 1.5,
        .contention_s = 0.25,
        .exposed_comm_s = step_time_s - 1.75,
        .host_bound_s = 0.125,
        .other_idle_s = 0.125};
    result->exec.memory.peak_allocated_bytes = 0x1p34;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        result->exec.memory.peak_category_bytes[c] = (c + 1) * 0x1p30;
    result->exec.timeline = sample->timeline;
    result->exec.n_timeline = 2;
}

static void sample_fill_oom(struct sample *sample)
{
    struct exec_result *exec = &sample->results[SAMPLE_OOM].exec;
    exec->status = EXEC_OOM;
    exec->memory.oom_op = "decoder.block.3/wi";
    exec->memory.oom_category = HBM_ACTIVATIONS;
    exec->memory.oom_request_bytes = 0x1p29;
    exec->memory.required_bytes = 100 * 0x1p30;
    exec->memory.required_category_bytes[HBM_OPTIMIZER] = 100 * 0x1p30;
}

static struct sample *sample_init(struct sample *sample)
{
    static const double step_times_s[] = {2, 2.4, 3};
    static const double published[] = {160, 144, 120};
    *sample = (struct sample){
        .set = {.file = "sample.yaml", .points = sample->points, .n_points = SAMPLE_POINTS}};
    for (int i = 0; i < SAMPLE_POINTS; i++) {
        struct scenario_point *point = &sample->points[i];
        point->options.name = "sample";
        point->options.model_path = "tiny.yaml";
        point->options.cluster.topology = "cluster.yaml";
        point->options.cluster.gpus = 8 << i;
        point->options.strategy = strategy_default_options();
        point->options.strategy.train.micro_batch = i == SAMPLE_OOM ? 64 : 8;
        point->hw.cluster.name = "a cluster";
        point->hw.node.name = "a node";
        point->hw.gpu.name = "a GPU";
        point->hw.gpu.arch = "Ampere";
        point->model.shape.name = "tiny, \"quoted\"";
        point->model.params = 1000;
        sample->results[i].exec.memory.capacity_bytes = 80 * 0x1p30;
        sample->results[i].exec.digest = 0xabc0 + (uint64_t)i;
        if (i == SAMPLE_OOM)
            sample_fill_oom(sample);
        else
            sample_fill_result(sample, i, step_times_s[i]);
        if (i != SAMPLE_OOM)
            point->published = (struct scenario_published){
                .found = true, .id = "P", .source = "a paper", .tflops_per_gpu = published[i]};
    }
    return sample;
}

/* A separate run, whatever the database has. */
static inline enum status sample_put(
    struct store *store, const struct sample *sample, struct diag *diag)
{
    struct store_run *run = NULL;
    struct scenario_result unused[SAMPLE_POINTS];
    struct arena arenas[SAMPLE_POINTS] = {0};
    bool known[SAMPLE_POINTS] = {0};
    const struct store_run_options options = {.set = &sample->set, .again = true};
    enum status status = store_run_begin(&run, store, &options, unused, arenas, known, diag);
    for (int i = 0; i < SAMPLE_POINTS && status == STATUS_OK; i++)
        status = store_run_point(run, i, &sample->results[i], diag);
    store_run_end(run);
    return status;
}

#endif
