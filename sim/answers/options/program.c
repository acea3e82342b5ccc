/* flopcast's programs: their main(), and how one starts another.
 *
 * A program is found by the place of the running one. To become it is exec(), so its exit status
 * and signals are its own; what flopcast was asked to describe instead of doing it goes along as
 * words. program_run() waits for one and takes its status over. program_filter() writes a file
 * through one: the child reads a socket and writes the file.
 *
 * What is subtle: stdout is closed at exit, so that a full disk is a failure also of --help. The
 * filter is written by send() without SIGPIPE, so a child that has ended is an error of the
 * write; its exit status comes back as errno of fclose(). Of commands the one whose name has
 * most words wins. */
#include "options/program.h"

#include "base/build.h"
#include "base/files.h"
#include "crew/ranks.h"
#include "options/describe.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <gsl/gsl_errno.h>
#include <malloc.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- main() ---- */

static void print_version(FILE *out, struct argp_state *state)
{
    char commit[BUILD_COMMIT_SIZE];
    build_commit(commit);
    (void)state;
    fprintf(out, "flopcast " FLOPCAST_VERSION " (commit %s)\n", commit);
}

/* Visible, as the C library looks for it. */
__attribute__((visibility("default"))) void (*argp_program_version_hook)(
    FILE *, struct argp_state *) = print_version;

/* Output that did not reach its file (full disk, closed pipe) is a failure, also of --help, which
 * leaves by exit(). */
static void close_stdout(void)
{
    bool failed =
        ferror(stdout) != 0; /* a write before this one failed; why is not known any more */
    if (fclose(stdout) == 0 && !failed)
        return;
    fprintf(stderr, "flopcast: error: cannot write the output: %s\n",
        failed ? "a write failed" : strerror(errno));
    _exit(CLI_WORLD);
}

/* What is freed stays with the program, up to this: the ops of a plan grow to tens of MiB and are
 * freed, plan after plan, and pages that the system takes back are cleared before they come again
 * (more than half of what a search over FSDP took; measured at 32, 64, 128 and 256 MiB, of which
 * the last three are alike). */
static void keep_what_is_freed(void)
{
#ifdef __GLIBC__
    static const int KEPT_BYTES = 128 << 20;
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
#endif
}

bool program_set_up(void)
{
    if (atexit(close_stdout) != 0)
        return false;
    keep_what_is_freed();
    argp_err_exit_status = CLI_INPUT;
    ranks_set_up();
    gsl_set_error_handler_off(); /* its default handler aborts; here return values are checked */
    return true;
}

/* ---- a program that flopcast has started ---- */

/* How many of the first words are the name; 0: they are not. */
static int words_of(const char *name, int argc, char **argv)
{
    int n = 0;
    while (*name && n < argc) {
        size_t length = strlen(argv[n]);
        if (strncmp(name, argv[n], length) != 0 || (name[length] && name[length] != ' '))
            return 0;
        name += length + (name[length] == ' ');
        n++;
    }
    return *name ? 0 : n;
}

/* The command that most of the words name, with what follows. */
static int dispatch(int argc, char **argv, const struct command_row *commands)
{
    const struct command_row *found = NULL;
    int most = 0;
    for (const struct command_row *at = commands; at->name; at++) {
        int words = words_of(at->name, argc, argv);
        found = words > most ? at : found;
        most = words > most ? words : most;
    }
    if (!found) {
        fputs("flopcast: error: this program is started by flopcast; its commands:", stderr);
        for (const struct command_row *at = commands; at->name; at++)
            fprintf(stderr, "%s flopcast %s", at > commands ? "," : "", at->name);
        fputc('\n', stderr);
        return CLI_INPUT;
    }
    char whole[64];
    snprintf(whole, sizeof whole, "flopcast %s", found->name);
    argv[most - 1] = whole;
    return found->run(argc - most + 1, argv + most - 1);
}

int program_main(int argc, char **argv, const struct command_row *commands)
{
    command_take(commands);
    if (!program_set_up())
        return CLI_WORLD;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return print_version(stdout, NULL), CLI_OK;
    int first = 1 + describe_take(argc - 1, argv + 1);
    return dispatch(argc - first, argv + first, commands);
}

/* ---- to start one ---- */

static enum status program_missing(const char *program, struct diag *diag)
{
    return diag_io(diag, (struct source_pos){0},
        "%s, a part of flopcast that does this, is neither beside flopcast nor in ../lib/flopcast",
        program);
}

static void begin_words(struct program_words *words, const char *program)
{
    vec_push(&words->list, arena_strdup(&words->texts, program));
}

int program_become(const char *program, int argc, char **argv)
{
    struct program_words words = {0};
    struct diag diag = DIAG_INIT;
    const char *path = files_program(&words.texts, program);
    begin_words(&words, program);
    describe_hand_on(&words);
    char *name = arena_strdup(&words.texts, argv[0] + strlen("flopcast ")), *rest = NULL;
    for (char *word = strtok_r(name, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        vec_push(&words.list, word);
    for (int i = 1; i < argc; i++)
        vec_push(&words.list, argv[i]);
    vec_push(&words.list, NULL);
    if (path)
        execv(path, words.list.at);
    if (path)
        diag_io(&diag, (struct source_pos){.file = path}, "cannot start it: %s", strerror(errno));
    else
        program_missing(program, &diag);
    vec_free(&words.list);
    arena_release(&words.texts);
    return cli_report(&diag);
}

/* Its exit status; -1: it did not come to one. */
static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum status program_run(const char *program, const struct program_words *given, struct diag *diag)
{
    struct program_words words = {0};
    const char *path = files_program(&words.texts, program);
    begin_words(&words, program);
    for (int i = 0; i < given->list.n; i++)
        vec_push(&words.list, given->list.at[i]);
    vec_push(&words.list, NULL);
    pid_t child = 0;
    int why = path ? posix_spawn(&child, path, NULL, NULL, words.list.at, environ) : 0;
    int exited = path && why == 0 ? wait_for(child) : -1;
    enum status status = exited == CLI_OK      ? STATUS_OK
                         : exited == CLI_INPUT ? STATUS_INPUT
                                               : STATUS_IO;
    if (!path)
        program_missing(program, diag);
    else if (why != 0 || exited < 0)
        diag_io(diag, (struct source_pos){.file = path}, "cannot run it: %s",
            why ? strerror(why) : "it was ended");
    else if (status > diag->worst) /* it has said why */
        diag->worst = status;
    vec_free(&words.list);
    arena_release(&words.texts);
    return status;
}

/* ---- a file through one ---- */

struct filter {
    pid_t child;
    int to; /* a socket: a child that is gone is an error of the write, no signal */
};

static ssize_t filter_write(void *cookie, const char *bytes, size_t n)
{
    const struct filter *filter = cookie;
    return send(filter->to, bytes, n, MSG_NOSIGNAL);
}

static int filter_close(void *cookie)
{
    struct filter *filter = cookie;
    close(filter->to);
    int why = wait_for(filter->child);
    free(filter);
    errno = why < 0 ? EIO : why;
    return why == 0 ? 0 : EOF;
}

static bool spawn_filter(
    struct filter *filter, const char *path, char *const *words, int in, int out)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    errno = posix_spawn(&filter->child, path, &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return errno == 0;
}

FILE *program_filter(const char *program, const char *word, const char *path)
{
    struct arena arena = ARENA_INIT;
    char *words[] = {arena_strdup(&arena, program), arena_strdup(&arena, word), NULL};
    const char *found = files_program(&arena, program);
    struct filter *filter = xcalloc(1, sizeof *filter);
    int ends[2] = {-1, -1},
        file = found ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    bool ok = file >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 &&
              spawn_filter(filter, found, words, ends[1], file);
    filter->to = ends[0];
    FILE *out = ok ? fopencookie(filter, "w",
                         (cookie_io_functions_t){.write = filter_write, .close = filter_close})
                   : NULL;
    int why = found ? errno : ENOPKG;
    if (file >= 0)
        close(file);
    if (ends[1] >= 0)
        close(ends[1]);
    if (!out && ok)
        filter_close(filter);
    else if (!out && ends[0] >= 0)
        close(ends[0]);
    if (!out && !ok)
        free(filter);
    arena_release(&arena);
    errno = why;
    return out;
}
