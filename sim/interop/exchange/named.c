/* Models that configurations call by name: of Hugging Face, "Qwen/Qwen3-30B-A3B", or of a front's
 * own files, "llama3.1_8B.yaml". */
#include "exchange/rules.h"

#include "base/files.h"

#include <ctype.h>
#include <string.h>

/* Lower case, without folder, signs between parts, and what says only how it was trained or stored.
 */
static const char *bare(const char *name, struct arena *arena)
{
    static const char *const behind[] = {".yaml", "hf", "instruct", "base", "bf16", "fp8", "v0.1",
        "2507", "thinking", "it", "chat", "0324", "pt"};
    const char *slash = strrchr(name, '/');
    char *text = arena_strdup(arena, slash ? slash + 1 : name), *to = text;
    for (const char *at = text; *at; at++)
        if (*at != '-' && *at != '_')
            *to++ = (char)tolower((unsigned char)*at);
    *to = '\0';
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        size_t n = strlen(behind[i]), length = strlen(text);
        if (length > n && strcmp(text + length - n, behind[i]) == 0) {
            text[length - n] = '\0';
            i = (size_t)-1; /* and again from the first */
        }
    }
    return strncmp(text, "nvidia", strlen("nvidia")) == 0 ? text + strlen("nvidia") : text;
}

struct called called_load(struct arena *arena)
{
    struct called all = {0};
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    enum status status =
        config_load(&doc, files_own(arena, "scenarios/huggingface/called.yaml"), &diag);
    BUG_IF(status != STATUS_OK, "%s", diag.text);
    struct config_node root = config_root(doc);
    for (int i = 0; i < config_count(root); i++)
        for (int k = 0; k < config_count(config_item(root, i)); k++)
            vec_push(&all.list,
                ((struct called_so){arena_strdup(arena, config_text(config_key(root, i))),
                    arena_strdup(arena, config_text(config_item(config_item(root, i), k)))}));
    config_free(doc);
    return all;
}

/* Flopcast's model of what others call so; NULL: it has none. */
static const char *model_called(struct configuration *config, const char *theirs)
{
    const char *name = bare(theirs, config->arena), *found = NULL;
    struct called called = called_load(config->arena);
    for (int i = 0; i < called.list.n && !found; i++) {
        const struct called_so *so = &called.list.at[i];
        bool flavor = strncmp(so->theirs, CALLED_TORCHTITAN, strlen(CALLED_TORCHTITAN)) == 0;
        if (!flavor && strcmp(bare(so->theirs, config->arena), name) == 0)
            found = so->ours;
    }
    vec_free(&called.list);
    struct files_names all = files_names(config->arena, FILES_MODELS);
    for (int i = 0; i < all.list.n && !found && *name; i++)
        if (strcmp(bare(all.list.at[i].name, config->arena), name) == 0)
            found = all.list.at[i].name;
    vec_free(&all.list);
    return found;
}

void put_called(
    struct configuration *config, const char *theirs, struct configuration_setting *from)
{
    const char *ours = put_find(config, "model") ? NULL : model_called(config, theirs);
    if (put_find(config, "model")) {
        setting_aside(from, "the command line says it");
    } else if (ours) {
        put_setting(config, "model", ours, from);
    } else {
        setting_aside(from,
            "flopcast has no model of that name; --model takes its config.json or a model file");
        vec_push(&config->missing,
            arena_printf(config->arena,
                "model: --model CONFIG.JSON, of %s, which the file names and flopcast has no "
                "model file of",
                theirs));
    }
}
