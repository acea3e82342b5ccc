/* Which rows of published kernel tables go into results/measured/direct.csv, and how their
 * columns are named there.
 *
 * A table is recognised by a column that only it has (tables[]); direct_picks[] says which GPU,
 * program, kernel and number format is taken from it, and one of how many shapes. A shape is
 * kept by its digest, so the choice depends neither on order nor on other rows; what a fit holds
 * out is chosen by the same digest shifted less, which does not follow from this choice.
 *
 * What is subtle: the head that is printed states the same rule in words, and must change with
 * it. Cells go out as the text that came in, but masks, which become yes and no. A cell that a
 * table lacks is empty. A row that fits no pick is passed over silently. */
#include "import/direct.h"

#include "base/digest.h"
#include "config/csv.h"

#include <string.h>

enum direct_class { PRODUCT, ATTENTION, TRAINED_ATTENTION, EXPERTS, CAST, CLASS_COUNT };

/* Where a row of direct.csv takes its cells from; NULL: it has none. */
enum { CELLS = 13 };
static const char *const cell_names[CELLS] = {"m", "n", "k", "batch", "heads", "kv_heads",
    "value_dim", "experts", "topk", "causal", "pass", "time_us", "power_w"};

/* A table: the column that only it has, its cells, and what has to be so of a row (column, value;
 * an empty cell passes for 0). */
struct table {
    const char *name, *own_column, *cells[CELLS];
    const char *only[4][2];
};
static const struct table tables[CLASS_COUNT] = {
    [PRODUCT] = {"product", "power_limit_w",
        {"m", "n", "k", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "time_us", "power_w"},
        {{0}}},
    [ATTENTION] = {"attention", "prefix_kv",
        {"seq_q", "seq_q", "head_dim", "batch", "heads", "kv_heads", "head_dim", NULL, NULL,
            "causal", NULL, "time_us", "power_w"},
        {{"prefix_kv", "0"}, {"window", "0"}}},
    [TRAINED_ATTENTION] = {"attention", "deterministic_bwd",
        {"seq_q", "seq_kv", "head_dim_qk", "batch", "heads", "kv_heads", "head_dim_v", NULL, NULL,
            "mask", "pass", "time_us", NULL},
        {{"deterministic_bwd", "False"}, {"window", "0"}}},
    [EXPERTS] = {"experts", "moe_ep",
        {"num_tokens", "inter", "hidden", "moe_ep", NULL, NULL, NULL, "experts", "topk", NULL, NULL,
            "time_us", NULL},
        {{"distribution", "balanced"}, {"moe_tp", "1"}}},
    [CAST] = {"cast", "gbps",
        {"m", NULL, "k", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "value", NULL}, {{0}}},
};

/* kernel: how it begins; of a cast, the op. every: shapes to one that is kept. */
struct direct_pick {
    enum direct_class table;
    int every;
    const char *gpu, *file_gpu, *software, *kernel, *dtype, *regime;
};
#define TRT "TRTLLM 1.3.0rc20"
#define VLLM "VLLM 0.24.0"
#define LINEAR "torch.nn.functional.linear"
#define A100 "a100-sxm4-80gb", "a100-sxm4-80gb"
#define H100 "h100-sxm5-80gb", "h100-sxm5-80gb"
#define H200 "h200-sxm-141gb", "h200-sxm-141gb"
#define B200 "b200-sxm-180gb", "b200-sxm-180gb"
#define B300 "b300-sxm", "b300-sxm-288gb"
#define GB200 "gb200", "gb200-186gb"
#define GB300 "gb300", "gb300-288gb"
#define CASTS(gpu)                                                                                 \
    {CAST, 3, gpu, TRT, "scale_matrix", "fp8", "short"},                                           \
        {CAST, 3, gpu, TRT, "compute_scale", "fp8", "short"},                                      \
    {                                                                                              \
        CAST, 3, gpu, VLLM, "scale_matrix", "fp8", "short"                                         \
    }
static const struct direct_pick direct_picks[] = {
    {PRODUCT, 12, A100, "SGLang 0.5.10", "sglang", "bfloat16", "short"},
    {PRODUCT, 12, H100, VLLM, LINEAR, "bfloat16", "short"},
    {PRODUCT, 12, H100, TRT, "torch_flow", "fp8", "short"},
    {PRODUCT, 12, H200, "VLLM 0.22.0", "vllm_default", "bfloat16", "settled"},
    {PRODUCT, 12, B200, VLLM, LINEAR, "bfloat16", "short"},
    {PRODUCT, 12, B200, TRT, "torch_flow", "bfloat16", "short"},
    {PRODUCT, 12, B200, TRT, "torch_flow", "fp8", "short"},
    {PRODUCT, 12, B200, TRT, "torch_flow", "nvfp4", "short"},
    {PRODUCT, 12, B200, "VLLM 0.22.0", "vllm_default", "bfloat16", "settled"},
    {PRODUCT, 12, GB200, "TRTLLM 1.3.0rc17", "torch_flow", "bfloat16", "settled"},
    {PRODUCT, 12, GB200, "TRTLLM 1.3.0rc17", "torch_flow", "fp8", "settled"},
    {PRODUCT, 12, GB200, "TRTLLM 1.3.0rc17", "torch_flow", "nvfp4", "settled"},
    {PRODUCT, 12, GB300, VLLM, LINEAR, "bfloat16", "short"},
    CASTS(H100),
    CASTS(H200),
    CASTS(B200),
    CASTS(B300),
    CASTS(GB200),
    CASTS(GB300),
    {ATTENTION, 6, A100, "SGLang 0.5.10", "flash_attention", "bfloat16", "short"},
    {ATTENTION, 6, H100, VLLM, "vllm_flash_attn_fa3", "bfloat16", "short"},
    {ATTENTION, 12, B200, TRT, "torch_flow", "bfloat16", "short"},
    {ATTENTION, 12, GB200, TRT, "torch_flow", "bfloat16", "short"},
    {ATTENTION, 12, GB300, TRT, "torch_flow", "bfloat16", "short"},
    {TRAINED_ATTENTION, 1, "NVIDIA H200", "h200-sxm-141gb", "cudnn-frontend", "cudnn", "bfloat16",
        "short"},
    {TRAINED_ATTENTION, 1, "NVIDIA GB200", "gb200-186gb", "cudnn-frontend", "cudnn", "bfloat16",
        "short"},
    {TRAINED_ATTENTION, 1, "NVIDIA GB300", "gb300-288gb", "cudnn-frontend", "cudnn", "bfloat16",
        "short"},
    {EXPERTS, 3, H100, TRT, "moe_torch_flow_cutlass", "bfloat16", "short"},
    {EXPERTS, 3, H100, TRT, "moe_torch_flow_cutlass", "fp8", "short"},
    {EXPERTS, 3, B200, TRT, "moe_torch_flow_cutlass", "bfloat16", "short"},
    {EXPERTS, 3, B200, TRT, "moe_torch_flow_cutlass", "fp8", "short"},
    {EXPERTS, 3, GB200, TRT, "moe_torch_flow_cutlass", "bfloat16", "short"},
};
enum { PICKS = sizeof direct_picks / sizeof *direct_picks };

static const char head[] =
    "# Kernels measured alone, by shape: what `flopcast calibrate fit direct` fits GPUs to. Made "
    "by `flopcast calibrate import direct` of tables that\n"
    "# ai-dynamo/aiconfigurator@095f58a (Apache-2.0; products, forward attention, expert layers, "
    "casts) and NVIDIA/cudnn-frontend@3929da2 (MIT; cudnn)\n"
    "# publish; kind: measured. Rule (sim/lab/import/direct.h): of each GPU "
    "and program the shapes whose digest / 2^32 "
    "is "
    "a "
    "multiple of 12 (products; forward\n"
    "# attention of Blackwell), 6 (other forward attention), 3 (casts, "
    "experts) or 1; products with all sides from 128 "
    "on; balanced experts on tensor ranks of 1;\n"
    "# attention without a window or cached keys, backward not "
    "deterministic. A shape whose digest / 256 is a multiple of 3 is held out of every fit.\n"
    "# regime short: 3 + 6 runs, clocks not settled; settled: repeated for a second, large ones at "
    "0.95 of the power limit or as fast as those that are. fp8 "
    "and fp4 (NVFP4) products have the cast of their input in them.\n"
    "# product: m x n by k. attention: m queries, n keys, heads of k "
    "(value_dim), batch sequences. experts: a whole "
    "layer, forward: m tokens before its exchange\n"
    "# over batch ranks, n wide, k model. cast: m x k to FP8 by a known scale (scale_matrix), its "
    "largest value (compute_scale).\n";

static const struct table *direct_table_of(const struct csv_table *csv)
{
    for (int i = 0; i < CLASS_COUNT; i++)
        if (csv_column(csv, tables[i].own_column) >= 0)
            return &tables[i];
    return NULL;
}

static bool is_so(const struct csv_table *csv, int row, const char *const only[2])
{
    if (!only[0])
        return true;
    const char *cell = csv_cell(csv, row, csv_column(csv, only[0]));
    return strcmp(cell, only[1]) == 0 || (*cell == '\0' && strcmp(only[1], "0") == 0);
}

static bool direct_is_of(
    const struct csv_table *csv, int row, const char *column, const char *begins)
{
    return strncmp(csv_cell(csv, row, csv_column(csv, column)), begins, strlen(begins)) == 0;
}

static const struct direct_pick *pick_of(
    const struct csv_table *csv, int row, const struct table *table)
{
    for (int i = 0; i < PICKS; i++) {
        const struct direct_pick *pick = &direct_picks[i];
        const char *kernel = pick->table == CAST ? "op" : "kernel";
        if (&tables[pick->table] == table &&
            strcmp(csv_cell(csv, row, csv_column(csv, "gpu")), pick->gpu) == 0 &&
            direct_is_of(csv, row, "software", pick->software) &&
            direct_is_of(csv, row, kernel, pick->kernel) &&
            strcmp(csv_cell(csv, row, csv_column(csv, "dtype")), pick->dtype) == 0)
            return pick;
    }
    return NULL;
}

/* The numbers before the time, which is no part of a shape. */
enum { SHAPE_CELLS = 9 };

static enum status read_shape(double shape[SHAPE_CELLS], const struct csv_table *csv, int row,
    const struct table *table, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < SHAPE_CELLS && status == STATUS_OK; i++)
        status = csv_number(
            csv, row, table->cells[i] ? csv_column(csv, table->cells[i]) : -1, 0, &shape[i], diag);
    return status;
}

static bool direct_is_kept(const double shape[SHAPE_CELLS], const struct direct_pick *pick)
{
    uint64_t digest = DIGEST_INIT;
    for (int i = 0; i < SHAPE_CELLS; i++)
        digest = digest_word(digest, (uint64_t)shape[i]);
    bool narrow = pick->table == PRODUCT &&
                  (shape[0] < DIRECT_LEAST || shape[1] < DIRECT_LEAST || shape[2] < DIRECT_LEAST);
    return !narrow && (digest >> 32) % (uint64_t)pick->every == 0;
}

/* As files of GPUs spell it. */
static const char *dtype_of(const struct direct_pick *pick)
{
    static const char *const spelled[][2] = {{"bfloat16", "bf16"}, {"nvfp4", "fp4"}};
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++)
        if (strcmp(pick->dtype, spelled[i][0]) == 0)
            return spelled[i][1];
    return pick->dtype;
}

static void direct_print_row(FILE *out, const struct csv_table *csv, int row,
    const struct table *table, const struct direct_pick *pick)
{
    const char *program = csv_cell(csv, row, csv_column(csv, "software"));
    const char *kernel = pick->table == CAST ? pick->kernel : table->name;
    fprintf(out, "%s,%s,", kernel, pick->file_gpu);
    csv_write_text(out, program);
    fprintf(out, ",%s,%s", dtype_of(pick), pick->regime);
    for (int i = 0; i < CELLS; i++) {
        const char *cell =
            csv_cell(csv, row, table->cells[i] ? csv_column(csv, table->cells[i]) : -1);
        bool masked = strcmp(cell, "top_left") == 0, bare = strcmp(cell, "no_mask") == 0;
        fprintf(out, ",%s", masked ? "yes" : bare ? "no" : cell);
    }
    fputc('\n', out);
}

static enum status direct_print_file(FILE *out, const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    enum status status = csv_load(&csv, path, diag);
    if (status)
        return status;
    const struct table *table = direct_table_of(csv);
    if (!table)
        status = diag_input(diag, csv_pos(csv, 0),
            "none of the tables that are known: a column power_limit_w, prefix_kv, "
            "deterministic_bwd, moe_ep or gbps is wanted");
    for (int row = 0; status == STATUS_OK && row < csv_rows(csv); row++) {
        const struct direct_pick *pick = pick_of(csv, row, table);
        bool all = pick != NULL;
        for (size_t i = 0; i < sizeof table->only / sizeof *table->only && all; i++)
            all = is_so(csv, row, table->only[i]);
        double shape[SHAPE_CELLS];
        if (!all)
            continue;
        status = read_shape(shape, csv, row, table, diag);
        if (status == STATUS_OK && direct_is_kept(shape, pick))
            direct_print_row(out, csv, row, table, pick);
    }
    csv_release(csv);
    return status;
}

enum status direct_print(FILE *out, const char *const *files, int n_files, struct diag *diag)
{
    fputs(head, out);
    fputs("class,gpu,software,dtype,regime", out);
    for (int i = 0; i < CELLS; i++)
        fprintf(out, ",%s", cell_names[i]);
    fputc('\n', out);
    enum status worst = STATUS_OK;
    for (int i = 0; i < n_files; i++) {
        enum status status = direct_print_file(out, files[i], diag);
        worst = status > worst ? status : worst;
    }
    return worst;
}
