/* Power and energy of a point that ran: hw/power.h with the breakdown of its step. A GPU is busy
 * for compute_s of the step and waits for the rest, whatever it waits for. */
#ifndef FLOPCAST_SCENARIO_ENERGY_H
#define FLOPCAST_SCENARIO_ENERGY_H

#include "scenario/scenario.h"

struct scenario_energy {
    double gpu_power_w; /* of the GPU alone, mean over step and ranks */
    double power_w, waiting_power_w,
        idle_power_w;   /* at the meter, a GPU: in its steps; while it waits; of a spare */
    double per_token_j; /* at the meter; of an image or sample where these are counted */
};

/* All 0 where the point is out of memory. */
struct scenario_energy scenario_energy(
    const struct scenario_point *point, const struct scenario_result *result);

#endif
