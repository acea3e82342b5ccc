#include "config/config.h"

#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const kinds[] = {"one", "two", NULL};

struct inner {
    int64_t count;
};
struct outer {
    const char *name;
    double time_s;
    bool flag;
    int kind;
    struct quantity bandwidth;
    struct inner inner;
};

static const struct config_field inner_fields[] = {
    {.key = "count", .type = FIELD_INT, .offset = offsetof(struct inner, count), .help = "."}};
static const struct config_table inner_table = {
    .what = "an inner", .fields = inner_fields, .n_fields = 1};
static const struct config_field outer_fields[] = {
    {.key = "name", .type = FIELD_STRING, .offset = offsetof(struct outer, name)},
    {.key = "time",
        .type = FIELD_NUMBER,
        .offset = offsetof(struct outer, time_s),
        .dimension = DIM_SECONDS},
    {.key = "flag", .type = FIELD_BOOL, .offset = offsetof(struct outer, flag)},
    {.key = "kind", .type = FIELD_ENUM, .offset = offsetof(struct outer, kind), .names = kinds},
    {.key = "bandwidth", .type = FIELD_SOURCED, .offset = offsetof(struct outer, bandwidth)},
    {.key = "inner",
        .type = FIELD_SECTION,
        .offset = offsetof(struct outer, inner),
        .section = &inner_table},
};
static const struct config_table outer_table = {
    .what = "an outer", .fields = outer_fields, .n_fields = 6};

static uint64_t digest(const struct outer *outer)
{
    return config_digest(DIGEST_INIT, &outer_table, outer);
}

/* Each value alone changes it; texts count by what they say, not by where they lie. */
static void every_value_counts(void **state)
{
    (void)state;
    char name[] = "a", alike[] = "a";
    const struct outer base = {
        name, 1.5, true, 1, {1e9, 1e7, QUANTITY_MEASURED, "a table", NULL}, {7}};
    struct outer same = base, changed[10];
    same.name = alike;
    assert_true(digest(&same) == digest(&base));
    for (int i = 0; i < 10; i++)
        changed[i] = base;
    changed[0].name = "b";
    changed[1].name = "";
    changed[2].name = NULL;
    changed[3].time_s = 1.5000000000000002;
    changed[4].flag = false;
    changed[5].kind = 0;
    changed[6].bandwidth.value = 2e9;
    changed[7].bandwidth.std_error = 0;
    changed[8].bandwidth.kind = QUANTITY_ASSUMED;
    changed[9].inner.count = 8;
    for (int i = 0; i < 10; i++) {
        assert_true(digest(&changed[i]) != digest(&base));
        for (int j = 0; j < i; j++)
            assert_true(digest(&changed[i]) != digest(&changed[j]));
    }
}

/* Of values: neither kind nor error, and a field that is 0 is as if it were not there. */
static void values_count_alone(void **state)
{
    (void)state;
    struct outer base = {"a", 1.5, true, 1, {1e9, 1e7, QUANTITY_MEASURED, "a table", NULL}, {7}},
                 other = base;
    uint64_t before = config_digest_values(DIGEST_INIT, &outer_table, &base);
    other.bandwidth = (struct quantity){1e9, 2e7, QUANTITY_ASSUMED, "another", NULL};
    assert_true(config_digest_values(DIGEST_INIT, &outer_table, &other) == before);
    other.bandwidth.value = 2e9;
    assert_true(config_digest_values(DIGEST_INIT, &outer_table, &other) != before);
    other = base;
    other.inner.count = 8;
    assert_true(config_digest_values(DIGEST_INIT, &outer_table, &other) != before);
    const struct config_table shorter = {.what = "an outer", .fields = outer_fields, .n_fields = 5};
    assert_true(config_digest_values(DIGEST_INIT, &shorter, &base) != before);
    base.inner.count = 0; /* as the last field of the longer table means nothing */
    assert_true(config_digest_values(DIGEST_INIT, &shorter, &base) ==
                config_digest_values(DIGEST_INIT, &outer_table, &base));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_counts), cmocka_unit_test(values_count_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
