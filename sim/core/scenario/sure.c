/* Intervals of predictions: their file, ranges from it, and what a measurement of the job makes of
 * them. The logarithms are of measured / predicted: below 0 where a measurement is slower.
 *
 * A range is two half widths in the logarithm. A speed's have terms of what makes jobs hard to
 * predict, multiplied up; a ratio's grow with the root of the doublings between two sizes, as
 * errors of independent doublings would.
 *
 * With measurements, errors are scaled by the half width on their side and taken as jointly normal
 * with unit variance. sure_given() solves the system of their correlations: the weighted sum of the
 * scaled errors is the conditional mean, and what the weights explain makes the range narrower by
 * the root of the rest. Where the correlations of a file are no correlations, the factorisation
 * fails and the range stays as it is. The correlation of two jobs follows from what they have in
 * common, from maker to same job; of one job it falls with the doublings of GPUs, from SAME_JOB
 * down to that of a layout.
 *
 * struct sure reads the file when it is first asked and remembers what was asked of it, so that a
 * command can say once what its intervals rest on. Ranges that it hands out live in its arena. */
#include "scenario/sure.h"

#include "base/files.h"
#include "scenario/identity.h"

#include <gsl/gsl_linalg.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double USUAL_MFU = 0.4, LEAST_MFU = 0.01, MOST_LOW_MFU = 1.5;

const char *const sure_term_names[SURE_TERMS + 1] = {[SURE_LOW_MFU] = "low_mfu",
    [SURE_FP8] = "fp8",
    [SURE_NODES] = "node_doubling",
    [SURE_BLACKWELL] = "blackwell",
    [SURE_TENSOR] = "tensor"};

struct sure_terms sure_terms(
    double mfu, const char *precision, double nodes, const char *arch, bool tensor)
{
    bool narrow = strncmp(precision, "fp8", strlen("fp8")) == 0 ||
                  strncmp(precision, "fp4", strlen("fp4")) == 0;
    return (struct sure_terms){
        {[SURE_LOW_MFU] = fmin(fmax(log(USUAL_MFU / fmax(mfu, LEAST_MFU)), 0), MOST_LOW_MFU),
            [SURE_FP8] = narrow,
            [SURE_NODES] = nodes > 1 ? log2(nodes) : 0,
            [SURE_BLACKWELL] = strcmp(arch, "Blackwell") == 0,
            [SURE_TENSOR] = tensor}};
}

/* ---- the file ---- */

#define SURE_SHARE(key_, member, help_, most)                                                      \
    {                                                                                              \
        CONFIG_FIELD(key_, FIELD_NUMBER, struct sure_file, member, help_),                         \
            .dimension = DIM_FRACTION, .required = true, .min = 0, .max = (most)                   \
    }
#define PLAIN(key_, member, help_, least, most)                                                    \
    {                                                                                              \
        CONFIG_FIELD(key_, FIELD_NUMBER, struct sure_file, member, help_),                         \
            .required = true, .min = (least), .max = (most)                                        \
    }
#define COUNT(key_, owner, member, help_)                                                          \
    {                                                                                              \
        CONFIG_FIELD(key_, FIELD_INT, owner, member, help_), .required = true, .min = 1,           \
                                                             .max = 1e9                            \
    }
#define MAKERS "Who measured them; each weighs the same."

struct sure_file {
    struct sure_numbers numbers;
    struct config_node quantiles, generations;
};

static const struct config_field speed_fields[] = {
    COUNT("runs", struct sure_file, numbers.runs, "Published runs that no fit rests on."),
    COUNT("makers", struct sure_file, numbers.makers, MAKERS),
    SURE_SHARE("slower", numbers.slower,
        "How far below the prediction one of twenty runs lies, a logarithm.", 10),
    PLAIN("low_mfu", numbers.of[SURE_LOW_MFU], "Coefficient of ln(40 % / MFU), of the slower side.",
        -5, 5),
    PLAIN("fp8", numbers.of[SURE_FP8], "Of products in FP8 or FP4, of the slower side.", -5, 5),
    PLAIN("node_doubling", numbers.of[SURE_NODES], "Of each doubling of nodes, of the slower side.",
        -5, 5),
    SURE_SHARE("faster", numbers.faster,
        "How far above the prediction one of twenty runs lies, a logarithm.", 10),
    PLAIN("blackwell", numbers.of[SURE_BLACKWELL], "Of Blackwell GPUs, of the faster side.", -5, 5),
    PLAIN("tensor", numbers.of[SURE_TENSOR], "Of tensor parallelism, of the faster side.", -5, 5),
    PLAIN("new_slower", numbers.new_slower,
        "Times as wide on a generation without runs, the slower side.", 1, 100),
    PLAIN("new_faster", numbers.new_faster, "The same of the faster side.", 1, 100),
};
static const struct config_table speed_table = CONFIG_TABLE("intervals of speeds", speed_fields);

#define RATIO_FIELDS(at)                                                                           \
    {                                                                                              \
        COUNT("runs", struct sure_file, numbers.ratios[at].runs,                                   \
            "Ratios to the smallest cluster of a curve."),                                         \
            COUNT("makers", struct sure_file, numbers.ratios[at].makers, MAKERS),                  \
            SURE_SHARE("slower", numbers.ratios[at].slower,                                        \
                "As of speeds, of the root of a doubling of GPUs.", 10),                           \
            SURE_SHARE("faster", numbers.ratios[at].faster,                                        \
                "As of speeds, of the root of a doubling of GPUs.", 10),                           \
    }
static const struct config_field ratio_fields[] = RATIO_FIELDS(0);
static const struct config_field shared_fields[] = RATIO_FIELDS(1);
static const struct config_table ratio_table = CONFIG_TABLE("intervals of ratios", ratio_fields);
static const struct config_table shared_table = CONFIG_TABLE("intervals of ratios", shared_fields);

static const struct config_field loss_fields[] = {
    COUNT("runs", struct sure_file, numbers.loss.runs, "Ratios of DDP and FSDP alone."),
    COUNT("makers", struct sure_file, numbers.loss.makers, MAKERS),
    {CONFIG_FIELD("value", FIELD_NUMBER, struct sure_file, numbers.loss.value,
         "What curves lose beyond what is predicted, of the speed on their smallest cluster, in "
         "the mean."),
        .dimension = DIM_FRACTION, .required = true, .min = -1, .max = 1},
    SURE_SHARE("std_error", numbers.loss.std_error, "Of that mean, by makers.", 1),
};
static const struct config_table loss_table =
    CONFIG_TABLE("the loss that is not explained", loss_fields);

static const struct config_field peak_fields[] = {
    COUNT("runs", struct sure_file, numbers.peak_runs, "Published peaks of memory."),
    COUNT("makers", struct sure_file, numbers.peak_makers, MAKERS),
    {CONFIG_FIELD("quantiles", FIELD_NODE, struct sure_file, quantiles,
         "Logarithms of measured / predicted peaks that 5, 10 ... 95 % of the runs are below."),
        .required = true},
};
static const struct config_table peak_table = CONFIG_TABLE("intervals of peaks", peak_fields);

#define ALIKE(key_, kin, help_) PLAIN(key_, numbers.alike[kin], help_, 0, 1)
static const struct config_field measured_fields[] = {
    ALIKE("maker", SURE_MAKER, "How alike errors of one maker are: the slope of one over another."),
    ALIKE("model", SURE_MODEL, "The same of one model, GPU and framework."),
    ALIKE("layout", SURE_LAYOUT, "The same of one strategy with the same axes of parallelism."),
    ALIKE("job", SURE_JOB, "The same of jobs that differ by a doubling of GPUs alone."),
    PLAIN("wider", numbers.given_wider, "Times as wide as jointly normal errors are.", 0, 100),
};
static const struct config_table measured_table =
    CONFIG_TABLE("what a measurement says of other jobs", measured_fields);

static const struct config_field file_fields[] = {
    {.key = "speed",
        .type = FIELD_SECTION,
        .section = &speed_table,
        .help = "Of tokens/s and TFLOPS of a GPU."},
    {.key = "ratio",
        .type = FIELD_SECTION,
        .section = &ratio_table,
        .help = "Of speeds on two numbers of GPUs."},
    {.key = "ratio_shared",
        .type = FIELD_SECTION,
        .section = &shared_table,
        .help = "The same of jobs whose ranks share a model."},
    {.key = "loss",
        .type = FIELD_SECTION,
        .section = &loss_table,
        .help = "What curves of DDP and FSDP lose beyond what is predicted."},
    {.key = "measured",
        .type = FIELD_SECTION,
        .section = &measured_table,
        .help = "What errors of jobs of one maker have in common."},
    {.key = "peak",
        .type = FIELD_SECTION,
        .section = &peak_table,
        .help = "Of the peak of memory."},
    {CONFIG_FIELD("generations", FIELD_NODE, struct sure_file, generations,
         "Errors of runs by GPU generation."),
        .required = true},
};
const struct config_table sure_table = CONFIG_TABLE("the file of intervals", file_fields);

static const struct config_field evidence_fields[] = {
    {CONFIG_FIELD(
         "generation", FIELD_STRING, struct sure_evidence, generation, "As arch of a GPU's file."),
        .required = true},
    COUNT("runs", struct sure_evidence, runs, "Published runs."),
    COUNT("makers", struct sure_evidence, makers, MAKERS),
    {CONFIG_FIELD(
         "median", FIELD_NUMBER, struct sure_evidence, median, "Of |predicted / measured - 1|."),
        .dimension = DIM_FRACTION, .required = true},
    {CONFIG_FIELD("p90", FIELD_NUMBER, struct sure_evidence, p90, "The same, 90th percentile."),
        .dimension = DIM_FRACTION, .required = true},
};
static const struct config_table evidence_table =
    CONFIG_TABLE("errors of a generation", evidence_fields);

static enum status read_quantiles(struct sure_file *file, struct diag *diag)
{
    struct config_node list = file->quantiles;
    if (config_kind(list) != CONFIG_SEQUENCE || config_count(list) != SURE_QUANTILES)
        return diag_input(
            diag, config_pos(list), "quantiles is a list of %d numbers", SURE_QUANTILES);
    enum status status = STATUS_OK;
    for (int i = 0; i < SURE_QUANTILES && status == STATUS_OK; i++) {
        struct config_node item = config_item(list, i);
        char *end = NULL;
        file->numbers.peak[i] = strtod(config_text(item), &end);
        if (!*config_text(item) || *end ||
            (i > 0 && !(file->numbers.peak[i] >= file->numbers.peak[i - 1])))
            status = diag_input(diag, config_pos(item),
                "'%s' is no number that is at least the one before it", config_text(item));
    }
    return status;
}

static enum status read_generations(struct sure_file *file, struct arena *arena, struct diag *diag)
{
    int n = config_count(file->generations);
    if (config_kind(file->generations) != CONFIG_SEQUENCE)
        return diag_input(diag, config_pos(file->generations), "generations is a list");
    file->numbers.generations = ARENA_ARRAY(arena, struct sure_evidence, n + 1);
    file->numbers.n_generations = n;
    enum status status = STATUS_OK;
    for (int i = 0; i < n; i++) {
        enum status one = config_read(config_item(file->generations, i), &evidence_table,
            &file->numbers.generations[i], arena, NULL, diag);
        status = one > status ? one : status;
    }
    return status;
}

enum status sure_load(
    struct sure_numbers *out, const char *path, struct arena *arena, struct diag *diag)
{
    struct sure_file file = {0};
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, path, diag);
    if (status == STATUS_OK)
        status = config_read(config_root(doc), &sure_table, &file, arena, NULL, diag);
    if (status == STATUS_OK)
        status = read_quantiles(&file, diag);
    if (status == STATUS_OK)
        status = read_generations(&file, arena, diag);
    config_free(doc);
    *out = status == STATUS_OK ? file.numbers : (struct sure_numbers){0};
    return status;
}

bool sure_load_own(struct sure_numbers *out, struct arena *arena)
{
    struct diag unread = DIAG_INIT;
    return sure_load(out, files_own(arena, "topologies/fitted/sure.yaml"), arena, &unread) ==
           STATUS_OK;
}

/* ---- ranges ---- */

static struct sure_range sure_range_of(double low, double high)
{
    return (struct sure_range){.known = true, .low = exp(-low), .high = exp(high), .middle = 1};
}

struct sure_range sure_speed(
    const struct sure_numbers *numbers, const struct sure_terms *terms, bool known)
{
    double sums[2] = {0, 0};
    for (int i = 0; i < SURE_TERMS; i++)
        sums[i >= SURE_SLOWER_TERMS] += numbers->of[i] * terms->of[i];
    double wider[2] = {known ? 1 : numbers->new_slower, known ? 1 : numbers->new_faster};
    return sure_range_of(
        numbers->slower * exp(sums[0]) * wider[0], numbers->faster * exp(sums[1]) * wider[1]);
}

/* ---- with a measurement ---- */

/* What errors of the same job on the same GPUs have in common, assumed: all but what a run itself
 * varies by. */
static const double SAME_JOB = 0.98;

/* An exponential from SAME_JOB at no doubling to the layout's correlation far away, through the
 * file's value at one. */
double sure_alike(const struct sure_numbers *numbers, enum sure_kin kin, double doublings)
{
    if (kin != SURE_JOB)
        return numbers->alike[kin];
    double floor = numbers->alike[SURE_LAYOUT], rest = SAME_JOB - floor;
    double a_doubling = rest > 0 ? fmin(fmax((numbers->alike[SURE_JOB] - floor) / rest, 0), 1) : 0;
    return floor + rest * pow(a_doubling, fabs(doublings));
}

double sure_scaled(const struct sure_range *range, double error)
{
    double half = error < 0 ? -log(range->low) : log(range->high);
    return half > 0 ? error / half : 0;
}

void sure_given(struct sure_range *range, const struct sure_numbers *numbers, int n,
    const double *scaled, const double *with, const double *among)
{
    size_t size = (size_t)n;
    gsl_matrix *covariance = gsl_matrix_alloc(size, size);
    gsl_vector *weights = gsl_vector_alloc(size);
    for (size_t i = 0; i < size; i++) {
        gsl_vector_set(weights, i, with[i]);
        for (size_t j = 0; j < size; j++)
            gsl_matrix_set(covariance, i, j, i == j ? 1 : among[i * size + j]);
    }
    /* not positive definite where a file's numbers are no correlations: then nothing is learnt */
    bool good = gsl_linalg_cholesky_decomp1(covariance) == 0 &&
                gsl_linalg_cholesky_svx(covariance, weights) == 0;
    double mean = 0, explained = 0;
    for (int i = 0; i < n && good; i++) {
        mean += gsl_vector_get(weights, (size_t)i) * scaled[i];
        explained += gsl_vector_get(weights, (size_t)i) * with[i];
    }
    gsl_matrix_free(covariance);
    gsl_vector_free(weights);
    double slower = -log(range->low), faster = log(range->high),
           shift = mean * (mean < 0 ? slower : faster),
           spread = good ? fmin(1, numbers->given_wider * sqrt(fmax(0, 1 - explained))) : 1;
    *range = sure_range_of(slower * spread - shift, faster * spread + shift);
    range->middle = exp(shift);
}

struct sure_range sure_ratio(const struct sure_numbers *numbers, bool shared, double doublings)
{
    const struct sure_ratios *of = &numbers->ratios[shared];
    double scale = sqrt(fabs(doublings));
    return sure_range_of(of->slower * scale, of->faster * scale);
}

struct sure_range sure_peak(const struct sure_numbers *numbers)
{
    return sure_range_of(fmax(0, -numbers->peak[0]), fmax(0, numbers->peak[SURE_QUANTILES - 1]));
}

/* The quantiles divide the line into SURE_QUANTILES + 1 parts of equal probability; between two of
 * them it is linear. */
double sure_fits(const struct sure_numbers *numbers, double peak, double capacity)
{
    double room = log(capacity / peak);
    int above = 0;
    while (above < SURE_QUANTILES && numbers->peak[above] <= room)
        above++;
    double share = above;
    if (above > 0 && above < SURE_QUANTILES) {
        double step = numbers->peak[above] - numbers->peak[above - 1];
        share += step > 0 ? (room - numbers->peak[above - 1]) / step : 0;
    }
    return fmin(fmax(share, 1), SURE_QUANTILES) / (SURE_QUANTILES + 1);
}

const struct sure_evidence *sure_evidence(const struct sure_numbers *numbers, const char *arch)
{
    for (int i = 0; i < numbers->n_generations; i++)
        if (strcmp(numbers->generations[i].generation, arch) == 0)
            return &numbers->generations[i];
    return NULL;
}

/* ---- what was asked ---- */

static void sure_read_file(struct sure *sure)
{
    if (sure->read)
        return;
    sure->read = true;
    sure->arena = ARENA_INIT;
    sure->known = sure_load_own(&sure->numbers, &sure->arena);
}

static struct sure_asked *asked_of(struct sure *sure, const char *arch)
{
    for (int i = 0; i < sure->asked.n; i++)
        if (strcmp(sure->asked.at[i]->arch, arch) == 0)
            return sure->asked.at[i];
    struct sure_asked *asked = ARENA_NEW(&sure->arena, struct sure_asked);
    *asked = (struct sure_asked){
        .arch = arena_strdup(&sure->arena, arch), .evidence = sure_evidence(&sure->numbers, arch)};
    vec_push(&sure->asked, asked);
    return asked;
}

static double width_of(const struct sure_range *range)
{
    return range->high - range->low;
}

static struct sure_range range_without(
    struct sure *sure, const struct scenario_point *point, double mfu)
{
    const struct scenario *options = &point->options;
    struct sure_terms terms = sure_terms(mfu, precision_names[options->strategy.train.precision],
        (double)options->cluster.gpus / (double)hw_gpus_per_node(&point->hw), point->hw.gpu.arch,
        options->strategy.parallelism.model.tensor > 1);
    return sure_speed(
        &sure->numbers, &terms, sure_evidence(&sure->numbers, point->hw.gpu.arch) != NULL);
}

static bool same_axes(const struct strategy_options *a, const struct strategy_options *b)
{
    const struct parallelism_options *p = &a->parallelism, *q = &b->parallelism;
    return a->kind == b->kind && (p->model.tensor > 1) == (q->model.tensor > 1) &&
           (p->model.context > 1) == (q->model.context > 1) &&
           (p->model.expert > 1) == (q->model.expert > 1) && (p->pipeline > 1) == (q->pipeline > 1);
}

/* Two points have in common what their names say: of model and GPU, the profile's path, then the
 * axes, then the curve. */
static double scenario_sure_alike(
    const struct sure *sure, const struct scenario_point *a, const struct scenario_point *b)
{
    const char *stacks[] = {a->options.stack_path, b->options.stack_path};
    bool model = strcmp(a->model.shape.name, b->model.shape.name) == 0 &&
                 strcmp(a->hw.gpu.name, b->hw.gpu.name) == 0 &&
                 strcmp(stacks[0] ? stacks[0] : "", stacks[1] ? stacks[1] : "") == 0,
         layout = model && same_axes(&a->options.strategy, &b->options.strategy),
         job = layout && scenario_curve(&a->options) == scenario_curve(&b->options);
    return sure_alike(&sure->numbers,
        job      ? SURE_JOB
        : layout ? SURE_LAYOUT
        : model  ? SURE_MODEL
                 : SURE_MAKER,
        log2((double)a->options.cluster.gpus / (double)b->options.cluster.gpus));
}

static void give(
    struct sure_range *range, const struct sure *sure, const struct scenario_point *point)
{
    size_t n = (size_t)sure->measured.n;
    double *scaled = xcalloc(n, sizeof *scaled), *with = xcalloc(n, sizeof *with),
           *among = xcalloc(n * n, sizeof *among);
    for (size_t i = 0; i < n; i++) {
        const struct sure_measured *measured = &sure->measured.at[i];
        scaled[i] = sure_scaled(&measured->range, log(measured->ratio));
        with[i] = scenario_sure_alike(sure, point, measured->point);
        for (size_t j = 0; j < n; j++)
            among[i * n + j] =
                scenario_sure_alike(sure, measured->point, sure->measured.at[j].point);
    }
    sure_given(range, &sure->numbers, (int)n, scaled, with, among);
    free(scaled);
    free(with);
    free(among);
}

struct sure_range sure_measure(struct sure *sure, const struct scenario_point *point,
    const struct scenario_result *predicted, double ratio)
{
    sure_read_file(sure);
    struct sure_range range =
        sure->known ? range_without(sure, point, predicted->mfu) : (struct sure_range){0};
    if (sure->known)
        vec_push(&sure->measured, (struct sure_measured){point, ratio, range});
    return range;
}

const struct sure_range *sure_of_speed(
    struct sure *sure, const struct scenario_point *point, double mfu)
{
    sure_read_file(sure);
    struct sure_range *out = ARENA_NEW(&sure->arena, struct sure_range);
    *out = (struct sure_range){0};
    if (!sure->known)
        return out;
    struct sure_asked *asked = asked_of(sure, point->hw.gpu.arch);
    int64_t gpus = point->options.cluster.gpus;
    *out = range_without(sure, point, mfu);
    asked->given = sure->measured.n > 0;
    if (asked->given)
        give(out, sure, point);
    if (!asked->widest.known || width_of(out) > width_of(&asked->widest)) {
        asked->widest = *out;
        asked->widest_gpus = gpus;
    }
    if (!asked->narrowest.known || width_of(out) < width_of(&asked->narrowest)) {
        asked->narrowest = *out;
        asked->narrowest_gpus = gpus;
    }
    return out;
}

const struct sure_range *sure_of_peak(struct sure *sure)
{
    sure_read_file(sure);
    struct sure_range *out = ARENA_NEW(&sure->arena, struct sure_range);
    *out = sure->known ? sure_peak(&sure->numbers) : (struct sure_range){0};
    sure->asked_peak |= sure->known;
    return out;
}

double sure_of_fit(struct sure *sure, double peak, double capacity)
{
    sure_read_file(sure);
    return sure->known ? sure_fits(&sure->numbers, peak, capacity) : peak <= capacity;
}

/* Whether ranks share a model: tensor, context, expert or pipeline parallelism. */
static bool sure_is_shared(const struct scenario *options)
{
    const struct parallelism_options *p = &options->strategy.parallelism;
    return p->model.tensor > 1 || p->model.context > 1 || p->model.expert > 1 || p->pipeline > 1;
}

bool sure_is_data_parallel(const struct scenario *options)
{
    enum strategy_kind kind = (enum strategy_kind)options->strategy.kind;
    return (kind == STRATEGY_DDP || kind == STRATEGY_FSDP) && !sure_is_shared(options);
}

struct sure_range sure_of_ratio(
    struct sure *sure, const struct scenario_point *point, double doublings)
{
    sure_read_file(sure);
    if (!sure->known)
        return (struct sure_range){0};
    bool shared = sure_is_shared(&point->options);
    sure->asked_ratio[shared] = true;
    return sure_ratio(&sure->numbers, shared, doublings);
}

double sure_peak_bytes(const struct exec_memory *memory)
{
    return memory->peak_reserved_bytes + memory->peak_category_bytes[HBM_CONTEXT] +
           memory->peak_category_bytes[HBM_NCCL];
}

void sure_set(
    struct sure *sure, const struct scenario_point *points, struct scenario_result *results, int n)
{
    for (int i = 0; i < n; i++) {
        struct scenario_result *result = &results[i];
        result->sure = (struct scenario_sure){0};
        if (result->exec.status != EXEC_OK)
            continue;
        const struct sure_range *range = sure_of_speed(sure, &points[i], result->mfu);
        if (range->known)
            result->sure = (struct scenario_sure){result->tflops_per_gpu * range->low,
                result->tflops_per_gpu * range->high, result->tokens_per_s_per_gpu * range->low,
                result->tokens_per_s_per_gpu * range->high, range->middle, 0};
        if (sure->known)
            result->sure.fits = sure_fits(&sure->numbers, sure_peak_bytes(&result->exec.memory),
                result->exec.memory.capacity_bytes);
    }
}

void sure_end(struct sure *sure)
{
    if (!sure->read)
        return;
    vec_free(&sure->asked);
    vec_free(&sure->measured);
    arena_release(&sure->arena);
}

static const char *around(struct arena *arena, const struct sure_range *range)
{
    return arena_printf(
        arena, "%+.0f to %+.0f %%", 100 * (range->low - 1), 100 * (range->high - 1));
}

const char *sure_sentence(
    struct arena *arena, const struct sure_numbers *numbers, const struct sure_asked *asked)
{
    const char *narrow = around(arena, &asked->narrowest), *wide = around(arena, &asked->widest);
    const char *text = arena_printf(
        arena, "9 of 10 measured speeds of such jobs lay %s beside the prediction", wide);
    if (strcmp(narrow, wide) != 0 && asked->widest_gpus == asked->narrowest_gpus)
        text =
            arena_printf(arena, "%s where it is least sure, %s where it is surest", text, narrow);
    else if (strcmp(narrow, wide) != 0)
        text = arena_printf(arena, "%s on %" PRId64 " GPU%s, %s on %" PRId64, text,
            asked->widest_gpus, plural((int)asked->widest_gpus), narrow, asked->narrowest_gpus);
    if (asked->given)
        text = arena_printf(arena, "%s, given what was measured", text);
    text = arena_printf(arena,
        "%s: %" PRId64 " runs of %" PRId64 " makers, each predicted without its own", text,
        numbers->runs, numbers->makers);
    const struct sure_evidence *of = asked->evidence;
    return of ? arena_printf(arena,
                    "%s; %" PRId64 " are on %s GPUs, of %" PRId64
                    " maker%s, off by %.1f %% in the median",
                    text, of->runs, of->generation, of->makers, plural((int)of->makers),
                    100 * of->median)
              : arena_printf(arena,
                    "%s; none is on a %s GPU, which makes it as wide as a generation left out asks",
                    text, asked->arch);
}

const char *sure_peak_sentence(struct arena *arena, const struct sure_numbers *numbers)
{
    struct sure_range range = sure_peak(numbers);
    return arena_printf(arena,
        "9 of 10 measured peaks of memory lay %s beside the prediction (%" PRId64
        " runs of %" PRId64 " makers)",
        around(arena, &range), numbers->peak_runs, numbers->peak_makers);
}

const char *sure_ratio_sentence(
    struct arena *arena, const struct sure_numbers *numbers, bool shared)
{
    const struct sure_ratios *of = &numbers->ratios[shared];
    return arena_printf(arena,
        "losses in brackets: 9 of 10 measured pairs of two sizes, %s (%" PRId64 " of %" PRId64
        " makers)",
        shared ? "whose ranks share a model" : "data parallelism alone", of->runs, of->makers);
}

int sure_digits(double low, double high, int most)
{
    double half = fabs(high - low) / 2;
    return half > 0 ? (int)fmin(most, -floor(log10(half / 20))) : most;
}
