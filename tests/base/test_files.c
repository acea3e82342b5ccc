#include "base/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void touch(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

/* In an empty folder with nodes/n.yaml and clusters/, and flopcast's own files elsewhere. */
static void names(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    char folder[] = "/tmp/flopcast-files-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(setenv("FLOPCAST_DATA", FLOPCAST_SOURCE_DIR, 1), 0);
    assert_int_equal(mkdir("nodes", 0700) | mkdir("clusters", 0700), 0);
    touch("nodes/n.yaml");
    const char *absolute = arena_printf(&arena, "%s/nodes/n.yaml", folder);
    static const char own[] = FLOPCAST_SOURCE_DIR "/topologies/nodes/dgx-2.yaml";
    assert_string_equal(files_name_from(&arena, "nodes/c.yaml", "nodes/n.yaml"), "n.yaml");
    assert_string_equal(files_name_from(&arena, "c.yaml", "nodes/n.yaml"), "nodes/n.yaml");
    assert_string_equal(
        files_name_from(&arena, "clusters/c.yaml", "nodes/n.yaml"), "../nodes/n.yaml");
    assert_string_equal(files_name_from(&arena, "clusters/c.yaml", absolute), "../nodes/n.yaml");
    assert_string_equal(files_name_from(&arena, "/usr/lib/c.yaml", "nodes/n.yaml"), absolute);
    assert_string_equal(files_name_from(&arena, NULL, "nodes/n.yaml"), absolute);
    assert_string_equal(files_name_from(&arena, "/c.yaml", "nodes/n.yaml"), absolute);
    assert_string_equal(files_name_from(&arena, "no/such/c.yaml", "nodes/n.yaml"), absolute);
    assert_string_equal(files_name_from(&arena, "c.yaml", own), "topologies/nodes/dgx-2.yaml");
    assert_string_equal(files_name_from(&arena, NULL, own), "topologies/nodes/dgx-2.yaml");
    assert_string_equal(
        files_name_from(&arena, FLOPCAST_SOURCE_DIR "/topologies/clusters/c.yaml", own),
        "../nodes/dgx-2.yaml");
    assert_int_equal(
        unlink("nodes/n.yaml") | rmdir("nodes") | rmdir("clusters") | rmdir(folder), 0);
    arena_release(&arena);
}

/* A data folder of a few files. */
static void make_data(char *folder)
{
    static const char *const folders[] = {
        "topologies", "topologies/gpus", "topologies/clusters", "scenarios", "scenarios/models"};
    static const char *const files[] = {"topologies/gpus/h100-sxm5-80gb.yaml",
        "topologies/gpus/h100-pcie-80gb.yaml", "topologies/gpus/h200-sxm.yaml",
        "topologies/gpus/b200.yaml", "topologies/gpus/b200-air.yaml",
        "topologies/clusters/h200-8x400g.yaml", "scenarios/models/llama3.1-70b.yaml",
        "scenarios/models/llama3.1-8b.yaml", "scenarios/models/notes.txt", "scenarios/t5.yaml"};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(setenv("FLOPCAST_DATA", folder, 1), 0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(folders[i], 0700), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        touch(files[i]);
    FILE *aliases = fopen("topologies/gpus/aliases.txt", "w");
    fputs("# which of several\n\nh100 h100-sxm5-80gb\n h100-sxm\th100-sxm5-80gb \nh200 "
          "b200\nlonely\n",
        aliases);
    fclose(aliases);
    FILE *sizes = fopen("scenarios/models/mpt.yaml", "w");
    fputs("# Several.\nvocab: 5\nsizes:\n  mpt-1b: {d_model: 2} # 1 parameter.\n  mpt-30b: "
          "{d_model: 3}\n",
        sizes);
    fclose(sizes);
}

static void remove_data(const char *folder)
{
    struct arena arena = ARENA_INIT;
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(system(arena_printf(&arena, "rm -r '%s'", folder)), 0);
    arena_release(&arena);
}

static void short_names(void **state)
{
    (void)state;
    static const struct {
        enum files_kind kind;
        const char *name, *file; /* file NULL: it stands for none */
    } cases[] = {
        {FILES_GPUS, "h200-sxm", "topologies/gpus/h200-sxm.yaml"},
        {FILES_GPUS, "H200-SXM", "topologies/gpus/h200-sxm.yaml"},
        {FILES_GPUS, "h200", "topologies/gpus/h200-sxm.yaml"}, /* the only one that begins so,
                                                                  whatever an alias says */
        {FILES_GPUS, "b200",
            "topologies/gpus/b200.yaml"}, /* its whole name, though another begins so */
        {FILES_GPUS, "h100", "topologies/gpus/h100-sxm5-80gb.yaml"},     /* by the alias */
        {FILES_GPUS, "h100-sxm", "topologies/gpus/h100-sxm5-80gb.yaml"}, /* likewise */
        {FILES_GPUS, "h100-sxm5", "topologies/gpus/h100-sxm5-80gb.yaml"},
        {FILES_GPUS, "h10", NULL},
        {FILES_GPUS, "", NULL},
        {FILES_GPUS, "lonely", NULL},
        {FILES_GPUS, "llama3.1-8b", NULL},
        {FILES_MODELS, "llama3.1", NULL},   /* two */
        {FILES_MODELS, "llama3.1-7", NULL}, /* half a number */
        {FILES_MODELS, "llama3.1-8b", "scenarios/models/llama3.1-8b.yaml"},
        {FILES_MODELS, "notes", NULL},
        {FILES_MODELS, "mpt", NULL}, /* no model itself */
        {FILES_MODELS, "mpt-1", NULL},
        {FILES_MODELS, "MPT-30b", "scenarios/models/mpt-30b.yaml"}, /* one in it */
        {FILES_SCENARIOS, "t5", "scenarios/t5.yaml"},
        {FILES_HARDWARE, "h200-8x400g", "topologies/clusters/h200-8x400g.yaml"},
        {FILES_HARDWARE, "h200-sxm", "topologies/gpus/h200-sxm.yaml"},
        {FILES_HARDWARE, "h100", "topologies/gpus/h100-sxm5-80gb.yaml"},
    };
    char folder[] = "/tmp/flopcast-names-XXXXXX";
    struct arena arena = ARENA_INIT;
    make_data(folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *file = files_short(&arena, cases[i].kind, cases[i].name);
        if ((file == NULL) != (cases[i].file == NULL) || (file && strcmp(file, cases[i].file) != 0))
            fail_msg("'%s' is %s", cases[i].name, file ? file : "none");
    }
    const char *own = arena_printf(&arena, "%s/topologies/gpus/b200.yaml", folder);
    assert_string_equal(files_find(&arena, FILES_GPUS, "b200"), own);
    assert_string_equal(
        files_find(&arena, FILES_ANY, "b200"), "b200"); /* no kind, no short names */
    assert_string_equal(files_find(&arena, FILES_GPUS, "b200.yaml"), "b200.yaml"); /* a path */
    assert_string_equal(files_find(&arena, FILES_GPUS, "./b200"), "./b200");
    assert_string_equal(
        files_find(&arena, FILES_GPUS, "topologies/gpus/b200.yaml"), "topologies/gpus/b200.yaml");
    assert_string_equal(files_find_from(&arena, FILES_GPUS, "mine/b200", "b200"), own);
    assert_string_equal(files_find_from(&arena, FILES_GPUS, "mine/none", "none"), "mine/none");
    assert_int_equal(mkdir("b200", 0700), 0); /* a folder is no file of a GPU */
    assert_string_equal(files_find(&arena, FILES_GPUS, "b200"), own);
    assert_int_equal(rmdir("b200"), 0);
    touch("b200"); /* but a file of one's own comes first */
    assert_string_equal(files_find(&arena, FILES_GPUS, "b200"), "b200");
    assert_string_equal(
        files_aliases(&arena, &files_groups[5], "h100-sxm5-80gb"), "h100, h100-sxm");
    assert_string_equal(files_aliases(&arena, &files_groups[5], "b200-air"), "");
    arena_release(&arena);
    remove_data(folder);
}

static void models_of_one_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/flopcast-names-XXXXXX";
    struct arena arena = ARENA_INIT;
    make_data(folder);
    const char *models = arena_printf(&arena, "%s/scenarios/models", folder);
    const char *held = arena_printf(&arena, "%s/mpt-1b.yaml", models),
               *holder = files_holder(&arena, held);
    assert_string_equal(holder, arena_printf(&arena, "%s/mpt.yaml", models));
    assert_string_equal(
        files_size_comment(&arena, holder, files_size_name(&arena, held)), "1 parameter.");
    assert_null(files_holder(&arena, arena_printf(&arena, "%s/mpt-2b.yaml", models)));
    assert_null(files_holder(&arena, arena_printf(&arena, "%s/mpt-1b", models)));
    assert_string_equal(files_find(&arena, FILES_MODELS, "scenarios/models/mpt-1b.yaml"),
        "scenarios/models/mpt-1b.yaml");
    assert_string_equal(files_name_from(&arena, NULL, held), "scenarios/models/mpt-1b.yaml");
    arena_release(&arena);
    remove_data(folder);
}

static void hints(void **state)
{
    (void)state;
    static const struct {
        enum files_kind kind;
        const char *path, *hint;
    } cases[] = {
        {FILES_GPUS, "h10", "; 'h10' could be h100-pcie-80gb, h100-sxm5-80gb; write one of them"},
        {FILES_GPUS, "h20", "; did you mean 'h200-sxm'?"},
        {FILES_MODELS, "lama3.1-8b", "; did you mean 'llama3.1-8b'?"},
        {FILES_MODELS, "mine/llama3.1-7", "; did you mean 'llama3.1-70b'?"},
        {FILES_MODELS, "../models/llama3.1-8b.yaml",
            "; flopcast's own is scenarios/models/llama3.1-8b.yaml"},
        {FILES_MODELS, "b200", "; flopcast's own is topologies/gpus/b200.yaml"},
        {FILES_MODELS, "xyz",
            "; `flopcast files models` lists the names that come along; of any other model, put "
            "the config.json of Hugging Face into a folder 'xyz' here"},
        {FILES_MODELS, "xyz.yaml", ""},
        {FILES_MODELS, "mpt", "; 'mpt' could be mpt-1b, mpt-30b; write one of them"},
        {FILES_ANY, "t6", "; did you mean 'scenarios/t5.yaml'?"},
        {FILES_ANY, "", ""},
        {FILES_GPUS, "folder/", ""},
    };
    char folder[] = "/tmp/flopcast-names-XXXXXX";
    struct arena arena = ARENA_INIT;
    make_data(folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(files_hint(&arena, cases[i].kind, cases[i].path), cases[i].hint);
    arena_release(&arena);
    remove_data(folder);
}

/* Each alias of the files that come along is of one of them, and of none by its own name. */
static void aliases_are_of_files(void **state)
{
    (void)state;
    static const char *const folders[] = {"gpus", "clusters"};
    struct arena arena = ARENA_INIT;
    assert_int_equal(setenv("FLOPCAST_DATA", FLOPCAST_SOURCE_DIR, 1), 0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char name[64], file[64], line[256];
        FILE *in = fopen(
            arena_printf(&arena, FLOPCAST_SOURCE_DIR "/topologies/%s/aliases.txt", folders[i]),
            "r");
        assert_non_null(in);
        int n = 0;
        while (fgets(line, sizeof line, in)) {
            if (*line == '#')
                continue;
            assert_int_equal(sscanf(line, "%63s %63s", name, file), 2);
            const char *path = arena_printf(&arena, "topologies/%s/%s.yaml", folders[i], file);
            assert_int_equal(access(files_own(&arena, path), R_OK), 0);
            assert_string_equal(files_short(&arena, i ? FILES_CLUSTERS : FILES_GPUS, name), path);
            n++;
        }
        fclose(in);
        assert_true(n > 3);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(short_names),
        cmocka_unit_test(models_of_one_file), cmocka_unit_test(hints),
        cmocka_unit_test(aliases_are_of_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
