/* What the tests ask of a database: one value of one query. */
#ifndef FLOPCAST_TESTS_STORE_CHECK_H
#define FLOPCAST_TESTS_STORE_CHECK_H

#include "store/store.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct answer {
    int rows; /* the row of names included */
    char text[4096];
};

static inline void take(void *self, int n, const struct store_value *values)
{
    struct answer *answer = self;
    (void)n;
    answer->rows++;
    snprintf(answer->text, sizeof answer->text, "%s", values[0].text ? values[0].text : "NULL");
}

/* First column of the last row. */
static inline const char *ask(struct store *store, struct answer *answer, const char *sql)
{
    struct diag diag = DIAG_INIT;
    *answer = (struct answer){0};
    store_query(store, sql, (struct source_pos){.file = "test.sql"}, take, answer, &diag);
    assert_string_equal(diag.text, "");
    return answer->text;
}

#define assert_answer(store, sql, expected)                                                        \
    do {                                                                                           \
        struct answer answer_;                                                                     \
        assert_string_equal(ask(store, &answer_, sql), expected);                                  \
    } while (0)

static inline struct store *must_open(const char *path, enum store_mode mode)
{
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    store_open(&store, path, mode, &diag);
    assert_string_equal(diag.text, "");
    return store;
}

/* An empty folder to work in: the process stands in it until leave_folder. */
static inline int enter_folder(void **state)
{
    char folder[] = "/tmp/flopcast-store-XXXXXX";
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static inline int remove_entry(
    const char *path, const struct stat *file, int type, struct FTW *walk)
{
    (void)file;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline int leave_folder(void **state)
{
    (void)state;
    char *folder = getcwd(NULL, 0);
    int code = chdir("/") == 0 ? nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS) : -1;
    free(folder);
    return code;
}

#endif
