#include "options/given.h"

enum status given_cluster(struct hw *hw, const struct hw_sources *sources,
    const struct scenario_override *list, int n, struct arena *arena, struct diag *diag)
{
    struct hw given = hw_nothing_given();
    struct config_origins origins = {0};
    struct diag own = DIAG_INIT;
    for (int i = 0; i < n; i++) {
        struct config_doc *doc = NULL;
        struct source_pos at = {.file = scenario_override_name(&list[i], NULL, arena)};
        const char *path = hw_override_path(list[i].key, arena);
        if (scenario_override_parse(&doc, &list[i], at.file, &own) == STATUS_OK)
            config_assign(
                path, at, config_root(doc), &hw_override_table, &given, arena, &origins, &own);
        config_free(doc);
    }
    if (own.worst == STATUS_OK && n > 0) {
        hw_override(hw, &given);
        hw_check_given(hw, sources, &origins, &own);
    }
    vec_free(&origins.list);
    diag_merge(diag, &own);
    return own.worst;
}
