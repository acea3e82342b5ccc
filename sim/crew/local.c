#include "crew/local.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { QUIT = -1 };

/* ---- bytes over a socket, all or none ---- */

static bool send_all(int fd, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    while (n > 0) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool receive_all(int fd, void *out, size_t n)
{
    unsigned char *at = out;
    while (n > 0) {
        ssize_t got = recv(fd, at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

/* ---- what a job made ---- */

void answer_pack_made(
    struct pack *out, const struct crew_loop *loop, int job, enum status status, const struct diag *diag)
{
    out->n = 0;
    PACK(out, status);
    PACK(out, diag->used);
    if (diag->used > 0)
        PACK(out, *diag);
    loop->pack(loop->self, job, out);
}

void answer_pack(struct pack *out, const struct crew_loop *loop, int job)
{
    struct diag diag = DIAG_INIT;
    enum status status = loop->job(loop->self, job, &diag);
    answer_pack_made(out, loop, job, status, &diag);
}

enum status answer_unpack(const struct pack *bytes, const struct crew_loop *loop, int job, struct diag *diag)
{
    struct unpack from = {bytes->at, bytes->n};
    enum status status = STATUS_OK;
    size_t used = 0;
    UNPACK(&from, status);
    UNPACK(&from, used);
    if (used > 0)
        UNPACK(&from, *diag);
    loop->unpack(loop->self, job, &from);
    return status;
}

/* ---- the worker ---- */

/* Signals of the terminal are for the program that started it, which lets jobs end. */
static void set_up_worker(const struct local *local, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (int i = 0; i < local->n; i++)
        if (local->workers[i].pid > 0)
            close(local->workers[i].fd);
    int error_output = crew_error_output();
    if (error_output >= 0)
        dup2(error_output, STDERR_FILENO);
}

static _Noreturn void work(struct local *local, int fd, pid_t parent)
{
    struct pack bytes = {0};
    int job = 0;
    set_up_worker(local, parent);
    while (receive_all(fd, &job, sizeof job) && job != QUIT) {
        answer_pack(&bytes, local->loop, job);
        if (!send_all(fd, &bytes.n, sizeof bytes.n) || !send_all(fd, bytes.at, bytes.n))
            _exit(1);
    }
    _exit(0); /* not exit(): what is buffered and open is the other process's */
}

static void start(struct local *local, struct local_worker *worker)
{
    int ends[2];
    pid_t parent = getpid();
    BUG_IF(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0, "socketpair: %s", strerror(errno));
    pid_t pid = fork();
    BUG_IF(pid < 0, "no worker process can be started: %s; give a smaller --jobs", strerror(errno));
    if (pid == 0) {
        close(ends[0]);
        work(local, ends[1], parent);
    }
    close(ends[1]);
    worker->pid = pid;
    worker->fd = ends[0];
}

/* The process has ended, or will as nobody talks to it. */
static int bury(struct local_worker *worker)
{
    int how = 0;
    close(worker->fd);
    while (waitpid(worker->pid, &how, 0) < 0 && errno == EINTR)
        continue;
    worker->pid = 0;
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

/* ---- the other side ---- */

void local_begin(struct local *local, int n, const struct crew_loop *loop)
{
    *local = (struct local){.loop = loop, .workers = xcalloc((size_t)n + 1, sizeof *local->workers), .n = n};
    for (int i = 0; i < n; i++)
        local->workers[i].job = -1;
}

void local_give(struct local *local, int worker, int job)
{
    struct local_worker *own = &local->workers[worker];
    own->job = job;
    if (own->pid > 0 && send_all(own->fd, &job, sizeof job))
        return;
    if (own->pid > 0) /* it was killed while it was idle */
        bury(own);
    start(local, own);
    send_all(own->fd, &job, sizeof job); /* if that fails, local_next() sees why */
}

static void take(struct local_worker *worker, struct answer *out)
{
    size_t n = 0;
    out->job = worker->job;
    worker->job = -1;
    out->lost = !receive_all(worker->fd, &n, sizeof n);
    out->bytes.n = 0;
    if (!out->lost) {
        pack_reserve(&out->bytes, n);
        out->lost = !receive_all(worker->fd, out->bytes.at, n);
        out->bytes.n = n;
    }
    out->ended_by = out->lost ? bury(worker) : 0;
}

bool local_next(struct local *local, double timeout_s, struct answer *out)
{
    struct pollfd *fds = xcalloc((size_t)local->n + 1, sizeof *fds);
    struct timespec timeout = {(time_t)timeout_s, (long)(fmod(timeout_s, 1) * 1e9)};
    for (int i = 0; i < local->n; i++)
        fds[i] = (struct pollfd){.fd = local->workers[i].job >= 0 ? local->workers[i].fd : -1, .events = POLLIN};
    int ready = ppoll(fds, (nfds_t)local->n, timeout_s < 0 ? NULL : &timeout, NULL);
    bool found = false;
    for (int k = 0; k < local->n && ready > 0 && !found; k++) {
        int i = (local->next + k) % local->n;
        if (fds[i].fd < 0 || !fds[i].revents)
            continue;
        out->worker = i;
        take(&local->workers[i], out);
        local->next = i + 1;
        found = true;
    }
    free(fds);
    return found;
}

void local_end(struct local *local)
{
    int quit = QUIT;
    for (int i = 0; i < local->n; i++)
        if (local->workers[i].pid > 0)
            send_all(local->workers[i].fd, &quit, sizeof quit);
    for (int i = 0; i < local->n; i++)
        if (local->workers[i].pid > 0)
            bury(&local->workers[i]);
    free(local->workers);
    *local = (struct local){0};
}
