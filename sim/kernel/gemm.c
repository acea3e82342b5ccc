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
    double sms;               /* whole ones that are free */
    double flop_per_s_sm;     /* one SM multiplying */
    double elements_per_s_sm; /* one SM loading operands */
    double k_overhead;
    double hbm_Bps, floor_s; /* of the kernel that adds partial results */
};

/* Seconds with this tile, best over the splits of k. */
static double tile_s(const struct kernel_work *work, const struct machine *machine, struct tile tile)
{
    double rows = (double)((work->m + tile.m - 1) / tile.m), columns = (double)((work->n + tile.n - 1) / tile.n);
    double count = rows * columns * (double)work->batch, k = (double)work->k;
    double multiply_s = 2.0 * tile.m * tile.n / machine->flop_per_s_sm;
    double load_s = (tile.m + tile.n) / machine->elements_per_s_sm;
    double k_step_s = fmax(multiply_s, load_s);
    double best = ceil(count / machine->sms) * (k + machine->k_overhead) * k_step_s;
    double partial_bytes = (double)work->m * (double)work->n * (double)work->batch * PARTIAL_BYTES;
    for (int split = 2; split <= SPLIT_MAX; split *= 2) {
        if (k / split < SPLIT_MIN_K || count * split > SPLIT_WAVES * machine->sms)
            break;
        double waves_s = ceil(count * split / machine->sms) * (k / split + machine->k_overhead) * k_step_s;
        /* every slice writes its partial result; the second kernel, reading them from L2, writes the sum */
        double add_s = machine->floor_s + (split + 1) * partial_bytes / machine->hbm_Bps;
        best = fmin(best, waves_s + add_s);
    }
    return best;
}

double gemm_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms)
{
    const struct hw_gemm *gemm = &gpu->gemm[work->math];
    BUG_IF(!(sms > 0), "a GEMM on %g SMs", sms);
    struct machine machine = {
        .sms = fmax(1, floor(sms)), /* a tile needs a whole SM */
        .flop_per_s_sm = gemm->efficiency.value * gemm->peak.value / gpu->sms.value,
        .elements_per_s_sm = gemm->load_bandwidth.value / (gpu->sms.value * (double)dtype_bytes(work->math)),
        .k_overhead = gemm->k_overhead.value,
        .hbm_Bps = gpu->hbm_bandwidth.value * gpu->hbm_efficiency.value,
        .floor_s = gpu->kernel_floor.value,
    };
    double best = INFINITY;
    for (int i = 0; i < N_TILES; i++)
        best = fmin(best, tile_s(work, &machine, tiles[i]));
    return best;
}
