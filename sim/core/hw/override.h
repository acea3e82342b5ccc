/* Numbers and choices of a cluster, its node and its GPU that a scenario, --set or a sweep gives in
 * place of the files': cluster.KEY, cluster.node.KEY and gpu.KEY, with the keys of those files
 * ("cluster.nccl_channels", "cluster.node.nic_bandwidth", "gpu.gemm.bf16.peak"). A number may be a
 * bare value, or have kind and source as in a file.
 *
 * What is given is a struct hw of which only that is set: config_give_nothing() made it
 * (FIELD_OVERRIDES). What holds between numbers, which the tables cannot say, is checked again with
 * the given ones; errors are reported where they were given. Samples (scenario/sample.h) do not
 * vary what is given: it is a choice, not an estimate. */
#ifndef FLOPCAST_HW_OVERRIDE_H
#define FLOPCAST_HW_OVERRIDE_H

#include "config/config.h"
#include "hw/hw.h"

/* Of a struct hw: sections "cluster" and "gpu". For what has no scenario around it. */
extern const struct config_table hw_override_table;

/* A file that is read, and where its keys stand; the list is to be freed with vec_free. */
struct hw_source {
    const char *path;
    struct config_origins keys;
    /* Optional: what was given in place of the file's numbers, where its paths begin with prefix.
     */
    const struct config_origins *given;
    const char *prefix;
};

/* The files of a cluster. */
struct hw_sources {
    struct hw_source cluster, node, gpu;
};
void hw_sources_free(struct hw_sources *sources);

/* hw_load() and where everything stands; sources is to be freed also after an error. */
enum status hw_load_from(struct hw *out, struct hw_sources *sources, const char *cluster_path,
    struct arena *arena, struct diag *diag);

enum status hw_load_gpu_from(struct hw_gpu *out, struct hw_source *source, const char *path,
    struct arena *arena, struct diag *diag);
enum status hw_load_node_from(struct hw_node *out, struct hw_source *source, const char *path,
    struct arena *arena, struct diag *diag);

/* The path of the file that a document of this kind extends into *out; NULL: it extends none. */
enum status hw_extended(const char **out, enum files_kind kind, struct config_node root,
    struct arena *arena, struct diag *diag);

struct hw hw_nothing_given(void);
bool hw_is_given(const struct hw *given);

/* Put what is given into hw, or into a GPU. Where cluster.node.gpus is given and hosts is not,
 * hosts are as large as they were: of a rack of 18 trays with 72 GPUs, a node of 64 has 16. */
void hw_override(struct hw *hw, const struct hw *given);
void hw_override_gpu(struct hw_gpu *gpu, const struct hw *given);

/* Checks hw with what was put in. origins: of what is given, by the paths above. */
enum status hw_check_given(const struct hw *hw, const struct hw_sources *sources,
    const struct config_origins *origins, struct diag *diag);

/* "cluster.node.nic_bandwidth" of a path that begins with node, and "gpu.sms" of cluster.gpu or
 * cluster.node.gpu; other paths as they are. */
const char *hw_override_path(const char *path, struct arena *arena);

#endif
