/* Links that lose capacity and GPUs that lose speed, from the start or at a time of the run: from
 * the text of a scenario to data.
 *
 * "pattern=share, pattern=share at time": the share that is left from then on, as "50 %" or 0.5; 0
 * is a failed link. Without a time from the start of the run, warm-up steps included. An entry with
 * the same pattern as an earlier one takes its place from its time on ("x=0 at 2 s, x=1 at 5 s" is
 * a link that comes back); different patterns that name one thing multiply. Patterns are the
 * shell's (*, ?, [..]).
 *
 * Links ("node3.nic0.*=50 %, leaf1.up2=0 at 2 s") have the names of fabric/fabric.h. A share is
 * left of the link's capacity, of the mean of its cables where it stands for several.
 *
 * GPUs ("node3.gpu5=80 %, node7=90 % at 2 s"): node<n>.gpu<g> is a GPU, counted from 0 as the job's
 * nodes and a node's GPUs are; node<n> stands for all GPUs of that node. The share that is left is
 * that of the SMs' clock, as heat or a power cap lowers it: what a kernel computes (struct
 * kernel_time, compute_s: products, attention, arithmetic, sums over rows) takes 1 / share as long.
 * It multiplies with the speeds of noise.
 *
 * Ignored: what a lower clock does to HBM, to the floor of a kernel and to collectives, which all
 * keep their speed; and that partial sums of split products (kernel/gemm.h), which are part of
 * compute_s, go through HBM. */
#ifndef FLOPCAST_FABRIC_DEGRADE_H
#define FLOPCAST_FABRIC_DEGRADE_H

#include "base/arena.h"
#include "base/units.h"
#include "hw/hw.h"

#include <stdbool.h>

enum { DEGRADE_MAX = 256 }; /* entries of a list */

/* What is left of a link (target: its index in the fabric) or of a GPU (its rank) from a time on;
 * at 0: from the start. An entry that names something is an event of it even where it leaves all.
 */
struct degrade_event {
    ps_t at;
    int target;
    double share;
};
struct degrade_events { /* by time, then by target */
    const struct degrade_event *list;
    int n;
};

/* The events of a job of this number of ranks. text may be NULL. An error at `at`, as a sentence
 * each: what is wrong with the text; a name that nothing has; a NVLink or NIC that fails, and
 * cables whose failure leaves two leaves without a way (fabric/fabric.h). The events live in the
 * arena. */
enum status degrade_links(struct degrade_events *out, const struct hw *hw, int ranks,
    const char *text, struct source_pos at, struct arena *arena, struct diag *diag);

/* The same of GPUs. Names are those of the cluster's GPUs, so that one list serves jobs of any
 * size: a GPU beyond the job has no event. */
enum status degrade_gpus(struct degrade_events *out, const struct hw *hw, int ranks,
    const char *text, struct source_pos at, struct arena *arena, struct diag *diag);

/* At some time one of the events' n_targets targets has another share than another. */
bool degrade_uneven(const struct degrade_events *events, int n_targets);

#endif
