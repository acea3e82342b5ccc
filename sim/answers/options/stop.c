/* What SIGINT, SIGTERM and SIGHUP do to a command that keeps what it has finished.
 *
 * Handlers set a flag and write a text, no more; that of a command without an answer so far
 * raises the signal again. SA_RESETHAND puts the default back, so the same signal once more ends
 * the program at once. Signals that were ignored (nohup) stay so. stop_leave() raises the signal
 * again, so that the caller sees how the program ended. */
#include "options/stop.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* A handler may only set such a variable. */
static volatile sig_atomic_t signal_seen;

static void note_quietly(int signal_number)
{
    signal_seen = signal_number;
}

static void note(int signal_number)
{
    static const char text[] =
        "\nflopcast: ending after the points that are being simulated; once more ends at once\n";
    signal_seen = signal_number;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written; /* nothing can be done about it */
}

/* SA_RESETHAND: raised again, the signal ends the program where the handler returns. */
static void stop_end(int signal_number)
{
    static const char text[] = STOP_NOTHING_RANKED;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    raise(signal_number);
}

void stop_watch(enum stop_when when)
{
    static void (*const handlers[])(int) = {
        [STOP_AFTER] = note, [STOP_NOW] = note_quietly, [STOP_WITHOUT_ANSWER] = stop_end};
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before,
            watch = {.sa_handler = handlers[when], .sa_flags = (int)SA_RESETHAND | SA_RESTART};
        sigemptyset(&watch.sa_mask);
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &watch, NULL);
    }
}

bool stop_asked(void)
{
    return signal_seen != 0;
}

void stop_leave(void)
{
    fflush(stdout);
    signal(signal_seen, SIG_DFL);
    raise(signal_seen);
}
