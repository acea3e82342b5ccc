/* A ring in chunk-level mode, every slice of every chunk a message over the links (tests/fabric/chunks.h): seconds and
 * memory by ranks. bench_ring RANKS: one all_gather of 256 kB a rank on H100 nodes of eight. */
#include "../fabric/chunks.h"

#include "bench.h"

#include <stdio.h>
#include <sys/resource.h>

enum { BYTES_A_RANK = 256000 };

int main(int argc, char **argv)
{
    int ranks = argc == 2 ? atoi(argv[1]) : 0;
    if (ranks < 2) {
        fprintf(stderr, "usage: bench_ring RANKS\n");
        return 2;
    }
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw hw;
    hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml", &arena, &diag);
    BUG_IF(diag.n_errors > 0, "%s", diag.text);
    const struct chunk_options options = chunks_as_nccl(COLL_ALL_GATHER);
    double start = now_s();
    double seconds = chunks_collective_s(
        COLL_ALL_GATHER, COLL_RING, (double)BYTES_A_RANK * ranks, (struct coll_group){0, 1, ranks}, &hw, &options);
    double took = now_s() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("ring, %d ranks: %.2f s, %.0f MB; the collective takes %.3f s\n", ranks, took,
        (double)usage.ru_maxrss * 1.024e-3, seconds);
    arena_release(&arena);
    return 0;
}
