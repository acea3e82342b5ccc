#include "validate/lessons.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WANTED_OF_SIDE = 0.95; /* of a 90 % interval: as many beyond its lower as beyond its upper end */

bool lessons_same_source(const char *a, const char *b)
{
    size_t n = strcspn(a, ",");
    return n == strcspn(b, ",") && strncmp(a, b, n) == 0;
}

bool lessons_same_family(const struct validate_row *a, const struct validate_row *b)
{
    return lessons_same_source(a->source, b->source) && strcmp(a->gpu, b->gpu) == 0 && strcmp(a->model, b->model) == 0;
}

static int by_need(const void *a, const void *b)
{
    const struct lesson *x = a, *y = b;
    return (x->need > y->need) - (x->need < y->need);
}

void lessons_sort(struct lessons *lessons)
{
    qsort(lessons->list, (size_t)lessons->n, sizeof *lessons->list, by_need);
}

double lessons_enough(const struct lessons *lessons, double share, bool from_end)
{
    double total = 0, sum = 0, found = 0;
    for (int i = 0; i < lessons->n; i++)
        total += lessons->list[i].weight;
    for (int i = 0; i < lessons->n && sum < share * total; i++) {
        const struct lesson *lesson = &lessons->list[from_end ? lessons->n - 1 - i : i];
        sum += lesson->weight;
        found = lesson->weight > 0 ? lesson->need : found;
    }
    return found;
}

struct validate_sides lessons_sides(const struct lessons *lessons)
{
    return (struct validate_sides){.low = fmax(0, -lessons_enough(lessons, WANTED_OF_SIDE, true)),
        .high = fmax(0, lessons_enough(lessons, WANTED_OF_SIDE, false))};
}
