#include "sample.h"

#include "config/value.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

/* What one read gives. */
struct result {
    struct sample sample;
    enum status status;
    struct config_doc *doc;
    struct arena arena;
    struct config_origins origins;
    struct diag diag;
};

static void read_text(struct result *r, const char *name, const char *text)
{
    *r = (struct result){.sample = {.gpus = 8, .scale = 1, .train = {.micro_batch = 4}}};
    if (config_parse(&r->doc, name, text, strlen(text), &r->diag) != STATUS_OK)
        fail_msg("%s", r->diag.text);
    r->status = config_read(
        config_root(r->doc), &sample_table, &r->sample, &r->arena, &r->origins, &r->diag);
}

static void end(struct result *r)
{
    config_free(r->doc);
    arena_release(&r->arena);
    vec_free(&r->origins.list);
}

static const char full[] =
    "name: t5 11b\n"
    "cluster: ../topologies/a100.yaml\n"
    "gpus: 1_024\n"
    "latency: 9.5 us\n"
    "scale: -1.5e3\n"
    "noise: true\n"
    "bandwidth: {value: 2.039 TB/s, kind: datasheet, source: NVIDIA A100 datasheet}\n"
    "count: {value: 108, kind: fitted, source: own fit, std_error: 2}\n"
    "train:\n"
    "  micro_batch: 8\n"
    "  dropout: 10 %\n"
    "  strategy: fsdp\n"
    "sweep: [1, 2]\n";

static void reads_every_type(void **state)
{
    (void)state;
    struct result r;
    read_text(&r, "scenarios/x.yaml", full);
    assert_string_equal(r.diag.text, "");
    assert_int_equal(r.status, STATUS_OK);
    struct sample s = r.sample;
    assert_string_equal(s.name, "t5 11b");
    assert_string_equal(s.cluster, "scenarios/../topologies/a100.yaml");
    assert_int_equal(s.gpus, 1024);
    assert_true(s.latency_s == 9.5e-6);
    assert_true(s.scale == -1500);
    assert_true(s.noise);
    assert_true(s.bandwidth.value == 2.039 * 1e12 && s.bandwidth.std_error == 0);
    assert_int_equal(s.bandwidth.kind, QUANTITY_DATASHEET);
    assert_string_equal(s.bandwidth.source, "NVIDIA A100 datasheet");
    assert_true(s.count.value == 108 && s.count.std_error == 2);
    assert_int_equal(s.count.kind, QUANTITY_FITTED);
    assert_int_equal(s.train.micro_batch, 8);
    assert_true(s.train.dropout == 0.1);
    assert_int_equal(s.train.strategy, 1);
    assert_int_equal(config_count(s.sweep), 2);
    end(&r);
}

/* DeepSpeed's overlap_comm is null, false or true, and null as such is what its own configurations
 * say. */
static void null_is_a_name_where_it_is_one(void **state)
{
    (void)state;
    static const char *const with[] = {"false", "null", "true", NULL}, *const without[] = {
                                                                           "a", "b", NULL};
    static const char *const texts[] = {
        "overlap: null\n", "overlap: \"null\"\n", "{\"overlap\": null}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int has = 0; has < 2; has++) {
            const struct config_field field = {
                .key = "overlap", .type = FIELD_ENUM, .names = has ? with : without};
            struct config_doc *doc;
            struct arena arena = ARENA_INIT;
            struct diag diag = DIAG_INIT;
            int value = -1;
            assert_int_equal(
                config_parse(&doc, "x.yaml", texts[i], strlen(texts[i]), &diag), STATUS_OK);
            struct config_node node = config_find(config_root(doc), "overlap");
            assert_int_equal(config_read_scalar(node, &field, &value, &arena, &diag),
                has ? STATUS_OK : STATUS_INPUT);
            assert_int_equal(value, has ? 1 : -1);
            config_free(doc);
            arena_release(&arena);
        }
}

static void what_is_absent_keeps_its_default(void **state)
{
    (void)state;
    struct result r;
    read_text(&r, "x.yaml", "name: a\n");
    assert_int_equal(r.status, STATUS_OK);
    assert_int_equal(r.sample.gpus, 8);
    assert_int_equal(r.sample.train.micro_batch,
        4); /* the section is not there, so its required key is not asked for */
    assert_null(r.sample.cluster);
    assert_false(quantity_is_set(r.sample.bandwidth));
    assert_int_equal(r.origins.list.n, 1);
    end(&r);
}

static void origins_outlive_the_document(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int line, column;
    } want[] = {{"name", 1, 7}, {"cluster", 2, 10}, {"gpus", 3, 7}, {"latency", 4, 10},
        {"scale", 5, 8}, {"noise", 6, 8}, {"bandwidth", 7, 12}, {"count", 8, 8},
        {"train.micro_batch", 10, 16}, {"train.dropout", 11, 12}, {"train.strategy", 12, 13},
        {"sweep", 13, 8}};
    struct result r;
    read_text(&r, "scenarios/x.yaml", full);
    config_free(r.doc);
    r.doc = NULL;
    assert_int_equal(r.origins.list.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct config_origin got = r.origins.list.at[i];
        assert_string_equal(got.path, want[i].path);
        assert_string_equal(got.at.file, "scenarios/x.yaml");
        assert_int_equal(got.at.line, want[i].line);
        assert_int_equal(got.at.column, want[i].column);
        assert_int_equal(got.kind, ORIGIN_FILE);
    }
    assert_string_equal(r.sample.name, "t5 11b");
    end(&r);
}

static void paths_start_where_they_are_written(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *path;
    } cases[] = {
        {"scenarios/x.yaml", "name: a\ncluster: b.yaml", "scenarios/b.yaml"},
        {"/abs/x.yaml", "name: a\ncluster: b.yaml", "/abs/b.yaml"},
        {"/x.yaml", "name: a\ncluster: b.yaml", "/b.yaml"},
        {"x.yaml", "name: a\ncluster: c/b.yaml", "c/b.yaml"},
        {"scenarios/x.yaml", "name: a\ncluster: /etc/b.yaml", "/etc/b.yaml"},
        {"--x/y.yaml", "name: a\ncluster: b.yaml", "--x/b.yaml"}, /* a file, whatever its name */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result r;
        read_text(&r, cases[i].file, cases[i].text);
        assert_int_equal(r.status, STATUS_OK);
        assert_string_equal(r.sample.cluster, cases[i].path);
        config_set_origin(r.doc, ORIGIN_COMMAND_LINE); /* has no folder, whatever it is called */
        const char *written = strchr(cases[i].text, ':') + strlen(": a\ncluster: ");
        assert_int_equal(
            config_read(config_root(r.doc), &sample_table, &r.sample, &r.arena, NULL, &r.diag),
            STATUS_OK);
        assert_string_equal(r.sample.cluster, written);
        end(&r);
    }
}

static void whole_numbers_to_the_limits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"0", 0}, {"-0", 0}, {"+7", 7}, {"010", 10}, {"1_000_000", 1000000},
        {"9223372036854775807", INT64_MAX}, {"-9223372036854775808", INT64_MIN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        struct result r;
        snprintf(text, sizeof text, "name: a\ngpus: %s\n", cases[i].text);
        read_text(&r, "f", text);
        assert_string_equal(r.diag.text, "");
        assert_true(r.sample.gpus == cases[i].value);
        end(&r);
    }
}

/* Each text comes after the line "name: a". */
#define SAMPLE_KEYS "name, cluster, gpus, latency, scale, noise, bandwidth, count, train, sweep"
static const struct {
    const char *text, *message;
} bad[] = {
    /* keys */
    {"gpsu: 8", "f:2:1: error: unknown key 'gpsu' in a sample; did you mean 'gpus'?\n"},
    {"pipeline: 8", "f:2:1: error: unknown key 'pipeline' in a sample (known: " SAMPLE_KEYS ")\n"},
    {"train: {micro_batch: 1, micro_bach: 2}", "f:2:25: error: unknown key 'micro_bach' in a "
                                               "training set-up; did you mean 'micro_batch'?\n"},
    {"train: {dropout: 0.1}", "f:2:8: error: a training set-up needs the key 'micro_batch' "
                              "(sequences of a micro-step)\n"},
    {"train:\n  dropout: 0.1", "f:3:3: error: a training set-up needs the key 'micro_batch' "
                               "(sequences of a micro-step)\n"},
    /* kinds of nodes */
    {"gpus: [8]", "f:2:7: error: 'gpus' is a list; a whole number is wanted\n"},
    {"gpus: null", "f:2:7: error: 'gpus' is null; a whole number is wanted\n"},
    {"cluster: {a: b}", "f:2:10: error: 'cluster' is a mapping; a path is wanted\n"},
    {"latency: ~", "f:2:10: error: 'latency' is null; a number is wanted\n"},
    {"noise: []", "f:2:8: error: 'noise' is a list; true or false is wanted\n"},
    {"train: 8", "f:2:8: error: 'train' is a single value; a mapping is wanted\n"},
    {"train: {micro_batch: 8, strategy: {}}",
        "f:2:35: error: 'strategy' is a mapping; a word is wanted\n"},
    {"bandwidth: 2 TB/s",
        "f:2:12: error: 'bandwidth' is a single value; a mapping {value: 2 TB/s, kind: ..., "
        "source: \"...\"} is wanted, of kind datasheet, measured, fitted or assumed\n"},
    /* whole numbers */
    {"gpus: 1.0005k",
        "f:2:7: error: '1.0005k' is not a whole number (examples: 8, 1_000_000, 8k)\n"},
    {"gpus: 8,16", "f:2:7: error: '8,16' is not a whole number (examples: 8, 1_000_000, 8k); "
                   "several of them to sweep are a list, as [8, 16]\n"},
    {"gpus: 8.5", "f:2:7: error: '8.5' is not a whole number (examples: 8, 1_000_000, 8k)\n"},
    {"gpus: 0x8", "f:2:7: error: '0x8' is not a whole number (examples: 8, 1_000_000, 8k)\n"},
    {"gpus: 1__0", "f:2:7: error: '1__0' is not a whole number (examples: 8, 1_000_000, 8k)\n"},
    {"gpus: 1_", "f:2:7: error: '1_' is not a whole number (examples: 8, 1_000_000, 8k)\n"},
    {"gpus: _1", "f:2:7: error: '_1' is not a whole number (examples: 8, 1_000_000, 8k)\n"},
    {"gpus: +", "f:2:7: error: '+' is not a whole number (examples: 8, 1_000_000, 8k)\n"},
    {"gpus: \"8\"", "f:2:7: error: '8' in quotes is a text; a whole number is wanted\n"},
    {"gpus: 9223372036854775808", "f:2:7: error: '9223372036854775808' does not fit in 64 bits\n"},
    {"gpus: -9223372036854775809",
        "f:2:7: error: '-9223372036854775809' does not fit in 64 bits\n"},
    {"train: {micro_batch: 0}", "f:2:22: error: '0' is too small; the least allowed is 1\n"},
    {"train: {micro_batch: 65537}",
        "f:2:22: error: '65537' is too large; the most allowed is 65536\n"},
    /* numbers */
    {"latency: 5 GB", "f:2:10: error: '5 GB' is not a time (examples: 5 us, 1.2 ms)\n"},
    {"latency: 5", "f:2:10: error: '5' has no unit; a time needs one (examples: 5 us, 1.2 ms)\n"},
    {"latency: 5 ps", "f:2:10: error: '5 ps' is too small; the least allowed is 1 ns\n"},
    {"scale: big", "f:2:8: error: 'big' is not a number (examples: 4, 0.5, 1e6)\n"},
    {"scale: .inf", "f:2:8: error: '.inf' is not a number (examples: 4, 0.5, 1e6)\n"},
    {"scale: '1'", "f:2:8: error: '1' in quotes is a text; a number is wanted\n"},
    {"train: {micro_batch: 1, dropout: 110 %}",
        "f:2:34: error: '110 %' is too large; the most allowed is 1\n"},
    /* booleans and words */
    {"noise: yes", "f:2:8: error: 'yes' is neither true nor false\n"},
    {"noise: True", "f:2:8: error: 'True' is neither true nor false\n"},
    {"noise: 'true'", "f:2:8: error: 'true' in quotes is a text; true or false is wanted\n"},
    {"train: {micro_batch: 1, strategy: fspd}",
        "f:2:35: error: 'fspd' is not one of ddp, fsdp, zero1; did you mean 'fsdp'?\n"},
    {"train: {micro_batch: 1, strategy: pipeline}",
        "f:2:35: error: 'pipeline' is not one of ddp, fsdp, zero1\n"},
    {"cluster: ''", "f:2:10: error: '' is not a path\n"},
    /* sourced values */
    {"count: {value: 1, kind: assumed}", "f:2:8: error: a sourced value needs the key 'source'\n"},
    {"count: {kind: guess}",
        "f:2:15: error: 'guess' is not one of datasheet, measured, fitted, assumed\n"
        "f:2:8: error: a sourced value needs the key 'value'\n"
        "f:2:8: error: a sourced value needs the key 'source'\n"},
    {"count: {value: 1, kind: assumed, source: ''}",
        "f:2:42: error: 'source' must say where the value comes from\n"},
    {"count: {value: 1, kind: fitted, source: x}",
        "f:2:8: error: a fitted value needs the key 'std_error'\n"},
    {"count: {value: 1, kind: fitted, source: x, std_error: -1}",
        "f:2:55: error: '-1' is too small; the least allowed is 0\n"},
    {"count: {value: 1, kind: assumed, source: x, dimension: B}",
        "f:2:45: error: unknown key 'dimension' in a sourced value (known: value, kind, source, "
        "fit, std_error)\n"},
    {"count: {value: 1, kind: assumed, source: x, fit: a/fit}",
        "f:2:50: error: 'fit' names a parameter of a fit, and this value is assumed; leave it "
        "out\n"},
    {"bandwidth: {value: 2 us, kind: assumed, source: x}",
        "f:2:20: error: '2 us' is not a bandwidth (examples: 450 GB/s, 200 Gb/s (bits))\n"},
    {"bandwidth: {value: 2e15 B/s, kind: assumed, source: x}",
        "f:2:20: error: '2e15 B/s' is too large; the most allowed is 1 PB/s\n"},
    /* more than half of the keys unknown, and more than typing errors explain: another kind of
     * document, one error */
    {"a: 1\nb: 1\nc: 1\nd: 1",
        "f:2:1: error: this does not look like a sample: 4 of its 5 keys are unknown there, the "
        "first is 'a' (known: " SAMPLE_KEYS ")\n"},
    {"a: 1\nb: 1", "f:2:1: error: unknown key 'a' in a sample (known: " SAMPLE_KEYS ")\n"
                   "f:3:1: error: unknown key 'b' in a sample (known: " SAMPLE_KEYS ")\n"},
    /* all in one go, in the order of the text */
    {"gpus: x\nnoise: y\nnmae: z",
        "f:2:7: error: 'x' is not a whole number (examples: 8, 1_000_000, 8k)\n"
        "f:3:8: error: 'y' is neither true nor false\n"
        "f:4:1: error: unknown key 'nmae' in a sample; did you mean 'name'?\n"},
};

static void bad_values_are_reported_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena = ARENA_INIT;
        struct result r;
        read_text(&r, "f", arena_printf(&arena, "name: a\n%s\n", bad[i].text));
        if (strcmp(r.diag.text, bad[i].message) != 0)
            fail_msg("%s\ngives:\n%sinstead of:\n%s", bad[i].text, r.diag.text, bad[i].message);
        assert_int_equal(r.status, STATUS_INPUT);
        end(&r);
        arena_release(&arena);
    }
}

static void a_bad_value_leaves_the_default(void **state)
{
    (void)state;
    struct result r;
    read_text(&r, "f", "name: a\ngpus: x\nscale: y\ncount: {value: 1, kind: fitted, source: x}\n");
    assert_int_equal(r.sample.gpus, 8);
    assert_true(r.sample.scale == 1);
    assert_false(quantity_is_set(r.sample.count));
    assert_int_equal(r.origins.list.n, 1);
    end(&r);
}

static void the_document_as_a_whole(void **state)
{
    (void)state;
    struct result r;
    read_text(&r, "f", "[1]");
    assert_string_equal(
        r.diag.text, "f:1:1: error: a sample is a mapping: lines of 'key: value'\n");
    end(&r);
    read_text(&r, "f", "# a comment\n\ngpus: 8\n");
    assert_string_equal(r.diag.text, "f:3:1: error: a sample needs the key 'name'\n");
    end(&r);
    read_text(&r, "f", "{}");
    assert_string_equal(r.diag.text, "f:1:1: error: a sample needs the key 'name'\n");
    end(&r);
    read_text(&r, "f",
        "{\"name\": \"a\", \"latency\": \"5 us\"}"); /* JSON has no other way to write a unit */
    assert_int_equal(r.status, STATUS_OK);
    assert_true(r.sample.latency_s == 5e-6);
    end(&r);
}

/* config_assign() with the value given as a text, as --set does. */
static enum status assign(struct result *r, const char *path, const char *text)
{
    struct config_doc *doc = NULL;
    if (config_parse(&doc, "--set", text, strlen(text), &r->diag) != STATUS_OK)
        fail_msg("%s", r->diag.text);
    r->diag = DIAG_INIT;
    config_set_origin(doc, ORIGIN_COMMAND_LINE);
    enum status status = config_assign(path, (struct source_pos){"--set", 1, 1}, config_root(doc),
        &sample_table, &r->sample, &r->arena, &r->origins, &r->diag);
    config_free(doc);
    return status;
}

static void assigns_one_field(void **state)
{
    (void)state;
    struct result r;
    read_text(&r, "scenarios/x.yaml", full);
    assert_int_equal(assign(&r, "train.micro_batch", "16"), STATUS_OK);
    assert_int_equal(r.sample.train.micro_batch, 16);
    assert_int_equal(r.sample.train.strategy, 1); /* as it was */
    assert_int_equal(assign(&r, "cluster", "b.yaml"), STATUS_OK);
    assert_string_equal(r.sample.cluster, "b.yaml");
    assert_int_equal(assign(&r, "count", "{value: 3, kind: assumed, source: what if}"), STATUS_OK);
    assert_true(r.sample.count.value == 3);
    const struct config_origin *last = &r.origins.list.at[r.origins.list.n - 1];
    assert_string_equal(last->path, "count");
    assert_string_equal(last->at.file, "--set");
    assert_int_equal(last->kind, ORIGIN_COMMAND_LINE);
    end(&r);
}

/* Whatever name a document uses, origins and messages have the key; both names at once are an
 * error. */
static void an_alias_is_read_as_its_key(void **state)
{
    (void)state;
    struct result r;
    read_text(&r, "f", "name: a\ntrain: {batch_of_step: 16}\n");
    assert_string_equal(r.diag.text, "");
    assert_int_equal(r.sample.train.micro_batch, 16);
    assert_int_equal(r.origins.list.n, 2);
    assert_string_equal(r.origins.list.at[1].path, "train.micro_batch");
    assert_int_equal(assign(&r, "train.batch_of_step", "32"), STATUS_OK);
    assert_int_equal(r.sample.train.micro_batch, 32);
    assert_string_equal(r.origins.list.at[2].path, "train.micro_batch");
    assert_int_equal(assign(&r, "batch_of_step", "8"), STATUS_INPUT);
    assert_string_equal(r.diag.text,
        "--set:1:1: error: unknown key 'batch_of_step' in a sample; did you mean "
        "'train.micro_batch'?\n");
    assert_int_equal(assign(&r, "train.batch_of_step", "x"), STATUS_INPUT);
    assert_string_equal(
        config_key_path(&sample_table, "train.batch_of_step", &r.arena), "train.micro_batch");
    assert_string_equal(
        config_key_path(&sample_table, "train.batch_of", &r.arena), "train.batch_of");
    end(&r);
    read_text(&r, "f", "name: a\ntrain: {batch_of_step: 16, micro_batch: 8}\n");
    assert_string_equal(r.diag.text,
        "f:2:9: error: 'batch_of_step' is another name for 'micro_batch', which is set here too\n");
    assert_int_equal(r.status, STATUS_INPUT);
    end(&r);
}

static void bad_paths_are_reported_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *path, *text, *message;
    } cases[] = {
        {"train.micro_bacth", "8",
            "--set:1:1: error: unknown key 'micro_bacth' in a training set-up; did you mean "
            "'micro_batch'?\n"},
        {"trian.micro_batch", "8",
            "--set:1:1: error: unknown key 'trian' in a sample; did you mean 'train'?\n"},
        {"micro_batch", "8",
            "--set:1:1: error: unknown key 'micro_batch' in a sample; did you mean "
            "'train.micro_batch'?\n"},
        {"micro_bach", "8",
            "--set:1:1: error: unknown key 'micro_bach' in a sample; did you mean "
            "'train.micro_batch'?\n"},
        {"train", "{micro_batch: 8}",
            "--set:1:1: error: 'train' holds several values; set one, as in 'train.micro_batch'\n"},
        {"gpus.x", "8", "--set:1:1: error: 'gpus' is a single value; it has no key 'x'\n"},
        {"train.", "8",
            "--set:1:1: error: unknown key '' in a training set-up (known: micro_batch, dropout, "
            "strategy)\n"},
        {"", "8",
            "--set:1:1: error: unknown key '' in a sample (known: name, cluster, gpus, latency, "
            "scale, noise, bandwidth, count, train, sweep)\n"},
        {"train.micro_batch", " many",
            "--set:1:2: error: 'many' is not a whole number (examples: 8, 1_000_000, 8k)\n"},
    };
    struct result r;
    read_text(&r, "f", full);
    int n = r.origins.list.n;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(assign(&r, cases[i].path, cases[i].text), STATUS_INPUT);
        assert_string_equal(r.diag.text, cases[i].message);
    }
    assert_int_equal(r.origins.list.n, n);
    assert_int_equal(r.sample.train.micro_batch, 8);
    end(&r);
}

/* A field by its path, where there is one; a list of mappings. */
static void finds_fields_and_reads_lists(void **state)
{
    (void)state;
    size_t at = 0;
    assert_ptr_equal(
        config_field_find(&sample_table, "train.dropout", &at), &sample_train_fields[1]);
    assert_int_equal(at, offsetof(struct sample, train) + offsetof(struct sample_train, dropout));
    static const char *const none[] = {"train.dropuot", "gpus.x", "", "train."};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(config_field_find(&sample_table, none[i], &at));
    static const struct {
        const char *text, *message;
        int n;
    } cases[] = {{"[]", "", 0}, {"[{micro_batch: 3}, {micro_batch: 5, dropout: 10 %}]", "", 2},
        {"{micro_batch: 3}", "l:1:1: error: a list is wanted, each item a training set-up\n", 0},
        {"[{micro_batch: 3}, {}]",
            "l:1:20: error: a training set-up needs the key 'micro_batch' (sequences of a "
            "micro-step)\n",
            2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config_doc *doc = NULL;
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        int n = -1;
        assert_int_equal(
            config_parse(&doc, "l", cases[i].text, strlen(cases[i].text), &diag), STATUS_OK);
        const struct sample_train *list = config_read_list(
            config_root(doc), &sample_train_table, sizeof *list, &n, &arena, &diag);
        assert_string_equal(diag.text, cases[i].message);
        assert_int_equal(n, cases[i].n);
        assert_true(n < 2 || list[0].micro_batch == 3);
        assert_true(i != 1 || (list[1].micro_batch == 5 && list[1].dropout > 0.09));
        config_free(doc);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_type),
        cmocka_unit_test(null_is_a_name_where_it_is_one),
        cmocka_unit_test(what_is_absent_keeps_its_default),
        cmocka_unit_test(origins_outlive_the_document),
        cmocka_unit_test(paths_start_where_they_are_written),
        cmocka_unit_test(whole_numbers_to_the_limits),
        cmocka_unit_test(bad_values_are_reported_exactly),
        cmocka_unit_test(a_bad_value_leaves_the_default),
        cmocka_unit_test(the_document_as_a_whole),
        cmocka_unit_test(assigns_one_field),
        cmocka_unit_test(an_alias_is_read_as_its_key),
        cmocka_unit_test(bad_paths_are_reported_exactly),
        cmocka_unit_test(finds_fields_and_reads_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
