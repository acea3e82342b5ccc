/* `flopcast topology import`: a node file of what a machine says about itself
 * (foreign/topology.h).
 *
 * The GPU's file is the one given, else the one that the dump tells by PCI device, links or
 * compute capability; a guess is written into the file as a comment, and so is every remark of
 * the reader. What is subtle: texts of the dump go into comments, so control characters are
 * replaced; NVLS is never in a dump, so switches that could reduce are mentioned. */
#include "options/command.h"
#include "options/arguments.h"

#include "base/files.h"
#include "foreign/topology.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

COMMAND(topology_import, 56, "topology import", 0,
    "describe a node from what a machine says about itself",
    "nvidia-smi topo -m >topo.txt && flopcast topology import topo.txt");

struct topology_import {
    const char *file, *out, *gpu, *name;
    bool certain; /* the dump names the GPU, or the user did */
    bool reduces; /* GPUs on switches that can, by generation */
    struct arena arena;
};

static const struct command_option topology_import_options[] = {
    {"out", "FILE", "The node file (default: stdout)", OPTION_TEXT, AT(topology_import, out)},
    {"gpu", "FILE",
        "The GPU file, as topologies/gpus/h200-sxm-141gb.yaml, where the dump does not say",
        OPTION_TEXT, AT(topology_import, gpu)},
    {"name", "NAME", "What the node is called (default: as the file)", OPTION_TEXT,
        AT(topology_import, name)},
    {0},
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* One line of a comment: what a dump names itself cannot end it. */
static void comment(FILE *out, const char *text)
{
    fputs("# ", out);
    for (; *text; text++)
        fputc(iscntrl((unsigned char)*text) ? '?' : *text, out);
    fputc('\n', out);
}

static void topology_import_write_node(FILE *out, const struct topology_import *import,
    const struct topology_dump *dump, const struct hw_node *node)
{
    char line[512];
    snprintf(line, sizeof line,
        "By `flopcast topology import` from %s (%s). Put in what you know better,",
        file_name(import->file), dump->how);
    comment(out, line);
    comment(out, "as nccl_efficiency from nccl-tests: what is of kind assumed was not measured on "
                 "this machine.");
    if (!import->certain)
        comment(out, "Which GPU it is was inferred from its NVLinks or compute capability; change "
                     "gpu where it is wrong.");
    if (import->reduces)
        comment(out, "Its switches can reduce (NVLS), which no dump says: without nvls_efficiency, "
                     "nvls_latency and nvls_step_latency, as in "
                     "topologies/nodes/dgx-h100-like.yaml, all_reduces "
                     "are rings and trees.");
    for (int i = 0; i < dump->remarks.n; i++)
        comment(out, dump->remarks.at[i]);
    hw_write_node(out, node);
}

static enum status topology_import_put(const struct topology_import *import,
    const struct topology_dump *dump, const struct hw_node *node, struct diag *diag)
{
    if (!import->out) {
        topology_import_write_node(stdout, import, dump, node);
        return STATUS_OK;
    }
    FILE *out = fopen(import->out, "w");
    bool ok = out != NULL;
    if (ok) {
        topology_import_write_node(out, import, dump, node);
        ok = ferror(out) == 0;
        ok = fclose(out) == 0 && ok;
    }
    if (!ok)
        return diag_io(
            diag, (struct source_pos){.file = import->out}, "cannot write: %s", strerror(errno));
    return STATUS_OK;
}

static enum status choose_gpu(
    struct topology_import *import, const struct topology_dump *dump, struct diag *diag)
{
    const char *known = topology_gpu(dump, &import->certain);
    if (import->gpu) {
        import->gpu = files_find(&import->arena, FILES_GPUS, import->gpu);
        import->certain = true;
    } else if (known)
        import->gpu = files_own(
            &import->arena, arena_printf(&import->arena, "topologies/gpus/%s.yaml", known));
    else
        return diag_input(diag, (struct source_pos){.file = import->file},
            "it does not say which GPUs these are, or there is no file of them; give --gpu FILE, "
            "one of topologies/gpus or your own");
    return STATUS_OK;
}

static enum status topology_import_run(struct topology_import *import, struct diag *diag)
{
    struct topology_dump dump = {0};
    struct input *input = NULL;
    struct hw_gpu gpu = {0};
    struct hw_node node = {0};
    enum status status = input_open(&input, import->file, diag);
    if (status == STATUS_OK)
        status = topology_read(&dump, input, &import->arena, diag);
    input_close(input);
    if (status == STATUS_OK)
        status = choose_gpu(import, &dump, diag);
    if (status == STATUS_OK)
        status = hw_load_gpu(&gpu, import->gpu, &import->arena, diag);
    const char *name = file_name(import->file);
    const char *stem = arena_printf(&import->arena, "%.*s", (int)(strcspn(name, ".")), name);
    if (status == STATUS_OK)
        status = topology_node(&node, &dump, import->name ? import->name : stem,
            files_name_from(&import->arena, import->out, import->gpu), &gpu,
            (struct source_pos){.file = import->gpu}, &import->arena, diag);
    import->reduces =
        dump.fabric == HW_NVSWITCH && (strcmp(gpu.arch ? gpu.arch : "", "Hopper") == 0 ||
                                          strcmp(gpu.arch ? gpu.arch : "", "Blackwell") == 0);
    if (status == STATUS_OK)
        status = topology_import_put(import, &dump, &node, diag);
    if (status == STATUS_OK && dump.nics > 0 &&
        !(dump.nic_Bps > 0)) /* networks differ by this more than by all else */
        diag_warn(diag, (struct source_pos){.file = import->file},
            "it does not say what a NIC carries; %.0f Gb/s is assumed: write what yours do under "
            "nic_bandwidth",
            8e-9 * node.nic_bandwidth.value);
    vec_free(&dump.remarks);
    return status;
}

int topology_import(int argc, char **argv)
{
    const struct command_line line = {.options = topology_import_options,
        .args_doc = "FILE",
        .one = "file",
        AT(topology_import, file),
        .missing = "a file is missing",
        .doc =
            "Make a node file from what a machine says about itself: the topology that NCCL writes "
            "(NCCL_TOPO_DUMP_FILE=topo.xml) or the matrix of `nvidia-smi topo -m`.\v"
            "Bandwidths are those that NCCL counts on. What FILE does not say is assumed, with the "
            "reason. A cluster file names the node: copy one of topologies/clusters (`flopcast "
            "files clusters`), and write this file's name under node."};
    struct topology_import import = {0};
    command_line_parse(&line, argc, argv, &import);
    struct diag diag = DIAG_INIT;
    topology_import_run(&import, &diag);
    arena_release(&import.arena);
    return cli_report(&diag);
}
