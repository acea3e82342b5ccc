/* Chakra traces of a folder, read, planned and executed: NAME.0.et, NAME.1.et and so on, one a
 * rank.
 *
 * Ranks must be numbered without gaps and be of one workload. Groups come from a file of JSON;
 * each must be evenly apart and lie evenly on nodes, as collectives are simulated by one shape a
 * group. One step is executed without noise, and every rank is traced, so that collectives can
 * be counted. What is subtle: each member of a collective has a span, so counts are divided by
 * the ranks where all ranks are traced; times are from when the last member has come. */
#include "exchange/replay.h"

#include "config/config.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

struct folder {
    const char *path, *name; /* NAME of NAME.0.et */
    const char **files;      /* by rank */
    int n;
    struct replay_groups groups;
};

/* ---- the files ---- */

/* The rank in NAME.RANK.et or NAME.RANK.et.gz; -1: it is not called so. *length: of what comes
 * before. */
static int rank_of(const char *file, int *length)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file,
               *end = strstr(name, ".et");
    while (end && strcmp(end, ".et") != 0 && strcmp(end, ".et.gz") != 0)
        end = strstr(end + 1, ".et");
    const char *digits = end;
    while (digits && digits > name && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    enum { MOST_DIGITS = 6 };
    if (!end || digits == end || end - digits > MOST_DIGITS || digits - name < 2 ||
        digits[-1] != '.')
        return -1;
    *length = (int)(digits - 1 - name);
    return atoi(digits);
}

static enum status put_file(
    struct folder *folder, const char *file, size_t most, struct arena *arena, struct diag *diag)
{
    struct source_pos at = {.file = file};
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    int length = 0, rank = rank_of(file, &length);
    if (rank < 0)
        return diag_input(diag, at, "a trace is called NAME.RANK.et, as in gpt.0.et");
    if (!folder->name)
        folder->name = arena_printf(arena, "%.*s", length, name);
    if ((int)strlen(folder->name) != length || strncmp(folder->name, name, (size_t)length) != 0)
        return diag_input(
            diag, at, "another workload beside '%s'; give a folder to each", folder->name);
    if ((size_t)rank >= most)
        return diag_input(
            diag, at, "there are %zu traces; ranks are numbered from 0 on, without gaps", most);
    if (folder->files[rank])
        return diag_input(diag, at, "a second trace of rank %d", rank);
    folder->files[rank] = arena_strdup(arena, file);
    return STATUS_OK;
}

static enum status find_files(struct folder *folder, struct arena *arena, struct diag *diag)
{
    glob_t found = {0};
    enum status status = STATUS_OK;
    glob(arena_printf(arena, "%s/*.et", folder->path), 0, NULL, &found);
    glob(arena_printf(arena, "%s/*.et.gz", folder->path), found.gl_pathc ? GLOB_APPEND : 0, NULL,
        &found);
    folder->n = (int)found.gl_pathc;
    folder->files = ARENA_ARRAY(arena, const char *, folder->n + 1);
    struct source_pos at = {.file = folder->path};
    if (folder->n == 0)
        status = diag_input(diag, at,
            "there are no Chakra traces, NAME.0.et and so on; name a folder that has them");
    else if (folder->n > CHAKRA_MAX_RANKS)
        status = diag_input(diag, at, "more than %d traces", CHAKRA_MAX_RANKS);
    for (size_t i = 0; i < found.gl_pathc && status == STATUS_OK; i++)
        status = put_file(folder, found.gl_pathv[i], found.gl_pathc, arena, diag);
    globfree(&found);
    return status;
}

/* ---- groups: {"0": [0, 1, 2, 3], ...} ---- */

static enum status replay_read_ranks(struct mesh_group *out, struct config_node list, int ranks,
    const struct hw *hw, struct diag *diag)
{
    int n = config_count(list), before = -1, stride = 0;
    if (config_kind(list) != CONFIG_SEQUENCE || n == 0)
        return diag_input(diag, config_pos(list), "a group is a list of ranks, as in [0, 1, 2, 3]");
    for (int i = 0; i < n; i++) {
        struct config_node item = config_item(list, i);
        const char *text = config_text(item);
        char *end = NULL;
        long rank = strtol(text, &end, 10);
        if (!*text || *end || rank < 0 || rank >= ranks)
            return diag_input(diag, config_pos(item), "'%s' is no rank of %d", text, ranks);
        if (i == 1)
            stride = (int)rank - before;
        if ((i > 0 && rank <= before) || (i > 1 && rank - before != stride))
            return diag_input(diag, config_pos(item),
                "the ranks of a group are a constant distance apart, as in 0, 2, 4; of others none "
                "can be simulated");
        before = (int)rank;
        out->offset = i == 0 ? before : out->offset;
    }
    *out = (struct mesh_group){.size = n,
        .stride = n > 1 ? stride : 1,
        .width = 1,
        .period = ranks,
        .offset = out->offset};
    if (!mesh_group_lies_evenly(out, ranks, hw_gpus_per_node(hw)))
        return diag_input(diag, config_pos(list),
            "the group does not have as many ranks on each node that it touches");
    return STATUS_OK;
}

static enum status read_groups(struct folder *folder, const char *path, const struct hw *hw,
    struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, path, diag);
    if (status != STATUS_OK)
        return status;
    struct config_node root = config_root(doc);
    if (config_kind(root) != CONFIG_MAPPING)
        status = diag_input(
            diag, config_pos(root), "groups are an object, as in {\"0\": [0, 1], \"1\": [2, 3]}");
    for (int i = 0;
         i < config_count(root) && status == STATUS_OK && config_kind(root) == CONFIG_MAPPING;
         i++) {
        struct replay_group group = {.name = arena_strdup(arena, config_text(config_key(root, i)))};
        struct diag own = DIAG_INIT;
        status = replay_read_ranks(&group.ranks, config_item(root, i), folder->n, hw, &own);
        diag_merge(diag, &own);
        vec_push(&folder->groups.list, group);
    }
    config_free(doc);
    return status;
}

static enum status replay_find_groups(struct folder *folder, const struct replay_options *options,
    const struct hw *hw, struct arena *arena, struct diag *diag)
{
    glob_t found = {0};
    const char *path = options->groups;
    if (!path &&
        glob(arena_printf(arena, "%s/comm_group*.json", folder->path), 0, NULL, &found) == 0)
        path = arena_strdup(arena, found.gl_pathv[0]);
    enum status status = path ? read_groups(folder, path, hw, arena, diag) : STATUS_OK;
    globfree(&found);
    return status;
}

enum status replay_check_cluster(
    int ranks, const struct hw *hw, struct source_pos at, struct diag *diag)
{
    int per_node = hw_gpus_per_node(hw);
    double most = hw->cluster.nodes.value * per_node;
    if (ranks > most)
        return diag_input(diag, at, "%d ranks, and the cluster has %.0f GPUs", ranks, most);
    if (ranks > per_node && ranks % per_node != 0)
        return diag_input(diag, at, "%d ranks do not fill nodes of %d GPUs", ranks, per_node);
    return STATUS_OK;
}

/* ---- the run ---- */

static void count_nodes(struct replay *out, const struct chakra_trace *trace)
{
    out->nodes += trace->nodes.n;
    for (int i = 0; i < trace->nodes.n; i++) {
        out->flop += trace->nodes.at[i].flop;
        out->bytes += trace->nodes.at[i].bytes;
    }
}

static int replay_longest_first(const void *a, const void *b)
{
    const struct replay_comm *x = a, *y = b;
    double p = x->time_s * x->count, q = y->time_s * y->count;
    return (p < q) - (p > q);
}

static bool replay_alike(const struct replay_comm *comm, const struct exec_span *span)
{
    return comm->kind == span->collective && comm->ranks == span->group_size &&
           comm->bytes == span->bytes;
}

/* Every member that is traced has a span of a collective, the sender and the receiver of a message.
 */
static void count_comm(struct replay *out, bool all, struct arena *arena)
{
    VEC(struct replay_comm) list = {0};
    for (int s = 0; s < out->exec.n_spans; s++) {
        const struct exec_span *span = &out->exec.spans[s];
        int i = 0;
        if (!span->is_collective)
            continue;
        while (i < list.n && !replay_alike(&list.at[i], span))
            i++;
        if (i == list.n)
            vec_push(&list,
                (struct replay_comm){
                    .kind = span->collective, .ranks = span->group_size, .bytes = span->bytes});
        list.at[i].count++;
        list.at[i].time_s += s_from_ps(span->end - span->moving);
        list.at[i].algorithm = span->algorithm;
        list.at[i].protocol = span->protocol;
        list.at[i].bound = span->bound;
    }
    for (int i = 0; i < list.n; i++) {
        list.at[i].time_s /= list.at[i].count;
        list.at[i].count /= all ? list.at[i].ranks : 1;
    }
    out->n_comm = list.n;
    vec_keep(out->comm, &list, arena);
    if (out->n_comm > 1)
        qsort(out->comm, (size_t)out->n_comm, sizeof *out->comm, replay_longest_first);
}

void replay_execute(struct replay *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena)
{
    exec_run(&out->exec, plan, hw, options, arena);
    count_comm(out, options->n_trace_ranks == out->ranks, arena);
}

static void exchange_replay_execute(
    struct replay *out, const struct plan *plan, const struct hw *hw, struct arena *arena)
{
    struct exec_options options = exec_default_options();
    int *ranks = ARENA_ARRAY(arena, int, out->ranks);
    for (int r = 0; r < out->ranks; r++)
        ranks[r] = r;
    options.steps = 1;
    options.warmup_steps = 0;
    options.no_memory = true;
    options.noise = (struct noise_options){0};
    options.trace_ranks = ranks;
    options.n_trace_ranks = out->ranks;
    replay_execute(out, plan, hw, &options, arena);
}

static enum status replay_simulate(struct replay *out, const struct folder *folder, bool roofline,
    const struct hw *hw, struct arena *arena, struct diag *diag)
{
    struct chakra_trace *traces = xcalloc((size_t)folder->n, sizeof *traces);
    struct plan plan = {0};
    enum status status = STATUS_OK;
    for (int r = 0; r < folder->n && status == STATUS_OK; r++) {
        status = chakra_read(&traces[r], folder->files[r], arena, diag);
        count_nodes(out, &traces[r]);
    }
    if (status == STATUS_OK)
        status = chakra_plan(
            &plan, traces, folder->files, folder->n, &folder->groups, hw, roofline, arena, diag);
    for (int r = 0; r < folder->n; r++)
        chakra_free(&traces[r]);
    free(traces);
    if (status == STATUS_OK)
        exchange_replay_execute(out, &plan, hw, arena);
    if (status == STATUS_OK && out->exec.overlong)
        status = diag_input(diag, (struct source_pos){.file = folder->path},
            "the step would take more than %.0f days", s_from_ps(PS_HORIZON) / 86400);
    plan_release(&plan);
    return status;
}

enum status replay_run(struct replay *out, const struct replay_options *options,
    const struct hw *hw, struct arena *arena, struct diag *diag)
{
    struct folder folder = {.path = options->folder};
    enum status status = find_files(&folder, arena, diag);
    *out = (struct replay){.ranks = folder.n};
    if (status == STATUS_OK)
        status = replay_check_cluster(folder.n, hw, (struct source_pos){.file = folder.path}, diag);
    if (status == STATUS_OK)
        status = replay_find_groups(&folder, options, hw, arena, diag);
    if (status == STATUS_OK)
        status = replay_simulate(out, &folder, options->roofline, hw, arena, diag);
    vec_free(&folder.groups.list);
    return status;
}
