/* What a GPU kernel is, by its name.
 *
 * The texts of scenarios/import/kernels.yaml are searched from the top, and the first that is in
 * the name decides, so their order is part of the rule: copies by the driver and fused kernels of
 * torch.compile first, tables of embeddings before optimizers, attention before softmax, norms and
 * copies before products, and general words ("elementwise", "bias") last. A name that no text is in
 * is TRACE_OTHER. NCCL's kernels are found by the beginning of the name and give the kind of
 * collective, where it says one. */
#include "config/config.h"
#include "foreign/trace.h"

#include <string.h>

static enum status read_class(enum kernel_kind *out, struct config_node class, struct diag *diag)
{
    for (int k = 0; k < KERNEL_KIND_COUNT; k++)
        if (strcmp(config_text(class), kernel_kind_names[k]) == 0) {
            *out = (enum kernel_kind)k;
            return STATUS_OK;
        }
    return diag_input(diag, config_pos(class),
        "'%.40s' is no class of kernels; gemm, attention, copy, ...", config_text(class));
}

enum status trace_names_load(struct trace *trace, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    struct diag own = DIAG_INIT;
    if (config_load(&doc, files_own(arena, "scenarios/import/kernels.yaml"), &own) == STATUS_OK) {
        struct config_node names = config_find(config_root(doc), "kernels");
        struct trace_kernel_name *list =
            ARENA_ARRAY(arena, struct trace_kernel_name, config_count(names));
        for (int i = 0; i < config_count(names); i++) {
            list[i].text = arena_strdup(arena, config_text(config_key(names, i)));
            read_class(&list[i].kind, config_item(names, i), &own);
        }
        trace->kernel_names = list;
        trace->n_kernel_names = config_count(names);
    }
    config_free(doc);
    enum status status = own.worst;
    diag_merge(diag, &own);
    return status;
}

/* "ncclDevKernel_AllGather_RING_LL(...)", "ncclKernel_AllReduce_RING_LL_Sum_half(...)". "Reduce" is
 * the end of AllReduce, so it comes last. RCCL's "ncclDevKernel_Generic(...)" does all of them, and
 * MSCCL's say no kind. */
static int8_t nccl_kind(const char *name)
{
    static const struct {
        const char *text;
        enum coll_kind kind;
    } kinds[] = {{"_AllReduce", COLL_ALL_REDUCE}, {"_AllGather", COLL_ALL_GATHER},
        {"_ReduceScatter", COLL_REDUCE_SCATTER}, {"_Broadcast", COLL_BROADCAST},
        {"_SendRecv", COLL_SEND_RECV}, {"_Reduce", COLL_REDUCE}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(name, kinds[i].text))
            return (int8_t)kinds[i].kind;
    return TRACE_UNKNOWN_KIND;
}

/* With what a template's name has before it. */
static bool is_nccl(const char *name)
{
    static const char *const prefixes[] = {"nccl", "rccl", "msccl"};
    name += strncmp(name, "void ", strlen("void ")) == 0 ? strlen("void ") : 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

int trace_classify(const struct trace *trace, const char *name, int8_t *kind)
{
    *kind = TRACE_UNKNOWN_KIND;
    if (is_nccl(name)) {
        *kind = nccl_kind(name);
        return TRACE_COLLECTIVE;
    }
    for (int i = 0; i < trace->n_kernel_names; i++)
        if (strcasestr(name, trace->kernel_names[i].text))
            return (int)trace->kernel_names[i].kind;
    return TRACE_OTHER;
}
