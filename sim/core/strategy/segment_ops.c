/* Lists by op are filled in one pass over the activations, so each is in their order. Segments of
 * one program have one set of lists. */
#include "strategy/segment_ops.h"

/* The op with which the activation comes or goes; -1: with none of that pass. */
static int find_op_of_life(const struct model_activation *tensor, enum segment_life life)
{
    switch (life) {
    case BORN_IN_FORWARD:
        return tensor->born_in_backward ? -1 : tensor->born;
    case LAST_IN_FORWARD:
        return tensor->born_in_backward ? -1 : tensor->forward_last;
    case BORN_IN_BACKWARD:
        return tensor->born_in_backward ? tensor->born : -1;
    case LAST_IN_BACKWARD:
        return tensor->backward_last;
    case SEGMENT_LIFE_COUNT:
        break;
    }
    return -1;
}

static struct segment_lives list_lives(
    const struct model_program *program, enum segment_life life, struct arena *arena)
{
    bool in_forward = life == BORN_IN_FORWARD || life == LAST_IN_FORWARD;
    int n = in_forward ? program->n_forward : program->n_backward;
    int *first = ARENA_ARRAY(arena, int, n + 2),
        *activations = ARENA_ARRAY(arena, int, program->n_activations);
    for (int a = 0; a < program->n_activations; a++) {
        int op = find_op_of_life(&program->activations[a], life);
        if (op >= 0 && op < n)
            first[op + 2]++;
    }
    for (int k = 2; k <= n + 1; k++)
        first[k] += first[k - 1];
    for (int a = 0; a < program->n_activations; a++) {
        int op = find_op_of_life(&program->activations[a], life);
        if (op >= 0 && op < n)
            activations[first[op + 1]++] = a;
    }
    return (struct segment_lives){first, activations};
}

static struct segment_op *lay_out_ops(int n, struct arena *arena)
{
    struct segment_op *ops = ARENA_ARRAY(arena, struct segment_op, n);
    for (int k = 0; k < n; k++)
        ops[k] = (struct segment_op){.kernel = -1, .group = -1};
    return ops;
}

struct segment_ops *segment_ops_lay_out(const struct model_segments *segments, struct arena *arena)
{
    struct segment_ops *all = ARENA_ARRAY(arena, struct segment_ops, segments->n);
    for (int s = 0; s < segments->n; s++) {
        const struct model_program *program = segments->at[s].program;
        int like = s - 1;
        while (like >= 0 && all[like].program != program)
            like--;
        if (like >= 0)
            all[s] = all[like];
        all[s].program = program;
        for (enum segment_life life = 0; life < SEGMENT_LIFE_COUNT && like < 0; life++)
            all[s].lives[life] = list_lives(program, life, arena);
        all[s].forward = lay_out_ops(program->n_forward, arena);
        all[s].backward = lay_out_ops(program->n_backward, arena);
        all[s].names = arena_alloc(arena, sizeof *all[s].names * (size_t)program->n_activations);
    }
    return all;
}
