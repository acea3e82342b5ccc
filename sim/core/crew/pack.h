/* What comes out of a job, as bytes, from the process that did it to the one that asked. Both run the same program, so
 * plain values are copied as they lie in memory. */
#ifndef FLOPCAST_CREW_PACK_H
#define FLOPCAST_CREW_PACK_H

#include "base/arena.h"

#include <stddef.h>

struct pack {
    unsigned char *at;
    size_t n, capacity;
};

void pack_bytes(struct pack *pack, const void *bytes, size_t n);
void pack_text(struct pack *pack, const char *text); /* NULL stays NULL */
void pack_reserve(struct pack *pack, size_t n);      /* room for n bytes in all */
void pack_free(struct pack *pack);
#define PACK(pack, value) pack_bytes((pack), &(value), sizeof(value))

/* The same bytes, read in the same order. Fewer than are asked for is a BUG. */
struct unpack {
    const unsigned char *at;
    size_t left;
};

void unpack_bytes(struct unpack *from, void *out, size_t n);
char *unpack_text(struct unpack *from, struct arena *arena);
#define UNPACK(from, value) unpack_bytes((from), &(value), sizeof(value))

#endif
