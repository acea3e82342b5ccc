#include "base/file_write.h"

#include "base/arena.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum status file_write(const char *path, const char *bytes, size_t n, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    char *temporary = arena_printf(&arena, "%s.XXXXXX", path);
    int fd = mkstemp(temporary);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = out != NULL;
    if (ok) {
        mode_t mask =
            umask(0); /* mkstemp makes a private file; a picture has the mode of any other file */
        umask(mask);
        ok = fwrite(bytes, 1, n, out) == n && fchmod(fd, 0666 & ~mask) == 0;
        ok = fclose(out) == 0 && ok;
        ok = ok && rename(temporary, path) == 0;
    }
    enum status status = STATUS_OK;
    if (!ok) {
        status = diag_io(diag, (struct source_pos){.file = path},
            "cannot write: %s; the folder must exist, be writable and have room", strerror(errno));
        if (fd >= 0)
            unlink(temporary);
    }
    arena_release(&arena);
    return status;
}
