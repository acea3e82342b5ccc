/* A message is a kind and its bytes. Rank 0 sends GIVEN and QUIT, the others HELLO first, then
 * WORK, one for each share of theirs, and LEAVES in the end. Nobody waits in MPI: a rank looks for
 * messages again and again, so that it uses no core meanwhile. */
#include "crew/ranks.h"

#include "base/build.h"
#include "base/files.h"
#include "base/threads.h"
#include "crew/mpi.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum rank_message { RANK_HELLO, RANK_LEAVES, RANK_WORK, RANK_GIVEN, RANK_QUIT };

struct rank_hello {
    uint64_t build; /* results of another program would be others */
    char host[64];
};

struct rank {
    struct rank_hello hello;
    bool known, left, named; /* named: the user knows that it left */
    int shares;              /* that it has delivered */
};

struct ranks {
    struct crew_mpi *mpi;
    struct rank *others; /* rank 0's, by number */
    int shares;          /* that have been collected of all */
    bool leaves;         /* another rank: it has said so */
};

/* ---- what started the program ---- */

/* OpenMPI's mpirun; MPICH's and Intel's. Of Slurm's srun only with --mpi=pmix, which then has
 * OpenMPI's, too. */
static const struct {
    const char *ranks, *rank;
} launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, {"PMI_SIZE", "PMI_RANK"}};

static int read_environment(bool rank)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *text = getenv(rank ? launchers[i].rank : launchers[i].ranks);
        if (text && *text)
            return (int)strtol(text, NULL, 10);
    }
    return 0;
}

int ranks_launched(void)
{
    return read_environment(false);
}

static bool mpi_has_begun;

/* mpirun ends all ranks when the first ends with an error: what all find wrong before MPI begins,
 * rank 0 is to have said by then. */
static void let_rank_0_speak(void)
{
    if (!mpi_has_begun)
        sleep(1);
}

void ranks_set_up(void)
{
    if (ranks_launched() == 0)
        return;
    threads_limit(1);
    if (read_environment(true) == 0)
        return;
    atexit(let_rank_0_speak);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

/* ---- MPI ---- */

static void *open_plugin(struct arena *arena)
{
    const char *given = getenv("FLOPCAST_MPI");
    const char *path = given && *given ? given : files_program(arena, "flopcast-mpi.so");
    return path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL)
                : NULL; /* MPI's own plugins look for its names */
}

static enum status begin_mpi(struct crew_mpi **out, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    void *plugin = open_plugin(&arena);
    const char *why = plugin ? NULL : dlerror();
    void *found = plugin ? dlsym(plugin, CREW_MPI_BEGIN) : NULL;
    enum status status = STATUS_OK;
    if (!found)
        status = diag_io(diag, (struct source_pos){0},
            "mpirun has started this program %d times, but flopcast-mpi.so, which lets them work "
            "together, is not found%s%s; build flopcast with libopenmpi-dev, or set FLOPCAST_MPI "
            "to that file",
            ranks_launched(), why ? ": " : "", why ? why : "");
    crew_mpi_begin *begin;
    memcpy(&begin, &found, sizeof begin);
    *out = found ? begin() : NULL;
    if (found && !*out)
        status = diag_io(diag, (struct source_pos){0}, "MPI could not begin");
    mpi_has_begun = *out != NULL;
    arena_release(&arena);
    return status;
}

static void send_message(
    struct ranks *ranks, int to, enum rank_message kind, const void *bytes, size_t n)
{
    unsigned char *message = xcalloc(n + 1, 1);
    message[0] = (unsigned char)kind;
    if (n > 0)
        memcpy(message + 1, bytes, n);
    ranks->mpi->send(to, message, n + 1);
    free(message);
}

/* The next message, without its kind; for free(). */
static unsigned char *receive_message(
    struct ranks *ranks, int *from, enum rank_message *kind, size_t *n)
{
    static const struct timespec moment = {.tv_nsec = 500000};
    unsigned char *message;
    while (!(message = ranks->mpi->receive(from, n)))
        nanosleep(&moment, NULL);
    *kind = (enum rank_message)message[0];
    memmove(message, message + 1, --*n);
    return message;
}

/* ---- rank 0 ---- */

/* The bytes of a rank's share, or NULL: the message was another one. */
static unsigned char *hear(struct ranks *ranks, size_t *n)
{
    enum rank_message kind;
    int from;
    unsigned char *bytes = receive_message(ranks, &from, &kind, n);
    struct rank *rank = &ranks->others[from];
    if (kind == RANK_HELLO && *n == sizeof rank->hello) {
        memcpy(&rank->hello, bytes, *n);
        rank->known = true;
    }
    rank->left = rank->left || kind == RANK_LEAVES;
    rank->shares += kind == RANK_WORK;
    if (kind == RANK_WORK)
        return bytes;
    free(bytes);
    return NULL;
}

/* Until every rank has said hello or left. */
static enum status greet(struct ranks *ranks, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int r = 1; r < ranks->mpi->ranks; r++) {
        const struct rank *rank = &ranks->others[r];
        size_t n;
        while (!rank->known && !rank->left)
            free(hear(ranks, &n));
        if (rank->known && rank->hello.build != build_digest())
            status = diag_io(diag, (struct source_pos){0},
                "rank %d on %s is another build of flopcast, or has another libm or GSL, so its "
                "results may differ; start the same file on all machines",
                r, rank->hello.host);
    }
    return status;
}

void ranks_give(struct ranks *ranks, const void *bytes, size_t n)
{
    for (int r = 1; r < ranks->mpi->ranks; r++)
        if (!ranks->others[r].left)
            send_message(ranks, r, RANK_GIVEN, bytes, n);
}

static void name_if_left(struct rank *rank, int number, struct diag *diag)
{
    if (!rank->left || rank->named)
        return;
    rank->named = true;
    diag_warn(diag, (struct source_pos){0},
        "rank %d on %s ended before the work, which the others do; try the command on that machine "
        "alone",
        number, rank->known ? rank->hello.host : "its machine");
}

unsigned char *ranks_collect(struct ranks *ranks, size_t *n, struct diag *diag)
{
    for (int r = 1; r < ranks->mpi->ranks; r++) {
        struct rank *rank = &ranks->others[r];
        while (!rank->left && rank->shares <= ranks->shares) {
            unsigned char *bytes = hear(ranks, n);
            if (bytes)
                return bytes;
        }
        if (rank->shares <= ranks->shares)
            name_if_left(rank, r, diag);
    }
    ranks->shares++;
    return NULL;
}

/* ---- another rank ---- */

static _Noreturn void quit(struct ranks *ranks)
{
    if (!ranks->leaves)
        send_message(ranks, 0, RANK_LEAVES, NULL, 0);
    ranks->mpi->end();
    _exit(0);
}

unsigned char *ranks_take(struct ranks *ranks, size_t *n)
{
    for (;;) {
        enum rank_message kind;
        int from;
        unsigned char *bytes = receive_message(ranks, &from, &kind, n);
        if (kind == RANK_QUIT)
            quit(ranks);
        if (kind == RANK_GIVEN)
            return bytes;
        free(bytes);
    }
}

void ranks_deliver(struct ranks *ranks, const void *bytes, size_t n)
{
    send_message(ranks, 0, RANK_WORK, bytes, n);
}

/* ---- begin and end ---- */

int ranks_count(const struct ranks *ranks)
{
    return ranks ? ranks->mpi->ranks : 1;
}

int ranks_number(const struct ranks *ranks)
{
    return ranks ? ranks->mpi->rank : 0;
}

enum status ranks_begin(struct ranks **out, struct diag *diag)
{
    struct crew_mpi *mpi = NULL;
    *out = NULL;
    if (ranks_launched() == 0)
        return STATUS_OK;
    if (begin_mpi(&mpi, diag) != STATUS_OK || !mpi)
        return STATUS_IO;
    struct ranks *ranks = xcalloc(1, sizeof *ranks);
    *ranks =
        (struct ranks){.mpi = mpi, .others = xcalloc((size_t)mpi->ranks, sizeof *ranks->others)};
    *out = ranks;
    if (mpi->rank > 0) {
        struct rank_hello hello = {.build = build_digest()};
        gethostname(hello.host, sizeof hello.host - 1);
        send_message(ranks, 0, RANK_HELLO, &hello, sizeof hello);
        return STATUS_OK;
    }
    if (greet(ranks, diag) == STATUS_OK)
        return STATUS_OK;
    ranks_end(ranks);
    *out = NULL;
    return STATUS_IO;
}

void ranks_end(struct ranks *ranks)
{
    if (!ranks)
        return;
    if (ranks->mpi->rank > 0) {
        size_t n;
        ranks->leaves = true;
        send_message(ranks, 0, RANK_LEAVES, NULL, 0);
        for (;;) /* it does not return */
            free(ranks_take(ranks, &n));
    }
    for (int r = 1; r < ranks->mpi->ranks; r++)
        send_message(ranks, r, RANK_QUIT, NULL, 0);
    for (int r = 1; r < ranks->mpi->ranks; r++)
        while (!ranks->others[r].left) { /* what is still under way to here is not wanted */
            size_t n;
            free(hear(ranks, &n));
        }
    ranks->mpi->end();
    free(ranks->others);
    free(ranks->mpi);
    free(ranks);
}
