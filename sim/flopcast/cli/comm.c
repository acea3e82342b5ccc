/* A table of collectives of one side, or of several sides beside each other (waterfall, whatif).
 *
 * Rows are kinds of collectives, equal by kind, bytes and group size; each side adds those that
 * no side before it has shown among its first `most`. With one side there are more columns, as
 * there is room. */
#include "cli/comm.h"

#include "rows/table.h"

#include <math.h>

static const double GB = 1e-9;

enum { TIMES = 1, SHARE, ALGORITHM }; /* left out where there is no room: the last first */

static const struct scenario_comm_item *comm_same(
    const struct scenario_comm *comm, const struct scenario_comm_item *item)
{
    for (int i = 0; i < comm->n_items; i++) {
        const struct scenario_comm_item *other = &comm->items[i];
        if (other->kind == item->kind && other->bytes == item->bytes &&
            other->group_size == item->group_size)
            return other;
    }
    return NULL;
}

static void row(struct table *table, const struct comm_side *sides, int n_sides,
    const struct scenario_comm_item *item, struct arena *arena)
{
    table_row(table);
    table_text(table, "collective", "", scenario_comm_name(arena, item));
    for (int s = 0; s < n_sides; s++) {
        const struct scenario_comm_item *of = comm_same(sides[s].comm, item);
        const char *label = sides[s].label, *space = *label ? " " : "";
        table_number(table, arena_printf(arena, "%s%stimes", label, space), "", 0,
            of ? (double)of->times : TABLE_UNKNOWN);
        table_spare(table, n_sides == 1 ? TIMES : 0);
        table_number(
            table, "each", "ms", 3, of ? MS_PER_S * of->moving_s / of->times : TABLE_UNKNOWN);
        if (n_sides == 1 && of) {
            table_number(
                table, "of the step", "%", 1, PERCENT * of->moving_s / sides[s].comm->step_s);
            table_spare(table, SHARE);
            table_number(table, "exposed", "ms", 1, MS_PER_S * of->exposed_s);
            table_number(table, "busbw", "GB/s", 1, GB * of->bus_bytes / of->moving_s);
            table_text(table, "algorithm", "",
                arena_printf(arena, "%s %s", coll_algorithm_names[of->algorithm],
                    coll_protocol_names[of->protocol]));
            table_spare(table, ALGORITHM);
        }
        table_text(
            table, "bound by", "", of ? coll_bound_names[scenario_comm_most(of->bound_s)] : "-");
    }
}

void comm_table(
    FILE *out, const struct comm_side *sides, int n_sides, int most, struct arena *arena)
{
    struct table table = {0};
    for (int s = 0; s < n_sides; s++)
        for (int i = 0; i < sides[s].comm->n_items && i < most; i++) {
            const struct scenario_comm_item *item = &sides[s].comm->items[i];
            bool had = false;
            for (int before = 0; before < s; before++) {
                const struct scenario_comm_item *other = comm_same(sides[before].comm, item);
                had = had || (other && other - sides[before].comm->items < most);
            }
            if (!had)
                row(&table, sides, n_sides, item, arena);
        }
    table_finish(out, &table);
}
