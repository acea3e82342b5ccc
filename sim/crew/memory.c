#include "crew/crew.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double KIB = 1024;
enum { MOST_PATH = 4096, MOST_NAME = 64 }; /* of a folder; of a file in it */

/* The number in a file of the kernel; HUGE_VAL: there is none ("max", or no such file). */
static double number_in(const char *folder, const char *name)
{
    char path[2 * MOST_PATH + MOST_NAME];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "r");
    double value = HUGE_VAL;
    if (in && fscanf(in, "%lf", &value) != 1)
        value = HUGE_VAL;
    if (in)
        fclose(in);
    return value;
}

static double machine_available(const char *root)
{
    char path[MOST_PATH], line[128];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *in = fopen(path, "r");
    double kib = HUGE_VAL;
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "MemAvailable: %lf", &kib) == 1)
            break;
    if (in)
        fclose(in);
    return kib * KIB;
}

/* What is left of the limits of a group and of those that it is in. One that a container does not see has no files. */
static double group_left(const char *mount, char *group, const char *limit, const char *used)
{
    double least = HUGE_VAL;
    for (;;) {
        char folder[2 * MOST_PATH];
        snprintf(folder, sizeof folder, "%s%s", mount, group);
        double left = number_in(folder, limit) - number_in(folder, used);
        if (isfinite(left) && left < least)
            least = left;
        char *end = strrchr(group, '/');
        if (!end)
            return least > 0 ? least : 0;
        *end = '\0';
    }
}

/* Version 2 of control groups: "0::/job"; version 1: "4:memory:/job", among other controllers. */
static double groups_left(const char *root)
{
    char path[MOST_PATH], line[MOST_PATH], mount[MOST_PATH];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *in = fopen(path, "r");
    double least = HUGE_VAL, left = HUGE_VAL;
    while (in && fgets(line, sizeof line, in)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        bool first = strcmp(controllers + 1, "memory") == 0;
        if (!first && controllers[1])
            continue;
        snprintf(mount, sizeof mount, first ? "%s/sys/fs/cgroup/memory" : "%s/sys/fs/cgroup", root);
        left = first ? group_left(mount, group, "memory.limit_in_bytes", "memory.usage_in_bytes")
                     : group_left(mount, group, "memory.max", "memory.current");
        least = left < least ? left : least;
    }
    if (in)
        fclose(in);
    return least;
}

double crew_memory_below(const char *root)
{
    double machine = machine_available(root), group = groups_left(root);
    return group < machine ? group : machine;
}

double crew_memory_available(void)
{
    return crew_memory_below("");
}
