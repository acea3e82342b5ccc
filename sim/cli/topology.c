#include "cli/cli.h"
#include "cli/one_file.h"
#include "cli/topology.h"

#include "base/files.h"
#include "config/config.h"
#include "hw/hw.h"

#include <stdio.h>
#include <string.h>

/* What a file describes is told by what it refers to: a cluster names its node, a node its GPU, a GPU nothing. */
static enum status load(struct hw *hw, const char *path, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    *hw = (struct hw){0};
    enum status status = config_load(&doc, path, diag);
    if (status != STATUS_OK)
        return status;
    bool is_cluster = config_kind(config_find(config_root(doc), "node")) != CONFIG_NONE;
    bool is_node = config_kind(config_find(config_root(doc), "gpu")) != CONFIG_NONE;
    config_free(doc);
    if (is_cluster)
        return hw_load(hw, path, arena, diag);
    if (!is_node)
        return hw_load_gpu(&hw->gpu, path, arena, diag);
    status = hw_load_node(&hw->node, path, arena, diag);
    return status == STATUS_OK ? hw_load_gpu(&hw->gpu, hw->node.gpu_path, arena, diag) : status;
}

int cmd_topology(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "import") == 0) {
        char whole[] = "flopcast topology import";
        argv[1] = whole;
        return topology_import(argc - 1, argv + 1);
    }
    const char *named = one_file_parse(argc, argv,
        "Show a cluster, node or GPU with what it is made of: every number with its unit, kind and source. FILE is one "
        "of topologies/clusters, nodes or gpus.\v'flopcast topology import --help': a node from what a machine says "
        "about itself.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    if (load(&hw, files_find(&arena, named), &arena, &diag) == STATUS_OK)
        hw_print(stdout, &hw);
    arena_release(&arena);
    return cli_report(&diag);
}
