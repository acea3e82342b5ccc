/* The bubble of a pipeline, simulated, against the closed form: equal stages, no host, messages
 * that cost nearly nothing. */
#include "exec/exec.h"
#include "strategy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../check_and_compile.h"
#include "../near.h"
#include "../point.h"

enum { STAGES = 4, MICRO_BATCHES = 8 };

/* Llama 2 7B on four H100, with 64 words, so that embedding and head are small. */
static void simulate(struct exec_result *result, struct arena *arena,
    const struct parallelism_options *parallelism, int gpus)
{
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    const struct scenario_override overrides[] = {{"cluster.gpus", "8"},
        {"train.attention", "flash"}, {"train.activation_checkpointing", "none"},
        {"train.seq_len", "2048"}, {"train.micro_batch", "8"}, {"train.global_batch", "64"}};
    if (scenario_load(&set, FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml",
            OVERRIDES(overrides), arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    struct scenario_point *point = &set.points[0];
    struct strategy_options *options = &point->options.strategy;
    options->host = (struct host_options){0};
    options->kind = STRATEGY_MEGATRON;
    options->parallelism = *parallelism;
    strategy_share_batch(options, gpus);
    point->hw.gpu.step_pause = (struct quantity){0};
    point->hw.node.gpu_bandwidth.value *= 1000;
    point->hw.cluster.nccl_channel_bandwidth = (struct quantity){0};
    struct model_shape shape = point->model.shape;
    shape.vocab = 64;
    struct model model;
    model_build(&model, &shape, arena);
    struct plan plan;
    struct exec_options exec = exec_default_options();
    exec.noise = (struct noise_options){0};
    exec.no_latency = exec.no_contention = exec.no_memory = true;
    static const int all[STAGES] = {0, 1, 2, 3};
    exec.trace_ranks = all;
    exec.n_trace_ranks = STAGES;
    if (check_and_compile(&plan, options, &model, &point->hw, gpus, arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    exec_run(result, &plan, &point->hw, &exec, arena);
    assert_int_equal(result->status, EXEC_OK);
    plan_release(&plan);
}

/* All parts of exposed communication are its sum, of which the bubble is none. */
static void adds_up(const struct exec_breakdown *part)
{
    double sum = 0;
    for (int p = 0; p < PARALLEL_COUNT; p++) {
        sum += part->comm[p].exposed_s;
        assert_true(part->comm[p].exposed_s >= 0 && part->comm[p].moving_s >= 0);
    }
    assert_near(sum, part->exposed_comm_s, 1e-9);
}

/* Of m micro-batches and p stages with v chunks each a stage idles for (p - 1) / v of the m + (p -
 * 1) / v times that a micro-batch takes (Narayanan et al., arXiv 2104.04473, section 2.2). The last
 * stage has 0.8 % more to do than the others, the head, and the optimizer takes 0.3 % of a step.
 * Where the host waits for messages, it is the same bubble. */
static void idle_time_is_that_of_the_closed_form(void **state)
{
    (void)state;
    static const struct {
        int schedule, chunks;
        bool overlaps, host_waits;
    } cases[] = {{SCHEDULE_1F1B, 1, false, false}, {SCHEDULE_1F1B, 1, false, true},
        {SCHEDULE_GPIPE, 1, false, false}, {SCHEDULE_GPIPE, 1, false, true},
        {SCHEDULE_1F1B, 2, false, false}, {SCHEDULE_1F1B, 2, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct exec_result result;
        struct parallelism_options parallelism = strategy_default_options().parallelism;
        parallelism.pipeline = STAGES;
        parallelism.virtual_stages = cases[i].chunks;
        parallelism.schedule = cases[i].schedule;
        parallelism.overlap_p2p_comm = cases[i].overlaps;
        parallelism.batch_p2p_sync = cases[i].host_waits;
        simulate(&result, &arena, &parallelism, STAGES);
        double fill = (STAGES - 1.0) / cases[i].chunks, expected = fill / (MICRO_BATCHES + fill);
        double step_s = result.step_time_s, compute_s = result.breakdown.compute_s;
        assert_near(step_s, compute_s * (MICRO_BATCHES + fill) / MICRO_BATCHES, 0.01 * step_s);
        assert_near(result.breakdown.bubble_s, expected * step_s, 0.005 * step_s);
        assert_near(result.breakdown.host_bound_s, 0, 1e-4 * step_s);
        /* The GPU waits for the network no longer than messages move, which is nearly nothing. */
        assert_true(result.breakdown.exposed_comm_s <= result.breakdown.comm_s);
        assert_near(result.breakdown.comm_s, 0, 0.01 * step_s);
        adds_up(&result.breakdown);
        for (int p = 0; p < STAGES; p++) {
            adds_up(&result.programs[p].breakdown);
            assert_near(result.programs[p].breakdown.bubble_s, expected * step_s, 0.01 * step_s);
        }
        arena_release(&arena);
    }
}

/* What kernels of each cell of the last step take; of what is in no cell, by stage. */
struct cells {
    double s[STAGES][CELL_KIND_COUNT][MICRO_BATCHES][SCHEDULE_V_CHUNKS], outside_s[STAGES];
};

static void add_up_cells(struct cells *out, const struct exec_result *result)
{
    *out = (struct cells){0};
    for (int i = 0; i < result->n_spans; i++) {
        const struct exec_span *span = &result->spans[i];
        double s = (double)(span->end - span->start) / PS_PER_S;
        if (span->is_collective || span->stream != STREAM_COMPUTE ||
            span->start < result->last_step_start)
            continue;
        int kind = 0;
        while (span->cell.pass && strcmp(cell_pass_names[kind], span->cell.pass) != 0)
            kind++;
        *(span->cell.pass ? &out->s[span->program][kind][span->cell.micro_batch][span->cell.chunk]
                          : &out->outside_s[span->program]) += s;
    }
}

enum { PLACES = STAGES * SCHEDULE_V_CHUNKS, CELLS = 3 * SCHEDULE_V_CHUNKS * MICRO_BATCHES };

/* When each cell ends, by its place in the model; 0: not yet. */
struct ends {
    double s[2][PLACES][MICRO_BATCHES];
};

/* When the cell's input is there; negative: not known. A stage has done its forward pass before. */
static double input_s(const struct ends *ends, struct cell cell, int place, int places)
{
    bool forward = cell.kind == CELL_FORWARD;
    int from = forward ? place - 1 : place + 1;
    if (cell.kind == CELL_BACKWARD_WEIGHT || from < 0 || from == places)
        return 0;
    double s = ends->s[!forward][from][cell.micro_batch];
    return s > 0 ? s : -1;
}

/* The longest path through the cells of all stages, to the end of the last one's work. */
static double path_s(const struct cells *cells, const struct schedule *of)
{
    static struct cell order[STAGES][CELLS];
    struct ends ends = {0};
    int n[STAGES], at[STAGES] = {0};
    double free_s[STAGES] = {0}, last_s = 0;
    struct schedule stage = *of;
    for (stage.stage = 0; stage.stage < STAGES; stage.stage++)
        n[stage.stage] = schedule_cells(order[stage.stage], &stage);
    for (bool moved = true; moved;) {
        moved = false;
        for (stage.stage = 0; stage.stage < STAGES; stage.stage++)
            for (int i = stage.stage; at[i] < n[i]; at[i]++, moved = true) {
                struct cell cell = order[i][at[i]];
                int place = schedule_place(&stage, cell.chunk);
                double input = input_s(&ends, cell, place, STAGES * of->chunks);
                if (input < 0)
                    break;
                free_s[i] =
                    fmax(free_s[i], input) + cells->s[i][cell.kind][cell.micro_batch][cell.chunk];
                if (cell.kind != CELL_BACKWARD_WEIGHT)
                    ends.s[cell.kind != CELL_FORWARD][place][cell.micro_batch] = free_s[i];
            }
    }
    for (int i = 0; i < STAGES; i++) {
        assert_int_equal(at[i], n[i]);
        last_s = fmax(last_s, free_s[i] + cells->outside_s[i]);
    }
    return last_s;
}

/* Where backward passes are split, F, B and W of a real block are not equal, and the bubble is what
 * the order of cells makes of them; in a V it is smaller than that of interleaved stages, which are
 * as many chunks. */
static void a_step_is_the_longest_path_through_its_cells(void **state)
{
    (void)state;
    static const struct {
        int schedule, chunks;
    } cases[] = {
        {SCHEDULE_1F1B, 2}, {SCHEDULE_ZBH1, 1}, {SCHEDULE_ZBV, 2}, {SCHEDULE_DUALPIPEV, 2}};
    double interleaved_s = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct exec_result result;
        struct cells cells;
        struct parallelism_options parallelism = strategy_default_options().parallelism;
        parallelism.pipeline = STAGES;
        parallelism.virtual_stages = cases[i].chunks;
        parallelism.schedule = cases[i].schedule;
        parallelism.overlap_p2p_comm = true;
        simulate(&result, &arena, &parallelism, STAGES);
        add_up_cells(&cells, &result);
        struct schedule of = {cases[i].schedule, STAGES, 0, cases[i].chunks, MICRO_BATCHES, false};
        assert_near(path_s(&cells, &of), result.step_time_s, 0.005 * result.step_time_s);
        if (i == 0)
            interleaved_s = result.breakdown.bubble_s;
        assert_true(!schedule_is_v(of.kind) || result.breakdown.bubble_s < 0.7 * interleaved_s);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_time_is_that_of_the_closed_form),
        cmocka_unit_test(a_step_is_the_longest_path_through_its_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
