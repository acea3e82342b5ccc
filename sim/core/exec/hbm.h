/* PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, 2.0 to 2.4, restated) over
 * the HBM of one GPU, with bytes by category.
 *
 * What malloc does, in its order:
 * 1. Blocks whose events have passed come back (the caller's: hbm_reuse). PyTorch asks for events
 *    here and nowhere else, so a block that another stream used (record_stream) is free from the
 *    first malloc on after that stream has passed the work that it had when the block was freed.
 * 2. The size is rounded up to 512 B. Up to 1 MiB it is a matter of the small pool, else of the
 *    large one.
 * 3. The smallest free block of the same stream and pool that holds it, of several the one at the
 *    lowest address. With max_split_size, a smaller request takes no block of that size or above, a
 *    larger one none that is 20 MiB larger.
 * 4. None: where a share of memory and a garbage_collection_threshold are set and more than that is
 *    reserved, whole large segments go that have been free for the mean of their ages or longer
 *    (counted in searches), until enough has gone.
 * 5. cudaMalloc of a segment: 2 MiB for the small pool, 20 MiB for requests below 10 MiB, else
 *    rounded up to 2 MiB.
 * 6. It fails: with max_split_size the smallest free segment of that size or above goes that is
 *    large enough for the request, or several, the largest first; then cudaMalloc again.
 * 7. It fails: all pending blocks come back (the caller's), every segment that is one free block
 *    goes, and cudaMalloc is called once more. This counts as a retry. Blocks that are there now
 *    are not searched again.
 * A block is split when 512 B or more are left over (small pool, expandable segments), more than 1
 * MiB (large pool); otherwise all of it counts as allocated. Freed blocks merge with free
 * neighbours of their segment. Every cudaFree waits for all work of the GPU (the caller's), so 4, 6
 * and 7 begin with that.
 *
 * With expandable_segments, a stream's pool is a range of addresses, 9/8 of the memory, of which 20
 * MiB pages (2 MiB in the small pool) are mapped where they are needed: from the lowest address on
 * where what is free and what is not mapped hold the request. Step 7 unmaps whole pages of free
 * blocks, 4 and 6 do nothing.
 *
 * Ignored: roundup_power2_divisions; callbacks that free memory; private pools of CUDA graphs;
 * where the driver lays segments (each has higher addresses than those before it); cudaMalloc's
 * granularity beyond 2 MiB. */
#ifndef FLOPCAST_EXEC_HBM_H
#define FLOPCAST_EXEC_HBM_H

#include "base/settings.h"
#include "base/status.h"
#include "base/vec.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct hbm_block {
    int64_t bytes, address;
    int64_t since;          /* a free one: searches before it became so */
    int32_t owner;          /* one that is allocated: the caller's number of who has it */
    int32_t previous, next; /* neighbours in the segment, -1 at its ends; next links the list of
                               unused blocks too */
    int32_t lower, higher;  /* a free one: those of its size and pool beside it by address, or -1 */
    uint8_t stream, small, state;
};

/* The free blocks of one size, at least one, by address. */
struct hbm_size {
    int64_t bytes;
    int32_t lowest;
};

typedef VEC(struct hbm_size) hbm_pool; /* by size */

/* MiB of kLargeBuffer: what is asked of the GPU for requests of 1 to 10 MiB. */
enum { HBM_LARGE_BUFFER_MIB = 20 };

struct hbm_options {
#define SETTINGS SETTING_MEMBER
#include "exec/allocator_settings.h"
};

struct hbm {
    int64_t capacity;                 /* bytes that segments may take */
    int64_t max_split, collect_above; /* bytes */
    bool expandable;
    int64_t reserved, allocated;
    int64_t by_category[HBM_CATEGORY_COUNT];
    int64_t peak_allocated, peak_reserved;
    int64_t at_peak[HBM_CATEGORY_COUNT]; /* by category when allocated was highest */
    int64_t retries;                     /* PyTorch's num_alloc_retries */
    int64_t mallocs, frees; /* calls of cudaMalloc that gave something, of cudaFree, since the
                               caller set them to 0; expandable: mappings of pages that follow each
                               other, free blocks that were unmapped */
    int64_t searches;       /* for large blocks */
    int64_t next_address;
    VEC(struct hbm_block) blocks;
    VEC(hbm_pool) pools; /* a large and a small one of each stream that has had a block */
    int32_t unused;      /* first block record that can be used again, -1 */
};

/* memory: bytes of the GPU; taken: of these, by others than the allocator. */
void hbm_init(struct hbm *hbm, int64_t memory, int64_t taken, const struct hbm_options *options);
void hbm_release(struct hbm *hbm);
/* Into one that holds nothing, which is released then. */
void hbm_copy(struct hbm *to, const struct hbm *from);
static inline int64_t hbm_address(const struct hbm *hbm, int32_t index)
{
    return hbm->blocks.at[index].address;
}
/* Whether somebody has the block, whom hbm->blocks.at[index].owner names. */
bool hbm_is_allocated(const struct hbm *hbm, int32_t index);
/* Over all that decides what the allocator does next, if it collects no garbage, and who has what:
 * owners from `first` on count as those `before` them. */
uint64_t hbm_digest(const struct hbm *hbm, int32_t first, int32_t before);
/* Whether step 4 may have work: how long blocks have been free then matters. */
bool hbm_collects(const struct hbm *hbm);
/* Its peaks and retries are those of another one, whose state it had before. */
void hbm_keep_peaks(struct hbm *hbm, const struct hbm *of);

/* A request of bytes > 0 goes through three calls until one gives a block; before the second the
 * GPU has to be drained, before the third hbm_reuse called for what is pending. Each returns -1
 * where the next is needed, the last: out of memory. */
int32_t hbm_alloc(struct hbm *hbm, int64_t bytes, int category,
    int stream); /* steps 2, 3, 5 where 4 has no work */
int32_t hbm_reclaim(struct hbm *hbm, int64_t bytes, int category, int stream); /* steps 4 to 6 */
int32_t hbm_retry(struct hbm *hbm, int64_t bytes, int category, int stream);   /* step 7 */

/* The tensor is gone: its bytes no longer count as allocated. The block can be used again when
 * hbm_reuse is called: at once for a block that only its own stream used. */
void hbm_free(struct hbm *hbm, int32_t index, int category);
void hbm_reuse(struct hbm *hbm, int32_t index);

/* What the allocator counts for a request: PyTorch's round_size. */
int64_t hbm_round(int64_t bytes);

#endif
