#include "options/given.h"

#include <string.h>

/* What is given, by paths of hw/override.h, of which some are not for a GPU alone. */
struct given {
    struct hw hw;
    struct config_origins origins;
    struct diag diag;
};

static struct given read_given(const struct scenario_override *list, int n, bool only_gpu, struct arena *arena)
{
    struct given given = {.hw = hw_nothing_given()};
    for (int i = 0; i < n; i++) {
        struct config_doc *doc = NULL;
        struct source_pos at = {.file = arena_printf(arena, "--set %s", list[i].key)};
        const char *path = hw_override_path(list[i].key, arena);
        if (only_gpu && strncmp(path, "cluster.", strlen("cluster.")) == 0)
            diag_input(
                &given.diag, at, "there is a GPU here and no cluster; set gpu.KEY, as in gpu.hbm_capacity=96GiB");
        else if (scenario_override_parse(&doc, &list[i], at.file, &given.diag) == STATUS_OK)
            config_assign(
                path, at, config_root(doc), &hw_override_table, &given.hw, arena, &given.origins, &given.diag);
        config_free(doc);
    }
    return given;
}

static enum status end(struct given *given, struct diag *diag)
{
    vec_free(&given->origins.list);
    diag_merge(diag, &given->diag);
    return given->diag.worst;
}

enum status given_cluster(struct hw *hw, const struct hw_sources *sources, const struct scenario_override *list, int n,
    struct arena *arena, struct diag *diag)
{
    struct given given = read_given(list, n, false, arena);
    if (given.diag.worst == STATUS_OK && n > 0) {
        hw_override(hw, &given.hw);
        hw_check_given(hw, sources, &given.origins, &given.diag);
    }
    return end(&given, diag);
}

enum status given_gpu(struct hw_gpu *gpu, const struct hw_source *source, const struct scenario_override *list, int n,
    struct arena *arena, struct diag *diag)
{
    struct given given = read_given(list, n, true, arena);
    if (given.diag.worst == STATUS_OK && n > 0) {
        hw_override_gpu(gpu, &given.hw);
        hw_check_given_gpu(gpu, source, &given.origins, &given.diag);
    }
    return end(&given, diag);
}
