#include "scenario/identity.h"

#include "workspace.h"

#include <string.h>

static struct scenario_identity of(const struct scenario_point *point)
{
    struct scenario_identity identity;
    scenario_identify(&identity, point);
    return identity;
}

/* What accompanies a result, or names a file whose content counts. */
static bool is_label(const char *path)
{
    static const char *const labels[] = {"name", "description", "assumptions", "model", "stack",
        "cluster.topology", "published.file", "published.figure", "published.readings", "force"};
    if (strncmp(path, "goodput.", strlen("goodput.")) == 0) /* a step does not read it */
        return true;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strcmp(labels[i], path) == 0)
            return true;
    return false;
}

static void change(const struct config_field *field, void *at)
{
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_PATH:
        *(const char **)at = "something else";
        return;
    case FIELD_INT:
        *(int64_t *)at += 1;
        return;
    case FIELD_NUMBER:
        *(double *)at += 0.125;
        return;
    case FIELD_BOOL:
        *(bool *)at = !*(bool *)at;
        return;
    case FIELD_ENUM:
        *(int *)at = *(int *)at == 0;
        return;
    case FIELD_SOURCED:
        ((struct quantity *)at)->value += 0.125;
        ((struct quantity *)at)->kind = QUANTITY_ASSUMED;
        return;
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
    case FIELD_NODE:
        break;
    }
    fail_msg("field %s has no value", field->key);
}

/* Changes every value of a struct in the point, one at a time; counts them. */
static int change_each(
    struct scenario_point *point, const struct config_table *table, void *at, const char *prefix)
{
    struct scenario_identity before = of(point);
    int n = 0;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        void *value = (unsigned char *)at + field->offset;
        char path[128];
        snprintf(path, sizeof path, "%s%s", prefix, field->key);
        if (field->type == FIELD_OVERRIDES)
            continue; /* stands in the hardware */
        if (field->type == FIELD_SECTION) {
            snprintf(path, sizeof path, "%s%s.", prefix, field->key);
            n += change_each(point, field->section, value, path);
            continue;
        }
        struct scenario_point kept = *point;
        change(field, value);
        bool same = strcmp(of(point).text, before.text) == 0;
        *point = kept;
        bool path_of_file = strcmp(path, "node.gpu") == 0 || strcmp(path, "cluster.node") == 0 ||
                            strcmp(field->key, "extends") == 0;
        if (same != (is_label(path) || path_of_file))
            fail_msg("%s %s", path, same ? "does not count" : "counts");
        n++;
    }
    return n;
}

static void all_that_decides_counts_and_nothing_else(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE, NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    struct scenario_point point = loaded->set.points[0];
    assert_true(change_each(&point, &scenario_table, &point.options, "") > 60);
    assert_true(change_each(&point, &model_shape_table, &point.model.shape, "shape.") > 30);
    assert_true(change_each(&point, &hw_gpu_table, &point.hw.gpu, "gpu.") > 30);
    assert_true(change_each(&point, &hw_node_table, &point.hw.node, "node.") > 10);
    assert_true(change_each(&point, &hw_cluster_table, &point.hw.cluster, "cluster.") > 10);
    unload(loaded);
}

/* The same job under another name, in a file with another text. */
static void another_file_with_the_same_job_is_alike(void **state)
{
    (void)state;
    struct loaded *one = load_text(BASE, NULL, 0);
    struct loaded *two = load_text(
        "# a comment\n" BASE "description: another\nnoise: {drawn_speeds: false}\n", NULL, 0);
    assert_string_equal(two->diag.text, "");
    assert_string_equal(of(&one->set.points[0]).text, of(&two->set.points[0]).text);
    assert_true(scenario_digest_label(0, &one->set.points[0]) !=
                scenario_digest_label(0, &two->set.points[0]));
    assert_int_equal(strlen(of(&one->set.points[0]).text), IDENTITY_BYTES - 1);
    unload(two);
    unload(one);
}

/* Samples depend on which noise is the cluster's, and on which costs of the host are nobody's:
 * setting one to the value that it has takes it out of the draw. */
static void samples_depend_on_what_is_left_to_the_draw(void **state)
{
    (void)state;
    const struct scenario_uncertainty uncertainty = {0};
    struct scenario_identity base, set;
    struct loaded *one = load_text(BASE, NULL, 0);
    struct loaded *two = load_text(BASE "host: {view: 0us}\n", NULL, 0);
    scenario_identify_samples(&base, &one->set.points[0], &uncertainty);
    two->set.points[0].options.strategy.host.view_s =
        one->set.points[0].options.strategy.host.view_s;
    assert_string_equal(of(&one->set.points[0]).text, of(&two->set.points[0]).text);
    scenario_identify_samples(&set, &two->set.points[0], &uncertainty);
    assert_string_not_equal(base.text, set.text);
    unload(two);
    unload(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_that_decides_counts_and_nothing_else),
        cmocka_unit_test(another_file_with_the_same_job_is_alike),
        cmocka_unit_test(samples_depend_on_what_is_left_to_the_draw)};
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
