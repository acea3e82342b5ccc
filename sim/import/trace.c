#include "import/trace.h"

#include "base/digest.h"

#include <string.h>

const char *trace_class_name(int class)
{
    BUG_IF(class < 0 || class >= TRACE_CLASS_COUNT, "class %d", class);
    return class == TRACE_COLLECTIVE ? "collective" : class == TRACE_OTHER ? "other" : kernel_kind_names[class];
}

void trace_free(struct trace *trace)
{
    vec_free(&trace->activities);
    vec_free(&trace->names);
    vec_free(&trace->steps);
    vec_free(&trace->groups);
    vec_free(&trace->products);
    vec_free(&trace->waits);
    index_free(&trace->name_index);
}

struct wanted {
    const struct trace *trace;
    const char *name;
};

static bool same_name(const void *self, int32_t item)
{
    const struct wanted *wanted = self;
    return strcmp(wanted->trace->names.at[item], wanted->name) == 0;
}

int trace_name(struct trace *trace, const char *name, struct arena *arena)
{
    uint64_t hash = DIGEST_INIT;
    for (const char *c = name; *c; c++)
        hash = digest_word(hash, (unsigned char)*c);
    const struct wanted wanted = {trace, name};
    int32_t found = index_find(&trace->name_index, hash, same_name, &wanted);
    if (found >= 0)
        return found;
    index_add(&trace->name_index, hash, trace->names.n);
    vec_push(&trace->names, arena_strdup(arena, name));
    return trace->names.n - 1;
}

/* Loading images is the host's, not the GPU's. */
void trace_of_run(struct trace *out, const struct exec_result *exec, int rank, struct arena *arena)
{
    *out = (struct trace){.rank = rank, .devices = 1, .found = TRACE_ANNOTATED};
    ps_t origin = exec->last_step_start;
    for (int i = 0; i < exec->n_spans; i++) {
        const struct exec_span *span = &exec->spans[i];
        if (span->stream == STREAM_LOADER)
            continue;
        struct trace_activity activity = {.start = span->start - origin,
            .end = span->end - origin,
            .name = trace_name(out, span->name, arena),
            .stream = span->stream,
            .phase = span->phase,
            .group = -1,
            .product = -1,
            .launched = PS_NEVER,
            .returned = PS_NEVER,
            .class = (uint8_t)(span->is_collective ? TRACE_COLLECTIVE : span->kernel)};
        if (span->is_collective) {
            activity.kind = (int8_t)span->collective;
            activity.ranks = span->group_size;
            activity.bytes = span->bytes;
        }
        vec_push(&out->activities, activity);
    }
    vec_push(&out->steps, (struct trace_step){.end = exec->last_step_end - origin});
}
