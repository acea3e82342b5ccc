/* `flopcast topology`: a file of a cluster, node or GPU with all its numbers and their sources.
 *
 * What kind of file it is follows from what it refers to: a cluster names a node, a node a GPU.
 * A file that only extends another may name neither; then the table of keys that knows most of
 * its keys decides, and if that is no clear answer, the file that it extends. For people,
 * clusters also get how NCCL lays channels across nodes, and whether they or PCIe carry less
 * than the NICs. */
#include "cli/cli.h"
#include "options/arguments.h"
#include "options/given.h"
#include "rows/rows.h"
#include "rows/words.h"
#include "study/comm.h"

#include "base/files.h"
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

COMMAND(cmd_topology, 26, "topology", 0, "show a cluster, node or GPU with sources; import a node",
    "flopcast topology h100-8x400g");

enum kind { CLUSTER, NODE, GPU };

/* The kind whose table knows most keys of the file; false: two know as many. */
static bool kind_by_keys(enum kind *kind, struct config_node root)
{
    const struct config_table *const tables[] = {
        [CLUSTER] = &hw_cluster_table, [NODE] = &hw_node_table, [GPU] = &hw_gpu_table};
    int most = -1;
    bool alone = false;
    for (int k = CLUSTER; k <= GPU; k++) {
        int known = config_fit(root, tables[k]);
        alone = known > most || (alone && known < most);
        if (known > most) {
            most = known;
            *kind = (enum kind)k;
        }
    }
    return alone;
}

/* What a file describes follows from what it refers to: a cluster names its node, a node its GPU, a
 * GPU nothing. Where it does not say, by its keys, or by the file that it extends; links: how many
 * more are followed. */
static enum status find_kind(
    enum kind *kind, const char *path, int links, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    const char *extends = NULL;
    enum status status = config_load_kind(&doc, FILES_HARDWARE, path, diag);
    if (status != STATUS_OK)
        return status;
    struct config_node root = config_root(doc);
    *kind = config_find(root, "node").doc ? CLUSTER : config_find(root, "gpu").doc ? NODE : GPU;
    bool extending = *kind == GPU && config_find(root, "extends").doc;
    if (extending && !kind_by_keys(kind, root) && links > 0)
        status = hw_extended(&extends, FILES_HARDWARE, root, arena, diag);
    if (extends && access(extends, R_OK) != 0) /* reported here, as its kind is not known */
        status =
            diag_input(diag, config_pos(config_find(root, "extends")), "cannot open '%s': %s%s",
                extends, strerror(errno), files_hint(arena, FILES_HARDWARE, extends));
    config_free(doc);
    if (status == STATUS_OK && extends)
        status = find_kind(kind, extends, links - 1, arena, diag);
    return status;
}

static enum status topology_load(struct hw *hw, struct hw_sources *sources, const char *path,
    struct arena *arena, struct diag *diag)
{
    enum { MOST_LINKS = 16 }; /* the loader reports a circle */
    enum kind kind = GPU;
    *hw = (struct hw){0};
    *sources = (struct hw_sources){0};
    enum status status = find_kind(&kind, path, MOST_LINKS, arena, diag);
    if (status != STATUS_OK)
        return status;
    if (kind == CLUSTER)
        return hw_load_from(hw, sources, path, arena, diag);
    if (kind == GPU)
        return hw_load_gpu_from(&hw->gpu, &sources->gpu, path, arena, diag);
    status = hw_load_node_from(&hw->node, &sources->node, path, arena, diag);
    return status == STATUS_OK
               ? hw_load_gpu_from(&hw->gpu, &sources->gpu, hw->node.gpu_path, arena, diag)
               : status;
}

/* A row a number or choice of one file. part: "cluster", "node", "gpu". */
static void topology_add_records(struct rows *rows, const char *part, const char *name,
    const char *prefix, const struct config_table *table, const void *from, struct arena *arena)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const void *at = (const char *)from + field->offset;
        const char *key = arena_printf(arena, "%s%s", prefix, field->key);
        struct quantity q = {0};
        if (field->type == FIELD_SECTION)
            topology_add_records(
                rows, part, name, arena_printf(arena, "%s.", key), field->section, at, arena);
        if (field->type == FIELD_SOURCED)
            q = *(const struct quantity *)at;
        const char *choice = field->type == FIELD_ENUM ? field->names[*(const int *)at] : NULL;
        if (!choice && !quantity_is_set(q))
            continue;
        const char *unit = dimension_unit(field->dimension);
        ROWS_CELLS(rows, cell_text("part", part), cell_text("name", name), cell_text("key", key),
            cell_real("value", !choice, q.value), cell_text("choice", choice),
            cell_text("unit", !choice && *unit ? unit : NULL),
            cell_text("kind", choice ? NULL : hw_kind_name(q.kind)),
            cell_real("std_error", q.std_error > 0, q.std_error),
            cell_text("source", choice ? NULL : q.source));
    }
}

/* Of a node's file there is no cluster, of a GPU's no node. */
static void topology_print_records(FILE *out, const struct hw *hw, enum records_format format)
{
    struct arena arena = ARENA_INIT;
    struct rows rows = {0};
    if (hw->cluster.name)
        topology_add_records(
            &rows, "cluster", hw->cluster.name, "", &hw_cluster_table, &hw->cluster, &arena);
    if (hw->node.name)
        topology_add_records(&rows, "node", hw->node.name, "", &hw_node_table, &hw->node, &arena);
    topology_add_records(&rows, "gpu", hw->gpu.name, "", &hw_gpu_table, &hw->gpu, &arena);
    rows_finish(out, &rows, format);
    arena_release(&arena);
}

/* Each number's source ends where the terminal does. */
static void topology_print_table(FILE *out, const struct hw *hw, const struct hw_sources *sources)
{
    char *text = NULL;
    size_t n = 0;
    FILE *lines = xmemstream(&text, &n);
    hw_print(lines, hw, sources);
    fclose(lines);
    words_lines(out, text);
    free(text);
}

struct one_file {
    const char *path;
    enum records_format format;
};
static const struct command_option topology_options[] = {RECORDS_OPTION(struct one_file), {0}};

int cmd_topology(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "import") == 0) {
        char whole[] = "flopcast topology import";
        argv[1] = whole;
        return cmd_elsewhere(argc - 1, argv + 1);
    }
    const struct command_line line = {topology_options, "FILE",
        "Show a cluster, node or GPU with what it is made of: every number with its unit, kind and "
        "source. FILE is one of topologies/clusters, nodes or gpus.\v'flopcast topology import "
        "--help': a node from what a machine says about itself.",
        COMMON_TABLE, "file", .member = offsetof(struct one_file, path),
        .missing = "a file is missing", .files = FILES_CLUSTERS};
    struct one_file file = {0};
    command_line_parse(&line, argc, argv, &file);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    struct hw_sources sources;
    bool table = file.format == RECORDS_TABLE;
    if (topology_load(&hw, &sources, files_find(&arena, FILES_HARDWARE, file.path), &arena,
            &diag) == STATUS_OK &&
        table)
        topology_print_table(stdout, &hw, &sources);
    else if (diag.worst == STATUS_OK)
        topology_print_records(stdout, &hw, file.format);
    if (diag.worst == STATUS_OK && table && hw.cluster.nodes.value > 1)
        scenario_channels_print(stdout, &hw);
    hw_sources_free(&sources);
    arena_release(&arena);
    return cli_report(&diag);
}
