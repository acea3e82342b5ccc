/* The order of a rank's work in a step as a list of cells: one micro-batch, forward or backward, through one model
 * chunk. Pure: it knows neither the model nor how parameters are shared out. emit_step() goes through the list.
 *
 * Not there yet: pipelines, where a rank has one of several stages, or several chunks of the model. */
#ifndef FLOPCAST_STRATEGY_SCHEDULE_H
#define FLOPCAST_STRATEGY_SCHEDULE_H

enum cell_kind { CELL_FORWARD, CELL_BACKWARD };

struct cell {
    enum cell_kind kind;
    int micro_batch, chunk; /* from 0 */
};

/* One stage, whose one chunk is the whole model: a micro-batch goes forward, then backward, then comes the next. Writes
 * 2 x micro_batches cells and returns their number. */
int schedule_one_stage(struct cell *cells, int micro_batches);

#endif
