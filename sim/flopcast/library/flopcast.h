/* libflopcast: predictions from another program, in C or in what calls C.
 *
 *     struct flopcast *f = flopcast_new(); if (flopcast_set(f, "cluster.gpus", "64") ||
 *     flopcast_open(f, "t5_scaling") || flopcast_run(f, 0))
 *         fputs(flopcast_messages(f), stderr);
 *     else
 *         printf("%s TFLOPS per GPU\n", flopcast_text(f, "tflops_per_gpu"));
 *     flopcast_free(f);
 *
 * Stable: within a SOVERSION functions are only added, and what they mean stays. Columns are those
 * of `flopcast run --format json`, which are only added, too; store/schema.sql says what they mean
 * and their units.
 *
 * Ownership: a text that a function returns belongs to its struct flopcast; it lives until the next
 * call with that one which is not const, or its flopcast_free(). Texts that are given are copied.
 *
 * Threads: two threads may use two struct flopcast at a time, one must not be used by two at a
 * time. flopcast_run() is one thread's work.
 *
 * What it shares with the rest of the process: it reads the environment variable FLOPCAST_DATA and
 * files, and flopcast_new() turns off GSL's error handler (gsl_set_error_handler_off()), which
 * would abort. It writes no file, prints nothing and has no other global state. Where memory is
 * exhausted, or a fault of flopcast's own is found, it prints a sentence on stderr and aborts the
 * process; a mistake in input never does. */
#ifndef FLOPCAST_H
#define FLOPCAST_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FLOPCAST_API __attribute__((visibility("default")))
#else
#define FLOPCAST_API
#endif

struct flopcast;

/* As the exit statuses of the program. flopcast_messages() says what is wrong, and where. */
enum flopcast_status { FLOPCAST_OK = 0, FLOPCAST_WORLD = 1, FLOPCAST_INPUT = 2 };

FLOPCAST_API const char *flopcast_version(void); /* "0.1.0"; it is never freed */

FLOPCAST_API struct flopcast *flopcast_new(void);
FLOPCAST_API void flopcast_free(struct flopcast *self); /* NULL is fine */

/* As --set KEY=VALUE, of the scenarios that are opened later; a key that is given again has the new
 * value. What is wrong with it is said by flopcast_open(). FLOPCAST_INPUT: the key is empty. */
FLOPCAST_API enum flopcast_status flopcast_set(
    struct flopcast *self, const char *key, const char *value);

/* A scenario's file, or the name of one that comes along; in place of the one that was open. After
 * a failure none is open. */
FLOPCAST_API enum flopcast_status flopcast_open(struct flopcast *self, const char *scenario);

/* The points of its sweep; 0: none is open. */
FLOPCAST_API int flopcast_points(const struct flopcast *self);

/* Simulates a point, from 0. A point that is out of memory is no failure: its column "status" is
 * "oom". */
FLOPCAST_API enum flopcast_status flopcast_run(struct flopcast *self, int point);

/* The columns of the point that was run; 0, NULL: none was, or it failed, or there is no such
 * column. */
FLOPCAST_API int flopcast_columns(const struct flopcast *self);
FLOPCAST_API const char *flopcast_column(const struct flopcast *self, int column);
/* By name: a number with the digits of `flopcast run --format json`, or a text. NULL: not
 * applicable (JSON's null), or no such column. */
FLOPCAST_API const char *flopcast_text(const struct flopcast *self, const char *column);
/* The same as a number; not a number where it is none. */
FLOPCAST_API double flopcast_number(const struct flopcast *self, const char *column);

/* The plan of a point, as `flopcast run --plan` prints it; NULL: it failed. */
FLOPCAST_API const char *flopcast_plan(struct flopcast *self, int point);

/* Errors and warnings of the last call that was not const, one a line: "file:line:column: error:
 * what is wrong; what would be right"; "" where there are none. */
FLOPCAST_API const char *flopcast_messages(const struct flopcast *self);

#ifdef __cplusplus
}
#endif

#endif
