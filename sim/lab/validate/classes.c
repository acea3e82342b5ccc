#include "validate/classes.h"

#include <stdlib.h>
#include <string.h>

const char *const validate_by_names[BY_COUNT + 1] = {[BY_SOURCE] = "source",
    [BY_FRAMEWORK] = "framework",
    [BY_LAYOUT] = "layout",
    [BY_GPUS] = "gpus",
    [BY_WAITING] = "waiting"};

/* Upper ends of classes; the last one has none. */
static const struct {
    int64_t most;
    const char *name;
} gpus[] = {{1, "1"}, {8, "2 to 8"}, {64, "9 to 64"}, {512, "65 to 512"}, {INT64_MAX, "more than 512"}};
static const struct {
    double below;
    const char *name;
} shares[] = {{0, "no step"}, {0.05, "under 5 %"}, {0.15, "5 to 15 %"}, {0.3, "15 to 30 %"}, {0.5, "30 to 50 %"},
    {1e300, "50 % and more"}};

static int place_of(const struct validate_row *row, enum validate_by by)
{
    int i = 0;
    if (by == BY_GPUS)
        while (row->gpus > gpus[i].most)
            i++;
    if (by == BY_WAITING)
        while (row->waiting_share >= shares[i].below)
            i++;
    return i;
}

const char *validate_class(const struct validate_row *row, enum validate_by by)
{
    switch (by) {
    case BY_SOURCE:
        return row->source;
    case BY_FRAMEWORK:
        return *row->framework ? row->framework : "no stack profile";
    case BY_LAYOUT:
        return *row->layout ? row->layout : "not simulated";
    case BY_GPUS:
        return gpus[place_of(row, by)].name;
    case BY_WAITING:
        return shares[place_of(row, by)].name;
    case BY_COUNT:
        break;
    }
    return "";
}

struct class {
    const char *name;
    int place;
};

static int by_place(const void *a, const void *b)
{
    const struct class *one = a, *two = b;
    return one->place != two->place ? one->place - two->place : strcmp(one->name, two->name);
}

struct validate_classes validate_classes(const struct validate_table *table, enum validate_by by, struct arena *arena)
{
    VEC(struct class) found = {0};
    for (int i = 0; i < table->rows.n; i++) {
        const char *name = validate_class(&table->rows.at[i], by);
        int same = 0;
        while (same < found.n && strcmp(found.at[same].name, name) != 0)
            same++;
        if (same == found.n)
            vec_push(&found, (struct class){name, by == BY_SOURCE ? i : place_of(&table->rows.at[i], by)});
    }
    if (found.n)
        qsort(found.at, (size_t)found.n, sizeof *found.at, by_place);
    struct validate_classes classes = {ARENA_ARRAY(arena, const char *, found.n + 1), found.n};
    for (int i = 0; i < found.n; i++)
        classes.names[i] = found.at[i].name;
    vec_free(&found);
    return classes;
}
