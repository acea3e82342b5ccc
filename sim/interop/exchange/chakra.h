/* Chakra execution traces (et_def.proto), the workloads of ASTRA-sim: a folder of files
 * NAME.RANK.et, each a GlobalMetadata message and Node messages, every one with its length as a
 * varint before it; and beside them what ASTRA-sim takes on its command line.
 *
 * Written of a plan: a node for each op of a rank's queues in one step.
 *   COMP_NODE       num_ops: FLOP; tensor_size: bytes read and written in HBM; duration_micros:
 *                   isolated on this GPU, with `kind`, `phase` and `queue` as further attributes,
 *                   which ASTRA-sim passes over
 *   COMM_COLL_NODE  comm_type; comm_size: bytes that a rank puts in (of an all_gather its part, of
 *                   all others the whole message), which is what ASTRA-sim's rings take
 *                   (astra-system/collective/Ring.cc); pg_name: a number of comm_groups.json, from
 *                   1 on, as ASTRA-sim demands
 *   COMM_SEND_NODE, COMM_RECV_NODE  comm_src, comm_dst, comm_tag, comm_size
 *   data_deps       waits for other queues (cudaStreamWaitEvent) within the step
 *   ctrl_deps       the op before it in its queue; and what the host has waited for before it
 *                   issued the op
 * Not written: host work, allocations, waits for the step before. DeepEP's kernels are an
 * ALL_TO_ALL of their bytes. A plan with copies between peers (tensor_overlap user_buffers) has no
 * counterpart and is refused.
 *
 * Files of ASTRA-sim (its examples and inputs/, recalled; its analytical backends of 2026-03 ran
 * what is written): system.json; network.yml of the analytical backend, a switch a dimension,
 * inside a node and between nodes, with what NCCL reaches of links as bandwidth, in its GB/s of
 * 2^30 bytes (astra-network-analytical, bw_GBps_to_Bpns()), and hops of a ring with protocol Simple
 * as latency; comm_groups.json; memory.json.
 *
 * Read back (replay.h): nodes of these types and METADATA_NODE; memory nodes, which no GPU of ours
 * waits for, take no time. Attributes may have any of the integer members. Plain or gzipped. At
 * most CHAKRA_MAX_NODES nodes a rank. */
#ifndef FLOPCAST_EXCHANGE_CHAKRA_H
#define FLOPCAST_EXCHANGE_CHAKRA_H

#include "base/status.h"
#include "base/vec.h"
#include "hw/hw.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CHAKRA_MAX_NODES = 4000000,
    CHAKRA_MAX_MESSAGE = 16 << 20, /* bytes of one node */
    CHAKRA_MAX_RANKS = 1 << 14,
};

/* ---- writing ---- */

/* Makes the folder if there is none; files of ranks that the job does not have stay. Everything
 * that was written is removed when a file fails. */
enum status chakra_write(const char *folder, const char *name, const struct plan *plan,
    const struct hw *hw, struct diag *diag);

/* ---- reading ---- */

enum chakra_type { /* as NodeType has them */
    CHAKRA_INVALID,
    CHAKRA_METADATA,
    CHAKRA_MEM_LOAD,
    CHAKRA_MEM_STORE,
    CHAKRA_COMP,
    CHAKRA_SEND,
    CHAKRA_RECV,
    CHAKRA_COLL
};

struct chakra_node {
    uint64_t id;
    const char *name;
    enum chakra_type type;
    int32_t first_dep, n_deps; /* into deps: ids, control and data */
    double duration_s;         /* 0: not stated */
    bool on_cpu;               /* is_cpu_op */
    double flop, bytes;        /* num_ops, tensor_size */
    int collective;            /* enum coll_kind; -1: barrier */
    double comm_bytes;         /* comm_size */
    int64_t source, target, tag;
    const char *group; /* pg_name; NULL: all ranks */
    const char *queue; /* CUDA stream, as flopcast names it; NULL: not said */
};

/* The nodes of a rank, in the order of the file; texts in the arena. Free with chakra_free(), also
 * after an error. */
struct chakra_trace {
    VEC(struct chakra_node) nodes;
    VEC(uint64_t) deps;
};
enum status chakra_read(
    struct chakra_trace *out, const char *path, struct arena *arena, struct diag *diag);
void chakra_free(struct chakra_trace *trace);

#endif
