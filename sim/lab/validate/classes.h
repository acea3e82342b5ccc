/* Classes that errors of published runs are grouped by. */
#ifndef FLOPCAST_VALIDATE_CLASSES_H
#define FLOPCAST_VALIDATE_CLASSES_H

#include "validate/validate.h"

/*   source     as the table says
 *   framework  the stack profile's name, "no stack profile" without one
 *   layout     the axes with more than one rank: "TP+PP+DP"
 *   gpus       "1", "2 to 8", "9 to 64", "65 to 512", "more than 512"
 *   waiting    what the compute stream waits for other ranks, of the predicted step, for the network (exposed
 *              communication) or another stage (the bubble): "under 5 %", "5 to 15 %", "15 to 30 %", "30 to 50 %", "50
 * % and more"; "no step" where none was simulated */
enum validate_by { BY_SOURCE, BY_FRAMEWORK, BY_LAYOUT, BY_GPUS, BY_WAITING, BY_COUNT };
extern const char *const validate_by_names[BY_COUNT + 1]; /* "source", ... */

const char *validate_class(const struct validate_row *row, enum validate_by by);

/* The classes of the rows: sources as they come, what has an order in that, the others by name. In the arena. */
struct validate_classes {
    const char **names;
    int n;
};
struct validate_classes validate_classes(const struct validate_table *table, enum validate_by by, struct arena *arena);

#endif
