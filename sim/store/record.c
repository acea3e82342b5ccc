#include "store/record.h"

#include "base/digest.h"
#include "scenario/energy.h"
#include "scenario/sample.h"

#include <inttypes.h>
#include <math.h>
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

static struct record_cell *add(struct record *record, const char *name, enum record_kind kind)
{
    BUG_IF(record->n == RECORD_MAX_CELLS, "no room for %s", name);
    record->cells[record->n] = (struct record_cell){.name = name, .kind = kind};
    return &record->cells[record->n++];
}

static void add_int(struct record *record, const char *name, int64_t value)
{
    add(record, name, RECORD_INT)->integer = value;
}

static void add_text(struct record *record, const char *name, const char *text)
{
    add(record, name, text ? RECORD_TEXT : RECORD_NULL)->text = text;
}

static void add_real(struct record *record, const char *name, bool known, double value)
{
    struct record_cell cell = cell_real(name, known, value);
    *add(record, name, cell.kind) = cell;
}

static void add_memory(struct record *record, const struct exec_memory *memory, bool ok)
{
    add_real(record, "peak_allocated_bytes", ok, memory->peak_allocated_bytes);
    add_real(record, "peak_reserved_bytes", ok, memory->peak_reserved_bytes);
    add_real(record, "hbm_capacity_bytes", true, memory->capacity_bytes);
    add_real(record, "required_bytes", !ok, memory->required_bytes);
    add_real(record, "shortfall_bytes", !ok, memory->required_bytes - memory->capacity_bytes);
    add_text(record, "oom_category", ok ? NULL : hbm_category_names[memory->oom_category]);
    add_text(record, "oom_op", ok ? NULL : memory->oom_op);
    add_real(record, "oom_request_bytes", !ok, memory->oom_request_bytes);
    add_real(record, "alloc_retries", ok, memory->alloc_retries);
    add_real(record, "alloc_retries_a_step", ok, memory->alloc_retries_a_step);
    add_real(record, "alloc_stall_s", ok, memory->alloc_stall_s);
}

static void add_time(struct record *record, const struct scenario_result *result, bool ok)
{
    const struct exec_breakdown *part = &result->exec.breakdown;
    add_real(record, "compute_s", ok, part->compute_s);
    add_real(record, "contention_s", ok, part->contention_s);
    add_real(record, "host_bound_s", ok, part->host_bound_s);
    add_real(record, "other_idle_s", ok, part->other_idle_s);
    add_real(record, "comm_s", ok, part->comm_s);
    add_real(record, "comm_latency_s", ok, part->comm_latency_s);
    add_real(record, "comm_wait_s", ok, part->comm_wait_s);
    add_real(record, "bubble_s", ok && exec_has_stages(&result->exec), part->bubble_s);
    add_real(record, "stage_wait_s", ok && exec_has_stages(&result->exec), part->stage_wait_s);
    add_real(record, "step_time_sd_s", ok, result->exec.step_time_sd_s);
    add_real(record, "model_tflops_per_gpu", ok, result->model_tflops_per_gpu);
    add_real(record, "mfu", ok, result->mfu);
    add_real(record, "hfu", ok, result->hfu);
    add_real(record, "samples_per_s", ok, result->samples_per_s);
    add_real(record, "nvlink_utilisation", ok, result->exec.nvlink_utilisation);
    add_real(record, "nic_utilisation", ok, result->exec.nic_utilisation);
}

static void add_setting(struct record *record, const struct scenario_point *point)
{
    const struct train_options *train = &point->options.strategy.train;
    add_int(record, "model_params", point->model.params);
    add_text(record, "precision", precision_names[train->precision]);
    add_int(record, "seq_len", train->seq_len);
    add_int(record, "grad_accum", strategy_batch(train).micro_batches);
    add_text(record, "cluster", point->hw.cluster.name);
    add_text(record, "gpu", point->hw.gpu.name);
    add_int(record, "gpus_per_node", hw_gpus_per_node(&point->hw));
    add_int(record, "seed", point->options.exec.seed);
}

static void add_published(struct record *record, const struct scenario_published *published)
{
    bool found = published->found;
    add_text(record, "published_id", found ? published->id : NULL);
    add_text(record, "published_source", found ? published->source : NULL);
    add_real(record, "published_peak_allocated_bytes", found && published->peak_allocated_bytes > 0,
        published->peak_allocated_bytes);
    add_real(record, "published_peak_reserved_bytes", found && published->peak_reserved_bytes > 0,
        published->peak_reserved_bytes);
    add(record, "published_oom", found ? RECORD_INT : RECORD_NULL)->integer = published->oom;
}

void record_fill(struct record *out, const struct scenario_point *point, const struct scenario_result *result)
{
    const struct exec_result *exec = &result->exec;
    const struct scenario_published *published = &point->published;
    bool ok = exec->status == EXEC_OK;
    out->n = 0;
    add_text(out, "model", point->model.shape.name);
    add_text(out, "strategy", strategy_label(&point->options.strategy));
    add_int(out, "micro_batch", point->options.strategy.train.micro_batch);
    add_int(out, "gpus", point->options.cluster.gpus);
    add_text(out, "status", exec_status_names[exec->status]);
    add_real(out, "tflops_per_gpu", ok, result->tflops_per_gpu);
    add_real(out, "hw_tflops_per_gpu", ok, result->hw_tflops_per_gpu);
    add_real(
        out, "published_tflops_per_gpu", published->found && published->tflops_per_gpu > 0, published->tflops_per_gpu);
    add_real(out, "step_time_s", ok, exec->step_time_s);
    add_real(out, "tokens_per_s_per_gpu", ok, result->tokens_per_s_per_gpu);
    add_real(out, "exposed_comm_s", ok, exec->breakdown.exposed_comm_s);
    add_memory(out, &exec->memory, ok);
    add_time(out, result, ok);
    add_setting(out, point);
    add_published(out, published);
    add_real(out, "events", true, exec->events);
    add_real(out, "plan_ops", true, result->plan_ops);
    add_int(out, "ranks_simulated", exec->ranks_simulated);
    snprintf(out->curve, sizeof out->curve, "%016" PRIx64, record_curve(&point->options));
    add_text(out, "curve", out->curve);
    snprintf(out->digest, sizeof out->digest, "%016" PRIx64, exec->digest);
    add_text(out, "digest", out->digest);
    struct scenario_energy energy = scenario_energy(point, result);
    add_real(out, "gpu_power_w", ok, energy.gpu_power_w);
    add_real(out, "energy_per_token_j", ok, energy.per_token_j);
    bool kinds = point->hw.second_from > 0;
    add_text(out, "second_gpu", kinds ? point->hw.second_gpu.name : NULL);
    add_real(out, "first_micro_batch", kinds, result->micro_batch[0]);
    add_real(out, "second_micro_batch", kinds, result->micro_batch[1]);
}

void record_fill_band(struct record *out, const struct scenario_result *result)
{
    static const char *const ends[] = {"p05", "p50", "p95", "low", "high"};
    enum { ENDS = sizeof ends / sizeof *ends, NAMES = sizeof out->band / sizeof *out->band };
    _Static_assert(SAMPLED_COUNT * ENDS <= NAMES, "a name for every number");
    out->n = 0;
    add_int(out, "samples", scenario_band(result, SAMPLED_TFLOPS).n);
    for (int i = 0; i < SAMPLED_COUNT; i++) {
        struct scenario_band band = scenario_band(result, (enum scenario_sampled)i);
        struct scenario_band wide = scenario_widen(band, result->discrepancy);
        const double values[ENDS] = {band.low, band.median, band.high, wide.low, wide.high};
        for (int q = 0; q < ENDS; q++) {
            char *name = out->band[ENDS * i + q];
            snprintf(name, sizeof *out->band, "%s_%s", scenario_sampled_names[i], ends[q]);
            add_real(out, name, band.n > 0, values[q]);
        }
    }
    add_real(out, "discrepancy", true, result->discrepancy);
}

static void add_deviation(struct record *record, const char *name, bool ok, double simulated, double published)
{
    bool known = ok && published > 0;
    add_real(record, name, known, known ? simulated / published - 1 : 0);
}

void record_fill_deviation(struct record *out, const struct scenario_point *point, const struct scenario_result *result)
{
    const struct exec_memory *memory = &result->exec.memory;
    const struct scenario_published *published = &point->published;
    bool ok = result->exec.status == EXEC_OK && published->found;
    out->n = 0;
    add_deviation(out, "tflops_deviation", ok, result->tflops_per_gpu, published->tflops_per_gpu);
    add_deviation(out, "peak_allocated_deviation", ok, memory->peak_allocated_bytes, published->peak_allocated_bytes);
    add_deviation(out, "peak_reserved_deviation", ok, memory->peak_reserved_bytes, published->peak_reserved_bytes);
}

uint64_t record_curve(const struct scenario *options)
{
    /* The printed form leaves out padding, pointers and origins, and follows the table when options are added. */
    struct scenario alike = *options;
    alike.cluster.gpus = 0;
    if (alike.strategy.train.global_batch > 0) /* each rank's share of it follows from the GPUs */
        alike.strategy.train.device_batch = 0;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    config_write_json(out, &scenario_table, &alike, NULL);
    fclose(out);
    uint64_t digest = DIGEST_INIT;
    for (size_t i = 0; i < n; i++)
        digest = digest_word(digest, (unsigned char)text[i]);
    free(text);
    return digest;
}
