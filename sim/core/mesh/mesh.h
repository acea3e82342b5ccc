/* The ranks of a job as a grid of named axes, and the process groups that follow from it.
 *
 * rank = sum over axes of coordinate x stride. The order of the axes says which strides: the
 * innermost axis has 1, so that its groups lie on neighbouring GPUs. It is a setting: Megatron's
 * RankGenerator has "tp-cp-ep-dp-pp", torchtitan and nanotron put pipeline stages outermost with
 * data parallelism next to them ("tp-cp-dp-pp"), nanotron also "tp-dp-pp".
 *
 * Data parallelism is two axes, as HYBRID_SHARD has it: AXIS_DP_SHARD ranks share one copy of the
 * model, AXIS_DP_REPLICATE ranks hold copies of the same shard. "dp" in an order stands for both,
 * the sharded one inside.
 *
 * A group is a set of axes that lie side by side in the order (axes of size 1 do not count); its
 * members are a constant stride apart, as coll_group has it. Not modelled: a group over axes with
 * another one between them.
 *
 * The same ranks can be a second grid for experts (Megatron's expert_decoder_rank_generator; MoE
 * Parallel Folding, arXiv 2504.14960), whose axes have other sizes: AXIS_TP of it are the ranks
 * that share each expert, AXIS_EP those that share the experts, whatever tensor and context
 * parallelism they are in attention. AXES_OF_EXPERT_GRID says that axes are its. */
#ifndef FLOPCAST_MESH_MESH_H
#define FLOPCAST_MESH_MESH_H

#include <stdbool.h>

enum mesh_axis { AXIS_TP, AXIS_CP, AXIS_EP, AXIS_DP_SHARD, AXIS_DP_REPLICATE, AXIS_PP, AXIS_COUNT };
extern const char
    *const mesh_axis_names[AXIS_COUNT + 1]; /* "tp", "cp", "ep", "dp_shard", "dp_replicate", "pp" */
/* "tp-ep-cp-dp-pp": experts next to tensor parallelism, whose ranks are neighbours in Megatron's
 * second grid, too. */
extern const char *const mesh_order_default;

/* All axes of data parallelism. */
enum {
    AXES_DP = 1 << AXIS_DP_SHARD | 1 << AXIS_DP_REPLICATE,
    AXES_DATA = AXES_DP | 1 << AXIS_EP, /* ranks that train on different samples */
    AXES_DENSE =
        AXES_DATA |
        1 << AXIS_CP, /* that hold the same parameters, but experts, and reduce their gradients */
    AXES_SHARD = 1 << AXIS_DP_SHARD | 1 << AXIS_CP, /* FSDP's: torchtitan's dp_shard_cp */
    AXES_EXPERT =
        AXES_DP |
        1 << AXIS_CP, /* that hold the same experts, with AXES_OF_EXPERT_GRID where there is one */
    AXES_TP = 1 << AXIS_TP,
    AXES_CP = 1 << AXIS_CP,
    AXES_ALL = (1 << AXIS_COUNT) - 1,
    AXES_OF_EXPERT_GRID =
        1 << AXIS_COUNT /* with others: they are axes of the second grid, if there is one */
};

struct mesh {
    int ranks; /* product of the sizes */
    int size[AXIS_COUNT], stride[AXIS_COUNT];
    bool folded; /* there is a second grid, of: */
    int expert_size[AXIS_COUNT], expert_stride[AXIS_COUNT];
};

/* Sizes of 0 mean 1. False: the order has a word that is no axis, has one twice, or lacks an axis
 * larger than 1; then *bad is where in the order, or its end. */
bool mesh_build(struct mesh *out, const int size[AXIS_COUNT], const char *order, const char **bad);
/* The second grid, in the same order. False: its stages would not be the ranks that they are in the
 * first, as where data parallelism lies outside of them (Megatron refuses it, too). BUG unless it
 * has as many ranks. */
bool mesh_fold(struct mesh *mesh, const int size[AXIS_COUNT], const char *order);
/* How many ranks differ in these axes. */
int mesh_degree(const struct mesh *mesh, unsigned axes);
/* A mesh of data parallelism only: ranks / shard copies of the model, each over shard ranks. BUG
 * unless shard divides ranks. */
struct mesh mesh_data_parallel(int ranks, int shard);

int mesh_coordinate(const struct mesh *mesh, int rank, enum mesh_axis axis);
/* The rank whose coordinate on the axis is by delta larger, around the end. */
int mesh_neighbour(const struct mesh *mesh, int rank, enum mesh_axis axis, int delta);

/* Ranks first, first + stride, ..., size of them, for every first that the period has: those r with
 * r % period in [offset, offset + width). A rank is in one instance of the group at most. */
struct mesh_group {
    int size, stride;
    int width, period, offset;
};

/* No other axis lies between these (1 << AXIS_TP | ...). */
bool mesh_axes_are_side_by_side(const struct mesh *mesh, unsigned axes);
/* All ranks that differ in these axes only. BUG where another axis lies between them. */
struct mesh_group mesh_group(const struct mesh *mesh, unsigned axes);
/* The ranks at two places on one axis, as Megatron's embedding group has it: first and last
 * pipeline stage. */
struct mesh_group mesh_pair(const struct mesh *mesh, enum mesh_axis axis, int first, int second);

bool mesh_group_same(const struct mesh_group *a, const struct mesh_group *b);
bool mesh_group_is_valid(const struct mesh_group *group, int ranks);
int mesh_group_instances(const struct mesh_group *group, int ranks);
int mesh_group_first(const struct mesh_group *group, int instance); /* its lowest rank */
int mesh_group_instance(const struct mesh_group *group, int rank);  /* -1: the rank is in none */
/* Each instance has equally many members on every node of that size which it touches, and all
 * instances have alike. */
bool mesh_group_lies_evenly(const struct mesh_group *group, int ranks, int node);

#endif
