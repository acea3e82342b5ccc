/* Candidates of a search as CSV or JSON. */
#include "cli/tune_layout.h"
#include "cli/tune_print.h"

#include <stdlib.h>

/* A row under way. */
struct cells {
    struct record_cell at[RECORD_MAX_CELLS];
    int n;
};

static void add_cell(struct cells *cells, struct record_cell cell)
{
    BUG_IF(cells->n == RECORD_MAX_CELLS, "no room for %s", cell.name);
    cells->at[cells->n++] = cell;
}

/* prefix: of the names of all cells. */
static void add_rates(
    const struct tune_print *print, struct cells *cells, const char *prefix, bool known, const struct tune_rates *rates)
{
    bool priced = known && rates->usd_per_gtokens > 0;
    const struct record_cell of_rates[] = {cell_real("step_time_s", known, rates->step_time_s),
        cell_real("tflops_per_gpu", known, rates->tflops_per_gpu),
        cell_real("tokens_per_s", known, rates->tokens_per_s),
        cell_real("gpu_hours_per_gtokens", known, rates->gpu_hours_per_gtokens),
        cell_real("usd_per_gtokens", priced, rates->usd_per_gtokens),
        cell_real("kwh_per_gtokens", known, rates->kwh_per_gtokens),
        cell_real("alloc_retries_a_step", known, rates->retries),
        cell_real("days", known, known ? tune_days(print, rates) : 0),
        cell_real("usd", priced, priced ? tune_of_all(print, rates->usd_per_gtokens) : 0)};
    enum { ALL = sizeof of_rates / sizeof *of_rates, OF_TOKENS = 2 };
    for (int i = 0; i < (print->tokens ? ALL : ALL - OF_TOKENS); i++) {
        struct record_cell cell = of_rates[i];
        cell.name = arena_printf(print->arena, "%s%s", prefix, cell.name);
        add_cell(cells, cell);
    }
}

static void add_candidate(const struct tune_print *print, struct cells *cells, const struct tune_candidate *candidate)
{
    const struct scenario_point *point = &candidate->point;
    const struct strategy_options *strategy = &point->options.strategy;
    const struct fsdp_options *fsdp = strategy->kind == STRATEGY_FSDP ? &strategy->fsdp : NULL;
    bool ran = candidate->state == TUNE_RAN;
    const struct record_cell of_point[] = {cell_text("model", point->model.shape.name),
        cell_text("cluster", point->hw.cluster.name),
        cell_text("swept", vary_assignments(&print->swept, point, print->arena)),
        cell_int("gpus", point->options.cluster.gpus), cell_text("strategy", strategy_label(strategy)),
        cell_int("sharding_group_size", fsdp ? fsdp->sharding_group_size : 0),
        cell_text("backward_prefetch", fsdp ? backward_prefetch_names[fsdp->backward_prefetch] : NULL),
        cell_text("forward_prefetch", !fsdp                    ? NULL
                                      : fsdp->forward_prefetch ? "true"
                                                               : "false"),
        cell_text("activation_checkpointing", checkpointing_names[strategy->train.activation_checkpointing]),
        cell_int("micro_batch", strategy->train.micro_batch),
        cell_int("grad_accum", strategy_batch(&strategy->train).micro_batches),
        cell_text("status", tune_state_names[candidate->state]), cell_real("least_bytes", true, candidate->least_bytes),
        cell_real("peak_allocated_bytes", ran, candidate->quiet.peak_bytes)};
    for (size_t i = 0; i < sizeof of_point / sizeof *of_point; i++)
        add_cell(cells, of_point[i]);
    struct record_cell of_layout[TUNE_LAYOUT_CELLS];
    for (int i = 0, n = tune_layout_cells(of_layout, candidate); i < n && print->tune->quiet_only; i++)
        add_cell(cells, of_layout[i]);
    if (print->command->options.variants > 1)
        add_cell(cells, cell_text("stack", tune_stack(point, print->arena)));
    add_rates(print, cells, "", ran, &candidate->quiet);
    add_rates(print, cells, "noisy_", ran && candidate->finalist, &candidate->noisy);
    for (int i = 0; i < print->swept.options.n; i++)
        add_cell(cells, vary_cell(&print->swept.options.at[i], &point->options));
}

/* Rows as the table has them; then those that ran and are no finalists; then all others, as they were made. */
static int order_of_records(int *order, const struct tune_command *command, const struct tune *tune)
{
    bool *taken = xcalloc((size_t)tune->candidates.n + 1, sizeof *taken);
    int *ranked = xcalloc((size_t)tune->candidates.n + 1, sizeof *ranked), n = 0;
    const int orders[] = {command->by, command->by == TUNE_BY_COST ? TUNE_UNPRICED : command->by};
    for (int k = 0; k < 4; k++) {
        enum tune_order by = (enum tune_order)orders[k % 2];
        int all = (k < 2 ? tune_rank : tune_rank_quiet)(ranked, tune, by);
        for (int i = 0; i < all; i++)
            if (!taken[ranked[i]]) {
                taken[ranked[i]] = true;
                order[n++] = ranked[i];
            }
    }
    for (int i = 0; i < tune->candidates.n; i++)
        if (!taken[i])
            order[n++] = i;
    free(taken);
    free(ranked);
    return n;
}

void tune_print_records(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena)
{
    const struct scenario_set one = tune_one_variant(set, command);
    struct tune_print print = {
        .out = out, .command = command, .set = &one, .tune = tune, .tokens = command->tokens.n > 0, .arena = arena};
    if (tune->candidates.n > 0)
        tune_find_swept(&print.swept, &one, &tune->candidates.at[0], arena);
    struct records records = records_begin(out, command->format);
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order), n = order_of_records(order, command, tune);
    for (int i = 0; i < n; i++) {
        struct cells cells = {.n = 0};
        add_candidate(&print, &cells, &tune->candidates.at[order[i]]);
        records_row(&records, cells.at, cells.n);
    }
    free(order);
    records_end(&records);
    vec_free(&print.swept.options);
}
