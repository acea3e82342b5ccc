/* Models that configurations call by name: of Hugging Face, "Qwen/Qwen3-30B-A3B", or of a front's own files,
 * "llama3.1_8B.yaml". */
#include "exchange/rules.h"

#include "base/files.h"

#include <ctype.h>
#include <string.h>

/* Names that differ by more than signs and what stands behind, as bare() leaves them. Of one shape: what a model of
 * ours is called otherwise. */
static const struct {
    const char *theirs, *ours;
} aliases[] = {
    {"llama3.370b", "llama3.1-70b"}, /* Llama 3.3's config.json has 3.1's shape */
    {"llama370b", "llama3.1-70b"},   /* so has Llama 3's */
    {"llama38b", "llama3.1-8b"}, {"metallama38b", "llama3.1-8b"}, {"metallama370b", "llama3.1-70b"},
    {"metallama3.18b", "llama3.1-8b"}, {"metallama3.170b", "llama3.1-70b"}, {"metallama3.1405b", "llama3.1-405b"},
    {"llama417b16e", "llama4-scout"}, {"llama417bx16e", "llama4-scout"}, {"llama4scout17b16e", "llama4-scout"},
    {"llama417b128e", "llama4-maverick"}, {"llama417bx128e", "llama4-maverick"},
    {"llama4maverick17b128e", "llama4-maverick"},
    {"deepseekv316b", "deepseek-v2-lite"}, /* torchtitan's flavors of deepseek_v3 */
    {"deepseekv3236b", "deepseek-v2"}, {"deepseekv3671b", "deepseek-v3"}, {"deepseekr1", "deepseek-v3"},
    {"deepseekv3.1", "deepseek-v3"}, {"grok1", "grok1-314b"}, {"kimik2.5", "kimi-k2"}, /* its decoder */
    {"glm4.6", "glm-4.5"}, {"glm4.7", "glm-4.5"},             /* Glm4MoeForCausalLM of GLM-4.5's shape */
    {"glm5.1", "glm-5"}, {"qwen3535ba3b", "qwen3.5-35b-a3b"}, /* qwen3_5_35B_A3B */
};

/* Lower case, without folder, signs between parts, and what says only how it was trained or stored. */
static const char *bare(const char *name, struct arena *arena)
{
    static const char *const behind[] = {
        ".yaml", "hf", "instruct", "base", "bf16", "fp8", "v0.1", "2507", "thinking", "it", "chat", "0324", "pt"};
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

const char *model_called(struct configuration *config, const char *theirs)
{
    const char *name = bare(theirs, config->arena), *found = NULL;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i].theirs, name) == 0)
            return aliases[i].ours;
    struct files_names all = files_names(config->arena, FILES_MODELS);
    for (int i = 0; i < all.list.n && !found && *name; i++)
        if (strcmp(bare(all.list.at[i].name, config->arena), name) == 0)
            found = all.list.at[i].name;
    vec_free(&all.list);
    return found;
}

void put_called(struct configuration *config, const char *theirs, struct configuration_setting *from)
{
    const char *ours = put_find(config, "model") ? NULL : model_called(config, theirs);
    if (put_find(config, "model")) {
        setting_aside(from, "the command line says it");
    } else if (ours) {
        put_setting(config, "model", ours, from);
    } else {
        setting_aside(from, "flopcast has no model of that name; --model takes its config.json or a model file");
        vec_push(&config->missing, arena_printf(config->arena,
                                       "model: --model CONFIG.JSON, of %s, which the file names and flopcast has no "
                                       "model file of",
                                       theirs));
    }
}
