/* Chunk-level mode: every slice of every chunk of every step of one collective is a message over the links of
 * fabric/fabric.h, on the engine. It checks the flow-level mode of coll/ and exec/, which prices the same collective as
 * latency + bytes / rate.
 *
 * A connection from a rank to the next sends its messages in order, one at a time; each takes its links at max-min fair
 * rates and arrives a hop latency after its last byte left, while the connection goes on; inside a node, a ring's hop
 * passes before the first slice of a chunk instead and keeps the connection waiting, as the data of nccl-tests have it
 * (coll/ring.c). Latencies are those of protocol Simple. A message is sent once what
 * it depends on has arrived: in a ring the same slice of the chunk one step before, in a tree the slice from every
 * child (up) or from the parent (down). NCCL's channels, which share the data evenly and run in step, are taken
 * together: a message is a slice of all of them and spreads over the NICs that they are rotated over. A tree's chains
 * inside a node are rotated too, so each GPU carries the mean of what a chain's GPUs send.
 *
 * Modelled: ring (all_reduce, all_gather, reduce_scatter, broadcast), double binary tree and CollNetChain (all_reduce),
 * on any regular group; CollNetChain over several nodes of a cluster that has it. Ignored: the end of a buffer's
 * credits (8 steps of a connection), channels that drift apart, other traffic. */
#ifndef FLOPCAST_FABRIC_CHUNKS_H
#define FLOPCAST_FABRIC_CHUNKS_H

#include "coll/coll.h"
#include "fabric/degrade.h"
#include "hw/hw.h"

struct chunk_options {
    double chunk_bytes;                          /* at most, of one channel and step; may be infinite */
    int slices;                                  /* messages of a chunk */
    const struct degrade_events *degraded_links; /* those of the start happen; NULL: none */
};

/* As NCCL cuts with protocol Simple: a chunk is half of a buffer of 4 MiB in two slices; broadcast sends eighths. */
struct chunk_options chunks_as_nccl(enum coll_kind kind);

/* As the formulas of coll/ assume: a ring's chunks are as large as the data allow, in two slices; the pipeline of other
 * algorithms is so fine (1000 messages) that filling it costs little (26 hops of 512 ranks: 0.8 %). */
struct chunk_options chunks_as_flow(enum coll_algorithm algorithm);

/* Seconds from the start to the last arrival; HUGE_VAL beyond PS_HORIZON. bytes: as in coll.h. */
double chunks_collective_s(enum coll_kind kind, enum coll_algorithm algorithm, double bytes, struct coll_group group,
    const struct hw *hw, const struct chunk_options *options);

#endif
