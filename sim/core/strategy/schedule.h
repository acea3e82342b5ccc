/* The order of a stage's work in a step as a list of cells: one micro-batch, forward or backward,
 * through one model chunk. Pure: it knows neither the model nor how parameters are shared out.
 * emit_step() goes through the list.
 *
 * - One stage: a micro-batch goes forward, then backward, then comes the next.
 * - GPipe (Huang et al., arXiv 1811.06965; PyTorch's ScheduleGPipe): all forward, then all
 *   backward.
 * - 1F1B (PipeDream-Flush; Megatron's forward_backward_pipelining_without_interleaving): stage i of
 *   p warms up with p - i - 1 micro-batches, so at most p - i are in flight.
 * - Interleaved 1F1B, where a stage has several chunks (Narayanan et al., arXiv 2104.04473;
 *   Megatron's forward_backward_pipelining_with_interleaving): micro-batches go in groups of p
 *   through chunk after chunk; warm-up of 2 (p - i - 1) + (chunks - 1) p.
 * - ZBH1 (Qi et al., arXiv 2401.10241): 1F1B, where the gradients of the weights come later than
 *   those of the inputs: on stage i by i micro-batches, so every stage holds as much as the first
 *   one does under 1F1B.
 *
 * - ZBVZeroBubble (Qi et al., arXiv 2405.15362; PyTorch's ScheduleZBVZeroBubble, recalled): two
 *   chunks in a V, so that stage i has the i-th place of the model and the i-th from its end, and
 *   the first stage both ends. 2 (p - i) - 1 forward cells of the first chunk; i of either in
 *   turns; p - i of the second, each with its backward cells; then F B W of the first and the
 *   second chunk in turns. At the end the weights' gradients of i micro-batches wait until those of
 *   the inputs are on their way. Every stage holds 2 p half stages, as the first one of 1F1B does,
 *   and with 2 p - 1 micro-batches and more it waits for nothing between its first and its last
 *   cell where F, B and W take as long: stage i is done i cells after the first one.
 * - DualPipeV (DeepSeek's DualPipe, arXiv 2412.19437, cut in half: deepseek-ai/DualPipe; PyTorch's
 *   ScheduleDualPipeV, recalled): the same V. A forward cell of one chunk and a whole backward cell
 *   of the other are a pair, one after the other unless they are merged. Backward cells without a
 *   pair are split before the first pair and in the second half of those behind the last one. Every
 *   stage holds 2 p + 1 half stages. 2 p micro-batches at least. Merged pairs that take F&B leave a
 *   bubble of (p - 1) (F&B + B - 3 W), cells of a chunk, where F and B of the inputs take as long.
 *
 * merges (Megatron-LM's combined_1f1b.py, overlap_moe_expert_parallel_comm; of one stage, or
 * interleaved): a pair of a forward and a backward cell is one pass over both, of different
 * micro-batches, as one more goes forward first. Of DualPipeV the pairs are there already;
 * torchtitan merges them where ranks share experts.
 *
 * Not there: ZB-H2, the bidirectional DualPipe, schedules that follow measured times. */
#ifndef FLOPCAST_STRATEGY_SCHEDULE_H
#define FLOPCAST_STRATEGY_SCHEDULE_H

#include <stdbool.h>

enum cell_kind {
    CELL_FORWARD,
    CELL_BACKWARD,        /* gradients of inputs and of weights */
    CELL_BACKWARD_INPUT,  /* of inputs only: those of the matrices follow in */
    CELL_BACKWARD_WEIGHT, /* this one */
    CELL_KIND_COUNT
};
extern const char
    *const cell_pass_names[CELL_KIND_COUNT]; /* "forward", "backward", "backward_input", ... */

struct cell {
    enum cell_kind kind;
    int micro_batch, chunk; /* from 0 */
};

enum pipeline_schedule {
    SCHEDULE_1F1B,
    SCHEDULE_GPIPE,
    SCHEDULE_ZBH1,
    SCHEDULE_ZBV, /* this one and the next have two chunks in a V */
    SCHEDULE_DUALPIPEV,
    SCHEDULE_COUNT
};
/* "1F1B", "GPipe", "ZBH1", "ZBVZeroBubble", "DualPipeV" */
extern const char *const pipeline_schedule_names[SCHEDULE_COUNT + 1];
enum { SCHEDULE_V_CHUNKS = 2 };
static inline bool schedule_is_v(int kind)
{
    return kind == SCHEDULE_ZBV || kind == SCHEDULE_DUALPIPEV;
}
/* Micro-batches of a step, at least. */
static inline int schedule_least_micro_batches(int kind, int stages)
{
    return kind == SCHEDULE_DUALPIPEV ? 2 * stages : 1;
}

/* A stage's place in a pipeline. */
struct schedule {
    int kind;          /* enum pipeline_schedule; 1F1B with several chunks is interleaved */
    int stages, stage; /* from 0 */
    int chunks;        /* of each stage; more than one: 1F1B, or two in a V */
    int micro_batches; /* interleaved: a multiple of the stages */
    bool merges;       /* one stage, or several chunks; pairs of DualPipeV */
};

/* The place of a stage's chunk in the model, from 0: chunk c of stage i is the (c x stages + i)-th;
 * in a V the second one is the i-th from the end. */
int schedule_place(const struct schedule *schedule, int chunk);
/* Forward cells before the first pair of a forward and a backward one; not of a V. */
int schedule_warm_up(const struct schedule *schedule);
/* Whether cells i and i + 1 of n are merged. */
bool schedule_merges(const struct schedule *schedule, const struct cell *cells, int n, int i);
/* Cells of a stage, at most. */
int schedule_most_cells(const struct schedule *schedule);
/* Writes the cells and returns their number. */
int schedule_cells(struct cell *cells, const struct schedule *schedule);
/* (Micro-batch, chunk) pairs whose forward pass is done and whose backward pass is not, at most. */
int schedule_in_flight(const struct cell *cells, int n);

#endif
