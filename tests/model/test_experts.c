/* Mixtures of experts and latent attention: FLOP and bytes in closed form, and what expert
 * parallelism exchanges. */
#include "experts.h"

/* Of small_moe's block, tokens x: attention q and o 4 d^2, k and v 2 d^2 (half as many heads),
 * scores and context 4 s d; router 2 d E, experts 6 k d f, the shared one 6 d 80 and its gate 2 d.
 * A dense block: 6 d 160. */
static double moe_block_flop(void)
{
    return tokens * (6 * d * d + 4 * s * d + 2 * d * E + 6 * k * d * f + 6 * d * 80 + 2 * d);
}

static void flop_count_the_experts_that_a_token_meets(void **state)
{
    (void)state;
    const double dense = tokens * (6 * d * d + 4 * s * d + 6 * d * 160);
    const double all = dense + 2 * moe_block_flop() + tokens * 2 * d * v;
    /* Neither imbalance nor the number of ranks nor the kernels are the model's. */
    const struct {
        int64_t ranks;
        double imbalance;
        int kernels;
    } cases[] = {{0, 0, EXPERTS_GROUPED}, {1, 1, EXPERTS_LOOP}, {4, 1, EXPERTS_LOOP},
        {8, 1.7, EXPERTS_GROUPED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct laid_out r;
        struct model_workload w = shared_by(cases[i].ranks, cases[i].imbalance);
        w.expert_kernels = cases[i].kernels;
        lay_out(&r, small_moe, w);
        assert_near(model_forward_flop(&r.segments), all, 1e-12);
        assert_near(model_step_flop(&r.segments), 3 * all, 1e-12);
        arena_release(&r.arena);
    }
}

/* DeepSeek's block: q d 40 + 40 n 24, kv d (32 + 8) + 32 n (16 + 12), o n 12 d; scores over 24,
 * context over 12 of a head; router d E, experts 3 k d f, the shared one 3 d f; twice each. */
static void latent_attention_is_its_closed_form(void **state)
{
    (void)state;
    for (int attention = ATTENTION_NAIVE; attention <= ATTENTION_FLASH; attention++) {
        struct laid_out r;
        lay_out(&r, small_deepseek,
            workload(&small_deepseek, DTYPE_BF16, (enum attention_kernel)attention));
        double products = d * 40 + 40 * n * 24 + d * 40 + 32 * n * 28 + n * 12 * d,
               pairs = s * n * (24 + 12);
        double attention_flop = 2 * tokens * (products + pairs), head = 2 * tokens * d * v;
        double experts = 2 * tokens * (d * E + 3 * k * d * f + 3 * d * f),
               dense = 2 * tokens * 3 * d * 160;
        assert_near(model_forward_flop(&r.segments),
            3 * attention_flop + dense + 2 * experts + head, 1e-12);
        assert_near(model_step_flop(&r.segments),
            3 * (3 * attention_flop + dense + 2 * experts + head), 1e-12);
        arena_release(&r.arena);
    }
}

/* Queries and keys have 24, values and what is gathered 12 numbers a head. The causal kernel does
 * half of the products of queries and keys (1 forward, 3 backward) and of values (1, 2). */
static void flash_attention_counts_each_operands_head(void **state)
{
    (void)state;
    struct laid_out r;
    lay_out(&r, small_deepseek, workload(&small_deepseek, DTYPE_BF16, ATTENTION_FLASH));
    const struct model_program *p = r.experts;
    const struct model_op *forward = kernel_named(p->forward, p->n_forward, "self_attn.flash");
    const struct model_op *backward =
        kernel_named(p->backward, p->n_backward, "self_attn.flash.dgrad");
    const double pairs = b * n * s * s, heads = 2 * tokens * n;
    assert_near(forward->work.flop, pairs * (24 + 12), 0);
    assert_near(forward->work.read_bytes, heads * (24 + 24 + 12), 0);
    assert_near(forward->work.write_bytes, heads * 12 + 4 * tokens * n, 0); /* and a log-sum */
    assert_near(backward->work.flop, pairs * (3 * 24 + 2 * 12), 1e-15);
    assert_near(backward->model_flop, 4 * pairs * (24 + 12), 0);
    assert_int_equal(forward->work.k, 24);
    arena_release(&r.arena);
}

/* Megatron's alltoall: counts of E experts in 8 bytes from every rank; T k rows of d BF16 numbers
 * each way, a probability in FP32 for each; backward the gradients of both, so four large ones a
 * block and micro-batch. The busiest of ranks gets 1.5 times the rows, for which all wait: its
 * exchanges are as much larger. */
static void alltoall_moves_each_row_there_and_back(void **state)
{
    (void)state;
    const double imbalances[] = {1, 1.5};
    for (size_t i = 0; i < 2; i++) {
        struct laid_out r;
        lay_out(&r, small_moe, shared_by(4, imbalances[i]));
        const double rows = tokens * k * imbalances[i];
        const struct sent forward[] = {
            {"mlp.tokens_per_expert/all_gather", COLL_ALL_GATHER, EP, 4 * E * 8},
            {"mlp.dispatch/all_to_all", COLL_ALL_TO_ALL, EP, rows * d * 2},
            {"mlp.dispatch_probs/all_to_all", COLL_ALL_TO_ALL, EP, rows * 4},
            {"mlp.combine/all_to_all", COLL_ALL_TO_ALL, EP, rows * d * 2}};
        const struct sent backward[] = {
            {"mlp.combine.dgrad/all_to_all", COLL_ALL_TO_ALL, EP, rows * d * 2},
            {"mlp.dispatch_probs.dgrad/all_to_all", COLL_ALL_TO_ALL, EP, rows * 4},
            {"mlp.dispatch.dgrad/all_to_all", COLL_ALL_TO_ALL, EP, rows * d * 2}};
        SENDS(r.experts->forward, r.experts->n_forward, forward);
        SENDS(r.experts->backward, r.experts->n_backward, backward);
        /* Two experts of a rank, each half of the rows. */
        const struct model_op *up =
            kernel_named(r.experts->forward, r.experts->n_forward, "mlp.experts.gate_up_proj");
        assert_int_equal(up->work.batch, 2);
        assert_int_equal(up->work.m, (int64_t)(rows / 2));
        assert_int_equal(up->work.n, 2 * 48);
        assert_int_equal(up->work.k, 64);
        assert_near(up->model_flop, 4 * tokens * k * d * f, 0);
        arena_release(&r.arena);
    }
}

/* Counts are gathered from two ranks on: each has E of 8 bytes. One rank has them. */
static void counts_are_gathered_from_two_ranks_on(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks *= 2) {
        struct laid_out r;
        lay_out(&r, small_moe, shared_by(ranks, 1));
        double bytes = 0;
        for (int i = 0; i < r.experts->n_forward; i++)
            if (strcmp(r.experts->forward[i].name, "mlp.tokens_per_expert/all_gather") == 0)
                bytes += r.experts->forward[i].comm.bytes;
        assert_near(bytes, ranks > 1 ? ranks * E * 8 : 0, 0);
        arena_release(&r.arena);
    }
}

/* Tokens and the probabilities of all experts to every rank, sums of all ranks' tokens back,
 * whatever k is. */
static void allgather_moves_all_tokens_to_all_ranks(void **state)
{
    (void)state;
    struct laid_out r;
    struct model_workload w = shared_by(4, 1);
    w.token_dispatcher = DISPATCHER_ALLGATHER;
    lay_out(&r, small_moe, w);
    const double x = 4 * tokens * d * 2, probs = 4 * tokens * E * 4;
    const struct sent forward[] = {{"mlp.dispatch/all_gather", COLL_ALL_GATHER, EP, x},
        {"mlp.dispatch_probs/all_gather", COLL_ALL_GATHER, EP, probs},
        {"mlp.combine/reduce_scatter", COLL_REDUCE_SCATTER, EP, x}};
    const struct sent backward[] = {{"mlp.combine.dgrad/all_gather", COLL_ALL_GATHER, EP, x},
        {"mlp.dispatch_probs.dgrad/reduce_scatter", COLL_REDUCE_SCATTER, EP, probs},
        {"mlp.dispatch.dgrad/reduce_scatter", COLL_REDUCE_SCATTER, EP, x}};
    SENDS(r.experts->forward, r.experts->n_forward, forward);
    SENDS(r.experts->backward, r.experts->n_backward, backward);
    const struct model_op *up =
        kernel_named(r.experts->forward, r.experts->n_forward, "mlp.experts.gate_up_proj");
    assert_int_equal(up->work.m, (int64_t)(tokens * k / 2));
    arena_release(&r.arena);
}

/* Two ranks have a half of the heads, of the sequence between, and of each expert's width: both get
 * both ranks' rows, each half of what its half of the width gives goes back. Half of the tokens are
 * a rank's. */
static void expert_tensor_parallelism_gathers_rows(void **state)
{
    (void)state;
    struct laid_out r;
    struct model_workload w = shared_by(4, 1);
    w.parallel.tensor = w.parallel.expert_tensor = 2;
    w.parallel.sequence = true;
    lay_out(&r, small_moe, w);
    const double rows = tokens / 2 * k, x = tokens * d * 2;
    const struct sent forward[] = {{"self_attn.in/all_gather", COLL_ALL_GATHER, TP, x},
        {"self_attn.o_proj/reduce_scatter", COLL_REDUCE_SCATTER, TP, x},
        {"mlp.shared_expert.in/all_gather", COLL_ALL_GATHER, TP, x},
        {"mlp.shared_expert.down_proj/reduce_scatter", COLL_REDUCE_SCATTER, TP, x},
        {"mlp.tokens_per_expert/all_gather", COLL_ALL_GATHER, EP | TP, 8 * E * 8},
        {"mlp.dispatch/all_to_all", COLL_ALL_TO_ALL, EP, rows * d * 2},
        {"mlp.dispatch_probs/all_to_all", COLL_ALL_TO_ALL, EP, rows * 4},
        {"mlp.gather_rows/all_gather", COLL_ALL_GATHER, TP, 2 * rows * d * 2},
        {"mlp.gather_probs/all_gather", COLL_ALL_GATHER, TP, 2 * rows * 4},
        {"mlp.scatter_rows/reduce_scatter", COLL_REDUCE_SCATTER, TP, 2 * rows * d * 2},
        {"mlp.combine/all_to_all", COLL_ALL_TO_ALL, EP, rows * d * 2}};
    SENDS(r.experts->forward, r.experts->n_forward, forward);
    const struct model_op *up =
        kernel_named(r.experts->forward, r.experts->n_forward, "mlp.experts.gate_up_proj");
    assert_int_equal(up->work.m, (int64_t)rows);
    assert_int_equal(up->work.n, 48);
    assert_near(up->model_flop, 4 * rows * d * f, 0); /* two ranks' rows, half of the width */
    for (int t = 0; t < r.model.n_tensors; t++)
        if (strstr(r.model.tensors[t].name, "mlp.experts."))
            assert_int_equal(r.model.tensors[t].split, EP | TP);
    arena_release(&r.arena);
}

/* With sequence parallelism the latents enter, not the residual stream: 40 wide for queries, 32 for
 * keys and values, 8 of the rotary part. */
static void latents_enter_tensor_parallelism(void **state)
{
    (void)state;
    struct laid_out r;
    struct model_shape shape = small_deepseek;
    struct model_workload w = workload(&shape, DTYPE_BF16, ATTENTION_FLASH);
    shape.moe = (struct model_moe){0};
    w.parallel = (struct model_parallel){.tensor = 2, .sequence = true};
    lay_out(&r, shape, w);
    const struct sent forward[] = {
        {"self_attn.q.in/all_gather", COLL_ALL_GATHER, TP, tokens * 40 * 2},
        {"self_attn.kv.in/all_gather", COLL_ALL_GATHER, TP, tokens * 32 * 2},
        {"self_attn.k_rot.in/all_gather", COLL_ALL_GATHER, TP, tokens * 8 * 2},
        {"self_attn.o_proj/reduce_scatter", COLL_REDUCE_SCATTER, TP, tokens * d * 2},
        {"mlp.in/all_gather", COLL_ALL_GATHER, TP, tokens * d * 2},
        {"mlp.down_proj/reduce_scatter", COLL_REDUCE_SCATTER, TP, tokens * d * 2}};
    SENDS(r.experts->forward, r.experts->n_forward, forward);
    const struct model_op *flash =
        kernel_named(r.experts->forward, r.experts->n_forward, "self_attn.flash");
    assert_near(flash->work.flop, b * n / 2 * s * s * (24 + 12), 0);
    arena_release(&r.arena);
}

/* The FLOP of ranks that share tokens add up to those of one rank with all of them; ranks of
 * AXIS_EP have other tokens. */
static void flop_of_the_parts_add_up(void **state)
{
    (void)state;
    const struct model_shape *const shapes[] = {&small_moe, &small_deepseek};
    const struct model_parallel cuts[] = {{.tensor = 2, .sequence = true}, {.expert = 8},
        {.tensor = 2, .sequence = true, .tensor_overlap = TENSOR_ASYNC, .expert = 4},
        {.tensor = 2, .sequence = true, .expert = 4, .expert_tensor = 2},
        {.context = 2, .expert = 2}};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < sizeof cuts / sizeof *cuts; j++) {
            struct laid_out whole, part;
            struct model_workload w = workload(shapes[i], DTYPE_BF16, ATTENTION_FLASH);
            lay_out(&whole, *shapes[i], w);
            w.parallel = cuts[j];
            lay_out(&part, *shapes[i], w);
            double ranks = cuts[j].context > 1 || cuts[j].tensor > 1 ? 2 : 1;
            assert_near(
                ranks * model_step_flop(&part.segments), model_step_flop(&whole.segments), 1e-12);
            arena_release(&whole.arena);
            arena_release(&part.arena);
        }
}

static void what_experts_cannot_be_cut_by(void **state)
{
    (void)state;
    const struct {
        const struct model_shape *shape;
        struct model_parallel cut;
        const char *words;
    } cases[] = {
        {&small_llama, {.expert = 2}, "llama has no experts that ranks could share"},
        {&small_moe, {.expert = 3},
            "8 experts of moe are not divisible by 3 ranks of expert parallelism; 1, 2, 4, 8"},
        {&small_moe, {.tensor = 2}, "needs sequence parallelism"},
        {&small_moe, {.tensor = 2, .sequence = true, .expert_tensor = 4}, "1 and 2 are modelled"},
        {&small_moe, {.expert_tensor = 2}, "1 and 1 are modelled"},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_workload w = workload(cases[i].shape, DTYPE_BF16, ATTENTION_FLASH);
        w.parallel = cases[i].cut;
        const char *wrong = model_shard_wrong(cases[i].shape, &w, &arena);
        assert_non_null(wrong);
        if (!strstr(wrong, cases[i].words))
            fail_msg("%s", wrong);
    }
    arena_release(&arena);
}

static int index_of(const struct model_op *ops, int count, const char *name)
{
    return (int)(kernel_named(ops, count, name) - ops);
}

/* The host knows the numbers of rows before the dispatch; nothing runs between it and its wait
 * unless the shared expert is there to overlap: then fc1 beside dispatch, fc2 beside combine, and
 * in backward the other way round. */
static void shared_expert_runs_beside_the_exchanges(void **state)
{
    (void)state;
    for (int overlap = 0; overlap < 2; overlap++) {
        struct laid_out r;
        struct model_workload w = shared_by(4, 1);
        w.shared_expert_overlap = overlap;
        lay_out(&r, small_moe, w);
        const struct model_op *ops = r.experts->forward, *back = r.experts->backward;
        const int count = r.experts->n_forward, n_back = r.experts->n_backward;
        int host = index_of(ops, count, "mlp.tokens_per_expert.tolist"),
            probs = index_of(ops, count, "mlp.dispatch_probs/all_to_all");
        int dispatch = index_of(ops, count, "mlp.dispatch/all_to_all");
        int combine = index_of(ops, count, "mlp.combine/all_to_all");
        assert_int_equal(ops[host].kind, MODEL_HOST_WAIT);
        assert_true(host < dispatch);
        int up = index_of(ops, count, "mlp.shared_expert.up_proj"),
            down = index_of(ops, count, "mlp.shared_expert.down_proj");
        assert_int_equal(dispatch < up && up < probs, overlap);
        assert_int_equal(combine < down, overlap);
        assert_int_equal(ops[combine + 1].kind == MODEL_WAIT, !overlap);
        int back_combine = index_of(back, n_back, "mlp.combine.dgrad/all_to_all");
        int back_dispatch = index_of(back, n_back, "mlp.dispatch.dgrad/all_to_all");
        assert_int_equal(back[back_combine + 1].kind == MODEL_WAIT, !overlap);
        int up_dgrad = index_of(back, n_back, "mlp.shared_expert.up_proj.dgrad");
        int down_dgrad = index_of(back, n_back, "mlp.shared_expert.down_proj.dgrad");
        assert_true(back_combine < down_dgrad && back_dispatch < up_dgrad);
        assert_int_equal(
            down_dgrad < index_of(back, n_back, "mlp.experts.down_proj.dgrad"), overlap);
        arena_release(&r.arena);
    }
}

/* A mask, and for each of 8 experts a look-up that the host waits for, 2 BATCH LENGTH / 8 rows, and
 * separate products; the stack's gradient is complete with the first expert, the last in backward.
 */
static void the_loop_waits_for_every_expert(void **state)
{
    (void)state;
    struct laid_out r;
    struct model_workload w = shared_by(1, 1);
    w.expert_kernels = EXPERTS_LOOP;
    lay_out(&r, small_moe, w);
    const struct model_program *p = r.experts;
    int waits = 0, products = 0, first = 0, complete = 0;
    for (int i = 0; i < p->n_forward; i++) {
        waits += p->forward[i].kind == MODEL_HOST_WAIT;
        bool product = strcmp(p->forward[i].name, "mlp.experts.down_proj") == 0;
        products += product;
        if (product)
            assert_true(
                p->forward[i].work.m == BATCH * LENGTH * 2 / 8 && p->forward[i].work.batch == 1);
    }
    assert_int_equal(waits, 8);
    assert_int_equal(products, 8);
    int stack = kernel_named(p->forward, p->n_forward, "mlp.experts.down_proj")->param_use;
    for (int i = 0; i < p->n_backward; i++) {
        if (p->backward[i].param_share == stack)
            first += 1 + complete;
        complete += p->backward[i].param_grad == stack;
    }
    assert_int_equal(first, 1);
    assert_int_equal(complete, 1);
    arena_release(&r.arena);
}

/* SequentialMLP: the same exchanges; each of two experts has half of the rows, and they are put
 * together again. */
static void a_shared_loop_runs_expert_by_expert(void **state)
{
    (void)state;
    struct laid_out grouped, looped;
    struct model_workload w = shared_by(4, 1);
    lay_out(&grouped, small_moe, w);
    w.expert_kernels = EXPERTS_LOOP;
    lay_out(&looped, small_moe, w);
    const struct model_program *p = looped.experts;
    assert_int_equal(count(p->forward, p->n_forward, "all_to_all"), 3);
    assert_int_equal(count(p->backward, p->n_backward, "all_to_all"), 3);
    assert_int_equal(count(p->forward, p->n_forward, "mlp.experts.down_proj"), 2);
    assert_int_equal(count(p->backward, p->n_backward, "mlp.experts.down_proj.wgrad"), 2);
    const struct model_op *down = kernel_named(p->forward, p->n_forward, "mlp.experts.down_proj");
    const struct model_op *cat = kernel_named(p->forward, p->n_forward, "mlp.experts.cat");
    assert_int_equal(down->work.m, (int64_t)(tokens * k / 2));
    assert_near(down->model_flop, 2 * tokens * k / 2 * d * f, 0);
    assert_near(cat->work.read_bytes, tokens * k * d * 2, 0);
    assert_near(model_step_flop(&looped.segments), model_step_flop(&grouped.segments), 1e-12);
    arena_release(&grouped.arena);
    arena_release(&looped.arena);
}

/* A rank of four holds a fourth of the experts' matrices, cut over AXIS_EP, and all of the rest. */
static void a_rank_holds_its_experts(void **state)
{
    (void)state;
    struct laid_out whole, part;
    lay_out(&whole, small_moe, shared_by(1, 1));
    lay_out(&part, small_moe, shared_by(4, 1));
    const int64_t dropped = (int64_t)2 * 6 * 3 * 64 * 48;
    assert_int_equal(whole.model.n_tensors, part.model.n_tensors);
    for (int t = 0; t < whole.model.n_tensors; t++) {
        const struct model_tensor *all = &whole.model.tensors[t], *own = &part.model.tensors[t];
        bool cut = strstr(all->name, "mlp.experts.") != NULL;
        assert_int_equal(own->split, cut ? EP : 0);
        assert_int_equal(all->split, 0);
        assert_int_equal(own->numel, cut ? all->numel / 4 : all->numel);
    }
    assert_int_equal(whole.model.params - part.model.params, dropped);
    /* all but 6 of the 8 experts of the two blocks */
    assert_int_equal(
        model_active_params(&small_moe, whole.model.params), whole.model.params - dropped);
    arena_release(&whole.arena);
    arena_release(&part.arena);
}

/* As Megatron pads: 12 rows of 96 / 8 experts become 16, sides of products being multiples of 16 in
 * FP8. */
static void experts_multiply_in_fp8(void **state)
{
    (void)state;
    struct laid_out r;
    struct model_workload w = shared_by(1, 1);
    w.fp8 = true;
    lay_out(&r, small_moe, w);
    const struct model_op *up =
        kernel_named(r.experts->forward, r.experts->n_forward, "mlp.experts.gate_up_proj");
    assert_int_equal(up->work.math, DTYPE_FP8);
    assert_int_equal(up->work.m, 16);
    assert_int_equal(up->work.batch, 8);
    assert_near(up->model_flop, 4 * tokens * k * d * f, 0);
    arena_release(&r.arena);
}

/* TransformerEngine's Fp8Padding and Fp8Unpadding: rows of d BF16 numbers are read and written in
 * front of the first product and behind the second, and their gradients; nothing is where the
 * router, its capacity or HybridEP fills up rows, or products are in BF16. */
static void rows_are_copied_to_where_fp8_wants_them(void **state)
{
    (void)state;
    const struct {
        bool fp8, router_pads, hybrid, to_capacity;
        int copies;
    } cases[] = {{true, false, false, false, 1}, {true, true, false, false, 0},
        {true, false, true, false, 0}, {true, false, false, true, 0},
        {false, false, false, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct laid_out r;
        struct model_workload w = shared_by(4, 1.5);
        w.fusion = FUSION_TRANSFORMER_ENGINE;
        w.fp8 = cases[i].fp8;
        w.router_pads = cases[i].router_pads;
        w.expert_capacity = w.pad_to_capacity = cases[i].to_capacity;
        if (cases[i].hybrid) {
            w.token_dispatcher = DISPATCHER_FLEX;
            w.flex_backend = FLEX_HYBRIDEP;
        }
        lay_out(&r, small_moe, w);
        const struct model_program *p = r.experts;
        static const char *const names[] = {"mlp.experts.pad", "mlp.experts.unpad"};
        for (int side = 0; side < 2; side++) {
            assert_int_equal(count_named(p->forward, p->n_forward, names[side]), cases[i].copies);
            if (cases[i].copies == 0)
                continue;
            const double bytes = 2 * d * 1.5 * tokens * k;
            const struct model_op *there = kernel_named(p->forward, p->n_forward, names[side]);
            const struct model_op *back = kernel_named(p->backward, p->n_backward,
                side ? "mlp.experts.unpad.dgrad" : "mlp.experts.pad.dgrad");
            assert_near(there->work.read_bytes, bytes, 0);
            assert_near(there->work.write_bytes, bytes, 0);
            assert_near(back->work.read_bytes + back->work.write_bytes, 2 * bytes, 0);
        }
        arena_release(&r.arena);
    }
}

/* Of experts at once nothing is kept (aten._grouped_mm), nor of the router, which is not counted:
 * of q, k, v, o, the shared expert's gate, up, down and its gate every second. What moved between
 * ranks is, and the numbers of rows on the host. Expert by expert gate_up and down are aten.mm, the
 * 5th and 6th of a block without a shared expert. */
static void selective_checkpointing_makes_experts_again(void **state)
{
    (void)state;
    static const char *const names[4][12] = {
        {"self_attn.q_proj", "self_attn.v_proj", "self_attn.flash", "mlp.shared_expert.gate_proj",
            "mlp.shared_expert.down_proj", "mlp.tokens_per_expert.to_host",
            "mlp.tokens_per_expert.tolist", "mlp.dispatch/all_to_all",
            "mlp.dispatch_probs/all_to_all", "mlp.combine/all_to_all"},
        {"self_attn.q_proj", "self_attn.v_proj", "self_attn.flash", "mlp.shared_expert.gate_proj",
            "mlp.shared_expert.down_proj", "mlp.dispatch/all_to_all", "mlp.num_recv_tokens",
            "mlp.combine/all_to_all"},
        {"self_attn.q_proj", "self_attn.v_proj", "self_attn.flash", "mlp.experts.gate_up_proj",
            "mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj",
            "mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj",
            "mlp.experts.gate_up_proj"},
        {"self_attn.q_proj", "self_attn.v_proj", "self_attn.flash", "mlp.tokens_per_expert.to_host",
            "mlp.tokens_per_expert.tolist"},
    };
    for (int i = 0; i < 4; i++) {
        struct model_workload w = shared_by(i < 2 ? 4 : 1, 1);
        struct model_shape shape = small_moe;
        w.token_dispatcher = i == 1 ? DISPATCHER_FLEX : DISPATCHER_ALLTOALL;
        w.expert_kernels = i == 2 ? EXPERTS_LOOP : EXPERTS_GROUPED;
        shape.moe.shared_d_ff = i < 2 ? shape.moe.shared_d_ff : 0;
        shape.moe.shared_gate = i < 2;
        struct laid_out r;
        lay_out(&r, shape, w);
        int n_kept = 0;
        for (int op = 0; op < r.experts->n_forward; op++)
            if (r.experts->forward[op].kept)
                assert_string_equal(r.experts->forward[op].name, names[i][n_kept++]);
        assert_null(names[i][n_kept]);
        arena_release(&r.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flop_count_the_experts_that_a_token_meets),
        cmocka_unit_test(latent_attention_is_its_closed_form),
        cmocka_unit_test(flash_attention_counts_each_operands_head),
        cmocka_unit_test(alltoall_moves_each_row_there_and_back),
        cmocka_unit_test(counts_are_gathered_from_two_ranks_on),
        cmocka_unit_test(allgather_moves_all_tokens_to_all_ranks),
        cmocka_unit_test(expert_tensor_parallelism_gathers_rows),
        cmocka_unit_test(latents_enter_tensor_parallelism),
        cmocka_unit_test(flop_of_the_parts_add_up),
        cmocka_unit_test(what_experts_cannot_be_cut_by),
        cmocka_unit_test(shared_expert_runs_beside_the_exchanges),
        cmocka_unit_test(the_loop_waits_for_every_expert),
        cmocka_unit_test(a_shared_loop_runs_expert_by_expert),
        cmocka_unit_test(a_rank_holds_its_experts),
        cmocka_unit_test(experts_multiply_in_fp8),
        cmocka_unit_test(rows_are_copied_to_where_fp8_wants_them),
        cmocka_unit_test(selective_checkpointing_makes_experts_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
