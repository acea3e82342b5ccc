/* Files, standard input and texts in memory, read by chunks or by lines, gzipped or not.
 *
 * zlib reads plain files as they are, so one path serves both. Lines are gathered from chunks of
 * 64 KiB into a buffer of fixed size; what is read and not yet taken is at `at`, `left` bytes of
 * it, and both ways of reading share that. What is subtle: a line longer than the buffer and a
 * NUL byte are mistakes of the file, which keeps a log of another kind from filling the memory;
 * a NULL text of a line is the end of the file, an empty one an empty line; input_peek() takes
 * nothing, so a format can be chosen by the first character of a pipe. */
#include "reader/input.h"

#include "base/arena.h"
#include "base/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK_BYTES = 1 << 16 };

struct input {
    const char *name;
    gzFile file;    /* NULL: text in memory */
    const char *at; /* what was read and not yet taken */
    size_t left;
    bool ended; /* nothing behind `left` */
    int line;
    char chunk[CHUNK_BYTES];
    char text[INPUT_LINE_BYTES + 1];
};

static struct source_pos input_whole_file(const struct input *input)
{
    return (struct source_pos){.file = input->name};
}

enum status input_open(struct input **out, const char *path, struct diag *diag)
{
    *out = NULL;
    bool standard = strcmp(path, "-") == 0;
    gzFile file = standard ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path, "rb");
    if (!file)
        return diag_input(diag, (struct source_pos){path, 1, 1},
            "cannot open: %s; name a file that exists and can be read", strerror(errno));
    *out = xcalloc(1, sizeof **out);
    (*out)->name = standard ? "standard input" : path;
    (*out)->file = file;
    return STATUS_OK;
}

struct input *input_open_text(const char *name, const char *text, size_t n)
{
    struct input *input = xcalloc(1, sizeof *input);
    input->name = name;
    input->at = text;
    input->left = n;
    input->ended = true;
    return input;
}

void input_close(struct input *input)
{
    if (input && input->file)
        gzclose_r(input->file);
    free(input);
}

const char *input_name(const struct input *input)
{
    return input->name;
}

/* At least one more byte in input->at, unless the end is reached. */
static enum status input_fill(struct input *input, struct diag *diag)
{
    BUG_IF(!input, "a file that could not be opened is read");
    if (input->left > 0 || input->ended)
        return STATUS_OK;
    int n = gzread(input->file, input->chunk, CHUNK_BYTES);
    int code = Z_OK;
    const char *why = gzerror(input->file, &code);
    if (code == Z_ERRNO && errno == EISDIR)
        return diag_input(diag, (struct source_pos){input->name, 1, 1},
            "cannot read: %s; name a file in it", strerror(errno));
    if (code == Z_ERRNO)
        return diag_io(diag, input_whole_file(input), "cannot read: %s", strerror(errno));
    if (n < 0 || code == Z_BUF_ERROR)
        return diag_input(
            diag, input_whole_file(input), "the gzip data are damaged or cut: %s", why);
    input->at = input->chunk;
    input->left = (size_t)n;
    input->ended = n == 0;
    return STATUS_OK;
}

enum status input_chunk(struct input *input, const char **bytes, size_t *n, struct diag *diag)
{
    enum status status = input_fill(input, diag);
    *bytes = input->at;
    *n = status == STATUS_OK ? input->left : 0;
    input->left = 0;
    return status;
}

/* The last line may lack its line end, which is said, as a log that is being written ends so. */
enum status input_line(struct input *input, struct input_line *line, struct diag *diag)
{
    size_t used = 0;
    bool begun = false, terminated = false;
    enum status status = STATUS_OK;
    input->line++;
    while (!terminated && (status = input_fill(input, diag)) == STATUS_OK && input->left > 0) {
        const char *newline = memchr(input->at, '\n', input->left);
        size_t n = newline ? (size_t)(newline - input->at) : input->left;
        struct source_pos at = {input->name, input->line, 1};
        if (memchr(input->at, '\0', n))
            return diag_input(diag, at, "a NUL byte: this is no text");
        if (used + n > INPUT_LINE_BYTES)
            return diag_input(
                diag, at, "a line of more than %d bytes: this is no log", INPUT_LINE_BYTES);
        memcpy(input->text + used, input->at, n);
        used += n;
        begun = true;
        terminated = newline != NULL;
        input->at += n + terminated;
        input->left -= n + terminated;
    }
    if (used > 0 && input->text[used - 1] == '\r')
        used--;
    input->text[used] = '\0';
    *line = (struct input_line){begun ? input->text : NULL, input->line, terminated};
    return status;
}

enum status input_peek(struct input *input, char *first, struct diag *diag)
{
    enum status status = input_fill(input, diag);
    size_t i = 0;
    while (
        status == STATUS_OK && i < input->left && strchr(" \t\r\n", input->at[i]) && input->at[i])
        i++;
    *first = '\0';
    if (status == STATUS_OK && i < input->left)
        *first = input->at[i];
    return status;
}

enum status input_digest(const char *path, uint64_t *out, struct diag *diag)
{
    struct input *input = NULL;
    const char *bytes = NULL;
    size_t n = 0;
    uint64_t digest = DIGEST_INIT;
    enum status status = input_open(&input, path, diag);
    if (!input)
        return status;
    while ((status = input_chunk(input, &bytes, &n, diag)) == STATUS_OK && n > 0)
        for (size_t i = 0; i < n; i++)
            digest = digest_word(digest, (unsigned char)bytes[i]);
    input_close(input);
    *out = digest;
    return status;
}
