/* libflopcast: the C interface of a scenario, its points and their results, for other programs
 * and for bindings.
 *
 * A handle has four lifetimes of memory: settings live as long as it does, the loaded scenario
 * until the next flopcast_open(), results until the next run, the plan until the next plan.
 * Texts that functions return are borrowed from these. Results are the columns of store/record.h
 * by name, as text and as number. Nothing is printed and nothing exits: messages gather in the
 * handle, each call's replace those of the call before. */
#include "library/flopcast.h"

#include "base/files.h"
#include "base/vec.h"
#include "scenario/scenario.h"
#include "store/record.h"
#include "scenario/sure.h"

#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct column {
    const char *name, *text; /* NULL: not applicable */
    double number;
};

struct flopcast {
    VEC(struct scenario_override) overrides;
    struct arena texts; /* of the overrides */
    struct scenario_set set;
    struct arena loaded; /* the set's */
    VEC(struct column) columns;
    struct arena values; /* the columns' */
    char *plan;
    struct diag diag;
    struct sure sure;
};

const char *flopcast_version(void)
{
    return FLOPCAST_VERSION;
}

struct flopcast *flopcast_new(void)
{
    gsl_set_error_handler_off();
    return xcalloc(1, sizeof(struct flopcast));
}

static void forget_results(struct flopcast *self)
{
    vec_free(&self->columns);
    arena_release(&self->values);
    self->values = ARENA_INIT;
    free(self->plan);
    self->plan = NULL;
    self->diag = DIAG_INIT;
}

static void forget_set(struct flopcast *self)
{
    forget_results(self);
    arena_release(&self->loaded);
    self->loaded = ARENA_INIT;
    self->set = (struct scenario_set){0};
}

void flopcast_free(struct flopcast *self)
{
    if (!self)
        return;
    forget_set(self);
    sure_end(&self->sure);
    vec_free(&self->overrides);
    arena_release(&self->texts);
    free(self);
}

static enum flopcast_status status_of(const struct flopcast *self)
{
    enum status worst = self->diag.worst;
    return worst == STATUS_OK ? FLOPCAST_OK : worst == STATUS_IO ? FLOPCAST_WORLD : FLOPCAST_INPUT;
}

enum flopcast_status flopcast_set(struct flopcast *self, const char *key, const char *value)
{
    self->diag = DIAG_INIT;
    if (!*key) {
        diag_input(&self->diag, (struct source_pos){0},
            "a setting has no name; give one, as in cluster.gpus");
        return FLOPCAST_INPUT;
    }
    const struct scenario_override override = {
        arena_strdup(&self->texts, key), arena_strdup(&self->texts, value)};
    for (int i = 0; i < self->overrides.n; i++)
        if (strcmp(self->overrides.at[i].key, key) == 0) {
            self->overrides.at[i] = override;
            return FLOPCAST_OK;
        }
    vec_push(&self->overrides, override);
    return FLOPCAST_OK;
}

enum flopcast_status flopcast_open(struct flopcast *self, const char *scenario)
{
    forget_set(self);
    const char *path =
        files_find(&self->loaded, FILES_SCENARIOS, arena_strdup(&self->loaded, scenario));
    enum status status = scenario_load(
        &self->set, path, self->overrides.at, self->overrides.n, &self->loaded, &self->diag);
    if (status == STATUS_OK)
        scenario_warn_measured(&self->set, "libflopcast", &self->diag);
    else
        self->set = (struct scenario_set){0};
    return status_of(self);
}

int flopcast_points(const struct flopcast *self)
{
    return self->set.n_points;
}

/* NULL: there is none, which is an error. */
static const struct scenario_point *point_at(struct flopcast *self, int point)
{
    if (point >= 0 && point < self->set.n_points)
        return &self->set.points[point];
    if (self->set.n_points == 0)
        diag_input(
            &self->diag, (struct source_pos){0}, "no scenario is open; flopcast_open() opens one");
    else
        diag_input(&self->diag, (struct source_pos){.file = self->set.file},
            "there is no point %d; give 0 to %d", point, self->set.n_points - 1);
    return NULL;
}

static void flopcast_take(struct flopcast *self, const struct record *record)
{
    for (int i = 0; i < record->n; i++) {
        const struct record_cell *cell = &record->cells[i];
        char *text = NULL;
        size_t n = 0;
        FILE *out = xmemstream(&text, &n);
        bool known = record_write(out, cell);
        fclose(out);
        vec_push(&self->columns, (struct column){.name = arena_strdup(&self->values, cell->name),
                                     .text = known ? arena_strdup(&self->values, text) : NULL,
                                     .number = !known                      ? (double)NAN
                                               : cell->kind == RECORD_INT  ? (double)cell->integer
                                               : cell->kind == RECORD_REAL ? cell->real
                                                                           : (double)NAN});
        free(text);
    }
}

enum flopcast_status flopcast_run(struct flopcast *self, int point)
{
    forget_results(self);
    struct arena arena = ARENA_INIT;
    struct scenario_result result;
    const struct scenario_point *chosen = point_at(self, point);
    if (chosen && scenario_simulate(&result, chosen, &arena, &self->diag) == STATUS_OK) {
        struct record record;
        sure_set(&self->sure, chosen, &result, 1);
        record_fill(&record, chosen, &result);
        flopcast_take(self, &record);
        record_fill_deviation(&record, chosen, &result);
        flopcast_take(self, &record);
    }
    arena_release(&arena);
    return status_of(self);
}

int flopcast_columns(const struct flopcast *self)
{
    return self->columns.n;
}

const char *flopcast_column(const struct flopcast *self, int column)
{
    return column >= 0 && column < self->columns.n ? self->columns.at[column].name : NULL;
}

static const struct column *flopcast_find(const struct flopcast *self, const char *name)
{
    for (int i = 0; i < self->columns.n; i++)
        if (strcmp(self->columns.at[i].name, name) == 0)
            return &self->columns.at[i];
    return NULL;
}

const char *flopcast_text(const struct flopcast *self, const char *column)
{
    const struct column *found = flopcast_find(self, column);
    return found ? found->text : NULL;
}

double flopcast_number(const struct flopcast *self, const char *column)
{
    const struct column *found = flopcast_find(self, column);
    return found ? found->number : (double)NAN;
}

const char *flopcast_plan(struct flopcast *self, int point)
{
    free(self->plan);
    self->plan = NULL;
    self->diag = DIAG_INIT;
    struct arena arena = ARENA_INIT;
    struct plan plan;
    const struct scenario_point *chosen = point_at(self, point);
    if (chosen && scenario_compile(&plan, chosen, &arena, &self->diag) == STATUS_OK) {
        size_t n = 0;
        FILE *out = xmemstream(&self->plan, &n);
        plan_explain(out, &plan, &chosen->hw);
        fclose(out);
        plan_release(&plan);
    }
    arena_release(&arena);
    return self->plan;
}

const char *flopcast_messages(const struct flopcast *self)
{
    return self->diag.text;
}
