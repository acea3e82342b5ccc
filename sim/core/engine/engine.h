/* Discrete-event engine: a clock, a pending-event set and handlers. It knows no GPU.
 *
 * An event is a small value in the heap itself; scheduling never allocates once the heap has grown.
 * Events of the same time run in the order in which they were scheduled (seq is the tie-break), so
 * a run is the same on every machine. A superseded event is not removed: it carries the epoch of
 * its target in arg, and its handler returns at once when the epoch has moved on. An event later
 * than PS_HORIZON is not kept: it ends the run, which is then overlong.
 *
 * Cost: O(log n) a push and a pop on a 4-ary heap (shallower than a binary one: fewer cache lines a
 * pop); O(1) for an event of the present instant, which waits in line: all events of this instant
 * in the heap were scheduled earlier.
 *
 * Where many events are pending, what one costs is mostly the wait for the memory of its target. So
 * before a handler runs, the event that is likely to be next is prepared: its kind may have its
 * target's memory brought near. */
#ifndef FLOPCAST_ENGINE_ENGINE_H
#define FLOPCAST_ENGINE_ENGINE_H

#include "base/units.h"
#include "base/vec.h"

#include <stdint.h>

struct event {
    ps_t time;
    uint64_t seq;
    uint32_t kind;   /* as returned by engine_register */
    uint32_t target; /* meaning belongs to the handler */
    uint64_t arg;
};

typedef void (*engine_handler)(void *self, const struct event *event);
/* May prefetch, and change nothing. */
typedef void (*engine_preparer)(const void *self, const struct event *event);

enum { ENGINE_MAX_KINDS = 64 }; /* nine jobs on one cluster */

struct engine {
    ps_t now;
    uint64_t seq;    /* of the next event */
    uint64_t events; /* executed */
    uint64_t digest; /* over (time, kind, target) of all executed events */
    bool stopped;
    bool overlong; /* stopped because an event lay beyond the horizon */
    bool prepares; /* some kind does */
    bool vacant; /* the event that runs was the first of the heap, and the next one scheduled takes
                    its place */
    VEC(struct event) heap;
    VEC(struct event) line; /* of the present instant, in the order in which they were scheduled */
    int in_line;            /* the first of them that has not run */
    struct {
        engine_handler handle;
        engine_preparer prepare; /* NULL: nothing to do */
        void *self;
    } kinds[ENGINE_MAX_KINDS];
    uint32_t n_kinds;
};

void engine_init(struct engine *engine);
void engine_release(struct engine *engine);

uint32_t engine_register(struct engine *engine, engine_handler handle, void *self);
void engine_prepare(struct engine *engine, uint32_t kind, engine_preparer prepare);

/* The clock of an engine that has had no event begins there. */
void engine_begin_at(struct engine *engine, ps_t time);

/* BUG when time lies in the past. */
void engine_at(struct engine *engine, ps_t time, uint32_t kind, uint32_t target, uint64_t arg);

/* What engine_at() would schedule for the handler that runs now, where it is what runs next: then
 * the clock, the digest and the count have it, and the handler goes on with it itself. False:
 * something else comes before it, and nothing has changed. */
bool engine_goes_on(struct engine *engine, ps_t time, uint32_t kind, uint32_t target);

/* Execute events until none is left or a handler has called engine_stop. */
void engine_run(struct engine *engine);
void engine_stop(struct engine *engine);

/* The clock and all that is pending are later by that, >= 0; in the same order. Between events. */
void engine_shift(struct engine *engine, ps_t by);

#endif
