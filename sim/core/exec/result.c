/* What stays of a run when its arena goes: the programs with their timelines of memory, and the
 * name of a buffer that did not fit. Spans borrow the names of all ops, and are millions: with them
 * nothing is copied, the arena itself moves. */
#include "exec/exec.h"

#include <string.h>

static void *copy_array(struct arena *to, const void *from, size_t bytes)
{
    return bytes > 0 ? memcpy(arena_alloc(to, bytes), from, bytes) : NULL;
}

static void move_memory(struct exec_memory *memory, struct arena *to)
{
    memory->oom_op = memory->oom_op ? arena_strdup(to, memory->oom_op) : NULL;
}

void exec_result_move(struct exec_result *result, struct arena *from, struct arena *to)
{
    if (result->n_spans + result->n_host_spans > 0) {
        arena_join(to, from);
        return;
    }
    result->stands_for = NULL;
    result->programs =
        copy_array(to, result->programs, sizeof *result->programs * (size_t)result->n_programs);
    for (int p = 0; p < result->n_programs; p++) {
        struct exec_program *program = &result->programs[p];
        const struct exec_memory_sample *timeline = program->timeline;
        program->timeline =
            copy_array(to, timeline, sizeof *timeline * (size_t)program->n_timeline);
        if (result->timeline == timeline)
            result->timeline = program->timeline;
        move_memory(&program->memory, to);
    }
    move_memory(&result->memory, to);
    arena_release(from);
}
