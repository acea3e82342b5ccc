/* FIELD_OVERRIDES: numbers of a file that is read elsewhere, one by one. */
#include "config/config.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

struct link {
    struct quantity speed;
};
struct card {
    const char *name, *image;
    struct quantity memory;
    int64_t seed;
    int shape;
    struct link link;
};
struct rack {
    struct quantity slots;
};
struct job {
    int64_t cards;
    struct rack rack;
    struct card card;
};

static const struct config_field link_fields[] = {{.key = "speed",
    .type = FIELD_SOURCED,
    .offset = offsetof(struct link, speed),
    .dimension = DIM_BYTES_PER_S,
    .min = 1e8,
    .max = 1e15,
    .required = true}};
static const struct config_table link_table = {
    .what = "a link", .fields = link_fields, .n_fields = 1};
static const char *const shapes[] = {"flat", "round", NULL};
static const struct config_field card_fields[] = {
    {.key = "name", .type = FIELD_STRING, .offset = offsetof(struct card, name), .required = true},
    {.key = "image", .type = FIELD_PATH, .offset = offsetof(struct card, image)},
    {.key = "memory",
        .type = FIELD_SOURCED,
        .offset = offsetof(struct card, memory),
        .dimension = DIM_BYTES},
    {.key = "seed", .type = FIELD_INT, .offset = offsetof(struct card, seed), .max = 100},
    {.key = "shape", .type = FIELD_ENUM, .offset = offsetof(struct card, shape), .names = shapes},
    {.key = "link",
        .type = FIELD_SECTION,
        .offset = offsetof(struct card, link),
        .section = &link_table},
};
static const struct config_table card_table = {
    .what = "a card", .fields = card_fields, .n_fields = 6};
static const struct config_field rack_fields[] = {{.key = "slots",
    .type = FIELD_SOURCED,
    .offset = offsetof(struct rack, slots),
    .required = true}};
static const struct config_table rack_table = {
    .what = "a rack", .fields = rack_fields, .n_fields = 1};
static const struct config_field job_fields[] = {
    {.key = "cards", .type = FIELD_INT, .offset = offsetof(struct job, cards), .help = "how many"},
    {.key = "",
        .type = FIELD_OVERRIDES,
        .offset = offsetof(struct job, rack),
        .help = "of it",
        .section = &rack_table},
    {.key = "card",
        .type = FIELD_OVERRIDES,
        .offset = offsetof(struct job, card),
        .help = "of each",
        .section = &card_table},
};
static const struct config_table job_table = {.what = "a job", .fields = job_fields, .n_fields = 3};

struct given {
    struct job job;
    struct arena arena;
    struct config_origins origins;
    struct diag diag;
};

static struct given nothing(void)
{
    struct given given = {0};
    config_give_nothing(&given.job.rack, &rack_table);
    config_give_nothing(&given.job.card, &card_table);
    return given;
}

static void end(struct given *given)
{
    arena_release(&given->arena);
    vec_free(&given->origins.list);
}

static void read_text(struct given *given, const char *text)
{
    struct config_doc *doc = NULL;
    assert_int_equal(config_parse(&doc, "x.yaml", text, strlen(text), &given->diag), STATUS_OK);
    config_read(
        config_root(doc), &job_table, &given->job, &given->arena, &given->origins, &given->diag);
    config_free(doc);
}

static void assign(struct given *given, const char *path, const char *text)
{
    struct config_doc *doc = NULL;
    assert_int_equal(config_parse(&doc, "--set x", text, strlen(text), &given->diag), STATUS_OK);
    config_set_origin(doc, ORIGIN_COMMAND_LINE);
    config_assign(path, (struct source_pos){.file = "--set x"}, config_root(doc), &job_table,
        &given->job, &given->arena, &given->origins, &given->diag);
    config_free(doc);
}

static void a_number_stands_alone_or_says_its_source(void **state)
{
    (void)state;
    struct given given = nothing();
    read_text(&given, "cards: 2\nslots: 4\ncard:\n  memory: 96 GiB\n  link:\n"
                      "    speed: {value: 8 Gb/s, kind: measured, source: me}\n");
    assert_string_equal(given.diag.text, "");
    assert_true(given.job.card.memory.value == 96 * 0x1p30);
    assert_int_equal(given.job.card.memory.kind, QUANTITY_ASSUMED);
    assert_string_equal(given.job.card.memory.source, "x.yaml:4");
    assert_true(given.job.card.link.speed.value == 1e9);
    assert_int_equal(given.job.card.link.speed.kind, QUANTITY_MEASURED);
    assert_string_equal(given.job.card.link.speed.source, "me");
    assert_true(given.job.rack.slots.value == 4); /* of the section that stands beside */
    assign(&given, "card.memory", "1 GB");
    assert_true(given.job.card.memory.value == 1e9);
    assert_string_equal(given.job.card.memory.source, "--set x");
    assert_string_equal(given.origins.list.at[given.origins.list.n - 1].path, "card.memory");
    end(&given);
}

static void nothing_is_required_and_what_is_not_given_stays(void **state)
{
    (void)state;
    struct given given = nothing();
    read_text(&given, "cards: 2\ncard: {shape: round}\n");
    assert_string_equal(given.diag.text, "");
    struct card card = {
        .name = "A", .memory = {1e9, 0, QUANTITY_DATASHEET, "d", NULL}, .seed = 7, .shape = 0};
    struct rack rack = {.slots = {8, 0, QUANTITY_DATASHEET, "d", NULL}};
    config_take_given(&card, &given.job.card, &card_table);
    config_take_given(&rack, &given.job.rack, &rack_table);
    assert_string_equal(card.name, "A");
    assert_true(card.memory.value == 1e9);
    assert_int_equal(card.seed, 7);
    assert_int_equal(card.shape, 1);
    assert_true(rack.slots.value == 8);
    assert_true(config_is_given(&job_fields[2], &given.job.card));
    assert_false(config_is_given(&job_fields[1], &given.job.rack));
    end(&given);
}

/* What is not given is not there: JSON of jobs without overrides is what it was. */
static void json_has_what_is_given(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *json;
    } cases[] = {
        {"cards", "3", "{\n  \"cards\": {\"value\": 3, \"origin\": \"--set x:1:1\"}\n}\n"},
        {"slots", "4",
            "{\n  \"cards\": {\"value\": 0, \"origin\": \"default\"},\n  \"slots\": {\"value\": 4, "
            "\"kind\": \"assumed\", \"source\": \"--set x\", \"std_error\": 0, \"origin\": \"--set "
            "x:1:1\"}\n}\n"},
        {"card.link.speed", "1 GB/s",
            "{\n  \"cards\": {\"value\": 0, \"origin\": \"default\"},\n  \"card\": {\n    "
            "\"link\": {\n      \"speed\": {\"value\": 1000000000, \"unit\": \"B/s\", \"kind\": "
            "\"assumed\", \"source\": \"--set x\", \"std_error\": 0, \"origin\": \"--set "
            "x:1:1\"}\n    }\n  }\n}\n"},
        {"card.seed", "0",
            "{\n  \"cards\": {\"value\": 0, \"origin\": \"default\"},\n  \"card\": {\n    "
            "\"seed\": {\"value\": 0, \"origin\": \"--set x:1:1\"}\n  }\n}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given given = nothing();
        assign(&given, cases[i].path, cases[i].value);
        assert_string_equal(given.diag.text, "");
        char *json = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&json, &n);
        config_write_json(out, &job_table, &given.job, &given.origins);
        fclose(out);
        assert_string_equal(json, cases[i].json);
        free(json);
        end(&given);
    }
}

static void mistakes_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *expected;
    } cases[] = {
        {"card.link.speed", "1 GB", "--set x:1:1: error: '1 GB' is not a bandwidth"},
        {"card.link.speed", "8", "--set x:1:1: error: '8' has no unit; a bandwidth needs one"},
        {"card.link.speed", "8 b/s",
            "--set x:1:1: error: '8 b/s' is too small; the least allowed is 100 MB/s"},
        {"card.link.sped", "1 GB/s", "unknown key 'sped' in a link; did you mean 'speed'?"},
        {"speed", "1 GB/s", "unknown key 'speed' in a job; did you mean 'card.link.speed'?"},
        {"slts", "4", "unknown key 'slts' in a job; did you mean 'slots'?"},
        {"link", "4", "unknown key 'link' in a job; did you mean 'card.link'?"},
        {"bank", "4", "unknown key 'bank' in a job (known: cards, card, slots)"},
        {"card.name", "B", "'name' of a card cannot be set; write a file that says 'extends:'"},
        {"card.image", "b.yaml", "'image' of a card cannot be set"},
        {"card", "4", "'card' holds several values; set one, as in 'card.memory'"},
        {"card.shape", "square", "'square' is not one of flat, round"},
        {"card.seed", "101", "'101' is too large; the most allowed is 100"},
        {"card.memory", "{value: 1 GB}", "a sourced value needs the key 'kind'"},
        {".slots", "4", "unknown key ''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given given = nothing();
        assign(&given, cases[i].path, cases[i].value);
        if (!strstr(given.diag.text, cases[i].expected))
            fail_msg("%s=%s: %s", cases[i].path, cases[i].value, given.diag.text);
        end(&given);
    }
}

static void the_reference_names_them(void **state)
{
    (void)state;
    struct given given = nothing();
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    config_print_reference(out, &job_table, &given.job);
    fclose(out);
    assert_string_equal(
        text, "cards: 0\n    how many\nKEY: -\n    of it\ncard.KEY: -\n    of each\n");
    free(text);
    end(&given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_stands_alone_or_says_its_source),
        cmocka_unit_test(nothing_is_required_and_what_is_not_given_stays),
        cmocka_unit_test(json_has_what_is_given),
        cmocka_unit_test(mistakes_are_reported),
        cmocka_unit_test(the_reference_names_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
