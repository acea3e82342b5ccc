/* Which items of the caller's array are alike: a hash table of their numbers (open addressing, linear probing). It
 * knows the items' hashes only; whether two are the same, the caller says. Items are never taken out. The order of
 * items decides nothing but speed. */
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

int32_t index_find(const struct index *index, uint64_t hash, index_same same, const void *self); /* -1: none */
void index_add(struct index *index, uint64_t hash, int32_t item);
void index_free(struct index *index); /* it is empty and usable again */

#endif
