/* What must hold of every configuration that is read: no crash, no leak, a message for every
 * refusal; what is taken makes a scenario that is YAML. */
#ifndef FLOPCAST_TESTS_FUZZ_FOREIGN_H
#define FLOPCAST_TESTS_FUZZ_FOREIGN_H

#include "exchange/rules.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_yaml(const struct configuration *config, bool model)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (model)
        configuration_write_model(out, config, "x");
    else
        configuration_write(out, config, NULL);
    fclose(out);
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    BUG_IF(config_parse(&doc, "written", text, n, &diag) != STATUS_OK, "%s", diag.text);
    config_free(doc);
    free(text);
}

/* The frameworks' files of data are the same for every input: read each time they would take nine
 * tenths of it. */
static inline const struct configuration *fuzz_importers(void)
{
    static struct arena arena = ARENA_INIT;
    static struct configuration all = {.arena = &arena};
    struct diag diag = DIAG_INIT;
    for (int f = 0; f < CONFIGURATION_FORMAT_COUNT && !all.importers[f]; f++)
        BUG_IF(!importer_open(&all, (enum configuration_format)f, &diag), "%s", diag.text);
    return &all;
}

static inline int fuzz_foreign(enum configuration_format format, const uint8_t *data, size_t size)
{
    FILE *file = fopen("x.input", "wb");
    BUG_IF(
        !file || fwrite(data, 1, size, file) != size || fclose(file) != 0, "cannot write x.input");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct configuration config = {.arena = &arena};
    memcpy(config.importers, fuzz_importers()->importers, sizeof config.importers);
    enum status status = configuration_read(&config, "x.input", format, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    const struct configuration_given given = {.name = "x", .gpus = size % 2 ? 64 : 0};
    if (status == STATUS_OK && configuration_finish(&config, &given, &diag) == STATUS_OK) {
        check_yaml(&config, false);
        if (configuration_has_model(&config))
            check_yaml(&config, true);
    }
    configuration_free(&config);
    arena_release(&arena);
    return 0;
}

#endif
