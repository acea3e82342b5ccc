#include "base/vec.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void grows_and_keeps(void **state)
{
    (void)state;
    VEC(int) squares = {0};
    for (int i = 0; i < 1000; i++)
        vec_push(&squares, i * i);
    assert_int_equal(squares.n, 1000);
    assert_true(squares.capacity >= 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(squares.at[i], i * i);
    vec_free(&squares);
    assert_null(squares.at);
    assert_int_equal(squares.n, 0);
    assert_int_equal(squares.capacity, 0);
}

static void reserve_keeps_the_count(void **state)
{
    (void)state;
    VEC(double) numbers = {0};
    vec_reserve(&numbers, 100);
    assert_int_equal(numbers.n, 0);
    assert_true(numbers.capacity >= 100);
    const double *before = numbers.at;
    for (int i = 0; i < 100; i++)
        vec_push(&numbers, i);
    assert_ptr_equal(numbers.at, before);
    vec_free(&numbers);
}

static void fits_and_grows_again(void **state)
{
    (void)state;
    VEC(int) numbers = {0};
    vec_fit(&numbers);
    assert_null(numbers.at);
    for (int i = 0; i < 100; i++)
        vec_push(&numbers, i);
    assert_true(numbers.capacity > 100);
    vec_fit(&numbers);
    assert_int_equal(numbers.capacity, 100);
    vec_push(&numbers, 100);
    for (int i = 0; i <= 100; i++)
        assert_int_equal(numbers.at[i], i);
    numbers.n = 0;
    vec_fit(&numbers);
    vec_push(&numbers, 7);
    assert_int_equal(numbers.at[0], 7);
    vec_free(&numbers);
}

struct op {
    int kind, count;
};

static void takes_a_literal_and_its_own_items(void **state)
{
    (void)state;
    VEC(struct op) ops = {0};
    vec_push(&ops, (struct op){1, 2});
    for (int i = 1; i < 100;
         i++) /* the item moves when the array grows, and the count names itself */
        vec_push(&ops, (struct op){ops.at[0].kind, ops.n});
    assert_int_equal(ops.n, 100);
    for (int i = 1; i < 100; i++) {
        assert_int_equal(ops.at[i].kind, 1);
        assert_int_equal(ops.at[i].count, i);
    }
    vec_free(&ops);
}

/* Twice as many would not be a count any more. Nothing is copied before that is seen. */
static void the_largest_does_not_grow(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka's handler would jump back into the test */
        close(STDERR_FILENO);
        VEC(char) full = {.n = INT_MAX / 2 + 1, .capacity = INT_MAX / 2 + 1};
        vec_push(&full, 0);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* Which is freed with it, and the vector can grow anew. */
static void an_arena_keeps_the_elements(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    VEC(int) numbers = {0};
    int *kept = &(int){0};
    vec_keep(kept, &numbers, &arena);
    assert_null(kept);
    for (int i = 0; i < 20; i++)
        vec_push(&numbers, i);
    vec_keep(kept, &numbers, &arena);
    assert_int_equal(numbers.n, 0);
    vec_push(&numbers, 7);
    assert_true(kept[0] == 0 && kept[19] == 19);
    vec_free(&numbers);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arena_keeps_the_elements),
        cmocka_unit_test(grows_and_keeps),
        cmocka_unit_test(reserve_keeps_the_count),
        cmocka_unit_test(fits_and_grows_again),
        cmocka_unit_test(takes_a_literal_and_its_own_items),
        cmocka_unit_test(the_largest_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
