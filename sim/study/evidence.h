/* How much of the difference between two points rests on numbers that are known for one machine and assumed, or
 * missing, for the other (hw/evidence.h): the two runs once more without noise, with the better known number on both,
 * one number after the other alone, and all of them together. */
#ifndef FLOPCAST_STUDY_EVIDENCE_H
#define FLOPCAST_STUDY_EVIDENCE_H

#include "hw/evidence.h"
#include "scenario/scenario.h"

struct scenario_unlike {
    double change; /* speed of the second point over that of the first, less 1, as they ran */
    double even;   /* the same with the better known numbers on both */
    struct scenario_unlike_part {
        struct hw_unlike number;
        double part; /* of the change: by how much it falls when this number alone is that of both */
    } * parts;       /* those that matter, the largest first; in the arena */
    int n_parts;
};

/* speeds: of a GPU, as the points ran; 0: out of memory. No part where one of them is, where both name the same
 * topology, and where no such number changes the speeds by 0.1 %. Some milliseconds for each number. */
enum status scenario_unlike(struct scenario_unlike *out, const struct scenario_point *const points[2],
    const double speeds[2], struct arena *arena, struct diag *diag);

#endif
