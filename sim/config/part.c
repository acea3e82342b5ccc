/* Documents that leave out what others have: what is missing when all are read. */
#include "config/config.h"
#include "config/value.h"

#include <string.h>

enum status config_report_missing(
    const struct config_table *table, const struct config_field *field, struct source_pos at, struct diag *diag)
{
    const char *help = field->help ? field->help : "";
    return diag_input(
        diag, at, "%s needs the key '%s'%s%s%s", table->what, field->key, *help ? " (" : "", help, *help ? ")" : "");
}

/* Whether the path, or one inside it, was read. */
static bool was_read(const struct config_origins *origins, const char *path)
{
    size_t n = strlen(path);
    for (int i = 0; i < origins->list.n; i++) {
        const char *read = origins->list.at[i].path;
        if (strncmp(read, path, n) == 0 && (read[n] == '\0' || read[n] == '.'))
            return true;
    }
    return false;
}

struct wanted {
    const struct config_origins *origins;
    struct source_pos at;
    struct arena arena; /* paths */
    struct diag *diag;
};

static enum status check(struct wanted *wanted, const struct config_table *table, const char *prefix)
{
    enum status worst = STATUS_OK;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *path = arena_printf(&wanted->arena, "%s%s", prefix, field->key);
        bool read = was_read(wanted->origins, path);
        enum status status = STATUS_OK;
        if (field->required && !read)
            status = config_report_missing(table, field, wanted->at, wanted->diag);
        else if (field->type == FIELD_SECTION && read)
            status = check(wanted, field->section, arena_printf(&wanted->arena, "%s.", path));
        worst = status > worst ? status : worst;
    }
    return worst;
}

enum status config_check_required(
    const struct config_table *table, const struct config_origins *origins, struct source_pos at, struct diag *diag)
{
    struct wanted wanted = {.origins = origins, .at = at, .diag = diag};
    enum status status = check(&wanted, table, "");
    arena_release(&wanted.arena);
    return status;
}
