/* Arenas: chunks of 64 KiB in a list, newest first, filled from the front. A larger block has a
 * chunk for itself. What is left in an older chunk is not used again, so a chunk wastes less than
 * the block that did not fit. Memory is zeroed by calloc. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 16 };

struct arena_chunk {
    struct arena_chunk *older;
    size_t used, size;
    void *taken; /* a block of somebody else's; NULL: none */
    _Alignas(max_align_t) unsigned char bytes[];
};

_Noreturn static void out_of_memory(size_t bytes)
{
    fprintf(stderr, "flopcast: out of memory (asked for %zu bytes)\n", bytes);
    exit(1);
}

void *xrealloc(void *block, size_t bytes)
{
    void *fresh = realloc(block, bytes ? bytes : 1);
    if (!fresh)
        out_of_memory(bytes);
    return fresh;
}

void *xcalloc(size_t count, size_t bytes)
{
    void *fresh = calloc(count ? count : 1, bytes ? bytes : 1);
    if (!fresh)
        out_of_memory(count * bytes);
    return fresh;
}

FILE *xmemstream(char **text, size_t *bytes)
{
    FILE *stream = open_memstream(text, bytes);
    if (!stream)
        out_of_memory(1);
    return stream;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    size_t align = _Alignof(max_align_t);
    size_t need = (bytes + align - 1) / align * align;
    struct arena_chunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < need) {
        size_t size = need > CHUNK_BYTES ? need : CHUNK_BYTES;
        chunk = xcalloc(1, sizeof *chunk + size);
        chunk->size = size;
        chunk->older = arena->chunk;
        arena->chunk = chunk;
    }
    void *block = chunk->bytes + chunk->used;
    chunk->used += need;
    return block;
}

void arena_take(struct arena *arena, void *block)
{
    if (!block)
        return;
    struct arena_chunk *newest = arena->chunk, *chunk = xcalloc(1, sizeof *chunk);
    chunk->taken = block;
    if (!newest) {
        arena->chunk = chunk;
        return;
    }
    chunk->older = newest->older; /* behind it, whose room is used on */
    newest->older = chunk;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(arena_alloc(arena, n), text, n);
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = arena_alloc(arena, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void arena_join(struct arena *arena, struct arena *other)
{
    struct arena_chunk **last = &arena->chunk;
    while (*last)
        last = &(*last)->older;
    *last = other->chunk;
    other->chunk = NULL;
}

void arena_release(struct arena *arena)
{
    for (struct arena_chunk *chunk = arena->chunk, *older; chunk; chunk = older) {
        older = chunk->older;
        free(chunk->taken);
        free(chunk);
    }
    arena->chunk = NULL;
}
