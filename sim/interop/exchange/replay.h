/* A workload of Chakra traces, one a rank, simulated on a cluster.
 *
 * The traces become a plan with a program for each rank. Compute nodes of a GPU run one at a time
 * in the order of the file, as far as their dependencies let them (ASTRA-sim's NPUs, too, compute
 * one node at a time), those whose attribute `queue` names a side stream of flopcast's beside them;
 * CPU nodes one at a time beside both. Collectives of a group come after one another, those of
 * different groups side by side, as NCCL's communicators; messages between two ranks likewise. The
 * k-th collective of a group on one rank is the k-th on all others, the k-th message from a rank to
 * another is the k-th that it receives from there: tags are not looked at.
 *
 * Collectives are NCCL's on this cluster (coll/), whatever the trace recorded. A COMP_NODE takes
 * the time that it states; one that states none, or with `roofline`, takes that of a kernel of
 * num_ops FLOP and tensor_size bytes: where FLOP bound, a square GEMM in BF16 (FP16 where the GPU
 * has no BF16), else a kernel that streams.
 *
 * Ignored: MEM_LOAD and MEM_STORE nodes and METADATA take no time; memory; start_time_micros. */
#ifndef FLOPCAST_EXCHANGE_REPLAY_H
#define FLOPCAST_EXCHANGE_REPLAY_H

#include "exchange/chakra.h"
#include "exec/exec.h"

struct replay_options {
    const char *folder; /* NAME.0.et, NAME.1.et ..., also with .gz behind; all of one NAME */
    const char *
        groups; /* JSON of ranks by group; NULL: comm_group*.json of the folder, or there is none */
    bool roofline;
};

/* Collectives and messages that are alike, of the whole job. */
struct replay_comm {
    int kind;      /* enum coll_kind; COLL_SEND_RECV: messages */
    int ranks;     /* of the group */
    double bytes;  /* whole message, see coll.h */
    int count;     /* in the job; of one rank that stands for all: in its step */
    double time_s; /* mean, from when the last member had come */
    int algorithm, protocol;
    enum coll_bound bound; /* of the last one */
};

struct replay {
    int ranks;
    double nodes, flop, bytes; /* of all ranks: nodes of any type, those of COMP_NODEs */
    struct exec_result exec;
    struct replay_comm *comm; /* in the arena; by time, the longest sum first */
    int n_comm;
};

enum status replay_run(struct replay *out, const struct replay_options *options,
    const struct hw *hw, struct arena *arena, struct diag *diag);

/* A cluster that has no room for that number of ranks, or whose nodes they do not fill, is refused.
 */
enum status replay_check_cluster(
    int ranks, const struct hw *hw, struct source_pos at, struct diag *diag);

/* Runs a plan and counts its collectives; of out only ranks is to be set. options->trace_ranks: all
 * of the job, or one that stands for all. */
void replay_execute(struct replay *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena);

/* ---- chakra_plan.c ---- */

/* Ranks that a name stands for. */
struct replay_group {
    const char *name;
    struct mesh_group ranks;
};
struct replay_groups {
    VEC(struct replay_group) list;
};

/* The plan of the traces, which plan_check() takes. Names live in the arena. paths: for messages.
 */
enum status chakra_plan(struct plan *out, const struct chakra_trace *traces,
    const char *const *paths, int n, const struct replay_groups *groups, const struct hw *hw,
    bool roofline, struct arena *arena, struct diag *diag);

#endif
