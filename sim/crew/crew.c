#include "crew/crew.h"

#include "base/build.h"
#include "base/threads.h"
#include "crew/ranks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- what started the program ---- */

/* OpenMPI's mpirun; MPICH's and Intel's. Of Slurm's srun only with --mpi=pmix, which then has OpenMPI's, too. */
static const struct {
    const char *ranks, *rank;
} launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, {"PMI_SIZE", "PMI_RANK"}};

static int from_environment(bool rank)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *text = getenv(rank ? launchers[i].rank : launchers[i].ranks);
        if (text && *text)
            return (int)strtol(text, NULL, 10);
    }
    return 0;
}

int crew_launched(void)
{
    return from_environment(false);
}

void crew_set_up(void)
{
    if (crew_launched() == 0)
        return;
    threads_limit(1);
    if (from_environment(true) == 0)
        return;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

/* ---- MPI ---- */

static void *open_plugin(struct arena *arena)
{
    static const char *const places[] = {"flopcast-mpi.so", "../lib/flopcast/flopcast-mpi.so"};
    const char *given = getenv("FLOPCAST_MPI");
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (given && *given)
        return dlopen(given, RTLD_NOW | RTLD_GLOBAL);
    void *plugin = NULL;
    program[n > 0 ? n : 0] = '\0';
    *(strrchr(program, '/') ? strrchr(program, '/') : program) = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places && !plugin; i++) {
        const char *path = arena_printf(arena, "%s/%s", program, places[i]);
        if (access(path, R_OK) == 0)
            plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* MPI's own plugins look for its names */
    }
    return plugin;
}

static enum status begin_mpi(struct crew *crew, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    void *plugin = open_plugin(&arena);
    const char *why = plugin ? NULL : dlerror();
    void *found = plugin ? dlsym(plugin, CREW_MPI_BEGIN) : NULL;
    enum status status = STATUS_OK;
    if (!found)
        status = diag_io(diag, (struct source_pos){0},
            "mpirun has started this program %d times, but flopcast-mpi.so, which lets them work together, is not "
            "found%s%s; build flopcast with libopenmpi-dev, or set FLOPCAST_MPI to that file",
            crew_launched(), why ? ": " : "", why ? why : "");
    crew_mpi_begin *begin;
    memcpy(&begin, &found, sizeof begin);
    if (found && !(crew->mpi = begin()))
        status = diag_io(diag, (struct source_pos){0}, "MPI could not begin");
    arena_release(&arena);
    return status;
}

void rank_send(struct crew *crew, int to, const struct rank_message *message, const void *bytes, size_t n)
{
    crew->out.n = 0;
    pack_bytes(&crew->out, message, sizeof *message);
    pack_bytes(&crew->out, bytes, n);
    crew->mpi->send(to, crew->out.at, crew->out.n);
}

bool rank_receive(struct crew *crew, int *from, struct rank_message *message, struct unpack *rest)
{
    if (!crew->mpi->receive(from, &crew->in))
        return false;
    *rest = (struct unpack){crew->in.at, crew->in.n};
    unpack_bytes(rest, message, sizeof *message);
    return true;
}

void rank_doze(void)
{
    static const struct timespec moment = {.tv_nsec = 500000};
    nanosleep(&moment, NULL);
}

enum status ranks_greet(struct crew *crew, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int missing = crew->mpi->ranks - 1; missing > 0;) {
        struct rank_message message;
        struct unpack rest;
        int from;
        missing = 0;
        for (int r = 1; r < crew->mpi->ranks; r++)
            missing += !crew->ranks[r].known && !crew->ranks[r].left;
        if (missing == 0)
            break;
        if (!rank_receive(crew, &from, &message, &rest)) {
            rank_doze();
            continue;
        }
        struct rank *rank = &crew->ranks[from];
        if (message.kind == RANK_HELLO) {
            UNPACK(&rest, rank->hello);
            rank->known = true;
        } else if (message.kind == RANK_LEAVES) {
            rank->left = true;
        }
    }
    for (int r = 1; r < crew->mpi->ranks; r++) {
        const struct rank *rank = &crew->ranks[r];
        if (rank->known && rank->hello.build != build_digest())
            status = diag_io(diag, (struct source_pos){0},
                "rank %d on %s is another build of flopcast, or has another libm or GSL, so its results may differ; "
                "start the same file on all machines",
                r, rank->hello.host);
        if (rank->left)
            diag_warn(diag, (struct source_pos){0},
                "rank %d on %s ended before the work, which the others do; try the command on that machine alone", r,
                rank->known ? rank->hello.host : "its machine");
    }
    return status;
}

_Noreturn void rank_quit(struct crew *crew)
{
    crew->mpi->end();
    _exit(0);
}

/* ---- begin and end ---- */

enum status crew_begin(struct crew **out, struct diag *diag)
{
    struct crew *crew = xcalloc(1, sizeof *crew);
    *out = NULL;
    if (crew_launched() > 0 && begin_mpi(crew, diag) != STATUS_OK) {
        free(crew);
        return STATUS_IO;
    }
    if (crew->mpi && crew->mpi->rank == 0) {
        crew->ranks = xcalloc((size_t)crew->mpi->ranks, sizeof *crew->ranks);
    } else if (crew->mpi) {
        struct rank_message message = {.kind = RANK_HELLO};
        struct rank_hello hello = {.build = build_digest(), .threads = threads_count()};
        gethostname(hello.host, sizeof hello.host - 1);
        rank_send(crew, 0, &message, &hello, sizeof hello);
    }
    *out = crew;
    return STATUS_OK;
}

bool crew_is_owner(const struct crew *crew)
{
    return !crew || !crew->mpi || crew->mpi->rank == 0;
}

void crew_end(struct crew *crew)
{
    if (!crew)
        return;
    if (crew->mpi && crew->mpi->rank == 0) {
        struct rank_message message = {.kind = RANK_QUIT};
        for (int r = 1; r < crew->mpi->ranks; r++)
            rank_send(crew, r, &message, NULL, 0);
        crew->mpi->end();
    } else if (crew->mpi) {
        struct rank_message message = {.kind = RANK_LEAVES};
        struct unpack rest;
        int from;
        rank_send(crew, 0, &message, NULL, 0);
        while (!rank_receive(crew, &from, &message, &rest) || message.kind != RANK_QUIT)
            rank_doze();
        rank_quit(crew);
    }
    pack_free(&crew->in);
    pack_free(&crew->out);
    free(crew->ranks);
    free(crew->mpi);
    free(crew);
}
