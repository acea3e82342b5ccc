/* Correlations of fitted parameters, from their file.
 *
 * Each fit lists its parameters by key and id, and row i of the lower triangle of their correlation
 * matrix. The rows are put into a full n x n array with ones on the diagonal and factorised in
 * place (Cholesky), because draws need the factor and not the matrix. A matrix that is not positive
 * definite is refused here: no set of errors has such correlations, and a typing error in one cell
 * shows that way. All mistakes of the file are collected in one diag before it fails. */
#include "hw/draw.h"
#include "hw/table.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>

struct fits_file {
    struct config_node fits;
};
static const struct config_field file_fields[] = {
    {CONFIG_FIELD("fits", FIELD_NODE, struct fits_file, fits, "A list of fits."), .required = true},
};
static const struct config_table file_table = CONFIG_TABLE("correlations of fits", file_fields);

struct fit_entry {
    struct config_node parameters, correlations;
};
static const struct config_field entry_fields[] = {
    {CONFIG_FIELD(
         "parameters", FIELD_NODE, struct fit_entry, parameters, "A list of key and id of each."),
        .required = true},
    {CONFIG_FIELD("correlations", FIELD_NODE, struct fit_entry, correlations,
         "Lists of the correlations below the diagonal."),
        .required = true},
};
static const struct config_table entry_table = CONFIG_TABLE("a fit", entry_fields);

struct name_entry {
    const char *key, *fit;
};
static const struct config_field name_fields[] = {
    {CONFIG_FIELD("key", FIELD_STRING, struct name_entry, key, "Of the number in its file."),
        .required = true},
    {CONFIG_FIELD("fit", FIELD_STRING, struct name_entry, fit, "Its id there."), .required = true},
};
static const struct config_table name_table = CONFIG_TABLE("a fitted parameter", name_fields);

/* Row i of the correlations: i numbers. */
static void fits_read_row(struct hw_fit *fit, int i, struct config_node row, struct diag *diag)
{
    char why[160];
    if (config_kind(row) != CONFIG_SEQUENCE || config_count(row) != i)
        diag_input(diag, config_pos(row),
            "%d numbers here; %d are wanted: with each parameter before '%s'", config_count(row), i,
            fit->keys[i]);
    for (int j = 0; j < i && j < config_count(row); j++) {
        struct config_node cell = config_item(row, j);
        if (!quantity_parse(
                &fit->factor[i * fit->n + j], config_text(cell), DIM_NONE, why, sizeof why))
            diag_input(diag, config_pos(cell), "%s", why);
    }
}

static void factorise(struct hw_fit *fit, struct source_pos at, struct diag *diag)
{
    gsl_matrix_view matrix = gsl_matrix_view_array(fit->factor, (size_t)fit->n, (size_t)fit->n);
    if (gsl_linalg_cholesky_decomp1(&matrix.matrix) != GSL_SUCCESS)
        diag_input(diag, at, "these correlations cannot be: their matrix is not positive definite");
}

static void read_fit(
    struct hw_fit *fit, struct config_node node, struct arena *arena, struct diag *diag)
{
    struct fit_entry entry = {0};
    if (config_read(node, &entry_table, &entry, arena, NULL, diag) != STATUS_OK)
        return;
    int before = diag->n_errors;
    fit->n = config_count(entry.parameters);
    fit->keys = ARENA_ARRAY(arena, const char *, fit->n);
    fit->ids = ARENA_ARRAY(arena, const char *, fit->n);
    fit->factor = ARENA_ARRAY(arena, double, fit->n * fit->n);
    if (fit->n == 0 || config_count(entry.correlations) != fit->n - 1)
        diag_input(diag, config_pos(entry.correlations),
            "%d lists for %d parameters; one less than those is wanted",
            config_count(entry.correlations), fit->n);
    for (int i = 0; i < fit->n; i++) {
        struct name_entry name = {"", ""};
        config_read(config_item(entry.parameters, i), &name_table, &name, arena, NULL, diag);
        fit->keys[i] = name.key;
        fit->ids[i] = name.fit;
        fit->factor[i * fit->n + i] = 1;
    }
    for (int i = 1; i < fit->n && diag->n_errors == before; i++)
        fits_read_row(fit, i, config_item(entry.correlations, i - 1), diag);
    if (diag->n_errors == before)
        factorise(fit, config_pos(entry.correlations), diag);
}

enum status hw_fits_load(
    struct hw_fits *out, const char *path, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    struct fits_file file = {0};
    struct diag own = DIAG_INIT;
    *out = (struct hw_fits){0};
    if (config_load(&doc, path, &own) == STATUS_OK)
        config_read(config_root(doc), &file_table, &file, arena, NULL, &own);
    if (own.n_errors == 0) {
        out->n = config_count(file.fits);
        out->list = ARENA_ARRAY(arena, struct hw_fit, out->n);
        for (int i = 0; i < out->n; i++)
            read_fit(&out->list[i], config_item(file.fits, i), arena, &own);
    }
    config_free(doc);
    enum status status = own.worst;
    diag_merge(diag, &own);
    return status;
}
