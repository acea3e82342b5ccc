#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

static char *written(const struct sample *sample, const struct config_origins *origins)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    config_write_json(out, &sample_table, sample, origins);
    fclose(out);
    return text;
}

static const char input[] =
    "name: \"t5 \\\"11b\\\"\"\n"
    "cluster: a100.yaml\n"
    "latency: 9.5 us\n"
    "bandwidth: {value: 2 TB/s, kind: fitted, source: own fit, std_error: 30 GB/s}\n"
    "train: {micro_batch: 16, strategy: fsdp}\n"
    "sweep: {gpus: [8, 010, 1.5e3, true, ~, '8', x y], empty: {}}\n";

static void writes_values_with_origins(void **state)
{
    (void)state;
    struct config_doc *doc = NULL;
    struct arena arena = ARENA_INIT;
    struct config_origins origins = {0};
    struct diag diag = DIAG_INIT;
    struct sample sample = {.gpus = 8, .scale = 0.1};
    assert_int_equal(config_parse(&doc, "s/x.yaml", input, strlen(input), &diag), STATUS_OK);
    assert_int_equal(
        config_read(config_root(doc), &sample_table, &sample, &arena, &origins, &diag), STATUS_OK);
    vec_push(&origins.list, (struct config_origin){"train.micro_batch", {"--set", 0, 0},
                                ORIGIN_COMMAND_LINE}); /* later: wins */
    char *text = written(&sample, &origins);
    /* 010 is not a number of JSON; 0.1 is the shortest text that reads back as the same double. */
    assert_string_equal(text,
        "{\n"
        "  \"name\": {\"value\": \"t5 \\\"11b\\\"\", \"origin\": \"s/x.yaml:1:7\"},\n"
        "  \"cluster\": {\"value\": \"s/a100.yaml\", \"origin\": \"s/x.yaml:2:10\"},\n"
        "  \"gpus\": {\"value\": 8, \"origin\": \"default\"},\n"
        "  \"latency\": {\"value\": 9.5e-06, \"unit\": \"s\", \"origin\": \"s/x.yaml:3:10\"},\n"
        "  \"scale\": {\"value\": 0.1, \"origin\": \"default\"},\n"
        "  \"noise\": {\"value\": false, \"origin\": \"default\"},\n"
        "  \"bandwidth\": {\"value\": 2000000000000, \"unit\": \"B/s\", \"kind\": \"fitted\", "
        "\"source\": \"own fit\", \"std_error\": 30000000000, \"origin\": \"s/x.yaml:4:12\"},\n"
        "  \"count\": {\"value\": null, \"origin\": \"default\"},\n"
        "  \"train\": {\n"
        "    \"micro_batch\": {\"value\": 16, \"origin\": \"--set\"},\n"
        "    \"dropout\": {\"value\": 0, \"origin\": \"default\"},\n"
        "    \"strategy\": {\"value\": \"fsdp\", \"origin\": \"s/x.yaml:5:36\"}\n"
        "  },\n"
        "  \"sweep\": {\"value\": {\"gpus\": [8, \"010\", 1.5e3, true, null, \"8\", \"x y\"], "
        "\"empty\": {}}, \"origin\": \"s/x.yaml:6:8\"}\n"
        "}\n");
    free(text);
    config_free(doc);
    arena_release(&arena);
    vec_free(&origins.list);
}

static void writes_a_struct_of_defaults(void **state)
{
    (void)state;
    struct sample sample = {.scale = HUGE_VAL};
    char *text = written(&sample, NULL);
    assert_non_null(strstr(text, "\"name\": {\"value\": null, \"origin\": \"default\"}"));
    assert_non_null(strstr(
        text, "\"scale\": {\"value\": null, \"origin\": \"default\"}")); /* JSON has no infinity */
    assert_non_null(strstr(text, "\"sweep\": {\"value\": null, \"origin\": \"default\"}"));
    free(text);
}

static char *string(const char *text)
{
    char *json = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&json, &n);
    json_write_string(out, text);
    fclose(out);
    return json;
}

static void strings_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
        {"a\nb\tc\x01\x1f\x7f", "\"a\\nb\\tc\\u0001\\u001f\\u007f\""},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
            "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""}, /* é, €, an emoji */
        {"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf", "\"\\u0085\\u2028\\u2029\\ufeff\""},
        /* not UTF-8: a stray byte, a cut character, an overlong '/', a surrogate, a value above
         * U+10FFFF */
        {"\xff", "\"\\ufffd\""},
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *json = string(cases[i].text);
        assert_string_equal(json, cases[i].json);
        free(json);
    }
}

static void every_character_reads_back(void **state)
{
    (void)state;
    static const uint32_t leads[] = {0, 0xc0, 0xe0, 0xf0};
    for (uint32_t c = 1; c <= 0x10ffff; c += c < 0x3000 || c > 0xd000 ? 1 : 97) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        if (c > 0x10200 && c < 0x10fff0)
            c = 0x10fff0;
        char text[8] = {0}, *end = text;
        int extra = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        *end++ = (char)(leads[extra] | (c >> 6 * extra));
        for (int i = extra - 1; i >= 0; i--)
            *end++ = (char)(0x80 | (c >> 6 * i & 0x3f));
        *end = 'x'; /* a blank at the end of a line would not count */
        char *json = string(text);
        struct config_doc *doc = NULL;
        struct diag diag = DIAG_INIT;
        if (config_parse(&doc, "f", json, strlen(json), &diag) != STATUS_OK)
            fail_msg("U+%04X: %s", c, diag.text);
        assert_string_equal(config_text(config_root(doc)), text);
        config_free(doc);
        free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_values_with_origins),
        cmocka_unit_test(writes_a_struct_of_defaults),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(every_character_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
