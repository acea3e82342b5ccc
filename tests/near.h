/* Doubles in tests: cmocka 1.1.5 compares floats only, in single precision. */
#ifndef FLOPCAST_TESTS_NEAR_H
#define FLOPCAST_TESTS_NEAR_H

#include <math.h>

/* |got - want| <= tolerance (absolute); fails with both values. Include after cmocka.h. */
#define assert_near(got, want, tolerance)                                                          \
    do {                                                                                           \
        double got_ = (got), want_ = (want);                                                       \
        if (!(fabs(got_ - want_) <= (tolerance)))                                                  \
            fail_msg("%s is %.17g, not %.17g", #got, got_, want_);                                 \
    } while (0)

#endif
