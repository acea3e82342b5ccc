/* The words of scenario/causes.h for queries: temporary views on the connection, made of SQL
 * functions.
 *
 * Parts of a step and sentences are computed in C by the same functions that print them elsewhere,
 * so a figure and a command never name a cause differently. The views are made new for each
 * connection that reads; nothing of them is in the file. What is subtle: the columns that
 * step_columns lists are the arguments of the functions in exactly this order, and causes_step_of()
 * reads them by their place; a NULL of SQL reads as 0. The number of causes and parts comes from
 * the enums, so a new cause needs no change here. */
#include "store/database.h"

#include "scenario/causes.h"

/* The columns of a step in the order of the functions' arguments, after the first. */
static const char step_columns[] =
    "compute_alone_s, contention_s, exposed_comm_s, host_bound_s, other_idle_s, comm_s, "
    "comm_latency_s, comm_wait_s, coalesce(alloc_stall_s, 0), bubble_s, coalesce(stage_wait_s, 0)";
enum { STEP_COLUMNS = 11 };

/* The inverse of how store/record.c writes a breakdown. v[8] is the stall of cudaMalloc, which
 * is no member of it. */
static struct scenario_step causes_step_of(sqlite3_value **values)
{
    double v[STEP_COLUMNS];
    for (int i = 0; i < STEP_COLUMNS; i++)
        v[i] = sqlite3_value_double(values[i]);
    const struct exec_breakdown breakdown = {.compute_s = v[0] + v[1],
        .contention_s = v[1],
        .exposed_comm_s = v[2],
        .host_bound_s = v[3],
        .other_idle_s = v[4],
        .comm_s = v[5],
        .comm_latency_s = v[6],
        .comm_wait_s = v[7],
        .bubble_s = v[9],
        .stage_wait_s = v[10]};
    return scenario_step(&breakdown, v[8]);
}

/* step_part(part, columns): seconds. */
static void step_part(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    struct scenario_step step = causes_step_of(values + 1);
    sqlite3_result_double(context, step.part_s[sqlite3_value_int(values[0])]);
}

/* step_sentence(columns) */
static void causes_step_sentence(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    struct arena arena = ARENA_INIT;
    struct scenario_step step = causes_step_of(values);
    sqlite3_result_text(context, scenario_step_sentence(&arena, &step), -1, SQLITE_TRANSIENT);
    arena_release(&arena);
}

/* loss_sentence(small_gpus, large_gpus, small, large, a part for each cause) */
static void loss_sentence(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct arena arena = ARENA_INIT;
    struct scenario_loss loss = {.small_gpus = sqlite3_value_int64(values[0]),
        .large_gpus = sqlite3_value_int64(values[1]),
        .small = sqlite3_value_double(values[2]),
        .large = sqlite3_value_double(values[3])};
    for (int i = 4; i < n; i++)
        loss.part[i - 4] = sqlite3_value_double(values[i]);
    sqlite3_result_text(context, scenario_loss_sentence(&arena, &loss), -1, SQLITE_TRANSIENT);
    arena_release(&arena);
}

/* step_part: a row for each part of a step; v_step: the parts of every point; v_verdict: whether it
 * fits, and how much room is left; v_loss: explanations with their sentence. A part is numbered
 * from 1 in the views and from 0 in the array of scenario_step. */
static char *views(void)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(
        sql, "CREATE TEMP VIEW step_part AS SELECT 1 AS part, '' AS name WHERE 0");
    for (int i = 0; i < STEP_PART_COUNT; i++)
        sqlite3_str_appendf(sql, " UNION ALL SELECT %d, %Q", i + 1, scenario_step_parts[i].name);
    sqlite3_str_appendall(sql,
        "; CREATE TEMP VIEW v_verdict AS SELECT point_id, CASE WHEN point.status = 'oom' AND "
        "point.shortfall_bytes > 0 THEN printf('does not fit: %.1f GiB short of %.1f', "
        "point.shortfall_bytes / 0x40000000, point.hbm_capacity_bytes / 0x40000000) WHEN "
        "point.status = 'oom' THEN 'does not fit: what "
        "is free lies in gaps between tensors' WHEN alloc_retries_a_step > 0 THEN printf('just "
        "fits: cudaMalloc fails and is tried again %.1f times a step', alloc_retries_a_step) ELSE "
        "printf('fits, %.1f GiB to spare', max(0, point.hbm_capacity_bytes - "
        "point.peak_reserved_bytes - coalesce(context_bytes, 0) - coalesce(nccl_bytes, 0)) / "
        "0x40000000) END AS verdict FROM v_memory JOIN point ON point.id = point_id");
    sqlite3_str_appendall(sql, "; CREATE TEMP VIEW v_step AS SELECT v_breakdown.*");
    for (int i = 0; i < STEP_PART_COUNT; i++)
        sqlite3_str_appendf(sql, ", step_part(%d, %s) AS part_%d_s", i, step_columns, i + 1);
    sqlite3_str_appendf(sql,
        ", step_sentence(%s) AS sentence FROM v_breakdown JOIN (SELECT id, alloc_stall_s, "
        "stage_wait_s FROM point) ON id = point_id; "
        "CREATE TEMP VIEW v_loss AS SELECT v.*, loss_sentence(small_gpus, large_gpus, "
        "small_tflops_per_gpu, large_tflops_per_gpu",
        step_columns);
    for (int i = 0; i <= CAUSE_COUNT; i++)
        sqlite3_str_appendf(sql,
            ", (SELECT lost_tflops_per_gpu FROM explanation_part WHERE explanation_id = v.id AND "
            "cause = %Q)",
            scenario_causes[i].name);
    sqlite3_str_appendall(sql, ") AS sentence FROM v_explanation AS v");
    return sqlite3_str_finish(sql);
}

enum status database_causes(struct store *store, struct diag *diag)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    sqlite3_create_function(
        store->db, "step_part", 1 + STEP_COLUMNS, flags, NULL, step_part, NULL, NULL);
    sqlite3_create_function(
        store->db, "step_sentence", STEP_COLUMNS, flags, NULL, causes_step_sentence, NULL, NULL);
    sqlite3_create_function(
        store->db, "loss_sentence", 5 + CAUSE_COUNT, flags, NULL, loss_sentence, NULL, NULL);
    char *sql = views();
    enum status status = database_exec(store, sql, "set up the words of causes", diag);
    sqlite3_free(sql);
    return status;
}
