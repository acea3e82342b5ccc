/* Collectives of tensor parallelism in a plan: on a stream and in a group that are called after the
 * axis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "compiled.h"

enum { TENSOR = 2, COPIES = 2 };

static void compile_parallel(
    struct compiled *out, struct model_parallel parallel, int checkpointing)
{
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_DDP;
    options.parallelism.model = parallel;
    options.train.activation_checkpointing = checkpointing;
    options.train.attention = ATTENTION_FLASH;
    compile(out, &options, &small_gpt, TENSOR * COPIES * (int)model_context_ranks(&parallel));
    char why[512] = "";
    if (!plan_check(&out->plan, why, sizeof why))
        fail_msg("%s", why);
}

static int queue_named(const struct plan *plan, const char *name)
{
    for (int q = 0; q < plan->queues.n; q++)
        if (strcmp(plan->queues.at[q].name, name) == 0)
            return q;
    fail_msg("no queue %s", name);
    return -1;
}

/* 3 blocks have 4 forward and 6 backward. The entry: an all-reduce, an all-gather; the head gathers
 * its input, twice, reduces 3 numbers a token and scatters the gradient. */
static void collectives_of_the_axis_have_a_stream(void **state)
{
    (void)state;
    struct compiled c;
    compile_parallel(&c,
        (struct model_parallel){.tensor = TENSOR, .sequence = true, .tensor_overlap = TENSOR_ASYNC},
        CHECKPOINT_NONE);
    int queue = queue_named(&c.plan, "tp"), found = 0;
    assert_int_equal(c.plan.queues.at[queue].kind, QUEUE_COMM);
    const struct plan_program *program = &c.plan.programs[0];
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind != OP_COLLECTIVE)
            continue;
        const struct plan_group *group = &c.plan.groups.at[c.plan.collectives.at[op->index].group];
        assert_true((op->stream == queue) == (strcmp(group->name, "tp") == 0));
        found += op->stream == queue;
        if (op->stream == queue)
            assert_true(group->ranks.size == TENSOR && group->ranks.stride == 1);
        else
            assert_true(group->ranks.size == COPIES && group->ranks.stride == TENSOR);
    }
    assert_int_equal(found, 3 * (4 + 6) + (1 + 1) + (1 + 3 + 1 + 1));
    drop(&c);
}

static int cost(const struct plan_program *program, double seconds)
{
    int n = 0;
    for (int i = 0; i < program->ops.n; i++)
        n += program->ops.at[i].host_s == (float)seconds;
    return n;
}

/* Of a product in pieces all but the first kernel cost the host inner_issue, where it is set. 3
 * blocks have 4 products that read what is gathered (2 pieces, a transfer), 2 whose result is
 * scattered (4 pieces, 4 transfers). */
static void pieces_are_launched_by_one_call(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_DDP;
    options.parallelism.model = (struct model_parallel){
        .tensor = TENSOR, .sequence = true, .tensor_overlap = TENSOR_USER_BUFFERS};
    options.train.attention = ATTENTION_FLASH;
    for (int set = 0; set < 2; set++) {
        struct compiled c;
        options.host.inner_issue_s = set ? 7.5e-6 : 0;
        compile(&c, &options, &small_gpt, TENSOR * COPIES);
        assert_int_equal(
            cost(&c.plan.programs[0], 7.5e-6), set ? 3 * 4 * (1 + 1) + 3 * 2 * (3 + 4) : 0);
        drop(&c);
    }
}

/* Of the model's ops in a phase of a block: what the host pays, and how many it pays nothing for.
 */
static double paid_s(
    const struct plan_program *program, const char *layer, int phase, int *free_ones)
{
    double paid_s = 0;
    *free_ones = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if ((op->kind != OP_KERNEL && op->kind != OP_COLLECTIVE) || op->phase != phase ||
            !op->name || !strstr(op->name, layer) || strstr(op->name, "autocast"))
            continue;
        paid_s += (double)op->host_s;
        *free_ones += op->host_s == 0;
    }
    return paid_s;
}

/* A pass through a block costs the host its first kernel, forward and backward, and its collectives
 * nothing. */
static void a_graph_is_launched_once(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_DDP;
    options.parallelism.model = (struct model_parallel){.tensor = TENSOR, .sequence = true};
    options.host.kernel_issue_s = 3e-6;
    options.host.backward_issue_s = 7e-6;
    for (int graphs = 0; graphs < 2; graphs++) {
        struct compiled c;
        int forward, backward;
        options.train.cuda_graphs = graphs;
        compile(&c, &options, &small_gpt, TENSOR * COPIES);
        double forward_s = paid_s(&c.plan.programs[0], "h.1/", PHASE_FORWARD, &forward);
        double backward_s = paid_s(&c.plan.programs[0], "h.1/", PHASE_BACKWARD, &backward);
        if (graphs) {
            assert_near(forward_s, 3e-6, 1e-11);
            assert_near(backward_s, 7e-6, 1e-11);
            assert_true(forward > 10 && backward > 10);
        } else {
            assert_true(forward + backward == 0 && forward_s > 10 * 3e-6 && backward_s > 10 * 7e-6);
        }
        drop(&c);
    }
}

static void sums_of(const struct compiled *c, double *gathered, int64_t *kept)
{
    const struct plan_program *program = &c->plan.programs[0];
    *gathered = 0;
    *kept = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind == OP_COLLECTIVE && c->plan.collectives.at[op->index].kind == COLL_ALL_GATHER)
            *gathered += c->plan.collectives.at[op->index].bytes;
    }
    for (int i = 0; i < program->setup.n; i++)
        if (program->buffers.at[program->setup.at[i]].category == HBM_PARAMETERS)
            *kept += program->buffers.at[program->setup.at[i]].bytes;
}

/* Megatron's weights that multiply in FP8: with 16-bit ones beside them 2 bytes an element more, a
 * byte and a transpose of another else; then a gather has one byte of each, too. MXFP8's two copies
 * have scales, 1 / 32 each, so gathers are in 16 bits; NVFP4 is as FP8, with 9 / 16 of a byte. */
static void weights_in_fp8_are_gathered_so(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.megatron.use_distributed_optimizer = true;
    options.train.attention = ATTENTION_FLASH;
    options.train.precision = PRECISION_BF16_MIXED;
    options.train.fusion = FUSION_TRANSFORMER_ENGINE;
    double gathered[6];
    int64_t kept[6], fp8 = 0;
    for (int i = 0; i < 6; i++) {
        struct compiled c;
        options.train.precision = i > 3   ? PRECISION_FP4_MIXED
                                  : i > 0 ? PRECISION_FP8_MIXED
                                          : PRECISION_BF16_MIXED;
        options.megatron.fp8_param_gather = i > 1 && i != 4;
        options.train.fp8_recipe = i == 3 ? FP8_MXFP8 : FP8_DELAYED;
        compile(&c, &options, &small_gpt, COPIES);
        const struct model_workload w = strategy_workload(&options, &c.model);
        for (int t = 0; t < c.model.n_tensors; t++)
            fp8 += i == 1 && model_keeps_fp8(&c.model, &w, &c.model.tensors[t])
                       ? c.model.tensors[t].numel
                       : 0;
        sums_of(&c, &gathered[i], &kept[i]);
        drop(&c);
    }
    assert_true(fp8 > 0 && gathered[0] > 0);
    assert_true(gathered[1] == gathered[0] && gathered[2] == gathered[0] - (double)fp8);
    assert_true(kept[1] == kept[0] + 2 * fp8 && kept[2] == kept[0]);
    assert_true(gathered[3] == gathered[0] && kept[3] == kept[0] + 2 * fp8 / 32);
    assert_true(gathered[4] == gathered[0] && kept[4] == kept[0] + 2 * fp8 * 9 / 16);
    assert_true(gathered[5] == gathered[0] - (double)fp8 * (2 - 9.0 / 16) &&
                kept[5] == kept[0] - 2 * fp8 * 7 / 16);
    options.kind = STRATEGY_DDP;
    refuse_model(&small_gpt, test_hw(), &options, "which is simulated with strategy: megatron");
}

static int kernels_named(const struct compiled *c, const char *part)
{
    int n = 0;
    for (int i = 0; i < c->plan.programs[0].ops.n; i++)
        n += c->plan.programs[0].ops.at[i].kind == OP_KERNEL &&
             strstr(c->plan.programs[0].ops.at[i].name, part);
    return n;
}

/* Blackwell's FP8 products take operands along either side: one copy of each weight, none beside
 * gathered ones, and no kernel transposes; frozen or trained. */
static void blackwell_transposes_nothing(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.parallelism.model = (struct model_parallel){.tensor = TENSOR, .sequence = true};
    options.train.attention = ATTENTION_FLASH;
    options.train.precision = PRECISION_FP8_MIXED;
    options.train.fusion = FUSION_TRANSFORMER_ENGINE;
    for (int narrow = 0; narrow < 2; narrow++) {
        struct compiled hopper, blackwell;
        double gathered;
        int64_t kept[2], fp8 = 0;
        options.megatron.fp8_param_gather = options.megatron.use_distributed_optimizer = narrow;
        compile_on("Hopper", &hopper, &options, &small_gpt, TENSOR * COPIES);
        compile_on("Blackwell", &blackwell, &options, &small_gpt, TENSOR * COPIES);
        const struct model_workload w = strategy_workload(&options, &hopper.model);
        for (int t = 0; t < hopper.model.n_tensors; t++)
            fp8 += model_keeps_fp8(&hopper.model, &w, &hopper.model.tensors[t])
                       ? hopper.model.tensors[t].numel
                       : 0;
        sums_of(&hopper, &gathered, &kept[0]);
        sums_of(&blackwell, &gathered, &kept[1]);
        assert_true(fp8 > 0 && kept[0] - kept[1] == fp8 / TENSOR);
        assert_true(
            kernels_named(&hopper, "transpose") > 0 && kernels_named(&blackwell, "transpose") == 0);
        assert_int_equal(kernels_named(&blackwell, "wgrad"), kernels_named(&hopper, "wgrad"));
        drop(&hopper);
        drop(&blackwell);
    }
}

/* A step's passes as one graph: the host pays for their first op and waits in none of them. */
static void an_iteration_is_launched_once(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.train.cuda_graphs = CUDA_GRAPHS_FULL_ITERATION;
    options.train.grad_accum = 2;
    struct compiled c;
    compile(&c, &options, &small_gpt, COPIES);
    int launches = 0;
    for (int i = 0; i < c.plan.programs[0].ops.n; i++) {
        const struct plan_op *op = &c.plan.programs[0].ops.at[i];
        bool captured = op->phase == PHASE_FORWARD || op->phase == PHASE_BACKWARD;
        launches += captured && op->host_s > 0;
        assert_false(captured && op->kind == OP_HOST_WAIT);
    }
    assert_int_equal(launches, 1);
    drop(&c);
}

/* Delayed scaling: an all_reduce after each pass of a micro-batch, forward and backward, of three
 * and two FP32 numbers a matrix, which the compute stream waits for, over tensor and data ranks,
 * and a pass over the last 1,024 of each; on one rank, and with the setting off, none. */
static void largest_values_are_reduced_in_each_pass(void **state)
{
    (void)state;
    enum { MICRO_BATCHES = 3, FLOATS = 4 };
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.train.attention = ATTENTION_FLASH;
    options.train.precision = PRECISION_FP8_MIXED;
    options.train.fusion = FUSION_TRANSFORMER_ENGINE;
    options.train.device_batch = MICRO_BATCHES * options.train.micro_batch;
    for (int on = 0; on < 2; on++) {
        struct compiled c;
        options.megatron.fp8_amax_reduce = on;
        compile(&c, &options, &small_gpt, COPIES);
        const struct model_workload w = strategy_workload(&options, &c.model);
        int64_t matrices = 0, passes[2] = {0};
        for (int t = 0; t < c.model.n_tensors; t++)
            matrices += model_keeps_fp8(&c.model, &w, &c.model.tensors[t]);
        int due = 0; /* kernels of a forward pass since its last reduction, but those that make
                        scales of it */
        for (int i = 0; i < c.plan.programs[0].ops.n; i++) {
            const struct plan_op *op = &c.plan.programs[0].ops.at[i];
            due += op->kind == OP_KERNEL && op->phase == PHASE_FORWARD &&
                   strcmp(op->name, "fp8_scales") != 0;
            assert_true(
                !on || op->phase != PHASE_BACKWARD || due == 0); /* behind the last of them */
            if (op->kind != OP_COLLECTIVE || strncmp(op->name, "amax.", 5) != 0)
                continue;
            due = 0;
            bool backward = strstr(op->name, "backward") != NULL;
            const struct plan_collective *at = &c.plan.collectives.at[op->index];
            assert_int_equal(at->kind, COLL_ALL_REDUCE);
            assert_int_not_equal(
                op->stream, STREAM_COMM); /* gradients' reductions are not in front of it */
            assert_true(at->bytes == (double)(FLOATS * matrices * (backward ? 2 : 3)));
            const struct plan_op *scales = &c.plan.programs[0].ops.at[i + 1];
            assert_string_equal(scales->name, "fp8_scales");
            assert_true(c.plan.kernels.at[scales->index].read_bytes == 1024 * at->bytes);
            assert_true(c.plan.kernels.at[scales->index].write_bytes == 1024 * at->bytes);
            passes[backward]++;
        }
        assert_true(matrices > 0);
        assert_int_equal(passes[0], on * MICRO_BATCHES);
        assert_int_equal(passes[1], on * MICRO_BATCHES);
        drop(&c);
    }
}

/* TransformerEngine hands autograd a gradient for each shape of a matrix, in BF16 (2 bytes), which
 * the layers share: of a GPT as wide as small_gpt (64, feed-forward layer 128, 4 heads of 16) q, k
 * and v 192 x 64, what follows attention 64 x 64, 128 x 64 and 64 x 128, and that of the logits,
 * vocabulary x 64. Other kernels take none. */
static void layers_share_gradients_that_nobody_reads(void **state)
{
    (void)state;
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.train.precision = PRECISION_BF16_MIXED;
    options.train.attention = ATTENTION_FLASH;
    for (int fusion = FUSION_TORCHSCRIPT; fusion <= FUSION_TRANSFORMER_ENGINE; fusion++) {
        struct compiled c;
        options.train.fusion = fusion;
        compile(&c, &options, &small_gpt, COPIES);
        int64_t width = small_gpt.d_model, inner = small_gpt.d_ff, bytes = 0;
        const struct plan_program *program = &c.plan.programs[0];
        for (int i = 0; i < program->setup.n; i++)
            if (strcmp(program->buffers.at[program->setup.at[i]].name, "dummy_wgrads") == 0)
                bytes += program->buffers.at[program->setup.at[i]].bytes;
        assert_true(small_gpt.n_layers > 1);
        assert_int_equal(bytes, fusion == FUSION_TRANSFORMER_ENGINE
                                    ? 2 * width * (4 * width + 2 * inner + small_gpt.vocab)
                                    : 0);
        drop(&c);
    }
}

/* plan_check: no deadlock, each buffer is freed once, a group has one stream. With what is kept and
 * run again. */
static void plans_of_cut_models_obey_the_laws(void **state)
{
    (void)state;
    for (int checkpointing = CHECKPOINT_NONE; checkpointing <= CHECKPOINT_SELECTIVE;
         checkpointing++)
        for (int kind = 0; kind < CONTEXT_PARALLEL_COUNT; kind++)
            for (int overlap = TENSOR_BLOCKING; overlap < TENSOR_OVERLAP_COUNT; overlap++) {
                struct compiled c;
                compile_parallel(&c,
                    (struct model_parallel){.tensor = TENSOR,
                        .sequence = true,
                        .tensor_overlap = overlap,
                        .context = 2,
                        .context_kind = kind},
                    checkpointing);
                assert_true(queue_named(&c.plan, "cp") != queue_named(&c.plan, "tp"));
                drop(&c);
            }
}

/* Two stages of which the scenario says all blocks: one and two of three. Fewer are refused. */
static void first_and_last_layers_may_be_all(void **state)
{
    (void)state;
    static const struct {
        int64_t pipeline, first, last;
        const char *refused;
    } cases[] = {{2, 1, 2, NULL}, {2, 1, 1, "leave 1 blocks for no model chunk"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strategy_options options = options_of(NO_SHARD);
        struct compiled c;
        options.kind = STRATEGY_MEGATRON;
        options.train.grad_accum = 2;
        options.parallelism.pipeline = cases[i].pipeline;
        options.parallelism.first_layers = cases[i].first;
        options.parallelism.last_layers = cases[i].last;
        if (cases[i].refused) {
            refuse_model(&small_llama, test_hw(), &options, cases[i].refused);
            continue;
        }
        compile(&c, &options, &small_llama, 2);
        for (int p = 0; p < c.plan.n_programs; p++) {
            int blocks = 0;
            for (int o = 0; o < c.plan.programs[p].ops.n; o++) {
                const struct plan_op *op = &c.plan.programs[p].ops.at[o];
                blocks += op->kind == OP_KERNEL && op->phase == PHASE_FORWARD &&
                          strstr(op->name, "mlp.down_proj");
            }
            assert_int_equal(
                blocks, options.train.grad_accum * (p == 0 ? cases[i].first : cases[i].last));
        }
        drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_of_the_axis_have_a_stream),
        cmocka_unit_test(pieces_are_launched_by_one_call),
        cmocka_unit_test(a_graph_is_launched_once),
        cmocka_unit_test(blackwell_transposes_nothing),
        cmocka_unit_test(an_iteration_is_launched_once),
        cmocka_unit_test(weights_in_fp8_are_gathered_so),
        cmocka_unit_test(largest_values_are_reduced_in_each_pass),
        cmocka_unit_test(layers_share_gradients_that_nobody_reads),
        cmocka_unit_test(plans_of_cut_models_obey_the_laws),
        cmocka_unit_test(first_and_last_layers_may_be_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
