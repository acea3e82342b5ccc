/* The segments of a micro-step, and what is summed over them.
 *
 * A segment is a part of the model whose program is recorded by itself: the entry, each block, what
 * lies between two stacks, borders of pipeline stages, the exit. Blocks that are alike share one
 * program: it names tensors by their place in the layer, and the segment has the layer's first
 * tensor. Only experts' loads that are drawn block by block (expert_spread) prevent sharing. So a
 * model of a hundred blocks costs one or two recordings.
 *
 * Context parallelism is applied here: the workload's lengths become a rank's part before anything
 * is recorded. A border has no kernels, only what is received and its gradient, of the size of what
 * the block behind it hands on. */
#include "model/family.h"

const char *const attention_kernel_names[] = {"naive", "flash", NULL};
const char *const kernel_fusion_names[FUSION_COUNT + 1] = {
    "eager", "inductor", "torchscript", "flash_attn", "transformer_engine", NULL};
const char *const recompute_part_names[] = {
    "core_attn", "moe", "layernorm", "moe_act", "mla_up_proj", "mlp", "shared_experts", NULL};
const char *const context_parallel_names[CONTEXT_PARALLEL_COUNT + 1] = {
    "p2p", "all_gather", "a2a", "ring_allgather", "ring_alltoall", NULL};
const char *const compiled_part_names[COMPILED_COUNT + 1] = {"model", "blocks", NULL};
const char *const fp8_recipe_names[FP8_RECIPE_COUNT + 1] = {
    "delayed", "tensorwise", "rowwise", "mxfp8", NULL};
const char *const rotary_names[ROTARY_COUNT + 1] = {"real", "complex", "unfused", NULL};
const char *const tensor_overlap_names[TENSOR_OVERLAP_COUNT + 1] = {
    "none", "async", "user_buffers", "micro_pipeline", NULL};
const char *const cross_entropy_names[CROSS_ENTROPY_COUNT + 1] = {
    "eager", "fused", "te", "loss_parallel", NULL};

bool model_takes_flash(const struct model_shape *shape)
{
    return shape->family != MODEL_T5 && !shape->mixes_heads;
}

int64_t model_sample_tokens(const struct model_shape *shape)
{
    if (shape->family == MODEL_DHEN)
        return shape->dhen.features;
    if (shape->image_size == 0 || shape->patch == 0)
        return shape->image_size == 0 ? 0 : 1;
    int64_t side = shape->image_size / shape->patch;
    return side * side + 1;
}

static int64_t segments_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

double model_largest_tensor_bytes(
    const struct model_shape *shape, int64_t micro_batch, int64_t seq_len, int64_t decoder_seq_len)
{
    double longest = (double)(seq_len > decoder_seq_len ? seq_len : decoder_seq_len);
    double d_ff = (double)shape->moe.d_ff,
           d_model = (double)shape->d_model; /* all tokens may meet on one rank */
    double routed = (double)(shape->moe.per_token * shape->moe.experts) *
                    (2 * d_ff > d_model ? 2 * d_ff : d_model);
    double heads = (double)segments_larger(shape->n_heads, shape->full.n_heads);
    int64_t dims = segments_larger(shape->d_kv, shape->full.d_kv) +
                   segments_larger(shape->value_dim, shape->full.value_dim);
    double widths[] = {heads * longest, heads * (double)(dims + shape->mla.v_head_dim),
        (double)shape->d_ff,
        (double)segments_larger(shape->mtp_layers > 0 ? 2 : 1, shape->hyper) * d_model,
        (double)shape->moe.shared_d_ff, routed, (double)shape->vocab};
    double widest = 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        widest = widths[i] > widest ? widths[i] : widest;
    if (shape->image_size >
        0) { /* the stem's result at most; stages are wider, and smaller by more */
        double width = (double)(shape->conv.stem_width > shape->d_model ? shape->conv.stem_width
                                                                        : shape->d_model);
        widest += (double)shape->image_size * (double)shape->image_size * width;
    }
    return (double)micro_batch * longest * widest * (double)sizeof(float);
}

int64_t model_tokens(const struct model *model, const struct model_workload *workload)
{
    if (model_sample_tokens(&model->shape) > 0)
        return workload->micro_batch;
    bool decoder_apart = model->shape.n_decoder_layers > 0;
    return workload->micro_batch *
           (workload->seq_len + (decoder_apart ? workload->decoder_seq_len : 0));
}

int64_t model_cache_bytes(
    const struct model *model, const struct model_workload *workload, int layer)
{
    const struct model_shape *shape = &model->shape;
    if (model->layers[layer].role != LAYER_DECODER_BLOCK ||
        !model_attends(shape, model->layers[layer].number))
        return 0;
    bool decoder_apart = shape->n_decoder_layers > 0;
    int64_t own = decoder_apart ? workload->decoder_seq_len : workload->seq_len;
    int64_t crossed = decoder_apart ? workload->seq_len : 0;
    int64_t keys_and_values =
        (own + crossed) * model_cached_width(shape, model->layers[layer].number);
    return workload->micro_batch * keys_and_values * dtype_bytes(workload->storage) /
           model_context_ranks(&workload->parallel);
}

bool model_cache_is_saved(const struct model *model, const struct model_workload *workload)
{
    return workload->attention == ATTENTION_FLASH || workload->micro_batch == 1 ||
           model->shape.sequence_first;
}

struct segments_builder {
    const struct model *model;
    const struct model_workload *workload;
    struct arena *arena;
    int next; /* the layer that a segment between blocks leads to */
    VEC(struct model_segment) segments;
};

/* As a segment of this kind runs: eager where torch.compile is of blocks only. */
static const struct model_workload *segments_workload_of(
    const struct segments_builder *b, enum segment_kind kind)
{
    if (b->workload->fusion != FUSION_INDUCTOR || b->workload->compiled == COMPILED_MODEL ||
        kind == SEGMENT_BLOCK)
        return b->workload;
    struct model_workload *eager = ARENA_ARRAY(b->arena, struct model_workload, 1);
    *eager = *b->workload;
    eager->fusion = FUSION_EAGER;
    return eager;
}

/* A chunk's passes are apart from those of other chunks: of both ends it has the one. */
static unsigned ends_of(const struct model *model, enum segment_kind kind)
{
    if (model->n_chunks < 2 || model->ends != MODEL_BOTH_ENDS)
        return model->ends;
    return kind == SEGMENT_ENTRY ? MODEL_ENTRY : MODEL_EXIT;
}

/* Tensors are found within a layer by name; alike layers have the same programs because a program's
 * indices are relative. Records one segment. Under "regional" torch.compile all segments but blocks
 * are recorded as eager. */
static const struct model_program *program(
    struct segments_builder *b, enum segment_kind kind, int layer)
{
    const struct model_workload *workload = segments_workload_of(b, kind);
    struct tape *tape = tape_open(b->model, layer, workload, b->arena);
    struct segment_context context = {
        .tape = tape,
        .arena = b->arena,
        .shape = &b->model->shape,
        .workload = workload,
        .role = b->model->layers[layer].role,
        .kind = kind,
        .frozen = b->model->trained < b->model->params,
        .layer = b->model->layers[kind == SEGMENT_MTP ? b->next : layer].number,
        .ends = ends_of(b->model, kind),
    };
    return tape_close(tape, model_family_code(&b->model->shape)->forward(&context));
}

static void segments_add(struct segments_builder *b, enum segment_kind kind, int layer)
{
    const struct model_program *shared = NULL;
    int alike = b->model->layers[layer].alike;
    bool drawn = b->workload->expert_spread > 0 && b->model->shape.moe.experts > 0;
    for (int i = 0; kind == SEGMENT_BLOCK && i < b->segments.n && !shared && !drawn; i++)
        if (b->segments.at[i].kind == SEGMENT_BLOCK && b->segments.at[i].layer == alike)
            shared = b->segments.at[i].program;
    struct model_segment segment = {
        .kind = kind,
        .layer = layer,
        .program = shared ? shared : program(b, kind, layer),
        .tensor_base = b->model->layers[layer].first_tensor,
    };
    vec_push(&b->segments, segment);
}

/* What blocks of a decoder hand on, where a stage has none. */
static int64_t hidden_bytes(const struct segments_builder *b)
{
    struct segment_context context = {.workload = b->workload};
    enum dtype dtype = b->workload->autocast ? DTYPE_FP32 : b->workload->storage;
    return segment_rows(&context, b->workload->seq_len) * model_stream_width(&b->model->shape) *
           dtype_bytes(dtype);
}

/* Chunks that begin with layer i; what they receive has the size of this block's output. The first
 * one of a stage with the embedding receives nothing, and one at the end has no block. */
static void add_borders(struct segments_builder *b, int *chunk, int i, int block)
{
    for (; *chunk < b->model->n_chunks && b->model->chunks[*chunk] == i; (*chunk)++) {
        if (*chunk == 0 && b->model->ends & MODEL_ENTRY)
            continue;
        int64_t bytes =
            block < 1 ? hidden_bytes(b) : program(b, SEGMENT_BLOCK, block)->output_bytes;
        vec_push(&b->segments, ((struct model_segment){.kind = SEGMENT_BORDER,
                                   .program = model_border(bytes, b->arena)}));
    }
}

void model_segments(struct model_segments *out, const struct model *model,
    const struct model_workload *workload, struct arena *arena)
{
    BUG_IF(model_context_ranks(&workload->parallel) > 1 && workload->attention != ATTENTION_FLASH,
        "context parallelism of naive attention");
    struct model_workload local = *workload; /* a rank of AXIS_CP has its part of all sequences */
    local.seq_len /= model_context_ranks(&workload->parallel);
    local.decoder_seq_len /= model_context_ranks(&workload->parallel);
    struct segments_builder builder = {.model = model, .workload = &local, .arena = arena};
    if (model->ends & MODEL_ENTRY)
        segments_add(&builder, SEGMENT_ENTRY, 0);
    int chunk = 0;
    for (int i = 1; i < model->n_layers; i++) {
        add_borders(&builder, &chunk, i, i);
        if (model->layers[i].role == LAYER_DECODER_BLOCK &&
            model->layers[i - 1].role == LAYER_ENCODER_BLOCK) {
            segments_add(&builder, SEGMENT_STACK_EXIT, 0);
            segments_add(&builder, SEGMENT_DECODER_ENTRY, 0);
        }
        builder.next = i;
        if (model->shape.mtp_layers > 0 && model->layers[i].number > model->shape.n_layers)
            segments_add(&builder, SEGMENT_MTP, 0);
        segments_add(&builder, SEGMENT_BLOCK, i);
    }
    add_borders(&builder, &chunk, model->n_layers, model->n_layers - 1);
    if (model->ends & MODEL_EXIT)
        segments_add(&builder, SEGMENT_EXIT, 0);
    out->n = builder.segments.n;
    vec_keep(out->at, &builder.segments, arena);
}

static double kernels_flop(const struct model_op *kernels, int n)
{
    double flop = 0;
    for (int i = 0; i < n; i++)
        flop += kernels[i].model_flop;
    return flop;
}

static double program_flop(const struct model_program *program)
{
    return kernels_flop(program->forward, program->n_forward);
}

double model_step_flop(const struct model_segments *segments)
{
    double flop = model_forward_flop(segments);
    for (int i = 0; i < segments->n; i++)
        flop +=
            kernels_flop(segments->at[i].program->backward, segments->at[i].program->n_backward);
    return flop;
}

double model_step_masked_flop(const struct model_segments *segments)
{
    double flop = 0;
    for (int i = 0; i < segments->n; i++) {
        const struct model_program *program = segments->at[i].program;
        for (int k = 0; k < program->n_forward; k++)
            flop += program->forward[k].masked_flop;
        for (int k = 0; k < program->n_backward; k++)
            flop += program->backward[k].masked_flop;
    }
    return flop;
}

double model_forward_flop(const struct model_segments *segments)
{
    double flop = 0;
    for (int i = 0; i < segments->n; i++)
        flop += program_flop(segments->at[i].program);
    return flop;
}

double model_block_forward_flop(const struct model_segments *segments)
{
    double flop = 0;
    for (int i = 0; i < segments->n; i++)
        if (segments->at[i].kind == SEGMENT_BLOCK)
            flop += program_flop(segments->at[i].program);
    return flop;
}
