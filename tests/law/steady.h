/* A scenario that repeats itself: no noise, one measured step behind enough that warm up. */
#ifndef FLOPCAST_TESTS_LAW_STEADY_H
#define FLOPCAST_TESTS_LAW_STEADY_H

#include "scenario/scenario.h"

#define STEADY                                                                                     \
    {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"}, {"noise.network_jitter", "0"},  \
        {"noise.host_jitter", "0"}, {"run.steps", "1"},                                            \
    {                                                                                              \
        "run.warmup_steps", "4"                                                                    \
    }

#endif
