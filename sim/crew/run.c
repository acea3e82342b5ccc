/* The loop: threads of this process, and of other ranks. */
#include "base/diag_set.h"
#include "base/threads.h"
#include "base/vec.h"
#include "crew/ranks.h"

#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

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
