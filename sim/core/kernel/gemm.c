/* Tiles, waves and split-K: the time of a GEMM as the cheapest of a fixed set of kernels (the model
 * of gemm.h).
 *
 * gemm_choose() tries every tile shape of every family with splits of 1, 2, 4 ... and keeps the
 * cheapest on the whole GPU; a shape that needs more than the best so far even without overhead
 * (least_s) is passed over. The time is then that of this choice on the SMs that are free. So a
 * collective that holds SMs makes the chosen kernel slower, in steps of whole waves, and never
 * changes the choice, as cuBLAS does not know of it either.
 *
 * A family is what does not depend on the tile: rates of an SM when multiplying and loading, and
 * the overhead in k. Where a GPU has faster kernels for one GEMM than for a batch, they are the
 * second family: larger tiles only, no split.
 *
 * 12 tiles x at most 7 splits x 2 families a call: the executor keeps the result of each distinct
 * kernel. */
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
    SPLIT_MAX =
        64, /* assumed: beyond, adding the partial results costs more than the split saves */
    SPLIT_MIN_K =
        2 * GEMM_STEP_K, /* assumed: elements of k left to a slice, two steps of the main loop */
    SPLIT_WAVES =
        2, /* assumed: a split fills the SMs at most twice; beyond, the tiles alone fill them */
    PARTIAL_BYTES = 4, /* partial results are FP32 */
    WARPS_AREA =
        128 * 128, /* CUTLASS's default tiles: up to this one four warps, beyond it eight */
    SINGLE_AREA =
        128 * 128, /* smallest tile of single_efficiency's kernels: two warp groups of 64 rows */
};

/* A family of GEMM kernels of a library: what does not depend on the tile shape. */
struct family {
    double flop_per_s_sm;             /* one SM multiplying */
    double flop_per_s_warps;          /* four warps of it */
    double elements_per_s_sm;         /* one SM loading operands */
    double s_per_flop, s_per_element; /* the same, turned over */
    double k_overhead;
    double hbm_Bps, floor_s; /* of the kernel that adds partial results */
    int min_area, split_max;
};
enum { FAMILIES = 2 };

/* How a GEMM is computed. */
struct choice {
    const struct family *family;
    double tiles, k_step_s; /* SM-seconds that a tile needs for an element of k */
    double isolated_s;      /* on the whole GPU */
    int split;
};

static double k_step_s(struct tile tile, const struct family *family)
{
    double flop = 2.0 * tile.m * tile.n, warps = tile.m * tile.n > WARPS_AREA ? 2 : 1;
    double multiplying_s =
        fmax(flop / family->flop_per_s_sm, flop / (warps * family->flop_per_s_warps));
    return fmax(multiplying_s, (tile.m + tile.n) / family->elements_per_s_sm);
}

static double choice_s(
    const struct kernel_work *work, const struct choice *choice, double whole_sms)
{
    const struct family *family = choice->family;
    double k = ceil((double)work->k / choice->split / GEMM_STEP_K) * GEMM_STEP_K;
    double waves = ceil(choice->tiles * choice->split / whole_sms);
    double tiles_s = waves * (k + family->k_overhead) * choice->k_step_s;
    if (choice->split == 1)
        return tiles_s;
    /* every slice writes its partial result; the second kernel, reading them from L2, writes the
     * sum */
    double partial_bytes = (double)work->m * (double)work->n * (double)work->batch * PARTIAL_BYTES;
    return tiles_s + family->floor_s + (choice->split + 1) * partial_bytes / family->hbm_Bps;
}

/* Sides of tiles are powers of two. */
static int64_t tiles_along(int64_t length, int side)
{
    return (length + side - 1) >> __builtin_ctz((unsigned)side);
}

/* What the tiles need at least, without overhead and idle SMs, by rates of the family that were
 * turned over once: a bound for all splits, less by rounding. */
static double least_s(const struct kernel_work *work, const struct family *family, struct tile tile,
    double n_tiles, double sms)
{
    double k_step_s =
        fmax(2.0 * tile.m * tile.n * family->s_per_flop, (tile.m + tile.n) * family->s_per_element);
    return (1 - 1e-12) * n_tiles * (double)work->k * k_step_s / sms;
}

/* best becomes the cheapest of itself and of the splits of this tile, on this many SMs. */
static void choose_split(struct choice *best, const struct kernel_work *work,
    const struct family *family, struct tile tile, double sms)
{
    struct choice choice = {.family = family,
        .tiles = (double)tiles_along(work->m, tile.m) * (double)tiles_along(work->n, tile.n) *
                 (double)work->batch};
    if (best->family && least_s(work, family, tile, choice.tiles, sms) >= best->isolated_s)
        return;
    choice.k_step_s = k_step_s(tile, family);
    for (choice.split = 1; choice.split <= family->split_max; choice.split *= 2) {
        if (choice.split > 1 && (work->k / choice.split < SPLIT_MIN_K ||
                                    choice.tiles * choice.split > SPLIT_WAVES * sms))
            break;
        choice.isolated_s = choice_s(work, &choice, sms);
        if (!best->family || choice.isolated_s < best->isolated_s)
            *best = choice;
    }
}

/* The cheapest of all families, tile shapes and splits on this many SMs. */
static struct choice gemm_choose(
    const struct kernel_work *work, const struct family *families, int n, double sms)
{
    struct choice best = {0};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < N_TILES; j++)
            if (tiles[j].m * tiles[j].n >= families[i].min_area)
                choose_split(&best, work, &families[i], tiles[j], sms);
    return best;
}

/* The number of families for this GEMM. */
static int load_families(
    struct family out[FAMILIES], const struct kernel_work *work, const struct hw_gpu *gpu)
{
    const struct hw_gemm *gemm = &gpu->gemm[work->math];
    double sustained = quantity_is_set(gpu->gemm_sustained) ? gpu->gemm_sustained.value : 1;
    sustained *=
        work->gathers && quantity_is_set(gpu->conv_efficiency) ? gpu->conv_efficiency.value : 1;
    double peak_sm = sustained * gemm->peak.value / gpu->sms.value;
    out[0] = (struct family){
        .flop_per_s_sm = gemm->efficiency.value * peak_sm,
        .flop_per_s_warps =
            quantity_is_set(gemm->tile_share) ? gemm->tile_share.value * peak_sm : HUGE_VAL,
        .elements_per_s_sm =
            sustained * gemm->load_bandwidth.value / (gpu->sms.value * dtype_size(work->math)),
        .k_overhead = gemm->k_overhead.value,
        .hbm_Bps = gpu->hbm_bandwidth.value * gpu->hbm_efficiency.value,
        .floor_s = gpu->kernel_floor.value,
        .split_max = SPLIT_MAX,
    };
    int n = 1;
    if (work->batch == 1 && quantity_is_set(gemm->single_efficiency)) {
        out[n] = out[0];
        out[n].flop_per_s_sm = gemm->single_efficiency.value * peak_sm;
        out[n].flop_per_s_warps = out[n].elements_per_s_sm = HUGE_VAL;
        out[n].min_area = SINGLE_AREA;
        out[n].split_max = 1;
        n++;
    }
    for (int i = 0; i < n; i++) {
        out[i].s_per_flop = 1 / out[i].flop_per_s_sm;
        out[i].s_per_element = 1 / out[i].elements_per_s_sm;
    }
    return n;
}

double gemm_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms)
{
    BUG_IF(!(sms > 0), "a GEMM on %g SMs", sms);
    struct family families[FAMILIES];
    int n = load_families(families, work, gpu);
    struct choice choice = gemm_choose(work, families, n, gpu->sms.value);
    double whole_s = choice_s(work, &choice, fmax(1, floor(sms))); /* a tile needs a whole SM */
    return work->pieces > 1 ? whole_s / (double)work->pieces : whole_s;
}

double gemm_row_pieces(const struct kernel_work *work, bool rows_of_a, bool rows_of_b)
{
    if ((work->k & (work->k - 1)) == 0)
        return 0;
    double rows = (rows_of_a ? (double)work->m : 0) + (rows_of_b ? (double)work->n : 0);
    return rows * (double)work->batch * (double)work->k / GEMM_STEP_K;
}
