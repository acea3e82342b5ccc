/* Messages, their lists, and the names and divisors that they suggest.
 *
 * A diag is a plain struct with a fixed text, so it can be copied between threads and ranks and
 * needs no release. Beyond its limits only counts go on. Control characters that a message quotes
 * become '?', because a message is one line. diag_merge() works on lines: a line that is there
 * already is left out, as all points of a sweep share the mistakes of their file.
 *
 * nearest_name() is the Damerau-Levenshtein distance over three rows (a swap looks two rows back),
 * with the number of replaced letters as the second criterion, and a limit of a third of the
 * letters. */
#include "base/status.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

__attribute__((format(printf, 2, 0))) static void append(
    struct diag *diag, const char *format, va_list args)
{
    size_t room = sizeof diag->text - diag->used;
    int n = vsnprintf(diag->text + diag->used, room, format, args);
    diag->used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* A message quotes what the user wrote, which may hold line breaks or escape sequences for the
 * terminal. */
static void end_message(struct diag *diag, size_t start)
{
    for (char *c = diag->text + start; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '\x7f')
            *c = '?';
    if (diag->used == sizeof diag->text - 1)
        diag->used--; /* cut: the line still ends */
    diag->text[diag->used++] = '\n';
    diag->text[diag->used] = '\0';
}

__attribute__((format(printf, 2, 3))) static void appendf(
    struct diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(diag, format, args);
    va_end(args);
}

enum { LONGEST_PATH = 4096 };

/* The path without "NAME/../", where that is the same file: behind a link it may be another one. */
static const char *without_detours(char out[LONGEST_PATH], const char *file)
{
    static const char up[] = "/../";
    struct stat before, after;
    if (!strstr(file, up) || strlen(file) >= LONGEST_PATH)
        return file;
    memcpy(out, file, strlen(file) + 1);
    for (char *at = out; (at = strstr(at, up));) {
        char *name = at;
        while (name > out && name[-1] != '/')
            name--;
        bool is_name = name < at && strncmp(name, "../", 3) != 0 && strncmp(name, "./", 2) != 0;
        if (is_name)
            memmove(name, at + strlen(up), strlen(at + strlen(up)) + 1);
        at = is_name ? out : at + 1;
    }
    bool same = stat(file, &before) == 0 && stat(out, &after) == 0 &&
                before.st_dev == after.st_dev && before.st_ino == after.st_ino;
    return same ? out : file;
}

/* "file:line:column: error: ...", one line */
__attribute__((format(printf, 4, 0))) static void say(
    struct diag *diag, struct source_pos at, const char *level, const char *format, va_list args)
{
    size_t start = diag->used;
    char path[LONGEST_PATH];
    if (at.file)
        at.file = without_detours(path, at.file);
    if (at.file && at.line > 0)
        appendf(diag, "%s:%d:%d: %s: ", at.file, at.line, at.column, level);
    else if (at.file)
        appendf(diag, "%s: %s: ", at.file, level);
    else
        appendf(diag, "%s: ", level);
    append(diag, format, args);
    end_message(diag, start);
}

__attribute__((format(printf, 4, 0))) static enum status add(
    struct diag *diag, enum status status, struct source_pos at, const char *format, va_list args)
{
    if (status > diag->worst)
        diag->worst = status;
    diag->n_errors++;
    if (diag->n_errors == DIAG_MAX_ERRORS + 1)
        appendf(diag, "(more errors not shown)\n");
    if (diag->n_errors > DIAG_MAX_ERRORS)
        return status;
    say(diag, at, "error", format, args);
    return status;
}

enum status diag_input(struct diag *diag, struct source_pos at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum status status = add(diag, STATUS_INPUT, at, format, args);
    va_end(args);
    return status;
}

enum status diag_io(struct diag *diag, struct source_pos at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum status status = add(diag, STATUS_IO, at, format, args);
    va_end(args);
    return status;
}

void diag_warn(struct diag *diag, struct source_pos at, const char *format, ...)
{
    va_list args;
    if (diag->n_warnings++ >= DIAG_MAX_WARNINGS)
        return;
    va_start(args, format);
    say(diag, at, "warning", format, args);
    va_end(args);
}

/* The level stands before what the message quotes. */
static bool is_warning(const char *line, size_t length)
{
    static const char warning[] = "warning: ", error[] = "error: ";
    const char *w = memmem(line, length, warning, strlen(warning)),
               *e = memmem(line, length, error, strlen(error));
    return w && (!e || w < e);
}

static bool holds_line(const struct diag *diag, const char *line, size_t length)
{
    for (const char *at = diag->text; (at = memmem(at, strlen(at), line, length)); at++)
        if (at == diag->text || at[-1] == '\n')
            return true;
    return false;
}

/* A message of another diag, without its line end, unless it is there already. */
static void merge_line(struct diag *into, const char *line, size_t length, bool warning)
{
    bool full = warning ? into->n_warnings >= DIAG_MAX_WARNINGS : into->n_errors > DIAG_MAX_ERRORS;
    if (full || holds_line(into, line, length + 1))
        return;
    *(warning ? &into->n_warnings : &into->n_errors) += 1;
    if (into->n_errors > DIAG_MAX_ERRORS && !warning)
        appendf(into, "(more errors not shown)\n");
    else
        appendf(into, "%.*s\n", (int)length, line);
}

/* The place of an error in the file, "x.yaml:3:1"; its length, or 0 for another message. */
static size_t place_in(const char *line, size_t length, const char *file)
{
    static const char mark[] = ": error: ";
    const char *end = memmem(line, length, mark, strlen(mark));
    size_t n = strlen(file);
    return end && strncmp(line, file, n) == 0 && line[n] == ':' ? (size_t)(end - line) : 0;
}

void diag_merge_at(
    struct diag *into, const struct diag *from, const char *file, struct source_pos at)
{
    static const char mark[] = ": error: ";
    if (from->worst > into->worst)
        into->worst = from->worst;
    int n = 0;
    for (const char *line = from->text, *end; (end = strchr(line, '\n')); line = end + 1) {
        size_t length = (size_t)(end - line), place = file ? place_in(line, length, file) : 0;
        bool warning = is_warning(line, length);
        n += !warning;
        if (place == 0) {
            merge_line(into, line, length, warning);
            continue;
        }
        const char *sentence = line + place + strlen(mark);
        diag_input(into, at, "%.*s (%.*s)", (int)(end - sentence), sentence, (int)place, line);
    }
    if (from->n_errors > n) /* those that from itself did not show */
        into->n_errors += from->n_errors - n;
}

void diag_merge(struct diag *into, const struct diag *from)
{
    diag_merge_at(into, from, NULL, (struct source_pos){0});
}

const char *diag_first(const struct diag *diag, int *n)
{
    static const char mark[] = "error: ";
    const char *at = strstr(diag->text, mark), *from = at ? at + strlen(mark) : diag->text;
    *n = (int)strcspn(from, "\n");
    return from;
}

void bug(const char *file, int line, const char *condition, const char *format, ...)
{
    fprintf(stderr, "flopcast: BUG at %s:%d (%s): ", file, line, condition);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

enum { LONGEST_WORD = 63 };
struct distance {
    size_t edits, changed; /* of the edits, those that replace a letter by another */
};

static bool is_nearer(struct distance a, struct distance b)
{
    return a.edits != b.edits ? a.edits < b.edits : a.changed < b.changed;
}

/* Edits from one short word to another, whatever their case: a letter more, less, another, or two
 * that have changed places. Words that are longer count as far away. */
static struct distance edit_distance(const char *a, const char *b)
{
    struct distance rows[3][LONGEST_WORD + 1] = {0};
    size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST_WORD || nb > LONGEST_WORD)
        return (struct distance){SIZE_MAX, 0};
    for (size_t i = 0; i <= na; i++) {
        struct distance *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = (struct distance){i, 0};
        for (size_t j = 1; j <= nb; j++) {
            if (i == 0) {
                row[j] = (struct distance){j, 0};
                continue;
            }
            size_t differs = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);
            bool swapped = i > 1 && j > 1 &&
                           tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 2]) &&
                           tolower((unsigned char)a[i - 2]) == tolower((unsigned char)b[j - 1]);
            struct distance more = {row[j - 1].edits + 1, row[j - 1].changed};
            struct distance less = {above[j].edits + 1, above[j].changed};
            struct distance swap = {
                before[swapped ? j - 2 : 0].edits + 1, before[swapped ? j - 2 : 0].changed};
            row[j] =
                (struct distance){above[j - 1].edits + differs, above[j - 1].changed + differs};
            row[j] = is_nearer(more, row[j]) ? more : row[j];
            row[j] = is_nearer(less, row[j]) ? less : row[j];
            row[j] = swapped && is_nearer(swap, row[j]) ? swap : row[j];
        }
    }
    return rows[na % 3][nb];
}

/* Whether what is the name written out or with something behind it: it begins and goes on with the
 * name's letters, in their order, others between them ("bfloat16", "flash_attention_2"). A name of
 * three letters is in too many words. */
static bool is_written_out(const char *what, const char *name)
{
    enum { LEAST = 4 };
    size_t at = 0, n = strlen(name);
    for (const char *c = what; *c && at < n; c++) {
        if (at == 0 && c > what)
            return false;
        at += tolower((unsigned char)*c) == tolower((unsigned char)name[at]);
    }
    return n >= LEAST && at == n;
}

/* The one name that goes on behind what with '_'; NULL: none or several, or what is a name itself.
 */
static const char *name_begun(const char *what, const char *const *names, size_t n)
{
    const char *found = NULL;
    size_t length = strlen(what);
    for (size_t i = 0; i < n; i++) {
        bool begins = length > 0 && strncasecmp(what, names[i], length) == 0;
        if (begins && (names[i][length] == '\0' || (found && names[i][length] == '_')))
            return NULL;
        if (!begins || names[i][length] != '_')
            continue;
        found = names[i];
    }
    return found;
}

const char *nearest_name(const char *what, const char *const *names, size_t n)
{
    const char *best = name_begun(what, names, n), *longest = NULL;
    if (best)
        return best;
    struct distance least = {(strlen(what) + 2) / 3, SIZE_MAX};
    for (size_t i = 0; i < n; i++) {
        struct distance distance = edit_distance(what, names[i]);
        if (distance.edits <= least.edits && is_nearer(distance, least)) {
            best = names[i];
            least = distance;
        }
        if (is_written_out(what, names[i]) && (!longest || strlen(names[i]) > strlen(longest)))
            longest = names[i];
    }
    return best ? best : longest;
}

int64_t next_divisor(int64_t n, int64_t d)
{
    int64_t small = d + 1;
    for (; small <= n / small; small++)
        if (n % small == 0)
            return small;
    for (small = small - 1 < n / d - 1 ? small - 1 : n / d - 1; small > 0; small--)
        if (n % small == 0)
            return n / small;
    return 0;
}

struct divisors divisors(int64_t n)
{
    enum { ROOM = 32 }; /* for one more, and "..." */
    struct divisors list = {""};
    size_t used = 0;
    for (int64_t d = n > 0; d > 0; d = next_divisor(n, d)) {
        bool fits = used + ROOM < sizeof list.text;
        used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%s", used ? ", " : "");
        if (!fits) {
            snprintf(list.text + used, sizeof list.text - used, "...");
            break;
        }
        used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%lld", (long long)d);
    }
    return list;
}
