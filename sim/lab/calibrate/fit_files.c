#include "calibrate/fit_files.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double calibrate_fit_files_rounded(double value, int digits)
{
    char text[32];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return strtod(text, NULL);
}

struct quantity fit_files_rounded(struct quantity found, const struct config_field *field)
{
    found.value = fmin(fmax(calibrate_fit_files_rounded(found.value, 4), field->min), field->max);
    found.std_error = calibrate_fit_files_rounded(found.std_error, 2);
    return found;
}

int fit_files_take(const struct config_table *table, void *now, const void *found,
    const char *source, const char *fit)
{
    int taken = 0;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        void *to = (char *)now + field->offset;
        const void *from = (const char *)found + field->offset;
        if (field->type == FIELD_SECTION)
            taken += fit_files_take(field->section, to, from, source, fit);
        if (field->type != FIELD_SOURCED)
            continue;
        struct quantity *was = to, is = *(const struct quantity *)from;
        if ((is.kind != QUANTITY_MEASURED && is.kind != QUANTITY_FITTED) ||
            is.source == was->source)
            continue;
        *was = fit_files_rounded(is, field);
        was->source = source;
        was->fit = is.kind == QUANTITY_FITTED ? fit : NULL;
        taken++;
    }
    return taken;
}

struct text_file {
    FILE *memory;
    char *text;
    size_t n;
};

static void fit_files_begin(struct text_file *text)
{
    text->memory = xmemstream(&text->text, &text->n);
}

static enum status fit_files_end(
    struct text_file *text, enum status status, const char *path, struct diag *diag)
{
    fclose(text->memory);
    FILE *out = status == STATUS_OK ? fopen(path, "w") : NULL;
    bool ok = out && fwrite(text->text, 1, text->n, out) == text->n;
    ok = out && fclose(out) == 0 && ok;
    if (status == STATUS_OK && !ok)
        status =
            diag_io(diag, (struct source_pos){.file = path}, "cannot write: %s", strerror(errno));
    free(text->text);
    return status;
}

enum status fit_files_write(const char *path, const char *from, const struct config_table *table,
    const void *now, struct diag *diag)
{
    struct text_file text;
    fit_files_begin(&text);
    return fit_files_end(&text, hw_write_changed(text.memory, from, table, now, diag), path, diag);
}

enum status fit_files_write_changes(const char *path, const char *from,
    const struct config_change *changes, int n, struct diag *diag)
{
    struct text_file text;
    fit_files_begin(&text);
    return fit_files_end(
        &text, config_write_changed(text.memory, from, changes, n, diag), path, diag);
}
