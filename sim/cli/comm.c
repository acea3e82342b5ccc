#include "cli/comm.h"

#include "cli/table.h"

static const double MS = 1e3, GB = 1e-9, PERCENT = 100;

enum { TIMES = 1, SHARE, ALGORITHM }; /* left out where there is no room: the last first */

static const struct scenario_comm_item *same(const struct scenario_comm *comm, const struct scenario_comm_item *item)
{
    for (int i = 0; i < comm->n_items; i++) {
        const struct scenario_comm_item *other = &comm->items[i];
        if (other->kind == item->kind && other->bytes == item->bytes && other->group_size == item->group_size)
            return other;
    }
    return NULL;
}

static void head(struct table *table, const struct comm_side *sides, int n_sides, struct arena *arena)
{
    table_column(table, "collective", "", true);
    for (int s = 0; s < n_sides; s++) {
        const char *label = sides[s].label, *space = *label ? " " : "";
        table_column(table, arena_printf(arena, "%s%stimes", label, space), "", false);
        if (n_sides == 1)
            table_spare(table, TIMES);
        table_column(table, "each", "ms", false);
        if (n_sides == 1) {
            table_column(table, "of the step", "%", false);
            table_spare(table, SHARE);
            table_column(table, "exposed", "ms", false);
            table_column(table, "busbw", "GB/s", false);
            table_column(table, "algorithm", "", true);
            table_spare(table, ALGORITHM);
        }
        table_column(table, "bound by", "", true);
    }
}

static void row(struct table *table, const struct comm_side *sides, int n_sides, const struct scenario_comm_item *item,
    struct arena *arena)
{
    table_cell(table, scenario_comm_name(arena, item));
    for (int s = 0; s < n_sides; s++) {
        const struct scenario_comm_item *of = same(sides[s].comm, item);
        table_cell(table, of ? arena_printf(arena, "%d", of->times) : "-");
        table_cell(table, of ? arena_printf(arena, "%.3f", MS * of->moving_s / of->times) : "-");
        if (n_sides == 1 && of) {
            table_cell(table, arena_printf(arena, "%.1f", PERCENT * of->moving_s / sides[s].comm->step_s));
            table_cell(table, arena_printf(arena, "%.1f", MS * of->exposed_s));
            table_cell(table, arena_printf(arena, "%.1f", GB * of->bus_bytes / of->moving_s));
            table_cell(table,
                arena_printf(arena, "%s %s", coll_algorithm_names[of->algorithm], coll_protocol_names[of->protocol]));
        }
        table_cell(table, of ? coll_bound_names[scenario_comm_most(of->bound_s)] : "-");
    }
}

void comm_table(FILE *out, const struct comm_side *sides, int n_sides, int most, struct arena *arena)
{
    struct table table = {0};
    head(&table, sides, n_sides, arena);
    for (int s = 0; s < n_sides; s++)
        for (int i = 0; i < sides[s].comm->n_items && i < most; i++) {
            const struct scenario_comm_item *item = &sides[s].comm->items[i];
            bool had = false;
            for (int before = 0; before < s; before++) {
                const struct scenario_comm_item *other = same(sides[before].comm, item);
                had = had || (other && other - sides[before].comm->items < most);
            }
            if (!had)
                row(&table, sides, n_sides, item, arena);
        }
    table_print(out, &table);
    table_free(&table);
}
