/* Any bytes as a document; what parses is read into a struct with every type of field, set again
 * field by field and written as JSON. What must hold: no crash, no leak, a message for every
 * refusal, and the JSON reads back. */
#include "../config/sample.h"

#include <string.h>

static int depth(struct config_node node)
{
    int deepest = 0;
    for (int i = 0; i < config_count(node); i++) {
        int inner = depth(config_item(node, i));
        deepest = inner > deepest ? inner : deepest;
    }
    return config_kind(node) == CONFIG_SEQUENCE || config_kind(node) == CONFIG_MAPPING ? deepest + 1
                                                                                       : 0;
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

/* Another value for the i-th key of the root: what is written is a document with the same keys, and
 * that value. */
static void check_changes(const struct config_doc *doc, const char *data, size_t size, int i)
{
    struct config_node root = config_root(doc);
    const char *key = config_text(config_key(root, i));
    if (strchr(key, '.')) /* which would be a path */
        return;
    char *text = NULL;
    size_t n = 0;
    struct config_doc *changed = NULL;
    struct diag diag = DIAG_INIT;
    FILE *out = open_memstream(&text, &n);
    enum status status = config_change_text(
        out, "f", data, size, &(struct config_change){key, "{value: 7, source: \"x\"}"}, 1, &diag);
    fclose(out);
    BUG_IF(status != STATUS_OK && !memchr(data, '\t', size), "%s", diag.text);
    if (status != STATUS_OK) {
        free(text);
        return;
    }
    BUG_IF(
        config_parse(&changed, "changed", text, n, &diag) != STATUS_OK, "%s\n%s", diag.text, text);
    struct config_node now = config_root(changed);
    BUG_IF(config_count(now) != config_count(root), "%d keys of %d", config_count(now),
        config_count(root));
    for (int k = 0; k < config_count(root); k++)
        BUG_IF(strcmp(config_text(config_key(now, k)), config_text(config_key(root, k))) != 0 ||
                   (k != i && strcmp(config_text(config_item(now, k)),
                                  config_text(config_item(root, k))) != 0),
            "pair %d is another", k);
    BUG_IF(
        strcmp(config_text(config_find(config_item(now, i), "value")), "7") != 0, "not the value");
    config_free(changed);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    enum status status = config_parse(&doc, "fuzz/input", (const char *)data, size, &diag);
    BUG_IF((status == STATUS_OK) != (doc && diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    if (!doc)
        return 0;
    struct arena arena = ARENA_INIT;
    struct config_origins origins = {0};
    struct sample sample = {0};
    struct config_node root = config_root(doc);
    status = config_read(root, &sample_table, &sample, &arena, &origins, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    for (int i = 0; config_kind(root) == CONFIG_MAPPING && i < config_count(root); i++)
        config_assign(config_text(config_key(root, i)), config_pos(root), config_item(root, i),
            &sample_table, &sample, &arena, &origins, &diag);
    check_reads_back(&sample, &origins);
    if (config_kind(root) == CONFIG_MAPPING && config_count(root) > 0 &&
        depth(root) < CONFIG_MAX_DEPTH && size < CONFIG_MAX_BYTES / 2)
        check_changes(doc, (const char *)data, size, (int)(size % (size_t)config_count(root)));
    vec_free(&origins.list);
    arena_release(&arena);
    config_free(doc);
    return 0;
}
