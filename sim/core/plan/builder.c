/* Building a plan op by op, folding its programs, and sums over it.
 *
 * The builder keeps a tail for each queue: its last op, and waits that its next op will take.
 * plan_stream_wait() only adds to these; the op that comes next on the queue has them, as
 * cudaStreamWaitEvent has it. An op's waits lie in one array of the program, so an op is pushed
 * after its waits, and only one op can grow at a time.
 *
 * Kernels are held once each, found by a hash of their work: of a million ops a few hundred differ.
 * Messages and channels are so few that a linear search does. Groups are the same if their ranks
 * are. Collectives are held one an op, unless programs are folded.
 *
 * Programs are folded (plan/fold.h) while they grow or when they are complete. In the first case
 * program->ops stays empty, waits has those of the op that is pushed, and numbers of freed buffers
 * are used again. In the second a program's arrays go on to the next one, emptied. Subtle:
 * plan_check() cannot see ops of a folded program, so what holds for one program alone is checked
 * beforehand, as a BUG.
 *
 * plan_end() gives device ops their positions in their queues. Until then position is -1, as it is
 * for host ops for ever. */
#include "plan/plan.h"

#include "base/digest.h"
#include "plan/check.h"
#include "plan/fold.h"

#include <stdlib.h>
#include <string.h>

const char *const hbm_category_names[] = {"parameters", "gradients", "optimizer", "activations",
    "gathered", "buffers", "context", "nccl", NULL};
const char *const plan_phase_names[] = {
    "setup", "forward", "backward", "recompute", "optimizer", NULL};

const char *const plan_parallelism_names[] = {
    "data", "tensor", "context", "expert", "pipeline", NULL};

enum plan_parallelism plan_parallelism_of(unsigned axes)
{
    return axes & AXES_DP         ? PARALLEL_DATA
           : axes & 1U << AXIS_PP ? PARALLEL_PIPELINE
           : axes & 1U << AXIS_EP ? PARALLEL_EXPERT
           : axes & 1U << AXIS_TP ? PARALLEL_TENSOR
           : axes & 1U << AXIS_CP ? PARALLEL_CONTEXT
                                  : PARALLEL_DATA;
}

static void begin_program(struct plan_builder *builder)
{
    builder->phase = PHASE_SETUP;
    builder->launched = false;
    builder->last_step = PLAN_NO_OP;
    builder->unused.n = 0;
    if (builder->folds == PLAN_FOLDS_OPS)
        builder->folding =
            plan_folding_begin(builder->plan, builder->program, &builder->plan->folds);
    for (int q = 0; q < builder->tails.n; q++) {
        builder->tails.at[q].last_op = PLAN_NO_OP;
        builder->tails.at[q].pending.n = 0;
    }
}

int plan_queue(struct plan_builder *builder, const char *name, enum plan_queue_kind kind)
{
    struct plan *plan = builder->plan;
    for (int q = 0; q < plan->queues.n; q++)
        if (strcmp(plan->queues.at[q].name, name) == 0)
            return q;
    vec_push(&plan->queues, (struct plan_queue){name, (uint8_t)kind});
    vec_push(&builder->tails, (struct plan_tail){.last_op = PLAN_NO_OP});
    return plan->queues.n - 1;
}

static void begin_plan(struct plan_builder *builder, struct plan empty, struct plan *plan)
{
    static const struct plan_queue standard[STREAM_COUNT] = {
        [STREAM_COMPUTE] = {"compute", QUEUE_COMPUTE},
        [STREAM_COMM] = {"comm", QUEUE_COMM},
        [STREAM_REPLICATE] = {"replicate", QUEUE_COMM},
        [STREAM_UNSHARD] = {"unshard", QUEUE_SIDE},
        [STREAM_POST] = {"post", QUEUE_SIDE},
        [STREAM_LOADER] = {"loader", QUEUE_HOST},
    };
    *plan = empty;
    plan->programs = xcalloc((size_t)plan->n_programs, sizeof *plan->programs);
    *builder = (struct plan_builder){.plan = plan, .program = plan->programs};
    for (int s = 0; s < STREAM_COUNT; s++)
        plan_queue(builder, standard[s].name, standard[s].kind);
    begin_program(builder);
}

void plan_begin_programs(struct plan_builder *builder, struct plan *plan, const struct mesh *mesh,
    enum mesh_axis program_axis)
{
    begin_plan(builder,
        (struct plan){.mesh = *mesh,
            .program_axis = program_axis,
            .n_programs = mesh->size[program_axis],
            .inner = 1},
        plan);
}

void plan_begin_programs_by_two(struct plan_builder *builder, struct plan *plan,
    const struct mesh *mesh, enum mesh_axis program_axis, enum mesh_axis inner_axis)
{
    int inner = mesh->size[inner_axis];
    begin_plan(builder,
        (struct plan){.mesh = *mesh,
            .program_axis = program_axis,
            .inner_axis = inner_axis,
            .inner = inner,
            .n_programs = mesh->size[program_axis] * inner},
        plan);
}

void plan_fold_programs(struct plan_builder *builder, enum plan_folds folds)
{
    builder->folds = folds;
    begin_program(builder);
}

void plan_begin(struct plan_builder *builder, struct plan *plan, int ranks)
{
    struct mesh mesh = mesh_data_parallel(ranks, ranks);
    plan_begin_programs(builder, plan, &mesh, AXIS_PP);
}

static void release_queue_ops(struct plan_program *program)
{
    for (int q = 0; q < program->queue_ops.n; q++)
        vec_free(&program->queue_ops.at[q]);
    vec_free(&program->queue_ops);
}

static void place_ops(const struct plan *plan, struct plan_program *program)
{
    release_queue_ops(program);
    for (int q = 0; q < plan->queues.n; q++)
        vec_push(&program->queue_ops, (plan_numbers){0});
    for (int i = 0; i < program->ops.n; i++) {
        struct plan_op *op = &program->ops.at[i];
        if (op->kind != OP_KERNEL && !plan_op_is_comm(op))
            continue;
        op->position = program->queue_ops.at[op->stream].n;
        vec_push(&program->queue_ops.at[op->stream], i);
    }
    for (int q = 0; q < plan->queues.n; q++)
        vec_fit(&program->queue_ops.at[q]);
}

/* The program is complete; what holds for one alone is checked here, as plan_check() sees folds
 * only. */
static void fold_program(struct plan_builder *builder)
{
    struct plan *plan = builder->plan;
    struct plan_program *program = builder->program;
    char why[256];
    if (builder->folding)
        program->fold = plan_folding_end(builder->folding, builder->last_step);
    else
        program->fold = plan_fold_make(plan, program, builder->own, &builder->alike, &plan->folds);
    builder->unfit |= builder->folding && !program->fold;
    builder->folding = NULL;
    builder->own = plan->collectives.n;
    BUG_IF(program->fold && !plan_fold_holds(plan, program->fold, why, sizeof why), "%s", why);
}

/* Arrays that grew by doubling give back what they do not need: a pipeline has millions of ops. Of
 * a program that is folded they are the next one's. */
static void end_program(struct plan_builder *builder, struct plan_program *next)
{
    struct plan_program *program = builder->program;
    bool folding = builder->folding != NULL;
    if (builder->folds != PLAN_FOLDS_NONE)
        fold_program(builder);
    if (!program->fold && !folding) {
        vec_fit(&program->ops);
        vec_fit(&program->waits);
        vec_fit(&program->buffers);
        return;
    }
    vec_free(&program->setup);
    if (next) {
        memcpy(&next->ops, &program->ops, sizeof next->ops);
        memcpy(&next->waits, &program->waits, sizeof next->waits);
        memcpy(&next->buffers, &program->buffers, sizeof next->buffers);
        next->ops.n = next->waits.n = next->buffers.n = 0;
        memset(&program->ops, 0, sizeof program->ops);
        memset(&program->waits, 0, sizeof program->waits);
        memset(&program->buffers, 0, sizeof program->buffers);
    } else {
        vec_free(&program->ops);
        vec_free(&program->waits);
        vec_free(&program->buffers);
    }
}

void plan_next_program(struct plan_builder *builder)
{
    bool last = builder->program + 1 == builder->plan->programs + builder->plan->n_programs;
    BUG_IF(last, "one program more than %d", builder->plan->n_programs);
    end_program(builder, builder->program + 1);
    builder->program++;
    begin_program(builder);
}

void plan_begin_cell(struct plan_builder *builder, const char *pass, int micro_batch, int chunk)
{
    struct plan_program *program = builder->program;
    vec_push(&program->cells, (struct plan_cell){pass, plan_next_op(builder), micro_batch, chunk});
    if (builder->folding)
        plan_folding_cut(builder->folding);
}

struct plan_cell plan_cell_of(const struct plan_program *program, int op)
{
    int low = 0,
        high = program->cells.n; /* the first cell that begins behind the op is in [low, high] */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (program->cells.at[middle].first_op > op)
            high = middle;
        else
            low = middle + 1;
    }
    return low > 0 ? program->cells.at[low - 1] : (struct plan_cell){.pass = NULL};
}

int plan_group_of(struct plan_builder *builder, const char *name, struct mesh_group ranks)
{
    struct plan *plan = builder->plan;
    for (int i = 0; i < plan->groups.n; i++)
        if (mesh_group_same(&plan->groups.at[i].ranks, &ranks))
            return i;
    vec_push(&plan->groups, (struct plan_group){name, ranks});
    return plan->groups.n - 1;
}

int plan_group(struct plan_builder *builder, const char *name, int size, int stride)
{
    return plan_group_of(builder, name,
        (struct mesh_group){
            .size = size, .stride = stride, .width = stride, .period = size * stride});
}

void plan_stream_wait(struct plan_builder *builder, int queue, plan_wait op)
{
    if (op != PLAN_NO_OP)
        vec_push(&builder->tails.at[queue].pending, op);
}

static int stream_of(const struct plan_builder *builder, int op)
{
    return builder->folding ? plan_folding_stream(builder->folding, op)
                            : builder->program->ops.at[op].stream;
}

void plan_stream_wait_stream(struct plan_builder *builder, int queue, int other)
{
    const struct plan_tail *of = &builder->tails.at[other];
    plan_stream_wait(builder, queue, of->last_op);
    for (int i = 0; i < of->pending.n; i++) {
        plan_wait op = of->pending.at[i];
        if (op & PLAN_PREVIOUS_STEP || stream_of(builder, op) != queue)
            plan_stream_wait(builder, queue, op);
    }
}

/* One launch, the first, for all that lies in forward and backward passes. */
static void capture(struct plan_builder *builder, struct plan_op *op)
{
    if (op->phase != PHASE_FORWARD && op->phase != PHASE_BACKWARD && op->phase != PHASE_RECOMPUTE)
        return;
    if (op->kind == OP_HOST_WAIT) {
        op->kind = OP_HOST;
        builder->program->waits.n -= op->n_waits;
        op->n_waits = 0;
    }
    op->host_s = builder->launched ? 0 : op->host_s;
    builder->launched |= op->kind != OP_HOST;
}

/* Its waits are the last ones of the program's. */
static int push_op(struct plan_builder *builder, struct plan_op op, const char *name)
{
    struct plan_program *program = builder->program;
    op.name = name;
    op.phase = (uint8_t)builder->phase;
    if (builder->captures && !plan_op_is_memory(&op))
        capture(builder, &op);
    op.first_wait = program->waits.n - op.n_waits;
    op.position = -1;
    if (builder->folding) {
        program->waits.n = 0;
        return plan_folding_push(builder->folding, &op, program->waits.at);
    }
    vec_push(&program->ops, op);
    return program->ops.n - 1;
}

/* A device op takes the waits that were put on its queue since the last one. */
static int push_device_op(struct plan_builder *builder, enum op_kind kind, int queue,
    const char *name, int32_t index, double host_s)
{
    struct plan_tail *tail = &builder->tails.at[queue];
    BUG_IF(tail->pending.n > UINT16_MAX, "%d waits on one op", tail->pending.n);
    for (int i = 0; i < tail->pending.n; i++)
        vec_push(&builder->program->waits, tail->pending.at[i]);
    struct plan_op op = {.kind = (uint8_t)kind,
        .stream = (uint8_t)queue,
        .n_waits = (uint16_t)tail->pending.n,
        .index = index,
        .host_s = (float)host_s};
    tail->pending.n = 0;
    return tail->last_op = push_op(builder, op, name);
}

struct sought_kernel {
    const struct plan *plan;
    const struct kernel_work *work;
};

static bool same_kernel(const void *self, int32_t item)
{
    const struct sought_kernel *sought = self;
    return kernel_same(sought->work, &sought->plan->kernels.at[item]);
}

/* The blocks of a model and the micro-steps are alike: of a million kernels a few hundred are not
 * the same. */
int32_t plan_kernel_number(
    struct plan_builder *builder, const struct kernel_work *work, int32_t guess)
{
    struct plan *plan = builder->plan;
    if (guess >= 0 && kernel_same(work, &plan->kernels.at[guess]))
        return guess;
    uint64_t hash = kernel_digest(work);
    int32_t known =
        index_find(&builder->kernels, hash, same_kernel, &(struct sought_kernel){plan, work});
    if (known >= 0)
        return known;
    vec_push(&plan->kernels, *work);
    index_add(&builder->kernels, hash, plan->kernels.n - 1);
    return plan->kernels.n - 1;
}

int plan_kernel_numbered(
    struct plan_builder *builder, int queue, const char *name, int32_t kernel, double host_s)
{
    const struct kernel_work *work = &builder->plan->kernels.at[kernel];
    if (work->kind == KERNEL_GEMM || work->kind == KERNEL_ATTENTION) {
        builder->program->hardware_flop += work->flop;
        builder->program->math_flop[work->math] += work->flop;
    }
    return push_device_op(builder, OP_KERNEL, queue, name, kernel, host_s);
}

int plan_kernel(struct plan_builder *builder, int queue, const char *name, struct kernel_work work,
    double host_s)
{
    return plan_kernel_numbered(
        builder, queue, name, plan_kernel_number(builder, &work, -1), host_s);
}

static void need_comm(const struct plan_builder *builder, int queue, const char *name)
{
    BUG_IF(!plan_queue_is_comm(builder->plan, queue), "%s on the stream '%s'", name,
        builder->plan->queues.at[queue].name);
}

int plan_collective(struct plan_builder *builder, int queue, const char *name, enum coll_kind kind,
    double bytes, int group, double host_s)
{
    struct plan *plan = builder->plan;
    need_comm(builder, queue, name);
    if (plan->groups.at[group].ranks.size == 1)
        return PLAN_NO_OP;
    const struct plan_collective one = {kind, bytes, group, builder->serves, builder->routing};
    int32_t number = plan->collectives.n;
    if (builder->folding)
        number = plan_fold_collective(plan, &builder->alike, &one, number);
    if (number == plan->collectives.n)
        vec_push(&plan->collectives, one);
    return push_device_op(builder, OP_COLLECTIVE, queue, name, number, host_s);
}

/* Channels and messages are few: those of one channel are mostly of one size. */
static int builder_message_of(struct plan *plan, struct plan_channel channel, double bytes)
{
    int c = 0, m = 0;
    while (c < plan->channels.n && !plan_channel_same(&plan->channels.at[c], &channel))
        c++;
    if (c == plan->channels.n)
        vec_push(&plan->channels, channel);
    while (m < plan->messages.n &&
           (plan->messages.at[m].channel != c || plan->messages.at[m].bytes != bytes))
        m++;
    if (m == plan->messages.n)
        vec_push(&plan->messages, (struct plan_message){c, bytes});
    return m;
}

static int push_message(struct plan_builder *builder, enum op_kind kind, int queue,
    const char *name, struct plan_channel channel, double bytes, double host_s)
{
    need_comm(builder, queue, name);
    if (builder->plan->mesh.size[channel.axis] == 1)
        return PLAN_NO_OP;
    return push_device_op(
        builder, kind, queue, name, builder_message_of(builder->plan, channel, bytes), host_s);
}

int plan_send(struct plan_builder *builder, int queue, const char *name,
    struct plan_channel channel, double bytes, double host_s)
{
    return push_message(builder, OP_SEND, queue, name, channel, bytes, host_s);
}

int plan_recv(struct plan_builder *builder, int queue, const char *name,
    struct plan_channel channel, double bytes, double host_s)
{
    return push_message(builder, OP_RECV, queue, name, channel, bytes, host_s);
}

int plan_host(struct plan_builder *builder, const char *name, double host_s)
{
    return push_op(
        builder, (struct plan_op){.kind = OP_HOST, .index = -1, .host_s = (float)host_s}, name);
}

int plan_host_wait(struct plan_builder *builder, const char *name, plan_wait waited, double host_s)
{
    if (waited == PLAN_NO_OP)
        return PLAN_NO_OP;
    vec_push(&builder->program->waits, waited);
    return push_op(builder,
        (struct plan_op){.kind = OP_HOST_WAIT, .n_waits = 1, .index = -1, .host_s = (float)host_s},
        name);
}

static int push_buffer(struct plan_builder *builder, int queue, const char *name, int64_t bytes,
    enum hbm_category category)
{
    struct plan_program *program = builder->program;
    const struct plan_buffer buffer = {bytes, (uint8_t)category, (uint8_t)queue, name};
    if (builder->unused.n > 0) {
        int number = builder->unused.at[--builder->unused.n];
        program->buffers.at[number] = buffer;
        return number;
    }
    vec_push(&program->buffers, buffer);
    return program->buffers.n - 1;
}

void plan_keep(
    struct plan_builder *builder, const char *name, int64_t bytes, enum hbm_category category)
{
    if (bytes <= 0)
        return;
    int buffer = push_buffer(builder, STREAM_COMPUTE, name, bytes, category);
    vec_push(&builder->program->setup, buffer);
}

int plan_alloc(struct plan_builder *builder, int queue, const char *name, int64_t bytes,
    enum hbm_category category)
{
    if (bytes <= 0)
        return PLAN_NO_OP;
    int buffer = push_buffer(builder, queue, name, bytes, category);
    push_op(builder, (struct plan_op){.kind = OP_ALLOC, .stream = (uint8_t)queue, .index = buffer},
        name);
    return buffer;
}

void plan_keep_from_here(
    struct plan_builder *builder, const char *name, int64_t bytes, enum hbm_category category)
{
    if (bytes <= 0)
        return;
    int buffer = push_buffer(builder, STREAM_COMPUTE, name, bytes, category);
    push_op(builder, (struct plan_op){.kind = OP_KEEP, .stream = STREAM_COMPUTE, .index = buffer},
        name);
}

void plan_free(struct plan_builder *builder, int buffer, plan_wait last_use)
{
    struct plan_program *program = builder->program;
    if (buffer == PLAN_NO_OP)
        return;
    struct plan_op op = {
        .kind = OP_FREE, .stream = program->buffers.at[buffer].stream, .index = buffer};
    if (last_use != PLAN_NO_OP) {
        vec_push(&program->waits, last_use);
        op.n_waits = 1;
    }
    push_op(builder, op, program->buffers.at[buffer].name);
    if (builder->folding)
        vec_push(&builder->unused, buffer);
}

int plan_last_op(const struct plan_builder *builder, int queue)
{
    return builder->tails.at[queue].last_op;
}

int plan_next_op(const struct plan_builder *builder)
{
    return builder->folding ? plan_folding_ops(builder->folding) : builder->program->ops.n;
}

void plan_link_steps(struct plan_builder *builder, int last)
{
    struct plan_program *program = builder->program;
    builder->last_step = last;
    for (int w = 0; w < program->waits.n; w++)
        if (program->waits.at[w] == PLAN_LAST_STEP)
            program->waits.at[w] = PLAN_PREVIOUS_STEP + last;
}

bool plan_end(struct plan_builder *builder)
{
    struct plan *plan = builder->plan;
    BUG_IF(builder->program + 1 != plan->programs + plan->n_programs,
        "program %d of %d is the last", (int)(builder->program - plan->programs), plan->n_programs);
    end_program(builder, NULL);
    for (int p = 0; p < plan->n_programs; p++) {
        char why[256];
        if (plan->programs[p].fold)
            continue;
        place_ops(plan, &plan->programs[p]);
        BUG_IF(builder->folds != PLAN_FOLDS_NONE &&
                   !plan_program_holds(plan, &plan->programs[p], why, sizeof why),
            "%s", why);
    }
    for (int q = 0; q < builder->tails.n; q++)
        vec_free(&builder->tails.at[q].pending);
    vec_free(&builder->tails);
    vec_free(&builder->unused);
    index_free(&builder->kernels);
    index_free(&builder->alike);
    return !builder->unfit;
}

int plan_program_ops(const struct plan_program *program)
{
    return program->fold ? program->fold->n_ops : program->ops.n;
}

int plan_ops(const struct plan *plan)
{
    int n = 0;
    for (int p = 0; p < plan->n_programs; p++)
        n += plan_program_ops(&plan->programs[p]);
    return n;
}

bool plan_documents_vary(const struct plan *plan)
{
    bool vary = false;
    for (int p = 0; p < plan->n_programs; p++)
        vary |= plan->programs[p].packing.documents.n > 1;
    return vary;
}

double plan_model_flop(const struct plan *plan, enum attention_flop counts)
{
    double sum = 0;
    for (int p = 0; p < plan->n_programs; p++)
        sum += (plan->programs[p].model_flop -
                (counts == ATTENTION_FLOP_CAUSAL ? plan->programs[p].masked_flop : 0));
    return sum / plan->n_programs;
}

double plan_hardware_flop(const struct plan *plan, enum attention_flop counts)
{
    double sum = 0;
    for (int p = 0; p < plan->n_programs; p++)
        sum += (plan->programs[p].hardware_flop +
                (counts == ATTENTION_FLOP_FULL ? plan->programs[p].skipped_flop : 0));
    return sum / plan->n_programs;
}

double plan_math_flop(const struct plan *plan, enum dtype math)
{
    double sum = 0;
    for (int p = 0; p < plan->n_programs; p++)
        sum += plan->programs[p].math_flop[math];
    return sum / plan->n_programs;
}

static void release_program(struct plan_program *program)
{
    vec_free(&program->ops);
    vec_free(&program->waits);
    vec_free(&program->buffers);
    vec_free(&program->setup);
    vec_free(&program->cells);
    release_queue_ops(program);
}

void plan_release(struct plan *plan)
{
    for (int p = 0; p < plan->n_programs; p++)
        release_program(&plan->programs[p]);
    free(plan->programs);
    arena_release(&plan->folds);
    vec_free(&plan->queues);
    vec_free(&plan->groups);
    vec_free(&plan->channels);
    vec_free(&plan->kernels);
    vec_free(&plan->collectives);
    vec_free(&plan->messages);
    plan->programs = NULL;
    plan->n_programs = 0;
}

static bool takes_as_long(const void *self, int32_t item)
{
    const struct plan_collective *all =
        ((const struct plan *)((const void *const *)self)[0])->collectives.at;
    const struct plan_collective *sought = ((const void *const *)self)[1];
    return sought->kind == all[item].kind && sought->bytes == all[item].bytes &&
           sought->group == all[item].group && sought->routing == all[item].routing;
}

int *plan_first_collectives(const struct plan *plan)
{
    int *first = xcalloc((size_t)plan->collectives.n + 1, sizeof *first);
    struct index known = {0};
    for (int c = 0; c < plan->collectives.n; c++) {
        const struct plan_collective *at = &plan->collectives.at[c];
        uint64_t bits,
            hash = digest_word(DIGEST_INIT, (uint64_t)at->kind << 32 | (uint64_t)at->group);
        memcpy(&bits, &at->bytes, sizeof bits);
        hash = digest_word(hash, bits);
        first[c] = index_find(&known, hash, takes_as_long, (const void *const[]){plan, at});
        if (first[c] >= 0)
            continue;
        first[c] = c;
        index_add(&known, hash, c);
    }
    index_free(&known);
    return first;
}
