/* The loop: threads, or worker processes here and behind other ranks. */
#include "base/diag_set.h"
#include "crew/dispatch.h"
#include "crew/local.h"
#include "crew/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

static const double BRIEFEST_S = 50e-6, LONGEST_S = 2e-3; /* between two looks for messages of MPI, which wake nobody */

struct owner {
    struct crew *crew;
    const struct crew_loop *loop;
    struct dispatch dispatch;
    struct local local;
    struct diag_set diags;
    struct diag *diag; /* what is said beside what jobs say */
    enum status worst;
    struct pack answers; /* of a loop for everyone: job, number of bytes, bytes */
    int n_answers;
};

/* ---- threads ---- */

static void run_threads(struct owner *owner)
{
    const struct crew_loop *loop = owner->loop;
    struct dispatch *dispatch = &owner->dispatch;
    int machine = dispatch_add_machine(dispatch, 0);
    dispatch->bytes = NULL; /* memory is limited by processes alone */
#ifdef _OPENMP
#pragma omp parallel
#endif
    {
        int worker = 0, job = 0;
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
        worker = dispatch_add_worker(dispatch, machine);
        while (job != DISPATCH_NONE) {
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
            job = dispatch_next(dispatch, worker);
            if (job == DISPATCH_NONE)
                continue;
            struct diag own = DIAG_INIT;
            enum status status = loop->job(loop->self, job, &own);
            diag_set_keep(&owner->diags, job, &own);
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
            {
                dispatch_done(dispatch, worker);
                owner->worst = status > owner->worst ? status : owner->worst;
                if (loop->ended && !loop->ended(loop->self, job, status))
                    dispatch_stop(dispatch);
            }
        }
    }
}

/* ---- processes ---- */

static void add_workers(struct owner *owner)
{
    struct crew *crew = owner->crew;
    struct dispatch *dispatch = &owner->dispatch;
    int ranks = crew->mpi ? crew->mpi->ranks : 1;
    int *machines = xcalloc((size_t)ranks, sizeof *machines); /* by its lowest rank; 0 is that of this process */
    dispatch_add_machine(dispatch, crew->bytes);
    for (int w = 0; w < crew->jobs; w++)
        dispatch_add_worker(dispatch, 0);
    for (int r = 1; r < ranks; r++) {
        struct rank *rank = &crew->ranks[r];
        int lowest = rank->hello.machine;
        rank->first = dispatch->workers.n;
        if (rank->left)
            continue;
        if (lowest > 0 && machines[lowest] == 0)
            machines[lowest] = dispatch_add_machine(dispatch, rank->hello.bytes);
        for (int w = 0; w < rank->hello.jobs; w++)
            dispatch_add_worker(dispatch, machines[lowest]);
    }
    free(machines);
}

/* The rank that has this worker. */
static int rank_of(const struct owner *owner, int worker)
{
    int rank = 0;
    for (int r = 1; owner->crew->mpi && r < owner->crew->mpi->ranks; r++)
        if (owner->crew->ranks[r].first <= worker)
            rank = r;
    return rank;
}

static void report_plan(const struct owner *owner)
{
    const struct crew_loop *loop = owner->loop;
    const struct dispatch *dispatch = &owner->dispatch;
    struct crew_plan plan = {.noun = loop->noun,
        .jobs = dispatch_waiting(dispatch),
        .ranks = owner->crew->mpi ? owner->crew->mpi->ranks : 1,
        .workers = dispatch->workers.n};
    if (!loop->plan || plan.jobs == 0)
        return;
    for (int i = 0; i < loop->n && loop->bytes; i++)
        if ((!loop->known || !loop->known[i]) && loop->bytes[i] > plan.largest_bytes)
            plan.largest_bytes = loop->bytes[i];
    for (int m = 0; m < dispatch->machines.n; m++) {
        int workers = 0;
        for (int w = 0; w < dispatch->workers.n; w++)
            workers += dispatch->workers.at[w].machine == m;
        double available = dispatch->machines.at[m].bytes;
        int at_once = loop->bytes ? dispatch_at_once(loop->bytes, loop->known, loop->n, workers, available) : workers;
        if (m == 0 || at_once * plan.machine_workers < plan.at_once * workers) {
            plan.at_once = at_once;
            plan.machine_workers = workers;
            plan.available_bytes = available;
        }
    }
    loop->plan(loop->self, &plan);
}

static void hand_out(struct owner *owner)
{
    struct dispatch *dispatch = &owner->dispatch;
    for (int w = 0; w < dispatch->workers.n; w++) {
        int job = dispatch->workers.at[w].job == DISPATCH_NONE ? dispatch_next(dispatch, w) : DISPATCH_NONE;
        if (job == DISPATCH_NONE)
            continue;
        int rank = rank_of(owner, w);
        if (rank == 0) {
            local_give(&owner->local, w, job);
            continue;
        }
        struct rank_message message = {
            .kind = RANK_JOB, .loop = owner->crew->loops, .worker = w - owner->crew->ranks[rank].first, .job = job};
        rank_send(owner->crew, rank, &message, NULL, 0);
    }
}

static void lose(struct owner *owner, int worker, int ended_by)
{
    static const struct source_pos nowhere = {0};
    bool failed = false;
    int job = dispatch_lost(&owner->dispatch, worker, &failed);
    char how[64] = "exited";
    if (ended_by > 0)
        snprintf(how, sizeof how, "was ended by signal %d (%s)", ended_by, strsignal(ended_by));
    if (failed) {
        owner->worst = diag_io(owner->diag, nowhere,
            "%s %d of %d cannot be done: its worker %s, the third time; if the machine has too little memory, take one "
            "with more",
            owner->loop->noun, job + 1, owner->loop->n, how);
        return;
    }
    diag_warn(owner->diag, nowhere, "the worker of %s %d of %d %s; the %s is done again", owner->loop->noun, job + 1,
        owner->loop->n, how, owner->loop->noun);
}

static void add_answer(struct owner *owner, int job, const struct pack *answer)
{
    PACK(&owner->answers, job);
    PACK(&owner->answers, answer->n);
    pack_bytes(&owner->answers, answer->at, answer->n);
    owner->n_answers++;
}

static void take(struct owner *owner, const struct answer *answer, int worker)
{
    const struct crew_loop *loop = owner->loop;
    if (answer->lost) {
        lose(owner, worker, answer->ended_by);
        return;
    }
    struct diag own = DIAG_INIT;
    int job = dispatch_done(&owner->dispatch, worker);
    BUG_IF(job != answer->job, "an answer to job %d, not %d", answer->job, job);
    enum status status = answer_unpack(&answer->bytes, loop, job, &own);
    diag_set_keep(&owner->diags, job, &own);
    owner->worst = status > owner->worst ? status : owner->worst;
    if (loop->ended && !loop->ended(loop->self, job, status))
        dispatch_stop(&owner->dispatch);
    if (loop->everyone && owner->crew->mpi)
        add_answer(owner, job, &answer->bytes);
}

/* The rank's command has ended, with none of its jobs under way or all of them. */
static void dismiss(struct owner *owner, int r)
{
    struct rank *rank = &owner->crew->ranks[r];
    rank->left = true;
    for (int w = rank->first; w < rank->first + rank->hello.jobs; w++) {
        if (owner->dispatch.workers.at[w].job != DISPATCH_NONE)
            lose(owner, w, 0);
        dispatch_remove(&owner->dispatch, w);
    }
}

/* A message of another rank, if there is one. */
static bool take_remote(struct owner *owner, struct answer *answer)
{
    struct rank_message message;
    struct unpack rest;
    int from;
    if (!owner->crew->mpi || !rank_receive(owner->crew, &from, &message, &rest))
        return false;
    if (message.kind == RANK_LEAVES)
        dismiss(owner, from);
    if (message.kind != RANK_ANSWER)
        return true;
    answer->lost = message.lost;
    answer->ended_by = message.value;
    answer->job = message.job;
    answer->bytes.n = 0;
    pack_bytes(&answer->bytes, rest.at, rest.left);
    take(owner, answer, owner->crew->ranks[from].first + message.worker);
    return true;
}

static void run_processes(struct owner *owner)
{
    struct answer answer = {0};
    double wait_s = BRIEFEST_S;
    local_begin(&owner->local, owner->crew->jobs, owner->loop);
    for (;;) {
        hand_out(owner);
        if (owner->dispatch.running == 0)
            break;
        bool came = take_remote(owner, &answer);
        if (!came && local_next(&owner->local, owner->crew->mpi ? wait_s : -1, &answer)) {
            take(owner, &answer, answer.worker);
            came = true;
        }
        wait_s = came ? BRIEFEST_S : wait_s < LONGEST_S ? 2 * wait_s : LONGEST_S;
    }
    local_end(&owner->local);
    pack_free(&answer.bytes);
}

/* What was not done, as it is here: other ranks may not know it. */
static void add_known(struct owner *owner, int job)
{
    struct pack answer = {0};
    answer_pack_made(&answer, owner->loop, job, STATUS_OK, &DIAG_INIT);
    add_answer(owner, job, &answer);
    pack_free(&answer);
}

/* To ranks that serve: the loop is over, and, if everyone wants to know, what came out. */
static void end_remote(struct owner *owner)
{
    for (int i = 0; i < owner->loop->n && owner->loop->everyone && owner->loop->known; i++)
        if (owner->loop->known[i])
            add_known(owner, i);
    struct rank_message message = {.kind = RANK_END, .loop = owner->crew->loops, .value = owner->n_answers};
    for (int r = 1; r < owner->crew->mpi->ranks; r++)
        if (!owner->crew->ranks[r].left)
            rank_send(owner->crew, r, &message, owner->answers.at, owner->answers.n);
    pack_free(&owner->answers);
}

/* ---- another rank ---- */

static void take_answers(struct owner *owner, struct unpack *from, int n)
{
    struct pack answer = {0};
    for (int i = 0; i < n; i++) {
        struct diag own = DIAG_INIT;
        int job = 0;
        size_t bytes = 0;
        UNPACK(from, job);
        UNPACK(from, bytes);
        answer.n = 0;
        pack_bytes(&answer, from->at, bytes);
        from->at += bytes;
        from->left -= bytes;
        enum status status = answer_unpack(&answer, owner->loop, job, &own);
        diag_set_keep(&owner->diags, job, &own);
        owner->worst = status > owner->worst ? status : owner->worst;
    }
    pack_free(&answer);
}

/* False: the loop is over. */
static bool obey(struct owner *owner)
{
    struct rank_message message;
    struct unpack rest;
    int from;
    while (rank_receive(owner->crew, &from, &message, &rest)) {
        if (message.kind == RANK_QUIT)
            rank_quit(owner->crew);
        BUG_IF(message.loop != owner->crew->loops, "a message of loop %d in loop %d", message.loop, owner->crew->loops);
        if (message.kind == RANK_END) {
            take_answers(owner, &rest, message.value);
            return false;
        }
        local_give(&owner->local, message.worker, message.job);
    }
    return true;
}

static void serve(struct owner *owner)
{
    struct answer answer = {0};
    double wait_s = BRIEFEST_S;
    local_begin(&owner->local, owner->crew->jobs, owner->loop);
    while (obey(owner)) {
        bool came = local_next(&owner->local, wait_s, &answer);
        wait_s = came ? BRIEFEST_S : wait_s < LONGEST_S ? 2 * wait_s : LONGEST_S;
        if (!came)
            continue;
        struct rank_message message = {.kind = RANK_ANSWER,
            .loop = owner->crew->loops,
            .worker = answer.worker,
            .job = answer.job,
            .lost = answer.lost,
            .value = answer.ended_by};
        rank_send(owner->crew, 0, &message, answer.bytes.at, answer.lost ? 0 : answer.bytes.n);
    }
    local_end(&owner->local);
    pack_free(&answer.bytes);
}

/* ---- the loop ---- */

/* One worker without MPI has nothing to gain from another process. */
static void run_here(struct owner *owner)
{
    const struct crew *crew = owner->crew;
    int jobs = dispatch_waiting(&owner->dispatch);
    if (crew && owner->loop->pack && (crew->mpi || (crew->jobs > 1 && jobs > 1))) {
        add_workers(owner);
        report_plan(owner);
        run_processes(owner);
        return;
    }
    BUG_IF(crew && crew->mpi && owner->loop->everyone && jobs > 0, "threads alone can do what everyone waits for");
    run_threads(owner);
}

enum status crew_run(struct crew *crew, const struct crew_loop *loop, struct diag *diag)
{
    struct owner owner = {.crew = crew, .loop = loop, .diags = diag_set_begin(loop->n), .diag = diag};
    bool serves = !crew_is_owner(crew);
    dispatch_begin(&owner.dispatch, loop->n, loop->order, loop->known, loop->bytes);
    if (crew)
        crew->loops++;
    if (serves) {
        serve(&owner);
    } else if (!crew || !crew->mpi) {
        run_here(&owner);
    } else if ((owner.worst = ranks_greet(crew, diag)) == STATUS_OK) {
        run_here(&owner);
        end_remote(&owner);
    }
    dispatch_end(&owner.dispatch);
    diag_set_end(&owner.diags, diag);
    return owner.worst;
}
