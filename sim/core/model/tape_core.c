/* What operations of a tape are written with: names, parameters, buffers, values, launches,
 * gradients.
 *
 * A program is a list of ops for each pass, and a buffer's life is the number of the op that writes
 * it first and of the last that touches it in each pass. tape_touch() moves these ends, so a life
 * follows from the calls and is never set. It also notes who touches what, which fusion reads
 * later. A view has no memory; touching it touches what it is a view of.
 *
 * tape_launch() appends an op; tape_run() works out bytes from the buffers that a kernel reads and
 * writes. Functions such as tape_use() and tape_complete() speak of the op that was appended last.
 *
 * Gradients: an op's backward function gets the gradient of its output by tape_grad() and hands one
 * to each input by tape_give(). A value that has one already gets the sum by an elementwise kernel,
 * in place unless the first buffer is still another value's gradient, too. */
#include "model/tape_core.h"

#include <string.h>

const char *tape_suffix(struct tape *tape, const char *name, const char *suffix)
{
    return arena_printf(tape->arena, "%s.%s", name, suffix);
}

const char *tape_name(struct tape *tape, const char *name)
{
    return *tape->scope ? tape_suffix(tape, tape->scope, name) : name;
}

int tape_find(const struct tape *tape, const char *name, const char *suffix)
{
    const struct model_layer *layer = &tape->model->layers[tape->layer];
    bool root = layer->role == LAYER_ROOT; /* its tensors carry no module's name in front */
    char wanted[256];
    int n = snprintf(wanted, sizeof wanted, "%s%s%s%s%s%s%s", root ? "" : layer->name,
        root ? "" : ".", tape->scope, *tape->scope ? "." : "", name, *suffix ? "." : "", suffix);
    BUG_IF(n < 0 || (size_t)n >= sizeof wanted, "parameter name too long: %s", wanted);
    for (int i = 0; i < layer->n_tensors; i++)
        if (strcmp(tape->model->tensors[layer->first_tensor + i].name, wanted) == 0)
            return i;
    return NO_PARAM;
}

const struct model_tensor *tape_tensor(const struct tape *tape, int param)
{
    return &tape->model->tensors[tape->model->layers[tape->layer].first_tensor + param];
}

bool tape_trains(const struct tape *tape, int param)
{
    return !tape_tensor(tape, param)->frozen;
}

bool tape_has_flash_attn(const struct tape *tape)
{
    return tape->workload->fusion == FUSION_FLASH_ATTN;
}

bool tape_has_transformer_engine(const struct tape *tape)
{
    return tape->workload->fusion == FUSION_TRANSFORMER_ENGINE;
}

bool tape_rotates_complex(const struct tape *tape)
{
    return tape->workload->rotary == ROTARY_COMPLEX;
}

bool tape_rotates_unfused(const struct tape *tape)
{
    return tape->workload->rotary == ROTARY_UNFUSED;
}

bool tape_has(const struct tape *tape, const char *name)
{
    return tape_find(tape, name, "weight") != NO_PARAM;
}

int tape_buffer(
    struct tape *tape, const char *name, int64_t rows, int64_t cols, int64_t element_bytes)
{
    int64_t elements = 0, bytes = 0;
    BUG_IF(rows <= 0 || cols <= 0 || __builtin_mul_overflow(rows, cols, &elements) ||
               __builtin_mul_overflow(elements, element_bytes, &bytes),
        "%s has %ld x %ld elements of %ld bytes", name, (long)rows, (long)cols,
        (long)element_bytes);
    struct tape_buffer buffer = {
        .life = {.name = name,
            .bytes = bytes,
            .born_in_backward = tape->pass == BACKWARD,
            .born = tape->program[tape->pass].n,
            .forward_last = tape->pass == FORWARD ? tape->program[FORWARD].n : -1,
            .backward_last = tape->pass == BACKWARD ? tape->program[BACKWARD].n : -1},
        .elements = elements,
        .view_of = NO_BUFFER,
    };
    vec_push(&tape->buffers, buffer);
    return tape->buffers.n - 1;
}

int tape_value(struct tape *tape, const char *name, int64_t rows, int64_t cols,
    int64_t element_bytes, bool needs_grad)
{
    struct tape_value value = {
        .name = name,
        .buffer = tape_buffer(tape, name, rows, cols, element_bytes),
        .grad = NO_BUFFER,
        .rows = rows,
        .cols = cols,
        .element_bytes = element_bytes,
        .needs_grad = needs_grad,
        .float8 = {NO_BUFFER, NO_BUFFER},
        .entered = {.from = NO_VALUE,
            .first_user = NO_VALUE,
            .again = NO_BUFFER,
            .reduced = NO_BUFFER},
    };
    vec_push(&tape->values, value);
    return tape->values.n - 1;
}

struct tape_value tape_at(const struct tape *tape, int value)
{
    BUG_IF(value < 0 || value >= tape->values.n, "no tensor %d", value);
    return tape->values.at[value];
}

void tape_push(struct tape *tape, struct tape_op op)
{
    op.region = tape->region;
    if (tape_at(tape, op.out).needs_grad)
        vec_push(&tape->ops, op);
}

static void append(struct tape *tape, struct model_op op)
{
    op.param_grad = op.param_share = op.param_use = NO_PARAM;
    op.parts = tape->pass == FORWARD ? tape->parts : 0;
    vec_push(&tape->program[tape->pass], op);
}

void tape_touch(struct tape *tape, int buffer)
{
    struct tape_buffer *used = &tape->buffers.at[buffer];
    int kernel = tape->program[tape->pass].n - 1;
    *(tape->pass == FORWARD ? &used->life.forward_last : &used->life.backward_last) = kernel;
    if (used->view_of != NO_BUFFER)
        tape_touch(tape, used->view_of);
    else
        vec_push(&tape->touches[tape->pass], ((struct tape_touched){kernel, buffer}));
}

void tape_launch(struct tape *tape, const char *name, struct kernel_work work, double model_flop,
    const int *buffers)
{
    append(tape, (struct model_op){.name = name, .work = work, .model_flop = model_flop});
    for (; *buffers != NO_BUFFER; buffers++)
        tape_touch(tape, *buffers);
}

void tape_of_experts(struct tape *tape, int64_t matrices)
{
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].matrices = (int)matrices;
}

void tape_mark_mm(struct tape *tape, const struct tape_op *op)
{
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].mm = op->bias == NO_PARAM;
}

void tape_mark_kept(struct tape *tape)
{
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].kept = true;
}

void tape_begin_part(struct tape *tape, enum recompute_part part)
{
    tape->parts |= 1U << part;
}

void tape_end_part(struct tape *tape, enum recompute_part part)
{
    tape->parts &= ~(1U << part);
}

void tape_communicate(
    struct tape *tape, const char *name, enum coll_kind kind, unsigned axes, int buffer)
{
    append(tape, (struct model_op){.kind = MODEL_COMM,
                     .name = arena_printf(tape->arena, "%s/%s", name, coll_kind_names[kind]),
                     .comm = {kind, axes, (double)tape->buffers.at[buffer].life.bytes, NULL}});
    tape_touch(tape, buffer);
}

void tape_await(struct tape *tape)
{
    append(tape, (struct model_op){.kind = MODEL_WAIT, .name = "wait"});
}

void tape_host_wait(struct tape *tape, const char *name, bool kept)
{
    append(tape,
        (struct model_op){.kind = MODEL_HOST_WAIT, .name = tape_name(tape, name), .kept = kept});
}

void tape_exchange(
    struct tape *tape, const char *name, enum coll_kind kind, unsigned axes, int from, int to)
{
    bool grows = tape->buffers.at[to].life.bytes > tape->buffers.at[from].life.bytes;
    tape_communicate(tape, name, kind, axes, grows ? to : from);
    tape_touch(tape, grows ? from : to);
    tape_await(tape);
    tape_touch(tape, from);
    tape_touch(tape, to);
}

void tape_use(struct tape *tape, int param)
{
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].param_use = param;
}

void tape_begin_shares(struct tape *tape, int param)
{
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].param_share = param;
}

void tape_complete(struct tape *tape, int param)
{
    BUG_IF(param != NO_PARAM && !tape_trains(tape, param), "%s is frozen, but has a gradient",
        tape_tensor(tape, param)->name);
    struct model_op *op = &tape->program[tape->pass].at[tape->program[tape->pass].n - 1];
    op->param_grad = param;
    op->partial = param != NO_PARAM && tape_partial(tape, param);
}

void tape_run(struct tape *tape, struct tape_stream stream)
{
    double read_bytes = 0, write_bytes = stream.param_bytes, elements = 0;
    for (const int *read = stream.reads; *read != NO_BUFFER; read++) {
        const struct tape_buffer *buffer = &tape->buffers.at[*read];
        read_bytes += (double)buffer->life.bytes;
        elements = elements > (double)buffer->elements ? elements : (double)buffer->elements;
    }
    if (stream.write != NO_BUFFER) {
        const struct tape_buffer *buffer = &tape->buffers.at[stream.write];
        write_bytes += (double)buffer->life.bytes;
        elements = elements > (double)buffer->elements ? elements : (double)buffer->elements;
    }
    struct kernel_work work =
        kernel_stream(stream.kind, read_bytes, write_bytes, stream.ops * elements);
    work.m = stream.rows;
    work.n = stream.cols;
    tape_launch(tape, stream.name, work, 0, BUFFERS(NO_BUFFER));
    for (const int *read = stream.reads; *read != NO_BUFFER; read++)
        tape_touch(tape, *read);
    if (stream.write != NO_BUFFER)
        tape_touch(tape, stream.write);
}

void tape_pass(struct tape *tape, enum kernel_kind kind, const char *name, double ops,
    const int *reads, int write)
{
    tape_run(tape, (struct tape_stream){
                       .kind = kind, .name = name, .ops = ops, .reads = reads, .write = write});
}

void tape_elementwise(struct tape *tape, const char *name, double ops, int a, int b, int write)
{
    tape_pass(tape, KERNEL_ELEMENTWISE, name, ops, BUFFERS(a, b), write);
}

int tape_apply(struct tape *tape, struct tape_op op, enum kernel_kind kind, struct tape_value shape,
    double ops)
{
    int second = op.in[1] == NO_VALUE ? NO_BUFFER : tape_at(tape, op.in[1]).buffer;
    op.out =
        tape_value(tape, op.name, shape.rows, shape.cols, shape.element_bytes, shape.needs_grad);
    tape_pass(tape, kind, op.name, ops, BUFFERS(tape_at(tape, op.in[0]).buffer, second),
        tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

void tape_back(
    struct tape *tape, const struct tape_op *op, enum kernel_kind kind, double ops, int also)
{
    int grad_x = tape_new_grad(tape, op->in[0]);
    tape_pass(tape, kind, tape_suffix(tape, op->name, "dgrad"), ops,
        BUFFERS(tape_grad(tape, op), also), grad_x);
    tape_give(tape, op->in[0], grad_x);
}

int tape_grad(const struct tape *tape, const struct tape_op *op)
{
    return tape->values.at[op->out].grad;
}

int tape_new_grad(struct tape *tape, int value)
{
    struct tape_value v = tape_at(tape, value);
    int64_t bytes =
        v.element_bytes == dtype_bytes(DTYPE_FP8) ? tape->storage_bytes : v.element_bytes;
    return tape_buffer(tape, tape_suffix(tape, v.name, "grad"), v.rows, v.cols, bytes);
}

/* Is the buffer also the gradient of another value, which has not been used yet? */
static bool still_needed(const struct tape *tape, int grad, int value)
{
    for (int i = 0; i < tape->values.n; i++)
        if (i != value && tape->values.at[i].grad == grad)
            return true;
    return false;
}

void tape_give(struct tape *tape, int value, int grad)
{
    struct tape_value v = tape_at(tape, value);
    if (!v.needs_grad)
        return;
    int sum = grad;
    if (v.grad != NO_BUFFER) {
        sum = still_needed(tape, v.grad, value) ? tape_new_grad(tape, value) : v.grad;
        tape_elementwise(tape, tape_suffix(tape, v.name, "grad.add"), 1, v.grad, grad, sum);
    }
    tape->values.at[value].grad = sum;
}
