#include "calibrate/trace_check.h"

#include "store/fit.h"
#include "store/run.h"

#include <stdlib.h>

static enum status put_step(
    struct store_fit *into, const struct trace_check *check, int64_t point_id, struct diag *diag)
{
    static const char *const found[] = {
        [TRACE_ANNOTATED] = "annotations", [TRACE_REPEATED] = "repetition", [TRACE_WHOLE] = "none"};
    const struct trace *trace = &check->trace;
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    struct record_cell rank = cell_int("rank", trace->rank);
    if (trace->rank < 0)
        rank.kind = RECORD_NULL;
    const struct record_cell cells[] = {cell_int("point_id", point_id), cell_text("gpu", trace->about.gpu), rank,
        cell_int("steps", m->steps), cell_text("found", found[trace->found]), cell_real("step_time_s", true, m->step_s),
        cell_real("simulated_step_time_s", true, s->step_s), cell_real("compute_s", true, m->compute_s),
        cell_real("simulated_compute_s", true, s->compute_s), cell_real("exposed_comm_s", true, m->exposed_s),
        cell_real("simulated_exposed_comm_s", true, s->exposed_s), cell_real("hidden_comm_s", true, m->hidden_s),
        cell_real("simulated_hidden_comm_s", true, s->hidden_s), cell_real("host_copy_s", true, m->copies_s),
        cell_real("simulated_host_copy_s", true, s->copies_s), cell_real("idle_s", true, m->idle_s),
        cell_real("simulated_idle_s", true, s->idle_s)};
    return STORE_FIT_PUT(into, "step", cells, diag);
}

static enum status put_classes(struct store_fit *into, const struct trace_check *check, struct diag *diag)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    enum status status = STATUS_OK;
    for (int c = 0; c < TRACE_CLASS_COUNT && status == STATUS_OK; c++) {
        if (m->class_count[c] + s->class_count[c] == 0)
            continue;
        const struct record_cell cells[] = {cell_text("class", trace_class_name(c)),
            cell_real("count", true, m->class_count[c]), cell_real("simulated_count", true, s->class_count[c]),
            cell_real("time_s", true, m->class_s[c]), cell_real("simulated_time_s", true, s->class_s[c])};
        status = STORE_FIT_PUT(into, "class", cells, diag);
    }
    return status;
}

static struct record_cell known_count(const char *name, int value)
{
    struct record_cell cell = cell_int(name, value);
    if (value == 0)
        cell.kind = RECORD_NULL;
    return cell;
}

static struct record_cell known_kind(int kind)
{
    return cell_text("collective", kind == TRACE_UNKNOWN_KIND ? NULL : coll_kind_names[kind]);
}

static enum status put_collectives(struct store_fit *into, const struct trace_check *check, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < check->pairs.n && status == STATUS_OK; i++) {
        const struct trace_group *m = check->pairs.at[i].measured, *s = check->pairs.at[i].simulated, *any = m ? m : s;
        const struct record_cell cells[] = {cell_int("place", i), known_kind(any->kind),
            known_count("ranks", any->ranks), cell_real("bytes", any->bytes > 0, any->bytes),
            cell_real("bus_bytes", trace_bus_bytes(any) > 0, trace_bus_bytes(any)),
            cell_real("count", m != NULL, m ? m->count : 0), cell_real("simulated_count", s != NULL, s ? s->count : 0),
            cell_real("time_s", m != NULL, m ? m->time_s : 0),
            cell_real("simulated_time_s", s != NULL, s ? s->time_s : 0)};
        status = STORE_FIT_PUT(into, "collective", cells, diag);
    }
    return status;
}

static int by_length(const void *a, const void *b, void *self)
{
    const struct trace_step *steps = self;
    const int *i = a, *j = b;
    ps_t x = steps[*i].end - steps[*i].start, y = steps[*j].end - steps[*j].start;
    return x != y ? (x < y ? -1 : 1) : *i - *j;
}

static int median_step(const struct trace *trace)
{
    int n = trace->steps.n, *order = xcalloc((size_t)n, sizeof *order);
    for (int i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, (size_t)n, sizeof *order, by_length, trace->steps.at);
    int median = order[(n - 1) / 2];
    free(order);
    return median;
}

static enum status put_spans(struct store_fit *into, const struct trace *trace, struct diag *diag)
{
    int step = median_step(trace), span = 0;
    ps_t origin = trace->steps.at[step].start;
    enum status status = STATUS_OK;
    for (int i = 0; i < trace->activities.n && status == STATUS_OK; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        bool collective = activity->class == TRACE_COLLECTIVE;
        if (activity->step != step)
            continue;
        const struct record_cell cells[] = {cell_int("span", span++), cell_int("stream", activity->stream),
            cell_text("class", trace_class_name(activity->class)),
            cell_text("phase", activity->phase < PHASE_COUNT ? plan_phase_names[activity->phase] : NULL),
            cell_text("name", trace->names.at[activity->name]),
            collective ? known_kind(activity->kind) : cell_text("collective", NULL),
            known_count("ranks", collective ? activity->ranks : 0),
            cell_real("bytes", collective && activity->bytes > 0, activity->bytes),
            cell_real("start_s", true, s_from_ps(activity->start - origin)),
            cell_real("end_s", true, s_from_ps(activity->end - origin))};
        status = STORE_FIT_PUT(into, "span", cells, diag);
    }
    return status;
}

/* ---- the run ---- */

static void take_id(void *self, int n, const struct store_value *values)
{
    int64_t *id = self;
    (void)n;
    *id = values[0].kind == STORE_NUMBER ? strtoll(values[0].text, NULL, 10) : 0;
}

static enum status put_run(const struct trace_check *check, struct store *store, int64_t *point_id, struct diag *diag)
{
    const struct source_pos at = {.file = "calibrate check trace"};
    const struct store_run_options options = {.set = &check->set, .again = true};
    struct arena arena = ARENA_INIT;
    struct scenario_result from_store;
    struct store_run *run = NULL;
    bool known = false;
    enum status status = store_run_begin(&run, store, &options, &from_store, &arena, &known, diag);
    if (status == STATUS_OK)
        status = store_run_point(run, 0, &check->result, diag);
    store_run_end(run);
    arena_release(&arena);
    if (status == STATUS_OK)
        status = store_query(store, "SELECT max(id) FROM point", at, take_id, point_id, diag);
    return status;
}

enum status trace_check_store(const struct trace_check *check, const char *file, struct store *store, struct diag *diag)
{
    struct store_fit *into = NULL;
    int64_t point_id = 0;
    BUG_IF(!check->compared, "a trace without a simulation");
    enum status status = put_run(check, store, &point_id, diag);
    if (status == STATUS_OK)
        status = store_fit_begin(&into, store, "trace_check", file, diag);
    if (status != STATUS_OK)
        return status;
    status = put_step(into, check, point_id, diag);
    if (status == STATUS_OK)
        status = put_classes(into, check, diag);
    if (status == STATUS_OK)
        status = put_collectives(into, check, diag);
    if (status == STATUS_OK)
        status = put_spans(into, &check->trace, diag);
    return store_fit_end(into, status, diag);
}
