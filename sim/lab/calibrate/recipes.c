/* Config's tables read the file; what one part says of another is checked here, once. */
#include "calibrate/recipes.h"

#include "config/config.h"

#include <string.h>

#define GPU(key_, help_) CONFIG_FIELD(#key_, FIELD_STRING, struct recipe, key_, help_)
static const struct config_field recipe_fields[] = {
    {GPU(gpu, "Whose numbers are computed."), .required = true},
    {GPU(stream, "Rows of hbm.csv.")},
    {GPU(launch, "Rows of launch.csv."), .required = true},
    {GPU(attention, "Rows of attention.csv.")},
    {GPU(kernels, "Rows of kernels.csv.")},
    {GPU(gemm, "The fit to gemm.csv.")},
    {GPU(casts, "Rows of direct.csv: casts.")},
    {GPU(products, "Rows of direct.csv: products in bf16.")},
    {GPU(fp8, "Rows of direct.csv: products in fp8.")},
    {GPU(fp4, "Rows of direct.csv: products in fp4.")},
    {GPU(cudnn, "Rows of direct.csv: attention.")},
};
static const struct config_table recipe_table = CONFIG_TABLE("a recipe of a GPU", recipe_fields);

static const char *const second_names[] = {[GEMM_LOADS_ALIKE] = "loads_alike",
    [GEMM_OTHER_KERNELS] = "other_kernels",
    [GEMM_OTHER_KERNELS + 1] = NULL};
#define CASE(key_, type_, member, help_)                                                           \
    CONFIG_FIELD(key_, type_, struct gemm_case, member, help_), .required = true
static const struct config_field gemm_fields[] = {
    {CASE("gpu", FIELD_STRING, gpu, "Whose rows of gemm.csv are fitted.")},
    {CASE("first", FIELD_ENUM, math[0], "A format."), .names = dtype_names},
    {CASE("second", FIELD_ENUM, math[1], "Another format."), .names = dtype_names},
    {CASE("differs", FIELD_ENUM, second, "How the second differs."), .names = second_names},
};
static const struct config_table gemm_table = CONFIG_TABLE("a fit of products", gemm_fields);

struct recipes_file {
    struct config_node gpus, gemm, kernels, direct, norms;
};
#define PART(key_, help_)                                                                          \
    CONFIG_FIELD(#key_, FIELD_NODE, struct recipes_file, key_, help_), .required = true
static const struct config_field recipe_file_fields[] = {
    {PART(gpus, "Recipes of GPUs.")},
    {PART(gemm, "Fits to gemm.csv.")},
    {PART(kernels, "GPUs of kernels.csv.")},
    {PART(direct, "GPUs of direct.csv.")},
    {PART(norms, "GPUs of norm.csv.")},
};
static const struct config_table recipe_file_table =
    CONFIG_TABLE("recipes of fits", recipe_file_fields);

int recipes_find(struct recipe_names names, const char *gpu)
{
    for (int i = 0; gpu && i < names.n; i++)
        if (strcmp(names.list[i], gpu) == 0)
            return i;
    return -1;
}

int recipes_gemm(const struct recipes *recipes, const char *gpu)
{
    for (int i = 0; gpu && i < recipes->n_gemm; i++)
        if (strcmp(recipes->gemm[i].gpu, gpu) == 0)
            return i;
    return -1;
}

static struct recipe_names read_names(struct config_node list, struct arena *arena)
{
    const char **names = ARENA_ARRAY(arena, const char *, config_count(list));
    for (int i = 0; i < config_count(list); i++)
        names[i] = arena_strdup(arena, config_text(config_item(list, i)));
    return (struct recipe_names){names, config_count(list)};
}

static void check_recipe(const struct recipes *recipes, const struct recipe *recipe,
    struct config_node node, struct diag *diag)
{
    const struct {
        const char *key, *gpu, *list;
        bool known;
    } parts[] = {{"kernels", recipe->kernels, "kernels",
                     recipes_find(recipes->kernels, recipe->kernels) >= 0},
        {"gemm", recipe->gemm, "gemm", recipes_gemm(recipes, recipe->gemm) >= 0},
        {"casts", recipe->casts, "direct", recipes_find(recipes->direct, recipe->casts) >= 0},
        {"products", recipe->products, "direct",
            recipes_find(recipes->direct, recipe->products) >= 0},
        {"fp8", recipe->fp8, "direct", recipes_find(recipes->direct, recipe->fp8) >= 0},
        {"fp4", recipe->fp4, "direct", recipes_find(recipes->direct, recipe->fp4) >= 0},
        {"cudnn", recipe->cudnn, "direct", recipes_find(recipes->direct, recipe->cudnn) >= 0}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].gpu && !parts[i].known)
            diag_input(diag, config_pos(config_find(node, parts[i].key)),
                "'%s' is not in the list '%s'", parts[i].gpu, parts[i].list);
}

enum status recipes_load(struct recipes *out, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    struct recipes_file file = {0};
    struct diag own = DIAG_INIT;
    *out = (struct recipes){0};
    if (config_load(&doc, files_own(arena, "topologies/fitted/recipes.yaml"), &own) == STATUS_OK &&
        config_read(config_root(doc), &recipe_file_table, &file, arena, NULL, &own) == STATUS_OK) {
        out->gpus = config_read_list(
            file.gpus, &recipe_table, sizeof *out->gpus, &out->n_gpus, arena, &own);
        out->gemm =
            config_read_list(file.gemm, &gemm_table, sizeof *out->gemm, &out->n_gemm, arena, &own);
        out->kernels = read_names(file.kernels, arena);
        out->direct = read_names(file.direct, arena);
        out->norms = read_names(file.norms, arena);
        if (own.worst == STATUS_OK && out->n_gemm == 0)
            diag_input(&own, config_pos(file.gemm),
                "there is no fit of products, from which fp32 is taken");
        for (int i = 0; own.worst == STATUS_OK && i < out->n_gpus; i++)
            check_recipe(out, &out->gpus[i], config_item(file.gpus, i), &own);
    }
    config_free(doc);
    enum status status = own.worst;
    diag_merge(diag, &own);
    return status;
}
