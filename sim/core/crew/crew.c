/* Loops of jobs on threads and, under MPI, on other ranks. Rank 0 owns the queue: its threads take
 * jobs from it, and one more thread (0, the only one that talks to MPI) gives each rank as many
 * jobs as it has threads and takes results as bytes. MPI wakes nobody, so it looks for messages,
 * and dozes 0.5 ms where there are none. All shared state is changed under the lock crew_run. Jobs
 * end in any order; diags come out in theirs. Every rank runs the same loops in the same order: a
 * message carries the number of its loop. */
#include "crew/crew.h"

#include "base/build.h"
#include "base/diag_set.h"
#include "base/files.h"
#include "base/threads.h"
#include "base/vec.h"
#include "crew/mpi.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* ---- the other ranks of MPI, and what is said between them ---- */

enum rank_message_kind {
    RANK_HELLO,  /* to rank 0: a struct rank_hello */
    RANK_LEAVES, /* to rank 0: the command has ended there */
    RANK_JOB,    /* from rank 0: do it */
    RANK_RESULT, /* to rank 0: the bytes of a result follow */
    RANK_END,    /* from rank 0: the loop has ended; value: how many results follow, of a loop for everyone */
    RANK_QUIT    /* from rank 0: the command has ended there */
};

struct rank_message {
    int kind, loop, job, value;
};

struct rank_hello {
    uint64_t build; /* results of another program would be others */
    int threads;
    char host[64];
};

struct rank {
    struct rank_hello hello;
    bool known, left;
    int busy; /* jobs that it has, of the loop under way */
};

struct crew {
    struct crew_mpi *mpi; /* NULL: without */
    struct rank *ranks;   /* rank 0's */
    int loops;
    struct pack in, out; /* kept */
};

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

static bool mpi_has_begun;

/* mpirun ends all ranks when the first ends with an error: what all find wrong before MPI begins, rank 0 is to have
 * said by then. */
static void let_rank_0_speak(void)
{
    if (!mpi_has_begun)
        sleep(1);
}

void crew_set_up(void)
{
    if (crew_launched() == 0)
        return;
    threads_limit(1);
    if (from_environment(true) == 0)
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
    return path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL; /* MPI's own plugins look for its names */
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
    mpi_has_begun = crew->mpi != NULL;
    arena_release(&arena);
    return status;
}

/* A message with bytes behind it. By the thread that began MPI. */
static void rank_send(struct crew *crew, int to, const struct rank_message *message, const void *bytes, size_t n)
{
    crew->out.n = 0;
    pack_bytes(&crew->out, message, sizeof *message);
    pack_bytes(&crew->out, bytes, n);
    crew->mpi->send(to, crew->out.at, crew->out.n);
}

/* The next message that has come, with what follows it in *rest until the next call; false: none has. */
static bool rank_receive(struct crew *crew, int *from, struct rank_message *message, struct unpack *rest)
{
    if (!crew->mpi->receive(from, &crew->in))
        return false;
    *rest = (struct unpack){crew->in.at, crew->in.n};
    unpack_bytes(rest, message, sizeof *message);
    return true;
}

/* A moment, between two looks for messages of MPI, which wake nobody. */
static void rank_doze(void)
{
    static const struct timespec moment = {.tv_nsec = 500000};
    nanosleep(&moment, NULL);
}

/* Rank 0: until every rank has said hello or left. Ranks of another build, and those that have left, are errors. */
static enum status ranks_greet(struct crew *crew, struct diag *diag)
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

/* Another rank: rank 0 has ended its command, and so does this process. */
static _Noreturn void rank_quit(struct crew *crew)
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

/* ---- the loop: threads of this process, and of other ranks ---- */

enum { NO_JOB = -1 };

struct owner {
    struct crew *crew;
    const struct crew_loop *loop;
    int *queue, first, last; /* not handed out yet: queue[first .. last - 1] */
    bool stopped;
    struct diag_set diags;
    enum status worst;
    struct pack answers; /* of a loop for everyone: job, number of bytes, bytes */
    int n_answers;
};

/* Thread 0 is the one that called, and alone talks to MPI. */
static int thread_number(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static bool is_alone(void)
{
#ifdef _OPENMP
    return omp_get_num_threads() == 1;
#else
    return true;
#endif
}

/* ---- results as bytes ---- */

static void pack_result(
    struct pack *out, const struct crew_loop *loop, int job, enum status status, const struct diag *diag)
{
    out->n = 0;
    PACK(out, status);
    PACK(out, diag->used);
    if (diag->used > 0)
        PACK(out, *diag);
    loop->pack(loop->self, job, out);
}

static enum status unpack_result(
    const unsigned char *bytes, size_t n, const struct crew_loop *loop, int job, struct diag *diag)
{
    struct unpack from = {bytes, n};
    enum status status = STATUS_OK;
    size_t used = 0;
    UNPACK(&from, status);
    UNPACK(&from, used);
    if (used > 0)
        UNPACK(&from, *diag);
    loop->unpack(loop->self, job, &from);
    return status;
}

static void add_answer(struct owner *owner, int job, const unsigned char *bytes, size_t n)
{
    PACK(&owner->answers, job);
    PACK(&owner->answers, n);
    pack_bytes(&owner->answers, bytes, n);
    owner->n_answers++;
}

/* What this process knows and other ranks may not. */
static void add_own_answer(struct owner *owner, int job, enum status status, const struct diag *diag)
{
    struct pack result = {0};
    pack_result(&result, owner->loop, job, status, diag);
    add_answer(owner, job, result.at, result.n);
    pack_free(&result);
}

static bool answers_everyone(const struct owner *owner)
{
    return owner->loop->everyone && owner->crew && owner->crew->mpi;
}

/* ---- rank 0 ---- */

static int take(struct owner *owner)
{
    int job = NO_JOB;
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    if (!owner->stopped && owner->first < owner->last)
        job = owner->queue[owner->first++];
    return job;
}

static void end_job(struct owner *owner, int job, enum status status)
{
    const struct crew_loop *loop = owner->loop;
    owner->worst = status > owner->worst ? status : owner->worst;
    if (loop->ended && !loop->ended(loop->self, job, status))
        owner->stopped = true;
}

/* False: there is none left. */
static bool do_one(struct owner *owner)
{
    int job = take(owner);
    if (job == NO_JOB)
        return false;
    struct diag diag = DIAG_INIT;
    enum status status = owner->loop->job(owner->loop->self, job, &diag);
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    {
        diag_set_keep(&owner->diags, job, &diag);
        if (answers_everyone(owner))
            add_own_answer(owner, job, status, &diag);
        end_job(owner, job, status);
    }
    return true;
}

static void take_result(struct owner *owner, int job, const struct unpack *bytes)
{
    struct diag diag = DIAG_INIT;
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    {
        enum status status = unpack_result(bytes->at, bytes->left, owner->loop, job, &diag);
        diag_set_keep(&owner->diags, job, &diag);
        if (answers_everyone(owner))
            add_answer(owner, job, bytes->at, bytes->left);
        end_job(owner, job, status);
    }
}

static bool take_message(struct owner *owner)
{
    struct rank_message message;
    struct unpack rest;
    int from;
    if (!rank_receive(owner->crew, &from, &message, &rest))
        return false;
    struct rank *rank = &owner->crew->ranks[from];
    if (message.kind == RANK_LEAVES)
        rank->left = true;
    if (message.kind == RANK_RESULT) {
        rank->busy--;
        take_result(owner, message.job, &rest);
    }
    return true;
}

/* To each rank as many jobs as it has threads. Returns how many are under way there. */
static int give_away(struct owner *owner)
{
    int away = 0;
    for (int r = 1; r < owner->crew->mpi->ranks; r++) {
        struct rank *rank = &owner->crew->ranks[r];
        while (!rank->left && rank->busy < rank->hello.threads) {
            struct rank_message message = {.kind = RANK_JOB, .loop = owner->crew->loops, .job = take(owner)};
            if (message.job == NO_JOB)
                break;
            rank_send(owner->crew, r, &message, NULL, 0);
            rank->busy++;
        }
        away += rank->busy;
    }
    return away;
}

static void serve_ranks(struct owner *owner)
{
    while (give_away(owner) > 0) {
        bool goes_on = take_message(owner) || (is_alone() && do_one(owner));
        if (!goes_on)
            rank_doze();
    }
}

#ifdef _OPENMP
static int threads_for(const struct owner *owner)
{
    int jobs = owner->last - owner->first, threads = threads_count();
    return threads < jobs ? threads : jobs > 0 ? jobs : 1;
}
#endif

static void run_here(struct owner *owner, bool with_ranks)
{
#ifdef _OPENMP
#pragma omp parallel num_threads(threads_for(owner) + with_ranks)
#endif
    {
        if (with_ranks && thread_number() == 0)
            serve_ranks(owner);
        while (do_one(owner))
            continue;
    }
}

/* To ranks that serve: the loop is over, and, if everyone wants to know, what came out. */
static void end_remote(struct owner *owner)
{
    const struct crew_loop *loop = owner->loop;
    for (int i = 0; i < loop->n && loop->everyone && loop->known; i++)
        if (loop->known[i])
            add_own_answer(owner, i, STATUS_OK, &DIAG_INIT);
    struct rank_message message = {.kind = RANK_END, .loop = owner->crew->loops, .value = owner->n_answers};
    for (int r = 1; r < owner->crew->mpi->ranks; r++)
        if (!owner->crew->ranks[r].left)
            rank_send(owner->crew, r, &message, owner->answers.at, owner->answers.n);
    pack_free(&owner->answers);
}

/* ---- another rank ---- */

struct result {
    int job;
    struct pack bytes;
};

struct server {
    struct crew *crew;
    const struct crew_loop *loop;
    VEC(int) given;
    VEC(struct result) made;
    bool over;
};

/* False: there is none now. */
static bool do_given(struct server *server)
{
    struct result result = {.job = NO_JOB};
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    if (server->given.n > 0)
        result.job = server->given.at[--server->given.n];
    if (result.job == NO_JOB)
        return false;
    struct diag diag = DIAG_INIT;
    enum status status = server->loop->job(server->loop->self, result.job, &diag);
    pack_result(&result.bytes, server->loop, result.job, status, &diag);
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    vec_push(&server->made, result);
    return true;
}

static bool send_result(struct server *server)
{
    struct result result = {.job = NO_JOB};
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    if (server->made.n > 0)
        result = server->made.at[--server->made.n];
    if (result.job == NO_JOB)
        return false;
    struct rank_message message = {.kind = RANK_RESULT, .loop = server->crew->loops, .job = result.job};
    rank_send(server->crew, 0, &message, result.bytes.at, result.bytes.n);
    pack_free(&result.bytes);
    return true;
}

static void take_answers(struct owner *owner, struct unpack *from, int n)
{
    for (int i = 0; i < n; i++) {
        struct diag diag = DIAG_INIT;
        int job = 0;
        size_t bytes = 0;
        UNPACK(from, job);
        UNPACK(from, bytes);
        enum status status = unpack_result(from->at, bytes, owner->loop, job, &diag);
        owner->worst = status > owner->worst ? status : owner->worst;
        diag_set_keep(&owner->diags, job, &diag);
        from->at += bytes;
        from->left -= bytes;
    }
}

/* A message of rank 0, if there is one. */
static bool obey(struct server *server, struct owner *owner)
{
    struct rank_message message;
    struct unpack rest;
    int from;
    if (!rank_receive(server->crew, &from, &message, &rest))
        return false;
    if (message.kind == RANK_QUIT)
        rank_quit(server->crew);
    BUG_IF(message.loop != server->crew->loops, "a message of loop %d in loop %d", message.loop, server->crew->loops);
    if (message.kind == RANK_END)
        take_answers(owner, &rest, message.value);
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    {
        if (message.kind == RANK_END)
            server->over = true;
        else
            vec_push(&server->given, message.job);
    }
    return true;
}

static bool is_over(struct server *server)
{
    bool over;
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    over = server->over;
    return over;
}

static void serve(struct owner *owner)
{
    struct server server = {.crew = owner->crew, .loop = owner->loop};
#ifdef _OPENMP
#pragma omp parallel num_threads(threads_count() + 1)
#endif
    while (!is_over(&server)) {
        bool talks = thread_number() == 0;
        bool goes_on = talks ? obey(&server, owner) || send_result(&server) || (is_alone() && do_given(&server))
                             : do_given(&server);
        if (!goes_on)
            rank_doze();
    }
    vec_free(&server.given);
    vec_free(&server.made);
}

/* ---- the loop ---- */

static void fill_queue(struct owner *owner)
{
    const struct crew_loop *loop = owner->loop;
    owner->queue = xcalloc((size_t)loop->n + 1, sizeof *owner->queue);
    for (int i = 0; i < loop->n; i++)
        if (!loop->known || !loop->known[loop->order[i]])
            owner->queue[owner->last++] = loop->order[i];
}

enum status crew_run(struct crew *crew, const struct crew_loop *loop, struct diag *diag)
{
    struct owner owner = {.crew = crew, .loop = loop, .diags = diag_set_begin(loop->n)};
    bool mpi = crew && crew->mpi;
    BUG_IF(mpi && loop->everyone && !loop->pack, "this process alone can do what everyone waits for");
    fill_queue(&owner);
    if (crew)
        crew->loops++;
    if (!crew_is_owner(crew)) {
        serve(&owner);
    } else if (!mpi || (owner.worst = ranks_greet(crew, diag)) == STATUS_OK) {
        run_here(&owner, mpi && loop->pack);
        if (mpi)
            end_remote(&owner);
    }
    free(owner.queue);
    diag_set_end(&owner.diags, diag);
    return owner.worst;
}

struct weighed {
    double cost;
    int job;
};

static int costlier(const void *a, const void *b)
{
    const struct weighed *one = a, *two = b;
    if (one->cost != two->cost)
        return one->cost < two->cost ? 1 : -1;
    return one->job < two->job ? 1 : -1;
}

int *crew_order(const double *cost, int n)
{
    struct weighed *weighed = xcalloc((size_t)n + 1, sizeof *weighed);
    int *order = xcalloc((size_t)n + 1, sizeof *order);
    for (int i = 0; i < n; i++)
        weighed[i] = (struct weighed){cost[i], i};
    qsort(weighed, (size_t)n, sizeof *weighed, costlier);
    for (int i = 0; i < n; i++)
        order[i] = weighed[i].job;
    free(weighed);
    return order;
}

static int least(const double *loads, int n)
{
    int found = 0;
    for (int s = 1; s < n; s++)
        if (loads[s] < loads[found])
            found = s;
    return found;
}

void crew_shard(bool *mine, const double *cost, const int *with, int n, int shard, int shards)
{
    double *loads = xcalloc((size_t)shards, sizeof *loads), *sums = xcalloc((size_t)n + 1, sizeof *sums);
    for (int i = 0; i < n; i++) {
        BUG_IF(with && (with[i] < 0 || with[i] > i || with[with[i]] != with[i]), "job %d is with %d", i, with[i]);
        sums[with ? with[i] : i] += cost[i];
    }
    int *order = crew_order(sums, n);
    for (int k = 0; k < n; k++) {
        int i = order[k];
        if (with && with[i] != i)
            continue;
        int chosen = least(loads, shards);
        loads[chosen] += sums[i];
        mine[i] = chosen == shard - 1;
    }
    for (int i = 0; i < n && with; i++)
        mine[i] = mine[with[i]];
    free(order);
    free(loads);
    free(sums);
}
