#include "base/arena.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

static bool all(const unsigned char *bytes, size_t n, unsigned char value)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

static void blocks_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    /* 300 blocks of 0 to 299 bytes and one in a hundred larger than a chunk of 64 KiB: several
     * chunks of both kinds. */
    enum { N = 300 };
    struct arena arena = ARENA_INIT;
    unsigned char *blocks[N];
    size_t sizes[N];
    for (size_t i = 0; i < N; i++) {
        sizes[i] = i % 100 == 99 ? 100000 : i;
        blocks[i] = arena_alloc(&arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        assert_true(all(blocks[i], sizes[i], 0));
        memset(blocks[i], (int)(i % 251 + 1), sizes[i]);
    }
    for (size_t i = 0; i < N; i++) /* nobody wrote over another's block */
        assert_true(all(blocks[i], sizes[i], (unsigned char)(i % 251 + 1)));
    arena_release(&arena);
    assert_null(arena.chunk);
    assert_true(all(arena_alloc(&arena, 1000), 1000, 0)); /* usable again */
    arena_release(&arena);
    arena_release(&arena);
}

static void texts_are_copies(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    char word[] = "fsdp";
    const char *copy = arena_strdup(&arena, word);
    word[0] = 'x';
    assert_string_equal(copy, "fsdp");
    assert_string_equal(arena_printf(&arena, "%s.%d", "train", 8), "train.8");
    assert_string_equal(arena_printf(&arena, "%s", ""), "");
    char *wide = arena_printf(&arena, "%070000d", 1); /* longer than a chunk */
    assert_int_equal(strlen(wide), 70000);
    arena_release(&arena);
}

static void typed_blocks(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    double *values = ARENA_ARRAY(&arena, double, 5);
    int *one = ARENA_NEW(&arena, int);
    for (int i = 0; i < 5; i++)
        assert_true(values[i] == 0);
    assert_int_equal(*one, 0);
    arena_release(&arena);
}

/* With nothing before it, and behind a chunk whose room is used on; the sanitizers say whether they
 * are freed, once. */
static void a_block_of_somebody_else_is_freed_along(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    arena_take(&arena, NULL);
    assert_null(arena.chunk);
    char *first = xcalloc(1000, 1), *second = xcalloc(1000, 1);
    arena_take(&arena, first);
    char *between = arena_alloc(&arena, 16);
    const struct arena_chunk *used = arena.chunk;
    arena_take(&arena, second);
    assert_ptr_equal(arena.chunk, used);
    assert_ptr_equal(arena_alloc(&arena, 16), between + 16);
    first[999] = second[999] = between[15] = 1;
    arena_release(&arena);
    assert_null(arena.chunk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_aligned_and_apart),
        cmocka_unit_test(texts_are_copies),
        cmocka_unit_test(typed_blocks),
        cmocka_unit_test(a_block_of_somebody_else_is_freed_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
