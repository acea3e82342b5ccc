#include "engine/engine.h"

#include "base/digest.h"

enum { ARITY = 4 };

void engine_init(struct engine *engine)
{
    *engine = (struct engine){.digest = DIGEST_INIT};
}

void engine_release(struct engine *engine)
{
    vec_free(&engine->heap);
}

uint32_t engine_register(struct engine *engine, engine_handler handle, void *self)
{
    BUG_IF(engine->n_kinds == ENGINE_MAX_KINDS, "more than %d kinds of events", ENGINE_MAX_KINDS);
    engine->kinds[engine->n_kinds].handle = handle;
    engine->kinds[engine->n_kinds].self = self;
    return engine->n_kinds++;
}

static bool before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->seq < b->seq);
}

void engine_at(struct engine *engine, ps_t time, uint32_t kind, uint32_t target, uint64_t arg)
{
    BUG_IF(time < engine->now, "event of kind %u at %lld ps, %lld ps ago", kind, (long long)time,
        (long long)(engine->now - time));
    struct event event = {time, engine->seq++, kind, target, arg};
    vec_reserve(&engine->heap, engine->heap.n + 1);
    struct event *heap = engine->heap.at;
    int hole = engine->heap.n++;
    while (hole > 0) {
        int parent = (hole - 1) / ARITY;
        if (!before(&event, &heap[parent]))
            break;
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = event;
}

static struct event pop(struct engine *engine)
{
    struct event *heap = engine->heap.at;
    struct event first = heap[0], last = heap[--engine->heap.n];
    int n = engine->heap.n, hole = 0;
    for (;;) {
        int child = hole * ARITY + 1, end = child + ARITY < n ? child + ARITY : n;
        if (child >= n)
            break;
        int least = child;
        while (++child < end)
            if (before(&heap[child], &heap[least]))
                least = child;
        if (!before(&heap[least], &last))
            break;
        heap[hole] = heap[least];
        hole = least;
    }
    if (n > 0)
        heap[hole] = last;
    return first;
}

void engine_run(struct engine *engine)
{
    while (engine->heap.n > 0 && !engine->stopped) {
        struct event event = pop(engine);
        engine->now = event.time;
        engine->events++;
        engine->digest = digest_word(engine->digest, (uint64_t)event.time);
        engine->digest = digest_word(engine->digest, ((uint64_t)event.kind << 32) | event.target);
        engine->kinds[event.kind].handle(engine->kinds[event.kind].self, &event);
    }
}

void engine_stop(struct engine *engine)
{
    engine->stopped = true;
}
