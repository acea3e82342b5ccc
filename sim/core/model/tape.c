/* Opening and closing a tape, and what comes from outside the segment.
 *
 * tape_close() makes a program of the record: it seeds the gradients that exist before the backward
 * pass (of the output, the loss, and what blocks share), runs the recorded ops from the last to the
 * first, fuses kernels where the stack does, lists the buffers with their lives, finds how far a
 * recomputation must run again, marks what selective checkpointing keeps, and cuts collectives into
 * pieces where workload and segment ask for it.
 *
 * Subtle: the order matters. Fusion moves the lives of buffers, so nothing that counts kernels may
 * be taken before it, and pieces move them once more. A value that is recorded and never used is a
 * BUG: its gradient would be missing. */
#include "model/tape_core.h"

#include <string.h>

struct tape *tape_open(const struct model *model, int layer, const struct model_workload *workload,
    struct arena *arena)
{
    struct tape *tape = xcalloc(1, sizeof *tape);
    *tape = (struct tape){
        .model = model,
        .workload = workload,
        .arena = arena,
        .scope = "",
        .layer = layer,
        .loss = NO_VALUE,
        .input = NO_VALUE,
        .output_grad = NO_BUFFER,
        .sent = NO_BUFFER,
        .storage_bytes = dtype_bytes(workload->storage),
        .residual_bytes =
            workload->autocast ? dtype_bytes(DTYPE_FP32) : dtype_bytes(workload->storage),
    };
    return tape;
}

void tape_scope(struct tape *tape, const char *scope)
{
    tape->scope = scope;
}

int tape_shared(struct tape *tape, const char *name, int64_t rows, int64_t cols, bool needs_grad)
{
    int value = tape_value(tape, name, rows, cols, tape->residual_bytes, needs_grad);
    tape->values.at[value].foreign = true;
    tape_share(tape, value);
    return value;
}

void tape_share(struct tape *tape, int tensor)
{
    struct tape_value *value = &tape->values.at[tensor];
    value->shared = true;
    tape->buffers.at[value->buffer].held[FORWARD] = true;
}

int tape_memory(struct tape *tape, const char *name, int64_t rows, int64_t cols)
{
    int value = tape_shared(tape, name, rows, cols, true);
    tape->buffers.at[tape->values.at[value].buffer].external = true;
    return value;
}

int tape_input(struct tape *tape, const char *name, int64_t rows, int64_t cols)
{
    int value = tape_value(tape, name, rows, cols, tape->residual_bytes, true);
    tape->values.at[value].foreign = true;
    tape->buffers.at[tape->values.at[value].buffer].external = true;
    tape->input = value;
    return value;
}

void tape_keep(struct tape *tape, int tensor)
{
    tape_touch(tape, tape_at(tape, tensor).buffer);
}

/* Gradients that exist when the backward pass begins. */
static void seed(struct tape *tape, int output)
{
    for (int i = 0; i < tape->values.n; i++)
        if (i == output || i == tape->loss ||
            (tape->values.at[i].shared && tape->values.at[i].needs_grad)) {
            tape->values.at[i].grad = tape_new_grad(tape, i);
            tape->buffers.at[tape->values.at[i].grad].handed = true;
        }
    if (output != tape->loss)
        tape->output_grad = tape->values.at[output].grad;
}

static void run_backward(struct tape *tape, int output)
{
    tape->pass = BACKWARD;
    seed(tape, output);
    for (int i = tape->ops.n - 1; i >= 0; i--) {
        struct tape_op op = tape->ops.at[i];
        BUG_IF(tape_grad(tape, &op) == NO_BUFFER, "%s is computed, but nothing uses it", op.name);
        tape->region = op.region;
        op.backward(tape, &op);
        tape->values.at[op.out].grad = NO_BUFFER;
    }
    for (int i = 0; i < tape->values.n; i++)
        if (tape->values.at[i].foreign && tape->values.at[i].grad != NO_BUFFER)
            tape->buffers.at[tape->values.at[i].grad].held[BACKWARD] = true;
}

static void list_activations(
    const struct tape *tape, struct model_program *program, int output_buffer)
{
    int input_grad = tape->input == NO_VALUE ? NO_BUFFER : tape_at(tape, tape->input).grad;
    program->activations = ARENA_ARRAY(tape->arena, struct model_activation, tape->buffers.n);
    for (int i = 0; i < tape->buffers.n; i++) {
        const struct tape_buffer *buffer = &tape->buffers.at[i];
        if (buffer->external || buffer->vanished || buffer->view_of != NO_BUFFER)
            continue;
        struct model_activation *life = &program->activations[program->n_activations];
        *life = buffer->life;
        if (buffer->held[FORWARD])
            life->forward_last = program->n_forward - 1;
        if (buffer->held[BACKWARD])
            life->backward_last = program->n_backward - 1;
        if (i == output_buffer) {
            program->output = program->n_activations;
            program->output_bytes = life->bytes;
        }
        if (i == input_grad)
            program->input_grad = program->n_activations;
        if (i == tape->output_grad)
            program->output_grad = program->n_activations;
        program->n_activations++;
    }
}

/* The forward kernel that makes the last tensor which backward reads; -1: none does. */
static int last_saved(const struct model_program *program)
{
    int last = -1;
    for (int i = 0; i < program->n_activations; i++) {
        const struct model_activation *life = &program->activations[i];
        if (!life->born_in_backward && life->backward_last >= 0 && life->born > last)
            last = life->born;
    }
    return last;
}

/* Forward ops to run again: to the one that makes the last tensor that backward reads, or to where
 * what moves it is waited for. */
static int rerun(const struct model_program *program)
{
    int n = last_saved(program) + 1;
    bool pending = false;
    for (int i = 0; i < n; i++)
        pending = program->forward[i].kind == MODEL_COMM ||
                  (pending && program->forward[i].kind != MODEL_WAIT);
    while (pending && n < program->n_forward)
        pending = program->forward[n++].kind != MODEL_WAIT;
    return n;
}

/* There is an input, and no backward kernel reads it. */
static bool drops_input(const struct tape *tape)
{
    if (tape->input == NO_VALUE)
        return false;
    return tape->buffers.at[tape_at(tape, tape->input).buffer].life.backward_last < 0;
}

/* As torchtitan's policy for selective checkpointing has it: attention, reduce-scatters,
 * all_to_alls, and every second product (aten.mm). */
static void mark_kept(struct model_program *program)
{
    int products = 0;
    for (int i = 0; i < program->n_forward; i++) {
        struct model_op *kernel = &program->forward[i];
        products += kernel->mm;
        bool moved = kernel->kind == MODEL_COMM && (kernel->comm.kind == COLL_REDUCE_SCATTER ||
                                                       kernel->comm.kind == COLL_ALL_TO_ALL);
        kernel->kept = kernel->kept || kernel->work.kind == KERNEL_ATTENTION ||
                       (kernel->mm && products % 2 == 1) || moved;
    }
}

static struct model_op *list_kernels(const struct tape *tape, int pass)
{
    int n = tape->program[pass].n;
    struct model_op *kernels = ARENA_ARRAY(tape->arena, struct model_op, n);
    if (n > 0)
        memcpy(kernels, tape->program[pass].at, sizeof *kernels * (size_t)n);
    return kernels;
}

struct model_program *tape_close(struct tape *tape, int output)
{
    int output_buffer = output == tape->loss ? NO_BUFFER : tape_at(tape, output).buffer;
    run_backward(tape, output);
    int fusion = tape->workload->fusion;
    if (fusion == FUSION_INDUCTOR || fusion == FUSION_TORCHSCRIPT ||
        fusion == FUSION_TRANSFORMER_ENGINE)
        tape_fuse(tape, output_buffer);
    struct model_program *program = ARENA_NEW(tape->arena, struct model_program);
    *program = (struct model_program){
        .forward = list_kernels(tape, FORWARD),
        .backward = list_kernels(tape, BACKWARD),
        .n_forward = tape->program[FORWARD].n,
        .n_backward = tape->program[BACKWARD].n,
        .output = -1,
        .input_grad = -1,
        .output_grad = -1,
        .takes_input = tape->input != NO_VALUE,
        .drops_input = drops_input(tape),
        .reruns = tape->model->layers[tape->layer].role != LAYER_ROOT,
    };
    list_activations(tape, program, output_buffer);
    program->n_rerun = rerun(program);
    mark_kept(program);
    const struct model_parallel *parallel = &tape->workload->parallel;
    bool in_pieces =
        parallel->tensor_overlap >= TENSOR_USER_BUFFERS && parallel->sequence && program->reruns;
    if (in_pieces && model_tensor_ranks(parallel) > 1)
        model_cut_into_pieces(program, parallel, tape->arena);
    vec_free(&tape->program[FORWARD]);
    vec_free(&tape->program[BACKWARD]);
    vec_free(&tape->touches[FORWARD]);
    vec_free(&tape->touches[BACKWARD]);
    vec_free(&tape->buffers);
    vec_free(&tape->values);
    vec_free(&tape->ops);
    free(tape);
    return program;
}
