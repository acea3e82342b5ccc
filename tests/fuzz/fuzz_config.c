/* Any bytes as a document; what parses is read into a struct with every type of field, set again field by field and
 * written as JSON. What must hold: no crash, no leak, a message for every refusal, and the JSON reads back. */
#include "../config/sample.h"

#include <string.h>

static int depth(struct config_node node)
{
    int deepest = 0;
    for (int i = 0; i < config_count(node); i++) {
        int inner = depth(config_item(node, i));
        deepest = inner > deepest ? inner : deepest;
    }
    return config_kind(node) == CONFIG_SEQUENCE || config_kind(node) == CONFIG_MAPPING ? deepest + 1 : 0;
}

static void check_reads_back(const struct sample *sample, const struct config_origins *origins)
{
    char *json = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&json, &n);
    config_write_json(out, &sample_table, sample, origins);
    fclose(out);
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    /* A node is written two levels below the root of the JSON. */
    if (depth(sample->sweep) + 2 <= CONFIG_MAX_DEPTH)
        BUG_IF(config_parse(&doc, "json", json, n, &diag) != STATUS_OK, "%s\n%s", diag.text, json);
    config_free(doc);
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    enum status status = config_parse(&doc, "fuzz/input", (const char *)data, size, &diag);
    BUG_IF((status == STATUS_OK) != (doc && diag.n_errors == 0), "status %d, %d errors", status, diag.n_errors);
    if (!doc)
        return 0;
    struct arena arena = ARENA_INIT;
    struct config_origins origins = {0};
    struct sample sample = {0};
    struct config_node root = config_root(doc);
    status = config_read(root, &sample_table, &sample, &arena, &origins, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status, diag.n_errors);
    for (int i = 0; config_kind(root) == CONFIG_MAPPING && i < config_count(root); i++)
        config_assign(config_text(config_key(root, i)), config_pos(root), config_item(root, i), &sample_table, &sample,
            &arena, &origins, &diag);
    check_reads_back(&sample, &origins);
    vec_free(&origins.list);
    arena_release(&arena);
    config_free(doc);
    return 0;
}
