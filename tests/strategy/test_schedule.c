/* Orders of cells, and what they cost where messages are free: cells of all stages run as soon as what they need is
 * there. Expected makespans: bubble of (p - 1) / m of the work for GPipe and 1F1B, divided by the chunks v where they
 * are interleaved (Narayanan et al., arXiv 2104.04473, section 2.2); (p - 1) (F + B - W) for ZB-H1 (Qi et al., arXiv
 * 2401.10241, table 1). */
#include "strategy/schedule.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_STAGES = 8, MOST_CHUNKS = 4, MOST_MICRO_BATCHES = 32, MOST_CELLS = 3 * MOST_CHUNKS * MOST_MICRO_BATCHES };

/* Units of time: forward, gradient of the input, of the weights, each of a stage. */
enum { F = 4, B = 4, W = 4 };

static struct schedule of(int kind, int stages, int chunks, int micro_batches)
{
    return (struct schedule){.kind = kind, .stages = stages, .chunks = chunks, .micro_batches = micro_batches};
}

static int duration(enum cell_kind kind, int chunks)
{
    return (kind == CELL_FORWARD ? F : kind == CELL_BACKWARD ? B + W : kind == CELL_BACKWARD_INPUT ? B : W) / chunks;
}

struct run {
    struct schedule of;
    struct cell cells[MOST_STAGES][MOST_CELLS];
    int n[MOST_STAGES], at[MOST_STAGES], free[MOST_STAGES];
    int forward[MOST_STAGES * MOST_CHUNKS]
               [MOST_MICRO_BATCHES]; /* by place in the model: when it was done; 0: not yet */
    int backward[MOST_STAGES * MOST_CHUNKS][MOST_MICRO_BATCHES];
};

/* When what a cell needs is there; -1: it is not. */
static int ready(const struct run *run, int stage, struct cell cell)
{
    int place = cell.chunk * run->of.stages + stage, places = run->of.stages * run->of.chunks, when = 0;
    if (cell.kind == CELL_FORWARD && place > 0)
        when = run->forward[place - 1][cell.micro_batch];
    else if (cell.kind == CELL_BACKWARD_WEIGHT)
        when = run->backward[place][cell.micro_batch];
    else if (cell.kind != CELL_FORWARD && place + 1 < places)
        when = run->backward[place + 1][cell.micro_batch];
    else if (cell.kind != CELL_FORWARD)
        when = run->forward[place][cell.micro_batch];
    else
        return 0;
    return when > 0 ? when : -1;
}

static bool go_on(struct run *run, int stage)
{
    bool moved = false;
    for (; run->at[stage] < run->n[stage]; run->at[stage]++, moved = true) {
        struct cell cell = run->cells[stage][run->at[stage]];
        int from = ready(run, stage, cell), place = cell.chunk * run->of.stages + stage;
        if (from < 0)
            break;
        int start = from > run->free[stage] ? from : run->free[stage];
        int end = run->free[stage] = start + duration(cell.kind, run->of.chunks);
        if (cell.kind == CELL_FORWARD)
            run->forward[place][cell.micro_batch] = end;
        else if (cell.kind != CELL_BACKWARD_WEIGHT)
            run->backward[place][cell.micro_batch] = end;
    }
    return moved;
}

static int makespan(struct schedule schedule)
{
    static struct run run;
    memset(&run, 0, sizeof run);
    run.of = schedule;
    for (int i = 0; i < schedule.stages; i++) {
        run.of.stage = i;
        run.n[i] = schedule_cells(run.cells[i], &run.of);
        assert_int_equal(run.n[i], schedule_most_cells(&run.of));
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < schedule.stages; i++)
            moved = go_on(&run, i) || moved;
    }
    int last = 0;
    for (int i = 0; i < schedule.stages; i++) {
        assert_int_equal(run.at[i], run.n[i]); /* no deadlock */
        last = run.free[i] > last ? run.free[i] : last;
    }
    return last;
}

static int in_flight(struct schedule schedule, int stage)
{
    struct cell cells[MOST_CELLS];
    schedule.stage = stage;
    return schedule_in_flight(cells, schedule_cells(cells, &schedule));
}

/* F0 B0 F1 B1 F2 B2, whatever the schedule. */
static void one_stage_finishes_a_micro_batch_before_the_next(void **state)
{
    (void)state;
    enum { MICRO_BATCHES = 3 };
    for (int kind = 0; kind < SCHEDULE_COUNT; kind++) {
        struct cell cells[3 * MICRO_BATCHES];
        const struct schedule one = of(kind, 1, 1, MICRO_BATCHES);
        assert_int_equal(schedule_cells(cells, &one), 2 * MICRO_BATCHES);
        for (int i = 0; i < 2 * MICRO_BATCHES; i++) {
            assert_int_equal(cells[i].kind, i % 2 ? CELL_BACKWARD : CELL_FORWARD);
            assert_int_equal(cells[i].micro_batch, i / 2);
            assert_int_equal(cells[i].chunk, 0);
        }
    }
}

static void gpipe_and_1f1b_lose_p_minus_1_of_the_micro_batches(void **state)
{
    (void)state;
    for (int p = 2; p <= MOST_STAGES; p *= 2)
        for (int m = p; m <= MOST_MICRO_BATCHES; m *= 2) {
            assert_int_equal(makespan(of(SCHEDULE_1F1B, p, 1, m)), (m + p - 1) * (F + B + W));
            assert_int_equal(makespan(of(SCHEDULE_GPIPE, p, 1, m)), (m + p - 1) * (F + B + W));
        }
}

static void interleaving_divides_the_bubble_by_the_chunks(void **state)
{
    (void)state;
    for (int p = 2; p <= MOST_STAGES; p *= 2)
        for (int v = 2; v <= MOST_CHUNKS; v *= 2)
            for (int m = p; m <= MOST_MICRO_BATCHES; m *= 2)
                assert_int_equal(makespan(of(SCHEDULE_1F1B, p, v, m)), m * (F + B + W) + (p - 1) * (F + B + W) / v);
}

static void zero_bubble_h1_loses_a_third(void **state)
{
    (void)state;
    for (int p = 2; p <= MOST_STAGES; p *= 2)
        for (int m = p; m <= MOST_MICRO_BATCHES; m *= 2)
            assert_int_equal(makespan(of(SCHEDULE_ZBH1, p, 1, m)), m * (F + B + W) + (p - 1) * (F + B - W));
}

/* 1F1B: stage i warms up with p - i - 1 and begins one more. GPipe: all. Interleaved: 2 (p - i - 1) + (v - 1) p and
 * one more. */
static void micro_batches_in_flight(void **state)
{
    (void)state;
    enum { P = 4, M = 16, V = 2 };
    for (int i = 0; i < P; i++) {
        assert_int_equal(in_flight(of(SCHEDULE_1F1B, P, 1, M), i), P - i);
        assert_int_equal(in_flight(of(SCHEDULE_ZBH1, P, 1, M), i), P - i);
        assert_int_equal(in_flight(of(SCHEDULE_GPIPE, P, 1, M), i), M);
        assert_int_equal(in_flight(of(SCHEDULE_1F1B, P, V, M), i), 2 * (P - i - 1) + (V - 1) * P + 1);
    }
    assert_int_equal(in_flight(of(SCHEDULE_1F1B, P, 1, 2), 0), 2); /* there are no more */
}

/* F0 F1 B0 F2 B1 B2 on one stage: a pair is of two micro-batches, and one more of them is under way. */
static void merged_passes_are_of_two_micro_batches(void **state)
{
    (void)state;
    enum { P = 4, M = 16, V = 2, FEW = 3 };
    struct cell cells[MOST_CELLS];
    static const struct cell wanted[2 * FEW] = {{CELL_FORWARD, 0, 0}, {CELL_FORWARD, 1, 0}, {CELL_BACKWARD, 0, 0},
        {CELL_FORWARD, 2, 0}, {CELL_BACKWARD, 1, 0}, {CELL_BACKWARD, 2, 0}};
    const struct schedule one = {SCHEDULE_1F1B, 1, 0, 1, FEW, .merges = true};
    assert_int_equal(schedule_cells(cells, &one), 2 * FEW);
    for (int i = 0; i < 2 * FEW; i++) {
        assert_int_equal(cells[i].kind, wanted[i].kind);
        assert_int_equal(cells[i].micro_batch, wanted[i].micro_batch);
        assert_int_equal(schedule_merges(&one, cells, 2 * FEW, i), i == 1 || i == 3);
    }
    for (int i = 0; i < P; i++) {
        struct schedule stage = {SCHEDULE_1F1B, P, i, V, M, .merges = true};
        assert_int_equal(in_flight(stage, i), 2 * (P - i - 1) + (V - 1) * P + 2);
        int n = schedule_cells(cells, &stage), pairs = 0;
        for (int k = 0; k < n; k++) {
            bool pair = schedule_merges(&stage, cells, n, k);
            pairs += pair;
            if (pair)
                assert_true(cells[k].micro_batch != cells[k + 1].micro_batch || cells[k].chunk != cells[k + 1].chunk);
        }
        assert_int_equal(pairs, M * V - schedule_warm_up(&stage));
    }
    assert_int_equal(makespan((struct schedule){SCHEDULE_1F1B, P, 0, V, M, .merges = true}),
        M * (F + B + W) + (P - 1) * (F + B + W) / V);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stage_finishes_a_micro_batch_before_the_next),
        cmocka_unit_test(gpipe_and_1f1b_lose_p_minus_1_of_the_micro_batches),
        cmocka_unit_test(interleaving_divides_the_bubble_by_the_chunks),
        cmocka_unit_test(zero_bubble_h1_loses_a_third),
        cmocka_unit_test(micro_batches_in_flight),
        cmocka_unit_test(merged_passes_are_of_two_micro_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
