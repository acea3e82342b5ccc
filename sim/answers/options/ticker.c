/* A thread that waits for a condition, which is signalled at the end alone, and ticks each time
 * that the wait runs out of time. The mutex is held except in the wait, so no tick is beside
 * ticker_lock().
 *
 * What is subtle: the condition waits by the monotonic clock, as somebody may set the other. */
#include "options/ticker.h"

#include "base/arena.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct ticker {
    double every_s;
    void (*tick)(void *self);
    void *self;
    bool ended;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t end;
};

double ticker_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *ticker_go(void *self)
{
    struct ticker *ticker = self;
    pthread_mutex_lock(&ticker->mutex);
    while (!ticker->ended) {
        double next_s = ticker_now_s() + ticker->every_s;
        struct timespec next = {.tv_sec = (time_t)next_s};
        next.tv_nsec = (long)(1e9 * (next_s - (double)next.tv_sec));
        int late = 0;
        while (!ticker->ended && late == 0)
            late = pthread_cond_timedwait(&ticker->end, &ticker->mutex, &next);
        if (!ticker->ended)
            ticker->tick(ticker->self);
    }
    pthread_mutex_unlock(&ticker->mutex);
    return NULL;
}

static void ticker_free(struct ticker *ticker)
{
    pthread_cond_destroy(&ticker->end);
    pthread_mutex_destroy(&ticker->mutex);
    free(ticker);
}

struct ticker *ticker_begin(double every_s, void (*tick)(void *self), void *self)
{
    struct ticker *ticker = xcalloc(1, sizeof *ticker);
    *ticker = (struct ticker){.every_s = every_s, .tick = tick, .self = self};
    pthread_mutex_init(&ticker->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&ticker->end, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&ticker->thread, NULL, ticker_go, ticker) == 0)
        return ticker;
    ticker_free(ticker);
    return NULL;
}

void ticker_lock(struct ticker *ticker)
{
    if (ticker)
        pthread_mutex_lock(&ticker->mutex);
}

void ticker_unlock(struct ticker *ticker)
{
    if (ticker)
        pthread_mutex_unlock(&ticker->mutex);
}

void ticker_end(struct ticker *ticker)
{
    if (!ticker)
        return;
    pthread_mutex_lock(&ticker->mutex);
    ticker->ended = true;
    pthread_cond_signal(&ticker->end);
    pthread_mutex_unlock(&ticker->mutex);
    pthread_join(ticker->thread, NULL);
    ticker_free(ticker);
}
