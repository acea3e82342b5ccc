#include "kernel/gemm.h"

#include <math.h>

struct tile {
    int m, n;
};
static const struct tile tiles[] = {
    {256, 128},
    {128, 256},
    {128, 128},
    {256, 64},
    {64, 256},
    {128, 64},
    {64, 128},
    {64, 64},
    {128, 32},
    {32, 128},
    {64, 32},
    {32, 64},
};
enum {
    N_TILES = sizeof tiles / sizeof *tiles,
    SPLIT_MAX = 64, /* assumed: beyond, adding the partial results costs more than the split saves */
    SPLIT_MIN_K =
        64,          /* assumed: elements of k left to a slice; two steps of the 32-deep main loop of CUTLASS's tiles */
    SPLIT_WAVES = 2, /* assumed: a split may at most fill the SMs twice; beyond, the tiles alone fill them */
    PARTIAL_BYTES = 4, /* partial results are FP32 */
};

/* What does not depend on the tile shape. */
struct machine {
    double flop_per_s_sm;     /* one SM multiplying */
    double elements_per_s_sm; /* one SM loading operands */
    double k_overhead;
    double hbm_Bps, floor_s; /* of the kernel that adds partial results */
};

/* How a product is computed. */
struct choice {
    double tiles, k_step_s; /* SM-seconds that a tile needs for an element of k */
    int split;
};

static double choice_s(
    const struct kernel_work *work, const struct machine *machine, struct choice choice, double whole_sms)
{
    double k = (double)work->k / choice.split;
    double waves = ceil(choice.tiles * choice.split / whole_sms);
    double tiles_s = waves * (k + machine->k_overhead) * choice.k_step_s;
    if (choice.split == 1)
        return tiles_s;
    /* every slice writes its partial result; the second kernel, reading them from L2, writes the sum */
    double partial_bytes = (double)work->m * (double)work->n * (double)work->batch * PARTIAL_BYTES;
    return tiles_s + machine->floor_s + (choice.split + 1) * partial_bytes / machine->hbm_Bps;
}

/* The cheapest of all tile shapes and splits on this many SMs. */
static struct choice choose(const struct kernel_work *work, const struct machine *machine, double sms)
{
    struct choice best = {0};
    double best_s = HUGE_VAL;
    for (int i = 0; i < N_TILES; i++) {
        struct tile tile = tiles[i];
        int64_t rows = (work->m + tile.m - 1) / tile.m, columns = (work->n + tile.n - 1) / tile.n;
        struct choice choice = {
            .tiles = (double)rows * (double)columns * (double)work->batch,
            .k_step_s =
                fmax(2.0 * tile.m * tile.n / machine->flop_per_s_sm, (tile.m + tile.n) / machine->elements_per_s_sm),
        };
        for (choice.split = 1; choice.split <= SPLIT_MAX; choice.split *= 2) {
            if (choice.split > 1 &&
                (work->k / choice.split < SPLIT_MIN_K || choice.tiles * choice.split > SPLIT_WAVES * sms))
                break;
            double choice_is_s = choice_s(work, machine, choice, sms);
            if (choice_is_s < best_s) {
                best_s = choice_is_s;
                best = choice;
            }
        }
    }
    return best;
}

double gemm_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms)
{
    const struct hw_gemm *gemm = &gpu->gemm[work->math];
    BUG_IF(!(sms > 0), "a GEMM on %g SMs", sms);
    double sustained = quantity_is_set(gpu->gemm_sustained) ? gpu->gemm_sustained.value : 1;
    struct machine machine = {
        .flop_per_s_sm = sustained * gemm->efficiency.value * gemm->peak.value / gpu->sms.value,
        .elements_per_s_sm =
            sustained * gemm->load_bandwidth.value / (gpu->sms.value * (double)dtype_bytes(work->math)),
        .k_overhead = gemm->k_overhead.value,
        .hbm_Bps = gpu->hbm_bandwidth.value * gpu->hbm_efficiency.value,
        .floor_s = gpu->kernel_floor.value,
    };
    struct choice choice = choose(work, &machine, gpu->sms.value);
    return choice_s(work, &machine, choice, fmax(1, floor(sms))); /* a tile needs a whole SM */
}
