/* Runs gnuplot: a script in, a picture out.
 *
 * The script and gnuplot's messages are files in memory (memfd), the picture comes through a
 * pipe. So nothing has to be read while something else is written, and no file is left behind.
 * The picture is read to its end before the child is awaited, as a pipe holds only 64 KiB. What
 * is subtle: gnuplot ends with 0 after some errors, so an empty picture counts as a failure as
 * well; warnings about series without points are expected and are dropped, others are reported
 * with the picture; the child gets a UTF-8 locale and -d, so that neither the user's locale nor
 * ~/.gnuplot changes a picture. */
#include "report/gnuplot.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors of a run: the script and the error messages are files in memory, so that reading and
 * writing never block. */
struct channels {
    int script, complaints, picture[2]; /* pipe: read end, write end */
};

static void close_all(struct channels *c)
{
    int open[] = {c->script, c->complaints, c->picture[0], c->picture[1]};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (open[i] >= 0)
            close(open[i]);
}

static bool gnuplot_write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, text, n);
        if (written < 0)
            return false;
        text += written;
        n -= (size_t)written;
    }
    return lseek(fd, 0, SEEK_SET) == 0;
}

static bool open_all(struct channels *c, const char *script)
{
    *c = (struct channels){-1, -1, {-1, -1}};
    c->script = memfd_create("flopcast-script", MFD_CLOEXEC);
    c->complaints = memfd_create("flopcast-complaints", MFD_CLOEXEC);
    return c->script >= 0 && c->complaints >= 0 && pipe2(c->picture, O_CLOEXEC) == 0 &&
           gnuplot_write_all(c->script, script, strlen(script));
}

/* The environment, but in a locale whose letters are UTF-8, as the scripts are: elsewhere gnuplot
 * complains that it cannot convert the degree sign. Free with free(); the texts are borrowed. */
static char **environment(void)
{
    static char locale[] = "LC_ALL=C.UTF-8";
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **own = xcalloc(n + 2, sizeof *own);
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], locale, sizeof "LC_ALL") != 0)
            own[kept++] = environ[i];
    own[kept] = locale;
    return own;
}

/* 0 or errno. */
static int start(pid_t *child, const struct channels *c)
{
    char **own = environment();
    static char name[] = "gnuplot", no_settings[] = "-d", from_stdin[] = "-";
    char *argv[] = {name, no_settings, from_stdin, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, c->script, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, c->picture[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, c->complaints, STDERR_FILENO);
    int code = posix_spawnp(child, name, &actions, NULL, argv, own);
    posix_spawn_file_actions_destroy(&actions);
    free(own);
    return code;
}

static size_t read_all(char **out, int fd)
{
    FILE *copy = xmemstream(out, &(size_t){0});
    char block[65536];
    size_t total = 0;
    ssize_t n;
    while ((n = read(fd, block, sizeof block)) > 0) {
        fwrite(block, 1, (size_t)n, copy);
        total += (size_t)n;
    }
    fclose(copy);
    return total;
}

/* A message is one line: runs of white space, of which gnuplot writes many, become one blank. */
static void flatten(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        bool blank = strchr(" \t\r\n", *from) != NULL;
        if (!blank)
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    }
    *to = '\0';
}

/* Without the lines about a series that has nothing to draw: all but the first may be empty
 * (report.h). */
static void drop_empty_series(char *text)
{
    static const char empty[] = "warning: Skipping data file with no valid points";
    char *to = text;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        const char *found = strstr(line, empty);
        if (!found || found >= line + n) {
            memmove(to, line, n);
            to += n;
        }
        line += n;
    }
    *to = '\0';
}

static enum status gnuplot_judge(int wait_status, size_t n, int complaints, struct diag *diag)
{
    bool drawn = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 && n > 0;
    char text[4096] = "";
    if (lseek(complaints, 0, SEEK_SET) == 0) {
        ssize_t got = read(complaints, text, sizeof text - 1);
        if (got > 0)
            text[got] = '\0';
    }
    if (drawn)
        drop_empty_series(text);
    flatten(text);
    if (!drawn)
        return diag_io(
            diag, (struct source_pos){0}, "gnuplot failed: %s", *text ? text : "it drew nothing");
    if (*text)
        diag_warn(
            diag, (struct source_pos){0}, "gnuplot says of the picture that it drew: %s", text);
    return STATUS_OK;
}

enum status gnuplot_run(char **picture, size_t *n, const char *script, struct diag *diag)
{
    *picture = NULL;
    struct channels c;
    pid_t child = 0;
    int code = open_all(&c, script) ? start(&child, &c) : errno;
    if (code != 0) {
        close_all(&c);
        return code == ENOENT
                   ? diag_io(diag, (struct source_pos){0},
                         "gnuplot is not installed; install it with: sudo apt install gnuplot-nox")
                   : diag_io(
                         diag, (struct source_pos){0}, "cannot start gnuplot: %s", strerror(code));
    }
    close(c.picture[1]);
    c.picture[1] = -1;
    *n = read_all(picture, c.picture[0]);
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    enum status status = gnuplot_judge(wait_status, *n, c.complaints, diag);
    close_all(&c);
    if (status != STATUS_OK) {
        free(*picture);
        *picture = NULL;
    }
    return status;
}
