/* Finds equal items in the caller's array: a hash table of item numbers (open addressing, linear
 * probing). It knows only hashes; the caller compares items. Items are never removed. Their order
 * affects only speed. */
#ifndef FLOPCAST_BASE_INDEX_H
#define FLOPCAST_BASE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct index {
    struct index_slot {
        uint64_t hash;
        int32_t item; /* number + 1; 0: empty */
    } * slots;
    int n, capacity;
};

/* Whether an item is the one that self describes. */
typedef bool (*index_same)(const void *self, int32_t item);

int32_t index_find(
    const struct index *index, uint64_t hash, index_same same, const void *self); /* -1: none */
void index_add(struct index *index, uint64_t hash, int32_t item);
void index_free(struct index *index); /* it is empty and usable again */

#endif
