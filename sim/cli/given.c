#include "cli/given.h"

#include <string.h>

static void read_one(struct hw *given, const struct scenario_override *override, struct config_origins *origins,
    struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    const char *name = arena_printf(arena, "--set %s", override->key);
    if (scenario_override_parse(&doc, override, name, diag) == STATUS_OK)
        config_assign(hw_override_path(override->key, arena), (struct source_pos){.file = name}, config_root(doc),
            &hw_override_table, given, arena, origins, diag);
    config_free(doc);
}

enum status given_cluster(struct hw *hw, const struct hw_sources *sources, const struct scenario_override *list, int n,
    struct arena *arena, struct diag *diag)
{
    struct hw given = hw_nothing_given();
    struct config_origins origins = {0};
    struct diag own = DIAG_INIT;
    for (int i = 0; i < n; i++)
        read_one(&given, &list[i], &origins, arena, &own);
    if (own.worst == STATUS_OK && n > 0) {
        hw_override(hw, &given);
        hw_check_given(hw, sources, &origins, &own);
    }
    vec_free(&origins.list);
    diag_merge(diag, &own);
    return own.worst;
}

enum status given_gpu(struct hw_gpu *gpu, const struct hw_source *source, const struct scenario_override *list, int n,
    struct arena *arena, struct diag *diag)
{
    struct hw given = hw_nothing_given();
    struct config_origins origins = {0};
    struct diag own = DIAG_INIT;
    for (int i = 0; i < n; i++) {
        if (strncmp(hw_override_path(list[i].key, arena), "cluster.", strlen("cluster.")) == 0)
            diag_input(&own, (struct source_pos){.file = arena_printf(arena, "--set %s", list[i].key)},
                "there is a GPU here and no cluster; set gpu.KEY, as in gpu.hbm_capacity=96GiB");
        else
            read_one(&given, &list[i], &origins, arena, &own);
    }
    if (own.worst == STATUS_OK && n > 0) {
        hw_override_gpu(gpu, &given);
        hw_check_given_gpu(gpu, source, &origins, &own);
    }
    vec_free(&origins.list);
    diag_merge(diag, &own);
    return own.worst;
}
