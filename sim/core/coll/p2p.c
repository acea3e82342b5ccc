/* ncclSend and ncclRecv in a group. all_to_all: every rank sends S/n to each of the n - 1 others,
 * of which n - p are on other nodes. All sends start together, so the latency is that of one hop;
 * but the rank's proxy posts them one after the other (nccl_net_post_s for each channel of each
 * peer). send_recv (as nccl-tests has it): every rank sends S to the next, over the links that the
 * two have (of a mesh of NVLinks an even share: 72 GB/s on two of 4 A100 with four links of 25,
 * NVIDIA/nccl-tests#331), so one rank of each node sends to another node, over the NICs near it.
 *
 * Each peer's bytes are cut into parts, one for each channel that NCCL gives the peer (nccl_p2p); a
 * channel's block sends with half of its threads and receives with the other half, so a part goes
 * at half of what a block moves. So few channels do not fill all NVLinks to one peer: 8 A100 send
 * to the next at 111 GB/s in messages of 128 MiB and at 189 to 195 from 256 MiB on, which are 8 and
 * 16 channels. A receiver starts when the first chunk is there; meanwhile the half that sends has
 * more of the block, so a share of that chunk's time is seen (first_chunk_share). 8 to 64 MiB in
 * nodes want 1 of A100, 0.5 of H100 and H200, 0.2 of Blackwell.
 *
 * Of an all_to_all in a node the copy to itself has channels as a peer has, so each of 32 blocks
 * takes S/32 whatever the GPUs: 512 MiB on 2, 4, 8 B200 (NCCL 2.29) are 810, 825, 834 us, 20 to 21
 * GB/s a block. Where NVLinks are slower they bound it, at nvlink_share of what a ring reaches: 512
 * MiB on 4 and 8 A100, H100, H200 0.82 0.85, 0.80 0.88, 0.89 0.87 of it (nccl_intranode tables,
 * measured/collectives.csv); why is not known.
 *
 * Over nodes a peer has two channels at most (NCCL_NCHANNELS_PER_NET_PEER, 2.14 on), the same for
 * all peers of its node (ncclP2pChannelBase). Their blocks copy within their own HBM, and do not
 * bound what is sent: of two nodes, whose GPUs have two blocks for eight remote peers, 16 B300
 * reach 95 % of their NICs (NCCL 2.31) and 16 H100 of p5 90 % (2.30), so a block sends 48 and 23
 * GB/s and more.
 *
 * peer_copy: of a group in one node as fast as the links, after what a ring's first hop takes
 * (assumed); else a send_recv.
 *
 * Ignored: PXN (a GPU's bytes for other rails travel over NVLink first), copies to itself over
 * nodes. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

/* What sends and receives reach of the rate of a ring's NVLinks; kind: measured (above), +- 0.03.
 */
static const double nvlink_share = 0.85;

/* Of the time of a first chunk, what a receiver waits for; chosen with all tables in view, 0.25 +-
 * 0.25. */
static const double first_chunk_share = 0.25;

bool coll_p2p(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->kind < COLL_ALL_TO_ALL || query->protocol != COLL_SIMPLE)
        return false;
    const struct coll_shape *shape = &query->shape;
    bool everyone = query->kind == COLL_ALL_TO_ALL;
    double hop_s = coll_intra_hop_s(query, COLL_RING), peers = 1,
           more_remote = 0; /* beyond the hop's own */
    bool copies = query->kind == COLL_PEER_COPY && shape->nodes == 1;
    double reached = copies ? 1 : nvlink_share;
    struct coll_query sending = *query;
    if (everyone) {
        peers = shape->ranks - 1;
        double remote_peers = shape->ranks - shape->per_node;
        cost->gpu_out_factor = (peers - remote_peers) / peers;
        cost->node_out_factor = shape->per_node * remote_peers / peers;
        cost->all_pairs = true;
        more_remote = fmax(remote_peers - 1, 0);
    } else {
        sending.shape.per_node = 1;
        reached *= coll_peers_share(1, query->hw);
    }
    coll_set_rate(cost, &sending, reached, 1);
    if (copies) {
        cost->latency_s = coll_base_s(query, COLL_RING) + hop_s;
        cost->hbm_bytes = 2 * cost->bus_bytes;
        cost->sms = 0;
        return true;
    }
    double bytes_each = cost->bus_bytes / peers, to_itself = everyone ? 1 : 0;
    struct nccl_p2p p2p = nccl_p2p(query->kind, bytes_each, *shape, query->hw);
    double blocks = fmin((peers + to_itself) * p2p.channels, p2p.all_channels);
    if (shape->nodes == 1)
        coll_bound_rate(
            cost, blocks * peers / (peers + to_itself) * p2p.channel_Bps, COLL_BOUND_CHANNELS);
    else
        hop_s = fmax(hop_s, coll_inter_hop_s(query, COLL_TREE));
    double post_s = more_remote * p2p.channels * nccl_net_post_s;
    double first_s =
        first_chunk_share * fmin(bytes_each / p2p.channels, p2p.chunk_bytes) / p2p.channel_Bps;
    cost->latency_s = coll_base_s(query, COLL_RING) + hop_s + post_s + first_s;
    /* read where it leaves; staged, and written where it arrives */
    cost->hbm_bytes = (2 + coll_staged_bytes(query->protocol)) * cost->bus_bytes;
    return true;
}
