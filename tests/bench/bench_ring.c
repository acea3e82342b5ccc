/* A ring in chunk-level mode, every slice of every chunk a message over the links
 * (tests/fabric/chunks.h): seconds and memory by ranks. bench_ring RANKS: one all_gather of 256 kB
 * a rank on H100 nodes of eight.
 *
 * bench_ring RANKS plan: the same, and then what was simulated, for another simulator to do
 * (bench_simgrid.cpp), as numbers: messages of each connection, bytes of a message, how many each
 * rank has at the start, seconds before the first message; the links and the capacity of each
 * (B/s); the connections, and of each its input, the seconds before a chunk, those after a message,
 * its links, and of each link the number and the weight. */
#include "../fabric/chunks.h"

#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { BYTES_A_RANK = 256000 };

static void print_plan(
    struct coll_group group, const struct hw *hw, const struct chunk_options *options)
{
    struct chunk_run *run = chunks_lay(
        COLL_ALL_GATHER, COLL_RING, (double)BYTES_A_RANK * group.size, group, hw, options);
    BUG_IF(run->period < run->messages, "%d ranks make more than one loop", group.size);
    printf("%lld %.17g %lld %.17g\n%d\n", (long long)run->messages, run->message_bytes,
        (long long)run->lag, hw->node.nccl_base_latency.value, run->fabric.n_links);
    for (int l = 0; l < run->fabric.n_links; l++)
        printf("%.17g\n", run->fabric.capacity_Bps[l]);
    printf("%d\n", run->edges.n);
    for (int i = 0; i < run->edges.n; i++) {
        const struct edge *edge = &run->edges.at[i];
        printf("%d %.17g %.17g %d", edge->inputs.at[0], s_from_ps(edge->wait),
            s_from_ps(edge->latency), edge->n_weights);
        for (int u = 0; u < edge->n_weights; u++)
            printf(" %d %.17g", edge->weights[u].link, edge->weights[u].weight);
        printf("\n");
    }
    tear_down(run);
}

int main(int argc, char **argv)
{
    int ranks = argc > 1 ? atoi(argv[1]) : 0;
    bool plan = argc == 3 && strcmp(argv[2], "plan") == 0;
    if (ranks < 2 || (argc > 2 && !plan)) {
        fprintf(stderr, "usage: bench_ring RANKS [plan]\n");
        return 2;
    }
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml", &arena, &diag);
    BUG_IF(diag.n_errors > 0, "%s", diag.text);
    const struct chunk_options options = chunks_as_nccl(COLL_ALL_GATHER);
    const struct coll_group group = {0, 1, ranks};
    double start = now_s();
    double seconds = chunks_collective_s(
        COLL_ALL_GATHER, COLL_RING, (double)BYTES_A_RANK * ranks, group, &hw, &options);
    double took = now_s() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("ring, %d ranks: %.4f s, %.0f MB; the collective takes %.12f s\n", ranks, took,
        (double)usage.ru_maxrss * 1.024e-3, seconds);
    if (plan)
        print_plan(group, &hw, &options);
    arena_release(&arena);
    return 0;
}
