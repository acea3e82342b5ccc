#include "calibrate/nccl_check.h"

#include "calibrate/nccl_fit.h"

#include "fabric/isolated.h"
#include "store/fit.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool nccl_same_gpu(const char *logged, const struct hw_gpu *gpu)
{
    char model[32];
    snprintf(model, sizeof model, "%.*s", (int)strcspn(gpu->name, "- "), gpu->name);
    return strstr(logged, model) != NULL;
}

static void set_group(struct nccl_check *out, const struct collective_measurement *first, const struct hw *hw)
{
    out->collective = first->collective;
    out->ranks = first->ranks;
    out->nodes = first->nodes > 0 ? first->nodes : isolated_fewest_nodes(hw, first->ranks);
}

static enum status add_rows(struct nccl_check *out, const struct nccl_log *log, const struct hw *hw,
    struct coll_force force, struct arena *arena, struct diag *diag)
{
    int kind = nccl_find_name(coll_kind_names, out->collective);
    if (kind < 0)
        return diag_input(diag, (struct source_pos){0}, "%s is not modelled", out->collective);
    struct source_pos how = {.file = "--nodes, --ranks"}; /* which say how it ran where the log does not */
    struct isolated *isolated = isolated_new(hw, out->ranks, out->nodes, NULL, how, arena, diag);
    if (!isolated)
        return STATUS_INPUT;
    for (int i = 0; i < log->rows.n; i++) {
        const struct collective_measurement *row = &log->rows.at[i];
        if (row->ranks != out->ranks || strcmp(row->collective, out->collective) != 0)
            return diag_input(diag, (struct source_pos){0},
                "the log holds %s of %d ranks and %s of %d; one table at a time", out->collective, out->ranks,
                row->collective, row->ranks);
        struct coll_force forced = {
            force.algorithm == COLL_ANY ? nccl_find_name(coll_algorithm_names, row->algorithm) : force.algorithm,
            force.protocol == COLL_ANY ? nccl_find_name(coll_protocol_names, row->protocol) : force.protocol};
        double bytes = (double)row->bytes;
        vec_push(&out->rows, (struct nccl_checked){.bytes = bytes,
                                 .measured_s = row->out_of_place_s > 0 ? row->out_of_place_s : row->in_place_s,
                                 .predicted = isolated_cost(isolated, (enum coll_kind)kind, bytes, forced, NULL)});
    }
    return STATUS_OK;
}

void nccl_warn_of_trays(const char *log, int ranks, int nodes, const struct hw *hw, struct diag *diag)
{
    static const double most_of_a_host = 16; /* DGX-2 */
    int fewest = isolated_fewest_nodes(hw, ranks);
    if (hw->node.gpus.value > most_of_a_host && nodes > fewest)
        diag_warn(diag, (struct source_pos){.file = log},
            "%d ranks on %d nodes fit on %d of the cluster's, racks of %.0f GPUs; if the nodes are trays, say --nodes "
            "%d",
            ranks, nodes, fewest, hw->node.gpus.value, fewest);
}

enum status nccl_load(
    struct nccl_log *out, const char *path, const struct nccl_options *options, struct arena *arena, struct diag *diag)
{
    struct input *input = NULL;
    enum status status = input_open(&input, path, diag);
    if (status == STATUS_OK)
        status = nccl_read(out, input, options, arena, diag);
    input_close(input);
    if (status == STATUS_OK && out->wrong > 0)
        diag_warn(diag, (struct source_pos){.file = path},
            "%d row%s with wrong results left out: not what was sent arrived", out->wrong, plural(out->wrong));
    return status;
}

enum status nccl_check(struct nccl_check *out, const char *log, const struct nccl_options *options, const struct hw *hw,
    struct coll_force force, struct arena *arena, struct diag *diag)
{
    *out = (struct nccl_check){0};
    struct nccl_log read = {0};
    enum status status = nccl_load(&read, log, options, arena, diag);
    if (status == STATUS_OK)
        set_group(out, &read.rows.at[0], hw);
    if (read.about.gpu && !nccl_same_gpu(read.about.gpu, &hw->gpu))
        out->other_gpu = read.about.gpu;
    if (status == STATUS_OK)
        status = add_rows(out, &read, hw, force, arena, diag);
    if (status == STATUS_OK)
        nccl_warn_of_trays(log, out->ranks, out->nodes, hw, diag);
    vec_free(&read.rows);
    return status;
}

int nccl_check_median(const struct nccl_check *check, double min_bytes, double max_bytes, double *median)
{
    size_t n = 0;
    double *off = xcalloc((size_t)check->rows.n, sizeof *off);
    for (int i = 0; i < check->rows.n; i++) {
        const struct nccl_checked *row = &check->rows.at[i];
        if (row->bytes >= min_bytes && row->bytes < max_bytes)
            off[n++] = fabs(coll_isolated_s(row->predicted) / row->measured_s - 1);
    }
    gsl_sort(off, 1, n);
    *median = n > 0 ? gsl_stats_median_from_sorted_data(off, 1, n) : 0;
    free(off);
    return (int)n;
}

#define PUT(into, table, cells, diag)                                                                                  \
    store_fit_put((into), (table), (cells), (int)(sizeof(cells) / sizeof *(cells)), diag)

static enum status put_point(struct store_fit *into, const struct nccl_checked *row, struct diag *diag)
{
    const struct coll_cost *cost = &row->predicted;
    const struct record_cell cells[] = {cell_int("bytes", (int64_t)row->bytes),
        cell_real("measured_s", true, row->measured_s), cell_real("predicted_s", true, coll_isolated_s(*cost)),
        cell_real("bus_bytes", true, cost->bus_bytes), cell_text("algorithm", coll_algorithm_names[cost->algorithm]),
        cell_text("protocol", coll_protocol_names[cost->protocol])};
    return PUT(into, FIT_CHECK_POINT, cells, diag);
}

enum status nccl_check_store(const struct nccl_check *check, const char *log, const char *topology, const struct hw *hw,
    struct store *store, struct diag *diag)
{
    struct store_fit *into;
    enum status status = store_fit_begin(&into, store, STORE_FIT_CHECK, log, diag);
    if (status != STATUS_OK)
        return status;
    double large = 0, small = 0;
    int n_large = nccl_check_median(check, NCCL_LARGE_BYTES, HUGE_VAL, &large);
    int n_small = nccl_check_median(check, 0, NCCL_SMALL_BYTES, &small);
    const struct record_cell cells[] = {cell_text("topology", topology), cell_text("gpu", hw->gpu.name),
        cell_text("collective", check->collective), cell_int("nodes", check->nodes), cell_int("ranks", check->ranks),
        cell_real("large_error", n_large > 0, large), cell_real("small_error", n_small > 0, small)};
    status = PUT(into, FIT_CHECK_TABLE, cells, diag);
    for (int i = 0; i < check->rows.n && status == STATUS_OK; i++)
        status = put_point(into, &check->rows.at[i], diag);
    return store_fit_end(into, status, diag);
}
