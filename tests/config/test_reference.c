#include "config/config.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

struct job {
    const char *name;
    int64_t batch;
    double pause_s;
    int kind;
    bool quick;
};

static const char *const kinds[] = {"ddp", "fsdp", NULL};
static const struct config_field inner_fields[] = {
    {.key = "pause",
        .type = FIELD_NUMBER,
        .offset = offsetof(struct job, pause_s),
        .help = "between steps",
        .dimension = DIM_SECONDS,
        .max = 10},
    {.key = "kind",
        .type = FIELD_ENUM,
        .offset = offsetof(struct job, kind),
        .help = "of sharing",
        .names = kinds},
};
static const struct config_table inner = {.what = "'inner'", .fields = inner_fields, .n_fields = 2};
static const struct config_field fields[] = {
    {.key = "name",
        .type = FIELD_STRING,
        .offset = offsetof(struct job, name),
        .help = "of the job"},
    {.key = "batch",
        .alias = "batch_size",
        .type = FIELD_INT,
        .offset = offsetof(struct job, batch),
        .help = "sequences",
        .min = 1,
        .max = 64},
    {.key = "inner", .type = FIELD_SECTION, .offset = 0, .help = "more", .section = &inner},
    {.key = "quick", .type = FIELD_BOOL, .offset = offsetof(struct job, quick), .help = "no pause"},
};
static const struct config_table table = {.what = "a job", .fields = fields, .n_fields = 4};

static char *reference(struct job defaults)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    config_print_reference(out, &table, &defaults);
    fclose(out);
    return text;
}

static void lists_paths_defaults_and_what_is_allowed(void **state)
{
    (void)state;
    char *text =
        reference((struct job){.name = "x", .batch = 8, .pause_s = 5e-3, .kind = 1, .quick = true});
    assert_string_equal(text,
        "name: x\n    of the job\n"
        "batch: 8\n    sequences (whole number, 1 to 64); also called batch_size\n"
        "inner.pause: 5 ms\n    between steps (0 s to 10 s)\n"
        "inner.kind: fsdp\n    of sharing (ddp, fsdp)\n"
        "quick: true\n    no pause\n");
    free(text);
}

/* 0 is no batch and -1 s no pause: such defaults say that nothing is set. */
static void a_default_out_of_range_is_none(void **state)
{
    (void)state;
    char *text = reference((struct job){.pause_s = -1});
    assert_non_null(strstr(text, "name: -\n"));
    assert_non_null(strstr(text, "batch: -\n"));
    assert_non_null(strstr(text, "inner.pause: -\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_paths_defaults_and_what_is_allowed),
        cmocka_unit_test(a_default_out_of_range_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
