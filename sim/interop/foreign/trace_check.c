/* A measured step beside the simulated one of its scenario: how far apart they are, in which
 * parts, and the verdict in a sentence.
 *
 * Both sides are struct trace_sum. Parts of the step (kernels, exposed communication, host,
 * copies, idle) do not overlap, so their differences add up to that of the step; classes and
 * collectives do overlap and are listed behind them. Collectives are paired by kind, ranks and
 * nearest size, the longest first. A difference below 0.1 % of the step counts as none.
 *
 * What is subtle: flat parameters are padded to the number of ranks, so sizes within 2 % are the
 * same collective. A measured collective's time includes waiting for ranks, so a low bandwidth
 * may be the network or the ranks, and the sentence says both. The simulated rank is the traced
 * one, as ranks differ in a pipeline. */
#include "foreign/trace_check.h"

#include "store/answer.h"
#include "store/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double least_share = 1e-3; /* of the step: a smaller difference is none */

void trace_check_free(struct trace_check *check)
{
    trace_free(&check->trace);
    trace_free(&check->simulation);
    trace_sum_free(&check->measured);
    trace_sum_free(&check->simulated);
    vec_free(&check->pairs);
    vec_free(&check->differences);
    arena_release(&check->arena);
}

/* ---- collectives ---- */

/* How far apart two messages of one collective are; below 0: they are not of one collective. Flat
 * parameters are padded to the number of ranks, which a few bytes more or less come from. */
static double trace_check_apart(
    const struct trace_group *measured, const struct trace_group *simulated)
{
    static const double padding = 0.02;
    if (measured->kind != simulated->kind || measured->kind == TRACE_UNKNOWN_KIND ||
        measured->bytes <= 0 || (measured->ranks > 0 && measured->ranks != simulated->ranks))
        return -1;
    double ratio = fabs(log(measured->bytes / simulated->bytes));
    return ratio <= padding ? ratio : -1;
}

/* Each measured one with the nearest that is left, the longest first; without a simulation none has
 * any. */
static void pair_collectives(struct trace_check *check)
{
    const struct trace_sum *measured = &check->measured, *simulated = &check->simulated;
    check->pairs.n = 0;
    bool *taken = xcalloc((size_t)simulated->groups.n + 1, sizeof *taken);
    for (int m = 0; m < measured->groups.n; m++) {
        int best = -1;
        double nearest = HUGE_VAL;
        for (int s = 0; s < simulated->groups.n; s++) {
            double distance = trace_check_apart(&measured->groups.at[m], &simulated->groups.at[s]);
            if (taken[s] || distance < 0 || distance >= nearest)
                continue;
            nearest = distance;
            best = s;
        }
        if (best >= 0)
            taken[best] = true;
        vec_push(&check->pairs, (struct trace_pair){&measured->groups.at[m],
                                    best < 0 ? NULL : &simulated->groups.at[best]});
    }
    for (int s = 0; s < simulated->groups.n; s++)
        if (!taken[s])
            vec_push(&check->pairs, (struct trace_pair){NULL, &simulated->groups.at[s]});
    free(taken);
}

enum status trace_check_load(
    struct trace_check *out, const char *file, int64_t device, const char *steps, struct diag *diag)
{
    *out = (struct trace_check){0};
    enum status status = trace_load(&out->trace, file, device, steps, &out->arena, diag);
    if (status == STATUS_OK) {
        trace_sum(&out->measured, &out->trace);
        pair_collectives(out);
    }
    return status;
}

/* ---- differences ---- */

/* "1583 ms", "13.1 ms", "0.042 ms". */
static const char *in_ms(struct arena *arena, double s, bool sign)
{
    double ms = 1e3 * s, size = fabs(ms);
    int digits = size >= 1000 ? 0 : size >= 1 ? 1 : 3;
    return sign ? arena_printf(arena, "%+.*f ms", digits, ms)
                : arena_printf(arena, "%.*f ms", digits, ms);
}

static const char *in_count(struct arena *arena, double n)
{
    return arena_printf(arena, "%.*f", n >= 100 || n == floor(n) ? 0 : 2, n);
}

/* what: "gemm kernels take". Texts carry both values, so a reader can judge a percentage of
 * little. */
static void trace_check_differ(struct trace_check *check, bool part, const char *what,
    double measured_s, double simulated_s, const char *why)
{
    struct arena *arena = &check->arena;
    double by_s = measured_s - simulated_s,
           percent = simulated_s > 0 ? 100 * by_s / simulated_s : 0;
    if (fabs(by_s) < least_share * check->measured.step_s)
        return;
    const char *times = fabs(percent) >= 1000
                            ? arena_printf(arena, " (%.0f times as long)", measured_s / simulated_s)
                        : percent != 0 ? arena_printf(arena, " (%+.0f %%)", percent)
                                       : "";
    const char *text = arena_printf(arena, "%s: %s %s, simulated %s%s%s", in_ms(arena, by_s, true),
        what, in_ms(arena, measured_s, false), in_ms(arena, simulated_s, false), times, why);
    vec_push(&check->differences, (struct trace_difference){text, by_s, part});
}

static void differ_by_class(struct trace_check *check)
{
    struct arena *arena = &check->arena;
    const struct trace_sum *measured = &check->measured, *simulated = &check->simulated;
    for (int c = 0; c < TRACE_COLLECTIVE; c++) {
        const char *why = simulated->class_count[c] == 0 ? "; the simulation has no such kernels"
                          : measured->class_count[c] == 0
                              ? "; the trace has no such kernels"
                              : arena_printf(arena, "; %s kernels, simulated %s",
                                    in_count(arena, measured->class_count[c]),
                                    in_count(arena, simulated->class_count[c]));
        if (c == TRACE_OTHER)
            why = "; no class is known for these kernels, so they are missing elsewhere";
        trace_check_differ(check, false,
            arena_printf(arena, "%s kernels take", trace_class_name(c)), measured->class_s[c],
            simulated->class_s[c], why);
    }
}

static void differ_by_collective(struct trace_check *check)
{
    struct arena *arena = &check->arena;
    for (int kind = TRACE_UNKNOWN_KIND; kind < COLL_KIND_COUNT; kind++) {
        const struct trace_sum *sides[] = {&check->measured, &check->simulated};
        double time_s[2] = {0}, count[2] = {0};
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < sides[side]->groups.n; i++) {
                const struct trace_group *group = &sides[side]->groups.at[i];
                time_s[side] += group->kind == kind ? group->time_s : 0;
                count[side] += group->kind == kind ? group->count : 0;
            }
        if (count[0] + count[1] == 0)
            continue;
        const char *name =
            kind == TRACE_UNKNOWN_KIND ? "collectives of no known kind" : coll_kind_names[kind];
        trace_check_differ(check, false, arena_printf(arena, "%s, hidden or not, takes", name),
            time_s[0], time_s[1],
            arena_printf(arena, "; %s of them, simulated %s, waiting for other ranks included",
                in_count(arena, count[0]), in_count(arena, count[1])));
    }
}

static int by_part_and_size(const void *a, const void *b)
{
    const struct trace_difference *x = a, *y = b;
    double by = fabs(y->by_s) - fabs(x->by_s);
    if (x->part != y->part)
        return x->part ? -1 : 1;
    return by > 0 ? 1 : by < 0 ? -1 : strcmp(x->text, y->text);
}

/* What collectives that both have reach, bytes on the bus a second; 0: none is known. */
static void rates(const struct trace_check *check, double *measured_Bps, double *simulated_Bps)
{
    double bytes[2] = {0}, time_s[2] = {0};
    for (int i = 0; i < check->pairs.n; i++) {
        const struct trace_group *sides[] = {
            check->pairs.at[i].measured, check->pairs.at[i].simulated};
        for (int side = 0; side < 2 && sides[0] && sides[1]; side++) {
            bytes[side] += trace_bus_bytes(sides[side]) * sides[side]->count;
            time_s[side] += trace_bus_bytes(sides[side]) > 0 ? sides[side]->time_s : 0;
        }
    }
    *measured_Bps = time_s[0] > 0 ? bytes[0] / time_s[0] : 0;
    *simulated_Bps = time_s[1] > 0 ? bytes[1] / time_s[1] : 0;
}

static const char *why_exposed(const struct trace_check *check, struct arena *arena)
{
    static const double GB = 1e-9, alike = 0.1;
    double measured_Bps, simulated_Bps;
    rates(check, &measured_Bps, &simulated_Bps);
    if (measured_Bps == 0 || simulated_Bps == 0)
        return "; no collective is in both";
    double ratio = measured_Bps / simulated_Bps;
    if (ratio > 1 + alike)
        return arena_printf(arena,
            "; collectives reach %.3g GB/s, more than the %.3g GB/s predicted", GB * measured_Bps,
            GB * simulated_Bps);
    return arena_printf(arena, "; collectives reach %.3g of %.3g GB/s predicted%s",
        GB * measured_Bps, GB * simulated_Bps,
        ratio < 1 - alike
            ? arena_printf(arena, ": %.0f %%, by the network or by waiting for ranks", 100 * ratio)
            : ", as predicted");
}

static void find_differences(struct trace_check *check)
{
    struct arena *arena = &check->arena;
    const struct trace_sum *measured = &check->measured, *simulated = &check->simulated;
    double beside_s = measured->hidden_s - simulated->hidden_s;
    const char *beside =
        beside_s > least_share * measured->step_s && measured->compute_s > simulated->compute_s
            ? arena_printf(arena, "; beside collectives, which slow them, for %s longer",
                  in_ms(arena, beside_s, false))
            : "";
    trace_check_differ(
        check, true, "kernels run for", measured->compute_s, simulated->compute_s, beside);
    trace_check_differ(check, true, "exposed communication takes", measured->exposed_s,
        simulated->exposed_s, why_exposed(check, arena));
    trace_check_differ(
        check, true, "the GPU waits for the host for", measured->host_s, simulated->host_s, "");
    trace_check_differ(check, true, "copies from or to the host that nothing hides take",
        measured->copies_s, simulated->copies_s, "");
    trace_check_differ(check, true, "the GPU is idle for other reasons for", measured->idle_s,
        simulated->idle_s, "");
    differ_by_class(check);
    differ_by_collective(check);
    if (check->differences.n > 0)
        qsort(check->differences.at, (size_t)check->differences.n, sizeof *check->differences.at,
            by_part_and_size);
}

/* ---- verdicts ---- */

struct loss {
    double s;
    const char *words;
};

static int trace_check_longest_first(const void *a, const void *b)
{
    const struct loss *x = a, *y = b;
    return (x->s < y->s) - (x->s > y->s);
}

const char *trace_check_loss(const struct trace_sum *sum, struct arena *arena)
{
    static const double worth = 0.03;
    struct loss losses[] = {
        {sum->exposed_s, "waits for collectives, their waiting for other ranks included"},
        {sum->sync_s, "waits for the host, which goes on after it was blocked by the GPU itself "
                      "(synchronize(), .item(), a copy that blocks)"},
        {sum->loader_s, "waits for the host, which is in the data loader"},
        {sum->host_s - sum->sync_s - sum->loader_s,
            "waits for the host, which launches too slowly (Python, many small "
            "kernels)"},
        {sum->copies_s, "waits for copies from or to the host"},
        {sum->idle_s, "is idle for what the trace does not show, or between small kernels"}};
    enum { LOSSES = sizeof losses / sizeof *losses };
    const char *text = arena_printf(
        arena, "kernels run for %.1f %% of the step", 100 * sum->compute_s / sum->step_s);
    qsort(losses, LOSSES, sizeof *losses, trace_check_longest_first);
    for (int i = 0; i < LOSSES && losses[i].s > worth * sum->step_s; i++)
        text = arena_printf(arena, "%s; for %.1f %% the GPU %s", text,
            100 * losses[i].s / sum->step_s, losses[i].words);
    return text;
}

/* What makes up most of the difference, of the parts that go its way. Parts that go the other
 * way do not explain anything; they lessen what others explain. */
static void find_verdict(struct trace_check *check)
{
    static const double all = 0.9;
    struct arena *arena = &check->arena;
    double by_s = check->measured.step_s - check->simulated.step_s, explained_s = 0;
    const char *text = arena_printf(arena, "the step takes %s, simulated %s: %s (%+.1f %%)",
        in_ms(arena, check->measured.step_s, false), in_ms(arena, check->simulated.step_s, false),
        in_ms(arena, by_s, true), 100 * by_s / check->simulated.step_s);
    int n = 0;
    for (; n < check->differences.n && check->differences.at[n].part &&
           explained_s < all * fabs(by_s);
         n++)
        explained_s += by_s > 0 ? check->differences.at[n].by_s : -check->differences.at[n].by_s;
    bool differs = fabs(by_s) >= least_share * check->measured.step_s;
    check->verdict =
        check->differences.n == 0
            ? arena_printf(arena, "%s; no part differs by 0.1 %% of the step", text)
        : !differs ? arena_printf(arena, "%s; its parts differ:", text)
        : n == 1 && explained_s >= all * fabs(by_s)
            ? arena_printf(arena, "%s; nearly all of it is the first of its parts:", text)
            : arena_printf(arena, "%s, which is the sum of:", text);
}

/* ---- the simulation ---- */

static void warn_of_scenario(const struct trace_check *check, const char *file, struct diag *diag)
{
    const struct scenario_point *point = &check->set.points[0];
    const struct trace *trace = &check->trace;
    struct source_pos at = {.file = file};
    if (trace->about.gpu && !hw_same_gpu(trace->about.gpu, &point->hw.gpu))
        diag_warn(diag, at,
            "the trace's GPU is %s, the scenario's %s: is --scenario the right one?",
            trace->about.gpu, point->hw.gpu.name);
    if (trace->world_size > 0 && trace->world_size != point->options.cluster.gpus)
        diag_warn(diag, at,
            "the trace is of %lld ranks, the scenario of %lld: --set cluster.gpus=%lld",
            (long long)trace->world_size, (long long)point->options.cluster.gpus,
            (long long)trace->world_size);
}

/* A wrong scenario is the commonest mistake: GPU and world size are compared first. */
enum status trace_check_simulate(struct trace_check *check, const char *file, struct diag *diag)
{
    struct scenario_point *point = &check->set.points[0];
    struct trace *trace = &check->trace;
    int64_t gpus = point->options.cluster.gpus;
    int *rank = ARENA_NEW(&check->arena, int);
    *rank = trace->rank >= 0 && trace->rank < gpus ? (int)trace->rank : 0;
    point->options.exec.trace_ranks = rank;
    point->options.exec.n_trace_ranks = 1;
    warn_of_scenario(check, file, diag);
    enum status status = scenario_simulate(&check->result, point, &check->arena, diag);
    if (status != STATUS_OK)
        return status;
    if (check->result.exec.status == EXEC_OOM)
        return diag_input(diag, (struct source_pos){.file = check->set.file},
            "out of memory when it is simulated, at %s; `flopcast run` says what needs how much",
            check->result.exec.memory.oom_op);
    trace_of_run(&check->simulation, &check->result.exec, *rank, &check->arena);
    trace_sum(&check->simulated, &check->simulation);
    pair_collectives(check);
    find_differences(check);
    find_verdict(check);
    check->compared = true;
    return STATUS_OK;
}

static enum status put_step(
    struct store_answer *into, const struct trace_check *check, int64_t point_id, struct diag *diag)
{
    static const char *const found[] = {
        [TRACE_ANNOTATED] = "annotations", [TRACE_REPEATED] = "repetition", [TRACE_WHOLE] = "none"};
    const struct trace *trace = &check->trace;
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    struct record_cell rank = cell_int("rank", trace->rank);
    if (trace->rank < 0)
        rank.kind = RECORD_NULL;
    return store_answer_put(into, "step",
        RECORD_CELLS(cell_int("point_id", point_id), cell_text("gpu", trace->about.gpu), rank,
            cell_int("steps", m->steps), cell_text("found", found[trace->found]),
            cell_real("step_time_s", true, m->step_s),
            cell_real("simulated_step_time_s", true, s->step_s),
            cell_real("compute_s", true, m->compute_s),
            cell_real("simulated_compute_s", true, s->compute_s),
            cell_real("exposed_comm_s", true, m->exposed_s),
            cell_real("simulated_exposed_comm_s", true, s->exposed_s),
            cell_real("hidden_comm_s", true, m->hidden_s),
            cell_real("simulated_hidden_comm_s", true, s->hidden_s),
            cell_real("host_copy_s", true, m->copies_s),
            cell_real("simulated_host_copy_s", true, s->copies_s),
            cell_real("idle_s", true, m->idle_s), cell_real("simulated_idle_s", true, s->idle_s),
            cell_real("host_bound_s", true, m->host_s),
            cell_real("simulated_host_bound_s", true, s->host_s)),
        diag);
}

static enum status put_classes(
    struct store_answer *into, const struct trace_check *check, struct diag *diag)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    enum status status = STATUS_OK;
    for (int c = 0; c < TRACE_CLASS_COUNT && status == STATUS_OK; c++) {
        if (m->class_count[c] + s->class_count[c] == 0)
            continue;
        status = store_answer_put(into, "class",
            RECORD_CELLS(cell_text("class", trace_class_name(c)),
                cell_real("count", true, m->class_count[c]),
                cell_real("simulated_count", true, s->class_count[c]),
                cell_real("time_s", true, m->class_s[c]),
                cell_real("simulated_time_s", true, s->class_s[c])),
            diag);
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

static enum status put_collectives(
    struct store_answer *into, const struct trace_check *check, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < check->pairs.n && status == STATUS_OK; i++) {
        const struct trace_group *m = check->pairs.at[i].measured,
                                 *s = check->pairs.at[i].simulated, *any = m ? m : s;
        status = store_answer_put(into, "collective",
            RECORD_CELLS(cell_int("place", i), known_kind(any->kind),
                known_count("ranks", any->ranks), cell_real("bytes", any->bytes > 0, any->bytes),
                cell_real("bus_bytes", trace_bus_bytes(any) > 0, trace_bus_bytes(any)),
                cell_real("count", m != NULL, m ? m->count : 0),
                cell_real("simulated_count", s != NULL, s ? s->count : 0),
                cell_real("time_s", m != NULL, m ? m->time_s : 0),
                cell_real("simulated_time_s", s != NULL, s ? s->time_s : 0)),
            diag);
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

/* Of the step with the median length, as a figure shows one step. */
static enum status trace_check_put_spans(
    struct store_answer *into, const struct trace *trace, struct diag *diag)
{
    int step = median_step(trace), span = 0;
    ps_t origin = trace->steps.at[step].start;
    enum status status = STATUS_OK;
    for (int i = 0; i < trace->activities.n && status == STATUS_OK; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        bool collective = activity->class == TRACE_COLLECTIVE;
        if (activity->step != step)
            continue;
        status = store_answer_put(into, "span",
            RECORD_CELLS(cell_int("span", span), cell_int("stream", activity->stream),
                cell_text("class", trace_class_name(activity->class)),
                cell_text("phase",
                    activity->phase < PHASE_COUNT ? plan_phase_names[activity->phase] : NULL),
                cell_text("name", trace->names.at[activity->name]),
                collective ? known_kind(activity->kind) : cell_text("collective", NULL),
                known_count("ranks", collective ? activity->ranks : 0),
                cell_real("bytes", collective && activity->bytes > 0, activity->bytes),
                cell_real("start_s", true, s_from_ps(activity->start - origin)),
                cell_real("end_s", true, s_from_ps(activity->end - origin))),
            diag);
        span++;
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

static enum status trace_check_put_run(
    const struct trace_check *check, struct store *store, int64_t *point_id, struct diag *diag)
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

enum status trace_check_store(
    const struct trace_check *check, const char *file, struct store *store, struct diag *diag)
{
    struct store_answer into = {0};
    int64_t point_id = 0;
    BUG_IF(!check->compared, "a trace without a simulation");
    enum status status = trace_check_put_run(check, store, &point_id, diag);
    if (status == STATUS_OK)
        status = store_answer_begin(
            &into, store, "trace_check", RECORD_CELLS(cell_text("measured", file)), diag);
    if (status != STATUS_OK)
        return status;
    status = put_step(&into, check, point_id, diag);
    if (status == STATUS_OK)
        status = put_classes(&into, check, diag);
    if (status == STATUS_OK)
        status = put_collectives(&into, check, diag);
    if (status == STATUS_OK)
        status = trace_check_put_spans(&into, &check->trace, diag);
    return store_answer_end(&into, status, diag);
}
