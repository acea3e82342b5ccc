/* A cluster's own numbers of NCCL by its own logs of nccl-tests.
 *
 * Order: logs become cases of nccl_fit.h, one a collective, group and forced algorithm of a log;
 * explain_case() says of each whether it agrees as another algorithm than NCCL's choice, and forces
 * that where the choice needs switches that may be off; errors by the filed numbers are kept; then
 * it is decided what stays as filed, and the rest is fitted. Which numbers are varied is written
 * into the system itself: set_system() copies the filed one and makes the varied numbers kind
 * fitted, with a source that ends in "node" or "cluster" and is the id of the parameter; whatever
 * else was fitted becomes assumed. So nccl_each_fitted() visits the varied numbers only.
 *
 * What is subtle: sizes of one run share what that run had, so errors are widened by sizes a table.
 * What is stored and printed are predictions by the rounded, clamped numbers of the files. */
#include "calibrate/logs_fit.h"

#include "base/files.h"
#include "calibrate/fit_files.h"
#include "calibrate/nccl_check.h"
#include "fabric/isolated.h"

#include <math.h>
#include <string.h>

/* Assumed: where a latency of 0 starts, whose logarithm would be none. */
static const double FIRST_LATENCY = 1e-6;
/* The start is that of another machine: not near enough to weigh sizes by how far they are from it.
 */
static const double NOT_NEAR = 1.01;
/* Assumed: a standard error of a logarithm from which on the filed number is the better guess. */
static const double LOGS_UNDETERMINED = 0.5;
enum { SIZES_A_NUMBER = 2 }; /* assumed: with fewer a fit follows their noise */

/* ---- which numbers ---- */

static bool says_what_nccl_reaches(const struct config_field *field)
{
    bool ours = strncmp(field->key, "nccl_", 5) == 0 || strncmp(field->key, "nvls_", 5) == 0;
    return ours && field->type == FIELD_SOURCED &&
           (field->dimension == DIM_FRACTION || field->dimension == DIM_SECONDS ||
               field->dimension == DIM_BYTES_PER_S);
}

static bool logs_fit_is_kept(const struct logs_fit *fit, const char *label)
{
    for (int i = 0; i < fit->kept.n; i++)
        if (strcmp(fit->kept.at[i], label) == 0)
            return true;
    return false;
}

static struct quantity *logs_fit_quantity_of(const struct config_field *field, void *from)
{
    return (struct quantity *)(void *)((char *)from + field->offset);
}

/* The numbers that are varied, and no others, become of kind fitted; their source says whether they
 * are the node's or the cluster's. */
static void logs_fit_choose(struct logs_fit *fit, const struct config_table *table, void *from,
    const char *source, struct arena *arena)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        if (field->type != FIELD_SOURCED)
            continue;
        struct quantity *q = logs_fit_quantity_of(field, from);
        bool varied = quantity_is_set(*q) && says_what_nccl_reaches(field) &&
                      !logs_fit_is_kept(fit, arena_printf(arena, "%s: %s", field->key, source));
        if (varied && !(q->value > 0))
            q->value = FIRST_LATENCY;
        if (varied) {
            q->source = source;
            q->fit = NULL;
        }
        if (varied || q->kind == QUANTITY_FITTED)
            q->kind = varied ? QUANTITY_FITTED : QUANTITY_ASSUMED;
    }
}

static void set_system(
    struct logs_fit *fit, const char *node, const char *cluster, struct arena *arena)
{
    struct hw *system = &fit->nccl.systems.at[0];
    *system = fit->filed;
    logs_fit_choose(fit, &hw_node_table, &system->node, node, arena);
    logs_fit_choose(fit, &hw_cluster_table, &system->cluster, cluster, arena);
    fit->nccl.fit.parameters.n = 0;
    nccl_each_fitted(system, nccl_add_parameter, &fit->nccl);
}

static void logs_fit_keep(
    struct logs_fit *fit, const char *key, const char *source, struct arena *arena)
{
    vec_push(&fit->kept, arena_printf(arena, "%s: %s", key, source));
}

/* ---- the logs ---- */

struct reading { /* of one log */
    struct logs_fit *fit;
    const char *log, *topology, *gpu;
    int channels; /* across nodes, that NCCL says; 0: it does not */
    int first_case;
    struct arena *arena;
    struct diag *diag;
};

static bool continues(const struct nccl_case *before, const struct nccl_case *now)
{
    return before->kind == now->kind && before->ranks == now->ranks &&
           before->nodes == now->nodes && before->force.algorithm == now->force.algorithm &&
           before->force.protocol == now->force.protocol;
}

/* The log's case that the row belongs to; NULL: it cannot be predicted. */
static struct nccl_case *case_of(const struct reading *r, const struct collective_measurement *row)
{
    struct logs_fit *fit = r->fit;
    struct source_pos at = {.file = r->log};
    int kind = fit_find_name(coll_kind_names, row->collective);
    if (kind < 0) {
        diag_input(r->diag, at, "%s is not modelled; leave it out", row->collective);
        return NULL;
    }
    const struct nccl_case now = {.source = r->log,
        .gpu = r->gpu,
        .note = "",
        .topology = r->topology,
        .family = "",
        .hardware = "",
        .kind = (enum coll_kind)kind,
        .nodes = nccl_nodes(row->ranks, row->nodes, &fit->filed),
        .ranks = row->ranks,
        .force = {fit_find_name(coll_algorithm_names, row->algorithm),
            fit_find_name(coll_protocol_names, row->protocol)},
        .channels = r->channels,
        .version = COLL_ANY,
        .use = NCCL_FIT};
    for (int i = r->first_case; i < fit->nccl.cases.n; i++)
        if (continues(&fit->nccl.cases.at[i], &now))
            return &fit->nccl.cases.at[i];
    struct arena scratch = ARENA_INIT;
    bool holds =
        isolated_new(&fit->filed, now.ranks, now.nodes, NULL, at, &scratch, r->diag) != NULL;
    arena_release(&scratch);
    if (!holds)
        return NULL;
    nccl_warn_of_trays(r->log, now.ranks, now.nodes, &fit->filed, r->diag);
    vec_push(&fit->nccl.cases, now);
    return &fit->nccl.cases.at[fit->nccl.cases.n - 1];
}

/* Of NCCL's own words, or what NCCL_MIN_CTAS makes of the cluster's; 0: as it is filed. */
static int channels_said(const struct nccl_settings *said, const struct hw *filed)
{
    if (said->channels > 0)
        return said->channels_differ ? 0 : said->channels;
    return said->min_channels > coll_channels(true, filed) ? said->min_channels : 0;
}

static enum status read_log(struct reading *r, const struct nccl_options *options)
{
    struct nccl_log read = {0};
    enum status status = nccl_load(&read, r->log, options, r->arena, r->diag);
    r->gpu = read.about.gpu ? read.about.gpu : "";
    r->channels = channels_said(&read.said, &r->fit->filed);
    for (int i = 0; i < read.rows.n && status == STATUS_OK; i++) {
        const struct collective_measurement *row = &read.rows.at[i];
        struct nccl_case *which = case_of(r, row);
        double time_s = row->out_of_place_s > 0 ? row->out_of_place_s : row->in_place_s;
        if (which)
            vec_push(&which->points,
                (struct nccl_point){.bytes = (double)row->bytes, .measured_s = time_s});
        status = which ? STATUS_OK : STATUS_INPUT;
    }
    if (status == STATUS_OK && *r->gpu && !hw_same_gpu(r->gpu, &r->fit->filed.gpu))
        diag_warn(r->diag, (struct source_pos){.file = r->log},
            "the log's GPUs are %s, the cluster's %s: is --topology the right one?", r->gpu,
            r->fit->filed.gpu.name);
    vec_free(&read.rows);
    return status;
}

/* ---- what explains them ---- */

static double logs_fit_error_as(
    const struct nccl_fit *fit, const struct nccl_case *which, int algorithm)
{
    struct nccl_case forced = *which;
    forced.force = (struct coll_force){algorithm, COLL_ANY};
    for (int i = 0; i < which->points.n; i++) {
        double bytes = which->points.at[i].bytes;
        if (bytes >= NCCL_LARGE_BYTES &&
            (int)nccl_case_cost(fit, &forced, bytes).algorithm != algorithm)
            return -1;
    }
    struct fit_error error = nccl_case_error(fit, &forced, NCCL_LARGE_BYTES, HUGE_VAL);
    return error.n > 0 ? error.median : -1;
}

/* Done by switches, which has to be on, and is off in many a container. */
static bool may_be_off(enum coll_algorithm algorithm)
{
    return algorithm == COLL_NVLS || algorithm == COLL_NVLS_TREE ||
           algorithm == COLL_COLLNET_DIRECT || algorithm == COLL_COLLNET_CHAIN;
}

/* A log that agrees with the files as another algorithm than NCCL's choice has two explanations,
 * and both are said. Where the choice may be off, it is fitted as the other one: to take it for the
 * choice would make the network slower for all algorithms. Elsewhere it is fitted as NCCL chooses,
 * since nothing but NCCL_ALGO makes it choose otherwise. */
static void explain_case(struct nccl_fit *fit, struct nccl_case *which, struct diag *diag)
{
    double errors[COLL_ALGORITHM_COUNT],
        chosen = nccl_case_error(fit, which, NCCL_LARGE_BYTES, HUGE_VAL).median;
    if (which->force.algorithm != COLL_ANY || which->points.n == 0)
        return;
    for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
        errors[a] = logs_fit_error_as(fit, which, a);
    int as = nccl_explaining(chosen, errors);
    if (as == COLL_ANY)
        return;
    const struct nccl_point *last = &which->points.at[which->points.n - 1];
    enum coll_algorithm chosen_one = nccl_case_cost(fit, which, last->bytes).algorithm;
    const char *choice = coll_algorithm_names[chosen_one];
    if (!may_be_off(chosen_one)) {
        diag_warn(diag, (struct source_pos){.file = which->source},
            "%s of %d ranks agrees with the files as %s within %.1f %%; fitted as NCCL's choice, "
            "%s at the largest size, of which the files are %.1f %% off. If NCCL_ALGO was set, put "
            "a line '# algo: %s' before the log",
            coll_kind_names[which->kind], which->ranks, coll_algorithm_names[as], 100 * errors[as],
            choice, 100 * chosen, coll_algorithm_names[as]);
        return;
    }
    diag_warn(diag, (struct source_pos){.file = which->source},
        "%s of %d ranks agrees as %s within %.1f %%, with NCCL's choice, %s at the largest size, "
        "it is %.1f %% off: fitted as %s. Is %s off there (NCCL_NVLS_ENABLE=0, NCCL_ALGO)? Then "
        "take nvls_tree_latency out of the cluster's file. If not, the network is slow: see "
        "`flopcast calibrate check`",
        coll_kind_names[which->kind], which->ranks, coll_algorithm_names[as], 100 * errors[as],
        choice, 100 * chosen, coll_algorithm_names[as], choice);
    which->force.algorithm = as;
}

/* ---- the fit ---- */

/* How much all sizes together depend on it: 0 is a singular direction. */
static double weight_of(struct nccl_fit *fit, struct quantity *q)
{
    static const double nudge = 1.01;
    double value = q->value, sum = 0;
    for (int i = 0; i < fit->cases.n; i++)
        for (int j = 0; j < fit->cases.at[i].points.n; j++) {
            double bytes = fit->cases.at[i].points.at[j].bytes;
            double before_s = nccl_case_predict_s(fit, &fit->cases.at[i], bytes);
            q->value = nudge * value;
            sum += fabs(log(nccl_case_predict_s(fit, &fit->cases.at[i], bytes) / before_s));
            q->value = value;
        }
    return sum;
}

struct lightest {
    struct logs_fit *fit;
    double weight;
    const char *key, *id; /* NULL: none yet */
};

static void logs_fit_weigh(
    void *self, const char *key, enum dimension dimension, struct quantity *q)
{
    (void)dimension;
    struct lightest *lightest = self;
    double weight = weight_of(&lightest->fit->nccl, q);
    if (!lightest->key || weight < lightest->weight)
        *lightest = (struct lightest){lightest->fit, weight, key, quantity_parameter(*q)};
}

/* The number whose logarithm has the largest error, when that is no knowledge; else NULL. */
static const struct fit_parameter *undetermined(const struct fit *fit)
{
    const struct fit_parameter *worst = NULL;
    double most = LOGS_UNDETERMINED;
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct fit_parameter *p = &fit->parameters.at[i];
        size_t at = (size_t)p->number;
        double error = p->number < 0 ? 0 : sqrt(fit->covariance[at * fit->n_free + at]);
        if (p->number >= 0 && !(error > 0 && isfinite(error))) /* a singular direction */
            error = HUGE_VAL;
        if (error >= most) {
            most = error;
            worst = p;
        }
    }
    return worst;
}

/* Leaves as many numbers varied as the sizes can determine: those on which the sizes depend most.
 */
static void keep_the_lightest(
    struct logs_fit *fit, const char *node, const char *cluster, struct arena *arena)
{
    int n_sizes = 0;
    for (int i = 0; i < fit->nccl.cases.n; i++)
        n_sizes += fit->nccl.cases.at[i].points.n;
    for (;;) {
        struct lightest lightest = {.fit = fit};
        set_system(fit, node, cluster, arena);
        nccl_each_fitted(&fit->nccl.systems.at[0], logs_fit_weigh, &lightest);
        if (!lightest.key ||
            (lightest.weight > 0 && SIZES_A_NUMBER * fit->nccl.fit.parameters.n <= n_sizes))
            return;
        logs_fit_keep(fit, lightest.key, lightest.id, arena);
    }
}

/* A slow network looks like slow links inside the node, too: only a log of one node says which it
 * is. */
static void keep_the_nodes(
    struct logs_fit *fit, const char *node, const char *cluster, struct arena *arena)
{
    for (int i = 0; i < fit->nccl.cases.n; i++)
        if (fit->nccl.cases.at[i].nodes == 1)
            return;
    set_system(fit, node, cluster, arena);
    for (int i = 0; i < fit->nccl.fit.parameters.n; i++)
        if (fit->nccl.fit.parameters.at[i].id == node)
            logs_fit_keep(fit, fit->nccl.fit.parameters.at[i].key, node, arena);
}

/* Ends: every round keeps one more number as filed, and without any the input is refused. The
 * list `kept` grows: the node's numbers without a log of one node, then the lightest while it
 * moves nothing or there are fewer than SIZES_A_NUMBER sizes a number, then, after each
 * solution, the one of largest error. */
static enum status calibrate_logs_fit_solve(struct logs_fit *fit, const char *node,
    const char *cluster, struct arena *arena, struct diag *diag)
{
    keep_the_nodes(fit, node, cluster, arena);
    keep_the_lightest(fit, node, cluster, arena);
    for (;;) {
        set_system(fit, node, cluster, arena);
        free(fit->nccl.fit.covariance);
        fit->nccl.fit.covariance = NULL;
        struct diag ignored = DIAG_INIT; /* what is not determined is no mistake of the logs' */
        enum status status = nccl_fit_solve(&fit->nccl, NOT_NEAR, &ignored);
        const struct fit_parameter *worst =
            fit->nccl.fit.covariance ? undetermined(&fit->nccl.fit) : NULL;
        if (fit->nccl.fit.parameters.n == 0)
            return diag_input(diag, (struct source_pos){.file = fit->nccl.cases.at[0].source},
                "these logs determine none of the files' numbers of NCCL; take more sizes "
                "(nccl-tests -b 8 -e 8G -f 2)");
        if (!worst)
            return status == STATUS_OK ? STATUS_OK : nccl_fit_solve(&fit->nccl, NOT_NEAR, diag);
        logs_fit_keep(fit, worst->key, worst->id, arena);
    }
}

/* Errors and what is stored are those of the files: rounded, and within what they may say. */
static void predict_as_filed(const struct config_table *table, void *system, const void *fitted)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        struct quantity *q = logs_fit_quantity_of(field, system);
        if (field->type == FIELD_SOURCED && q->kind == QUANTITY_FITTED)
            q->value =
                ((const struct quantity *)(const void *)((const char *)fitted + field->offset))
                    ->value;
    }
}

/* The sizes of a log are of one run, and what that run alone had is in all of them: errors are
 * those of as many observations as there are tables, not sizes (covariance of clusters, with one
 * residual a cluster). */
static void widen_errors(struct nccl_fit *fit)
{
    double n_sizes = 0;
    for (int i = 0; i < fit->cases.n; i++)
        n_sizes += fit->cases.at[i].points.n;
    double factor = n_sizes / fit->cases.n;
    for (size_t i = 0; i < fit->fit.n_free * fit->fit.n_free; i++)
        fit->fit.covariance[i] *= factor;
    for (int i = 0; i < fit->fit.parameters.n; i++)
        fit->fit.parameters.at[i].fitted.std_error *= sqrt(factor);
}

static void widen_quantity(
    void *self, const char *key, enum dimension dimension, struct quantity *q)
{
    (void)dimension;
    const struct fit_parameter *p = nccl_fit_find(self, key, quantity_parameter(*q));
    q->std_error = p->fitted.std_error;
}

/* What a fit may say and nobody should believe unseen. */
static void warn_of_few(const struct logs_fit *fit, struct diag *diag)
{
    static const double healthy =
        0.8; /* assumed; InfiniBand, RoCE and EFA reach 0.9 to 0.99 in topologies/fitted */
    const struct quantity *was = &fit->filed.cluster.nccl_efficiency,
                          *is = &fit->fitted.cluster.nccl_efficiency;
    struct source_pos at = {.file = fit->nccl.cases.at[0].source};
    int most = 0;
    for (int i = 0; i < fit->nccl.cases.n; i++)
        most = fit->nccl.cases.at[i].nodes > most ? fit->nccl.cases.at[i].nodes : most;
    if (is->source != was->source && is->value < healthy && was->value >= healthy)
        diag_warn(diag, at,
            "nccl_efficiency of the cluster becomes %.3g, where healthy networks reach 0.9 and "
            "more: every job on the fitted file is as slow. See `flopcast calibrate check` first "
            "for what may be wrong",
            is->value);
    if (most == 2)
        diag_warn(diag, at,
            "logs of two nodes only: from three on rings and trees cross the network in another "
            "way, which these do not show; add a log of four nodes or more");
}

struct logs_error logs_case_error(const struct logs_fit *fit, int i)
{
    const struct nccl_case *which = &fit->nccl.cases.at[i];
    return (struct logs_error){nccl_case_error(&fit->nccl, which, NCCL_LARGE_BYTES, HUGE_VAL),
        nccl_case_error(&fit->nccl, which, 0, NCCL_SMALL_BYTES)};
}

enum status logs_fit_solve(struct logs_fit *out, const struct logs_request *request,
    struct arena *arena, struct diag *diag)
{
    *out = (struct logs_fit){0};
    enum status status = hw_load(&out->filed, request->topology, arena, diag);
    if (status != STATUS_OK)
        return status;
    const char *slash = strrchr(request->topology, '/'),
               *file = slash ? slash + 1 : request->topology;
    const char *topology = arena_printf(arena, "%.*s", (int)strcspn(file, "."), file);
    vec_push(&out->nccl.systems, out->filed);
    for (int i = 0; i < request->n_logs && status == STATUS_OK; i++) {
        struct reading reading = {
            out, request->logs[i], topology, "", 0, out->nccl.cases.n, arena, diag};
        status = read_log(&reading, &request->nccl);
    }
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < out->nccl.cases.n; i++)
        explain_case(&out->nccl, &out->nccl.cases.at[i], diag);
    for (int i = 0; i < out->nccl.cases.n; i++)
        vec_push(&out->before, logs_case_error(out, i));
    const char *name = strrchr(request->logs[0], '/'), *log = name ? name + 1 : request->logs[0];
    const char *more =
        request->n_logs > 1 ? arena_printf(arena, " and %d more", request->n_logs - 1) : "";
    const char *source = arena_printf(arena, "`flopcast calibrate fit nccl` on %s%s", log, more);
    const char *node = arena_printf(arena, "%s: node", source),
               *cluster = arena_printf(arena, "%s: cluster", source);
    status = calibrate_logs_fit_solve(out, node, cluster, arena, diag);
    if (status != STATUS_OK)
        return status;
    widen_errors(&out->nccl);
    nccl_each_fitted(&out->nccl.systems.at[0], widen_quantity, &out->nccl);
    out->fitted = out->filed;
    const struct hw *found = &out->nccl.systems.at[0];
    out->n_node = fit_files_take(&hw_node_table, &out->fitted.node, &found->node, node,
        arena_printf(arena, "nccl/%s/node", log));
    fit_files_take(&hw_cluster_table, &out->fitted.cluster, &found->cluster, cluster,
        arena_printf(arena, "nccl/%s/cluster", log));
    predict_as_filed(&hw_node_table, &out->nccl.systems.at[0].node, &out->fitted.node);
    predict_as_filed(&hw_cluster_table, &out->nccl.systems.at[0].cluster, &out->fitted.cluster);
    warn_of_few(out, diag);
    return STATUS_OK;
}

void logs_fit_free(struct logs_fit *fit)
{
    nccl_fit_free(&fit->nccl);
    vec_free(&fit->before);
    vec_free(&fit->kept);
}

/* ---- what a fit to a cluster's own logs says, and its files ---- */

static void logs_fit_print_errors(
    FILE *out, const char *sizes, struct fit_error before, struct fit_error after)
{
    if (before.n > 0)
        fprintf(out, "  median error over %d size%s %s: %.1f %% by the files, %.1f %% fitted\n",
            before.n, plural(before.n), sizes, 100 * before.median, 100 * after.median);
}

static void logs_fit_print_cases(FILE *out, const struct logs_fit *fit)
{
    for (int i = 0; i < fit->nccl.cases.n; i++) {
        const struct nccl_case *which = &fit->nccl.cases.at[i];
        fprintf(out, "%s: %s, %d ranks on %d node%s\n", which->source, coll_kind_names[which->kind],
            which->ranks, which->nodes, plural(which->nodes));
        struct logs_error before = fit->before.at[i], after = logs_case_error(fit, i);
        logs_fit_print_errors(out, "of 1 MiB and more", before.large, after.large);
        logs_fit_print_errors(out, "below 64 KiB", before.small, after.small);
    }
}

/* The last word of the source: node or cluster. */
static const char *whose(const char *source)
{
    const char *space = strrchr(source, ' ');
    return space ? space + 1 : source;
}

/* A warning beside a fitted value: it lies at the end of the range that a file may state
 * (fit_files_rounded()), or so far from the file's value that the fit may have found another
 * minimum than the cluster's. */
static const char *logs_fit_remark(
    const struct quantity *filed, const struct quantity *q, const struct config_field *field)
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
    return q->value < field->max
               ? "the least of it: is the bandwidth that it is a share of the right one?"
               : "all of it: is the bandwidth that it is a share of the right one?";
}

static void print_numbers(
    FILE *out, const struct config_table *table, const void *filed, const void *fitted)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const struct quantity *was = (const void *)((const char *)filed + field->offset),
                              *is = (const void *)((const char *)fitted + field->offset);
        if (field->type != FIELD_SOURCED || was->source == is->source)
            continue;
        fit_print_number(out, whose(is->source), field->key, *was, *is, field->dimension,
            logs_fit_remark(was, is, field));
    }
}

void logs_fit_print(FILE *out, const struct logs_fit *fit)
{
    logs_fit_print_cases(out, fit);
    fputc('\n', out);
    fit_print_head(out, "numbers");
    print_numbers(out, &hw_node_table, &fit->filed.node, &fit->fitted.node);
    print_numbers(out, &hw_cluster_table, &fit->filed.cluster, &fit->fitted.cluster);
    for (int i = 0; i < fit->kept.n; i++)
        fprintf(out, "%s %.*s (%s)",
            i ? "," : "as filed, because these logs do not determine them:",
            (int)strcspn(fit->kept.at[i], ":"), fit->kept.at[i], whose(fit->kept.at[i]));
    if (fit->kept.n > 0)
        fputc('\n', out);
}

/* Paths inside the copies are rewritten relative to where these lie. Without a number of the
 * node the copy of the cluster goes on naming the filed node. */
enum status logs_fit_write(const struct logs_fit *fit, const struct logs_request *request,
    const char *path, struct arena *arena, struct diag *diag)
{
    struct hw now = fit->fitted;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
               *dot = strrchr(name, '.');
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
    enum status status =
        fit_files_write(path, request->topology, &hw_cluster_table, &now.cluster, diag);
    if (fit->n_node > 0 && status == STATUS_OK)
        status =
            fit_files_write(node, fit->filed.cluster.node_path, &hw_node_table, &now.node, diag);
    return status;
}
