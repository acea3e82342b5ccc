/* Context parallelism: what the ranks of a sequence send each other, and that together they do the
 * model's work. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "kernel_named.h"
#include "programs.h"

enum { BF16_BYTES = 2, HEAD = 16 };

static struct run part_of(
    const struct model_shape *shape, struct model_parallel parallel, enum kernel_fusion fusion)
{
    struct run r = {.arena = ARENA_INIT};
    struct model whole;
    struct model_workload w = workload(shape, DTYPE_BF16, ATTENTION_FLASH);
    w.parallel = parallel;
    w.fusion = (int)fusion;
    model_build(&whole, shape, &r.arena);
    assert_null(model_shard_wrong(shape, &w, &r.arena));
    model_shard(&r.model, &whole, &parallel, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    return r;
}

static struct run part(const struct model_shape *shape, struct model_parallel parallel)
{
    return part_of(shape, parallel, FUSION_EAGER);
}

struct sent {
    int calls;
    double bytes;
};

/* Collectives of a kind over AXIS_CP. */
static struct sent sent(const struct model_op *ops, int n, enum coll_kind kind)
{
    struct sent sent = {0};
    for (int i = 0; i < n; i++)
        if (ops[i].kind == MODEL_COMM && ops[i].comm.axes == 1 << AXIS_CP &&
            ops[i].comm.kind == kind) {
            sent.calls++;
            sent.bytes += ops[i].comm.bytes;
        }
    return sent;
}

static void assert_sent(
    const struct model_op *ops, int n, enum coll_kind kind, int calls, double bytes)
{
    struct sent found = sent(ops, n, kind);
    assert_int_equal(found.calls, calls);
    assert_near(found.bytes, bytes, 0);
}

/* Keys and values of a rank, of a number of heads; its queries, of 4 heads. */
static double keys_bytes(int64_t ranks, double heads)
{
    return (double)LENGTH / (double)ranks * BATCH * heads * 2 * HEAD * BF16_BYTES;
}

static double queries_bytes(int64_t ranks)
{
    return (double)LENGTH / (double)ranks * BATCH * 4 * HEAD * BF16_BYTES;
}

/* c - 1 exchanges of keys and values; backward twice the bytes in c: keys, both, gradients. Llama's
 * 2 key heads are not repeated. */
static void a_ring_sends_keys_on(void **state)
{
    (void)state;
    for (int64_t c = 2; c <= 4; c++) {
        for (int family = 0; family < 2; family++) {
            struct run r =
                part(family ? &small_llama : &small_gpt, (struct model_parallel){.context = c});
            const struct model_program *p = block(&r, 1);
            double keys = keys_bytes(c, family ? 2 : 4), n = (double)(c - 1);
            assert_sent(p->forward, p->n_forward, COLL_SEND_RECV, (int)c - 1, n * keys);
            assert_sent(p->backward, p->n_backward, COLL_SEND_RECV, (int)c, 2 * n * keys);
            assert_int_equal(p->output_bytes, LENGTH / c * BATCH * 64 * BF16_BYTES);
            arena_release(&r.arena);
        }
    }
}

/* An exchange begins before a step's attention and is waited for behind it: all steps but the last.
 */
static void a_ring_sends_beside_attention(void **state)
{
    (void)state;
    struct run r = part(&small_gpt, (struct model_parallel){.context = 4});
    const struct model_program *p = block(&r, 1);
    int steps = 0, beside = 0, pending = 0;
    for (int i = 0; i < p->n_forward; i++) {
        const struct model_op *op = &p->forward[i];
        if (op->kind == MODEL_KERNEL && op->work.kind == KERNEL_ATTENTION) {
            steps++;
            beside += pending;
            /* 6 positions: the diagonal, 6 queries and 3 keys, then twice 3 queries and 6 keys */
            assert_int_equal(op->work.m, steps <= 2 ? 6 : 3);
            assert_int_equal(op->work.n, steps == 2 ? 3 : 6);
            assert_int_equal(op->work.causal, steps == 1);
            assert_true(op->work.flop == 4.0 * BATCH * 4 * (6 * 6 / 2) * HEAD);
        }
        if (op->kind != MODEL_KERNEL)
            pending = op->kind == MODEL_COMM;
    }
    assert_int_equal(steps, 4);
    assert_int_equal(beside, 3);
    pending = beside = 0;
    for (int i = 0; i < p->n_backward; i++) {
        const struct model_op *op = &p->backward[i];
        beside += op->kind == MODEL_KERNEL && op->work.kind == KERNEL_ATTENTION && pending;
        if (op->kind != MODEL_KERNEL)
            pending = op->kind == MODEL_COMM;
    }
    assert_int_equal(beside, 4);
    arena_release(&r.arena);
}

/* Keys, then values, of all ranks: half of c times a rank's each. Backward gathers them again and
 * scatters gradients. */
static void gathered_keys_are_those_of_all(void **state)
{
    (void)state;
    struct run r = part(
        &small_llama, (struct model_parallel){.context = 3, .context_kind = CONTEXT_ALL_GATHER});
    const struct model_program *p = block(&r, 1);
    double all = 3 * keys_bytes(3, 2);
    assert_sent(p->forward, p->n_forward, COLL_ALL_GATHER, 2, all);
    assert_sent(p->backward, p->n_backward, COLL_ALL_GATHER, 2, all);
    assert_sent(p->backward, p->n_backward, COLL_REDUCE_SCATTER, 2, all);
    arena_release(&r.arena);
}

/* Ulysses: q, k, v and the result, each way: 2 Q + KV. Between, 2 of 4 heads see all 24 positions.
 */
static void ulysses_trades_positions_for_heads(void **state)
{
    (void)state;
    struct run r =
        part(&small_llama, (struct model_parallel){.context = 2, .context_kind = CONTEXT_A2A});
    const struct model_program *p = block(&r, 1);
    double all = 2 * queries_bytes(2) + keys_bytes(2, 2);
    assert_sent(p->forward, p->n_forward, COLL_ALL_TO_ALL, 4, all);
    assert_sent(p->backward, p->n_backward, COLL_ALL_TO_ALL, 4, all);
    const struct kernel_work *work =
        &kernel_named(p->forward, p->n_forward, "self_attn.flash")->work;
    assert_true(work->m == LENGTH && work->n == LENGTH && work->batch == BATCH * 2 && work->causal);
    arena_release(&r.arena);
}

/* PyTorch's rings over c ranks, with keys and values K of all 4 heads, also of Llama, which has 2
 * key heads. allgather: one of c K, in backward again; alltoall: c - 1 of K, in backward again.
 * Gradients: c of 2 K, which is FP32. Where nothing is compiled, they go with the next step's keys:
 * the c - 2 steps between have one message for both. */
static void pytorchs_ring_sends_gradients_in_fp32(void **state)
{
    (void)state;
    for (int64_t c = 2; c <= 4; c++)
        for (int compiled = 0; compiled < 2; compiled++) {
            enum kernel_fusion fusion = compiled ? FUSION_INDUCTOR : FUSION_EAGER;
            const double keys = keys_bytes(c, 4), n = (double)c;
            const int others = (int)c - 1;
            struct model_parallel parallel = {.context = c, .context_kind = CONTEXT_RING_ALLGATHER};
            struct run r = part_of(&small_llama, parallel, fusion);
            const struct model_program *p = block(&r, 1);
            assert_sent(p->forward, p->n_forward, COLL_ALL_GATHER, 1, n * keys);
            assert_sent(p->forward, p->n_forward, COLL_SEND_RECV, 0, 0);
            assert_sent(p->backward, p->n_backward, COLL_ALL_GATHER, 1, n * keys);
            assert_sent(p->backward, p->n_backward, COLL_SEND_RECV, (int)c, n * 2 * keys);
            arena_release(&r.arena);
            parallel.context_kind = CONTEXT_RING_ALLTOALL;
            r = part_of(&small_llama, parallel, fusion);
            p = block(&r, 1);
            assert_sent(p->forward, p->n_forward, COLL_SEND_RECV, others, (double)others * keys);
            assert_sent(p->backward, p->n_backward, COLL_SEND_RECV,
                compiled ? others + (int)c : (int)c + 1, (double)others * keys + n * 2 * keys);
            arena_release(&r.arena);
        }
}

/* Messages on their way while an attention kernel runs; compiled, each is waited for where it
 * stands. */
static int beside_attention(const struct model_op *ops, int n)
{
    int beside = 0;
    bool pending = false;
    for (int i = 0; i < n; i++) {
        beside += ops[i].kind == MODEL_KERNEL && ops[i].work.kind == KERNEL_ATTENTION && pending;
        if (ops[i].kind != MODEL_KERNEL)
            pending = ops[i].kind == MODEL_COMM;
    }
    return beside;
}

static void compiled_rings_wait_at_once(void **state)
{
    (void)state;
    for (int compiled = 0; compiled < 2; compiled++)
        for (int kind = CONTEXT_RING_ALLGATHER; kind <= CONTEXT_RING_ALLTOALL; kind++) {
            struct model_parallel parallel = {.context = 4, .context_kind = kind};
            struct run r = part_of(&small_gpt, parallel, compiled ? FUSION_INDUCTOR : FUSION_EAGER);
            const struct model_program *p = block(&r, 1);
            int forward = kind == CONTEXT_RING_ALLGATHER ? 1 : 3;
            assert_int_equal(beside_attention(p->forward, p->n_forward), compiled ? 0 : forward);
            assert_int_equal(beside_attention(p->backward, p->n_backward), compiled ? 0 : 4);
            arena_release(&r.arena);
        }
}

/* What _SDPAMerger and the copies around it move forward, a kernel for each operation, on the first
 * of two ranks, whose second step has half of the queries. E: elements of out, R = 4 bytes a row,
 * K: bytes of keys and values. Contiguous copies 2 K, cat 2 K; float of step 0: 2 + 4; of step 1 (E
 * / 2): float 1 + 2, difference 4 + 2, times 2 + 2, merge 4 + 2; cat of the whole 4 + 4, cast 4 +
 * 2: 39 E. Log-sums of half the rows: difference 3 / 2, sigmoid 1, times 1 / 2, back 3 / 2,
 * logsigmoid 1, merge 3 / 2, and cat of all 2: 9 R. 3 copies of keys, 1 + 1 casts, 3 of out, 5 of
 * log-sums, 2 cats, 1 cast: 16 kernels beside two of attention. */
static void merging_moves_fp32(void **state)
{
    (void)state;
    struct run r = part(
        &small_gpt, (struct model_parallel){.context = 2, .context_kind = CONTEXT_RING_ALLGATHER});
    const struct model_program *p = block(&r, 1);
    double moved = 0, rows = (double)LENGTH / 2 * BATCH * 4, elements = rows * HEAD;
    int kernels = 0;
    for (int i = 0; i < p->n_forward; i++) {
        const struct model_op *op = &p->forward[i];
        if (op->kind != MODEL_KERNEL || op->work.kind == KERNEL_ATTENTION ||
            !strstr(op->name, ".flash"))
            continue;
        kernels++;
        moved += op->work.read_bytes + op->work.write_bytes;
    }
    assert_int_equal(kernels, 16);
    assert_near(moved, 4 * keys_bytes(2, 4) + 39 * elements + 9 * 4 * rows, 0);
    arena_release(&r.arena);
}

/* Each of c ranks has m queries and m keys. If the ranks have their parts in order, the last one
 * multiplies its queries by half of its keys, as the mask hides the others, and by all keys of the
 * c - 1 ranks before it: m^2 (c - 1 / 2) products. If the parts are balanced, each rank has m^2 c /
 * 2 of them. What counts as the model's FLOP stays. */
static void the_last_rank_has_most_of_the_mask(void **state)
{
    (void)state;
    for (int64_t c = 2; c <= 4; c++) {
        struct model_parallel parallel = {.context = c, .context_kind = CONTEXT_RING_ALLGATHER};
        struct run balanced = part(&small_gpt, parallel);
        parallel.context_sequential = true;
        struct run r = part(&small_gpt, parallel);
        double flop[2] = {0};
        for (int i = 0; i < 2; i++) {
            const struct model_program *p = block(i ? &r : &balanced, 1);
            for (int k = 0; k < p->n_forward; k++)
                if (p->forward[k].kind == MODEL_KERNEL &&
                    p->forward[k].work.kind == KERNEL_ATTENTION)
                    flop[i] += p->forward[k].work.flop;
        }
        double m = (double)LENGTH / (double)c, n = (double)c;
        assert_near(flop[0], 4.0 * BATCH * 4 * HEAD * m * m * n / 2, 1e-12);
        assert_near(flop[1], 4.0 * BATCH * 4 * HEAD * m * m * (n - 0.5), 1e-12);
        assert_near(model_step_flop(&r.segments), model_step_flop(&balanced.segments), 1e-12);
        arena_release(&balanced.arena);
        arena_release(&r.arena);
    }
}

static double attention_flop(const struct model_segments *segments)
{
    double flop = 0;
    for (int s = 0; s < segments->n; s++) {
        const struct model_program *p = segments->at[s].program;
        for (int i = 0; i < p->n_forward + p->n_backward; i++) {
            const struct model_op *op =
                i < p->n_forward ? &p->forward[i] : &p->backward[i - p->n_forward];
            flop +=
                op->kind == MODEL_KERNEL && op->work.kind == KERNEL_ATTENTION ? op->work.flop : 0;
        }
    }
    return flop;
}

/* Each kind leaves what the model does, and what its attention kernels do, as it is: the chunks are
 * balanced. BERT has no mask. With tensor and sequence parallelism, too. */
static void ranks_do_the_models_flop_together(void **state)
{
    (void)state;
    const struct model_shape *const shapes[] = {&small_gpt, &small_llama, &small_neox, &small_bert};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int kind = 0; kind < CONTEXT_PARALLEL_COUNT; kind++)
            for (int64_t tensor = 1; tensor <= 2; tensor++) {
                if (kind == CONTEXT_A2A && tensor == 2 && shapes[s] == &small_llama)
                    continue; /* one key head is left */
                struct run whole = run(shapes[s], DTYPE_BF16, ATTENTION_FLASH);
                struct run r = part(shapes[s], (struct model_parallel){.tensor = tensor,
                                                   .sequence = tensor > 1,
                                                   .context = 2,
                                                   .context_kind = kind});
                double ranks = 2 * (double)tensor;
                assert_near(
                    ranks * model_step_flop(&r.segments), model_step_flop(&whole.segments), 1e-9);
                assert_near(ranks * model_step_masked_flop(&r.segments),
                    model_step_masked_flop(&whole.segments), 1e-9);
                assert_near(
                    ranks * attention_flop(&r.segments), attention_flop(&whole.segments), 1e-9);
                arena_release(&r.arena);
                arena_release(&whole.arena);
            }
}

/* Whatever the ranks do with keys and values: what only copies has no floating-point operation. */
static void copies_compute_nothing(void **state)
{
    (void)state;
    for (int kind = CONTEXT_P2P; kind < CONTEXT_PARALLEL_COUNT; kind++) {
        struct run r =
            part(&small_llama, (struct model_parallel){.context = 2, .context_kind = kind});
        const struct model_program *p = block(&r, 1);
        for (int i = 0; i < p->n_forward + p->n_backward; i++) {
            const struct model_op *op =
                i < p->n_forward ? &p->forward[i] : &p->backward[i - p->n_forward];
            assert_true(
                op->kind != MODEL_KERNEL || op->work.kind != KERNEL_COPY || op->work.flop == 0);
        }
        arena_release(&r.arena);
    }
}

static void assert_wrong(
    const struct model_shape *shape, struct model_workload w, const char *sentence)
{
    struct arena arena = ARENA_INIT;
    assert_string_equal(model_shard_wrong(shape, &w, &arena), sentence);
    arena_release(&arena);
}

static void what_cannot_be_cut_is_said(void **state)
{
    (void)state;
    struct model_workload w = workload(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
    w.parallel.context = 2;
    assert_wrong(&small_llama, w,
        "context parallelism is of flash attention; naive attention has all positions on one rank");
    w.attention = ATTENTION_FLASH;
    struct model_shape shape = small_llama;
    shape.sliding_window = 8;
    assert_wrong(
        &shape, w, "context parallelism of the kind 'p2p' knows no sliding window; take 'a2a'");
    w.parallel.context = 4;
    w.parallel.context_kind = CONTEXT_A2A;
    assert_wrong(&small_llama, w,
        "context parallelism of the kind 'a2a' gives each of its 4 ranks a part of the 4 heads and "
        "2 key heads that tensor parallelism leaves; divisors of 2 would do: 1, 2");
    w.parallel = (struct model_parallel){.tensor = 2, .sequence = true, .context = 5};
    assert_wrong(&small_llama, w,
        "sequences of 24 tokens are not divisible by 10 (5 ranks of context parallelism, two "
        "chunks each, and 2 that share what lies between the linear layers); 30 would do");
}

/* The log-sums of each step after the first are added to those that are kept: a number in FP32 for
 * each row and head. In the first step a rank sees its own keys, then, of two ranks, half of its
 * rows see those of the other. */
static void log_sums_of_steps_are_added(void **state)
{
    (void)state;
    for (int64_t c = 2; c <= 4; c += 2) {
        struct run r = part(&small_gpt, (struct model_parallel){.context = c});
        const struct model_program *p = block(&r, 1);
        assert_int_equal(count_named(p->forward, p->n_forward, "attn.flash.logsumexp.add"), c - 1);
        arena_release(&r.arena);
    }
    struct run r = part(&small_gpt, (struct model_parallel){.context = 2});
    const struct model_program *p = block(&r, 1);
    double rows = 4.0 * LENGTH / 2 * BATCH * 4;
    const struct model_op *add = kernel_named(p->forward, p->n_forward, "attn.flash.logsumexp.add");
    assert_true(add->work.read_bytes == 1.5 * rows && add->work.write_bytes == rows);
    arena_release(&r.arena);
}

/* What a rank sends lives until the exchange is over: after the wait, whatever attention reads
 * meanwhile. Backward sums up gradients of keys and of values in FP32 from zeros. */
static void what_is_sent_outlives_the_exchange(void **state)
{
    (void)state;
    struct run r = part(
        &small_gpt, (struct model_parallel){.context = 2, .context_kind = CONTEXT_RING_ALLGATHER});
    const struct model_program *p = block(&r, 1);
    int wait = 0, sent = 0;
    while (p->forward[wait].kind != MODEL_WAIT)
        wait++;
    for (int a = 0; a < p->n_activations; a++)
        if (strcmp(p->activations[a].name, "attn.flash.kv.cat") == 0 &&
            !p->activations[a].born_in_backward) {
            assert_true(p->activations[a].forward_last >= wait);
            sent++;
        }
    assert_int_equal(sent, 1);
    static const char *const zeros[] = {"attn.flash.dk.zero", "attn.flash.dv.zero"};
    for (int i = 0; i < 2; i++) {
        const struct model_op *zero = kernel_named(p->backward, p->n_backward, zeros[i]);
        assert_true(zero->work.read_bytes == 0 &&
                    zero->work.write_bytes == keys_bytes(2, 4) / 2 / BF16_BYTES * 4);
    }
    arena_release(&r.arena);
}

/* PyTorch's rings of three: what arrives, in one exchange or two, lives until attention has read
 * it, the last until the last attention. */
static void what_arrives_is_read_by_attention(void **state)
{
    (void)state;
    for (int kind = CONTEXT_RING_ALLGATHER; kind <= CONTEXT_RING_ALLTOALL; kind++) {
        struct run r =
            part(&small_gpt, (struct model_parallel){.context = 3, .context_kind = kind});
        const struct model_program *p = block(&r, 1);
        int arrived = 0, last = 0, last_attention = 0;
        for (int i = 0; i < p->n_forward; i++)
            if (p->forward[i].kind == MODEL_KERNEL && p->forward[i].work.kind == KERNEL_ATTENTION)
                last_attention = i;
        for (int a = 0; a < p->n_activations; a++) {
            const struct model_activation *at = &p->activations[a];
            if (at->born_in_backward || p->forward[at->born].kind != MODEL_COMM)
                continue;
            arrived++;
            last = at->forward_last > last ? at->forward_last : last;
            assert_int_equal(p->forward[at->forward_last].work.kind, KERNEL_ATTENTION);
        }
        assert_int_equal(arrived, kind == CONTEXT_RING_ALLGATHER ? 1 : 2);
        assert_int_equal(last, last_attention);
        arena_release(&r.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_arrives_is_read_by_attention),
        cmocka_unit_test(what_is_sent_outlives_the_exchange),
        cmocka_unit_test(log_sums_of_steps_are_added),
        cmocka_unit_test(a_ring_sends_keys_on),
        cmocka_unit_test(a_ring_sends_beside_attention),
        cmocka_unit_test(gathered_keys_are_those_of_all),
        cmocka_unit_test(ulysses_trades_positions_for_heads),
        cmocka_unit_test(pytorchs_ring_sends_gradients_in_fp32),
        cmocka_unit_test(compiled_rings_wait_at_once),
        cmocka_unit_test(merging_moves_fp32),
        cmocka_unit_test(the_last_rank_has_most_of_the_mask),
        cmocka_unit_test(ranks_do_the_models_flop_together),
        cmocka_unit_test(copies_compute_nothing),
        cmocka_unit_test(what_cannot_be_cut_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
