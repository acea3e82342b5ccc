/* What `flopcast goodput` was asked, what it found, and how it prints that. */
#ifndef FLOPCAST_CLI_GOODPUT_H
#define FLOPCAST_CLI_GOODPUT_H

#include "cli/price.h"
#include "cli/records.h"
#include "cli/sure.h"
#include "goodput/goodput.h"
#include "scenario/scenario.h"

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
    struct arena arena;
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
    double tflops_per_gpu, tokens_per_s;                      /* while it trains; tokens of the whole job */
    const struct regime *regime;                              /* how sure the step is */
    double spare_gpus;                                        /* of hot spares, beside those of the job */
    double usd_per_day, kwh_per_day;                          /* of all GPUs, those of spares too; 0: not known */
};

/* A share of the time (enum goodput_time), of all causes. */
double goodput_time_share(const struct goodput_point *point, int time);

void goodput_print(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena);
/* Into command->db (tables goodput, goodput_point). */
enum status goodput_store(const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena, struct diag *diag);
/* Every default number with its unit, kind and source. */
void goodput_print_sources(FILE *out);

#endif
