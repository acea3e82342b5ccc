/* What a fit to a cluster's own logs says, and its files. */
#include "calibrate/logs_fit.h"

#include "base/files.h"
#include "calibrate/fit_files.h"

#include <math.h>
#include <string.h>

static void print_errors(FILE *out, const char *sizes, struct fit_error before, struct fit_error after)
{
    if (before.n > 0)
        fprintf(out, "  median error over %d size%s %s: %.1f %% by the files, %.1f %% fitted\n", before.n,
            plural(before.n), sizes, 100 * before.median, 100 * after.median);
}

static void print_cases(FILE *out, const struct logs_fit *fit)
{
    for (int i = 0; i < fit->nccl.cases.n; i++) {
        const struct nccl_case *which = &fit->nccl.cases.at[i];
        fprintf(out, "%s: %s, %d ranks on %d node%s\n", which->source, coll_kind_names[which->kind], which->ranks,
            which->nodes, plural(which->nodes));
        struct logs_error before = fit->before.at[i], after = logs_case_error(fit, i);
        print_errors(out, "of 1 MiB and more", before.large, after.large);
        print_errors(out, "below 64 KiB", before.small, after.small);
    }
}

/* The last word of the source: node or cluster. */
static const char *whose(const char *source)
{
    const char *space = strrchr(source, ' ');
    return space ? space + 1 : source;
}

/* A warning beside a fitted value: it lies at the end of the range that a file may state (fit_files_rounded()), or so
 * far from the file's value that the fit may have found another minimum than the cluster's. */
static const char *remark(const struct quantity *filed, const struct quantity *q, const struct config_field *field)
{
    static const double far = 3; /* assumed: machines of one kind differ by less */
    bool inside = q->value > field->min && q->value < field->max;
    bool reach = field->dimension != DIM_SECONDS; /* latencies of networks differ by more */
    if (inside && reach && (q->value > far * filed->value || far * q->value < filed->value))
        return "far from the file's: is the topology the right one, and no other job beside it?";
    if (inside)
        return "";
    if (field->dimension != DIM_FRACTION)
        return "the end of what a file may say: are these logs of a healthy cluster?";
    return q->value < field->max ? "the least of it: is the bandwidth that it is a share of the right one?"
                                 : "all of it: is the bandwidth that it is a share of the right one?";
}

static void print_numbers(FILE *out, const struct config_table *table, const void *filed, const void *fitted)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const struct quantity *was = (const void *)((const char *)filed + field->offset),
                              *is = (const void *)((const char *)fitted + field->offset);
        if (field->type != FIELD_SOURCED || was->source == is->source)
            continue;
        fit_print_number(out, whose(is->source), field->key, *was, *is, field->dimension, remark(was, is, field));
    }
}

void logs_fit_print(FILE *out, const struct logs_fit *fit)
{
    print_cases(out, fit);
    fputc('\n', out);
    fit_print_head(out, "numbers");
    print_numbers(out, &hw_node_table, &fit->filed.node, &fit->fitted.node);
    print_numbers(out, &hw_cluster_table, &fit->filed.cluster, &fit->fitted.cluster);
    for (int i = 0; i < fit->kept.n; i++)
        fprintf(out, "%s %.*s (%s)",
            i ? "," : "as filed, because these logs do not determine them:", (int)strcspn(fit->kept.at[i], ":"),
            fit->kept.at[i], whose(fit->kept.at[i]));
    if (fit->kept.n > 0)
        fputc('\n', out);
}

enum status logs_fit_write(const struct logs_fit *fit, const struct logs_request *request, const char *path,
    struct arena *arena, struct diag *diag)
{
    struct hw now = fit->fitted;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    int stem = (int)(dot && dot > name ? dot - path : (long)strlen(path));
    const char *node = arena_printf(arena, "%.*s-node.yaml", stem, path);
    now.node.gpu_path = files_name_from(arena, node, fit->filed.node.gpu_path);
    now.cluster.node_path = files_name_from(arena, path, fit->filed.cluster.node_path);
    if (now.cluster.extends)
        now.cluster.extends = files_name_from(arena, path, now.cluster.extends);
    if (now.node.extends)
        now.node.extends = files_name_from(arena, node, now.node.extends);
    if (fit->n_node > 0)
        now.cluster.node_path = node + (name - path);
    enum status status = fit_files_write(path, request->topology, &hw_cluster_table, &now.cluster, diag);
    if (fit->n_node > 0 && status == STATUS_OK)
        status = fit_files_write(node, fit->filed.cluster.node_path, &hw_node_table, &now.node, diag);
    return status;
}
