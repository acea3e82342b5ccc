/* Months of training out of one simulated step (goodput/goodput.h): what can fail of a point's job,
 * what its checkpoints and restarts cost, histories with random failures, and what a number of
 * tokens then takes in days, dollars and energy. Spares and nodes that are away are paid for, too,
 * and draw idle power. */
#ifndef FLOPCAST_STUDY_MONTHS_H
#define FLOPCAST_STUDY_MONTHS_H

#include "goodput/goodput.h"
#include "scenario/scenario.h"
#include "scenario/sure.h"

/* tokens: to train on, "" and 0 where nobody said. days of a history; 0: those of the scenario,
 * else as many as the tokens take without a failure, else 30. */
struct months_asked {
    double days, tokens;
    const char *tokens_text;
    int histories;
};

/* What all tokens take. By the luck of failures and by how sure the step is: two errors beside each
 * other, so in the logarithm their distances from the mean add as squares. high: 0 where nothing
 * trains in the worst histories. */
struct months_total {
    double mean, low, high; /* mean 0: not known */
};

/* A point whose step fits into memory; others have ok false. Means and bands are over histories. */
struct months_point {
    bool ok;
    struct goodput_job job;
    struct goodput_costs costs;
    double days, interval_s;
    struct goodput_band share;
    double time_share[GOODPUT_TIMES][GOODPUT_CAUSES + 1];
    double interruptions[GOODPUT_CAUSES], hangs, checkpoints; /* of a history */
    double tflops_per_gpu, tokens_per_s; /* while it trains; tokens of the whole job */
    const struct sure_range *range;      /* how sure the step is; borrowed */
    double spare_gpus;                   /* of hot spares, beside those of the job */
    double price_usd_per_gpu_hour;       /* 0: not known */
    double usd_per_day, kwh_per_day;     /* of all GPUs, those of spares too; 0: not known */
    struct months_total total_days, total_usd, total_kwh; /* of the tokens asked for */
};

/* On all cores. Sizes that would simulate for hours or train next to nothing are mistakes of diag,
 * with the setting to change. */
void months_simulate(struct months_point *out, const struct months_asked *asked,
    const struct scenario_point *point, const struct scenario_result *result,
    const struct sure_range *range, struct arena *arena, struct diag *diag);

/* A share of the time (enum goodput_time), of all causes; what a cause takes of all times that do
 * not train; interruptions of all causes. */
double months_time_share(const struct months_point *point, int time);
double months_cause_share(const struct months_point *point, int cause);
double months_interruptions(const struct months_point *point);

/* Numbers that a scenario need not set, with kind and source, one after another from 0; false:
 * there is no i-th one. Texts in the arena. */
struct months_source {
    const char *setting, *value, *kind, *source;
};
bool months_source(struct months_source *out, int i, struct arena *arena);

#endif
