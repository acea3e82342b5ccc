/* Mixture of experts: router, dispatch, experts, combine, shared expert, in this order except that
 * the shared expert comes first. T tokens of a rank, k experts of E a token, e ranks share them,
 * each expert's width is cut over t of them.
 *
 * Names and layout are those of transformers 5: mlp.gate, mlp.experts.gate_up_proj and .down_proj
 * with the matrices of a block's experts one upon another, mlp.shared_expert (Qwen2-MoE, with
 * mlp.shared_expert_gate) or mlp.shared_experts (DeepSeek, several shared ones as one of their
 * width). With squared_relu (Nemotron-H) all of them have two matrices, .up_proj in the place of
 * .gate_up_proj, and one kernel squares and multiplies by the probabilities in SwiGLU's place.
 *
 * With a latent (Nemotron 3's LatentMoE: moe_latent_size) a matrix of all experts, fc1_latent_proj,
 * narrows the tokens before dispatch, and another, fc2_latent_proj, widens their sum behind
 * combine; router and shared expert read the residual stream. So the exchanges carry the latent,
 * too. Each rank has both matrices whole, also under tensor parallelism. Sources: transformers'
 * NemotronHMoE and Megatron-LM's moe_layer.py (recalled), whose FLOP count replaces d_model by the
 * latent and adds 2 x d_model x latent (moe_latent_size in training.py). There the shared expert
 * does not overlap the exchanges of a latent; here moe_shared_expert_overlap is refused with it.
 *
 * expert_kernels grouped is Megatron-LM with TransformerEngine: rows in the order of experts,
 * products of all of a rank's experts in one kernel, one kernel for SwiGLU and the probabilities,
 * rows summed again. The host waits for the numbers of rows before it can start products (a copy to
 * the host and a synchronisation). Dispatchers:
 * - alltoall: gather of T k rows; an all_gather of the counts; all_to_all of rows (T k d_model
 *   elements) and of probabilities; over t > 1 an all_gather of both; rows sorted by expert where a
 *   rank has several; back the same way.
 * - flex, DeepEP: a token goes once to each rank that has one of its experts (coll/deepep.c), and
 *   what has come is gathered into the order of experts there; the host waits for the numbers of
 *   rows, which the kernel exchanges; sums over a rank's experts, which the combine adds up on the
 *   way back. HybridEP: its kernels also gather and sum.
 * - allgather: all_gather of tokens and of all E probabilities over e t ranks; gather of the rank's
 *   rows; back by a sum in place and a reduce_scatter.
 * expert_kernels loop on one rank is transformers' eager loop: a mask of every expert and choice;
 * for each expert its rows are looked up, which the host waits for, gathered, multiplied, weighted
 * and added. Matrices are as transformers 4 has them, each by itself (in version 5 the gradient of
 * each is added to one of all). Over several ranks it is Megatron's SequentialMLP: as grouped, but
 * products and SwiGLU run expert by expert, whose results are concatenated.
 *
 * Balance: experts of a rank get equal numbers of rows. With expert_imbalance a rank's experts get
 * that multiple of the mean rank's rows; the message of an exchange grows as much, for all to all
 * wait for their busiest. FLOP of the model count T k rows. expert_spread draws the multiple, block
 * by block; each block's busiest rank is the one that is modelled, in memory too, where no rank is
 * the busiest of all. An expert takes at most expert_capacity times its mean of a rank's tokens.
 * pad_to_capacity: just as many, so that no numbers of rows are exchanged or waited for.
 *
 * Assumed: the router multiplies in the storage format (moe_router_dtype none; transformers takes
 * FP32 for DeepSeek), its scores are FP32. aux_loss: the loss that balances experts. Ignored: other
 * such losses, the sort of indices, the bytes of the map of tokens and experts and its gather,
 * fused routing.
 *
 * In FP8 and NVFP4 the number of rows of an expert has to be a multiple of 16. Megatron-LM's
 * TEGroupedMLP copies all rows into such places before the products and back behind them
 * (TransformerEngine's Fp8Padding and Fp8Unpadding, core 0.9 and later; they copy nothing where the
 * numbers already fit, which they do by chance only). With moe_router_padding_for_quantization the
 * router fills up, with HybridEP its kernel does (recalled), and nothing is copied. Ignored: that
 * probabilities are copied, too; the rows that are filled up; SequentialMLP's copies.
 *
 * Permutation to the order of experts and back: each row is read and written once, as
 * TransformerEngine's kernels and HybridEP's do. Without moe_permute_fusion they are index_select,
 * a product with the probabilities, scatter_add_ into zeros, and their backward passes, by a
 * measured multiple of it. */
#include "model/family.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

const char *const router_names[ROUTER_COUNT + 1] = {[ROUTER_SOFTMAX] = "softmax",
    [ROUTER_SIGMOID] = "sigmoid",
    [ROUTER_PLAIN_SIGMOID] = "plain_sigmoid"};
const char *const expert_kernel_names[EXPERT_KERNELS_COUNT + 1] = {
    [EXPERTS_GROUPED] = "grouped", [EXPERTS_LOOP] = "loop"};
const char *const token_dispatcher_names[DISPATCHER_COUNT + 1] = {
    [DISPATCHER_ALLTOALL] = "alltoall",
    [DISPATCHER_ALLGATHER] = "allgather",
    [DISPATCHER_FLEX] = "flex"};
const char *const flex_backend_names[FLEX_BACKEND_COUNT + 1] = {
    [FLEX_DEEPEP] = "deepep", [FLEX_HYBRIDEP] = "hybridep"};

/* What PyTorch's kernels for permutation take over those that read and write each row once. Kind:
 * measured, A100, of which permutation reaches 0.1879 of the HBM's rate and plain streams 0.91
 * (github MooreThreads/SimuMax, a100_pcie). */
static const double unfused_permutation = 0.91 / 0.1879;

int64_t model_local_experts(const struct model_shape *shape, int64_t block)
{
    const struct model_moe *moe = &shape->moe;
    block = model_kind_of(shape, block + 1) - 1;
    bool routed = shape->pattern ? shape->pattern[block] == 'E'
                                 : block >= moe->dense_layers &&
                                       (moe->every <= 1 || (block + 1) % moe->every == 0);
    return !routed ? 0 : moe->local > 0 ? moe->local : moe->experts;
}

/* Columns of what an expert's first product gives, over its width. */
static int64_t first_widths(const struct model_shape *s)
{
    return s->squared_relu ? 1 : 2;
}

static const char *moe_first_name(const struct model_shape *s)
{
    return s->squared_relu ? "up_proj" : "gate_up_proj";
}

int64_t model_active_params(const struct model_shape *shape, int64_t params)
{
    const struct model_moe *moe = &shape->moe;
    const int64_t first = first_widths(shape) * moe->d_ff, width = model_routed_width(shape);
    for (int64_t block = 0; block < shape->n_layers + shape->mtp_layers; block++)
        if (model_local_experts(shape, block) > 0)
            params -= (moe->experts - moe->per_token) *
                      ((first + moe->d_ff) * width + (moe->biases ? first + width : 0));
    return params;
}

static const char *shared_name(const struct model_shape *s)
{
    return s->moe.shared_gate ? "mlp.shared_expert" : "mlp.shared_experts";
}

void moe_tensors(struct model_builder *b, int64_t block)
{
    const struct model_shape *s = b->shape;
    const struct model_moe *moe = &s->moe;
    int64_t local = moe->local > 0 ? moe->local : moe->experts, d = s->d_model,
            first = first_widths(s) * moe->d_ff;
    int64_t width = model_routed_width(s);
    unsigned split = local < moe->experts ? 1U << AXIS_EP : 0;
    build_tensor(b, "mlp.gate.weight", moe->experts, d);
    if (moe->beside) { /* Gemma4TextRouter's scales: of what it reads, and of each expert */
        build_tensor(b, "mlp.gate_scale.weight", d, 1);
        build_tensor(b, "mlp.per_expert_scale.weight", moe->experts, 1);
    }
    if (moe->router == ROUTER_SIGMOID && block >= moe->hash_layers)
        build_buffer(b, "mlp.gate.e_score_correction_bias", moe->experts);
    if (moe->biases)
        build_tensor(b, "mlp.gate.bias", moe->experts, 1);
    if (moe->latent > 0) {
        build_tensor(b, "mlp.fc1_latent_proj.weight", moe->latent, d);
        build_tensor(b, "mlp.fc2_latent_proj.weight", d, moe->latent);
    }
    build_tensor(
        b, arena_printf(b->arena, "mlp.experts.%s", moe_first_name(s)), local * first, width);
    build_split(b, split);
    build_tensor(b, "mlp.experts.down_proj", local * width, moe->d_ff);
    build_split(b, split);
    if (moe->biases) {
        build_tensor(
            b, arena_printf(b->arena, "mlp.experts.%s_bias", moe_first_name(s)), local * first, 1);
        build_split(b, split);
        build_tensor(b, "mlp.experts.down_proj_bias", local * width, 1);
        build_split(b, split);
    }
    if (moe->shared_d_ff == 0)
        return;
    if (!s->squared_relu)
        build_tensor(
            b, arena_printf(b->arena, "%s.gate_proj.weight", shared_name(s)), moe->shared_d_ff, d);
    build_tensor(
        b, arena_printf(b->arena, "%s.up_proj.weight", shared_name(s)), moe->shared_d_ff, d);
    build_tensor(
        b, arena_printf(b->arena, "%s.down_proj.weight", shared_name(s)), d, moe->shared_d_ff);
    if (moe->shared_gate)
        build_tensor(b, "mlp.shared_expert_gate.weight", 1, d);
}

/* What a layer's steps hand on. */
struct moe_pass {
    const struct segment_context *c;
    const struct model_moe *moe;
    struct tape *t;
    int x;  /* the tokens */
    int in; /* what goes to the experts of them, and its width */
    int64_t width;
    unsigned over_ep, over_etp; /* axes whose ranks share the experts, and each of them */
    int64_t tokens, experts, ep,
        etp; /* of a rank: tokens, experts; ranks that share them; ranks that share each */
    int64_t sent, rows; /* rows that it sends, that its experts get */
    int shared_hidden,
        shared; /* between the shared expert's two halves; what it gives; -1: not yet */
};

/* ---- the shared expert ---- */

static void shared_up(struct moe_pass *p)
{
    struct tape *t = p->t;
    if (p->moe->shared_d_ff == 0 || p->shared_hidden >= 0)
        return;
    tape_scope(t, shared_name(p->c->shape));
    tape_begin_part(t, RECOMPUTE_SHARED_EXPERTS);
    int x = tape_enter(t, "in", p->x);
    if (p->c->shape->squared_relu) {
        p->shared_hidden = tape_squared_relu(t, "act_fn", tape_linear(t, "up_proj", x));
    } else {
        int gate = tape_map(t, "act_fn", TAPE_SILU, tape_linear(t, "gate_proj", x));
        p->shared_hidden = tape_mul(t, "mul", gate, tape_linear(t, "up_proj", x));
    }
    tape_end_part(t, RECOMPUTE_SHARED_EXPERTS);
    tape_scope(t, "mlp");
}

static void shared_down(struct moe_pass *p)
{
    struct tape *t = p->t;
    if (p->moe->shared_d_ff == 0 || p->shared >= 0)
        return;
    tape_scope(t, shared_name(p->c->shape));
    tape_begin_part(t, RECOMPUTE_SHARED_EXPERTS);
    p->shared = tape_linear_row(t, "down_proj", p->shared_hidden);
    tape_end_part(t, RECOMPUTE_SHARED_EXPERTS);
    tape_scope(t, "mlp");
    if (!p->moe->shared_gate)
        return;
    int gate = tape_map(
        t, "shared_expert_gate.sigmoid", TAPE_SIGMOID, tape_linear(t, "shared_expert_gate", p->x));
    p->shared = tape_mul(t, "shared_expert_gate.mul", p->shared, gate);
}

/* ---- the router: k probabilities a token ---- */

/* Axes whose ranks have other tokens of the same sequences. */
static unsigned other_tokens(const struct model_parallel *parallel)
{
    bool tensor = parallel->sequence && model_tensor_ranks(parallel) > 1;
    return (tensor ? 1U << AXIS_TP : 0U) | (model_context_ranks(parallel) > 1 ? 1U << AXIS_CP : 0U);
}

static int route(const struct moe_pass *p)
{
    struct tape *t = p->t;
    const struct model_moe *moe = p->moe;
    int scores =
        tape_linear_router(t, "gate", moe->beside ? tape_mul_weight(t, "gate_scale", p->x) : p->x);
    if (moe->router != ROUTER_SOFTMAX)
        scores = tape_map(
            t, "router.sigmoid", TAPE_SIGMOID, tape_cast(t, "router.float", scores, FLOAT_BYTES));
    else
        scores = tape_softmax(t, "router.softmax", scores, true);
    if (p->c->workload->aux_loss)
        scores =
            tape_aux_loss(t, "router.aux_loss", scores, other_tokens(&p->c->workload->parallel));
    scores = moe->beside ? tape_mul_weight(t, "per_expert_scale", scores) : scores;
    int64_t passes =
        (moe->router == ROUTER_SIGMOID) + (moe->groups > 1); /* add the bias; mask groups */
    int probs = tape_top_k(t, "router.topk", scores, moe->per_token, passes);
    return moe->normalised ? tape_map(t, "router.normalise", TAPE_SCALE, probs) : probs;
}

/* ---- how many rows ---- */

static int64_t moe_round_up(double rows)
{
    return (int64_t)rows + (rows > (double)(int64_t)rows);
}

/* A stream of random numbers for the experts of each block, apart from those of exec/state.h. */
enum { ENTITY_EXPERTS = 1 << 16 };

double model_expert_load(const struct model_workload *workload, int64_t experts, int64_t block)
{
    const int64_t ranks = model_expert_ranks(&workload->parallel), local = experts / ranks;
    if (!(workload->expert_spread > 0))
        return workload->expert_imbalance;
    struct rng_stream stream =
        rng_stream((uint64_t)workload->expert_seed, ENTITY_EXPERTS, (uint64_t)block);
    double all = 0, most = 0;
    for (int64_t r = 0; r < ranks; r++) {
        double rank = 0;
        for (int64_t e = 0; e < local; e++)
            rank += rng_lognormal_mean1(&stream, workload->expert_spread);
        all += rank;
        most = fmax(most, rank);
    }
    return most / all * (double)ranks;
}

const char *const expert_routing_names[ROUTING_COUNT + 1] = {
    [ROUTING_BALANCED] = "balanced", [ROUTING_LEARNED] = "learned"};

static const double LEARNED_SPREAD = 0.4;

static double learned_variance(
    const struct model_workload *workload, int64_t experts, int64_t per_token)
{
    const struct model_parallel *parallel = &workload->parallel;
    double cut = (double)(model_context_ranks(parallel) * model_tensor_ranks(parallel));
    double tokens = (double)workload->micro_batch * (double)workload->seq_len *
                    (double)model_expert_ranks(parallel) / cut;
    return expm1(LEARNED_SPREAD * LEARNED_SPREAD) +
           ((double)experts / (double)per_token - 1) / fmax(tokens, 1);
}

double model_learned_spread(
    const struct model_workload *workload, int64_t experts, int64_t per_token)
{
    return sqrt(log1p(learned_variance(workload, experts, per_token)));
}

double model_learned_load(const struct model_workload *workload, int64_t experts, int64_t per_token)
{
    int ranks = (int)model_expert_ranks(&workload->parallel);
    int64_t of_a_rank = experts / ranks;
    double of_rank = learned_variance(workload, experts, per_token) / (double)of_a_rank;
    double spread = sqrt(log1p(of_rank * (1 - 1.0 / ranks)));
    return exp(rng_normal_score(ranks - 1, ranks) * spread - spread * spread / 2);
}

/* ---- transformers' loop ---- */

static int one_expert(const struct moe_pass *p, int x, int64_t expert)
{
    struct tape *t = p->t;
    const int64_t widths[2] = {p->moe->d_ff, p->moe->d_ff};
    struct tape_experts of = {1, p->experts, expert, (double)(p->tokens * p->moe->per_token)};
    int parts[2], first = tape_experts(t, "experts", moe_first_name(p->c->shape), x, of);
    if (p->c->shape->squared_relu)
        return tape_experts(
            t, "experts", "down_proj", tape_squared_relu(t, "experts.act_fn", first), of);
    tape_split(t, "experts.chunk", first, widths, parts, 2);
    int gate =
        tape_map(t, "experts.act_fn", p->c->shape->gelu_gate ? TAPE_GELU : TAPE_SILU, parts[0]);
    return tape_experts(t, "experts", "down_proj", tape_mul(t, "experts.mul", gate, parts[1]), of);
}

static int loop(const struct moe_pass *p, int probs)
{
    struct tape *t = p->t;
    int64_t choices = p->tokens * p->moe->per_token, rows = (choices + p->experts - 1) / p->experts;
    int weights = tape_view(t, "weights", tape_cast_to_storage(t, "router.to", probs), choices, 1);
    int mask = tape_integers(t, "expert_mask", -1, choices, p->experts);
    int sum = tape_zeros(t, "final_hidden_states", p->tokens, p->width);
    for (int64_t e = 0; e < p->experts; e++) {
        tape_integers(t, "where", -1, choices, 1);
        tape_host_wait(t, "where.nonzero", false);
        int out = one_expert(p, tape_take_rows(t, "current_state", p->in, rows), e);
        out = tape_mul(t, "weighted", out, tape_take_rows(t, "current_weights", weights, rows));
        sum = tape_scatter_add(t, "index_add", sum, out);
    }
    tape_keep(t, mask);
    return sum;
}

/* ---- Megatron's ---- */

/* Rows and their probabilities. */
struct routed {
    int rows, probs;
};

static int moe_mlp(const struct moe_pass *p, struct routed in, struct tape_experts of)
{
    const struct model_shape *s = p->c->shape;
    int first = tape_experts(p->t, "experts", moe_first_name(s), in.rows, of);
    tape_begin_part(p->t, RECOMPUTE_MOE_ACT);
    int activated = s->squared_relu
                        ? tape_weighted_squared_relu(p->t, "experts.squared_relu", first, in.probs)
                        : tape_weighted_swiglu(p->t, "experts.swiglu", first, in.probs);
    tape_end_part(p->t, RECOMPUTE_MOE_ACT);
    return tape_experts(p->t, "experts", "down_proj", activated, of);
}

/* SequentialMLP. */
static int one_by_one(const struct moe_pass *p, struct routed in, struct tape_experts of)
{
    struct tape *t = p->t;
    const int *rows = tape_runs(t, "experts.split", in.rows, p->experts);
    const int *probs = tape_runs(t, "experts.split_probs", in.probs, p->experts);
    int *out = ARENA_ARRAY(p->c->arena, int, p->experts);
    of.experts = 1;
    for (of.part = 0; of.part < p->experts; of.part++)
        out[of.part] = moe_mlp(p, (struct routed){rows[of.part], probs[of.part]}, of);
    return tape_stack(t, "experts.cat", out, p->experts);
}

static bool copies_to_pad(const struct moe_pass *p)
{
    const struct model_workload *w = p->c->workload;
    bool hybrid = w->token_dispatcher == DISPATCHER_FLEX && w->flex_backend == FLEX_HYBRIDEP &&
                  p->ep * p->etp > 1;
    return w->fp8 && tape_has_transformer_engine(p->t) && !w->router_pads && !w->pad_to_capacity &&
           !hybrid;
}

static int products(const struct moe_pass *p, struct routed in)
{
    double counted = (double)(p->tokens * p->moe->per_token * p->etp);
    struct tape_experts of = {p->experts, p->experts, 0, counted};
    if (p->c->workload->expert_kernels == EXPERTS_LOOP)
        return one_by_one(p, in, of);
    if (!copies_to_pad(p))
        return moe_mlp(p, in, of);
    in.rows = tape_copy(p->t, "experts.pad", in.rows, p->rows, p->width);
    return tape_copy(p->t, "experts.unpad", moe_mlp(p, in, of), p->rows, p->width);
}

static int take_probs(const struct moe_pass *p, int dense_probs, int64_t rows)
{
    int64_t numbers = tape_rows(p->t, dense_probs) * p->moe->experts;
    return tape_take_rows(
        p->t, "permute_probs", tape_view(p->t, "probs", dense_probs, numbers, 1), rows);
}

static struct routed moe_gather(const struct moe_pass *p, int x, int dense_probs, int64_t rows)
{
    struct routed out = {.rows = tape_take_rows(p->t, "permute", x, rows)};
    out.probs = take_probs(p, dense_probs, rows);
    return out;
}

static int exchanged(const struct moe_pass *p, const char *name, enum coll_kind kind, unsigned axes,
    int x, int64_t rows)
{
    return tape_arrive(p->t, tape_send_rows(p->t, name, kind, axes, x, rows));
}

static unsigned all_axes(const struct moe_pass *p)
{
    return (p->ep > 1 ? p->over_ep : 0) | (p->etp > 1 ? p->over_etp : 0);
}

static struct routed dispatch_alltoall(struct moe_pass *p, struct routed in)
{
    struct tape *t = p->t;
    int64_t rows = p->rows / p->etp;
    bool overlap = p->c->workload->shared_expert_overlap;
    if (p->ep > 1) {
        in.rows = tape_send_rows(t, "dispatch", COLL_ALL_TO_ALL, p->over_ep, in.rows, rows);
        if (overlap)
            shared_up(p);
        in.probs = tape_send_rows(t, "dispatch_probs", COLL_ALL_TO_ALL, p->over_ep, in.probs, rows);
        in.rows = tape_arrive(t, in.rows);
        in.probs = tape_arrive(t, in.probs);
    }
    if (p->etp > 1) {
        in.rows = exchanged(p, "gather_rows", COLL_ALL_GATHER, p->over_etp, in.rows, p->rows);
        in.probs = exchanged(p, "gather_probs", COLL_ALL_GATHER, p->over_etp, in.probs, p->rows);
    }
    return in;
}

static int combine_alltoall(struct moe_pass *p, int out)
{
    if (p->etp > 1)
        out = exchanged(p, "scatter_rows", COLL_REDUCE_SCATTER, p->over_etp, out, p->rows / p->etp);
    if (p->ep == 1)
        return out;
    out = tape_send_rows(p->t, "combine", COLL_ALL_TO_ALL, p->over_ep, out, p->sent);
    if (p->c->workload->shared_expert_overlap)
        shared_down(p);
    return tape_arrive(p->t, out);
}

static int alltoall(struct moe_pass *p, int dense_probs)
{
    struct tape *t = p->t;
    int64_t ranks = p->ep * p->etp, d = p->width;
    bool sorts = ranks > 1 && p->experts > 1;
    struct routed in = moe_gather(p, p->in, dense_probs, p->sent);
    if (!p->c->workload->pad_to_capacity)
        tape_count(t, "tokens_per_expert", p->tokens, p->moe->experts, ranks, all_axes(p));
    in = dispatch_alltoall(p, in);
    if (sorts) {
        in.rows = tape_copy(t, "sort_chunks", in.rows, p->rows, d);
        in.probs = tape_copy(t, "sort_probs", in.probs, p->rows, 1);
    }
    int out = products(p, in);
    out = combine_alltoall(p, sorts ? tape_copy(t, "restore_chunks", out, p->rows, d) : out);
    return tape_scatter_add(t, "unpermute", tape_zeros(t, "unpermute.zero", p->tokens, d), out);
}

static int allgather(struct moe_pass *p, int dense_probs)
{
    struct tape *t = p->t;
    int64_t ranks = p->ep * p->etp, all = p->tokens * ranks, d = p->width;
    unsigned axes = all_axes(p);
    int x = exchanged(p, "dispatch", COLL_ALL_GATHER, axes, p->in, all);
    int probs = exchanged(p, "dispatch_probs", COLL_ALL_GATHER, axes, dense_probs, all);
    tape_count(t, "tokens_per_expert", all, p->experts, 1, 0);
    int out = products(p, moe_gather(p, x, probs, p->rows));
    int sum = tape_scatter_add(t, "unpermute", tape_zeros(t, "unpermute.zero", all, d), out);
    return exchanged(p, "combine", COLL_REDUCE_SCATTER, axes, sum, p->tokens);
}

/* Each rank sees from what the others have said how many tokens come. */
static int flex(struct moe_pass *p, int dense_probs)
{
    struct tape *t = p->t;
    const struct model_workload *w = p->c->workload;
    struct coll_routing *routing = ARENA_NEW(p->c->arena, struct coll_routing);
    *routing = (struct coll_routing){.experts = (int)p->moe->experts,
        .per_token = (int)p->moe->per_token,
        .groups = (int)p->moe->groups,
        .kept_groups = (int)p->moe->kept_groups,
        .width = (int)p->etp,
        .sms = w->flex_sms};
    double load = (double)p->rows / (double)(p->tokens * p->moe->per_token * p->etp),
           d = (double)p->width;
    double come = load * (double)(p->tokens * p->etp) * coll_reach(routing, (int)p->ep);
    struct tape_route route = {
        routing, load * (double)p->tokens * d * (double)dtype_bytes(w->storage)};
    bool permutes = w->flex_backend == FLEX_DEEPEP;
    int64_t arrived = permutes ? moe_round_up(come) : p->rows;
    tape_integers(t, "layout", -1, p->tokens, p->moe->experts);
    struct routed in = {
        .rows = tape_send_routed(t, "dispatch", all_axes(p), p->in, arrived, route)};
    if (w->shared_expert_overlap)
        shared_up(p);
    in.rows = tape_arrive(t, in.rows);
    in.probs = take_probs(p, dense_probs, p->rows);
    if (!w->pad_to_capacity)
        tape_host_wait(t, "num_recv_tokens", true);
    if (permutes)
        in.rows = tape_take_rows(t, "permute", in.rows, p->rows);
    int out = products(p, in);
    if (permutes)
        out = tape_scatter_add(
            t, "unpermute", tape_zeros(t, "unpermute.zero", arrived, p->width), out);
    out = tape_send_routed(t, "combine", all_axes(p), out, p->tokens, route);
    if (w->shared_expert_overlap)
        shared_down(p);
    return tape_arrive(t, out);
}

/* ---- all of it ---- */

/* The share of rows within a capacity: of log-normal shares X, of mean 1, the mean of the lesser of
 * X and capacity. */
static double kept_of(double capacity, double spread)
{
    if (!(spread > 0))
        return fmin(1, capacity);
    double at = log(capacity) / spread;
    return (erfc(-(at - spread / 2) / M_SQRT2) + capacity * erfc((at + spread / 2) / M_SQRT2)) / 2;
}

/* Rows that the experts of a rank get, the busiest where they are not balanced, and those that it
 * sends. */
static void moe_count_rows(struct moe_pass *p)
{
    const struct model_workload *w = p->c->workload;
    double most = (double)p->ep; /* of all of all ranks' rows */
    double factor = p->ep > 1 ? model_expert_load(w, p->moe->experts, p->c->layer - 1) : 1;
    double rows = (double)(p->tokens * p->moe->per_token), kept = 1;
    factor = factor < 1 ? 1 : factor > most ? most : factor;
    if (w->expert_capacity > 0) {
        factor = fmin(factor, w->expert_capacity);
        kept = kept_of(w->expert_capacity, p->ep > 1 ? w->expert_spread : 0);
    }
    p->sent = moe_round_up(kept * rows);
    p->rows = moe_round_up(factor * rows) * p->etp;
    if (w->expert_capacity > 0 && w->pad_to_capacity) {
        p->sent =
            moe_round_up(rows / (double)p->moe->experts * w->expert_capacity) * p->moe->experts;
        p->rows = p->sent * p->etp;
    }
}

static int64_t moe_degree(int64_t ranks)
{
    return ranks > 1 ? ranks : 1;
}

int moe_forward(const struct segment_context *c, int x)
{
    const struct model_workload *w = c->workload;
    struct moe_pass p = {.c = c,
        .moe = &c->shape->moe,
        .t = c->tape,
        .x = x,
        .width = model_routed_width(c->shape),
        .tokens = tape_rows(c->tape, x),
        .experts = model_local_experts(c->shape, c->layer - 1),
        .ep = moe_degree(w->parallel.expert),
        .over_ep = model_expert_axes(&w->parallel),
        .over_etp = model_expert_tensor_axes(&w->parallel),
        .etp = moe_degree(w->parallel.expert_tensor),
        .shared_hidden = -1,
        .shared = -1};
    bool across = p.ep * p.etp > 1, looped = w->expert_kernels == EXPERTS_LOOP && !across;
    BUG_IF(p.experts < 1 || p.experts * p.ep != p.moe->experts,
        "%ld of %ld experts on each of %ld ranks", (long)p.experts, (long)p.moe->experts,
        (long)p.ep);
    moe_count_rows(&p);
    if (!(across && w->shared_expert_overlap && w->token_dispatcher != DISPATCHER_ALLGATHER)) {
        shared_up(&p);
        shared_down(&p);
    }
    int probs = route(&p), out;
    p.in = c->shape->moe.latent > 0 ? tape_linear(p.t, "fc1_latent_proj", x) : x;
    if (looped) {
        out = loop(&p, probs);
    } else {
        tape_row_cost(p.t, w->unfused_permutation ? unfused_permutation : 0);
        int dense = tape_spread(p.t, "router.probs", probs, p.moe->experts);
        int dispatcher = across ? w->token_dispatcher : DISPATCHER_ALLTOALL;
        out = dispatcher == DISPATCHER_ALLGATHER ? allgather(&p, dense)
              : dispatcher == DISPATCHER_FLEX    ? flex(&p, dense)
                                                 : alltoall(&p, dense);
        tape_row_cost(p.t, 0);
    }
    out = c->shape->moe.latent > 0 ? tape_linear(p.t, "fc2_latent_proj", out) : out;
    shared_up(&p); /* where nothing ran that they could run beside */
    shared_down(&p);
    return p.shared >= 0 ? tape_add(p.t, "shared.add", out, p.shared) : out;
}

const char *moe_check(const struct model_shape *s, size_t *offset)
{
    const struct model_moe *moe = &s->moe;
    bool routed = moe->experts > 0,
         any = moe->per_token > 0 || moe->d_ff > 0 || moe->shared_d_ff > 0;
    bool has_block = false;
    for (int64_t block = 0; block < s->n_layers && !has_block; block++)
        has_block = model_local_experts(s, block) > 0;
    const struct model_rule rules[] = {
        MODEL_RULE(moe, !routed && any,
            "a mixture of experts has a number of experts; give it, or leave out moe"),
        MODEL_RULE(moe, routed && (moe->per_token == 0 || moe->d_ff == 0),
            "a mixture of experts needs the experts that a token goes through and their width"),
        MODEL_RULE(moe, routed && moe->per_token > moe->experts,
            "a token goes through more experts than there are"),
        MODEL_RULE(
            moe, moe->latent > s->d_model, "the latent of the experts is wider than d_model"),
        MODEL_RULE(moe, routed && moe->groups > 1 && moe->experts % moe->groups != 0,
            "the number of experts must be a multiple of their groups"),
        MODEL_RULE(pattern, !routed && s->pattern && strchr(s->pattern, 'E'),
            "blocks 'E' of a pattern need a mixture of experts (moe)"),
        MODEL_RULE(moe, routed && s->pattern && (moe->dense_layers > 0 || moe->every > 1),
            "a pattern says which blocks have experts; leave dense_layers and every out"),
        MODEL_RULE(moe, routed && !has_block && s->pattern,
            "no block of the pattern is 'E', which has experts"),
        MODEL_RULE(moe, routed && !has_block, "no block is left that has experts: all are dense"),
        MODEL_RULE(moe, moe->hash_layers > s->n_layers, "there are fewer blocks than hash_layers"),
        MODEL_RULE(moe, routed && moe->shared_gate && moe->shared_d_ff == 0,
            "there is no shared expert to gate"),
        MODEL_RULE(moe,
            moe->beside &&
                (!s->post_norms || s->squared_relu || s->d_ff == 0 || moe->shared_d_ff > 0),
            "a dense layer beside the experts is modelled with post_norms, d_ff and no shared "
            "expert"),
        MODEL_RULE(moe,
            routed && (s->fused_projections || ((s->gelu_gate || s->post_norms) && !moe->beside)),
            "experts are modelled with SwiGLU or squared_relu, separate matrices and norms before "
            "sub-layers alone"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}
