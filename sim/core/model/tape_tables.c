/* Tables of embeddings whose features cross the network.
 *
 * The exchange of pooled features runs beside the dense part below, until tape_join() waits for it;
 * backward its gradient goes on its way in join_backward() and is awaited before the update. Bytes
 * of look-ups are those of rows, ids and, in the update, the optimizer's state. */
#include "model/tape_core.h"

enum { ID_BYTES = 8, STATE_BYTES = 4 };
enum { POOL_OPS = 1, UPDATE_OPS = 4 }; /* an add; row-wise Adagrad: square, add, scale, subtract */

static double tape_tables_bytes_of(const struct tape *tape, int buffer)
{
    return (double)tape->buffers.at[buffer].life.bytes;
}

/* Bytes of the rows that make a value's features, and their ids. */
struct looked_up {
    double rows, elements, bytes, id_bytes;
};
static struct looked_up looked_up(const struct tape *tape, int value)
{
    const struct model_shape *shape = &tape->model->shape;
    double rows = (double)(tape_at(tape, value).rows * shape->dhen.tables.pooling);
    double elements = rows * (double)shape->d_model;
    double element_bytes = (double)model_table_bytes(shape, 1) / shape->dhen.tables.params;
    return (struct looked_up){rows, elements, elements * element_bytes, rows * ID_BYTES};
}

static void tables_backward(struct tape *tape, const struct tape_op *op)
{
    struct looked_up at = looked_up(tape, op->out);
    int grad = tape_grad(tape, op);
    double state = at.rows * STATE_BYTES;
    tape_await(tape);
    tape_launch(tape, tape_suffix(tape, op->name, "update"),
        kernel_stream(KERNEL_EMBEDDING,
            tape_tables_bytes_of(tape, grad) + at.bytes + at.id_bytes + state, at.bytes + state,
            UPDATE_OPS * at.elements),
        0, BUFFERS(grad));
}

int tape_tables(struct tape *tape, const char *name, int64_t samples)
{
    const struct model_shape *shape = &tape->model->shape;
    struct tape_op op = {.backward = tables_backward, .name = tape_name(tape, name)};
    op.out = tape_value(tape, op.name, samples * (shape->dhen.features - 1), shape->d_model,
        tape->storage_bytes, true);
    struct looked_up at = looked_up(tape, op.out);
    int pooled = tape_at(tape, op.out).buffer;
    tape_launch(tape, op.name,
        kernel_stream(KERNEL_EMBEDDING, at.bytes + at.id_bytes, tape_tables_bytes_of(tape, pooled),
            POOL_OPS * at.elements),
        0, BUFFERS(pooled));
    tape_communicate(tape, op.name, COLL_ALL_TO_ALL, tape->model->tables.split, pooled);
    tape_push(tape, op);
    return op.out;
}

/* Slices of the gradient, made contiguous: for the exchange, and for the product that comes next.
 */
static void join_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    for (int i = 0; i < 2; i++) {
        int part = tape_new_grad(tape, op->in[i]);
        double bytes = tape_tables_bytes_of(tape, part);
        const char *name = tape_suffix(tape, op->name, "dgrad");
        tape_launch(
            tape, name, kernel_stream(KERNEL_COPY, bytes, bytes, 0), 0, BUFFERS(grad, part));
        if (i == 0)
            tape_communicate(tape, name, COLL_ALL_TO_ALL, tape->model->tables.split, part);
        tape_give(tape, op->in[i], part);
    }
}

int tape_join(struct tape *tape, const char *name, int tables, int other)
{
    struct tape_value a = tape_at(tape, tables), b = tape_at(tape, other);
    BUG_IF(a.cols != b.cols, "%s.%s: rows of %ld and %ld", tape->scope, name, (long)a.cols,
        (long)b.cols);
    tape_await(tape);
    struct tape_op op = {
        .backward = join_backward, .name = tape_name(tape, name), .in = {tables, other}};
    op.out = tape_value(tape, op.name, a.rows + b.rows, a.cols, a.element_bytes, true);
    tape_pass(
        tape, KERNEL_COPY, op.name, 0, BUFFERS(a.buffer, b.buffer), tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}
