/* Open addressing with linear probing over powers of two, at most half full. The table holds hashes
 * and item numbers; with same NULL probe() looks for an empty slot only, as when an item is added
 * or the table grows. */
#include "base/index.h"

#include "base/arena.h"

#include <stdlib.h>

enum { LEAST_SLOTS = 64 };

/* The slot of the item, or the empty one that it would take. Powers of two, half empty at least. */
static struct index_slot *probe(
    const struct index *index, uint64_t hash, index_same same, const void *self)
{
    uint64_t mask = (uint64_t)index->capacity - 1;
    for (uint64_t i = (hash ^ hash >> 32) & mask;; i = (i + 1) & mask) {
        struct index_slot *slot = &index->slots[i];
        if (slot->item == 0 || (same && slot->hash == hash && same(self, slot->item - 1)))
            return slot;
    }
}

int32_t index_find(const struct index *index, uint64_t hash, index_same same, const void *self)
{
    return index->capacity ? probe(index, hash, same, self)->item - 1 : -1;
}

static void grow(struct index *index)
{
    struct index old = *index;
    index->capacity = old.capacity ? 2 * old.capacity : LEAST_SLOTS;
    index->slots = xcalloc((size_t)index->capacity, sizeof *index->slots);
    for (int i = 0; i < old.capacity; i++)
        if (old.slots[i].item)
            *probe(index, old.slots[i].hash, NULL, NULL) = old.slots[i];
    free(old.slots);
}

void index_add(struct index *index, uint64_t hash, int32_t item)
{
    if (2 * (index->n + 1) > index->capacity)
        grow(index);
    *probe(index, hash, NULL, NULL) = (struct index_slot){hash, item + 1};
    index->n++;
}

void index_free(struct index *index)
{
    free(index->slots);
    *index = (struct index){0};
}
