/* How far a run is, for who waits for it. Other runs of the point add to the same sum, so a run
 * keeps what it has added; one that is made again, or gets longer, takes some back. */
#include "exec/state.h"

void progress_tell(struct sim *sim, int thousandths)
{
    if (!sim->options->progress)
        return;
    sim->options->progress->thousandths += thousandths - sim->reported;
    sim->reported = thousandths;
}

/* By where the first rank is, as all go on together; before it has ended a collective there is not
 * much to wait for. */
void progress_follow(struct sim *sim)
{
    const struct queue *queue = &sim->ranks[0].queues[STREAM_COMPUTE];
    if (!sim->options->progress || queue->n_ops == 0)
        return;
    double ops = (double)queue->n_ops,
           begun = sim->after ? (double)sim->after->warm.queues[STREAM_COMPUTE].done : 0;
    progress_tell(
        sim, (int)(1000 * ((double)queue->done - begun) / (ops * sim->total_steps - begun)));
}
