/* The one list of what a point has to say: names, types, units and meanings of columns, and where
 * their values are. A column is either a double at an offset of struct scenario_result, which can
 * be read back from the database, or is made by a function from the point and its result. The
 * schema (record_declare), inserts (record_fill_kept), the results that are read back
 * (store/fetch.c), CSV, JSON and the table on the terminal all follow this list. So a new number of
 * a result is one line here; its order in the list is the order of columns everywhere.
 *
 * What is subtle: `known` decides whether a number is NULL, as 0 is a value of most of them;
 * columns with `program` must be members of exec_breakdown or exec_memory, because
 * record_of_program() turns an offset in the result into one in these structs. The schema's version
 * is in store/store.c and has to change with the list, as a database with other columns cannot be
 * read. */
#include "store/record.h"

#include "base/digest.h"
#include "scenario/energy.h"
#include "scenario/identity.h"
#include "scenario/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

bool record_write(FILE *out, const struct record_cell *cell)
{
    if (cell->kind == RECORD_NULL || (cell->kind == RECORD_REAL && !isfinite(cell->real)))
        return false;
    if (cell->kind == RECORD_INT)
        fprintf(out, "%" PRId64, cell->integer);
    else if (cell->kind == RECORD_REAL)
        fprintf(out, "%.15g", cell->real);
    else
        fputs(cell->text, out);
    return true;
}

/* ---- the columns of a point ---- */

#define PER_GiB (1 / 0x1p30)
#define PERCENT 100

static bool ok(const struct record_source *s)
{
    return s->result->exec.status == EXEC_OK;
}

static bool oom(const struct record_source *s)
{
    return !ok(s);
}

static bool with_verdict(const struct record_source *s)
{
    return ok(s) && s->result->sure.fits > 0;
}

/* Whose step is most of what it costs to train by it. */
static bool with_muon(const struct record_source *source)
{
    return ok(source) && source->point->options.strategy.train.optimizer == OPTIMIZER_MUON;
}

static bool with_stages(const struct record_source *s)
{
    return ok(s) && exec_has_stages(&s->result->exec);
}

static bool with_retries(const struct record_source *s)
{
    return ok(s) && s->result->exec.memory.alloc_retries_a_step > 0;
}

static bool record_with_interval(const struct record_source *s)
{
    return ok(s) && s->result->sure.tflops_high > 0;
}

static bool with_documents(const struct record_source *s)
{
    return ok(s) && document_options_vary(&s->point->options.strategy.train.documents);
}

static struct record_cell hexadecimal(char text[17], uint64_t digest)
{
    snprintf(text, 17, "%016" PRIx64, digest);
    return cell_text(NULL, text);
}

/* The function get_NAME that makes a column's value. */
#define GET(of, value)                                                                             \
    static struct record_cell get_##of(const struct record_source *s, struct record *record)       \
    {                                                                                              \
        const struct train_options *train = &s->point->options.strategy.train;                     \
        const struct scenario_published *published = &s->point->published;                         \
        const struct exec_memory *memory = &s->result->exec.memory;                                \
        (void)train, (void)published, (void)memory, (void)record;                                  \
        return value;                                                                              \
    }
#define TEXT(value) cell_text(NULL, value)
#define INT(value) cell_int(NULL, value)
#define REAL(known, value) cell_real(NULL, known, value)

GET(model, TEXT(s->point->model.shape.name))
GET(strategy, TEXT(strategy_label(&s->point->options.strategy)))
GET(micro_batch, INT(train->micro_batch))
GET(gpus, INT(s->point->options.cluster.gpus))
GET(status, TEXT(exec_status_names[s->result->exec.status]))
GET(published_tflops,
    REAL(published->found && published->tflops_per_gpu > 0, published->tflops_per_gpu))
GET(shortfall, REAL(oom(s), memory->required_bytes - memory->capacity_bytes))
GET(oom_category, TEXT(ok(s) ? NULL : hbm_category_names[memory->oom_category]))
GET(oom_op, TEXT(ok(s) ? NULL : memory->oom_op))
GET(params, INT(s->point->model.params))
GET(precision, TEXT(precision_names[train->precision]))
GET(seq_len, INT(train->seq_len))
GET(grad_accum, INT(strategy_batch(train).micro_batches))
GET(cluster, TEXT(s->point->hw.cluster.name))
GET(gpu, TEXT(s->point->hw.gpu.name))
GET(gpus_per_node, INT(hw_gpus_per_node(&s->point->hw)))
GET(seed, INT(s->point->options.exec.seed))
GET(published_id, TEXT(published->found ? published->id : NULL))
GET(published_source, TEXT(published->found ? published->source : NULL))
GET(published_allocated,
    REAL(published->found && published->peak_allocated_bytes > 0, published->peak_allocated_bytes))
GET(published_reserved,
    REAL(published->found && published->peak_reserved_bytes > 0, published->peak_reserved_bytes))
GET(published_oom, published->found ? INT(published->oom) : TEXT(NULL))
GET(ranks_simulated, INT(s->result->exec.ranks_simulated))
GET(curve, hexadecimal(record->curve, scenario_curve(&s->point->options)))
GET(digest, hexadecimal(record->digest, s->result->exec.digest))
GET(gpu_power, REAL(ok(s), scenario_energy(s->point, s->result).gpu_power_w))
GET(energy_per_token, REAL(ok(s), scenario_energy(s->point, s->result).per_token_j))

/* A number of the result, which comes back from the database, and when it is known (NULL: always).
 */
#define OF(member, when) .offset = offsetof(struct scenario_result, member), .known = (when)
#define BREAKDOWN(member, when) OF(exec.breakdown.member, when)
#define MEMORY(member, when) OF(exec.memory.member, when)

const struct record_column record_columns[] = {
    {"wall_s", "REAL NOT NULL", "real time of the simulation", OF(wall_s, NULL), .kept_only = true,
        .outcome = true},
    {"model", "TEXT NOT NULL", NULL, .get = get_model},
    {"strategy", "TEXT NOT NULL", "\"FULL_SHARD\", \"DDP\" ...", .get = get_strategy},
    {"micro_batch", "INTEGER NOT NULL", "sequences a GPU and micro-step", .get = get_micro_batch},
    {"gpus", "INTEGER NOT NULL", NULL, .get = get_gpus},
    {"status", "TEXT NOT NULL CHECK (status IN ('ok', 'oom'))", NULL, .get = get_status},
    {"tflops_per_gpu", "REAL", "by the formula of the scenario's source", OF(tflops_per_gpu, ok),
        .outcome = true},
    {"hw_tflops_per_gpu", "REAL", "recomputation counted", OF(hw_tflops_per_gpu, ok)},
    {"published_tflops_per_gpu", "REAL", NULL, .get = get_published_tflops},
    {"step_time_s", "REAL", NULL, OF(exec.step_time_s, ok), .outcome = true,
        .shown = {"step", "s", 1, 4, RECORD_SPARE_STEP, .place = 1, .sure = true}},
    {"tokens_per_s_per_gpu", "REAL", NULL, OF(tokens_per_s_per_gpu, ok), .outcome = true,
        .shown = {"/s", "/GPU", 1, 0, RECORD_SPARE_TOKENS, .place = 2, .counted = true,
            .sure = true}},
    {"exposed_comm_s", "REAL", "of a step: compute stream idle for a collective, without bubble_s",
        BREAKDOWN(exposed_comm_s, ok), .program = true, .outcome = true,
        .shown = {"exposed comm", "% of step", PERCENT, 1, RECORD_SPARE_EXPOSED, .place = 4,
            .of_step = true}},
    {"peak_allocated_bytes", "REAL", "torch.cuda.max_memory_allocated",
        MEMORY(peak_allocated_bytes, ok), .program = true, .outcome = true,
        .shown = {"HBM peak", "GiB", PER_GiB, 1, 0, .place = 6}},
    {"peak_reserved_bytes", "REAL", "torch.cuda.max_memory_reserved",
        MEMORY(peak_reserved_bytes, ok), .program = true, .outcome = true,
        .shown = {"reserved", "GiB", PER_GiB, 1, RECORD_SPARE_RESERVED, .place = 7}},
    {"hbm_capacity_bytes", "REAL NOT NULL", NULL, MEMORY(capacity_bytes, NULL)},
    {"required_bytes", "REAL", "OOM: peak on a GPU without limit, CUDA context and NCCL included",
        MEMORY(required_bytes, oom)},
    {"shortfall_bytes", "REAL",
        "OOM: required_bytes - hbm_capacity_bytes; not above 0: gaps between tensors are the "
        "reason",
        .get = get_shortfall},
    {"oom_category", "TEXT", "OOM: of the buffer that did not fit", .get = get_oom_category},
    {"oom_op", "TEXT", "OOM: that buffer", .get = get_oom_op},
    {"oom_request_bytes", "REAL", "OOM: its size", MEMORY(oom_request_bytes, oom)},
    {"alloc_retries", "REAL", "cudaMalloc failures that freeing cached segments cured",
        MEMORY(alloc_retries, ok)},
    {"alloc_retries_a_step", "REAL", "of measured steps: cudaMalloc failed and was tried again",
        MEMORY(alloc_retries_a_step, ok), .outcome = true,
        .shown = {"retries", "/step", 1, 1, RECORD_SPARE_RETRIES, .place = 8},
        .shown_if = with_retries},
    {"alloc_stall_s", "REAL",
        "a step: the host stood for cudaMalloc; idle time that it causes is in host_bound_s",
        MEMORY(alloc_stall_s, ok),
        .shown = {"alloc stall", "s/step", 1, 2, RECORD_SPARE_RETRIES, .place = 9},
        .shown_if = with_retries},
    {"compute_s", "REAL",
        "of a step: compute_s + exposed_comm_s + bubble_s + host_bound_s + other_idle_s = "
        "step_time_s",
        BREAKDOWN(compute_s, ok), .program = true, .outcome = true},
    {"contention_s", "REAL", "part of compute_s: slower beside collectives than alone",
        BREAKDOWN(contention_s, ok), .program = true},
    {"optimizer_s", "REAL", "part of compute_s: kernels of the optimizer's step",
        BREAKDOWN(optimizer_s, ok), .program = true,
        .shown = {"optimizer", "% of step", PERCENT, 1, RECORD_SPARE_EXPOSED, .place = 12,
            .of_step = true},
        .shown_if = with_muon},
    {"host_bound_s", "REAL", NULL, BREAKDOWN(host_bound_s, ok), .program = true},
    {"other_idle_s", "REAL", NULL, BREAKDOWN(other_idle_s, ok), .program = true},
    {"comm_s", "REAL", "collectives moving, hidden or not", BREAKDOWN(comm_s, ok), .program = true},
    {"comm_latency_s", "REAL", "part of comm_s", BREAKDOWN(comm_latency_s, ok), .program = true},
    {"comm_wait_s", "REAL", "members waiting for the last one to arrive",
        BREAKDOWN(comm_wait_s, ok), .program = true},
    {"bubble_s", "REAL", "of a step: stages waited for one another. NULL: there is one stage",
        BREAKDOWN(bubble_s, with_stages), .program = true, .outcome = true,
        .shown = {"bubble", "% of step", PERCENT, 1, RECORD_SPARE_BUBBLE, .place = 5,
            .of_step = true},
        .shown_if = with_stages},
    {"stage_wait_s", "REAL",
        "part of comm_wait_s: for ranks of other stages. NULL: there is one stage",
        BREAKDOWN(stage_wait_s, with_stages), .program = true},
    {"step_time_sd_s", "REAL", NULL, OF(exec.step_time_sd_s, ok)},
    {"step_time_p05_s", "REAL", "5 % of the measured steps are shorter",
        OF(exec.step_time_p05_s, ok),
        .shown = {"steps P5", "s", 1, 3, RECORD_SPARE_STEP, .place = 10},
        .shown_if = with_documents},
    {"step_time_p95_s", "REAL", "5 % are longer", OF(exec.step_time_p95_s, ok),
        .shown = {"steps P95", "s", 1, 3, RECORD_SPARE_STEP, .place = 11},
        .shown_if = with_documents},
    {"model_tflops_per_gpu", "REAL", "3 x forward", OF(model_tflops_per_gpu, ok)},
    {"mfu", "REAL", NULL, OF(mfu, ok), .outcome = true,
        .shown = {"MFU", "%", PERCENT, 1, RECORD_SPARE_MFU, .place = 3, .sure = true}},
    {"hfu", "REAL", NULL, OF(hfu, ok)},
    {"samples_per_s", "REAL", "of the job", OF(samples_per_s, ok)},
    {"nvlink_utilisation", "REAL", NULL, OF(exec.nvlink_utilisation, ok)},
    {"nic_utilisation", "REAL", NULL, OF(exec.nic_utilisation, ok)},
    {"model_params", "INTEGER NOT NULL", NULL, .get = get_params},
    {"precision", "TEXT NOT NULL", NULL, .get = get_precision},
    {"seq_len", "INTEGER NOT NULL", NULL, .get = get_seq_len},
    {"grad_accum", "INTEGER NOT NULL", NULL, .get = get_grad_accum},
    {"cluster", "TEXT NOT NULL", NULL, .get = get_cluster},
    {"gpu", "TEXT NOT NULL", NULL, .get = get_gpu},
    {"gpus_per_node", "INTEGER NOT NULL", NULL, .get = get_gpus_per_node},
    {"seed", "INTEGER NOT NULL", NULL, .get = get_seed},
    {"published_id", "TEXT", NULL, .get = get_published_id},
    {"published_source", "TEXT", NULL, .get = get_published_source},
    {"published_peak_allocated_bytes", "REAL", NULL, .get = get_published_allocated},
    {"published_peak_reserved_bytes", "REAL", NULL, .get = get_published_reserved},
    {"published_oom", "INTEGER CHECK (published_oom IN (0, 1))", NULL, .get = get_published_oom},
    {"events", "REAL NOT NULL", NULL, OF(exec.events, NULL)},
    {"plan_ops", "REAL NOT NULL", NULL, OF(plan_ops, NULL)},
    {"ranks_simulated", "INTEGER NOT NULL", NULL, .get = get_ranks_simulated},
    {"curve", "TEXT NOT NULL", "alike for points of a run that differ in nothing but the GPU count",
        .get = get_curve},
    {"digest", "TEXT NOT NULL", "of all events, 16 hexadecimal digits", .get = get_digest},
    {"gpu_power_w", "REAL", "of a GPU alone, mean over the step (sim/core/scenario/energy.h)",
        .get = get_gpu_power},
    {"energy_per_token_j", "REAL",
        "with host, network and PUE; where images or samples are counted, of one of these",
        .get = get_energy_per_token},
    {"tflops_per_gpu_low", "REAL",
        "between it and tflops_per_gpu_high 90 % of measured runs of such jobs are "
        "(sim/core/scenario/sure.h); NULL: not known",
        OF(sure.tflops_low, record_with_interval)},
    {"tflops_per_gpu_high", "REAL", NULL, OF(sure.tflops_high, record_with_interval)},
    {"tokens_per_s_per_gpu_low", "REAL", "the same interval",
        OF(sure.tokens_low, record_with_interval)},
    {"tokens_per_s_per_gpu_high", "REAL", NULL, OF(sure.tokens_high, record_with_interval)},
    {"fits_share", "REAL",
        "of such cases, those in which a job with this peak stays within the GPU's memory "
        "(sim/core/scenario/sure.h); 0.05 to 0.95. NULL: not known",
        OF(sure.fits, with_verdict)},
};
const int n_record_columns = sizeof record_columns / sizeof *record_columns;

double record_number(const struct scenario_result *result, const struct record_column *column)
{
    return *(const double *)(const void *)((const unsigned char *)result + column->offset);
}

void record_set(struct scenario_result *result, const struct record_column *column, double value)
{
    *(double *)(void *)((unsigned char *)result + column->offset) = value;
}

/* A cell borrows its texts from the point, the result or the record, so a record is not copied. */
static void store_record_fill(struct record *out, const struct record_source *source, bool kept)
{
    out->n = 0;
    for (const struct record_column *c = record_columns; c < record_columns + n_record_columns;
         c++) {
        bool known = !c->known || c->known(source);
        if (c->kept_only && !kept)
            continue;
        BUG_IF(out->n == RECORD_MAX_CELLS, "no room for %s", c->name);
        struct record_cell cell = c->get
                                      ? c->get(source, out)
                                      : cell_real(c->name, known, record_number(source->result, c));
        cell.name = c->name;
        out->cells[out->n++] = cell;
    }
}

void record_fill(
    struct record *out, const struct scenario_point *point, const struct scenario_result *result)
{
    store_record_fill(out, &(struct record_source){point, result}, false);
}

void record_fill_kept(
    struct record *out, const struct scenario_point *point, const struct scenario_result *result)
{
    store_record_fill(out, &(struct record_source){point, result}, true);
}

void record_fill_outcome(struct record *out, const struct scenario_result *result)
{
    out->n = 0;
    for (const struct record_column *c = record_columns; c < record_columns + n_record_columns; c++)
        if (c->outcome)
            out->cells[out->n++] = cell_real(c->name, true, record_number(result, c));
}

/* The same member of one program's breakdown or memory: the offset is taken relative to the
 * struct that it lies in. */
double *record_of_program(struct exec_program *program, const struct record_column *column)
{
    size_t breakdown = offsetof(struct scenario_result, exec.breakdown),
           memory = offsetof(struct scenario_result, exec.memory);
    bool of_time =
        column->offset >= breakdown && column->offset < breakdown + sizeof program->breakdown;
    unsigned char *base =
        of_time ? (unsigned char *)&program->breakdown : (unsigned char *)&program->memory;
    return (double *)(void *)(base + column->offset - (of_time ? breakdown : memory));
}

/* Tables of programs and outcomes have no NULL: what is not known is 0 there. */
void record_declare(FILE *out, enum record_table table)
{
    const char *before = "";
    for (const struct record_column *c = record_columns; c < record_columns + n_record_columns; c++)
        if (table == RECORD_POINT || (table == RECORD_PROGRAM ? c->program : c->outcome)) {
            fprintf(out, "%s%s %s,%s%s", before, c->name,
                table == RECORD_POINT ? c->sql : "REAL NOT NULL", c->about ? " -- " : "",
                c->about ? c->about : "");
            before = "\n  ";
        }
}

/* ---- bands and deviations ---- */

static void add_real(struct record *record, const char *name, bool known, double value)
{
    BUG_IF(record->n == RECORD_MAX_CELLS, "no room for %s", name);
    record->cells[record->n++] = cell_real(name, known, value);
}

void record_fill_band(struct record *out, const struct scenario_result *result)
{
    static const char *const ends[] = {"p05", "p50", "p95"};
    enum { ENDS = sizeof ends / sizeof *ends, NAMES = sizeof out->band / sizeof *out->band };
    _Static_assert(SAMPLED_COUNT * ENDS <= NAMES, "a name for every number");
    out->n = 0;
    out->cells[out->n++] = cell_int("samples", scenario_band(result, SAMPLED_TFLOPS).n);
    for (int i = 0; i < SAMPLED_COUNT; i++) {
        struct scenario_band band = scenario_band(result, (enum scenario_sampled)i);
        const double values[ENDS] = {band.low, band.median, band.high};
        for (int q = 0; q < ENDS; q++) {
            char *name = out->band[ENDS * i + q];
            snprintf(name, sizeof *out->band, "%s_%s", scenario_sampled_names[i], ends[q]);
            add_real(out, name, band.n > 0, values[q]);
        }
    }
}

static void add_deviation(
    struct record *record, const char *name, bool ok, double simulated, double published)
{
    bool known = ok && published > 0;
    add_real(record, name, known, known ? simulated / published - 1 : 0);
}

void record_fill_deviation(
    struct record *out, const struct scenario_point *point, const struct scenario_result *result)
{
    const struct exec_memory *memory = &result->exec.memory;
    const struct scenario_published *published = &point->published;
    bool ok = result->exec.status == EXEC_OK && published->found;
    out->n = 0;
    add_deviation(out, "tflops_deviation", ok, result->tflops_per_gpu, published->tflops_per_gpu);
    add_deviation(out, "peak_allocated_deviation", ok, memory->peak_allocated_bytes,
        published->peak_allocated_bytes);
    add_deviation(out, "peak_reserved_deviation", ok, memory->peak_reserved_bytes,
        published->peak_reserved_bytes);
}
