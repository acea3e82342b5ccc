#include "cli/output.h"
#include "cli/table.h"

#include <inttypes.h>
#include <math.h>

static const double GiB = 0x1p30; /* what PyTorch and nvidia-smi count in */

struct jobs {
    const struct scenario_set *set;
    const struct scenario_result *results;
    const struct vary *vary;
    struct arena *arena;
};

/* Of several points what tells them apart, too; GPUs first, as a narrow screen cuts the end. */
static const char *point_label(const struct jobs *jobs, int i)
{
    const char *gpus = arena_printf(jobs->arena, "%" PRId64 " GPUs", jobs->set->points[i].options.cluster.gpus);
    return jobs->set->n_points == 1
               ? gpus
               : arena_printf(jobs->arena, "%s, %s", gpus, vary_name(jobs->vary, &jobs->set->points[i], jobs->arena));
}

static bool is_alike(const struct exec_program *a, const struct exec_program *b)
{
    const struct exec_breakdown *x = &a->breakdown, *y = &b->breakdown;
    static const double SHOWN_S = 0.5e-4, SHOWN_BYTES = 0.05 * 0x1p30; /* half of the last digit */
    return fabs(x->compute_s - y->compute_s) < SHOWN_S && fabs(x->exposed_comm_s - y->exposed_comm_s) < SHOWN_S &&
           fabs(x->bubble_s - y->bubble_s) < SHOWN_S && fabs(x->host_bound_s - y->host_bound_s) < SHOWN_S &&
           fabs(x->other_idle_s - y->other_idle_s) < SHOWN_S &&
           fabs(a->memory.peak_allocated_bytes - b->memory.peak_allocated_bytes) < SHOWN_BYTES &&
           fabs(a->memory.peak_reserved_bytes - b->memory.peak_reserved_bytes) < SHOWN_BYTES;
}

/* The last of the programs from p on that are alike; kinds of GPU have a row each. */
static int last_alike(const struct exec_result *exec, int p)
{
    int last = p;
    while (!exec->kinds && last + 1 < exec->n_programs && is_alike(&exec->programs[p], &exec->programs[last + 1]))
        last++;
    return last;
}

static int count_groups(const struct exec_result *exec)
{
    int n = 0;
    for (int p = 0; p < exec->n_programs; p = last_alike(exec, p) + 1)
        n++;
    return n;
}

static void add_program(const struct jobs *jobs, struct table *table, int i, int p, int last)
{
    const struct exec_result *exec = &jobs->results[i].exec;
    int shown = exec->fullest >= p && exec->fullest <= last ? exec->fullest : p;
    const struct exec_breakdown *part = &exec->programs[shown].breakdown;
    const struct exec_memory *memory = &exec->programs[shown].memory;
    const char *fullest = shown == exec->fullest ? " (fullest)" : "";
    table_row(table);
    table_text(table, "point", "", point_label(jobs, i));
    if (exec->kinds) {
        const struct hw *hw = &jobs->set->points[i].hw;
        const char *name = p ? hw->second_gpu.name : hw->gpu.name;
        table_text(table, "GPU", "", arena_printf(jobs->arena, "%s%s", name, fullest));
        table_number(table, "batch", "/GPU", 0, jobs->results[i].micro_batch[p]);
    } else
        table_number_as(table, "program", "",
            p == last ? arena_printf(jobs->arena, "%d%s", p, fullest)
                      : arena_printf(jobs->arena, "%d to %d%s", p, last, fullest));
    table_number(table, "compute", "s", 4, part->compute_s);
    table_number(table, "exposed comm", "s", 4, part->exposed_comm_s);
    if (!exec->kinds)
        table_number(table, "bubble", "s", 4, part->bubble_s);
    table_number(table, "host bound", "s", 4, part->host_bound_s);
    table_number(table, "other idle", "s", 4, part->other_idle_s);
    table_number(table, "HBM peak", "GiB", 1, memory->peak_allocated_bytes / GiB);
    table_number(table, "reserved", "GiB", 1, memory->peak_reserved_bytes / GiB);
}

/* Rows of all points of several programs. */
static int count_rows(const struct jobs *jobs)
{
    int n = 0;
    for (int i = 0; i < jobs->set->n_points; i++) {
        const struct exec_result *exec = &jobs->results[i].exec;
        n += exec->n_programs < 2 || exec->status != EXEC_OK ? 0 : count_groups(exec);
    }
    return n;
}

void output_programs(
    FILE *out, const struct scenario_set *set, const struct scenario_result *results, const struct vary *vary)
{
    enum { MANY = 8 };
    struct arena arena = ARENA_INIT;
    const struct jobs jobs = {set, results, vary, &arena};
    struct table table = {0};
    bool kinds = false, some = false, many = count_rows(&jobs) > MANY;
    for (int i = 0; i < jobs.set->n_points; i++) {
        const struct exec_result *exec = &jobs.results[i].exec;
        if (exec->n_programs < 2 || exec->status != EXEC_OK)
            continue;
        bool whole = !many || exec->kinds;
        kinds |= exec->kinds;
        some |= !whole;
        for (int p = 0, last; p < exec->n_programs; p = last + 1) {
            last = last_alike(exec, p);
            if (whole || (exec->fullest >= p && exec->fullest <= last))
                add_program(&jobs, &table, i, p, last);
        }
    }
    const char *head = some ? "\nby program, of more than 8 lines the fullest of each point:\n" : "\nby program:\n";
    fputs(table.rows == 0 ? "" : kinds ? "\nby kind of GPU:\n" : head, out);
    table_finish(out, &table);
    arena_release(&arena);
}

static void print_plan(const struct plan *plan, const struct scenario_point *point, bool first)
{
    printf("%s%s: %s %s, batch %lld, %lld GPU%s\n", first ? "" : "\n", point->options.name, point->model.shape.name,
        strategy_label(&point->options.strategy), (long long)point->options.strategy.train.micro_batch,
        (long long)point->options.cluster.gpus, plural(point->options.cluster.gpus));
    plan_explain(stdout, plan, &point->hw);
}

void output_plans(const struct scenario_set *set, bool quiet, struct diag *diag)
{
    for (int i = 0; i < set->n_points && diag->worst == STATUS_OK; i++) {
        const struct scenario_point *point = &set->points[i];
        struct arena arena = ARENA_INIT;
        struct plan plan;
        if (scenario_compile(&plan, point, &arena, diag) == STATUS_OK) {
            if (!quiet)
                print_plan(&plan, point, i == 0);
            plan_release(&plan);
        }
        arena_release(&arena);
    }
}
