/* Private to trace_plan.c: which ranks of the job were traced, which of them the others do as, and
 * what becomes of groups and messages when there are more.
 *
 * The traced job is ranks 0 ... Messages are between ranks a constant number apart, or multiples of
 * it: that is from one stage of a pipeline to the next. Stages are as many as messages join; all
 * that the ranks have room for, unless a group reaches over the job in steps of whole pipelines. In
 * the first case stages lie outermost (Megatron's tp-cp-ep-dp-pp, DeepSpeed's pipe-data-model), and
 * growth is in each stage; else data parallelism lies outside of the pipelines (tp-cp-ep-pp-dp),
 * and there are more pipelines.
 *
 * Of each stage as many ranks are traced, evenly apart: the i-th of them runs the program of all
 * ranks in the i-th place of `inner` places that are `inner_apart` ranks wide, and again from there
 * on. */
#ifndef FLOPCAST_EXCHANGE_TRACE_RANKS_H
#define FLOPCAST_EXCHANGE_TRACE_RANKS_H

#include "exchange/trace_items.h"

struct traced {
    const struct trace *trace;
    const char *file; /* for messages */
    int place;        /* among the ranks that were given */
    int rank;         /* in the traced job */
    int step;         /* place in trace->steps */
    struct items items;
    bool *on_shard; /* by item */
};

struct traced_job {
    struct traced *list; /* by program */
    int n;
    int ranks, growth;      /* of the job that was traced; how many times as many are wanted */
    int stages, apart;      /* ranks from a stage to the next; 1 stage: `apart` is all */
    bool outermost;         /* stages are */
    int inner, inner_apart; /* traced ranks of a stage */
    const struct trace_plan_options *options;
    VEC(const char *) pipes; /* groups that messages are of */
    struct arena *arena;
    struct diag *diag;
};

/* What is wrong with an activity, of which traced->items.step says when it is. */
enum status ranks_refuse(const struct traced_job *job, const struct traced *traced,
    const struct trace_activity *activity, const char *why);

/* Everything of the job but list, n, options, arena and diag; list is sorted. Steps and items are
 * there. */
enum status ranks_find(struct traced_job *job);

/* Of a collective whose kind, size and group are said: its ranks among those that are wanted. */
enum status ranks_of_group(struct mesh_group *out, const struct traced_job *job,
    const struct traced *traced, const struct trace_activity *activity);
/* It is over all of the job, or of its stage, in steps of its stride. */
bool ranks_grow(const struct traced_job *job, const struct traced *traced,
    const struct trace_activity *activity);
enum plan_parallelism ranks_serve(const struct traced_job *job, const struct traced *traced,
    const struct trace_activity *activity);

/* Of a message between traced ranks. */
struct plan_channel ranks_channel(
    struct traced_job *job, const struct traced *traced, const struct trace_message *message);

void ranks_begin_plan(
    const struct traced_job *job, struct plan_builder *builder, struct plan *plan);

#endif
