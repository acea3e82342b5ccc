/* Chakra traces that are damaged, or do not make a job: what is wrong, and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "traces.h"

static void expect_refusal(
    const char *folder, const struct hw *hw, const char *words, struct arena *arena)
{
    struct replay replay;
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        replay_run(&replay, &(struct replay_options){.folder = folder}, hw, arena, &diag),
        STATUS_INPUT);
    if (!strstr(diag.text, words))
        fail_msg("'%s' is not in: %s", words, diag.text);
}

static void write_two(const char *folder, void (*fill)(FILE *out, int rank), struct arena *arena)
{
    for (int r = 0; r < 2; r++) {
        FILE *out = begin_rank(folder, r, arena);
        fill(out, r);
        fclose(out);
    }
}

static void unknown_dep(FILE *out, int rank)
{
    compute(out, 1, rank == 1 ? 5 : -1, 10);
}
static void circle(FILE *out, int rank)
{
    compute(out, 1, 2, 10 + (uint64_t)rank);
    compute(out, 2, 1, 10);
}
static void twice(FILE *out, int rank)
{
    compute(out, 1, -1, 10 + (uint64_t)rank);
    compute(out, 1, -1, 10);
}
static void alone(FILE *out, int rank)
{
    if (rank == 0)
        collective(out, 1, -1, ALL_REDUCE, 1024, NULL);
}
static void no_group(FILE *out, int rank)
{
    collective(out, 1 + (uint64_t)rank, -1, ALL_REDUCE, 1024, "7");
}
static void to_itself(FILE *out, int rank)
{
    message(out, SEND, 1, -1, (uint64_t)rank, (uint64_t)rank, 1024);
}
static void gather(FILE *out, int rank)
{
    collective(out, 1 + (uint64_t)rank, -1, 3, 1024, NULL);
}
static void no_message(FILE *out, int rank)
{
    fputs(rank == 0 ? "\x05zzzzz" : "", out);
}
static void cut(FILE *out, int rank)
{
    fputs(rank == 0 ? "\x7fzz" : "", out);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        void (*fill)(FILE *out, int rank);
        const char *words;
    } cases[] = {
        {unknown_dep,
            "w.1.et: error: node 1 (a node): it depends on a node that is not in the file"},
        {circle, "it depends on itself"}, {twice, "another node has this id"},
        {alone, "the ranks' traces do not fit together"}, {no_group, "there is no group '7'"},
        {to_itself, "are not this rank and another one"}, {gather, "comm_type is a GATHER"},
        {no_message, "w.0.et: error: at byte 8, node 0: the message is no node"},
        {cut, "the file is cut"}};
    struct arena arena = ARENA_INIT;
    struct hw hw = load("h100-8x400g", &arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = make_folder(&arena);
        write_two(folder, cases[i].fill, &arena);
        expect_refusal(folder, &hw, cases[i].words, &arena);
        remove_folder(folder, 2, &arena);
    }
    const char *folder = make_folder(&arena);
    expect_refusal(folder, &hw, "there are no Chakra traces", &arena);
    fclose(begin_rank(folder, 1, &arena));
    expect_refusal(folder, &hw, "ranks are numbered from 0 on", &arena);
    unlink(arena_printf(&arena, "%s/w.1.et", folder));
    fclose(begin_rank(folder, 0, &arena));
    FILE *groups = fopen(arena_printf(&arena, "%s/comm_groups.json", folder), "w");
    fputs("{\"4\":\n [0, 1]}", groups);
    fclose(groups);
    expect_refusal(folder, &hw, "comm_groups.json:2:6: error: '1' is no rank of 1", &arena);
    remove_folder(folder, 1, &arena);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
