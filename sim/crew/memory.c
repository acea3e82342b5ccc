#include "crew/crew.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double KIB = 1024;

/* The number in a file of the kernel; HUGE_VAL: there is none ("max", or no such file). */
static double number_in(const char *path)
{
    FILE *in = fopen(path, "r");
    double value = HUGE_VAL;
    if (in && fscanf(in, "%lf", &value) != 1)
        value = HUGE_VAL;
    if (in)
        fclose(in);
    return value;
}

static double machine_available(void)
{
    FILE *in = fopen("/proc/meminfo", "r");
    char line[128];
    double kib = HUGE_VAL;
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "MemAvailable: %lf", &kib) == 1)
            break;
    if (in)
        fclose(in);
    return kib * KIB;
}

/* What is left of the limit of a group: version 2 of control groups, then version 1, as a container sees them. */
static double group_available(void)
{
    double left = number_in("/sys/fs/cgroup/memory.max") - number_in("/sys/fs/cgroup/memory.current");
    double left_1 = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes") -
                    number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes");
    double least = HUGE_VAL;
    if (isfinite(left))
        least = left;
    if (isfinite(left_1) && left_1 < least)
        least = left_1;
    return least > 0 ? least : 0;
}

double crew_memory_available(void)
{
    double machine = machine_available(), group = group_available();
    return group < machine ? group : machine;
}
