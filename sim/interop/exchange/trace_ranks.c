/* Which ranks a traced job has, how they form a pipeline, whom the others do as, and which groups
 * grow.
 *
 * The world is the largest number that any trace says. Messages give the pipeline: their distances'
 * greatest common divisor is how far stages are apart, and the sets that they join, how far a
 * pipeline reaches. Traced ranks are sorted by stage and place; each stage needs equally many of
 * them, at even distances, and every other rank does as the traced one at its place.
 *
 * What is subtle: growth multiplies data parallelism, so a group grows if it reaches over the whole
 * job, or over a stage where stages are outermost, and is neither tensor parallelism by its name
 * nor over stages. All groups have to be regular (size, stride) before and after, and must lie
 * evenly on nodes, or the collective is refused with its place in the trace. */
#include "exchange/trace_ranks.h"

#include <stdlib.h>
#include <string.h>

static struct source_pos trace_ranks_at_file(const struct traced *traced)
{
    return (struct source_pos){.file = traced->file};
}

enum status ranks_refuse(const struct traced_job *job, const struct traced *traced,
    const struct trace_activity *activity, const char *why)
{
    return diag_input(job->diag,
        (struct source_pos){traced->file, activity->line, activity->line > 0},
        "collective %s at %.3f ms of the step: %s", traced->trace->names.at[activity->name],
        s_from_ps(activity->start - traced->trace->steps.at[traced->step].start) * 1e3, why);
}

static int stage_of(const struct traced_job *job, int rank)
{
    return rank / job->apart % job->stages;
}

/* Among the ranks of its stage. */
static int trace_ranks_place_of(const struct traced_job *job, int rank)
{
    return rank / (job->apart * job->stages) * job->apart + rank % job->apart;
}

/* The collective or messages of an item; NULL: it has none. */
static const struct trace_activity *meeting_of(const struct traced *traced, int item)
{
    const struct trace_activity *activity = traced->items.list.at[item].activity;
    return activity && activity->class == TRACE_COLLECTIVE ? activity : NULL;
}

static const struct trace_group_of_ranks *trace_ranks_group_of(
    const struct traced *traced, const struct trace_activity *activity)
{
    return activity->group < 0 ? NULL : &traced->trace->groups.at[activity->group];
}

/* ---- the ranks that were traced ---- */

enum { MOST_RANKS = 1 << 20 };

/* New GPUs must be a multiple of the traced ones. */
static enum status find_world(struct traced_job *job)
{
    int64_t ranks = job->n;
    const struct traced *said = NULL;
    for (int t = 0; t < job->n; t++) {
        const struct traced *traced = &job->list[t];
        const struct trace *trace = traced->trace;
        if (said && trace->world_size > 0 && trace->world_size != said->trace->world_size)
            return diag_input(job->diag, trace_ranks_at_file(traced),
                "it is of a job of %lld ranks, %s is of one of %lld", (long long)trace->world_size,
                said->file, (long long)said->trace->world_size);
        said = trace->world_size > 0 ? traced : said;
        ranks = trace->world_size > ranks ? trace->world_size : ranks;
        for (int i = 0; i < trace->activities.n; i++)
            ranks = trace->activities.at[i].ranks > ranks ? trace->activities.at[i].ranks : ranks;
        ranks = traced->rank >= ranks && job->n > 1 ? traced->rank + 1 : ranks;
    }
    if (ranks > MOST_RANKS)
        return diag_input(job->diag, trace_ranks_at_file(job->list),
            "a job of %lld ranks; at most %d are simulated", (long long)ranks, MOST_RANKS);
    int gpus = job->options->gpus > 0 ? job->options->gpus : (int)ranks;
    job->ranks = (int)ranks;
    job->growth = (int)(gpus / ranks);
    if (gpus % ranks != 0)
        return diag_input(job->diag, trace_ranks_at_file(job->list),
            "it is of %lld GPUs, of which %d are no multiple", (long long)ranks, gpus);
    if (job->growth > 1 && job->options->recorded)
        return diag_input(job->diag, trace_ranks_at_file(job->list),
            "collectives that take the time that they took are those of %lld GPUs, not of %d; "
            "leave --recorded out",
            (long long)ranks, gpus);
    return STATUS_OK;
}

/* The ranks of a group are a constant distance apart: is this one of them? */
static bool is_member(const struct trace_group_of_ranks *group, int rank)
{
    int place = group->stride > 0 ? (rank - group->first) / group->stride : 0;
    return group->stride == 0 ||
           (rank >= group->first && (rank - group->first) % group->stride == 0 &&
               place < group->ranks);
}

/* A group that two traces name is one: its ranks are the same in both. */
static enum status compare_groups(
    const struct traced_job *job, const struct traced *a, const struct traced *b)
{
    for (int i = 0; i < a->trace->groups.n; i++)
        for (int k = 0; k < b->trace->groups.n; k++) {
            const struct trace_group_of_ranks *x = &a->trace->groups.at[i],
                                              *y = &b->trace->groups.at[k];
            bool said = x->stride > 0 && y->stride > 0;
            if (strcmp(x->name, y->name) == 0 &&
                (x->ranks != y->ranks || (said && x->stride != y->stride)))
                return diag_input(job->diag, trace_ranks_at_file(b),
                    "its process group '%s' is of %d ranks, %d apart, that of %s of %d, %d apart; "
                    "they are no traces of one job",
                    y->name, y->ranks, y->stride, a->file, x->ranks, x->stride);
        }
    return STATUS_OK;
}

static enum status trace_ranks_compare(
    const struct traced_job *job, const struct traced *a, const struct traced *b)
{
    int64_t x = a->trace->steps.at[a->step].number, y = b->trace->steps.at[b->step].number;
    if (a->rank == b->rank)
        return diag_input(
            job->diag, trace_ranks_at_file(b), "it is of rank %d, as %s is", b->rank, a->file);
    if (a->trace->found == TRACE_ANNOTATED && b->trace->found == TRACE_ANNOTATED && x != y)
        return diag_input(job->diag, trace_ranks_at_file(b),
            "its step is number %lld, that of %s number %lld; traces of one step "
            "are wanted",
            (long long)y, a->file, (long long)x);
    return compare_groups(job, a, b);
}

static enum status check_members(const struct traced_job *job, const struct traced *traced)
{
    for (int i = 0; i < traced->items.list.n && job->n > 1; i++) {
        const struct trace_activity *activity = meeting_of(traced, i);
        const struct trace_group_of_ranks *group =
            activity ? trace_ranks_group_of(traced, activity) : NULL;
        if (group && !is_member(group, traced->rank))
            return diag_input(job->diag, trace_ranks_at_file(traced),
                "it is taken to be rank %d, which is not in its process group '%s' of ranks %d, %d "
                "...; give traces that say their ranks, or in the order of ranks",
                traced->rank, group->name, group->first, group->first + group->stride);
    }
    return STATUS_OK;
}

static enum status trace_ranks_check_ranks(const struct traced_job *job)
{
    enum status status = STATUS_OK;
    for (int t = 0; t < job->n && status == STATUS_OK; t++) {
        status = check_members(job, &job->list[t]);
        for (int other = 0; other < t && status == STATUS_OK; other++)
            status = trace_ranks_compare(job, &job->list[other], &job->list[t]);
    }
    return status;
}

/* ---- stages ---- */

static int trace_ranks_divisor(int a, int b)
{
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static enum status check_message(const struct traced_job *job, const struct traced *traced,
    const struct trace_activity *activity, const struct trace_message *message)
{
    if (message->peer < 0 || message->bytes <= 0)
        return ranks_refuse(job, traced, activity,
            "a message whose size or other end is not in the trace; PyTorch 2.4 and later write "
            "both");
    if (message->peer >= job->ranks || traced->rank >= job->ranks || message->peer == traced->rank)
        return ranks_refuse(job, traced, activity,
            arena_printf(job->arena, "a message between ranks %d and %d of %d", traced->rank,
                message->peer, job->ranks));
    return STATUS_OK;
}

/* A set of ranks by the lowest one. */
static int trace_ranks_root(const int *of, int rank)
{
    while (of[rank] != rank)
        rank = of[rank];
    return rank;
}

/* How many ranks apart messages are, and over how many ranks the largest of the sets reaches
 * that they join. Sets are joined by their lowest rank (a union of sets). */
static enum status find_messages(const struct traced_job *job, int *apart, int *reach)
{
    int *of = ARENA_ARRAY(job->arena, int, job->ranks);
    for (int r = 0; r < job->ranks; r++)
        of[r] = r;
    *apart = *reach = 0;
    for (int t = 0; t < job->n; t++)
        for (int i = 0; i < job->list[t].items.list.n; i++) {
            const struct traced *traced = &job->list[t];
            const struct trace_activity *activity = meeting_of(traced, i);
            for (int m = 0; activity && m < activity->n_messages; m++) {
                const struct trace_message *message =
                    &traced->trace->messages.at[activity->message + m];
                enum status status = check_message(job, traced, activity, message);
                if (status != STATUS_OK)
                    return status;
                *apart = trace_ranks_divisor(*apart, abs(message->peer - traced->rank));
                int a = trace_ranks_root(of, traced->rank), b = trace_ranks_root(of, message->peer);
                of[a > b ? a : b] = a > b ? b : a;
            }
        }
    for (int r = 0; r < job->ranks; r++)
        *reach = r - trace_ranks_root(of, r) + *apart > *reach
                     ? r - trace_ranks_root(of, r) + *apart
                     : *reach;
    return STATUS_OK;
}

/* Some group reaches over the whole job in steps of that many ranks, or of a multiple. */
static bool some_group_steps(const struct traced_job *job, int ranks)
{
    for (int t = 0; t < job->n; t++)
        for (int g = 0; g < job->list[t].trace->groups.n; g++) {
            const struct trace_group_of_ranks *group = &job->list[t].trace->groups.at[g];
            if (group->stride >= ranks && group->stride % ranks == 0 &&
                group->ranks * group->stride == job->ranks)
                return true;
        }
    return false;
}

/* Stages are outermost, unless data parallelism steps over whole pipelines. */
static enum status find_stages(struct traced_job *job)
{
    int apart = 0, reach = 0;
    enum status status = job->options->recorded ? STATUS_OK : find_messages(job, &apart, &reach);
    job->stages = 1;
    job->apart = job->ranks;
    job->outermost = true;
    if (status != STATUS_OK || apart < 1)
        return status;
    if (job->ranks % reach != 0 || job->ranks % apart != 0)
        return diag_input(job->diag, trace_ranks_at_file(job->list),
            "messages are between ranks %d apart and join %d, of which %d ranks are no multiple",
            apart, reach / apart, job->ranks);
    job->outermost = reach == job->ranks || !some_group_steps(job, reach);
    job->stages = (job->outermost ? job->ranks : reach) / apart;
    job->apart = apart;
    return STATUS_OK;
}

/* ---- who does as whom ---- */

/* By a traced job, which qsort() does not pass on: by stage and place, which the caller has put
 * here. */
struct order {
    int stage, place;
    struct traced traced;
};

static int trace_ranks_by_place(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    return x->stage != y->stage ? x->stage - y->stage : x->place - y->place;
}

static void trace_ranks_sort(struct traced_job *job)
{
    struct order *order = xcalloc((size_t)job->n + 1, sizeof *order);
    for (int t = 0; t < job->n; t++) {
        int rank = job->list[t].rank;
        order[t] =
            (struct order){stage_of(job, rank), trace_ranks_place_of(job, rank), job->list[t]};
    }
    qsort(order, (size_t)job->n, sizeof *order, trace_ranks_by_place);
    for (int t = 0; t < job->n; t++)
        job->list[t] = order[t].traced;
    free(order);
}

static enum status trace_ranks_check_stages(const struct traced_job *job)
{
    int *of_stage = ARENA_ARRAY(job->arena, int, job->stages);
    for (int t = 0; t < job->n; t++)
        of_stage[stage_of(job, job->list[t].rank)]++;
    for (int stage = 0; stage < job->stages; stage++)
        if (of_stage[stage] == 0)
            return diag_input(job->diag, trace_ranks_at_file(job->list),
                "its messages are of a pipeline of %d stages, and no trace is of a rank of stage "
                "%d, as rank %d is; give a trace of a rank of each stage",
                job->stages, stage, stage * job->apart + job->list[0].rank % job->apart);
    for (int stage = 0, t = 0; stage < job->stages; t += of_stage[stage++])
        if (of_stage[stage] != of_stage[0])
            return diag_input(job->diag, trace_ranks_at_file(&job->list[t]),
                "%d rank%s of stage %d traced, and %d of stage 0; give as many of each",
                of_stage[stage], of_stage[stage] == 1 ? " is" : "s are", stage, of_stage[0]);
    return STATUS_OK;
}

/* Of each stage the i-th traced rank is in the i-th of `inner` places of that width. Ranks of
 * one stage that were traced must be the first ones of equal parts of the stage. */
static enum status find_inner(struct traced_job *job)
{
    job->inner = job->n / job->stages;
    job->inner_apart = 1;
    if (job->inner == 1)
        return STATUS_OK;
    job->inner_apart =
        trace_ranks_place_of(job, job->list[1].rank) - trace_ranks_place_of(job, job->list[0].rank);
    bool even = job->apart % (job->inner * job->inner_apart) == 0;
    for (int t = 0; t < job->n; t++)
        even &= trace_ranks_place_of(job, job->list[t].rank) / job->inner_apart == t % job->inner;
    return even ? STATUS_OK
                : diag_input(job->diag, trace_ranks_at_file(job->list),
                      "the %d traced ranks%s are not the first ones at an even distance, %d and %d "
                      "being the first two; which of them the others do as is then not known: give "
                      "all ranks, or one of each stage",
                      job->inner, job->stages > 1 ? " of each stage" : "", job->list[0].rank,
                      job->list[1].rank);
}

enum status ranks_find(struct traced_job *job)
{
    enum status status = find_world(job);
    if (status == STATUS_OK)
        status = trace_ranks_check_ranks(job);
    if (status == STATUS_OK)
        status = find_stages(job);
    if (status != STATUS_OK)
        return status;
    trace_ranks_sort(job);
    status = trace_ranks_check_stages(job);
    return status == STATUS_OK ? find_inner(job) : status;
}

/* ---- groups ---- */

/* "mesh_tp", "TENSOR_MODEL_PARALLEL_GROUP", "tp". Where there is no data parallelism it reaches
 * over the job, too. */
static bool says_tensor(const char *says)
{
    size_t n = says ? strlen(says) : 0;
    bool tp = n >= 2 && strcmp(says + n - 2, "tp") == 0;
    return n > 0 && (tp || strstr(says, "TENSOR")) && !strstr(says, "dp") && !strstr(says, "DATA");
}

static bool is_fixed(const struct traced_job *job, const struct trace_group_of_ranks *group)
{
    if (says_tensor(group->says))
        return true;
    for (int i = 0; i < job->options->n_fixed; i++)
        if (strcmp(job->options->fixed[i], group->name) == 0 ||
            (group->says && strcmp(job->options->fixed[i], group->says) == 0))
            return true;
    return false;
}

/* Its ranks differ in their stages alone. */
static bool is_over_stages(const struct traced_job *job, const struct trace_group_of_ranks *group)
{
    return job->stages > 1 && group && group->stride > 0 && group->stride % job->apart == 0 &&
           stage_of(job, group->first) + (group->ranks - 1) * (group->stride / job->apart) <
               job->stages;
}

bool ranks_grow(const struct traced_job *job, const struct traced *traced,
    const struct trace_activity *activity)
{
    const struct trace_group_of_ranks *group = trace_ranks_group_of(traced, activity);
    if (activity->kind == COLL_SEND_RECV && activity->n_messages > 0)
        return false;
    if (!group)
        return activity->ranks == job->ranks;
    int reach = group->ranks * group->stride;
    return (reach == job->ranks || (job->outermost && reach == job->apart)) &&
           !is_over_stages(job, group) && !is_fixed(job, group);
}

enum plan_parallelism ranks_serve(const struct traced_job *job, const struct traced *traced,
    const struct trace_activity *activity)
{
    if (ranks_grow(job, traced, activity))
        return PARALLEL_DATA;
    return is_over_stages(job, trace_ranks_group_of(traced, activity)) ? PARALLEL_PIPELINE
                                                                       : PARALLEL_TENSOR;
}

/* Programs are simulated by the first rank of each, so a group that has one of those has all whose
 * programs it meets. */
static bool is_nested(const struct traced_job *job, const struct mesh_group *ranks)
{
    int width = job->inner_apart, block = width * job->inner, stride = ranks->stride,
        reach = ranks->size * stride;
    return job->inner == 1 || ((stride % width == 0 || width % stride == 0) &&
                                  (stride % block == 0 || block % stride == 0) &&
                                  (reach % block == 0 || block % reach == 0));
}

/* Neither all of the job or stage nor a part of it that lies in one stage. */
static bool is_across(const struct traced_job *job, const struct mesh_group *ranks, int all)
{
    int stage = all / job->stages, reach = ranks->size * ranks->stride;
    if (job->stages == 1 || reach == all)
        return false;
    return job->outermost ? reach > stage : ranks->stride < job->apart && reach > job->apart;
}

/* Groups over stages, within a stage, and over all of it have different periods. */
enum status ranks_of_group(struct mesh_group *out, const struct traced_job *job,
    const struct traced *traced, const struct trace_activity *activity)
{
    const struct trace_group_of_ranks *group = trace_ranks_group_of(traced, activity);
    int all = job->ranks * job->growth, apart = job->apart * (job->outermost ? job->growth : 1);
    int stride = group ? group->stride : 1;
    int size = activity->ranks * (ranks_grow(job, traced, activity) ? job->growth : 1);
    *out = (struct mesh_group){.size = size,
        .stride = stride,
        .width = stride,
        .period = size * stride > all ? all : size * stride};
    if (is_over_stages(job, group))
        *out = (struct mesh_group){.size = size,
            .stride = stride / job->apart * apart,
            .width = apart,
            .period = apart * job->stages,
            .offset = stage_of(job, group->first) * apart};
    else if (is_across(job, out, all))
        return ranks_refuse(job, traced, activity,
            arena_printf(job->arena,
                "its group of %d ranks, %d apart, is over a part of the %d stages, %d ranks apart",
                activity->ranks, stride, job->stages, job->apart));
    if (!is_nested(job, out))
        return ranks_refuse(job, traced, activity,
            arena_printf(job->arena,
                "its group of %d ranks, %d apart, does not fit traced ranks that are %d, %d apart; "
                "give all ranks, or one of each stage",
                size, stride, job->inner, job->inner_apart));
    int node = hw_gpus_per_node(job->options->hw);
    if (mesh_group_is_valid(out, all) && mesh_group_lies_evenly(out, all, node))
        return STATUS_OK;
    return ranks_refuse(job, traced, activity,
        arena_printf(job->arena,
            "its group of %d ranks, %d apart, does not fit %d GPUs in nodes of %d", out->size,
            out->stride, all, node));
}

/* ---- messages ---- */

/* Messages of several groups between two ranks have several tags. By what is said of a group: its
 * name may be another on each pipeline. */
static int pipe_of(
    struct traced_job *job, const struct traced *traced, const struct trace_message *message)
{
    const struct trace_group_of_ranks *group =
        message->group < 0 ? NULL : &traced->trace->groups.at[message->group];
    const char *name =
        group && group->says && strcmp(group->says, "undefined") != 0 ? group->says : "";
    for (int i = 0; i < job->pipes.n; i++)
        if (strcmp(job->pipes.at[i], name) == 0)
            return i;
    vec_push(&job->pipes, name);
    return job->pipes.n - 1;
}

struct plan_channel ranks_channel(
    struct traced_job *job, const struct traced *traced, const struct trace_message *message)
{
    int here = stage_of(job, traced->rank), there = stage_of(job, message->peer);
    int delta = message->sends ? there - here : here - there;
    return (struct plan_channel){.axis = AXIS_PP,
        .delta = (delta + job->stages) % job->stages,
        .tag = pipe_of(job, traced, message)};
}

/* ---- the plan ---- */

/* With one traced rank all ranks do the same; else there is a program for each stage, and for
 * each inner place. */
void ranks_begin_plan(const struct traced_job *job, struct plan_builder *builder, struct plan *plan)
{
    int all = job->ranks * job->growth, apart = job->apart * (job->outermost ? job->growth : 1);
    struct mesh mesh;
    const char *bad;
    if (job->n == 1) {
        plan_begin(builder, plan, all);
        return;
    }
    int size[AXIS_COUNT] = {[AXIS_TP] = job->inner_apart,
        [AXIS_CP] = job->inner,
        [AXIS_DP_SHARD] = apart / (job->inner_apart * job->inner),
        [AXIS_PP] = job->stages,
        [AXIS_DP_REPLICATE] = all / (apart * job->stages)};
    bool built = mesh_build(&mesh, size, "tp-cp-dp_shard-pp-dp_replicate", &bad);
    BUG_IF(!built || mesh.ranks != all, "no mesh of %d ranks", all);
    if (job->inner == 1)
        plan_begin_programs(builder, plan, &mesh, AXIS_PP);
    else
        plan_begin_programs_by_two(builder, plan, &mesh, AXIS_PP, AXIS_CP);
}
