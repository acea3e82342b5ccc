/* Errors: how one is reported depends on whose fault it is.
 *
 *   BUG_IF(cond, ...)   our fault: prints file, line and the sentence, aborts, in every build type.
 *   enum status         the user's or the world's fault: returned by what reads input or touches
 *                       the world.
 *   struct diag         the sentences: "file:line:column: error: what is wrong; what would be
 *                       right".
 *
 * diag_warn(): nothing is wrong, but the user may not have meant it: "file:line:column: warning:
 * ..."; it changes no status and counts as no error.
 *
 * After an error a reader goes on if it can, so that one run shows all mistakes of a file. */
#ifndef FLOPCAST_BASE_STATUS_H
#define FLOPCAST_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum status {
    STATUS_OK = 0,
    STATUS_INPUT, /* the input is wrong: exit status 2 */
    STATUS_IO,    /* the world failed: file, disk, pipe, database: exit status 1 */
};

/* Where a value stands. file is borrowed and lives as long as whatever was loaded from it. line and
 * column count from 1; line 0: no place within the file is known. file NULL: no file (a default).
 */
struct source_pos {
    const char *file;
    int line, column;
};

enum { DIAG_MAX_ERRORS = 20, DIAG_MAX_WARNINGS = 20, DIAG_TEXT_BYTES = 16384 };

/* A list of messages, one a line, each ending in '\n'; control characters in them are shown as '?'.
 * Plain value; DIAG_INIT needs no release. */
struct diag {
    int n_errors, n_warnings;
    enum status worst; /* STATUS_IO outranks STATUS_INPUT outranks STATUS_OK */
    size_t used;
    char text[DIAG_TEXT_BYTES];
};

#define DIAG_INIT ((struct diag){0})

/* Append one message and return the status given, so that `return diag_input(...)` reads well. */
enum status diag_input(struct diag *diag, struct source_pos at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum status diag_io(struct diag *diag, struct source_pos at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void diag_warn(struct diag *diag, struct source_pos at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Append the messages of from. A message that into has already is left out: points of a sweep share
 * mistakes. */
void diag_merge(struct diag *into, const struct diag *from);

/* The same, except that an error in `file` is reported at the place `at`, followed by its own place
 * in brackets. */
void diag_merge_at(
    struct diag *into, const struct diag *from, const char *file, struct source_pos at);

/* The first error without its place and line end: "what is wrong; what would be right". *n: its
 * length, for "%.*s". */
const char *diag_first(const struct diag *diag, int *n);

/* The nearest of n names to what, for "did you mean". NULL if more than a third of what's length,
 * rounded up, are the edits to all of them: letters more, less, others, pairs that have changed
 * places; case does not count. Of equals the one with the fewest other letters ("llama3-8b" is
 * llama3.1-8b rather than llama2-7b), then the first. Where none is so near: the longest of four
 * letters or more that what writes out ("bfloat16" is bf16). Before all that: the one name of which
 * what is the first word or words ("fp16" is fp16_mixed rather than bf16). */
const char *nearest_name(const char *what, const char *const *names, size_t n);

/* The next larger divisor of n after one of them, d; 0: d is n. In at most twice the root of n
 * steps: those above it are n over those below it. */
int64_t next_divisor(int64_t n, int64_t d);

/* The divisors of n for a message that says what would do: "1, 2, 4, 8", with "..." where there are
 * too many. As a value, so that divisors(n).text can stand among the arguments of a printf. */
struct divisors {
    char text[192];
};
struct divisors divisors(int64_t n);

/* "s" for every number but one: "%d row%s". */
static inline const char *plural(long long n)
{
    return n == 1 ? "" : "s";
}

_Noreturn void bug(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define BUG_IF(condition, ...)                                                                     \
    do {                                                                                           \
        if (__builtin_expect(!!(condition), 0))                                                    \
            bug(__FILE__, __LINE__, #condition, __VA_ARGS__);                                      \
    } while (0)

#endif
