/* Which measurements stand for which GPU is data: what one part says of another is checked where it
 * is read. */
#include "calibrate/recipes.h"

#include "base/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each GPU has one recipe, of files that are there. */
static void recipes_are_of_files(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct recipes recipes;
    assert_int_equal(recipes_load(&recipes, &arena, &diag), STATUS_OK);
    assert_true(recipes.n_gpus >= 11);
    for (int i = 0; i < recipes.n_gpus; i++) {
        const struct recipe *recipe = &recipes.gpus[i];
        const char *names[] = {recipe->gpu, recipe->stream, recipe->launch, recipe->attention,
            recipe->kernels, recipe->gemm, recipe->casts, recipe->products, recipe->fp8,
            recipe->fp4, recipe->cudnn};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (names[k] &&
                access(files_own(&arena, arena_printf(&arena, "topologies/gpus/%s.yaml", names[k])),
                    R_OK))
                fail_msg("%s: there is no GPU %s", recipe->gpu, names[k]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(recipes.gpus[k].gpu, recipe->gpu);
    }
    assert_int_equal(recipes_find(recipes.kernels, NULL), -1);
    assert_int_equal(recipes_find(recipes.kernels, recipes.kernels.list[1]), 1);
    assert_int_equal(recipes_gemm(&recipes, "nobody"), -1);
    arena_release(&arena);
}

static void mistakes_have_their_place(void **state)
{
    (void)state;
    static const char rest[] =
        "gemm: [{gpu: a, first: bf16, second: tf32, differs: loads_alike}]\nkernels: [a]\n"
        "direct: [b]\nnorms: []\n";
    static const struct {
        const char *gpu, *rest, *message;
    } cases[] = {{"{gpu: x, launch: x, kernels: a, gemm: a, fp8: b}", rest, ""},
        {"{gpu: x}", rest, ":1:8: error: a recipe of a GPU needs the key 'launch'"},
        {"{gpu: x, launch: x, kernels: b}", rest, ":1:37: error: 'b' is not in the list 'kernels'"},
        {"{gpu: x, launch: x, gemm: b}", rest, ":1:34: error: 'b' is not in the list 'gemm'"},
        {"{gpu: x, launch: x, cudnn: a}", rest, ":1:35: error: 'a' is not in the list 'direct'"},
        {"{gpu: x, launch: x}", "gemm: []\nkernels: []\ndirect: []\nnorms: []\n",
            ":2:7: error: there is no fit of products"}};
    char folder[] = "/tmp/flopcast-recipes-XXXXXX", path[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "mkdir -p %s/topologies/fitted", folder);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/topologies/fitted/recipes.yaml", folder);
    setenv("FLOPCAST_DATA", folder, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct recipes recipes;
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "gpus: [%s]\n%s", cases[i].gpu, cases[i].rest);
        fclose(file);
        enum status status = recipes_load(&recipes, &arena, &diag);
        const char *wanted =
            *cases[i].message ? arena_printf(&arena, "%s%s", path, cases[i].message) : "";
        assert_int_equal(status == STATUS_OK, !*wanted);
        if (strncmp(diag.text, wanted, strlen(wanted)) != 0)
            fail_msg("'%s' is not '%s'", diag.text, wanted);
        arena_release(&arena);
    }
    unsetenv("FLOPCAST_DATA");
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipes_are_of_files),
        cmocka_unit_test(mistakes_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
