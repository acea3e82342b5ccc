#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void says_where_and_what(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        diag_input(&diag, (struct source_pos){"x.yaml", 12, 14}, "'%s' is not a time", "5 GB"),
        STATUS_INPUT);
    assert_int_equal(diag.worst, STATUS_INPUT);
    assert_int_equal(diag_io(&diag, (struct source_pos){"x.yaml", 0, 0}, "cannot open"), STATUS_IO);
    assert_int_equal(diag.worst, STATUS_IO);
    assert_int_equal(diag_input(&diag, (struct source_pos){0}, "no GPU is named"), STATUS_INPUT);
    assert_int_equal(diag.worst, STATUS_IO); /* outranks */
    assert_int_equal(diag.n_errors, 3);
    assert_string_equal(diag.text, "x.yaml:12:14: error: '5 GB' is not a time\n"
                                   "x.yaml: error: cannot open\n"
                                   "error: no GPU is named\n");
    assert_true(diag.used == strlen(diag.text));
}

/* A warning stands among the errors and is none; it is not reported twice, and is found by its
 * level, not by what it quotes. */
static void warns(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT, more = DIAG_INIT;
    diag_warn(&diag, (struct source_pos){"x.yaml", 3, 1}, "'%s' is not read", "error: x");
    assert_int_equal(diag.n_errors, 0);
    assert_int_equal(diag.worst, STATUS_OK);
    diag_merge(&more, &diag);
    diag_merge(&more, &diag);
    assert_int_equal(more.n_errors, 0);
    assert_int_equal(more.n_warnings, 1);
    assert_string_equal(more.text, "x.yaml:3:1: warning: 'error: x' is not read\n");
    diag_input(&more, (struct source_pos){"x.yaml", 4, 1}, "wrong");
    for (int i = 0; i < 50; i++)
        diag_warn(&more, (struct source_pos){"f", i, 1}, "odd");
    diag_merge(&diag, &more);
    assert_int_equal(diag.n_errors, 1);
    assert_int_equal(diag.n_warnings, DIAG_MAX_WARNINGS);
}

/* What stands in one file is reported at another place. */
static void moves_errors(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT, more = DIAG_INIT;
    diag_input(&diag, (struct source_pos){"x.yaml", 3, 1}, "wrong: error: y");
    diag_io(&diag, (struct source_pos){"x.yaml2", 3, 1}, "worse");
    diag_merge_at(&more, &diag, "x.yaml", (struct source_pos){"t.csv", 2, 1});
    assert_string_equal(
        more.text, "t.csv:2:1: error: wrong: error: y (x.yaml:3:1)\nx.yaml2:3:1: error: worse\n");
    assert_int_equal(more.n_errors, 2);
    assert_int_equal(more.worst, STATUS_IO);
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void list_is_capped(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    for (int i = 1; i <= 50; i++)
        diag_input(&diag, (struct source_pos){"f", i, 1}, "wrong");
    assert_int_equal(diag.n_errors, 50);
    assert_int_equal(lines(diag.text), DIAG_MAX_ERRORS + 1);
    assert_non_null(strstr(diag.text, "f:20:1: error: wrong\n(more errors not shown)\n"));
    assert_null(strstr(diag.text, "f:21:1"));
}

static void a_message_is_one_line(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    diag_input(&diag, (struct source_pos){"f", 1, 1}, "'%s'", "a\nb\x1b[31mred\x7f");
    assert_string_equal(diag.text, "f:1:1: error: 'a?b?[31mred?'\n");
}

static void a_message_too_long_is_cut(void **state)
{
    (void)state;
    static char text[2 * DIAG_TEXT_BYTES];
    memset(text, 'x', sizeof text - 1);
    struct diag diag = DIAG_INIT;
    for (int i = 0; i < 3; i++) {
        diag_input(&diag, (struct source_pos){0}, "%s", text);
        assert_int_equal(diag.used, DIAG_TEXT_BYTES - 1);
        assert_int_equal(diag.text[diag.used], '\0');
        assert_int_equal(diag.text[diag.used - 1], '\n');
        assert_int_equal(lines(diag.text), 1);
    }
    assert_int_equal(diag.n_errors, 3);
}

static void merge_leaves_out_what_is_there(void **state)
{
    (void)state;
    struct diag into = DIAG_INIT, from = DIAG_INIT;
    diag_input(&into, (struct source_pos){"f", 1, 1}, "one");
    diag_input(&from, (struct source_pos){"f", 1, 1}, "one");
    diag_io(&from, (struct source_pos){"f", 2, 1}, "two");
    diag_merge(&into, &from);
    assert_int_equal(into.n_errors, 2);
    assert_int_equal(into.worst, STATUS_IO);
    assert_string_equal(into.text, "f:1:1: error: one\nf:2:1: error: two\n");
    for (int i = 0; i < 30; i++)
        diag_input(&from, (struct source_pos){"g", i + 1, 1}, "more");
    diag_merge(&into, &from);
    assert_int_equal(into.n_errors, 32);
    assert_int_equal(lines(into.text), DIAG_MAX_ERRORS + 1);
}

static void nearest_name_is_near(void **state)
{
    (void)state;
    static const char *const names[] = {
        "ddp", "fsdp", "fsdp2", "zero1", "zero2", "zero3", "micro_batch"};
    size_t n = sizeof names / sizeof *names;
    assert_string_equal(nearest_name("fsdp", names, n), "fsdp");
    assert_string_equal(nearest_name("fspd", names, n), "fsdp"); /* two edits of four letters */
    assert_string_equal(nearest_name("micro_bacth", names, n), "micro_batch");
    assert_string_equal(nearest_name("zero4", names, n), "zero1"); /* the first of equals */
    assert_string_equal(nearest_name("dp", names, n), "ddp");
    assert_string_equal(nearest_name("FSDP", names, n), "fsdp");
    assert_null(nearest_name("pipeline", names, n));
    assert_null(
        nearest_name("gpu", names, n)); /* "ddp" needs two edits; a third of three letters is one */
    static const char *const others[] = {
        "llama2-7b", "llama3.1-8b", "run", "bf16_mixed", "bf16", "naive", "flash"};
    size_t m = sizeof others / sizeof *others;
    assert_string_equal(nearest_name("llama3-8b", others, m),
        "llama3.1-8b"); /* letters are missing, none is another */
    assert_string_equal(nearest_name("rnu", others, m), "run");
    assert_string_equal(nearest_name("bfloat16", others, m), "bf16");
    assert_string_equal(nearest_name("flash_attention_2", others, m), "flash");
    assert_null(nearest_name("gpu_flash_attention", others, m)); /* begins otherwise */
    static const char *const begun[] = {
        "sgd", "sgd_momentum", "bf16", "fp16_mixed", "HYBRID_SHARD", "lora_rank", "lora_targets"};
    size_t k = sizeof begun / sizeof *begun;
    assert_string_equal(nearest_name("fp16", begun, k), "fp16_mixed"); /* though bf16 is nearer */
    assert_string_equal(nearest_name("hybrid", begun, k), "HYBRID_SHARD");
    assert_string_equal(nearest_name("SGD", begun, k), "sgd");
    assert_null(nearest_name("lora", begun, k));           /* two begin so */
    assert_null(nearest_name("rather unlike", others, m)); /* "run" is too short to be in there */
    assert_null(nearest_name("", names, n));
    assert_null(nearest_name("x", names, 0));
    char text[100] = {0};
    memset(text, 'z', sizeof text - 1);
    assert_null(nearest_name(text, names, n));
}

static void bug_aborts(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka's handler would jump back into the test */
        dup2(ends[1], STDERR_FILENO);
        BUG_IF(1 + 1 == 2, "of %d", 7);
        _exit(0);
    }
    close(ends[1]);
    char text[512] = "";
    size_t used = 0;
    for (ssize_t n;
         (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0;) /* stderr comes in pieces */
        used += (size_t)n;
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "BUG at "));
    assert_non_null(strstr(text, "(1 + 1 == 2): of 7\n"));
}

/* 720720 = 2^4 3^2 5 7 11 13 has 5 x 3 x 2 x 2 x 2 x 2 = 240 divisors, more than there is room for.
 */
static void divisors_are_listed(void **state)
{
    (void)state;
    assert_string_equal(divisors(1).text, "1");
    assert_string_equal(divisors(13).text, "1, 13");
    assert_string_equal(divisors(24).text, "1, 2, 3, 4, 6, 8, 12, 24");
    assert_string_equal(divisors(0).text, "");
    struct divisors many = divisors(720720);
    size_t n = strlen(many.text);
    assert_true(n < sizeof many.text && n > 100);
    assert_string_equal(many.text + n - 5, ", ...");
    assert_string_equal(divisors(INT32_MAX).text, "1, 2147483647");
    for (int64_t of = 1; of <= 400; of++)
        for (int64_t d = 1, tried = 2; d > 0; tried = d + 1) {
            while (tried <= of && of % tried != 0)
                tried++;
            d = next_divisor(of, d);
            assert_int_equal(d, tried > of ? 0 : tried);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_where_and_what),
        cmocka_unit_test(warns),
        cmocka_unit_test(moves_errors),
        cmocka_unit_test(list_is_capped),
        cmocka_unit_test(a_message_is_one_line),
        cmocka_unit_test(a_message_too_long_is_cut),
        cmocka_unit_test(merge_leaves_out_what_is_there),
        cmocka_unit_test(nearest_name_is_near),
        cmocka_unit_test(divisors_are_listed),
        cmocka_unit_test(bug_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
