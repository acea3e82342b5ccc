/* PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, 2.x, restated) over the HBM of one GPU, with
 * bytes by category.
 *
 * Modelled: rounding to 512 B; a small pool (requests up to 1 MiB, from 2 MiB segments) and a large one (segments of 20
 * MiB for requests below 10 MiB, else the request rounded up to 2 MiB); best fit within a stream's pool, splitting,
 * merging of free neighbours; blocks that another stream used (record_stream) come back when that stream has passed the
 * last use; when cudaMalloc fails, the device is drained, which brings those blocks back, free segments are released
 * with a cudaFree each, and it is tried again (the draining is the caller's). With expandable_segments, a
 * stream's pool is one segment without end, of which 20 MiB pages (2 MiB in the small pool) are mapped as they are
 * needed: a request that no free block holds maps what the free block at the end lacks; releasing unmaps whole free
 * blocks, and a hole that is large enough is mapped again before the end grows. Ignored:
 * garbage_collection_threshold, max_split_size, cudaMalloc's own granularity beyond 2 MiB, pages that a free block
 * shares with its neighbours (they are unmapped with it), free blocks behind a hole (PyTorch counts them with it). */
#ifndef FLOPCAST_EXEC_HBM_H
#define FLOPCAST_EXEC_HBM_H

#include "base/status.h"
#include "base/vec.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct hbm_block {
    int64_t bytes;
    int32_t previous, next; /* neighbours in the segment, -1 at its ends; next links the list of unused blocks too */
    uint8_t stream, small, state;
};

struct hbm_free {
    int64_t bytes;
    int32_t block;
};

typedef VEC(struct hbm_free) hbm_pool; /* free blocks by size, then by number */

struct hbm {
    int64_t capacity; /* bytes that segments may take */
    bool expandable;  /* expandable_segments:True */
    int64_t reserved, allocated;
    int64_t by_category[HBM_CATEGORY_COUNT];
    int64_t peak_allocated, peak_reserved;
    int64_t at_peak[HBM_CATEGORY_COUNT]; /* by category when allocated was highest */
    int64_t retries;                     /* cudaMalloc tried again */
    int64_t mallocs, frees; /* calls of cudaMalloc that gave something, of cudaFree, since the caller set them to 0;
                               expandable: requests that mapped pages, free blocks that were unmapped */
    VEC(struct hbm_block) blocks;
    VEC(hbm_pool) pools; /* a large and a small one of each stream that has had a block */
    int32_t unused;      /* first block record that can be used again, -1 */
};

void hbm_init(struct hbm *hbm, int64_t capacity, bool expandable);
void hbm_release(struct hbm *hbm);

/* A block for bytes > 0, or -1: cudaMalloc failed; nothing changes then. */
int32_t hbm_alloc(struct hbm *hbm, int64_t bytes, int category, int stream);
/* After that: free segments are released, and cudaMalloc is called once more. -1: out of memory. */
int32_t hbm_retry(struct hbm *hbm, int64_t bytes, int category, int stream);

/* The tensor is gone: its bytes no longer count as allocated. The block can be used again when hbm_reuse is called: at
 * once for a block that only its own stream used. */
void hbm_free(struct hbm *hbm, int32_t block, int64_t bytes, int category);
void hbm_reuse(struct hbm *hbm, int32_t index);

/* What the allocator counts for a request: PyTorch's round_size. */
int64_t hbm_round(int64_t bytes);

#endif
