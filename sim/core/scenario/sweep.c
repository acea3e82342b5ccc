/* The sweep of a file: swept keys with their lists, their axes, and the values of point i.
 *
 * Keys are kept in the order of their axes, and axes are numbered without gaps: sweep_assign()
 * finds an axis by walking the keys once, with a stride as of an array whose last axis varies
 * fastest. A value from outside takes the key out of its axis, or replaces its list in place; a new
 * list becomes the last axis. Removing the last key of an axis moves the later axes down; removing
 * another one leaves points that differed by it alone, of which the first stays.
 *
 * All values are assigned to a scratch scenario once before any point is built (check_values), so
 * that sweep_assign() can take a failure for a bug. */
#include "scenario/file.h"

#include <string.h>

static int axes(const struct sweep *sweep)
{
    return sweep->keys.n ? sweep->keys.at[sweep->keys.n - 1].axis + 1 : 0;
}

void sweep_read(
    struct sweep *sweep, struct config_node node, struct arena *arena, struct diag *diag)
{
    if (config_kind(node) != CONFIG_SEQUENCE) {
        diag_input(
            diag, config_pos(node), "'sweep' is a list of axes, as in '- cluster.gpus: [8, 16]'");
        return;
    }
    for (int i = 0; i < config_count(node); i++) {
        struct config_node axis = config_item(node, i);
        int number = axes(sweep);
        if (config_count(axis) == 0 || config_kind(axis) != CONFIG_MAPPING) {
            diag_input(diag, config_pos(axis),
                "an axis of 'sweep' is a mapping, as in 'cluster.gpus: [8, 16]'");
            continue;
        }
        for (int j = 0; j < config_count(axis); j++) {
            struct config_node key = config_key(axis, j), values = config_item(axis, j);
            if (config_kind(values) != CONFIG_SEQUENCE || config_count(values) == 0)
                diag_input(diag, config_pos(values),
                    "'%.80s' is swept over a list of values, as in [8, 16]", config_text(key));
            else
                vec_push(&sweep->keys,
                    (struct sweep_key){
                        .path = scenario_key_path(arena_strdup(arena, config_text(key)), arena),
                        .at = config_pos(key),
                        .values = values,
                        .axis = number});
        }
    }
}

/* Take a key out; its axis goes when nothing else is swept along it. */
static void remove_key(struct sweep *sweep, int i)
{
    struct sweep_key *keys = sweep->keys.at;
    int axis = keys[i].axis, left = 0;
    sweep->keys.n--;
    memmove(keys + i, keys + i + 1, sizeof *keys * (size_t)(sweep->keys.n - i));
    for (int j = 0; j < sweep->keys.n; j++)
        if (keys[j].axis == axis) {
            keys[j].lost = true;
            left++;
        }
    if (left > 0)
        return;
    for (int j = 0; j < sweep->keys.n; j++)
        keys[j].axis -= keys[j].axis > axis;
}

void sweep_drop(struct sweep *sweep, const char *path)
{
    for (int i = sweep->keys.n - 1; i >= 0; i--)
        if (strcmp(sweep->keys.at[i].path, path) == 0)
            remove_key(sweep, i);
}

void sweep_override(struct sweep *sweep, struct sweep_key key, struct scenario *base,
    struct arena *arena, struct config_origins *origins, struct diag *diag)
{
    bool list = config_kind(key.values) == CONFIG_SEQUENCE;
    if (strcmp(key.path, "sweep") == 0) {
        diag_input(diag, key.at,
            "'sweep' is for files; sweep a key by a list, as in --set cluster.gpus='[8, 16]'");
        return;
    }
    if (list && config_count(key.values) == 0) {
        diag_input(diag, config_pos(key.values), "an empty list sweeps nothing; write [8, 16]");
        return;
    }
    key.axis = axes(sweep);
    for (int i = 0; i < sweep->keys.n; i++) {
        if (strcmp(sweep->keys.at[i].path, key.path) != 0)
            continue;
        if (list) {
            key.axis = sweep->keys.at[i].axis;
            key.lost = sweep->keys.at[i].lost;
            sweep->keys.at[i] = key;
            return;
        }
        remove_key(sweep, i);
        break;
    }
    if (list)
        vec_push(&sweep->keys, key);
    else
        config_assign(key.path, key.at, key.values, &scenario_table, base, arena, origins, diag);
}

/* An unknown key is reported once, not for each of its values. */
static void check_values(const struct sweep_key *key, struct arena *arena, struct diag *diag)
{
    struct diag reported = DIAG_INIT;
    for (int i = 0; i < config_count(key->values); i++) {
        struct scenario scratch = {0};
        config_assign(key->path, key->at, config_item(key->values, i), &scenario_table, &scratch,
            arena, NULL, &reported);
    }
    diag_merge(diag, &reported);
}

/* Against the keys before it: not there yet, and as long as the others of its axis. */
static void sweep_check_key(const struct sweep *sweep, int i, struct diag *diag)
{
    const struct sweep_key *key = &sweep->keys.at[i];
    for (int j = 0; j < i; j++) {
        const struct sweep_key *other = &sweep->keys.at[j];
        if (strcmp(key->path, other->path) == 0)
            diag_input(diag, key->at, "'%.80s' is swept twice (first at line %d); merge the lists",
                key->path, other->at.line);
        int n = config_count(key->values), n_other = config_count(other->values);
        if (key->axis == other->axis && n != n_other)
            diag_input(diag, key->at,
                "'%.80s' has %d values, '%.80s' beside it has %d; keys of one axis go together, "
                "value by value",
                key->path, n, other->path, n_other);
    }
}

/* Whether the keys of an axis have the same values at two places. */
static bool sweep_is_alike(const struct sweep *sweep, int axis, int a, int b)
{
    for (int i = 0; i < sweep->keys.n; i++) {
        const struct sweep_key *key = &sweep->keys.at[i];
        if (key->axis != axis) /* which may have fewer values */
            continue;
        struct config_node x = config_item(key->values, a), y = config_item(key->values, b);
        if (config_kind(x) != CONFIG_SCALAR || config_kind(y) != CONFIG_SCALAR ||
            strcmp(config_text(x), config_text(y)) != 0)
            return false;
    }
    return true;
}

/* Of an axis that lost a key, what differed by that key only is one point. */
static void drop_repeated(struct sweep *sweep, struct arena *arena)
{
    for (int i = 0; i < sweep->keys.n; i++) {
        struct sweep_key *key = &sweep->keys.at[i];
        int n = config_count(key->values);
        if (!key->lost)
            continue;
        key->places = ARENA_ARRAY(arena, int, n);
        for (int place = 0; place < n; place++) {
            int k = 0;
            while (k < key->n_places && !sweep_is_alike(sweep, key->axis, key->places[k], place))
                k++;
            if (k == key->n_places)
                key->places[key->n_places++] = place;
        }
    }
}

static int sweep_length(const struct sweep_key *key)
{
    return key->places ? key->n_places : config_count(key->values);
}

static int axis_length(const struct sweep *sweep, int axis)
{
    int i = 0;
    while (sweep->keys.at[i].axis != axis)
        i++;
    return sweep_length(&sweep->keys.at[i]);
}

void sweep_check(struct sweep *sweep, struct arena *arena, struct diag *diag)
{
    for (int i = 0; i < sweep->keys.n; i++) {
        sweep_check_key(sweep, i, diag);
        check_values(&sweep->keys.at[i], arena, diag);
    }
    if (diag->n_errors == 0)
        drop_repeated(sweep, arena);
    int64_t points = 1;
    for (int axis = 0; axis < axes(sweep); axis++) {
        points *= axis_length(sweep, axis);
        if (points > SCENARIO_MAX_POINTS) {
            diag_input(diag, sweep->keys.at[0].at,
                "the sweep has more than %d points; shorten its lists", SCENARIO_MAX_POINTS);
            return;
        }
    }
}

int sweep_points(const struct sweep *sweep)
{
    int points = 1;
    for (int axis = 0; axis < axes(sweep); axis++)
        points *= axis_length(sweep, axis);
    return points;
}

void sweep_assign(const struct sweep *sweep, int point, struct scenario *options,
    struct arena *arena, struct config_origins *origins)
{
    int stride = sweep_points(sweep), axis = -1, choice = 0;
    struct diag diag = DIAG_INIT;
    for (int i = 0; i < sweep->keys.n; i++) {
        const struct sweep_key *key = &sweep->keys.at[i];
        if (key->axis != axis) { /* keys stand in the order of their axes */
            axis = key->axis;
            int length = sweep_length(key);
            stride /= length;
            choice = point / stride % length;
        }
        struct config_node value =
            config_item(key->values, key->places ? key->places[choice] : choice);
        config_assign(key->path, key->at, value, &scenario_table, options, arena, origins, &diag);
    }
    BUG_IF(diag.n_errors, "sweep_check let a value pass: %s", diag.text);
}
