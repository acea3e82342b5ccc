/* Memory by lifetime: an arena hands out zeroed blocks and frees them all at once. Blocks never
 * move. Out of memory is fatal with a clear sentence (a command-line program has nothing better to
 * do). */
#ifndef FLOPCAST_BASE_ARENA_H
#define FLOPCAST_BASE_ARENA_H

#include <stddef.h>
#include <stdio.h>

struct arena_chunk;
struct arena {
    struct arena_chunk *chunk; /* newest first */
};

#define ARENA_INIT ((struct arena){0})

void *arena_alloc(struct arena *arena,
    size_t bytes); /* zeroed, aligned for any type; bytes 0 gives a valid pointer */
char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void arena_take(struct arena *arena,
    void *block); /* of xrealloc or xcalloc: it is freed with the arena; NULL: nothing */
void arena_join(struct arena *arena,
    struct arena *other);                /* the other's blocks are this one's; the other is empty */
void arena_release(struct arena *arena); /* frees everything; the arena is empty and usable again */

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count)                                                            \
    ((type *)arena_alloc((arena), sizeof(type) * (size_t)(count)))

/* malloc family that ends the program with a sentence instead of returning NULL. */
void *xrealloc(void *block, size_t bytes);
void *xcalloc(size_t count, size_t bytes);
FILE *xmemstream(char **text, size_t *bytes); /* open_memstream() */

#endif
