/* Blocks of a caching allocator, as a caller without pending ones takes and gives them. Include
 * after cmocka.h. */
#ifndef FLOPCAST_TESTS_EXEC_BLOCKS_H
#define FLOPCAST_TESTS_EXEC_BLOCKS_H

#include "exec/hbm.h"

#define MIB (INT64_C(1) << 20)

/* Memory of which nothing else takes anything. */
static inline void start(struct hbm *hbm, int64_t memory, bool expandable)
{
    hbm_init(hbm, memory, 0, &(struct hbm_options){.expandable_segments = expandable});
}

/* As a caller without pending blocks does it. */
static inline int32_t take_on(struct hbm *hbm, int64_t bytes, int stream)
{
    int32_t block = hbm_alloc(hbm, bytes, HBM_ACTIVATIONS, stream);
    if (block < 0)
        block = hbm_reclaim(hbm, bytes, HBM_ACTIVATIONS, stream);
    return block >= 0 ? block : hbm_retry(hbm, bytes, HBM_ACTIVATIONS, stream);
}

static inline int32_t take(struct hbm *hbm, int64_t bytes)
{
    return take_on(hbm, bytes, STREAM_COMPUTE);
}

static inline void give(struct hbm *hbm, int32_t block)
{
    hbm_free(hbm, block, HBM_ACTIVATIONS);
    hbm_reuse(hbm, block);
}

#endif
