/* Settings that somebody gave and that the job does not read: those of another strategy, a sharding
 * group where nothing is sharded in groups ... One warning for each of them.
 *
 * A setting's table says where it counts (config_condition()); conditions on the model are decided
 * here. A setting at its default may always be said. Nothing is warned of that any point of the
 * sweep reads. */
#include "scenario/file.h"

#include <string.h>

/* A setting, in struct scenario. */
struct unread_setting {
    const char *path;
    const struct config_field *field;
    size_t at;
};

struct unread {
    const struct scenario_point *points;
    int n;
    struct scenario defaults;
    struct arena scratch;
    struct diag *diag;
};

/* Neither a default nor the cluster's or the stack's. */
static bool unread_is_said(enum origin_kind kind)
{
    return kind == ORIGIN_FILE || kind == ORIGIN_COMMAND_LINE || kind == ORIGIN_TABLE;
}

/* Said together with what decides: a file's settings are meant for the strategy that the file
 * itself names, not for one from the command line. */
static bool unread_is_meant(
    const struct scenario_point *point, enum origin_kind kind, const char *decider)
{
    enum origin_kind decided = scenario_origin(point, decider).kind;
    return unread_is_said(kind) &&
           (kind == ORIGIN_COMMAND_LINE || !unread_is_said(decided) || decided == kind);
}

/* Where somebody says what begins with prefix, or is path alone, and means it; NULL: nobody does.
 */
static const struct config_origin *unread_given(
    const struct scenario_point *point, const char *path, bool section, const char *decider)
{
    for (int i = 0; i < point->origins.list.n; i++) {
        const struct config_origin *origin = &point->origins.list.at[i];
        bool is = section ? strncmp(origin->path, path, strlen(path)) == 0
                          : strcmp(origin->path, path) == 0;
        if (is && unread_is_meant(point, origin->kind, decider))
            return origin;
    }
    return NULL;
}

static void unread_warn(
    struct unread *unread, const struct config_origin *given, const struct config_unmet *unmet)
{
    diag_warn(unread->diag, given->at,
        "'%s' is not read where '%s' is %s; leave it out, or take %s", given->path, unmet->path,
        unmet->value, unmet->wanted);
}

/* "model = experts": what a setting needs of the model and of how it is cut. */
static enum config_decided unread_decide(
    struct config_unmet *unmet, const char *part, const void *self)
{
    const struct scenario_point *point = self;
    const struct model_shape *shape = &point->model.shape;
    const struct {
        const char *part, *wanted;
        bool holds;
    } of_model[] = {
        {"model = experts", "a mixture of experts", shape->moe.experts > 0},
        {"model = shared experts", "a mixture of experts that GPUs share",
            point->options.strategy.parallelism.model.expert > 1},
        {"model = images", "a model of images", shape->image_size > 0},
    };
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++) {
        if (strcmp(part, of_model[i].part) != 0)
            continue;
        *unmet = (struct config_unmet){"model", shape->name, of_model[i].wanted};
        return of_model[i].holds ? CONFIG_MET : CONFIG_UNMET;
    }
    return CONFIG_NOT_DECIDED;
}

#define UNREAD_SECTION(key, name, help) key,
static const char *const unread_sections[] = {STRATEGY_SECTIONS(UNREAD_SECTION)};
enum { UNREAD_SECTIONS = sizeof unread_sections / sizeof *unread_sections };

/* It stands in a section that the point's strategy does not read, of which unread_check_section()
 * warns. */
static bool unread_is_elsewhere(const struct scenario_point *point, const char *path)
{
    for (int i = 0; i < UNREAD_SECTIONS; i++) {
        size_t n = strlen(unread_sections[i]);
        if (strncmp(path, unread_sections[i], n) == 0 && path[n] == '.')
            return !strategy_reads_section(&point->options.strategy, unread_sections[i]);
    }
    return false;
}

static void unread_check_setting(struct unread *unread, const struct unread_setting *setting)
{
    struct config_unmet first = {0};
    const struct config_origin *given = NULL;
    struct arena *arena = &unread->scratch;
    const char *usual =
        config_value_text(setting->field, (const char *)&unread->defaults + setting->at, arena);
    for (int i = 0; i < unread->n; i++) {
        const struct scenario_point *point = &unread->points[i];
        struct config_unmet unmet;
        const char *value =
            config_value_text(setting->field, (const char *)&point->options + setting->at, arena);
        if (unread_is_elsewhere(point, setting->path) || strcmp(value, usual) == 0 ||
            config_condition(&unmet, setting->field->when, &scenario_table, &point->options,
                unread_decide, point, arena))
            return;
        first = i == 0 ? unmet : first;
        given = given ? given : unread_given(point, setting->path, false, unmet.path);
    }
    if (given)
        unread_warn(unread, given, &first);
}

static void unread_check_table(
    struct unread *unread, const struct config_table *table, const char *prefix, size_t at)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *path = arena_printf(&unread->scratch, "%s%s", prefix, field->key);
        if (field->type == FIELD_SECTION)
            unread_check_table(unread, field->section, arena_printf(&unread->scratch, "%s.", path),
                at + field->offset);
        else if (field->when)
            unread_check_setting(unread, &(struct unread_setting){path, field, at + field->offset});
    }
}

/* A section of a strategy, where no point's strategy reads it. */
static void unread_check_section(struct unread *unread, const char *section)
{
    const struct config_origin *given = NULL;
    const char *prefix = arena_printf(&unread->scratch, "%s.", section);
    for (int i = 0; i < unread->n; i++) {
        if (strategy_reads_section(&unread->points[i].options.strategy, section))
            return;
        given = given ? given : unread_given(&unread->points[i], prefix, true, "strategy");
    }
    struct config_unmet unmet = {
        "strategy", strategy_kind_names[unread->points[0].options.strategy.kind], section};
    if (given)
        unread_warn(unread, given, &unmet);
}

/* A list of GPUs none of which any point's job has; the list of a point may differ from another's.
 */
static void unread_check_slow_gpus(const struct unread *unread)
{
    const struct scenario_point *given = NULL;
    for (int i = 0; i < unread->n; i++) {
        const struct scenario_cluster_options *cluster = &unread->points[i].options.cluster;
        if (!cluster->slow_gpus || !*cluster->slow_gpus)
            continue;
        if (unread->points[i].options.exec.gpu_events.n > 0)
            return;
        given = &unread->points[i];
    }
    if (given)
        diag_warn(unread->diag, scenario_origin(given, "cluster.slow_gpus").at,
            "the job has none of the GPUs '%s': its %lld are on node0 to node%lld",
            given->options.cluster.slow_gpus, (long long)given->options.cluster.gpus,
            (long long)(given->options.cluster.gpus - 1) / hw_gpus_per_node(&given->hw));
}

void warn_unread(const struct scenario_point *points, int n, struct diag *diag)
{
    struct unread unread = {.points = points, .n = n, .defaults = scenario_default(), .diag = diag};
    unread_check_slow_gpus(&unread);
    for (int i = 0; i < UNREAD_SECTIONS; i++)
        unread_check_section(&unread, unread_sections[i]);
    unread_check_table(&unread, &scenario_table, "", 0);
    arena_release(&unread.scratch);
}
