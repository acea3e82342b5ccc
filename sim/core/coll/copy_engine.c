/* NCCL's collectives by copy engines (2.28 and later, NCCL_CTA_POLICY zero): all_gather and
 * all_to_all inside one node, whose GPUs copy to each peer, all copies in one batch of
 * cudaMemcpyBatchAsync, between two exchanges of flags by stream memory operations
 * (src/ce_coll.cc).
 *
 * They hold no SM, so kernels beside them lose none, and stage nothing: a byte is read where it
 * leaves and written where it arrives. The links are those of a ring, which each GPU fills in both
 * directions, and so is the rate (H100: 380 GB/s from GPU to GPU by a copy engine,
 * NVIDIA/nccl#1264; a ring's busbw is 370). Latency is a launch and three hops: the flags before,
 * the copies, the flags after (assumed).
 *
 * What it gives was seen once: FSDP of Llama-3 8B on 8 H100 takes 2.4 % less time a token (PyTorch
 * PR 179937); on 128 GPUs it cost throughput (Megatron-LM PR 5657), on 8 H20 it changed nothing.
 *
 * Ignored: that buffers must be registered in symmetric windows, else NCCL takes its kernels; the
 * synchronisation after every eight copies of 512 MiB and more; collectives over several nodes,
 * which 2.30 has. */
#include "coll/algorithm.h"

bool coll_copy_engine(struct coll_cost *cost, const struct coll_query *query)
{
    const struct coll_shape *shape = &query->shape;
    bool can = query->kind == COLL_ALL_GATHER || query->kind == COLL_ALL_TO_ALL;
    if (query->hw->cluster.nccl_cta_policy != HW_CTA_ZERO || !can || shape->nodes > 1 ||
        shape->ranks == 1)
        return false;
    *cost = (struct coll_cost){.algorithm = COLL_P2P,
        .protocol = COLL_SIMPLE,
        .bus_bytes = coll_bus_factor(query->kind, shape->ranks) * query->bytes,
        .gpu_out_factor = 1};
    coll_set_rate(cost, query, 1, 1);
    cost->latency_s = coll_base_s(query, COLL_RING) + 3 * coll_intra_hop_s(query, COLL_RING);
    cost->hbm_bytes = 2 * cost->bus_bytes;
    return true;
}
