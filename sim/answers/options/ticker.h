/* A function that a thread calls every so often while the program does something else: what
 * commands say while they simulate. ticker_end() does not wait for the pause between two calls: a
 * command that takes 5 ms has ended after 5 ms. */
#ifndef FLOPCAST_OPTIONS_TICKER_H
#define FLOPCAST_OPTIONS_TICKER_H

struct ticker;

/* Calls tick(self) every every_s seconds, the first time after one of them, until ticker_end().
 * Returns NULL where there is no thread to be had: nothing is called then. NULL is fine below. */
struct ticker *ticker_begin(double every_s, void (*tick)(void *self), void *self);
/* No tick between the two: what ticks read changes here. */
void ticker_lock(struct ticker *ticker);
void ticker_unlock(struct ticker *ticker);
/* After a tick that is under way; there is none later. */
void ticker_end(struct ticker *ticker);
/* By a clock that nobody sets, from a moment that does not matter. */
double ticker_now_s(void);

#endif
