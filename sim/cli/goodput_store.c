#include "cli/goodput.h"

#include "cli/vary.h"
#include "store/study.h"

#include <math.h>
#include <string.h>

enum { CELLS = 18 };

static void fill(struct record_cell cells[CELLS], const char *label, int64_t gpus, const struct goodput_point *p)
{
    const struct record_cell row[CELLS] = {cell_text("label", label), cell_int("gpus", gpus),
        cell_real("days", p->ok, p->days), cell_real("step_time_s", p->ok, p->job.step_s),
        cell_real("job_mtbf_s", p->ok && isfinite(p->costs.mtbf_s), p->costs.mtbf_s),
        cell_real("checkpoint_interval_s", p->ok, p->interval_s),
        cell_int("searched", p->ok && p->job.options.checkpoint_interval_s == 0),
        cell_real("goodput", p->ok, p->share.mean), cell_real("goodput_p05", p->ok, p->share.low),
        cell_real("goodput_p95", p->ok, p->share.high),
        cell_real("checkpoint", p->ok, goodput_time_share(p, GOODPUT_CHECKPOINT)),
        cell_real("lost_work", p->ok, goodput_time_share(p, GOODPUT_LOST)),
        cell_real("detection", p->ok, goodput_time_share(p, GOODPUT_DETECTION)),
        cell_real("waiting", p->ok, goodput_time_share(p, GOODPUT_WAITING)),
        cell_real("restart", p->ok, goodput_time_share(p, GOODPUT_RESTART)),
        cell_real("shrunk", p->ok, goodput_time_share(p, GOODPUT_SHRUNK)),
        cell_real("slowed", p->ok, goodput_time_share(p, GOODPUT_SLOWED)),
        cell_real("step_tflops_per_gpu", p->ok, p->tflops_per_gpu)};
    memcpy(cells, row, sizeof row);
}

/* What distinguishes curves: not the interval, which may be the axis. */
static void leave_out_interval(struct vary *vary)
{
    int kept = 0;
    for (int i = 0; i < vary->options.n; i++)
        if (strcmp(vary->options.at[i].path, "goodput.checkpoint_interval") != 0)
            vary->options.at[kept++] = vary->options.at[i];
    vary->options.n = kept;
}

enum status goodput_store(const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena, struct diag *diag)
{
    struct vary vary;
    vary_find_unnamed(&vary, set, arena);
    leave_out_interval(&vary);
    struct record_cell *cells = ARENA_ARRAY(arena, struct record_cell, CELLS * set->n_points);
    for (int i = 0; i < set->n_points; i++)
        fill(&cells[(ptrdiff_t)i * CELLS], vary_name(&vary, &set->points[i], arena),
            set->points[i].options.cluster.gpus, &points[i]);
    vec_free(&vary.options);
    const struct record_cell head[] = {
        cell_text("scenario", set->points[0].options.name), cell_int("histories", command->seeds)};
    const struct store_study study = {.table = "goodput",
        .rows_table = "goodput_point",
        .head = head,
        .n_head = sizeof head / sizeof *head,
        .cells = cells,
        .n_cells = CELLS,
        .n_rows = set->n_points};
    struct store *store = NULL;
    enum status status = store_open(&store, command->db, STORE_WRITE, diag);
    if (status == STATUS_OK)
        status = store_put_study(store, &study, diag);
    store_close(store);
    return status;
}
