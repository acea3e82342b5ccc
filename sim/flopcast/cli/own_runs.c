/* Measurements of one's own ("cluster.gpus=8: 9250 tokens/s"), from --measured or a scenario
 * file: read, simulated, and handed to scenario/sure.h, which shifts and narrows the intervals
 * of predictions by them.
 *
 * The text is cut at its last colon: settings before it, the value with its unit behind. The
 * settings are put on top of the scenario, and for --measured on top of the command line's own;
 * the result must be one point. What is subtle: a measurement of tokens of all GPUs looks like
 * one of a GPU, so one that is off by more than half the number of GPUs is refused. A ratio
 * above 1 always means faster than simulated, so the ratio of step times is turned round. */
#include "cli/own_runs.h"

#include "options/waiting.h"
#include "rows/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum of_speed { OF_GPU, OF_JOB, OF_STEP, OF_TFLOPS };
static const struct unit {
    const char *name;
    enum of_speed of;
    double scale;
    const char *counted; /* what the model must count; NULL: anything */
} run_units[] = {{"tokens/s", OF_GPU, 1, "tokens"}, {"tokens/s/GPU", OF_GPU, 1, "tokens"},
    {"tokens/s/job", OF_JOB, 1, "tokens"}, {"images/s", OF_GPU, 1, "images"},
    {"images/s/GPU", OF_GPU, 1, "images"}, {"images/s/job", OF_JOB, 1, "images"},
    {"samples/s", OF_GPU, 1, "samples"}, {"samples/s/GPU", OF_GPU, 1, "samples"},
    {"samples/s/job", OF_JOB, 1, "samples"}, {"s", OF_STEP, 1, NULL}, {"ms", OF_STEP, 1e-3, NULL},
    {"TFLOPS", OF_TFLOPS, 1, NULL}, {"TFLOPS/GPU", OF_TFLOPS, 1, NULL}};
enum { UNITS = sizeof run_units / sizeof *run_units };

/* Behind the last colon; NULL: it is no such value. Commas may part thousands. */
static const struct unit *read_value(double *out, const char *text)
{
    char digits[64];
    size_t n = 0;
    text += strspn(text, " ");
    for (; n + 1 < sizeof digits && (strchr("0123456789.eE+-,", *text) && *text); text++)
        if (*text != ',')
            digits[n++] = *text;
    digits[n] = '\0';
    char *end = NULL;
    *out = strtod(digits, &end);
    text += strspn(text, " ");
    for (size_t i = 0; i < UNITS && n > 0 && *end == '\0' && *out > 0 && isfinite(*out); i++)
        if (strcmp(text, run_units[i].name) == 0)
            return &run_units[i];
    return NULL;
}

#define WANTED                                                                                     \
    "%s: settings, a colon, and a number with its unit are wanted, as in 'cluster.gpus=8: 9250 "   \
    "tokens/s'; units: "                                                                           \
    "tokens/s, tokens/s/job, s, ms, TFLOPS"

/* A measurement as it was given: to --measured (no place), or in a scenario file. */
struct given {
    const char *text;
    struct source_pos at;
};
/* With the name that it has there, for messages. */
static const char *own_runs_name_of(const struct given *given, struct arena *arena)
{
    return given->at.file ? arena_printf(arena, "'%s'", given->text)
                          : arena_printf(arena, "--measured %s", given->text);
}

void own_runs_take(void *measured, const struct argument *argument)
{
    struct own_texts *out = measured;
    const char *colon = strrchr(argument->text, ':');
    double value;
    if (!colon || !read_value(&value, colon + 1))
        argp_error(argument->state, "--measured " WANTED, argument->text);
    vec_push(&out->texts, argument->text);
}

/* The settings of a measurement, behind the command line's own. */
static enum status take_settings(struct scenario_override *list, int *n, int room,
    const struct given *given, struct arena *arena, struct diag *diag)
{
    const char *text = given->text;
    const char *colon = strrchr(text, ':');
    char *settings = arena_printf(arena, "%.*s", (int)(colon - text), text), *state = NULL;
    for (char *one = strtok_r(settings, " ", &state); one; one = strtok_r(NULL, " ", &state)) {
        char *equals = strchr(one, '=');
        if (!equals || *n == room)
            return diag_input(diag, given->at,
                "%s: '%s' is no setting; KEY=VALUE is wanted, with a blank between two",
                own_runs_name_of(given, arena), one);
        *equals = '\0';
        list[(*n)++] = (struct scenario_override){one, equals + 1};
    }
    return STATUS_OK;
}

static double own_runs_speed_of(
    const struct scenario_point *point, const struct scenario_result *result, enum of_speed of)
{
    switch (of) {
    case OF_JOB:
        return result->tokens_per_s_per_gpu * (double)point->options.cluster.gpus;
    case OF_STEP:
        return result->exec.step_time_s;
    case OF_TFLOPS:
        return result->tflops_per_gpu;
    case OF_GPU:
        break;
    }
    return result->tokens_per_s_per_gpu;
}

/* measured / simulated speed; 0: it is out of memory, or looks like another unit. */
static double ratio_of(const struct scenario_point *point, const struct scenario_result *result,
    const struct given *given, struct arena *arena, struct diag *diag)
{
    const char *text = given->text, *name = own_runs_name_of(given, arena);
    double value, gpus = (double)point->options.cluster.gpus;
    const struct unit *unit = read_value(&value, strrchr(text, ':') + 1);
    if (result->exec.status != EXEC_OK) {
        diag_input(diag, given->at,
            "%s: simulated, this is out of memory, so there is no speed to compare", name);
        return 0;
    }
    const char *counted = words_counted(&point->model.shape);
    if (unit->counted && strcmp(unit->counted, counted) != 0) {
        diag_input(diag, given->at, "%s: this model counts %s; write %s/s, s, ms or TFLOPS", name,
            counted, counted);
        return 0;
    }
    double simulated = own_runs_speed_of(point, result, unit->of),
           ratio = value * unit->scale / simulated;
    if (unit->of == OF_STEP)
        ratio = 1 / ratio;
    if (unit->of == OF_GPU && gpus > 2 && ratio > gpus / 2) {
        diag_input(diag, given->at, "%s: simulated are %.0f of a GPU; of all GPUs it is %s/job",
            name, simulated, unit->name);
        return 0;
    }
    return ratio;
}

/* settings: those of the command line that hold for it. Measurements of a scenario file do not
 * see the command line (settings NULL), as they describe what was run. */
static enum status simulate_one(struct own_runs *out, struct sure *sure, const struct given *given,
    const char *file, const struct overrides *settings, struct arena *arena, struct diag *diag)
{
    enum { MORE = 32 };
    int n = settings ? settings->list.n : 0;
    struct scenario_override *list = ARENA_ARRAY(arena, struct scenario_override, n + MORE);
    for (int i = 0; i < n; i++)
        list[i] = settings->list.at[i];
    struct scenario_set set = {0};
    enum status status = take_settings(list, &n, n + MORE, given, arena, diag);
    if (status == STATUS_OK)
        status = scenario_load(&set, file, list, n, arena, diag);
    if (status == STATUS_OK && set.n_points != 1)
        status = diag_input(diag, given->at.file ? given->at : (struct source_pos){.file = file},
            "%s: the scenario has %d points with that; say in it which one was measured",
            own_runs_name_of(given, arena), set.n_points);
    if (status != STATUS_OK)
        return status;
    struct scenario_result result = {0};
    struct arena of_result = ARENA_INIT;
    struct waiting *waiting =
        waiting_begin(out->command, "what was measured", "points", &set, out->quiet);
    status = scenario_simulate_all(&result, &of_result, &set, waiting_count, waiting, diag);
    waiting_end(waiting);
    double ratio = status == STATUS_OK ? ratio_of(&set.points[0], &result, given, arena, diag) : 0;
    if (ratio > 0)
        vec_push(&out->list, (struct own_run){given->text, &set.points[0], ratio - 1,
                                 sure_measure(sure, &set.points[0], &result, ratio)});
    arena_release(&of_result);
    return diag->worst;
}

enum status own_runs_simulate(struct own_runs *out, struct sure *sure,
    const struct own_texts *measured, const struct scenario_set *set,
    const struct overrides *overrides, struct arena *arena, struct diag *diag)
{
    for (int i = 0; i < set->n_measured && diag->worst == STATUS_OK; i++) {
        const struct given given = {set->measured[i].text, set->measured[i].at};
        const char *colon = strrchr(given.text, ':');
        double value;
        if (!colon || !read_value(&value, colon + 1))
            diag_input(diag, given.at, WANTED, own_runs_name_of(&given, arena));
        else
            simulate_one(out, sure, &given, set->file, NULL, arena, diag);
    }
    for (int i = 0; i < measured->texts.n && diag->worst == STATUS_OK; i++)
        simulate_one(out, sure, &(struct given){measured->texts.at[i], {0}}, set->file, overrides,
            arena, diag);
    return diag->worst;
}

void own_runs_print(FILE *out, const struct own_runs *runs)
{
    for (int i = 0; i < runs->list.n; i++) {
        const struct own_run *run = &runs->list.at[i];
        bool outside =
            run->range.known && (1 + run->off < run->range.low || 1 + run->off > run->range.high);
        words_paragraph_of(out, "measured: %s; %+.1f %% of what is simulated%s", run->text,
            100 * run->off,
            !outside ? ""
            : run->off < 0
                ? ", which is below 19 of 20 such jobs: a slow GPU, a loader or a network not as "
                  "in the file; `flopcast calibrate check trace` finds it in a trace"
                : ", which is above 19 of 20 such jobs: are settings, GPU and precision "
                  "those of the run?");
    }
}

void own_runs_free(struct own_texts *measured)
{
    vec_free(&measured->texts);
}
