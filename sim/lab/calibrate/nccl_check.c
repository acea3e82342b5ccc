/* A log of nccl-tests row by row beside what is predicted, and the same with each algorithm
 * forced.
 *
 * The log's group is laid on the cluster once (isolated_new()), and every size is priced with
 * what the row or the command line forces, otherwise as NCCL chooses. Where nothing is forced,
 * each algorithm is tried for all sizes of 1 MiB and more; its median error is what
 * nccl_explaining() compares. An algorithm that cannot do one of these sizes gets -1.
 *
 * What is subtle: "nodes" of a log are what its launcher calls so. On racks that NVLink joins, a
 * tray is a host, and the ranks fill racks: nccl_nodes() gives the fewest of the cluster's nodes
 * that hold them where the log's number fits hosts. One table at a time: rows of another
 * collective or number of ranks are an error. */
#include "calibrate/nccl_check.h"

#include "calibrate/nccl_fit.h"

#include "fabric/isolated.h"
#include "store/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int nccl_nodes(int ranks, int logged, const struct hw *hw)
{
    int fewest = isolated_fewest_nodes(hw, ranks);
    bool as_hosts = hw_hosts_per_node(hw) > 1 && logged > fewest &&
                    ranks <= (int64_t)logged * hw_gpus_per_host(hw);
    return logged <= 0 || as_hosts ? fewest : logged;
}

static void set_group(
    struct nccl_check *out, const struct collective_measurement *first, const struct hw *hw)
{
    out->collective = first->collective;
    out->ranks = first->ranks;
    out->nodes = nccl_nodes(first->ranks, first->nodes, hw);
    out->logged_nodes = first->nodes;
    out->channels = coll_channels(out->nodes > 1, hw);
}

/* With this algorithm forced; below 0: some size cannot be done so, or there is none. */
static double nccl_check_error_as(const struct nccl_check *check, struct isolated *isolated,
    enum coll_kind kind, enum coll_algorithm algorithm)
{
    bool possible = true;
    struct fit_sample sample = {0};
    for (int i = 0; i < check->rows.n && possible; i++) {
        const struct nccl_checked *row = &check->rows.at[i];
        struct coll_force force = {(int)algorithm, COLL_ANY};
        if (row->bytes < NCCL_LARGE_BYTES)
            continue;
        struct coll_cost cost = isolated_cost(isolated, kind, row->bytes, force, NULL);
        possible = cost.algorithm == algorithm;
        fit_sample_add(&sample, coll_isolated_s(cost), row->measured_s);
    }
    struct fit_error error = fit_sample_error(&sample);
    return possible && error.n > 0 ? error.median : -1;
}

static enum status nccl_check_add_rows(struct nccl_check *out, const struct nccl_log *log,
    const struct hw *hw, struct coll_force force, struct arena *arena, struct diag *diag)
{
    int kind = fit_find_name(coll_kind_names, out->collective);
    if (kind < 0)
        return diag_input(diag, (struct source_pos){0}, "%s is not modelled", out->collective);
    struct source_pos how = {
        .file = "--nodes, --ranks"}; /* which say how it ran where the log does not */
    struct isolated *isolated = isolated_new(hw, out->ranks, out->nodes, NULL, how, arena, diag);
    if (!isolated)
        return STATUS_INPUT;
    bool forced_any = force.algorithm != COLL_ANY;
    for (int i = 0; i < log->rows.n; i++) {
        const struct collective_measurement *row = &log->rows.at[i];
        if (row->ranks != out->ranks || strcmp(row->collective, out->collective) != 0)
            return diag_input(diag, (struct source_pos){0},
                "the log holds %s of %d ranks and %s of %d; one table at a time", out->collective,
                out->ranks, row->collective, row->ranks);
        struct coll_force forced = {force.algorithm == COLL_ANY
                                        ? fit_find_name(coll_algorithm_names, row->algorithm)
                                        : force.algorithm,
            force.protocol == COLL_ANY ? fit_find_name(coll_protocol_names, row->protocol)
                                       : force.protocol};
        double bytes = (double)row->bytes;
        forced_any = forced_any || forced.algorithm != COLL_ANY;
        vec_push(&out->rows,
            (struct nccl_checked){.bytes = bytes,
                .measured_s = row->out_of_place_s > 0 ? row->out_of_place_s : row->in_place_s,
                .predicted = isolated_cost(isolated, (enum coll_kind)kind, bytes, forced, NULL)});
    }
    for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
        out->errors[a] = forced_any ? -1
                                    : nccl_check_error_as(out, isolated, (enum coll_kind)kind,
                                          (enum coll_algorithm)a);
    return STATUS_OK;
}

/* What is forced may be impossible at some sizes, or at all. */
static void warn_of_force(
    const struct nccl_check *check, struct coll_force force, struct diag *diag)
{
    const struct coll_cost *other = NULL;
    int n = 0;
    for (int i = 0; i < check->rows.n; i++) {
        const struct coll_cost *cost = &check->rows.at[i].predicted;
        bool algorithm = force.algorithm == COLL_ANY || (int)cost->algorithm == force.algorithm;
        bool protocol = force.protocol == COLL_ANY || (int)cost->protocol == force.protocol;
        if (algorithm && protocol)
            continue;
        other = cost;
        n++;
    }
    if (other)
        diag_warn(diag, (struct source_pos){.file = "--algo, --proto"},
            "%d of %d sizes cannot be done so, and are predicted as the nearest, %s with %s at the "
            "last",
            n, check->rows.n, coll_algorithm_names[other->algorithm],
            coll_protocol_names[other->protocol]);
}

void nccl_warn_of_trays(
    const char *log, int ranks, int nodes, const struct hw *hw, struct diag *diag)
{
    static const double most_of_a_host = 16; /* DGX-2 */
    int fewest = isolated_fewest_nodes(hw, ranks);
    if (hw->node.gpus.value > most_of_a_host && hw_hosts_per_node(hw) == 1 && nodes > fewest)
        diag_warn(diag, (struct source_pos){.file = log},
            "%d ranks on %d nodes fit on %d of the cluster's, racks of %.0f GPUs; if the nodes are "
            "trays, say --nodes %d",
            ranks, nodes, fewest, hw->node.gpus.value, fewest);
}

enum status nccl_load(struct nccl_log *out, const char *path, const struct nccl_options *options,
    struct arena *arena, struct diag *diag)
{
    struct input *input = NULL;
    enum status status = input_open(&input, path, diag);
    if (status == STATUS_OK)
        status = nccl_read(out, input, options, arena, diag);
    input_close(input);
    if (status == STATUS_OK && out->wrong > 0)
        diag_warn(diag, (struct source_pos){.file = path},
            "%d row%s with wrong results left out: not what was sent arrived", out->wrong,
            plural(out->wrong));
    return status;
}

enum status nccl_check(struct nccl_check *out, const struct nccl_log *log, const char *path,
    const struct hw *hw, struct coll_force force, struct arena *arena, struct diag *diag)
{
    *out = (struct nccl_check){.said = log->said};
    for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
        out->errors[a] = -1;
    set_group(out, &log->rows.at[0], hw);
    if (log->about.gpu && !hw_same_gpu(log->about.gpu, &hw->gpu))
        out->other_gpu = log->about.gpu;
    enum status status = nccl_check_add_rows(out, log, hw, force, arena, diag);
    if (status == STATUS_OK)
        nccl_warn_of_trays(path, out->ranks, out->nodes, hw, diag);
    if (status == STATUS_OK)
        warn_of_force(out, force, diag);
    return status;
}

struct fit_error nccl_check_error(
    const struct nccl_check *check, double min_bytes, double max_bytes)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < check->rows.n; i++) {
        const struct nccl_checked *row = &check->rows.at[i];
        if (row->bytes >= min_bytes && row->bytes < max_bytes)
            fit_sample_add(&sample, coll_isolated_s(row->predicted), row->measured_s);
    }
    return fit_sample_error(&sample);
}

static enum status put_point(
    struct store_answer *into, const struct nccl_checked *row, struct diag *diag)
{
    const struct coll_cost *cost = &row->predicted;
    return store_answer_put(into, "point",
        RECORD_CELLS(cell_int("bytes", (int64_t)row->bytes),
            cell_real("measured_s", true, row->measured_s),
            cell_real("predicted_s", true, coll_isolated_s(*cost)),
            cell_real("bus_bytes", true, cost->bus_bytes),
            cell_text("algorithm", coll_algorithm_names[cost->algorithm]),
            cell_text("protocol", coll_protocol_names[cost->protocol])),
        diag);
}

enum status nccl_check_store(const struct nccl_check *check, const char *log, const char *topology,
    const struct hw *hw, struct store *store, struct diag *diag)
{
    struct store_answer into;
    enum status status = store_answer_begin(
        &into, store, "nccl_check", RECORD_CELLS(cell_text("measured", log)), diag);
    if (status != STATUS_OK)
        return status;
    struct fit_error large = nccl_check_error(check, NCCL_LARGE_BYTES, HUGE_VAL);
    struct fit_error small = nccl_check_error(check, 0, NCCL_SMALL_BYTES);
    status = store_answer_put(&into, "table",
        RECORD_CELLS(cell_text("topology", topology), cell_text("gpu", hw->gpu.name),
            cell_text("collective", check->collective), cell_int("nodes", check->nodes),
            cell_int("ranks", check->ranks), cell_real("large_error", large.n > 0, large.median),
            cell_real("small_error", small.n > 0, small.median)),
        diag);
    for (int i = 0; i < check->rows.n && status == STATUS_OK; i++)
        status = put_point(&into, &check->rows.at[i], diag);
    return store_answer_end(&into, status, diag);
}
