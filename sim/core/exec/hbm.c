/* PyTorch's caching allocator, step by step as hbm.h lists it.
 *
 * Blocks are records in one array, named by index; records that are not used form a list through
 * `next`. A block knows its neighbours in its segment, so splitting and merging take constant time.
 * Free blocks of a stream and a size class are a pool: a sorted array of the sizes that there are,
 * mostly few, and of each size a list of its blocks, the lowest address first. Best fit is a search
 * among the sizes. A block that becomes free walks up its list, which is short where blocks are
 * taken from the low end. A change of a free block's size always goes through unlist() and
 * hbm_set_free().
 *
 * A block that is freed is pending until the caller says that its stream has passed (hbm_reuse).
 * Allocated bytes fall at the free, as PyTorch counts; the block is not found by a search before.
 *
 * Expandable segments are one range of addresses a stream and pool, in which BLOCK_HOLE stands for
 * pages that are not mapped. Mapping turns the front of a hole into a free block, unmapping the
 * whole pages of a free block into a hole. Holes and free blocks of one range are neighbours in the
 * same list, so both merge by the same code.
 *
 * Subtle: addresses decide which of equal blocks is taken, and new segments get rising addresses.
 * Names in comments are those of CUDACachingAllocator.cpp. */
#include "exec/hbm.h"

#include "base/digest.h"

#include <string.h>

/* CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer, kMinLargeAlloc,
 * kRoundLarge (bytes). */
static const int64_t MIN_BLOCK = 512;
static const int64_t SMALL_SIZE = INT64_C(1) << 20;
static const int64_t SMALL_BUFFER = INT64_C(2) << 20;
static const int64_t LARGE_BUFFER = (int64_t)HBM_LARGE_BUFFER_MIB << 20;
static const int64_t MIN_LARGE_ALLOC = INT64_C(10) << 20;
static const int64_t ROUND_LARGE = INT64_C(2) << 20;
static const int64_t MIB = INT64_C(1) << 20;
/* ExpandableSegment: addresses that a range takes, of the GPU's memory. */
static const int64_t RANGE_NUMERATOR = 9, RANGE_DENOMINATOR = 8;

/* BLOCK_HOLE: addresses of an expandable segment without memory behind them. */
enum block_state { BLOCK_UNUSED, BLOCK_FREE, BLOCK_USED, BLOCK_PENDING, BLOCK_HOLE };

void hbm_init(struct hbm *hbm, int64_t memory, int64_t taken, const struct hbm_options *options)
{
    int64_t allowed = (int64_t)(options->memory_fraction * (double)memory);
    bool limited = options->memory_fraction > 0,
         collects = limited && options->garbage_collection_threshold > 0;
    *hbm = (struct hbm){.capacity = limited && allowed < memory - taken ? allowed : memory - taken,
        .max_split = options->max_split_size_mb > 0 ? options->max_split_size_mb * MIB : INT64_MAX,
        .collect_above = collects
                             ? (int64_t)(options->garbage_collection_threshold * (double)allowed)
                             : INT64_MAX,
        .expandable = options->expandable_segments,
        .unused = -1};
}

void hbm_release(struct hbm *hbm)
{
    vec_free(&hbm->blocks);
    for (int p = 0; p < hbm->pools.n; p++)
        vec_free(&hbm->pools.at[p]);
    vec_free(&hbm->pools);
}

void hbm_copy(struct hbm *to, const struct hbm *from)
{
    *to = *from;
    vec_copy(&to->blocks, &from->blocks);
    vec_copy(&to->pools, &from->pools);
    for (int p = 0; p < from->pools.n; p++)
        vec_copy(&to->pools.at[p], &from->pools.at[p]);
}

bool hbm_is_allocated(const struct hbm *hbm, int32_t index)
{
    return hbm->blocks.at[index].state == BLOCK_USED;
}

/* A sum over blocks, as which record has which block decides nothing. */
uint64_t hbm_digest(const struct hbm *hbm, int32_t first, int32_t before)
{
    uint64_t sum = 0;
    for (int i = 0; i < hbm->blocks.n; i++) {
        const struct hbm_block *block = &hbm->blocks.at[i];
        if (block->state == BLOCK_UNUSED)
            continue;
        uint64_t digest = digest_word(DIGEST_INIT, (uint64_t)block->bytes);
        digest = digest_word(digest, (uint64_t)block->address);
        if (block->state == BLOCK_USED)
            digest = digest_word(
                digest, (uint64_t)(block->owner - (block->owner >= first ? before : 0)));
        sum += digest_word(
            digest, (uint64_t)block->stream << 16 | (uint64_t)block->small << 8 | block->state);
    }
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        sum = digest_word(sum, (uint64_t)hbm->by_category[c]);
    return digest_word(sum, (uint64_t)hbm->next_address);
}

bool hbm_collects(const struct hbm *hbm)
{
    return hbm->collect_above < INT64_MAX;
}

void hbm_keep_peaks(struct hbm *hbm, const struct hbm *of)
{
    hbm->peak_allocated = of->peak_allocated;
    hbm->peak_reserved = of->peak_reserved;
    memcpy(hbm->at_peak, of->at_peak, sizeof hbm->at_peak);
    hbm->retries = of->retries;
}

static int64_t hbm_round_up(int64_t bytes, int64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

int64_t hbm_round(int64_t bytes)
{
    return hbm_round_up(bytes, MIN_BLOCK);
}

static int64_t segment_size(int64_t bytes)
{
    if (bytes <= SMALL_SIZE)
        return SMALL_BUFFER;
    if (bytes < MIN_LARGE_ALLOC)
        return LARGE_BUFFER;
    return hbm_round_up(bytes, ROUND_LARGE);
}

static hbm_pool *pool_of(struct hbm *hbm, int stream, bool small)
{
    return &hbm->pools.at[2 * stream + small];
}

/* How many sizes of the pool are below bytes. (Without branches it takes a tenth of a run longer:
 * requests come in an order that repeats, which processors learn.) */
static int hbm_size_at(const hbm_pool *pool, int64_t bytes)
{
    int low = 0, high = pool->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (pool->at[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void hbm_set_free(struct hbm *hbm, int32_t index)
{
    struct hbm_block *block = &hbm->blocks.at[index];
    hbm_pool *pool = pool_of(hbm, block->stream, block->small);
    int at = hbm_size_at(pool, block->bytes);
    if (at == pool->n || pool->at[at].bytes != block->bytes) {
        vec_reserve(pool, pool->n + 1);
        memmove(pool->at + at + 1, pool->at + at, sizeof *pool->at * (size_t)(pool->n++ - at));
        pool->at[at] = (struct hbm_size){block->bytes, -1};
    }
    block->state = BLOCK_FREE;
    block->since = hbm->searches;
    block->lower = -1;
    block->higher = pool->at[at].lowest;
    while (block->higher >= 0 && hbm->blocks.at[block->higher].address < block->address) {
        block->lower = block->higher;
        block->higher = hbm->blocks.at[block->higher].higher;
    }
    *(block->lower >= 0 ? &hbm->blocks.at[block->lower].higher : &pool->at[at].lowest) = index;
    if (block->higher >= 0)
        hbm->blocks.at[block->higher].lower = index;
}

/* The lowest one of a size. */
static void unlist_lowest(struct hbm *hbm, hbm_pool *pool, int at)
{
    int32_t higher = hbm->blocks.at[pool->at[at].lowest].higher;
    pool->at[at].lowest = higher;
    if (higher >= 0)
        hbm->blocks.at[higher].lower = -1;
    else
        memmove(pool->at + at, pool->at + at + 1, sizeof *pool->at * (size_t)(--pool->n - at));
}

/* A free block is about to become something else, or to change its size. */
static void unlist(struct hbm *hbm, int32_t index)
{
    const struct hbm_block *block = &hbm->blocks.at[index];
    BUG_IF(block->state != BLOCK_FREE, "block %d is not free", index);
    if (block->lower < 0) {
        hbm_pool *pool = pool_of(hbm, block->stream, block->small);
        unlist_lowest(hbm, pool, hbm_size_at(pool, block->bytes));
        return;
    }
    hbm->blocks.at[block->lower].higher = block->higher;
    if (block->higher >= 0)
        hbm->blocks.at[block->higher].lower = block->lower;
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
        hbm_set_free(hbm, index);
    return index;
}

static void drop_block(struct hbm *hbm, int32_t index)
{
    hbm->blocks.at[index] = (struct hbm_block){.state = BLOCK_UNUSED, .next = hbm->unused};
    hbm->unused = index;
}

static bool is_free(const struct hbm *hbm, int32_t index)
{
    return index >= 0 && hbm->blocks.at[index].state == BLOCK_FREE;
}

static bool is_hole(const struct hbm *hbm, int32_t index)
{
    return index >= 0 && hbm->blocks.at[index].state == BLOCK_HOLE;
}

/* What a free block of an expandable segment can come to when what follows is mapped. */
static int64_t expandable_size(const struct hbm *hbm, int32_t free)
{
    int32_t next = hbm->blocks.at[free].next;
    return hbm->blocks.at[free].bytes + (is_hole(hbm, next) ? hbm->blocks.at[next].bytes : 0);
}

/* Expandable: a free block that can grow is left alone while the next larger one can come to less
 * (get_free_block). */
static int32_t least_expandable(const struct hbm *hbm, const hbm_pool *pool, int at)
{
    for (int32_t free = pool->at[at].lowest;;) {
        int32_t next = hbm->blocks.at[free].higher;
        if (next < 0)
            next = ++at < pool->n ? pool->at[at].lowest : -1;
        if (next < 0 || expandable_size(hbm, next) >= expandable_size(hbm, free))
            return free;
        free = next;
    }
}

/* max_split_size keeps large segments for large requests, and these from wasting them. */
static bool may_take(const struct hbm *hbm, int64_t held, int64_t bytes)
{
    return bytes < hbm->max_split ? held < hbm->max_split : held < bytes + LARGE_BUFFER;
}

/* The smallest free block of this stream and pool that holds bytes, of several the one at the
 * lowest address, which is none of the pool from now on; or -1. */
static int32_t best_fit(struct hbm *hbm, int64_t bytes, int stream)
{
    bool small = bytes <= SMALL_SIZE;
    hbm_pool *pool = pool_of(hbm, stream, small);
    int at = hbm_size_at(pool, bytes);
    hbm->searches += !small;
    if (at == pool->n)
        return -1;
    int32_t free = hbm->expandable ? least_expandable(hbm, pool, at) : pool->at[at].lowest;
    if (!may_take(hbm, hbm->blocks.at[free].bytes, bytes))
        return -1;
    if (hbm->expandable)
        unlist(hbm, free);
    else
        unlist_lowest(hbm, pool, at);
    return free;
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

/* Cut the first bytes of a block off as the block itself; the rest follows it in the same state. */
static int32_t cut(struct hbm *hbm, int32_t index, int64_t bytes)
{
    struct hbm_block tail = hbm->blocks.at[index];
    tail.bytes -= bytes;
    tail.address += bytes;
    tail.previous = index;
    int32_t tail_index = new_block(hbm, tail);
    if (tail.next >= 0)
        hbm->blocks.at[tail.next].previous = tail_index;
    hbm->blocks.at[index].bytes = bytes;
    hbm->blocks.at[index].next = tail_index;
    return tail_index;
}

static bool is_whole_segment(const struct hbm *hbm, int32_t index)
{
    return is_free(hbm, index) && hbm->blocks.at[index].previous < 0 &&
           hbm->blocks.at[index].next < 0;
}

static void release_segment(struct hbm *hbm, int32_t index)
{
    hbm->reserved -= hbm->blocks.at[index].bytes;
    hbm->frees++;
    unlist(hbm, index);
    drop_block(hbm, index);
}

static int64_t page_of(const struct hbm_block *block)
{
    return block->small ? SMALL_BUFFER : LARGE_BUFFER;
}

/* Of a free block the pages that it shares with no other. */
static void unmap(struct hbm *hbm, int32_t index)
{
    const struct hbm_block *block = &hbm->blocks.at[index];
    int64_t page = page_of(block), end = block->address + block->bytes;
    int64_t before = hbm_round_up(block->address, page) - block->address, after = end % page;
    int64_t unmapped = block->bytes - before - after;
    if (unmapped <= 0)
        return;
    if (after > 0) {
        unlist(hbm, index);
        cut(hbm, index, before + unmapped);
        hbm_set_free(hbm, index);
    }
    unlist(hbm, index);
    if (before > 0) {
        int32_t head = index;
        index = cut(hbm, head, before);
        hbm_set_free(hbm, head);
        unlist(hbm, index);
    }
    hbm->blocks.at[index].state = BLOCK_HOLE;
    hbm->reserved -= unmapped;
    hbm->frees++;
    if (is_hole(hbm, hbm->blocks.at[index].next))
        absorb_next(hbm, index);
    if (is_hole(hbm, hbm->blocks.at[index].previous))
        absorb_next(hbm, hbm->blocks.at[index].previous);
}

/* Give back every segment that is one free block; of expandable ones free pages. */
static void release_cached(struct hbm *hbm)
{
    for (int32_t i = 0; i < hbm->blocks.n; i++)
        if (hbm->expandable && is_free(hbm, i))
            unmap(hbm, i);
        else if (is_whole_segment(hbm, i))
            release_segment(hbm, i);
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

/* Whether what is free or not mapped holds bytes, from this block on. */
static bool has_room(const struct hbm *hbm, int32_t index, int64_t bytes)
{
    for (; bytes > 0 && (is_free(hbm, index) || is_hole(hbm, index));
         index = hbm->blocks.at[index].next)
        bytes -= hbm->blocks.at[index].bytes;
    return bytes <= 0;
}

/* find_expandable_block: the hole of the lowest address, or the free block before it, from which on
 * there is room. */
static int32_t find_room(const struct hbm *hbm, int64_t bytes, int stream)
{
    int32_t found = -1;
    for (int32_t i = 0; i < hbm->blocks.n; i++) {
        const struct hbm_block *hole = &hbm->blocks.at[i];
        int32_t from = is_free(hbm, hole->previous) ? hole->previous : i;
        if (!is_hole(hbm, i) || hole->small != (bytes <= SMALL_SIZE) || hole->stream != stream)
            continue;
        if ((found < 0 || hole->address < hbm->blocks.at[found].address) &&
            has_room(hbm, from, bytes))
            found = from;
    }
    return found;
}

/* A block becomes free, and one with free neighbours. */
static int32_t set_free_and_merge(struct hbm *hbm, int32_t index)
{
    int32_t next = hbm->blocks.at[index].next, previous = hbm->blocks.at[index].previous;
    if (is_free(hbm, next)) {
        unlist(hbm, next);
        absorb_next(hbm, index);
    }
    if (is_free(hbm, previous)) {
        unlist(hbm, previous);
        index = previous;
        absorb_next(hbm, index);
    }
    hbm_set_free(hbm, index);
    return index;
}

/* The pages of the first bytes of a hole, as a part of the free block around them; -1: there is no
 * memory. */
static int32_t map(struct hbm *hbm, int32_t hole, int64_t bytes)
{
    int64_t mapped = hbm_round_up(bytes, page_of(&hbm->blocks.at[hole]));
    if (!reserve(hbm, mapped))
        return -1;
    if (mapped < hbm->blocks.at[hole].bytes)
        cut(hbm, hole, mapped);
    return set_free_and_merge(hbm, hole);
}

/* At addresses that nothing has taken. */
static int32_t new_segment(
    struct hbm *hbm, int64_t bytes, int stream, bool small, enum block_state state)
{
    int64_t address = hbm->next_address;
    hbm->next_address += bytes;
    return new_block(hbm, (struct hbm_block){.bytes = bytes,
                              .address = address,
                              .previous = -1,
                              .next = -1,
                              .lower = -1,
                              .higher = -1,
                              .stream = (uint8_t)stream,
                              .small = small,
                              .state = (uint8_t)state});
}

/* Map pages until there is a free block of bytes. */
static int32_t hbm_expand(struct hbm *hbm, int64_t bytes, int stream)
{
    int64_t range = hbm_round_up(hbm->capacity / RANGE_DENOMINATOR * RANGE_NUMERATOR, LARGE_BUFFER);
    int32_t at = find_room(hbm, bytes, stream);
    if (at < 0)
        at = new_segment(hbm, range > bytes ? range : hbm_round_up(bytes, LARGE_BUFFER), stream,
            bytes <= SMALL_SIZE, BLOCK_HOLE);
    while (at >= 0 && (is_hole(hbm, at) || hbm->blocks.at[at].bytes < bytes)) {
        int32_t hole = is_hole(hbm, at) ? at : hbm->blocks.at[at].next;
        int64_t lacking = bytes - (hole == at ? 0 : hbm->blocks.at[at].bytes),
                room = hbm->blocks.at[hole].bytes;
        at = map(hbm, hole, lacking < room ? lacking : room);
    }
    return at;
}

static int32_t new_memory(struct hbm *hbm, int64_t bytes, int stream)
{
    int64_t size = segment_size(bytes);
    if (hbm->expandable)
        return hbm_expand(hbm, bytes, stream);
    return reserve(hbm, size) ? new_segment(hbm, size, stream, bytes <= SMALL_SIZE, BLOCK_FREE)
                              : -1;
}

static void hbm_split(struct hbm *hbm, int32_t index, int64_t bytes)
{
    int64_t rest = hbm->blocks.at[index].bytes - bytes;
    bool splits = hbm->blocks.at[index].small || hbm->expandable
                      ? rest >= MIN_BLOCK
                      : bytes < hbm->max_split && rest > SMALL_SIZE;
    if (splits)
        cut(hbm, index, bytes);
}

/* A block that is none of the free ones becomes the tensor's. */
static int32_t take_unlisted(struct hbm *hbm, int32_t index, int64_t size, int category)
{
    hbm_split(hbm, index, size);
    struct hbm_block *block = &hbm->blocks.at[index];
    block->state = BLOCK_USED;
    hbm->allocated += block->bytes;
    hbm->by_category[category] += block->bytes;
    if (hbm->allocated > hbm->peak_allocated) {
        hbm->peak_allocated = hbm->allocated;
        memcpy(hbm->at_peak, hbm->by_category, sizeof hbm->at_peak);
    }
    return index;
}

/* A free block becomes the tensor's. */
static int32_t hbm_take(struct hbm *hbm, int32_t index, int64_t size, int category)
{
    if (index < 0)
        return -1;
    unlist(hbm, index);
    return take_unlisted(hbm, index, size, category);
}

/* What garbage_collect_cached_blocks looks at: large segments that are one free block. */
static bool is_collectable(const struct hbm *hbm, int32_t index)
{
    return is_whole_segment(hbm, index) && !hbm->blocks.at[index].small && !hbm->expandable;
}

static bool has_garbage(const struct hbm *hbm)
{
    bool found = false;
    for (int32_t i = 0; i < hbm->blocks.n && hbm->reserved > hbm->collect_above && !found; i++)
        found = is_collectable(hbm, i);
    return found;
}

/* One round frees all that is as old as the mean; the next begins while too little has gone. */
static void collect_garbage(struct hbm *hbm)
{
    while (has_garbage(hbm)) {
        double total = 0, n = 0;
        for (int32_t i = 0; i < hbm->blocks.n; i++)
            if (is_collectable(hbm, i)) {
                total += (double)(hbm->searches - hbm->blocks.at[i].since);
                n++;
            }
        for (int32_t i = 0; i < hbm->blocks.n; i++)
            if (is_collectable(hbm, i) &&
                (double)(hbm->searches - hbm->blocks.at[i].since) * n >= total)
                release_segment(hbm, i);
    }
}

static int32_t highest_of(const struct hbm *hbm, const struct hbm_size *size)
{
    int32_t highest = size->lowest;
    while (hbm->blocks.at[highest].higher >= 0)
        highest = hbm->blocks.at[highest].higher;
    return highest;
}

/* release_available_cached_blocks: whether enough has gone. */
static bool release_oversize(struct hbm *hbm, int64_t bytes, int stream)
{
    const hbm_pool *pool = pool_of(hbm, stream, bytes <= SMALL_SIZE);
    int64_t wanted = bytes < hbm->max_split ? hbm->max_split : bytes, released = 0;
    if (hbm->max_split == INT64_MAX || hbm->expandable)
        return false;
    int at = hbm_size_at(pool, wanted);
    if (at < pool->n) {
        release_segment(hbm, pool->at[at].lowest);
        return true;
    }
    while (released < wanted && pool->n > 0 && pool->at[pool->n - 1].bytes >= hbm->max_split) {
        released += pool->at[pool->n - 1].bytes;
        release_segment(hbm, highest_of(hbm, &pool->at[pool->n - 1]));
    }
    return released >= wanted;
}

int32_t hbm_alloc(struct hbm *hbm, int64_t bytes, int category, int stream)
{
    int64_t size = hbm_round(bytes);
    while (hbm->pools.n < 2 * (stream + 1))
        vec_push(&hbm->pools, (hbm_pool){0});
    int32_t index = best_fit(hbm, size, stream);
    if (index >= 0)
        return take_unlisted(hbm, index, size, category);
    return hbm_take(hbm, has_garbage(hbm) ? -1 : new_memory(hbm, size, stream), size, category);
}

int32_t hbm_reclaim(struct hbm *hbm, int64_t bytes, int category, int stream)
{
    int64_t size = hbm_round(bytes);
    collect_garbage(hbm);
    int32_t index = new_memory(hbm, size, stream);
    if (index < 0 && release_oversize(hbm, size, stream))
        index = new_memory(hbm, size, stream);
    return hbm_take(hbm, index, size, category);
}

int32_t hbm_retry(struct hbm *hbm, int64_t bytes, int category, int stream)
{
    int64_t size = hbm_round(bytes);
    hbm->retries++;
    release_cached(hbm);
    return hbm_take(hbm, new_memory(hbm, size, stream), size, category);
}

void hbm_free(struct hbm *hbm, int32_t index, int category)
{
    struct hbm_block *block = &hbm->blocks.at[index];
    BUG_IF(block->state != BLOCK_USED, "block %d freed twice", index);
    block->state = BLOCK_PENDING;
    hbm->allocated -= block->bytes;
    hbm->by_category[category] -= block->bytes;
}

void hbm_reuse(struct hbm *hbm, int32_t index)
{
    BUG_IF(hbm->blocks.at[index].state != BLOCK_PENDING, "block %d is not pending", index);
    set_free_and_merge(hbm, index);
}
