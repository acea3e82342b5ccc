/* What must hold of every cluster file that comes along. Include after cmocka.h. */
#ifndef FLOPCAST_TESTS_HW_CLUSTERS_H
#define FLOPCAST_TESTS_HW_CLUSTERS_H

#include "hw/hw.h"

#include <glob.h>

/* check may change hw, which is loaded from the file at path. */
static inline void each_cluster(void (*check)(const char *path, struct hw *hw))
{
    glob_t paths;
    assert_int_equal(glob(FLOPCAST_SOURCE_DIR "/topologies/clusters/*.yaml", 0, NULL, &paths), 0);
    assert_true(paths.gl_pathc > 10);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct hw hw;
        if (hw_load(&hw, paths.gl_pathv[i], &arena, &diag) != STATUS_OK)
            fail_msg("%s", diag.text);
        check(paths.gl_pathv[i], &hw);
        arena_release(&arena);
    }
    globfree(&paths);
}

#endif
