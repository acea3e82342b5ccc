#include "config/document.h"
#include "config/config.h"

#include <errno.h>
#include <string.h>

/* Naming a file that is not there is a mistake of the input, as any other in it. */
static enum status report_missing(enum files_kind kind, struct source_pos at, struct diag *diag)
{
    int reason = errno;
    struct arena arena = ARENA_INIT;
    enum status status = diag_input(diag, at, "cannot open: %s; name a file that exists and can be read%s",
        strerror(reason), files_hint(&arena, kind, at.file));
    arena_release(&arena);
    return status;
}

enum status config_read_file(char **out, size_t *n, enum files_kind kind, const char *path, struct diag *diag)
{
    struct source_pos whole_file = {.file = path}, start = {path, 1, 1};
    *out = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return report_missing(kind, start, diag);
    char *text = NULL;
    size_t used = 0, room = 0;
    do {
        room = room ? 2 * room : BUFSIZ;
        text = xrealloc(text, room);
        used += fread(text + used, 1, room - used, file);
    } while (used == room && used <= CONFIG_MAX_BYTES);
    enum status status = STATUS_OK;
    if (ferror(file) && errno == EISDIR)
        status = diag_input(diag, start, "cannot read: %s; name a file in it%s", strerror(errno),
            kind == FILES_MODELS ? ", as it has no config.json" : "");
    else if (ferror(file))
        status = diag_io(diag, whole_file, "cannot read: %s", strerror(errno));
    else if (used > CONFIG_MAX_BYTES)
        status = diag_input(diag, whole_file, "larger than %d MiB; is this the right file?", CONFIG_MAX_BYTES >> 20);
    fclose(file);
    if (status != STATUS_OK) {
        free(text);
        return status;
    }
    *out = text;
    *n = used;
    return STATUS_OK;
}
