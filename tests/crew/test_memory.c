/* Memory that is available, by copies of the kernel's files. */
#include "crew/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static int enter(void **state)
{
    static const char *const folders[] = {"proc", "proc/self", "sys", "sys/fs", "sys/fs/cgroup", "sys/fs/cgroup/slurm",
        "sys/fs/cgroup/slurm/job_7", "sys/fs/cgroup/memory", "sys/fs/cgroup/memory/docker"};
    char root[] = "/tmp/flopcast-memory-XXXXXX";
    (void)state;
    if (!mkdtemp(root) || chdir(root) != 0)
        return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (mkdir(folders[i], 0700) != 0)
            return -1;
    put("proc/meminfo", "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n");
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return system("rm -r \"$PWD\"") == 0 && chdir("/") == 0 ? 0 : -1;
}

/* Nothing limits: 8,000 KiB. A job may take 5,000,000 B and has taken 2,000,000; then one that it is in has 1,000,000
 * left. More than the machine has is no limit, and who has taken too much has nothing. */
static void the_least_of_machine_and_groups_is_left(void **state)
{
    (void)state;
    assert_true(crew_memory_below(".") == 8000 * 1024.0);
    put("proc/self/cgroup", "0::/slurm/job_7/step_0\n"); /* the step has no files */
    assert_true(crew_memory_below(".") == 8000 * 1024.0);
    put("sys/fs/cgroup/slurm/job_7/memory.max", "5000000\n");
    put("sys/fs/cgroup/slurm/job_7/memory.current", "2000000\n");
    assert_true(crew_memory_below(".") == 3e6);
    put("sys/fs/cgroup/slurm/memory.max", "max\n");
    put("sys/fs/cgroup/slurm/memory.current", "6000000\n");
    assert_true(crew_memory_below(".") == 3e6);
    put("sys/fs/cgroup/slurm/memory.max", "7000000\n");
    assert_true(crew_memory_below(".") == 1e6);
    put("sys/fs/cgroup/slurm/memory.max", "5000000\n");
    assert_true(crew_memory_below(".") == 0);
}

static void version_1_has_a_tree_for_memory(void **state)
{
    (void)state;
    put("proc/self/cgroup", "9:name=systemd:/x\n4:memory:/docker\n1:cpu:/slurm\n0::/\n");
    put("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/docker/memory.usage_in_bytes", "400000\n");
    assert_true(crew_memory_below(".") == 8000 * 1024.0);
    put("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "1000000\n");
    assert_true(crew_memory_below(".") == 6e5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_of_machine_and_groups_is_left, enter, leave),
        cmocka_unit_test_setup_teardown(version_1_has_a_tree_for_memory, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
