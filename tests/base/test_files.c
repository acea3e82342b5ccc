#include "base/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void touch(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

/* In an empty folder with nodes/n.yaml and clusters/, and flopcast's own files elsewhere. */
static void names(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    char folder[] = "/tmp/flopcast-files-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(setenv("FLOPCAST_DATA", FLOPCAST_SOURCE_DIR, 1), 0);
    assert_int_equal(mkdir("nodes", 0700) | mkdir("clusters", 0700), 0);
    touch("nodes/n.yaml");
    const char *absolute = arena_printf(&arena, "%s/nodes/n.yaml", folder);
    static const char own[] = FLOPCAST_SOURCE_DIR "/topologies/nodes/dgx-2.yaml";
    assert_string_equal(files_name_from(&arena, "nodes/c.yaml", "nodes/n.yaml"), "n.yaml");
    assert_string_equal(files_name_from(&arena, "c.yaml", "nodes/n.yaml"), "nodes/n.yaml");
    assert_string_equal(files_name_from(&arena, "clusters/c.yaml", "nodes/n.yaml"), "../nodes/n.yaml");
    assert_string_equal(files_name_from(&arena, "clusters/c.yaml", absolute), "../nodes/n.yaml");
    assert_string_equal(files_name_from(&arena, "/usr/lib/c.yaml", "nodes/n.yaml"), absolute);
    assert_string_equal(files_name_from(&arena, NULL, "nodes/n.yaml"), absolute);
    assert_string_equal(files_name_from(&arena, "/c.yaml", "nodes/n.yaml"), absolute);
    assert_string_equal(files_name_from(&arena, "no/such/c.yaml", "nodes/n.yaml"), absolute);
    assert_string_equal(files_name_from(&arena, "c.yaml", own), "topologies/nodes/dgx-2.yaml");
    assert_string_equal(files_name_from(&arena, NULL, own), "topologies/nodes/dgx-2.yaml");
    assert_string_equal(
        files_name_from(&arena, FLOPCAST_SOURCE_DIR "/topologies/clusters/c.yaml", own), "../nodes/dgx-2.yaml");
    assert_int_equal(unlink("nodes/n.yaml") | rmdir("nodes") | rmdir("clusters") | rmdir(folder), 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
