/* The GPUs that `flopcast memory` and `capacity` are asked about, and the cluster that the job is tried on. */
#include "base/files.h"
#include "cli/given.h"
#include "cli/memory.h"
#include "cli/words.h"

#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A card of which only the memory is known: --gpu 24GiB. It is taken to multiply in every number format. */
static enum status make_card(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    static const char assumed[] = "between the 0.4 and 0.6 GB of the files of topologies/gpus";
    double bytes = 0;
    char why[256];
    if (!quantity_parse(&bytes, request->gpu_path, DIM_BYTES, why, sizeof why) || !(bytes > 0))
        return diag_input(diag, (struct source_pos){.file = "--gpu"},
            "'%s' is no file and no size of memory; write one as 24GiB, or a file as "
            "topologies/gpus/a100-sxm4-80gb.yaml",
            request->gpu_path);
    request->n_gpus = 1;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, 1);
    request->any_math = true;
    request->gpus[0].gpu = (struct hw_gpu){.name = arena_printf(arena, "a card of %s", request->gpu_path),
        .hbm_capacity = {.value = bytes, .kind = QUANTITY_DATASHEET, .source = "--gpu"},
        .context_bytes = {.value = 0.5e9, .kind = QUANTITY_ASSUMED, .source = assumed}};
    if (request->overrides.list.n > 0)
        return diag_input(diag, (struct source_pos){.file = "--set"},
            "of a card of %s only the memory is known; name a GPU file by --gpu", request->gpu_path);
    return STATUS_OK;
}

static enum status load_gpu(
    struct memory_request *request, struct hw_gpu *out, const char *path, struct arena *arena, struct diag *diag)
{
    struct hw_source source;
    enum status status = hw_load_gpu_from(out, &source, path, arena, diag);
    if (status == STATUS_OK)
        status = given_gpu(out, &source, request->overrides.list.at, request->overrides.list.n, arena, diag);
    vec_free(&source.keys.list);
    return status;
}

static enum status load_cluster(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct hw *hw = &request->job.point.hw;
    struct hw_sources sources;
    request->cluster_path = files_find(arena, FILES_CLUSTERS, request->cluster_path);
    enum status status = hw_load_from(hw, &sources, request->cluster_path, arena, diag);
    if (status == STATUS_OK)
        status = given_cluster(hw, &sources, request->overrides.list.at, request->overrides.list.n, arena, diag);
    hw_sources_free(&sources);
    request->n_gpus = 1;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, 1);
    request->gpus[0] = (struct memory_gpu){hw->gpu, hw->node.nccl_bytes.value};
    request->gpu_path = hw->node.gpu_path;
    return status;
}

static enum status load_known_gpus(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    glob_t found = {0};
    enum status status = STATUS_OK;
    const char *all = files_own(arena, "topologies/gpus/*.yaml");
    if (request->gpu_path)
        request->gpu_path = files_find(arena, FILES_GPUS, request->gpu_path);
    if (request->gpu_path && isdigit((unsigned char)*request->gpu_path) && access(request->gpu_path, F_OK) != 0)
        return make_card(request, arena, diag);
    if (!request->gpu_path && glob(all, 0, NULL, &found) != 0)
        return diag_io(diag, (struct source_pos){.file = all},
            "there is no GPU here; FLOPCAST_DATA names the folder with flopcast's files, --gpu a file of your own");
    request->n_gpus = request->gpu_path ? 1 : (int)found.gl_pathc;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, request->n_gpus);
    for (int i = 0; i < request->n_gpus && status == STATUS_OK; i++)
        status = load_gpu(
            request, &request->gpus[i].gpu, request->gpu_path ? request->gpu_path : found.gl_pathv[i], arena, diag);
    globfree(&found);
    return status;
}

struct listed {
    const char *path;
    int named; /* has a short name */
};

/* Whole nodes, or part of one. */
static bool takes(const struct hw *hw, int64_t gpus)
{
    int64_t node = hw_gpus_per_node(hw);
    return gpus <= node || (gpus % node == 0 && gpus / node <= (int64_t)hw->cluster.nodes.value);
}

/* The cluster that a short name means comes before others of its GPU, as `--gpu h100` and `topology: h100` are one. */
static int named_first(const void *a, const void *b)
{
    const struct listed *one = a, *other = b;
    return one->named != other->named ? other->named - one->named : strcmp(one->path, other->path);
}

static struct listed *list_clusters(const glob_t *found, struct arena *arena)
{
    struct listed *all = ARENA_ARRAY(arena, struct listed, (int)found->gl_pathc);
    const struct files_group *clusters = files_groups;
    while (clusters->kind != FILES_CLUSTERS)
        clusters++;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        all[i].path = found->gl_pathv[i];
        all[i].named = *files_aliases(arena, clusters, words_stem(all[i].path, arena)) != '\0';
    }
    if (found->gl_pathc)
        qsort(all, found->gl_pathc, sizeof *all, named_first);
    return all;
}

/* flopcast's clusters, those with a short name first, then by alphabet: each GPU's NCCL buffers as in the first that
 * has it. The one GPU that was named: the job's cluster is the first that has it and, for `capacity`, takes that number
 * of GPUs. */
static bool look_at_clusters(struct memory_request *request, struct arena *arena)
{
    int64_t gpus = request->capacity ? request->job.point.options.cluster.gpus : 1;
    glob_t found = {0};
    bool chosen = false;
    if (glob(files_own(arena, "topologies/clusters/*.yaml"), 0, NULL, &found) != 0)
        return false;
    const struct listed *clusters = list_clusters(&found, arena);
    for (size_t f = 0; f < found.gl_pathc && !chosen; f++) {
        struct diag diag = DIAG_INIT;
        struct hw hw;
        if (hw_load(&hw, clusters[f].path, arena, &diag) != STATUS_OK)
            continue;
        for (int i = 0; i < request->n_gpus; i++) {
            struct memory_gpu *gpu = &request->gpus[i];
            if (strcmp(hw.gpu.name, gpu->gpu.name) != 0)
                continue;
            gpu->nccl_bytes = gpu->nccl_bytes > 0 ? gpu->nccl_bytes : hw.node.nccl_bytes.value;
            chosen = request->gpu_path && takes(&hw, gpus);
            request->job.point.hw = chosen ? hw : request->job.point.hw;
        }
    }
    globfree(&found);
    return chosen;
}

static enum status choose_cluster(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct hw *hw = &request->job.point.hw, h100;
    const char *path = files_own(arena, "topologies/clusters/h100-8x400g.yaml");
    if (hw_load(&h100, path, arena, diag) != STATUS_OK)
        return diag->worst;
    bool known = look_at_clusters(request, arena);
    if (!known)
        *hw = h100;
    for (int i = 0; i < request->n_gpus; i++)
        if (!(request->gpus[i].nccl_bytes > 0))
            request->gpus[i].nccl_bytes = h100.node.nccl_bytes.value;
    const struct hw_gpu *gpu = &request->gpus[0].gpu;
    if (request->any_math) {
        hw->gpu.name = gpu->name;
        hw->gpu.hbm_capacity = gpu->hbm_capacity;
        hw->gpu.context_bytes = gpu->context_bytes;
    } else if (request->gpu_path) { /* a file of one's own may have a known name, and --set another memory */
        hw->gpu = *gpu;
        hw->node.nccl_bytes.value = request->gpus[0].nccl_bytes;
    }
    hw_derive(hw);
    return STATUS_OK;
}

enum status memory_load_gpus(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct hw_gpu *gpu = &request->job.point.hw.gpu;
    enum status status = request->cluster_path ? load_cluster(request, arena, diag) : STATUS_OK;
    if (status == STATUS_OK && !request->cluster_path)
        status = load_known_gpus(request, arena, diag);
    if (status == STATUS_OK && !request->cluster_path)
        status = choose_cluster(request, arena, diag);
    if (request->job.dtype == MEMORY_FP16) /* whose bytes are those of bf16, by which its plan goes */
        gpu->gemm[DTYPE_BF16] = gpu->gemm[DTYPE_FP16];
    return status;
}
