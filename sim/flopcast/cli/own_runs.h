/* --measured "SETTINGS: VALUE UNIT", and a scenario's list `measured`: what was measured of the
 * same job, on another number of GPUs or with other settings. It is simulated, too, and what is
 * printed afterwards is shifted by how far off that was, and surer (scenario/sure.h, sure_given()).
 * The command line's settings hold for what stands beside them, so for --measured; what the file
 * lists was measured of the job as the file has it. */
#ifndef FLOPCAST_CLI_OWN_RUNS_H
#define FLOPCAST_CLI_OWN_RUNS_H

#include "options/arguments.h"
#include "scenario/sure.h"

#include <stdio.h>

/* Texts as they were given, checked for their form. Zeroed at first. */
struct own_texts {
    VEC(const char *) texts;
};
void own_runs_take(void *measured, const struct argument *argument);
#define MEASURED_OPTION(type)                                                                      \
    {                                                                                              \
        "measured", "SETTINGS: VALUE UNIT",                                                        \
            "What was measured of this job, as in \"cluster.gpus=8 train.micro_batch=2: 9250 "     \
            "tokens/s\": predictions "                                                             \
            "are shifted by what the simulation is off there, and their intervals are narrower. "  \
            "Units: tokens/s (of "                                                                 \
            "a GPU, as it is printed; of all GPUs: tokens/s/job; images, samples), s or ms (a "    \
            "step), TFLOPS (of a "                                                                 \
            "GPU); may be "                                                                        \
            "repeated",                                                                            \
            OPTION_TAKE, .member = offsetof(type, measured), .take = own_runs_take,                \
                         .flags = OPTION_LIST                                                      \
    }

/* A measurement beside its simulation. */
struct own_run {
    const char *text;
    const struct scenario_point *point;
    double off;              /* measured / simulated - 1, of the speed */
    struct sure_range range; /* of the prediction without it */
};
struct own_runs {
    const char *command; /* on whose behalf it says how far it is; quiet: it does not */
    bool quiet;
    VEC(struct own_run) list;
};

/* Simulates each, of the set's file, and tells sure. Points are in the arena. */
enum status own_runs_simulate(struct own_runs *out, struct sure *sure,
    const struct own_texts *measured, const struct scenario_set *set,
    const struct overrides *overrides, struct arena *arena, struct diag *diag);

/* A line each; where one lies outside its interval, what that may be. */
void own_runs_print(FILE *out, const struct own_runs *runs);

void own_runs_free(struct own_texts *measured);

#endif
