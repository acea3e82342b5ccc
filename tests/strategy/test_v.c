/* Stages whose two chunks lie in a V, in plans: what is sent, what stays on a rank, what the first
 * stage has of both ends, what is held, what is refused. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "compiled.h"

enum { MOST_STAGES = 4, DATA = 2, MICRO_BATCHES = 2 * MOST_STAGES, BF16_BYTES = 2 };

static const int schedules[] = {SCHEDULE_ZBV, SCHEDULE_DUALPIPEV};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* Two blocks to a chunk. */
static struct model_shape of_blocks(const struct model_shape *shape, int stages)
{
    struct model_shape deep = *shape;
    deep.n_layers = 2 * SCHEDULE_V_CHUNKS * stages;
    return deep;
}

static struct strategy_options in_v(int kind, int schedule, int stages)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.kind = kind;
    options.fsdp.version = 2;
    options.train.attention = ATTENTION_FLASH;
    options.train.grad_accum = MICRO_BATCHES;
    options.parallelism.pipeline = stages;
    options.parallelism.virtual_stages = SCHEDULE_V_CHUNKS;
    options.parallelism.schedule = schedule;
    return options;
}

static bool named(const struct plan_op *op, const char *end)
{
    size_t n = strlen(op->name), m = strlen(end);
    return n >= m && strcmp(op->name + n - m, end) == 0;
}

static int issued(const struct plan_program *program, const char *end)
{
    int n = 0;
    for (int i = 0; i < program->ops.n; i++)
        n += named(&program->ops.at[i], end);
    return n;
}

/* Messages that a program sends over a channel; *bytes: of all its messages. */
static int sent(const struct plan *plan, int program, int delta, int tag, double *bytes)
{
    int n = 0;
    for (int i = 0; i < plan->programs[program].ops.n; i++) {
        const struct plan_op *op = &plan->programs[program].ops.at[i];
        if (op->kind != OP_SEND)
            continue;
        const struct plan_message *message = &plan->messages.at[op->index];
        const struct plan_channel *channel = &plan->channels.at[message->channel];
        n += channel->delta == delta && channel->tag == tag;
        *bytes += message->bytes;
    }
    return n;
}

/* Of a micro-batch, with B tokens of BF16 and p stages: down to the last stage and up again p - 1
 * messages each, as gradients the same way back, so 4 (p - 1) B. At the turn and around the ends
 * there is none. */
static void a_v_sends_four_messages_between_neighbours(void **state)
{
    (void)state;
    for (int s = 0; s < SCHEDULES; s++)
        for (int p = 2; p <= MOST_STAGES; p++) {
            struct compiled c;
            const struct model_shape shape = of_blocks(&small_llama, p);
            struct strategy_options options = in_v(STRATEGY_FSDP, schedules[s], p);
            compile(&c, &options, &shape, DATA * p);
            double bytes = 0, tokens = (double)(options.train.micro_batch * options.train.seq_len),
                   unused = 0;
            for (int i = 0; i < p; i++) {
                bool first = i == 0, last = i == p - 1;
                assert_int_equal(sent(&c.plan, i, 1, 0, &bytes), last ? 0 : MICRO_BATCHES);
                assert_int_equal(sent(&c.plan, i, -1, 0, &unused), first ? 0 : MICRO_BATCHES);
                assert_int_equal(sent(&c.plan, i, -1, 1, &unused), first ? 0 : MICRO_BATCHES);
                assert_int_equal(sent(&c.plan, i, 1, 1, &unused), last ? 0 : MICRO_BATCHES);
            }
            assert_true(bytes == 4.0 * (p - 1) * MICRO_BATCHES * tokens * (double)shape.d_model *
                                     BF16_BYTES);
            drop(&c);
        }
}

/* Bytes of a category that live at once, at most, as the host comes to ops. */
static double most_alive(const struct plan_program *program, enum hbm_category category)
{
    double now = 0, most = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if ((op->kind != OP_ALLOC && op->kind != OP_FREE) ||
            program->buffers.at[op->index].category != category)
            continue;
        now += (op->kind == OP_ALLOC ? 1 : -1) * (double)program->buffers.at[op->index].bytes;
        most = now > most ? now : most;
    }
    return most;
}

/* What passes keep without recomputation: 2 p halves of a stage under ZBVZeroBubble, as the first
 * stage has under 1F1B, and 2 p + 1 under DualPipeV, on every stage; the first one has logits
 * beside. Messages, and what lives within a pass, are a few per cent here. */
static void stages_hold_as_much_as_each_other(void **state)
{
    (void)state;
    for (int p = 3; p <= MOST_STAGES; p++) {
        struct compiled plain, c[SCHEDULES];
        const struct model_shape shape = of_blocks(&small_llama, p);
        struct strategy_options options = in_v(STRATEGY_FSDP, SCHEDULE_1F1B, p);
        options.parallelism.virtual_stages = 1;
        compile(&plain, &options, &shape, DATA * p);
        double first = most_alive(&plain.plan.programs[0], HBM_ACTIVATIONS);
        for (int s = 0; s < SCHEDULES; s++) {
            options = in_v(STRATEGY_FSDP, schedules[s], p);
            compile(&c[s], &options, &shape, DATA * p);
            double held = most_alive(&c[s].plan.programs[1], HBM_ACTIVATIONS), halves = 2 * p + s;
            assert_near(held, first * halves / (2 * p), 0.03 * first);
            for (int i = 2; i < p; i++)
                assert_near(most_alive(&c[s].plan.programs[i], HBM_ACTIVATIONS), held, 0);
            assert_true(most_alive(&c[s].plan.programs[0], HBM_ACTIVATIONS) > held);
            drop(&c[s]);
        }
        drop(&plain);
    }
}

/* Every combination compiles to a sound plan, in which all buffers are let go of and nobody waits
 * for ever. */
static void plans_are_sound(void **state)
{
    (void)state;
    struct model_shape untied = small_gpt, predicting = small_deepseek, tied = small_deepseek;
    untied.tied_embeddings = false;
    predicting.mtp_layers = tied.mtp_layers = 2;
    tied.tied_embeddings = true;
    const struct model_shape *const shapes[] = {
        &untied, &small_llama, &small_neox, &small_moe, &small_gpt, &predicting, &tied};
    enum { SHAPES = sizeof shapes / sizeof *shapes, FOR_FSDP = 4, LAYOUTS = 8 };
    for (int i = 0; i < SHAPES; i++)
        for (int layout = 0; layout < LAYOUTS * CHECKPOINT_SEARCHED; layout++)
            for (int kind = STRATEGY_FSDP; kind <= STRATEGY_MEGATRON;
                 kind += STRATEGY_MEGATRON - STRATEGY_FSDP) {
                struct compiled c;
                char why[512] = "";
                int p = 2 + layout % 3;
                const struct model_shape shape = of_blocks(shapes[i], p);
                struct strategy_options options = in_v(kind, schedules[layout / 2 % 2], p);
                if (kind == STRATEGY_FSDP && i >= FOR_FSDP)
                    continue;
                options.train.activation_checkpointing = layout / LAYOUTS;
                options.parallelism.model.tensor = 1 + layout / 4 % 2;
                options.parallelism.model.sequence = layout / 4 % 2 && shape.moe.experts > 0;
                options.parallelism.model.expert = 1 + (shape.moe.experts > 0 && layout / 3 % 2);
                options.megatron.overlap_moe_expert_parallel_comm =
                    options.parallelism.schedule == SCHEDULE_DUALPIPEV &&
                    options.parallelism.model.expert > 1 &&
                    options.train.activation_checkpointing == CHECKPOINT_NONE;
                options.parallelism.scatter_gather = kind == STRATEGY_MEGATRON && layout % 2;
                options.megatron.use_distributed_optimizer = layout % 2;
                options.megatron.overlap_grad_reduce = options.megatron.overlap_param_gather =
                    layout % 2;
                compile(&c, &options, &shape, DATA * p * (int)options.parallelism.model.tensor);
                if (!plan_check(&c.plan, why, sizeof why))
                    fail_msg("%s, layout %d: %s", shape.name, layout, why);
                drop(&c);
            }
}

/* The table is there once, on the first stage, for both ends; each of them adds its gradient to it
 * in every micro-batch, nothing is exchanged, and it is reduced with the rest once. Without a V the
 * last stage has a copy. */
static void a_tied_table_is_on_one_stage(void **state)
{
    (void)state;
    enum { P = 3 };
    const struct model_shape shape = of_blocks(&small_gpt, P);
    const int64_t table = shape.vocab * shape.d_model;
    for (int s = 0; s <= SCHEDULES; s++) {
        bool v = s < SCHEDULES;
        struct compiled c;
        struct strategy_options options =
            in_v(STRATEGY_MEGATRON, v ? schedules[s] : SCHEDULE_1F1B, P);
        options.train.grad_accum = 2 * P;
        options.megatron.overlap_grad_reduce = true;
        options.megatron.use_distributed_optimizer = true;
        compile(&c, &options, &shape, DATA * P);
        int exchanges = 0, additions = 0;
        double reduced = 0;
        for (int i = 0; i < P; i++) {
            const struct plan_program *program = &c.plan.programs[i];
            exchanges += issued(program, "embedding.grad/all_reduce");
            additions += issued(program, "wte.weight/main_grad.add_");
            for (int k = 0; k < program->ops.n; k++)
                if (named(&program->ops.at[k], "/reduce_scatter"))
                    reduced += c.plan.collectives.at[program->ops.at[k].index].bytes;
        }
        assert_int_equal(exchanges, v ? 0 : 2);
        assert_int_equal(additions, v ? 2 * 2 * P : 2 * P);
        assert_true(reduced == (double)((c.model.params + (v ? 0 : table)) * FLOAT_BYTES));
        drop(&c);
    }
}

/* Both ends are units of fully_shard apart, of different chunks: each is gathered and reduced once
 * (test_fsdp_stages), and the table's gradient does not wait for the head's. */
static void ends_of_one_stage_are_two_units(void **state)
{
    (void)state;
    enum { P = 3 };
    const struct model_shape shape = of_blocks(&small_llama, P);
    for (int s = 0; s < SCHEDULES; s++) {
        struct compiled c;
        struct strategy_options options = in_v(STRATEGY_FSDP, schedules[s], P);
        compile(&c, &options, &shape, DATA * P);
        double table = (double)(shape.vocab * shape.d_model), head = table + (double)shape.d_model,
               found[2];
        int n = 0;
        for (int k = 0; k < c.plan.programs[0].ops.n; k++) {
            const struct plan_op *op = &c.plan.programs[0].ops.at[k];
            if (strcmp(op->name, "root/reduce_scatter") == 0 && n < 2)
                found[n++] = c.plan.collectives.at[op->index].bytes / BF16_BYTES;
        }
        assert_int_equal(n, 2);
        assert_true(
            (found[0] == table && found[1] == head) || (found[0] == head && found[1] == table));
        drop(&c);
    }
}

/* Where ranks share experts, ops of both passes of a pair are launched in turns, so that one cell
 * follows the other more than once; not where blocks run again, which torchtitan refuses beside,
 * nor under ZBVZeroBubble, which has no pairs. */
static void pairs_are_merged_where_ranks_share_experts(void **state)
{
    (void)state;
    enum { P = 2 };
    const struct model_shape shape = of_blocks(&small_moe, P);
    for (int i = 0; i < 2 * SCHEDULES; i++) {
        struct compiled c;
        struct strategy_options options = in_v(STRATEGY_FSDP, schedules[i % SCHEDULES], P);
        struct cell cells[3 * SCHEDULE_V_CHUNKS * MICRO_BATCHES];
        options.parallelism.model.expert = 2;
        options.train.activation_checkpointing = i < SCHEDULES ? CHECKPOINT_NONE : CHECKPOINT_FULL;
        compile(&c, &options, &shape, DATA * P);
        for (int s = 0; s < P; s++) {
            const struct schedule at = {
                schedules[i % SCHEDULES], P, s, SCHEDULE_V_CHUNKS, MICRO_BATCHES, false};
            int n = schedule_cells(cells, &at), switches = c.plan.programs[s].cells.n;
            bool merges = at.kind == SCHEDULE_DUALPIPEV && i < SCHEDULES;
            assert_true(merges ? switches > 2 * n : switches <= n + 1);
        }
        drop(&c);
    }
}

static void what_a_v_cannot(void **state)
{
    (void)state;
    enum { P = 2 };
    const struct model_shape shape = of_blocks(&small_llama, P);
    struct strategy_options options = in_v(STRATEGY_FSDP, SCHEDULE_ZBV, P);
    options.parallelism.virtual_stages = 1;
    refuse_model(&shape, test_hw(), &options,
        "schedule ZBVZeroBubble has two model chunks a stage, which lie in a V; take 2, not 1");
    options.parallelism.virtual_stages = 4;
    refuse_model(&shape, test_hw(), &options, "take 2, not 4");
    options = in_v(STRATEGY_FSDP, SCHEDULE_DUALPIPEV, P);
    options.train.grad_accum = 2 * P - 1;
    refuse_model(&shape, test_hw(), &options,
        "schedule DualPipeV takes 4 micro-batches a step at least, two for each stage, not 3; take "
        "another batch, or ZBVZeroBubble");
    options = in_v(STRATEGY_NANOTRON, SCHEDULE_DUALPIPEV, P);
    refuse_model(&shape, test_hw(), &options,
        "schedule DualPipeV is simulated with strategy fsdp, as torchtitan has it, or megatron; "
        "take one of them");
    options = in_v(STRATEGY_FSDP, SCHEDULE_ZBH1, P);
    refuse_model(&shape, test_hw(), &options, "schedule ZBH1 has one model chunk a stage");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_v_sends_four_messages_between_neighbours),
        cmocka_unit_test(stages_hold_as_much_as_each_other),
        cmocka_unit_test(plans_are_sound),
        cmocka_unit_test(a_tied_table_is_on_one_stage),
        cmocka_unit_test(ends_of_one_stage_are_two_units),
        cmocka_unit_test(pairs_are_merged_where_ranks_share_experts),
        cmocka_unit_test(what_a_v_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
