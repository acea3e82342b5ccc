/* Orders of cells, and what they cost where messages are free: cells of all stages run as soon as
 * what they need is there. Expected makespans: bubble of (p - 1) / m of the work for GPipe and
 * 1F1B, divided by the chunks v where they are interleaved (Narayanan et al., arXiv 2104.04473,
 * section 2.2); (p - 1) (F + B - W) for ZB-H1 (Qi et al., arXiv 2401.10241, table 1). In a V: see
 * the laws. */
#include "strategy/schedule.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

enum {
    MOST_STAGES = 8,
    MOST_CHUNKS = 4,
    MOST_MICRO_BATCHES = 32,
    MOST_CELLS = 3 * MOST_CHUNKS * MOST_MICRO_BATCHES
};

/* Units of time: forward, gradient of the input, of the weights, each of a stage. */
enum { F = 4, B = 4, W = 4 };

static struct schedule of(int kind, int stages, int chunks, int micro_batches)
{
    return (struct schedule){
        .kind = kind, .stages = stages, .chunks = chunks, .micro_batches = micro_batches};
}

static int duration(enum cell_kind kind, int chunks)
{
    return (kind == CELL_FORWARD             ? F
               : kind == CELL_BACKWARD       ? B + W
               : kind == CELL_BACKWARD_INPUT ? B
                                             : W) /
           chunks;
}

struct run {
    struct schedule of;
    struct cell cells[MOST_STAGES][MOST_CELLS];
    int n[MOST_STAGES], at[MOST_STAGES], free[MOST_STAGES];
    int first[MOST_STAGES], idle[MOST_STAGES]; /* when the first cell began; between cells since */
    int saved;                                 /* of the time of two cells that are merged */
    int forward[MOST_STAGES * MOST_CHUNKS]
               [MOST_MICRO_BATCHES]; /* by place in the model: when it was done; 0: not yet */
    int backward[MOST_STAGES * MOST_CHUNKS][MOST_MICRO_BATCHES];
};

static int place_of(const struct run *run, int stage, struct cell cell)
{
    struct schedule at = run->of;
    at.stage = stage;
    return schedule_place(&at, cell.chunk);
}

/* When what a cell needs is there; -1: it is not. */
static int ready(const struct run *run, int stage, struct cell cell)
{
    int place = place_of(run, stage, cell), places = run->of.stages * run->of.chunks, when = 0;
    if (cell.kind == CELL_FORWARD && place > 0)
        when = run->forward[place - 1][cell.micro_batch];
    else if (cell.kind == CELL_BACKWARD_WEIGHT)
        when = run->backward[place][cell.micro_batch];
    else if (cell.kind != CELL_FORWARD && run->forward[place][cell.micro_batch] == 0)
        return -1;
    else if (cell.kind != CELL_FORWARD && place + 1 < places)
        when = run->backward[place + 1][cell.micro_batch];
    else if (cell.kind != CELL_FORWARD)
        when = run->forward[place][cell.micro_batch];
    else
        return 0;
    return when > 0 ? when : -1;
}

static void done(struct run *run, int stage, struct cell cell, int when)
{
    int place = place_of(run, stage, cell);
    int(*passed)[MOST_MICRO_BATCHES] = cell.kind == CELL_FORWARD ? run->forward : run->backward;
    if (cell.kind == CELL_BACKWARD_WEIGHT)
        return;
    assert_int_equal(passed[place][cell.micro_batch], 0); /* once */
    passed[place][cell.micro_batch] = when;
}

/* Of cells that are merged both have what they need before they begin, and both end together. */
static bool go_on(struct run *run, int stage)
{
    bool moved = false;
    struct schedule at = run->of;
    at.stage = stage;
    while (run->at[stage] < run->n[stage]) {
        const struct cell *cells = &run->cells[stage][run->at[stage]];
        int n = 1 + schedule_merges(&at, run->cells[stage], run->n[stage], run->at[stage]);
        int start = run->free[stage], end = 0;
        for (int i = 0; i < n; i++) {
            int from = ready(run, stage, cells[i]);
            if (from < 0)
                return moved;
            start = from > start ? from : start;
            end += duration(cells[i].kind, run->of.chunks);
        }
        run->first[stage] = run->at[stage] == 0 ? start : run->first[stage];
        run->idle[stage] += run->at[stage] == 0 ? 0 : start - run->free[stage];
        run->free[stage] = start + end - (n > 1 ? run->saved : 0);
        for (int i = 0; i < n; i++)
            done(run, stage, cells[i], run->free[stage]);
        run->at[stage] += n;
        moved = true;
    }
    return moved;
}

static int finish(struct run *run)
{
    for (int i = 0; i < run->of.stages; i++) {
        struct schedule at = run->of;
        at.stage = i;
        run->n[i] = schedule_cells(run->cells[i], &at);
        assert_true(run->n[i] <= schedule_most_cells(&at));
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < run->of.stages; i++)
            moved = go_on(run, i) || moved;
    }
    int last = 0;
    for (int i = 0; i < run->of.stages; i++) {
        assert_int_equal(run->at[i], run->n[i]); /* no deadlock */
        last = run->free[i] > last ? run->free[i] : last;
    }
    return last;
}

static int makespan(struct schedule schedule)
{
    static struct run run;
    run = (struct run){.of = schedule};
    return finish(&run);
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
                assert_int_equal(makespan(of(SCHEDULE_1F1B, p, v, m)),
                    m * (F + B + W) + (p - 1) * (F + B + W) / v);
}

static void zero_bubble_h1_loses_a_third(void **state)
{
    (void)state;
    for (int p = 2; p <= MOST_STAGES; p *= 2)
        for (int m = p; m <= MOST_MICRO_BATCHES; m *= 2)
            assert_int_equal(
                makespan(of(SCHEDULE_ZBH1, p, 1, m)), m * (F + B + W) + (p - 1) * (F + B - W));
}

/* 1F1B: stage i warms up with p - i - 1 and begins one more. GPipe: all. Interleaved: 2 (p - i - 1)
 * + (v - 1) p and one more. */
static void micro_batches_in_flight(void **state)
{
    (void)state;
    enum { P = 4, M = 16, V = 2 };
    for (int i = 0; i < P; i++) {
        assert_int_equal(in_flight(of(SCHEDULE_1F1B, P, 1, M), i), P - i);
        assert_int_equal(in_flight(of(SCHEDULE_ZBH1, P, 1, M), i), P - i);
        assert_int_equal(in_flight(of(SCHEDULE_GPIPE, P, 1, M), i), M);
        assert_int_equal(
            in_flight(of(SCHEDULE_1F1B, P, V, M), i), 2 * (P - i - 1) + (V - 1) * P + 1);
    }
    assert_int_equal(in_flight(of(SCHEDULE_1F1B, P, 1, 2), 0), 2); /* there are no more */
}

/* F0 F1 B0 F2 B1 B2 on one stage: a pair is of two micro-batches, and one more of them is under
 * way. */
static void merged_passes_are_of_two_micro_batches(void **state)
{
    (void)state;
    enum { P = 4, M = 16, V = 2, FEW = 3 };
    struct cell cells[MOST_CELLS];
    static const struct cell wanted[2 * FEW] = {{CELL_FORWARD, 0, 0}, {CELL_FORWARD, 1, 0},
        {CELL_BACKWARD, 0, 0}, {CELL_FORWARD, 2, 0}, {CELL_BACKWARD, 1, 0}, {CELL_BACKWARD, 2, 0}};
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
                assert_true(cells[k].micro_batch != cells[k + 1].micro_batch ||
                            cells[k].chunk != cells[k + 1].chunk);
        }
        assert_int_equal(pairs, M * V - schedule_warm_up(&stage));
    }
    assert_int_equal(makespan((struct schedule){SCHEDULE_1F1B, P, 0, V, M, .merges = true}),
        M * (F + B + W) + (P - 1) * (F + B + W) / V);
}

/* ---- in a V ---- */

static const int in_v[] = {SCHEDULE_ZBV, SCHEDULE_DUALPIPEV};
enum { IN_V = sizeof in_v / sizeof *in_v };

static void the_first_stage_of_a_v_has_both_ends(void **state)
{
    (void)state;
    for (int v = 0; v < IN_V; v++)
        for (int p = 2; p <= MOST_STAGES; p++) {
            bool taken[2 * MOST_STAGES] = {false};
            for (int i = 0; i < p; i++)
                for (int c = 0; c < SCHEDULE_V_CHUNKS; c++) {
                    struct schedule at = {in_v[v], p, i, SCHEDULE_V_CHUNKS, 2 * p, false};
                    assert_int_equal(schedule_place(&at, c), c == 0 ? i : 2 * p - 1 - i);
                    assert_false(taken[schedule_place(&at, c)]);
                    taken[schedule_place(&at, c)] = true;
                }
        }
}

/* Of every micro-batch and chunk once F, then a whole B, or B of the inputs and later W; in the
 * order of the micro-batches, as messages of a chunk come. */
static void every_cell_of_a_v_is_there_once(struct schedule at)
{
    static struct cell cells[MOST_CELLS];
    int next[CELL_KIND_COUNT][SCHEDULE_V_CHUNKS] = {{0}}, whole[SCHEDULE_V_CHUNKS] = {0};
    bool waits[MOST_MICRO_BATCHES][SCHEDULE_V_CHUNKS] = {{false}};
    int n = schedule_cells(cells, &at);
    for (int i = 0; i < n; i++) {
        const struct cell *cell = &cells[i];
        bool splits = cell->kind == CELL_BACKWARD_INPUT;
        if (cell->kind == CELL_BACKWARD_WEIGHT) {
            assert_true(waits[cell->micro_batch][cell->chunk]);
            waits[cell->micro_batch][cell->chunk] = false;
            next[CELL_BACKWARD_WEIGHT][cell->chunk]++;
            continue;
        }
        whole[cell->chunk] += cell->kind == CELL_BACKWARD;
        waits[cell->micro_batch][cell->chunk] = splits;
        assert_int_equal(
            cell->micro_batch, next[splits ? CELL_BACKWARD : cell->kind][cell->chunk]++);
        assert_true(next[CELL_BACKWARD][cell->chunk] <= next[CELL_FORWARD][cell->chunk]);
    }
    for (int c = 0; c < SCHEDULE_V_CHUNKS; c++) {
        assert_int_equal(next[CELL_FORWARD][c], at.micro_batches);
        assert_int_equal(next[CELL_BACKWARD][c], at.micro_batches);
        assert_int_equal(next[CELL_BACKWARD_WEIGHT][c], at.micro_batches - whole[c]);
    }
}

static void cells_of_a_v(void **state)
{
    (void)state;
    for (int v = 0; v < IN_V; v++)
        for (int p = 2; p <= MOST_STAGES; p++)
            for (int m = schedule_least_micro_batches(in_v[v], p); m <= MOST_MICRO_BATCHES; m++)
                for (int i = 0; i < p; i++)
                    every_cell_of_a_v_is_there_once(
                        (struct schedule){in_v[v], p, i, SCHEDULE_V_CHUNKS, m, false});
}

/* Stage i begins when the first micro-batch has come through the i stages before it, and then waits
 * for nothing: with F = B = W of a chunk, as the paper has it, none of its cells comes too late.
 * Both end p - 1 such cells after what all of a stage's work takes. With fewer than 2 p - 1
 * micro-batches the V does not fill. */
static void zero_bubble_v_waits_for_nothing(void **state)
{
    (void)state;
    static struct run run;
    enum { CELL = F / SCHEDULE_V_CHUNKS };
    for (int p = 2; p <= MOST_STAGES; p++)
        for (int m = 2 * p - 2; m <= MOST_MICRO_BATCHES; m++) {
            run = (struct run){.of = of(SCHEDULE_ZBV, p, SCHEDULE_V_CHUNKS, m)};
            int end = finish(&run);
            if (m < 2 * p - 1) {
                assert_true(run.idle[0] > 0);
                continue;
            }
            assert_int_equal(end, m * (F + B + W) + (p - 1) * CELL);
            for (int i = 0; i < p; i++) {
                assert_int_equal(run.first[i], i * CELL);
                assert_int_equal(run.idle[i], 0);
            }
        }
}

/* DeepSeek's table: merged passes that take F&B, and F = B of the inputs, leave a bubble of (p - 1)
 * (F&B + B - 3 W), B of inputs and weights, on the last stage, which has all its pairs but one. One
 * after the other the second of a pair need not wait with the first, and of F = B = W all that is
 * left is p - 1 - i cells of stage i, and i to come to it: the step is as short as ZBV's. */
static void dualpipev_has_the_bubble_of_its_table(void **state)
{
    (void)state;
    static struct run run;
    enum { CELL = F / SCHEDULE_V_CHUNKS, MOST_SAVED = CELL };
    for (int p = 2; p <= MOST_STAGES; p++)
        for (int m = 2 * p; m <= MOST_MICRO_BATCHES; m++) {
            for (int saved = 0; saved <= MOST_SAVED; saved++) {
                run = (struct run){
                    .of = of(SCHEDULE_DUALPIPEV, p, SCHEDULE_V_CHUNKS, m), .saved = saved};
                run.of.merges = true;
                int end = finish(&run), pairs = 2 * (m - p) - 1, both = 3 * CELL - saved;
                assert_int_equal(
                    end, m * (F + B + W) - pairs * saved + (p - 1) * (both + 2 * CELL - 3 * CELL));
            }
            run = (struct run){.of = of(SCHEDULE_DUALPIPEV, p, SCHEDULE_V_CHUNKS, m)};
            assert_int_equal(finish(&run), m * (F + B + W) + (p - 1) * CELL);
            for (int i = 0; i < p; i++)
                assert_int_equal(run.idle[i], (p - 1 - i) * CELL);
        }
}

/* Half stages: as much as the first stage of 1F1B, and one more; on every stage. */
static void a_v_holds_as_much_on_every_stage(void **state)
{
    (void)state;
    for (int p = 2; p <= MOST_STAGES; p++)
        for (int i = 0; i < p; i++) {
            assert_int_equal(in_flight(of(SCHEDULE_ZBV, p, SCHEDULE_V_CHUNKS, 3 * p), i), 2 * p);
            assert_int_equal(
                in_flight(of(SCHEDULE_DUALPIPEV, p, SCHEDULE_V_CHUNKS, 3 * p), i), 2 * p + 1);
            assert_int_equal(2 * in_flight(of(SCHEDULE_1F1B, p, 1, 3 * p), 0), 2 * p);
        }
}

/* Of m = 3 p micro-batches stage i has m - 2 p + i + 1 turns of two pairs and p - 1 - i of one; the
 * first pair of the last stage stays two cells. */
static void pairs_of_dualpipev(void **state)
{
    (void)state;
    static struct cell cells[MOST_CELLS];
    for (int p = 2; p <= MOST_STAGES; p++)
        for (int i = 0; i < p; i++) {
            struct schedule at = {SCHEDULE_DUALPIPEV, p, i, SCHEDULE_V_CHUNKS, 3 * p, true};
            int n = schedule_cells(cells, &at), pairs = 0;
            for (int k = 0; k < n; k++) {
                bool pair = schedule_merges(&at, cells, n, k);
                pairs += pair;
                if (pair)
                    assert_true(
                        cells[k].chunk != cells[k + 1].chunk && cells[k + 1].kind == CELL_BACKWARD);
            }
            assert_int_equal(pairs, 2 * (p + i + 1) + p - 1 - i - (i == p - 1));
        }
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
        cmocka_unit_test(the_first_stage_of_a_v_has_both_ends),
        cmocka_unit_test(cells_of_a_v),
        cmocka_unit_test(zero_bubble_v_waits_for_nothing),
        cmocka_unit_test(dualpipev_has_the_bubble_of_its_table),
        cmocka_unit_test(a_v_holds_as_much_on_every_stage),
        cmocka_unit_test(pairs_of_dualpipev),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
