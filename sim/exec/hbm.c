#include "exec/hbm.h"

#include <string.h>

/* CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer, kMinLargeAlloc, kRoundLarge (bytes).
 */
static const int64_t MIN_BLOCK = 512;
static const int64_t SMALL_SIZE = INT64_C(1) << 20;
static const int64_t SMALL_BUFFER = INT64_C(2) << 20;
static const int64_t LARGE_BUFFER = INT64_C(20) << 20;
static const int64_t MIN_LARGE_ALLOC = INT64_C(10) << 20;
static const int64_t ROUND_LARGE = INT64_C(2) << 20;

/* BLOCK_HOLE: addresses of an expandable segment without memory behind them. */
enum block_state { BLOCK_UNUSED, BLOCK_FREE, BLOCK_USED, BLOCK_PENDING, BLOCK_HOLE };

void hbm_init(struct hbm *hbm, int64_t capacity, bool expandable)
{
    *hbm = (struct hbm){.capacity = capacity, .expandable = expandable, .unused = -1};
}

void hbm_release(struct hbm *hbm)
{
    vec_free(&hbm->blocks);
    for (int p = 0; p < hbm->pools.n; p++)
        vec_free(&hbm->pools.at[p]);
    vec_free(&hbm->pools);
}

int64_t hbm_round(int64_t bytes)
{
    return (bytes + MIN_BLOCK - 1) / MIN_BLOCK * MIN_BLOCK;
}

static int64_t segment_size(int64_t bytes)
{
    if (bytes <= SMALL_SIZE)
        return SMALL_BUFFER;
    if (bytes < MIN_LARGE_ALLOC)
        return LARGE_BUFFER;
    return (bytes + ROUND_LARGE - 1) / ROUND_LARGE * ROUND_LARGE;
}

static int pool_of(const struct hbm_block *block)
{
    return 2 * block->stream + block->small;
}

/* How many free blocks of the pool come before one of these bytes and this number. */
static int place_of(const struct hbm *hbm, int pool, int64_t bytes, int32_t index)
{
    int low = 0, high = hbm->pools.at[pool].n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const struct hbm_free *at = &hbm->pools.at[pool].at[middle];
        if (at->bytes < bytes || (at->bytes == bytes && at->block < index))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void set_free(struct hbm *hbm, int32_t index)
{
    struct hbm_block *block = &hbm->blocks.at[index];
    int pool = pool_of(block), place = place_of(hbm, pool, block->bytes, index);
    block->state = BLOCK_FREE;
    vec_reserve(&hbm->pools.at[pool], hbm->pools.at[pool].n + 1);
    struct hbm_free *at = hbm->pools.at[pool].at + place;
    memmove(at + 1, at, sizeof *at * (size_t)(hbm->pools.at[pool].n++ - place));
    *at = (struct hbm_free){block->bytes, index};
}

/* A free block is about to become something else, or to change its size. */
static void unlist(struct hbm *hbm, int32_t index)
{
    const struct hbm_block *block = &hbm->blocks.at[index];
    int pool = pool_of(block), place = place_of(hbm, pool, block->bytes, index);
    struct hbm_free *at = hbm->pools.at[pool].at + place;
    BUG_IF(place == hbm->pools.at[pool].n || at->block != index, "block %d is not free", index);
    memmove(at, at + 1, sizeof *at * (size_t)(--hbm->pools.at[pool].n - place));
}

static int32_t new_block(struct hbm *hbm, struct hbm_block block)
{
    int32_t index = hbm->unused;
    if (index >= 0) {
        hbm->unused = hbm->blocks.at[index].next;
        hbm->blocks.at[index] = block;
    } else {
        index = hbm->blocks.n;
        vec_push(&hbm->blocks, block);
    }
    if (block.state == BLOCK_FREE)
        set_free(hbm, index);
    return index;
}

static void drop_block(struct hbm *hbm, int32_t index)
{
    hbm->blocks.at[index] = (struct hbm_block){.state = BLOCK_UNUSED, .next = hbm->unused};
    hbm->unused = index;
}

/* What a free block of an expandable segment can come to when what follows is mapped; the last one has no end. */
static int64_t expandable_size(const struct hbm *hbm, const struct hbm_free *free)
{
    int32_t next = hbm->blocks.at[free->block].next;
    if (next < 0)
        return INT64_MAX;
    return free->bytes + (hbm->blocks.at[next].state == BLOCK_HOLE ? hbm->blocks.at[next].bytes : 0);
}

/* The smallest free block of this stream and pool that holds bytes, of several the one with the lowest index; or -1.
 * Expandable: one that can grow is left alone while the next larger one can come to less (get_free_block). */
static int32_t best_fit(const struct hbm *hbm, int64_t bytes, int stream)
{
    int pool = pool_of(&(struct hbm_block){.stream = (uint8_t)stream, .small = bytes <= SMALL_SIZE});
    int place = place_of(hbm, pool, bytes, -1), n = hbm->pools.at[pool].n;
    const struct hbm_free *free = hbm->pools.at[pool].at;
    while (
        hbm->expandable && place + 1 < n && expandable_size(hbm, &free[place + 1]) < expandable_size(hbm, &free[place]))
        place++;
    return place < n ? free[place].block : -1;
}

/* Merge the block after index into it; neither is among the free ones. */
static void absorb_next(struct hbm *hbm, int32_t index)
{
    struct hbm_block *block = &hbm->blocks.at[index];
    int32_t gone = block->next;
    block->bytes += hbm->blocks.at[gone].bytes;
    block->next = hbm->blocks.at[gone].next;
    if (block->next >= 0)
        hbm->blocks.at[block->next].previous = index;
    drop_block(hbm, gone);
}

/* Give back every segment that is one free block; of expandable ones every free block. */
static void release_cached(struct hbm *hbm)
{
    for (int32_t i = 0; i < hbm->blocks.n; i++) {
        struct hbm_block *block = &hbm->blocks.at[i];
        bool whole = block->previous < 0 && block->next < 0;
        if (block->state != BLOCK_FREE || !(whole || hbm->expandable))
            continue;
        hbm->reserved -= block->bytes;
        hbm->frees++;
        unlist(hbm, i);
        if (!hbm->expandable) {
            drop_block(hbm, i);
            continue;
        }
        block->state = BLOCK_HOLE;
        if (block->next >= 0 && hbm->blocks.at[block->next].state == BLOCK_HOLE)
            absorb_next(hbm, i);
        if (block->previous >= 0 && hbm->blocks.at[block->previous].state == BLOCK_HOLE)
            absorb_next(hbm, block->previous);
    }
}

static bool reserve(struct hbm *hbm, int64_t size)
{
    if (hbm->reserved + size > hbm->capacity)
        return false;
    hbm->reserved += size;
    hbm->mallocs++;
    if (hbm->reserved > hbm->peak_reserved)
        hbm->peak_reserved = hbm->reserved;
    return true;
}

/* The block at the end of the expandable segment of this stream and pool, or -1: there is none yet. */
static int32_t segment_end(const struct hbm *hbm, bool small, int stream)
{
    for (int32_t i = 0; i < hbm->blocks.n; i++) {
        const struct hbm_block *block = &hbm->blocks.at[i];
        if (block->state != BLOCK_UNUSED && block->next < 0 && block->small == small && block->stream == stream)
            return i;
    }
    return -1;
}

static bool is_free(const struct hbm *hbm, int32_t index)
{
    return index >= 0 && hbm->blocks.at[index].state == BLOCK_FREE;
}

/* Of the segment with this end, the hole of the lowest address that, with a free block before it, holds bytes; else -1.
 */
static int32_t find_hole(const struct hbm *hbm, int64_t bytes, int32_t end)
{
    int32_t found = -1;
    for (int32_t i = end; i >= 0; i = hbm->blocks.at[i].previous) {
        const struct hbm_block *hole = &hbm->blocks.at[i];
        int64_t before = is_free(hbm, hole->previous) ? hbm->blocks.at[hole->previous].bytes : 0;
        if (hole->state == BLOCK_HOLE && hole->bytes + before >= bytes)
            found = i;
    }
    return found;
}

/* Cut the first bytes of a block off as the block itself; the rest follows it in the same state. */
static void cut(struct hbm *hbm, int32_t index, int64_t bytes)
{
    struct hbm_block tail = hbm->blocks.at[index];
    tail.bytes -= bytes;
    tail.previous = index;
    int32_t tail_index = new_block(hbm, tail);
    if (tail.next >= 0)
        hbm->blocks.at[tail.next].previous = tail_index;
    hbm->blocks.at[index].bytes = bytes;
    hbm->blocks.at[index].next = tail_index;
}

/* Map pages until there is a free block of bytes: in a hole, else at the end. */
static int32_t expand(struct hbm *hbm, int64_t bytes, int stream)
{
    bool small = bytes <= SMALL_SIZE;
    int64_t page = small ? SMALL_BUFFER : LARGE_BUFFER;
    int32_t end = segment_end(hbm, small, stream), hole = find_hole(hbm, bytes, end);
    int32_t before = hole >= 0 ? hbm->blocks.at[hole].previous : end;
    int64_t lacking = bytes - (is_free(hbm, before) ? hbm->blocks.at[before].bytes : 0);
    int64_t mapped = (lacking + page - 1) / page * page;
    if (hole >= 0 && mapped > hbm->blocks.at[hole].bytes)
        mapped = hbm->blocks.at[hole].bytes;
    if (!reserve(hbm, mapped))
        return -1;
    if (hole >= 0) {
        if (mapped < hbm->blocks.at[hole].bytes)
            cut(hbm, hole, mapped);
        set_free(hbm, hole);
    } else {
        hole = new_block(hbm, (struct hbm_block){mapped, end, -1, (uint8_t)stream, small, BLOCK_FREE});
        if (end >= 0)
            hbm->blocks.at[end].next = hole;
    }
    if (!is_free(hbm, before))
        return hole;
    unlist(hbm, hole);
    unlist(hbm, before);
    absorb_next(hbm, before);
    set_free(hbm, before);
    return before;
}

static int32_t new_segment(struct hbm *hbm, int64_t bytes, int stream)
{
    int64_t size = segment_size(bytes);
    if (!reserve(hbm, size))
        return -1;
    return new_block(hbm, (struct hbm_block){size, -1, -1, (uint8_t)stream, bytes <= SMALL_SIZE, BLOCK_FREE});
}

static void split(struct hbm *hbm, int32_t index, int64_t bytes)
{
    int64_t rest = hbm->blocks.at[index].bytes - bytes;
    if (hbm->blocks.at[index].small || hbm->expandable ? rest >= MIN_BLOCK : rest > SMALL_SIZE)
        cut(hbm, index, bytes);
}

static int32_t new_memory(struct hbm *hbm, int64_t size, int stream)
{
    return hbm->expandable ? expand(hbm, size, stream) : new_segment(hbm, size, stream);
}

/* A free block becomes the tensor's. */
static int32_t take(struct hbm *hbm, int32_t index, int64_t size, int category)
{
    if (index < 0)
        return -1;
    unlist(hbm, index);
    split(hbm, index, size);
    hbm->blocks.at[index].state = BLOCK_USED;
    hbm->allocated += size;
    hbm->by_category[category] += size;
    if (hbm->allocated > hbm->peak_allocated) {
        hbm->peak_allocated = hbm->allocated;
        memcpy(hbm->at_peak, hbm->by_category, sizeof hbm->at_peak);
    }
    return index;
}

int32_t hbm_alloc(struct hbm *hbm, int64_t bytes, int category, int stream)
{
    int64_t size = hbm_round(bytes);
    while (hbm->pools.n < 2 * (stream + 1))
        vec_push(&hbm->pools, (hbm_pool){0});
    int32_t index = best_fit(hbm, size, stream);
    return take(hbm, index >= 0 ? index : new_memory(hbm, size, stream), size, category);
}

int32_t hbm_retry(struct hbm *hbm, int64_t bytes, int category, int stream)
{
    int64_t size = hbm_round(bytes);
    hbm->retries++;
    release_cached(hbm);
    return take(hbm, new_memory(hbm, size, stream), size, category);
}

void hbm_free(struct hbm *hbm, int32_t block, int64_t bytes, int category)
{
    BUG_IF(hbm->blocks.at[block].state != BLOCK_USED, "block %d freed twice", block);
    hbm->blocks.at[block].state = BLOCK_PENDING;
    hbm->allocated -= hbm_round(bytes);
    hbm->by_category[category] -= hbm_round(bytes);
}

void hbm_reuse(struct hbm *hbm, int32_t index)
{
    struct hbm_block *block = &hbm->blocks.at[index];
    BUG_IF(block->state != BLOCK_PENDING, "block %d is not pending", index);
    if (is_free(hbm, block->next)) {
        unlist(hbm, block->next);
        absorb_next(hbm, index);
    }
    if (is_free(hbm, block->previous)) {
        unlist(hbm, block->previous);
        index = block->previous;
        absorb_next(hbm, index);
    }
    set_free(hbm, index);
}
