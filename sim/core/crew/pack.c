/* Bytes for jobs of other ranks: appended as they lie in memory, a text by its length with its NUL
 * (0: no text). Nothing says what a byte is of, so pack and unpack of a type must name the same
 * members in the same order. */
#include "crew/pack.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

void pack_reserve(struct pack *pack, size_t n)
{
    if (n <= pack->capacity)
        return;
    pack->capacity = n > 2 * pack->capacity ? n : 2 * pack->capacity;
    pack->at = xrealloc(pack->at, pack->capacity);
}

void pack_bytes(struct pack *pack, const void *bytes, size_t n)
{
    if (n == 0)
        return;
    pack_reserve(pack, pack->n + n);
    memcpy(pack->at + pack->n, bytes, n);
    pack->n += n;
}

void pack_text(struct pack *pack, const char *text)
{
    size_t n = text ? strlen(text) + 1 : 0;
    PACK(pack, n);
    pack_bytes(pack, text, n);
}

void pack_free(struct pack *pack)
{
    free(pack->at);
    *pack = (struct pack){0};
}

void unpack_bytes(struct unpack *from, void *out, size_t n)
{
    BUG_IF(n > from->left, "%zu bytes are asked for, %zu are left", n, from->left);
    if (n == 0)
        return;
    memcpy(out, from->at, n);
    from->at += n;
    from->left -= n;
}

char *unpack_text(struct unpack *from, struct arena *arena)
{
    size_t n = 0;
    UNPACK(from, n);
    if (n == 0)
        return NULL;
    char *text = arena_alloc(arena, n);
    unpack_bytes(from, text, n);
    return text;
}
