/* A quantity in tests, where no source is to be named. */
#ifndef FLOPCAST_TESTS_NUMBER_H
#define FLOPCAST_TESTS_NUMBER_H

#define NUMBER(x)                                                                                  \
    {                                                                                              \
        .value = (x), .kind = QUANTITY_ASSUMED                                                     \
    }

#endif
