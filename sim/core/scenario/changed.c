/* What the command line makes of a scenario that is another one's than the file's: its title says
 * so, and figures that were published of the file's are no figures of it.
 *
 * Two questions, at two times. changed_setting() runs while overrides are put in, and compares a
 * value with the file's plain value or its swept list, as texts. published_leave_out() runs on
 * finished points: each is held against the point of the plain file that differs from it in the
 * fewest settings, and keeps its published figure only if that is none. Settings by which a row is
 * found, and those that say how a job is simulated and not what it is, do not count. */
#include "scenario/file.h"

#include <string.h>

/* How a job is simulated and counted, not what it is. */
static bool is_other_job(const char *path)
{
    static const char *const same[] = {"noise", "noise.", "run.steps", "run.warmup_steps",
        "run.seed", "run.fold", "goodput.", "name", "description", "assumptions", "published."};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        size_t n = strlen(same[i]);
        if (same[i][n - 1] == '.' ? strncmp(path, same[i], n) == 0 : strcmp(path, same[i]) == 0)
            return false;
    }
    return true;
}

/* By which a row of published figures is found. */
static bool is_of_row(const char *path)
{
    static const char *const keys[] = {"model", "strategy", "fsdp.sharding_strategy",
        "deepspeed.zero_optimization.stage", "cluster.gpus", "train.micro_batch"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(path, keys[i]) == 0)
            return true;
    return false;
}

static const char *text_at(const struct scenario *options, const char *path, struct arena *arena)
{
    size_t at = 0;
    const struct config_field *field = config_field_at(&scenario_table, path, &at);
    return config_value_text(field, (const char *)options + at, arena);
}

static const char *add_name(const char *names, const char *name, struct arena *arena)
{
    return names ? arena_printf(arena, "%s, %s", names, name) : name;
}

/* The settings from the command line that a point of the file has otherwise; NULL: none. */
static const char *differing(const struct scenario_point *point, const struct scenario_point *plain,
    int *n, struct arena *arena)
{
    const char *names = NULL;
    *n = 0;
    for (int i = 0; i < point->origins.list.n; i++) {
        const struct config_origin *origin = &point->origins.list.at[i];
        if (origin->kind != ORIGIN_COMMAND_LINE || !is_other_job(origin->path) ||
            is_of_row(origin->path))
            continue;
        if (strcmp(text_at(&point->options, origin->path, arena),
                text_at(&plain->options, origin->path, arena)) == 0)
            continue;
        names = add_name(names, origin->path, arena);
        ++*n;
    }
    return names;
}

void published_leave_out(
    struct scenario_set *set, const struct scenario_set *plain, struct arena *arena)
{
    for (int i = 0; i < set->n_points; i++) {
        struct scenario_point *point = &set->points[i];
        const char *least = NULL;
        int fewest = -1;
        bool has_row = false;
        for (int p = 0; p < plain->n_points && point->published.found; p++)
            has_row =
                has_row || (plain->points[p].published.found &&
                               strcmp(plain->points[p].published.id, point->published.id) == 0);
        for (int p = 0; p < plain->n_points && point->published.found; p++) {
            const struct scenario_published *published = &plain->points[p].published;
            int n = 0;
            if (has_row && (!published->found || strcmp(published->id, point->published.id) != 0))
                continue;
            const char *names = differing(point, &plain->points[p], &n, arena);
            if (fewest < 0 || n < fewest) {
                fewest = n;
                least = names;
            }
        }
        if (fewest <= 0)
            continue;
        point->published = (struct scenario_published){.left_out = least};
        point->options.assumptions = NULL;
    }
}

/* Whether the file has this value of a setting, or sweeps it. */
static bool has_value(const struct scenario *plain, const struct sweep *sweep, const char *path,
    struct config_node value, struct arena *arena)
{
    struct scenario scratch = *plain;
    struct diag diag = DIAG_INIT;
    bool is_swept = false;
    config_assign(path, config_pos(value), value, &scenario_table, &scratch, arena, NULL, &diag);
    if (diag.n_errors > 0) /* which is reported elsewhere */
        return true;
    const char *text = text_at(&scratch, path, arena);
    for (int k = 0; k < sweep->keys.n; k++)
        for (int i = 0; i < config_count(sweep->keys.at[k].values) &&
                        strcmp(sweep->keys.at[k].path, path) == 0;
             i++) {
            is_swept = true;
            config_assign(path, config_pos(value), config_item(sweep->keys.at[k].values, i),
                &scenario_table, &scratch, arena, NULL, &diag);
            if (diag.n_errors == 0 && strcmp(text_at(&scratch, path, arena), text) == 0)
                return true;
        }
    return !is_swept && strcmp(text_at(plain, path, arena), text) == 0;
}

const char *changed_setting(const struct scenario *plain, const struct sweep *sweep,
    const struct sweep_key *given, const char *names, struct arena *arena)
{
    bool list = config_kind(given->values) == CONFIG_SEQUENCE, same = true;
    if (!is_other_job(given->path))
        return names;
    for (int i = 0; i < (list ? config_count(given->values) : 1) && same; i++)
        same = has_value(
            plain, sweep, given->path, list ? config_item(given->values, i) : given->values, arena);
    return same ? names : add_name(names, given->path, arena);
}
