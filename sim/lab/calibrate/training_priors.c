/* Priors of the fit to training runs, from their file.
 *
 * The table of a prior is made here: `fit`, and those fields of a GPU file that the fit varies,
 * read into struct prior. A prior becomes the expected value of every parameter with its key and
 * id. Its weight is ROW_ERROR over the prior's relative error as varied, so it counts as one row
 * that is off by ROW_ERROR when the parameter is one standard error away. A prior without a
 * standard error is refused; one that no parameter has is no mistake. */
#include "calibrate/training_fit.h"
#include "hw/override.h"

#include <math.h>
#include <string.h>

struct priors_file {
    struct config_node priors;
};
static const struct config_field file_fields[] = {
    {.key = "priors",
        .type = FIELD_NODE,
        .offset = offsetof(struct priors_file, priors),
        .help = "A list of fitted numbers and what direct measurements say of them.",
        .required = true},
};
static const struct config_table file_table = {.what = "priors of a fit",
    .fields = file_fields,
    .n_fields = sizeof file_fields / sizeof *file_fields};

struct prior {
    const char *fit;
    struct hw_gpu says; /* numbers that the fit varies; the others are unset */
};

/* `fit`, and those numbers of a GPU file that the fit varies. */
static struct config_table prior_table(struct arena *arena)
{
    struct config_field *fields =
        ARENA_ARRAY(arena, struct config_field, hw_gpu_table.n_fields + 1);
    int n = 0;
    fields[n++] = (struct config_field){.key = "fit",
        .type = FIELD_STRING,
        .offset = offsetof(struct prior, fit),
        .help = "The id of the fitted number in its files.",
        .required = true};
    for (int i = 0; i < hw_gpu_table.n_fields; i++) {
        if (!training_fit_has(hw_gpu_table.fields[i].key))
            continue;
        fields[n] = hw_gpu_table.fields[i];
        fields[n].offset += offsetof(struct prior, says);
        fields[n++].required = false;
    }
    return (struct config_table){.what = "a prior", .fields = fields, .n_fields = n};
}

static const struct quantity *training_priors_number_of(
    const struct prior *prior, const struct config_field *field)
{
    return (const struct quantity *)(const void *)((const unsigned char *)prior + field->offset);
}

static const double ROW_ERROR = 0.02; /* see the header */

/* As varied: d log(x / (1 - x)) = dx / (x (1 - x)). */
static double relative_error(const struct fit_parameter *p, struct quantity prior)
{
    double relative = prior.std_error / prior.value;
    return p->scale == FIT_LOGIT ? relative / (1 - prior.value) : relative;
}

static void training_priors_take(struct training_fit *fit, const struct prior *prior,
    const struct config_field *field, struct source_pos at, struct diag *diag)
{
    struct quantity q = *training_priors_number_of(prior, field);
    if (!quantity_is_set(q))
        return;
    if (!(q.std_error > 0 && q.value > 0))
        diag_input(diag, at,
            "the prior of '%s' has no std_error; without one it would be no estimate", field->key);
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        struct fit_parameter *p = &fit->fit.parameters.at[i];
        if (strcmp(p->key, field->key) != 0 || strcmp(p->id, prior->fit) != 0)
            continue;
        fit->about.at[i].prior = q;
        p->expected = q.value;
        p->weight = ROW_ERROR / relative_error(p, q);
    }
}

enum status training_fit_priors(
    struct training_fit *fit, const char *path, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    struct priors_file file = {0};
    struct config_table table = prior_table(arena);
    struct diag own = DIAG_INIT;
    if (config_load(&doc, path, &own) == STATUS_OK)
        config_read(config_root(doc), &file_table, &file, arena, NULL, &own);
    for (int i = 0; own.n_errors == 0 && i < config_count(file.priors); i++) {
        struct config_node node = config_item(file.priors, i);
        struct prior prior = {0};
        if (config_read(node, &table, &prior, arena, NULL, &own) == STATUS_OK)
            for (int f = 1; f < table.n_fields; f++) /* behind `fit` */
                training_priors_take(fit, &prior, &table.fields[f], config_pos(node), &own);
    }
    config_free(doc);
    enum status status = own.worst;
    diag_merge(diag, &own);
    return status;
}
