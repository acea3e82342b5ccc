/* Private to exec/: the HBM of a rank in host program order (ledger.c has how). */
#ifndef FLOPCAST_EXEC_LEDGER_H
#define FLOPCAST_EXEC_LEDGER_H

#include "exec/exec.h"
#include "exec/hbm.h"

struct sim;
struct queue;
struct plan_stretch;

/* Where the allocator stood in the host's way: before this op, in cudaMalloc and cudaFree for so
 * long, and before that, when cudaMalloc had failed, until the GPU had run dry. */
struct ledger_stop {
    int32_t step, op;
    bool drains;
    ps_t calls;
};

/* How many ops of its queue must be done until a wait is satisfied, and which queue. */
struct wanted {
    struct queue *queue;
    int64_t done;
};

/* A block that was freed while another queue still used it (record_stream). */
struct pending_free {
    int32_t block, step;
    plan_wait last_use;
    struct wanted wanted; /* the same, looked up */
};
/* The op at which one came back to the allocator. */
struct pending_return {
    int32_t op;
    plan_wait last_use;
};

/* A burst of the host: from when on it issues ops from this one on. */
struct host_burst {
    int32_t first;
    ps_t base;
};

/* A part of a step that a rank repeats a number of times (period.c). */
struct ledger_period {
    int32_t from, ops; /* the host's ops from there on, and how many they are */
    int first_return;  /* of ledger.returns in them */
    ps_t length;
    int64_t times;
};

enum { LEDGER_ROWS = 400, LEDGER_PARTS = 2 };

/* A sample for each row, and when it was taken. */
struct ledger_rows {
    struct exec_memory_sample *at;
    ps_t *times;
    bool none;            /* of the row that grows, up to now, else: */
    double highest_bytes; /* of that */
};

/* What the allocator had at an op: of a sample that may be taken again. */
struct ledger_level {
    int32_t op; /* of the first period of the part */
    int64_t allocated, reserved, by_category[HBM_CATEGORY_COUNT];
};

/* A ledger at some op: what repeating a part of the step changes. */
struct ledger_state {
    struct hbm hbm; /* with the buffers that live */
    VEC(struct pending_free) pending;
    int samples, row, part; /* as in struct ledger */
};

/* What a part of a step that was repeated began with, and came to. */
struct ledger_part {
    uint64_t begun; /* digest of all that it depends on; 0: there is none */
    ps_t base;      /* times count from then on */
    int first_row;
    struct ledger_rows rows; /* none: it had no sample */
    struct ledger_state after;
};

/* The HBM of a rank. */
struct ledger {
    struct hbm hbm;
    int32_t *blocks; /* of each buffer; -1: it does not live */
    VEC(struct pending_free) pending;
    int looked;                    /* of them: those that stay after the last look, */
    int64_t looked_at;             /* which was when the rank had done this many ops */
    VEC(struct ledger_stop) stops; /* in the order of steps and ops */
    /* A step in at most LEDGER_ROWS equal stretches of its samples, of each the highest: */
    int n_samples, n_rows, samples, row,
        row_end; /* they will be; how many there are of them, the one that grows, the sample at
                    which the next one begins */
    struct ledger_rows timeline; /* of the last step */
    ps_t stall; /* in measured steps: the host drained the GPU, or was in cudaMalloc or cudaFree */
    int64_t measured_retries;
    /* What period.c needs of this step, in the order of ops: */
    VEC(struct pending_return) returns;
    VEC(struct host_burst) bursts;
    const struct ledger_period *repeats; /* NULL: the host is where its op is now; else: */
    int32_t op, shift;                   /* the op at hand; it is that one's of the part + shift */
    ps_t later;
    int next_return;
    bool records; /* samples of the part, in levels */
    VEC(struct ledger_level) levels;
    struct ledger_state before;             /* the part that is repeated, which may be undone */
    struct ledger_part parts[LEDGER_PARTS]; /* the last ones that were repeated */
    int part;                               /* the last of them */
};

void ledger_setup(struct sim *sim); /* of every rank */
void ledger_release(struct sim *sim);
/* The allocator does what the op asks for that the rank's host has come to, which is in this
 * stretch. False: cudaMalloc failed, ask again when the GPU is drained; then the run may end, out
 * of memory. calls: host time in cudaMalloc and cudaFree. */
bool ledger_op(
    struct sim *sim, int rank, const struct plan_stretch *stretch, bool drained, ps_t *calls);
void ledger_result(struct sim *sim);
/* The host begins a step. */
void ledger_begin_step(struct sim *sim, int rank);
/* The host begins a burst with host_first. */
void ledger_note_burst(struct sim *sim, int rank);
/* What is noted for period.c begins now. */
void ledger_begin_period(struct sim *sim, int rank);
/* What the rank's host did in a period it does `times` times more, a period later each time: the
 * allocator is asked for the same, at those times. How many of these it did before it would have
 * taken the host's time. Afterwards ledger_settle() says whether all is to be so, or undone. */
int64_t ledger_repeat(struct sim *sim, int rank, const struct ledger_period *period);
void ledger_settle(struct sim *sim, int rank, bool keep);
/* What was measured until now is of a step of warm-up. */
void ledger_forget_measured(struct sim *sim);
/* From which step on the allocator of no program takes the host's time; 0: it never does, or
 * nothing is followed. */
int32_t ledger_steady_from(const struct sim *sim);
/* Whether from this step on cudaMalloc fails in any. */
bool ledger_drains_from(const struct sim *sim, int32_t step);

/* Between ledger.c and ledger_repeat.c. */
void ledger_state_release(struct ledger_state *state);
static inline struct ledger_part *ledger_last_part(struct ledger *ledger)
{
    return &ledger->parts[ledger->part];
}
void ledger_begin_row(struct ledger *ledger, int row);
/* The burst that an op is issued in. */
int ledger_burst_of(const struct ledger *ledger, int32_t op);
/* Does an op of a stretch. False: cudaMalloc has failed. */
bool ledger_do(struct sim *sim, int rank, const struct plan_stretch *stretch,
    const struct plan_op *op, bool drained);
/* Of the first rank of each program, over the last step, and over parts that are repeated, which
 * may be so once more in the last step: what the allocator has; what it had. The steps of a long
 * pipeline have millions of samples, so the stretches are found as these come. */
void ledger_sample(struct sim *sim, int rank);
void ledger_sample_level(
    struct sim *sim, int rank, int64_t allocated, int64_t reserved, const int64_t *by_category);

#endif
