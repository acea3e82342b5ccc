/* What `flopcast goodput` was asked, what it found, and how it prints and stores that. */
#ifndef FLOPCAST_CLI_GOODPUT_H
#define FLOPCAST_CLI_GOODPUT_H

#include "options/arguments.h"
#include "cli/own_runs.h"
#include "cli/price.h"
#include "rows/records.h"
#include "rows/sure.h"
#include "goodput/goodput.h"

#include <stdio.h>

struct goodput_command {
    const char *file, *db;
    enum records_format format;
    double days; /* 0: not said */
    struct token_count tokens;
    int seeds;
    bool sources;
    struct overrides overrides;
    struct prices prices;
    struct own_texts measured;
    struct arena arena;
};

/* What all tokens take. By the luck of failures and by how sure the step is: two errors beside each
 * other, so in the logarithm their distances from the mean add as squares. high: 0 where nothing
 * trains in the worst histories. */
struct goodput_total {
    double mean, low, high; /* mean 0: not known */
};

/* A point whose step fits into memory; others have ok false. Means and bands are over seeds. */
struct goodput_point {
    bool ok;
    struct goodput_job job;
    struct goodput_costs costs;
    double days, interval_s;
    struct goodput_band share;
    double time_share[GOODPUT_TIMES][GOODPUT_CAUSES + 1];
    double interruptions[GOODPUT_CAUSES], hangs, checkpoints; /* of a history */
    double tflops_per_gpu, tokens_per_s; /* while it trains; tokens of the whole job */
    const struct sure_range *range;      /* how sure the step is */
    double spare_gpus;                   /* of hot spares, beside those of the job */
    double price_usd_per_gpu_hour;       /* 0: not known */
    double usd_per_day, kwh_per_day;     /* of all GPUs, those of spares too; 0: not known */
    struct goodput_total total_days, total_usd, total_kwh; /* of command->tokens */
};

/* A share of the time (enum goodput_time), of all causes. */
double goodput_time_share(const struct goodput_point *point, int time);

void goodput_print(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena);
/* Into command->db (tables goodput, goodput_point). */
enum status goodput_keep(const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena, struct diag *diag);

#endif
