/* Messages between the stages of a pipeline, and the tensors of micro-batches under way.
 *
 * A flight is a set of buffers for the activations of one micro-batch and chunk. It is taken when a
 * cell begins, kept while its backward pass is to come, and used again by a later one.
 *
 * What a cell receives is posted before it is needed: post() allocates the buffer at the chunk's
 * border, puts the receive on its queue and remembers it; pipeline_before() has the compute stream
 * wait for it. What a cell sends leaves behind it. Each direction, and in a V each leg, has its
 * queues and a channel. By the options messages overlap (the next one of this leg and direction is
 * posted behind the cell), or each is waited for, or, interleaved without overlap, a forward and a
 * backward cell exchange all four in one batch. Parts (DeepSpeed) and metadata (nanotron) go before
 * the tensor on the same queue.
 *
 * Subtle: in a V the last stage's first chunk hands over to its second one: pipeline_turn() moves
 * the buffer, and nothing is sent. */
#include "strategy/pipeline.h"

enum direction { ACTIVATIONS, GRADIENTS };

static enum direction direction_of(struct cell cell)
{
    return cell.kind == CELL_FORWARD ? ACTIVATIONS : GRADIENTS;
}

static bool is_v(const struct emit *emit)
{
    return schedule_is_v(emit->schedule.kind) && emit->schedule.stages > 1;
}

/* Of a V: the first chunk is on the way to the last stage, the second one on the way back. */
static int leg_of(const struct emit *emit, struct cell cell)
{
    return is_v(emit) ? cell.chunk : 0;
}

void pipeline_lay_out(struct emit *emit)
{
    const struct model *model = emit->model;
    int chunks = model->n_chunks > 0 ? model->n_chunks : 1;
    emit->chunk_begin = ARENA_ARRAY(emit->arena, int, chunks + 1);
    for (int s = 0, c = 1; s < emit->segments.n; s++)
        if (emit->segments.at[s].kind == SEGMENT_BORDER && s > 0)
            emit->chunk_begin[c++] = s;
    emit->chunk_begin[chunks] = emit->segments.n;
    emit->idle.n = 0; /* they were laid out for other segments */
}

/* ---- tensors of a micro-batch ---- */

static int **new_flight(struct emit *emit)
{
    int **saved = ARENA_ARRAY(emit->arena, int *, emit->segments.n);
    for (int s = 0; s < emit->segments.n; s++) {
        int n = emit->segments.at[s].program->n_activations;
        saved[s] = ARENA_ARRAY(emit->arena, int, n);
        for (int a = 0; a < n; a++)
            saved[s][a] = PLAN_NO_OP;
    }
    return saved;
}

static int ***flight_of(struct emit *emit, struct cell cell)
{
    return &emit->flights[cell.micro_batch * emit->schedule.chunks + cell.chunk];
}

void pipeline_take_flight(struct emit *emit, struct cell cell)
{
    int ***flight = flight_of(emit, cell);
    if (!*flight)
        *flight = emit->idle.n > 0 ? emit->idle.at[--emit->idle.n] : new_flight(emit);
    emit->saved = *flight;
}

void pipeline_end_flight(struct emit *emit, struct cell cell)
{
    vec_push(&emit->idle, *flight_of(emit, cell));
    *flight_of(emit, cell) = NULL;
}

/* ---- messages ---- */

static int border_of(const struct emit *emit, struct cell cell)
{
    int s = emit->chunk_begin[cell.chunk];
    return emit->segments.at[s].kind == SEGMENT_BORDER ? s : -1;
}

/* The segment whose output a chunk hands on; -1: it has the loss. */
static int pipeline_last_of(const struct emit *emit, struct cell cell)
{
    int s = emit->chunk_begin[cell.chunk + 1] - 1;
    return emit->segments.at[s].program->output >= 0 ? s : -1;
}

/* What one cell hands to another: a segment's activation or its gradient; segment -1: nothing. */
struct place {
    int segment, activation;
};

/* In a V the last stage has the place behind that of its first chunk, too. */
static bool is_turn(const struct emit *emit, struct cell cell, bool at_border)
{
    return is_v(emit) && emit->schedule.stage == emit->schedule.stages - 1 &&
           at_border == (cell.chunk == 1);
}

static struct place place_at(const struct emit *emit, struct cell cell, bool at_border)
{
    int segment = at_border ? border_of(emit, cell) : pipeline_last_of(emit, cell);
    if (segment < 0)
        return (struct place){-1, -1};
    const struct model_program *program = emit->segments.at[segment].program;
    return (struct place){
        segment, direction_of(cell) == ACTIVATIONS ? program->output : program->output_grad};
}

/* What a cell receives comes in at the border of its chunk in forward, at the chunk's end in
 * backward; what it sends leaves at the other end. */
static struct place handed_over(const struct emit *emit, struct cell cell, bool received)
{
    bool at_border = (direction_of(cell) == ACTIVATIONS) == received;
    if (emit->schedule.stages == 1 || cell.kind == CELL_BACKWARD_WEIGHT ||
        is_turn(emit, cell, at_border))
        return (struct place){-1, -1};
    return place_at(emit, cell, at_border);
}

static struct place received_in(const struct emit *emit, struct cell cell)
{
    return handed_over(emit, cell, true);
}

static struct place sent_from(const struct emit *emit, struct cell cell)
{
    return handed_over(emit, cell, false);
}

static const char *const queue_names[2][2][2] = {
    {{"pp.send_next", "pp.recv_prev"}, {"pp.send_prev", "pp.recv_next"}},
    {{"pp.back.send_prev", "pp.back.recv_next"}, {"pp.back.send_next", "pp.back.recv_prev"}}};
static const char *const message_names[2][2] = {
    {"send_forward", "recv_forward"}, {"send_backward", "recv_backward"}};

static const char *queue_name(const struct emit *emit, struct cell cell, bool receives)
{
    return queue_names[leg_of(emit, cell)][direction_of(cell)][receives];
}

static struct plan_channel channel_of(const struct emit *emit, struct cell cell)
{
    int leg = leg_of(emit, cell);
    return (struct plan_channel){
        AXIS_PP, (direction_of(cell) == ACTIVATIONS) == (leg == 0) ? 1 : -1, leg};
}

/* Ranks of the TP group that each send a part of what all of them have. */
static int pipeline_parts(const struct emit *emit)
{
    const struct parallelism_options *options = &emit->options->parallelism;
    bool scatters =
        (options->scatter_gather || options->pipe_partitioned) && !emit->workload.parallel.sequence;
    return scatters ? (int)model_tensor_ranks(&emit->workload.parallel) : 1;
}

static bool is_partitioned(const struct emit *emit)
{
    return emit->options->parallelism.pipe_partitioned && pipeline_parts(emit) > 1;
}

static double message_bytes(const struct emit *emit, struct place place)
{
    return (double)emit->segments.at[place.segment].program->output_bytes / pipeline_parts(emit);
}

static struct posted *posted_for(struct emit *emit, struct cell cell)
{
    return &emit->posted[leg_of(emit, cell)][direction_of(cell)];
}

static bool is_posted(const struct emit *emit, struct cell cell)
{
    const struct posted *posted = &emit->posted[leg_of(emit, cell)][direction_of(cell)];
    return posted->is && posted->cell.micro_batch == cell.micro_batch &&
           posted->cell.chunk == cell.chunk;
}

/* Metadata of a tensor: 7 numbers (ranks, contiguity, bytes, dtype ...), then shape and strides;
 * int64. */
static const double metadata_bytes[] = {7 * 8, 6 * 8};
enum { METADATA = sizeof metadata_bytes / sizeof *metadata_bytes };

struct line {
    int queue;
    const char *name;
    struct plan_channel channel;
    bool sends;
};

static plan_wait pipeline_pass(struct emit *emit, struct line line, double bytes)
{
    double issue_s = emit->options->host.collective_issue_s;
    return line.sends
               ? plan_send(&emit->builder, line.queue, line.name, line.channel, bytes, issue_s)
               : plan_recv(&emit->builder, line.queue, line.name, line.channel, bytes, issue_s);
}

static void describe_tensor(struct emit *emit, struct line line)
{
    double poll_s = emit->options->parallelism.p2p_poll_s;
    for (int m = 0; m < METADATA; m++) {
        plan_wait op = pipeline_pass(emit, line, metadata_bytes[m]);
        if (poll_s > 0)
            plan_host(&emit->builder, "metadata/sleep", poll_s);
        if (!line.sends)
            plan_host_wait(&emit->builder, "metadata/to_python", op, 0);
    }
}

/* PartitionedTensor.to_meta() of a tensor of three dimensions: 7 numbers and the end of each rank's
 * part; int64. */
static void describe_part(struct emit *emit, struct line line)
{
    plan_wait op = pipeline_pass(emit, line, (double)(7 + pipeline_parts(emit)) * 8);
    if (!line.sends)
        plan_host_wait(&emit->builder, "PartitionedTensor.from_meta", op, 0);
}

/* What goes before the activation or its gradient. */
static void pipeline_describe(struct emit *emit, enum direction direction, struct line line)
{
    if (is_partitioned(emit))
        describe_part(emit, line);
    if (!emit->options->parallelism.p2p_metadata)
        return;
    if (direction == ACTIVATIONS) {
        describe_tensor(emit, line);
        pipeline_pass(emit, line, (double)(emit->workload.micro_batch * emit->workload.seq_len));
    }
    describe_tensor(emit, line);
}

/* A tensor of which each TP rank has a part. */
static plan_wait gather_parts(
    struct emit *emit, struct place place, const char *name, plan_wait after)
{
    emit->builder.serves = PARALLEL_PIPELINE;
    plan_wait op = emit_collective(emit, plan_queue(&emit->builder, "tp", QUEUE_COMM), after, name,
        COLL_ALL_GATHER, (double)emit->segments.at[place.segment].program->output_bytes,
        emit_group(emit, "tp", 1U << AXIS_TP));
    emit->builder.serves = PARALLEL_DATA;
    return op;
}

static void post(struct emit *emit, struct cell cell)
{
    struct place place = received_in(emit, cell);
    enum direction direction = direction_of(cell);
    if (place.segment < 0 || is_posted(emit, cell))
        return;
    struct plan_builder *builder = &emit->builder;
    int queue = plan_queue(builder, queue_name(emit, cell, true), QUEUE_COMM);
    int **before = emit->saved;
    pipeline_take_flight(emit, cell);
    emit_receive_into(emit, place.segment, place.activation);
    emit->saved = before;
    plan_stream_wait(builder, queue, plan_last_op(builder, STREAM_COMPUTE));
    pipeline_describe(emit, direction,
        (struct line){queue, message_names[direction][1], channel_of(emit, cell), false});
    plan_wait op = plan_recv(builder, queue, message_names[direction][1], channel_of(emit, cell),
        message_bytes(emit, place), emit->options->host.collective_issue_s);
    if (pipeline_parts(emit) > 1 && !is_v(emit))
        op = gather_parts(emit, place, "gather_received", op);
    *posted_for(emit, cell) = (struct posted){.is = true, .cell = cell, .op = op};
}

/* Backward needs what is handed over. */
static bool pipeline_is_kept(const struct emit *emit, struct cell cell, struct place place)
{
    return direction_of(cell) == ACTIVATIONS && !emit_recomputes(emit, place.segment) &&
           emit->segments.at[place.segment].program->activations[place.activation].backward_last >=
               0;
}

/* From chunk to chunk of a stage a tensor stays where it is: it is the other chunk's now, unless
 * this one keeps it. */
static void pipeline_turn(struct emit *emit, struct cell cell)
{
    bool forward = direction_of(cell) == ACTIVATIONS;
    if (cell.kind == CELL_BACKWARD_WEIGHT || !is_turn(emit, cell, !forward))
        return;
    struct cell other = {cell.kind, cell.micro_batch, 1 - cell.chunk};
    struct place from = place_at(emit, cell, !forward), to = place_at(emit, other, forward);
    int *handed = &emit->saved[from.segment][from.activation], **before = emit->saved;
    if (pipeline_is_kept(emit, cell, from))
        return;
    pipeline_take_flight(emit, other);
    emit->saved[to.segment][to.activation] = *handed;
    emit->saved = before;
    *handed = PLAN_NO_OP;
}

/* Returns the op. What is sent is let go of when it has gone, unless backward needs it. */
static plan_wait pipeline_send(struct emit *emit, struct cell cell)
{
    struct place place = sent_from(emit, cell);
    enum direction direction = direction_of(cell);
    if (place.segment < 0)
        return PLAN_NO_OP;
    struct plan_builder *builder = &emit->builder;
    int queue = plan_queue(builder, queue_name(emit, cell, false), QUEUE_COMM);
    plan_stream_wait(builder, queue, plan_last_op(builder, STREAM_COMPUTE));
    pipeline_describe(emit, direction,
        (struct line){queue, message_names[direction][0], channel_of(emit, cell), true});
    plan_wait op = plan_send(builder, queue, message_names[direction][0], channel_of(emit, cell),
        message_bytes(emit, place), emit->options->host.collective_issue_s);
    if (!pipeline_is_kept(emit, cell, place))
        emit_free(emit, &emit->saved[place.segment][place.activation], op);
    return op;
}

/* The next cell after i of this leg and direction; n: there is none. */
static int pipeline_next_of(
    const struct emit *emit, const struct cell *cells, int n, int i, enum direction direction)
{
    int leg = leg_of(emit, cells[i]);
    for (i++; i < n; i++)
        if (direction_of(cells[i]) == direction && cells[i].kind != CELL_BACKWARD_WEIGHT &&
            leg_of(emit, cells[i]) == leg)
            break;
    return i;
}

/* _exec_backward_pass: the output of which a stage kept its part. */
static void gather_output(struct emit *emit, struct cell cell)
{
    struct place place = received_in(emit, cell);
    if (direction_of(cell) != GRADIENTS || !is_partitioned(emit) || place.segment < 0)
        return;
    plan_wait made = plan_last_op(&emit->builder, STREAM_COMPUTE);
    plan_host_wait(&emit->builder, "PartitionedTensor.from_meta", made, 0);
    plan_stream_wait(
        &emit->builder, STREAM_COMPUTE, gather_parts(emit, place, "gather_output", made));
}

void pipeline_before(struct emit *emit, const struct cell *cells, int n, int i)
{
    (void)n;
    post(emit, cells[i]);
    gather_output(emit, cells[i]);
    if (!is_posted(emit, cells[i]) || received_in(emit, cells[i]).segment < 0)
        return;
    struct posted *posted = posted_for(emit, cells[i]);
    plan_wait op = posted->op;
    if (pipeline_parts(emit) > 1 && is_v(emit)) /* not ahead: passes before it use the group, too */
        op = gather_parts(emit, received_in(emit, cells[i]), "gather_received", op);
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, op);
    posted->is = false;
}

static void post_next(
    struct emit *emit, const struct cell *cells, int n, int i, enum direction direction)
{
    int next = pipeline_next_of(emit, cells, n, i, direction);
    if (next < n)
        post(emit, cells[next]);
}

/* The next cell begins when what was sent has gone and what it needs has come. */
static void synchronize(struct emit *emit, plan_wait sent)
{
    struct plan_builder *builder = &emit->builder;
    plan_stream_wait(builder, STREAM_COMPUTE, sent);
    if (!emit->options->parallelism.batch_p2p_sync)
        return;
    plan_host_wait(builder, "batch_p2p_comm/synchronize", sent, 0);
    for (int d = 0; d < 2; d++)
        if (emit->posted[0][d].is)
            plan_host_wait(builder, "batch_p2p_comm/synchronize", emit->posted[0][d].op, 0);
}

/* Interleaved: a forward and a backward cell are a pair, behind which all four messages are one
 * batch (send_forward_backward_recv_forward_backward). */
static void exchange_of_pair(struct emit *emit, const struct cell *cells, int n, int i)
{
    int warm_up = schedule_warm_up(&emit->schedule);
    bool forward = cells[i].kind == CELL_FORWARD,
         paired = !forward && i > warm_up && cells[i - 1].kind == CELL_FORWARD;
    plan_wait sent_forward = PLAN_NO_OP;
    if (forward && i >= warm_up)
        return; /* its message goes with the backward cell's */
    if (paired) {
        int **saved = emit->saved;
        emit->saved = *flight_of(emit, cells[i - 1]);
        sent_forward = pipeline_send(emit, cells[i - 1]);
        emit->saved = saved;
    }
    plan_wait sent = pipeline_send(emit, cells[i]);
    if (forward || paired)
        post_next(emit, cells, n, i, ACTIVATIONS);
    if (!forward || i + 1 == warm_up)
        post_next(emit, cells, n, i, GRADIENTS);
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, sent_forward);
    synchronize(emit, sent != PLAN_NO_OP ? sent : sent_forward);
}

void pipeline_after(struct emit *emit, const struct cell *cells, int n, int i)
{
    bool overlaps = emit->options->parallelism.overlap_p2p_comm || is_v(emit);
    if (emit->schedule.stages == 1)
        return;
    pipeline_take_flight(emit, cells[i]); /* of merged passes both are over */
    if (!overlaps && emit->schedule.chunks > 1) {
        exchange_of_pair(emit, cells, n, i);
        return;
    }
    pipeline_turn(emit, cells[i]);
    plan_wait sent = pipeline_send(emit, cells[i]);
    if (overlaps) {
        post_next(emit, cells, n, i, direction_of(cells[i]));
        return;
    }
    if (i + 1 < n)
        post(emit, cells[i + 1]);
    synchronize(emit, sent);
}

/* Bytes of the logits; 0: this chunk has no head. */
static int64_t output_bytes(const struct emit *emit, struct cell cell)
{
    const struct model_segment *last = &emit->segments.at[emit->chunk_begin[cell.chunk + 1] - 1];
    if (last->kind != SEGMENT_EXIT)
        return 0;
    for (int k = last->program->n_forward - 1; k >= 0; k--) {
        const struct model_op *op = &last->program->forward[k];
        if (op->kind == MODEL_KERNEL && op->work.kind == KERNEL_GEMM)
            return op->work.m * op->work.n * op->work.batch * dtype_bytes(emit->workload.storage);
    }
    return 0;
}

void pipeline_keep_output(struct emit *emit, struct cell cell)
{
    const struct parallelism_options *options = &emit->options->parallelism;
    int64_t bytes = options->pipeline > 1 && options->merge_outputs ? output_bytes(emit, cell) : 0;
    if (bytes == 0)
        return;
    int buffer =
        plan_alloc(&emit->builder, STREAM_COMPUTE, "output_chunks", bytes, HBM_ACTIVATIONS);
    vec_push(&emit->outputs, buffer);
    emit->output_bytes += bytes;
}

void pipeline_merge_outputs(struct emit *emit)
{
    if (emit->outputs.n == 0)
        return;
    double bytes = (double)emit->output_bytes;
    int merged = plan_alloc(
        &emit->builder, STREAM_COMPUTE, "merge_outputs", emit->output_bytes, HBM_ACTIVATIONS);
    plan_kernel(&emit->builder, STREAM_COMPUTE, "merge_outputs",
        kernel_stream(KERNEL_COPY, bytes, bytes, 0), emit->options->host.kernel_issue_s);
    emit_free(emit, &merged, PLAN_NO_OP);
    for (int i = 0; i < emit->outputs.n; i++)
        emit_free(emit, &emit->outputs.at[i], PLAN_NO_OP);
    vec_free(&emit->outputs);
    emit->output_bytes = 0;
}
