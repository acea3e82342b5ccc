/* Full disk, kill -9 and two writers at a time: the database holds whole points and nothing else.
 */
#include "store/store.h"

#include "store/shown.h"

#include "check.h"
#include "sample.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void assert_whole(const char *path)
{
    struct store *store = must_open(path, STORE_READ);
    assert_answer(store, "SELECT * FROM pragma_integrity_check", "ok");
    assert_answer(store, "SELECT count(*) FROM pragma_foreign_key_check", "0");
    assert_answer(store,
        "SELECT count(*) FROM run WHERE (SELECT count(*) FROM point WHERE run_id = run.id) NOT "
        "BETWEEN 1 AND points",
        "0");
    assert_answer(
        store, "SELECT (SELECT count(*) FROM memory) - 8 * (SELECT count(*) FROM point)", "0");
    store_close(store);
}

/* A limit on the size of files is a disk that is full for this process; a description larger than
 * it cannot be stored. */
static void full_disk(void **state)
{
    struct sample sample;
    struct diag diag = DIAG_INIT;
    (void)state;
    struct store *store = must_open("full.db", STORE_WRITE);
    assert_int_equal(sample_put(store, sample_init(&sample), &diag), STATUS_OK);

    struct stat file;
    assert_int_equal(stat("full.db", &file), 0);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit low = {(rlim_t)file.st_size + 8192, limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    char *description = calloc(1, 200001);
    assert_non_null(description);
    memset(description, 'x', 200000);
    sample.points[0].options.description = description;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_int_equal(sample_put(store, &sample, &diag), STATUS_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    free(description);
    assert_non_null(strstr(diag.text, "full.db: error: cannot store the run: "));
    assert_non_null(strstr(diag.text, "free space on the disk"));
    store_close(store);
    assert_whole("full.db");
    store = must_open("full.db", STORE_READ);
    assert_answer(store, "SELECT count(*) FROM run", "1");
    store_close(store);
}

static void put_runs(const char *path, int n)
{
    struct sample sample;
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    sample_init(&sample);
    bool ok = store_open(&store, path, STORE_WRITE, &diag) == STATUS_OK;
    for (int i = 0; i < n && ok; i++)
        ok = sample_put(store, &sample, &diag) == STATUS_OK;
    store_close(store);
    fputs(diag.text, stderr);
    _exit(ok ? 0 : 1);
}

/* The disk lost all but the first page after the database was opened: that is reported, and not
 * that there is no run. */
static void lost_pages(void **state)
{
    struct sample sample;
    struct diag diag = DIAG_INIT;
    struct stat file;
    (void)state;
    struct store *store = must_open("lost.db", STORE_WRITE);
    assert_int_equal(sample_put(store, sample_init(&sample), &diag), STATUS_OK);
    store_close(store);
    store = must_open("lost.db", STORE_READ);
    assert_int_equal(stat("lost.db", &file), 0);
    FILE *out = fopen("lost.db", "r+");
    assert_non_null(out);
    assert_int_equal(fseek(out, 4096, SEEK_SET), 0);
    for (long i = 4096; i < (long)file.st_size; i++)
        fputc(0xff, out);
    assert_int_equal(fclose(out), 0);
    const struct store_choice choice = {.scenario = sample.points[0].options.name};
    const struct store_show show = {.choices = &choice, .n_choices = 1};
    assert_int_equal(store_show(store, &show, &diag), STATUS_IO);
    assert_non_null(strstr(diag.text, "lost.db: error: cannot "));
    store_close(store);
}

/* Killed at whatever it is doing, first while it makes the tables, then between and within
 * transactions. */
static void kill_9(void **state)
{
    (void)state;
    for (int trial = 0; trial < 30; trial++) {
        char path[32];
        snprintf(path, sizeof path, "kill-%d.db", trial % 10);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            put_runs(path, 1000000);
        usleep((useconds_t)(2000 + 1700 * trial));
        kill(child, SIGKILL);
        int wait_status = 0;
        assert_int_equal(waitpid(child, &wait_status, 0), child);
        assert_true(WIFSIGNALED(wait_status));
        store_close(must_open(path, STORE_WRITE)); /* the tables may not have been made */
        assert_whole(path);
    }
}

static void two_writers(void **state)
{
    pid_t children[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            put_runs("two.db", 20);
    }
    for (int i = 0; i < 2; i++) {
        int wait_status = 0;
        assert_int_equal(waitpid(children[i], &wait_status, 0), children[i]);
        assert_true(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
    }
    assert_whole("two.db");
    struct store *store = must_open("two.db", STORE_READ);
    assert_answer(store, "SELECT count(*) FROM run", "40");
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(full_disk), cmocka_unit_test(lost_pages),
        cmocka_unit_test(kill_9), cmocka_unit_test(two_writers)};
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
