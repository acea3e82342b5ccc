/* Lists of settings: one line makes the member, its default and its key. */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static const char *const sample_names[] = {"first", "second", NULL};

struct sample_options {
#define SETTINGS SETTING_MEMBER
#include "sample_settings.h"
    struct {
        int kind;
    } within;
};

static const struct sample_options sample_defaults = {
#define SETTINGS SETTING_DEFAULT
#include "sample_settings.h"
};

static const struct config_field sample_fields[] = {
#define SETTINGS SETTING_FIELD
#include "sample_settings.h"
};

static void one_line_makes_all(void **state)
{
    (void)state;
    static const struct config_field expected[] = {
        {CONFIG_FIELD("count", FIELD_INT, struct sample_options, count, "how many"), .min = 1,
            .max = 9},
        {CONFIG_FIELD("shown", FIELD_BOOL, struct sample_options, shown, "whether")},
        {CONFIG_FIELD("label", FIELD_STRING, struct sample_options, label, "what it is called")},
        {CONFIG_FIELD("delay", FIELD_NUMBER, struct sample_options, delay_s, "how long"),
            .dimension = DIM_SECONDS, .max = 60},
        {CONFIG_FIELD("kind", FIELD_ENUM, struct sample_options, within.kind, "which"),
            .names = sample_names},
    };
    assert_int_equal(sizeof sample_fields, sizeof expected);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct config_field *field = &sample_fields[i], *other = &expected[i];
        assert_string_equal(field->key, other->key);
        assert_string_equal(field->help, other->help);
        assert_int_equal(field->type, other->type);
        assert_int_equal(field->offset, other->offset);
        assert_true(field->min == other->min && field->max == other->max);
        assert_int_equal(field->dimension, other->dimension);
        assert_ptr_equal(field->names, other->names);
    }
    assert_int_equal(sample_defaults.count, 3);
    assert_true(sample_defaults.shown);
    assert_string_equal(sample_defaults.label, "none");
    assert_true(sample_defaults.delay_s == 2e-6);
    assert_int_equal(sample_defaults.within.kind, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_line_makes_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
