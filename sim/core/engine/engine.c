/* A 4-ary heap of events by value, a line for events of the present instant, and the loop over
 * both.
 *
 * An event of the present instant goes to the line. Those of this instant in the heap were
 * scheduled earlier, so they run first. While the first event of the heap runs, its place is
 * vacant: the first event that its handler schedules sinks from there, which saves a removal and a
 * push. Only where none comes does close_vacancy() move the last event there.
 *
 * The digest has time, kind and target of each event in order, not its arg. */
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
    vec_free(&engine->line);
}

uint32_t engine_register(struct engine *engine, engine_handler handle, void *self)
{
    BUG_IF(engine->n_kinds == ENGINE_MAX_KINDS, "more than %d kinds of events", ENGINE_MAX_KINDS);
    engine->kinds[engine->n_kinds].handle = handle;
    engine->kinds[engine->n_kinds].self = self;
    return engine->n_kinds++;
}

void engine_prepare(struct engine *engine, uint32_t kind, engine_preparer prepare)
{
    engine->kinds[kind].prepare = prepare;
    engine->prepares = true;
}

void engine_begin_at(struct engine *engine, ps_t time)
{
    BUG_IF(
        engine->seq > 0 || time < 0, "%llu events were scheduled", (unsigned long long)engine->seq);
    engine->now = time;
}

/* Without a branch: no processor predicts which of two events comes first. */
static bool before(const struct event *a, const struct event *b)
{
    return (a->time < b->time) | ((a->time == b->time) & (a->seq < b->seq));
}

/* The event of sink() and rise() is to stay in registers: by value through memory it is written
 * field by field and read back in halves, which waits until every store before it has left the core
 * (a tenth of a run's time, measured). */
#define IN_REGISTERS static inline __attribute__((always_inline))

/* The first of the events from a first child on that are below the same one. */
IN_REGISTERS int first_child(const struct event *heap, int n, int child)
{
    int least = child;
    if (child + ARITY <= n) {
        int left = child + before(&heap[child + 1], &heap[child]);
        int right = child + 2 + before(&heap[child + 3], &heap[child + 2]);
        return before(&heap[right], &heap[left]) ? right : left;
    }
    while (++child < n)
        least = before(&heap[child], &heap[least]) ? child : least;
    return least;
}

/* Which child the way down takes is not known yet; the events below all of them lie side by side,
 * so they are fetched whichever it is. The top of the heap is in the cache: 8,192 events, 256 KiB,
 * as measured (bench_engine on AMD EPYC: with 1,000,000 events pending 1.7 to 2 times as fast,
 * nothing lost with fewer). */
IN_REGISTERS void prefetch_below(const struct event *heap, int n, int child)
{
    enum { TOP = 8192, CACHE_LINE = 64, A_LINE = CACHE_LINE / sizeof(struct event) };
    int first = child * ARITY + 1;
    if (first < TOP || first >= n)
        return;
    int end = first + ARITY * ARITY < n ? first + ARITY * ARITY : n;
    for (int i = first; i < end; i += A_LINE)
        __builtin_prefetch(&heap[i]);
}

/* From the hole down: the event takes the place above the first children that come after it. */
IN_REGISTERS void sink(struct event *heap, int n, int hole, struct event event)
{
    for (int child; (child = hole * ARITY + 1) < n;) {
        prefetch_below(heap, n, child);
        int least = first_child(heap, n, child);
        if (!before(&heap[least], &event))
            break;
        heap[hole] = heap[least];
        hole = least;
    }
    heap[hole] = event;
}

IN_REGISTERS void rise(struct event *heap, int hole, struct event event)
{
    while (hole > 0) {
        int parent = (hole - 1) / ARITY;
        if (!before(&event, &heap[parent]))
            break;
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = event;
}

void engine_at(struct engine *engine, ps_t time, uint32_t kind, uint32_t target, uint64_t arg)
{
    BUG_IF(time < engine->now, "event of kind %u at %lld ps, %lld ps ago", kind, (long long)time,
        (long long)(engine->now - time));
    if (time > PS_HORIZON) {
        engine->overlong = engine->stopped = true;
        return;
    }
    struct event event = {time, engine->seq++, kind, target, arg};
    if (time == engine->now) {
        vec_push(&engine->line, event);
        return;
    }
    if (engine->vacant) {
        engine->vacant = false;
        sink(engine->heap.at, engine->heap.n, 0, event);
        return;
    }
    vec_reserve(&engine->heap, engine->heap.n + 1);
    rise(engine->heap.at, engine->heap.n++, event);
}

/* No handler scheduled an event in the place of the one that ran: the last event moves there. */
static void close_vacancy(struct engine *engine)
{
    struct event *heap = engine->heap.at;
    if (!engine->vacant)
        return;
    engine->vacant = false;
    if (--engine->heap.n > 0)
        sink(heap, engine->heap.n, 0, heap[engine->heap.n]);
}

static void count_event(struct engine *engine, ps_t time, uint32_t kind, uint32_t target)
{
    engine->now = time;
    engine->events++;
    engine->digest = digest_word(engine->digest, (uint64_t)time);
    engine->digest = digest_word(engine->digest, ((uint64_t)kind << 32) | target);
}

/* (The event that runs is still the first of the heap where its place is vacant.) */
bool engine_goes_on(struct engine *engine, ps_t time, uint32_t kind, uint32_t target)
{
    const struct event *heap = engine->heap.at;
    int next = engine->vacant ? 1 : 0;
    if (engine->stopped || engine->line.n > 0 || time > PS_HORIZON)
        return false;
    if (next < engine->heap.n &&
        heap[next ? first_child(heap, engine->heap.n, next) : 0].time <= time)
        return false;
    engine->seq++;
    count_event(engine, time, kind, target);
    return true;
}

static void engine_execute(struct engine *engine, struct event event)
{
    count_event(engine, event.time, event.kind, event.target);
    engine->kinds[event.kind].handle(engine->kinds[event.kind].self, &event);
}

/* The first event in line, after those of its instant in the heap. */
static struct event next_in_line(struct engine *engine)
{
    struct event event = engine->line.at[engine->in_line++];
    if (engine->in_line == engine->line.n)
        engine->in_line = engine->line.n = 0;
    return event;
}

/* The event that will run after the first one, unless a handler schedules one before it. The
 * targets of fewer than 2,048 events stay in the cache, as measured (bench_points on AMD EPYC,
 * T5-11B with noise: 4,096 ranks take 0.83 of the time, 16,384 ranks 0.6). */
static void prepare_next(const struct engine *engine)
{
    enum { FEW = 2048 };
    if (!engine->prepares || engine->heap.n < FEW)
        return;
    int next = first_child(engine->heap.at, engine->heap.n, 1);
    const struct event *event = &engine->heap.at[next];
    engine_preparer prepare = engine->kinds[event->kind].prepare;
    if (prepare)
        prepare(engine->kinds[event->kind].self, event);
}

void engine_run(struct engine *engine)
{
    while (!engine->stopped) {
        bool lined = engine->line.n > 0, heaped = engine->heap.n > 0;
        if (lined && !(heaped && engine->heap.at[0].time == engine->now)) {
            engine_execute(engine, next_in_line(engine));
        } else if (heaped) {
            engine->vacant = true;
            prepare_next(engine);
            engine_execute(engine, engine->heap.at[0]);
            close_vacancy(engine);
        } else
            return;
    }
}

void engine_stop(struct engine *engine)
{
    engine->stopped = true;
}

void engine_shift(struct engine *engine, ps_t by)
{
    engine->now += by;
    for (int i = 0; i < engine->heap.n; i++)
        engine->heap.at[i].time += by;
    for (int i = engine->in_line; i < engine->line.n; i++)
        engine->line.at[i].time += by;
}
