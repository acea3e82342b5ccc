/* ncclSend and ncclRecv in a group. all_to_all: every rank sends S/n to each of the n - 1 others, of which n - p are on
 * other nodes. All sends start together, so the latency is that of one hop; but the rank's proxy posts them one after
 * the other (nccl_net_post_s for each channel of each peer; two nodes of B300 and p5 are 15 to 27 % faster: NOTES).
 * send_recv (as nccl-tests has it): every rank sends S to the next, so one rank of each node sends to another node,
 * over the NICs near it.
 *
 * Each peer's bytes are cut into parts, one for each channel that NCCL gives the peer (nccl_p2p); a channel's
 * block sends with half of its threads and receives with the other half, so a part goes at half of what a block moves.
 * So few channels do not fill all NVLinks to one peer: 8 A100 send to the next at 111 GB/s in messages of 128
 * MiB and at 189 to 195 from 256 MiB on, which are 8 and 16 channels. A receiver starts when the first chunk is there.
 *
 * Over nodes a peer has two channels at most (NCCL_NCHANNELS_PER_NET_PEER, 2.14 on), the same for all peers of its node
 * (ncclP2pChannelBase). Their blocks copy within their own HBM, and do not bound what is sent: of two nodes, whose
 * GPUs have two blocks for eight remote peers, 16 B300 reach 95 % of their NICs (NCCL 2.31) and 16 H100 of p5 90 %
 * (2.30), so a block sends 48 and 23 GB/s and more.
 *
 * peer_copy: of a group in one node as fast as the links, after what a ring's first hop takes (assumed); else a
 * send_recv.
 *
 * Of an all_to_all in a node the copy to itself runs on the same blocks: nccl_self_copy of what goes to one peer, on no
 * link. 512 MiB on 2, 4, 8 B200 (NCCL 2.29): 332, 489, 563 GB/s; from the first two follow 640 without it, 0.93, and
 * 566 for the third. H100 0.17.
 *
 * Ignored: PXN (a GPU's bytes for other rails travel over NVLink first), copies to itself over nodes. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

bool coll_p2p(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->kind < COLL_ALL_TO_ALL || query->protocol != COLL_SIMPLE)
        return false;
    const struct coll_shape *shape = &query->shape;
    double hop_s = coll_intra_hop_s(query, COLL_RING), peers = 1, more_remote = 0; /* beyond the hop's own */
    struct coll_query sending = *query;
    if (query->kind == COLL_ALL_TO_ALL) {
        peers = shape->ranks - 1;
        double remote_peers = shape->ranks - shape->per_node;
        cost->gpu_out_factor = (peers - remote_peers) / peers;
        cost->node_out_factor = shape->per_node * remote_peers / peers;
        cost->all_pairs = true;
        more_remote = fmax(remote_peers - 1, 0);
    } else {
        sending.shape.per_node = 1;
    }
    coll_set_rate(cost, &sending, 1, 1);
    if (query->kind == COLL_PEER_COPY && shape->nodes == 1) {
        cost->latency_s = coll_base_s(query, COLL_RING) + hop_s;
        cost->hbm_bytes = 2 * cost->bus_bytes;
        cost->sms = 0;
        return true;
    }
    double bytes_each = cost->bus_bytes / peers;
    struct nccl_p2p p2p = nccl_p2p(query->kind, bytes_each, *shape, query->hw);
    if (shape->nodes == 1)
        coll_bound_rate(cost, fmin(peers * p2p.channels, p2p.all_channels) * p2p.channel_Bps, COLL_BOUND_CHANNELS);
    else
        hop_s = fmax(hop_s, coll_inter_hop_s(query, COLL_TREE));
    double first_s = fmin(bytes_each / p2p.channels, p2p.chunk_bytes) / p2p.channel_Bps;
    double post_s = more_remote * p2p.channels * nccl_net_post_s;
    bool to_itself = query->kind == COLL_ALL_TO_ALL && shape->nodes == 1;
    double self_s = to_itself ? query->hw->node.nccl_self_copy.value * coll_bytes_s(cost) / peers : 0;
    cost->latency_s = coll_base_s(query, COLL_RING) + hop_s + post_s + first_s + self_s;
    /* read where it leaves; staged, and written where it arrives */
    cost->hbm_bytes = (2 + coll_staged_bytes(query->protocol)) * cost->bus_bytes;
    return true;
}
