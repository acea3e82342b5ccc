/* Private to reader: the bytes of a measured file, plain or gzipped, a piece at a time, so that its
 * size does not matter. A path that cannot be opened and damaged or cut gzip data are STATUS_INPUT;
 * a disk that fails is STATUS_IO. */
#ifndef FLOPCAST_READER_INPUT_H
#define FLOPCAST_READER_INPUT_H

#include "base/status.h"

#include <stdint.h>

enum { INPUT_LINE_BYTES = 1 << 16 };

struct input;

/* On failure *out is NULL. path is borrowed until input_close. */
enum status input_open(struct input **out, const char *path, struct diag *diag);
struct input *input_open_text(const char *name, const char *text, size_t n); /* both borrowed */
void input_close(struct input *input);                                       /* NULL is fine */
const char *input_name(const struct input *input);

/* The next bytes, valid until the next call; *n is 0 at the end. */
enum status input_chunk(struct input *input, const char **bytes, size_t *n, struct diag *diag);

/* The next line without its line break; *line is NULL at the end. terminated: a line break
 * followed, so the line is not cut. A NUL byte or a line of more than INPUT_LINE_BYTES is an error:
 * this is no text. */
struct input_line {
    char *text; /* the caller may change it */
    int number; /* from 1 */
    bool terminated;
};
enum status input_line(struct input *input, struct input_line *line, struct diag *diag);

/* The first byte that is no white space, without taking it; '\0' for an empty file. To be called
 * before anything is taken; looks at the first piece only. */
enum status input_peek(struct input *input, char *first, struct diag *diag);

/* Fingerprint of all bytes after decompression. */
enum status input_digest(const char *path, uint64_t *out, struct diag *diag);

#endif
