/* One rank simulated for all of its program gives the very step that all ranks give, and all else
 * that is said of it, where nothing varies: on jobs of every strategy and layout, with CUDA graphs
 * too, of which many ops begin at one instant, drawn at random, and on nodes whose numbers of GPUs
 * and NICs are drawn, too. Few NICs for many GPUs is where ranks of other process groups decide, by
 * the bytes that they have on the same links. FLOPCAST_LAW_DRAWS=3000 in the environment: that many
 * pairs of runs instead of PAIRS. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "draws.h"
#include "exec/exec.h"
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 150 };

static const char *const clusters[] = {"h100-8x400g", "a100-80gb-roce-2tb", "a100-80gb-4x200g",
    "b200-8x400g", "aws-p4d-efa", "jean-zay-a100"};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };

struct pair {
    int number;
    const char *cluster;
    struct hw hw;
    struct drawn job;
    struct model_shape shape;
};

static void draw_node(struct pair *pair, struct rng_stream *rng, struct arena *arena)
{
    pair->cluster = clusters[below(rng, CLUSTERS)];
    load_cluster(&pair->hw, pair->cluster, arena);
    pair->hw.node.gpus.value = (double)ONE_OF(rng, 4, 5, 6, 7, 8, 8, 8, 8);
    pair->hw.node.nics.value = 1 + below(rng, 8);
    pair->hw.node.nic_bandwidth.value *= exp2(2 * rng_uniform(rng) - 1);
    pair->job.gpus = (int)pair->hw.node.gpus.value * (int)ONE_OF(rng, 1, 2, 2, 3, 4, 4, 8);
}

/* Matrices up to 64 times as wide, so that collectives take as long as kernels do, or longer. */
static void draw_width(struct pair *pair, struct rng_stream *rng)
{
    struct model_shape *shape = &pair->shape;
    int64_t wide = ONE_OF(rng, 1, 4, 16, 64);
    if (shape->image_size > 0 || shape->family == MODEL_DHEN)
        return;
    shape->d_model *= wide;
    shape->d_ff *= wide;
    shape->n_heads *= wide;
    shape->n_kv_heads *= wide;
    shape->moe.d_ff *= wide;
    shape->moe.shared_d_ff *= wide;
}

static void draw_experts(struct rng_stream *rng, struct strategy_options *options)
{
    options->parallelism.model.expert = ONE_OF(rng, 1, 2, 4, 8);
    options->parallelism.model.expert_tensor = ONE_OF(rng, 0, 1);
    options->train.moe_token_dispatcher_type = below(rng, DISPATCHER_COUNT);
}

static void draw_stages(struct rng_stream *rng, struct parallelism_options *parallel)
{
    static const char *const orders[] = {
        NULL, NULL, "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "pp-tp-cp-ep-dp"};
    parallel->pipeline = ONE_OF(rng, 1, 2, 3, 4);
    parallel->virtual_stages = parallel->pipeline > 1 ? ONE_OF(rng, 1, 1, 2) : 1;
    parallel->schedule = parallel->virtual_stages == 1 ? below(rng, SCHEDULE_ZBV) : 0;
    parallel->overlap_p2p_comm =
        parallel->virtual_stages > 1 && one_in(rng, 2); /* Megatron refuses others */
    parallel->scatter_gather = one_in(rng, 2);
    parallel->order = orders[below(rng, sizeof orders / sizeof *orders)];
}

static void draw_data_parallel(struct pair *pair, struct rng_stream *rng)
{
    struct strategy_options *options = &pair->job.options;
    options->megatron.use_distributed_optimizer = one_in(rng, 2);
    options->megatron.overlap_grad_reduce = one_in(rng, 2);
    options->megatron.overlap_param_gather =
        options->megatron.overlap_grad_reduce && one_in(rng, 2);
    options->megatron.bucket_size = ONE_OF(rng, 0, 10000);
    options->nanotron.zero_stage = below(rng, 2);
    options->nanotron.ddp_bucket_cap_bytes = (double)ONE_OF(rng, 10000, 25 << 20);
    draw_zero(rng, &options->zero);
    options->zero.stage = below(rng, 4);
    draw_fsdp(rng, &options->fsdp, pair->job.gpus);
    if (options->parallelism.pipeline > 1)
        options->fsdp.version = 2;
    options->fsdp.cpu_offload = false;
}

/* Drawn apart, so that other jobs stay what they were. */
static void draw_some_units(struct pair *pair)
{
    struct rng_stream rng = rng_stream(13, 0, (uint64_t)pair->number);
    if (pair->job.options.parallelism.pipeline == 1 && one_in(&rng, 2))
        draw_units(&rng, &pair->job.options.megatron);
}

/* Drawn apart, too. */
static void draw_merged_passes(struct pair *pair)
{
    struct rng_stream rng = rng_stream(14, 0, (uint64_t)pair->number);
    struct strategy_options *options = &pair->job.options;
    const struct parallelism_options *parallel = &options->parallelism;
    if (options->kind != STRATEGY_MEGATRON || parallel->model.expert < 2 ||
        options->megatron.use_megatron_fsdp ||
        (parallel->pipeline > 1 && parallel->virtual_stages < 2) || one_in(&rng, 4))
        return;
    options->megatron.overlap_moe_expert_parallel_comm = true;
    options->train.activation_checkpointing = CHECKPOINT_NONE;
    options->train.moe_token_dispatcher_type =
        one_in(&rng, 2) ? DISPATCHER_FLEX : DISPATCHER_ALLTOALL;
}

/* Drawn apart, too. */
static void draw_v(struct pair *pair)
{
    struct rng_stream rng = rng_stream(15, 0, (uint64_t)pair->number);
    struct strategy_options *options = &pair->job.options;
    struct parallelism_options *parallel = &options->parallelism;
    if ((options->kind != STRATEGY_MEGATRON && options->kind != STRATEGY_FSDP) ||
        parallel->pipeline == 1 || one_in(&rng, 2))
        return;
    parallel->virtual_stages = SCHEDULE_V_CHUNKS;
    bool merges = options->megatron.overlap_moe_expert_parallel_comm;
    parallel->schedule = one_in(&rng, 2) && !merges ? SCHEDULE_ZBV : SCHEDULE_DUALPIPEV;
    int64_t ranks = strategy_data_ranks(parallel, pair->job.gpus);
    pair->shape.n_layers = 2 * parallel->pipeline * ONE_OF(&rng, 1, 1, 2);
    options->train.device_batch = options->train.grad_accum = 0;
    options->train.global_batch =
        ranks * options->train.micro_batch * (2 * parallel->pipeline + below(&rng, 3));
    strategy_share_batch(options, pair->job.gpus);
}

/* Drawn apart, too. */
static void draw_graphs(struct pair *pair)
{
    struct rng_stream rng = rng_stream(16, 0, (uint64_t)pair->number);
    struct train_options *train = &pair->job.options.train;
    train->cuda_graphs = one_in(&rng, 2) ? CUDA_GRAPHS_LAYER : CUDA_GRAPHS_NONE;
    if (train->cuda_graphs && pair->job.options.kind == STRATEGY_MEGATRON && one_in(&rng, 2))
        train->cuda_graphs = CUDA_GRAPHS_FULL_ITERATION;
    if (train->cuda_graphs && pair->shape.moe.experts > 0) {
        train->moe_expert_capacity_factor = 1;
        train->moe_pad_expert_input_to_capacity = true;
    }
}

/* Layouts of ranks, which combinations.h leaves to others. */
static void draw_layout(struct pair *pair, struct rng_stream *rng)
{
    static const struct model_shape *const shapes[] = {
        &small_gpt, &small_llama, &small_moe, &small_deepseek, &small_neox};
    static const int kinds[] = {STRATEGY_MEGATRON, STRATEGY_MEGATRON, STRATEGY_NANOTRON,
        STRATEGY_FSDP, STRATEGY_DEEPSPEED, STRATEGY_DDP};
    struct strategy_options *options = &pair->job.options;
    *options = strategy_default_options();
    pair->shape = *shapes[below(rng, sizeof shapes / sizeof *shapes)];
    pair->shape.n_layers = ONE_OF(rng, 2, 4, 6, 8);
    pair->shape.tied_embeddings &= one_in(rng, 2);
    options->kind = kinds[below(rng, sizeof kinds / sizeof *kinds)];
    options->train.seq_len = ONE_OF(rng, 32, 64);
    pair->shape.max_positions = pair->shape.max_positions > 0 ? 64 : 0;
    options->train.micro_batch = ONE_OF(rng, 1, 2);
    options->train.attention = ATTENTION_FLASH;
    options->train.activation_checkpointing = below(rng, CHECKPOINT_SEARCHED);
    struct parallelism_options *parallel = &options->parallelism;
    parallel->model.tensor = ONE_OF(rng, 1, 1, 2, 4);
    parallel->model.sequence = parallel->model.tensor > 1 && one_in(rng, 2);
    parallel->model.context = ONE_OF(rng, 1, 1, 2);
    parallel->model.context_kind = below(rng, CONTEXT_PARALLEL_COUNT);
    if (pair->shape.moe.experts > 0)
        draw_experts(rng, options);
    draw_stages(rng, parallel);
    draw_data_parallel(pair, rng);
    int64_t ranks = strategy_data_ranks(parallel, pair->job.gpus);
    options->train.global_batch =
        ranks * options->train.micro_batch * parallel->pipeline * ONE_OF(rng, 1, 2);
    strategy_share_batch(options, pair->job.gpus);
    draw_some_units(pair);
    draw_merged_passes(pair);
    draw_v(pair);
}

static void draw_pair(struct pair *pair, int number, struct arena *arena)
{
    struct rng_stream rng = rng_stream(12, 0, (uint64_t)number);
    *pair = (struct pair){.number = number};
    pair->job = draw(number);
    pair->shape = *pair->job.shape;
    draw_node(pair, &rng, arena);
    if (one_in(&rng, 2))
        draw_layout(pair, &rng);
    draw_width(pair, &rng);
    draw_graphs(pair);
    pair->job.shape = &pair->shape;
}

static struct exec_result run(
    const struct pair *pair, const struct plan *plan, int fold, struct arena *arena)
{
    struct exec_options options = exec_default_options();
    struct exec_result result;
    options.steps = options.warmup_steps = 1;
    options.fold = fold;
    exec_run(&result, plan, &pair->hw, &options, arena);
    return result;
}

static void describe(const struct pair *pair)
{
    const struct strategy_options *o = &pair->job.options;
    const struct parallelism_options *p = &o->parallelism;
    print_message("case %d: %s, %s, %d GPUs in nodes of %g with %g NICs as of %s, tp %" PRId64
                  " cp %" PRId64 " ep %" PRId64 " pp %" PRId64 " x %" PRId64 " %s (%s): ",
        pair->number, pair->shape.name, strategy_label(o), pair->job.gpus, pair->hw.node.gpus.value,
        pair->hw.node.nics.value, pair->cluster, p->model.tensor, p->model.context, p->model.expert,
        p->pipeline, p->virtual_stages, pipeline_schedule_names[p->schedule],
        p->order ? p->order : "default");
}

static double *number_of(struct exec_result *exec, int program, const struct record_column *column)
{
    if (program >= 0)
        return record_of_program(&exec->programs[program], column);
    size_t at = column->offset - offsetof(struct scenario_result, exec);
    return (double *)(void *)((unsigned char *)exec + at);
}

/* A column of a result of exec, which all that it is made of is in. */
static bool is_of_exec(const struct record_column *column)
{
    return !column->get &&
           column->offset - offsetof(struct scenario_result, exec) < sizeof(struct exec_result);
}

/* Means over ranks are sums of equal numbers, and as near as those can be. Of seconds, bytes and
 * shares. */
static const double SAME = 1e-9;
/* Of what a link can carry: what a flow brings is rounded to a byte, and a folded run has one flow
 * for those of ranks that do alike on a node. */
static const double SAME_SHARE = 1e-6;

static bool near(double a, double b, double step_s)
{
    return a == b || fabs(a - b) <= SAME * fmax(step_s, fmax(fabs(a), fabs(b)));
}

/* The first column that differs, of the job or of a program; NULL: none does. Not compared: how
 * many events it took. */
static const char *differs(struct exec_result *folded, struct exec_result *all)
{
    if (folded->status != all->status)
        return "status";
    if (folded->step_time_s != all->step_time_s) /* to the bit */
        return "step_time_s";
    for (int p = -1; p < all->n_programs; p++)
        for (int c = 0; c < n_record_columns; c++) {
            const struct record_column *column = &record_columns[c];
            if (!is_of_exec(column) || strcmp(column->name, "events") == 0 ||
                (p >= 0 && !column->program))
                continue;
            double a = *number_of(folded, p, column), b = *number_of(all, p, column);
            bool of_links = strstr(column->name, "_utilisation") != NULL;
            if (of_links ? fabs(a - b) > SAME_SHARE : !near(a, b, all->step_time_s))
                return column->name;
        }
    for (int k = 0; k < PARALLEL_COUNT; k++)
        if (!near(folded->breakdown.comm[k].moving_s, all->breakdown.comm[k].moving_s,
                all->step_time_s) ||
            !near(folded->breakdown.comm[k].exposed_s, all->breakdown.comm[k].exposed_s,
                all->step_time_s))
            return "comm of a kind of parallelism";
    return NULL;
}

struct counts {
    int pairs, differ, few_nics, graphs, by_kind[STRATEGY_COUNT], by_schedule[SCHEDULE_COUNT];
};

static void try_pair(struct counts *counts, int number)
{
    struct arena arena = ARENA_INIT;
    struct pair pair;
    struct plan plan;
    draw_pair(&pair, number, &arena);
    if (compile_drawn(&plan, &pair.job, &pair.hw, &arena)) {
        struct exec_result folded = run(&pair, &plan, FOLD_AUTO, &arena);
        if (folded.folded && folded.ranks_simulated < pair.job.gpus) {
            struct exec_result all = run(&pair, &plan, FOLD_OFF, &arena);
            counts->pairs++;
            counts->graphs += pair.job.options.train.cuda_graphs != CUDA_GRAPHS_NONE;
            counts->few_nics += pair.hw.node.nics.value < pair.hw.node.gpus.value;
            counts->by_kind[pair.job.options.kind]++;
            counts->by_schedule[pair.job.options.parallelism.schedule]++;
            const char *column = differs(&folded, &all);
            if (column) {
                counts->differ++;
                describe(&pair);
                print_message("%s differs; %.12g s folded, %.12g s unfolded (%+.3g %%)\n", column,
                    folded.step_time_s, all.step_time_s,
                    100 * (all.step_time_s / folded.step_time_s - 1));
            }
        }
    }
    plan_release(&plan);
    arena_release(&arena);
}

static void one_rank_stands_for_all(void **state)
{
    (void)state;
    int wanted = law_draws(PAIRS);
    struct counts counts = {0};
    for (int number = 0; counts.pairs < wanted; number++)
        try_pair(&counts, number);
    print_message("%d pairs, %d with fewer NICs than GPUs, %d with CUDA graphs: %d differ\n",
        counts.pairs, counts.few_nics, counts.graphs, counts.differ);
    for (int kind = 0; kind < STRATEGY_COUNT; kind++) {
        print_message("%s %d\n", strategy_kind_names[kind], counts.by_kind[kind]);
        assert_true(kind == STRATEGY_SINGLE_DEVICE || counts.by_kind[kind] > wanted / 50);
    }
    for (int schedule = 0; schedule < SCHEDULE_COUNT; schedule++) {
        print_message("%s %d\n", pipeline_schedule_names[schedule], counts.by_schedule[schedule]);
        assert_true(counts.by_schedule[schedule] > wanted / 100);
    }
    assert_true(counts.few_nics > wanted / 4 && counts.graphs > wanted / 4);
    assert_int_equal(counts.differ, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank_stands_for_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
