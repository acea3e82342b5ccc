/* nccl-tests' JSON (-J) as rows and one table, read as a stream.
 *
 * containers[] names the objects that are looked at; scalars arrive in the file's order, and the
 * close of a result or device ends it. The program's name in args gives the collective, env the
 * NCCL settings, devices of group 0 the ranks and hosts. A result needs size and type; one with
 * wrong results is counted and left out.
 *
 * What is subtle: a file has one table, which is pushed at the end, when ranks and hosts are
 * counted. A missing end_time means that the run did not finish. NCCL's version is one number,
 * of major x 10000 from 2.9 on, of major x 1000 before. */
#include "import/nccl_table.h"

#include "reader/json.h"

#include <math.h>
#include <string.h>

enum { NEWEST_VERSION = 3, OLDEST_CODE_OF_FIVE_DIGITS = 10000, MAX_RANKS = 1 << 16 };

enum { IN_ROOT, IN_ARGS, IN_ENV, IN_DEVICE, IN_RESULT, IN_OUT_OF_PLACE, IN_IN_PLACE };
static const char *const containers[] = {"", "args", "env", "config.devices[]", "results[]",
    "results[].out_of_place", "results[].in_place", NULL};

struct json_log {
    struct nccl_tables *t;
    struct nccl_table table;
    struct nccl_row row;
    VEC(const char *) hosts;
    bool has_args, has_size, wrong, ended;
    int group; /* of the device being read */
    const char *host;
};

static enum status take_root(struct json_log *log, const struct json_scalar *scalar)
{
    struct nccl_tables *t = log->t;
    int64_t value = 0;
    if (strcmp(scalar->key, "version") == 0) {
        if (!json_int(scalar, &value) || value < 1 || value > NEWEST_VERSION)
            nccl_refuse(t, scalar->line, "file format version %.20s; this flopcast knows 1 to %d",
                scalar->text, NEWEST_VERSION);
    } else if (strcmp(scalar->key, "nccl_version") == 0 && json_int(scalar, &value) && value > 0) {
        /* major * 10000 + minor * 100 + patch; up to 2.8 major * 1000 */
        int major = value >= OLDEST_CODE_OF_FIVE_DIGITS ? 10000 : 1000;
        t->log->about.nccl_version = arena_printf(t->arena, "%d.%d.%d", (int)(value / major),
            (int)(value % major / 100), (int)(value % 100));
    } else if (strcmp(scalar->key, "end_time") == 0) {
        log->ended = true;
    }
    return t->worst;
}

static enum status nccl_json_take_argument(struct json_log *log, const struct json_scalar *scalar)
{
    if (log->has_args)
        return STATUS_OK;
    log->has_args = true;
    const char *slash = strrchr(scalar->text, '/'), *name = slash ? slash + 1 : scalar->text;
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, "_perf") == 0)
        log->table.collective =
            nccl_collective(arena_printf(log->t->arena, "%.*s", (int)(n - 5), name));
    return STATUS_OK;
}

/* NCCL's; the rest of the environment is none of our business. */
static enum status nccl_json_take_setting(struct json_log *log, const struct json_scalar *scalar)
{
    if (strncmp(scalar->text, "NCCL_", 5) == 0)
        nccl_settings_line(&log->t->log->said, scalar->text, log->t->arena);
    if (strncmp(scalar->text, "NCCL_ALGO=", 10) == 0)
        log->table.algorithm = nccl_algorithm(scalar->text + 10);
    else if (strncmp(scalar->text, "NCCL_PROTO=", 11) == 0)
        log->table.protocol = nccl_protocol(scalar->text + 11);
    return STATUS_OK;
}

static enum status nccl_json_take_device(struct json_log *log, const struct json_scalar *scalar)
{
    int64_t group = 0;
    if (strcmp(scalar->key, "group") == 0 && json_int(scalar, &group))
        log->group = group != 0;
    else if (strcmp(scalar->key, "hostname") == 0)
        log->host = arena_strdup(log->t->arena, scalar->text);
    else if (strcmp(scalar->key, "device_info") == 0 && !log->t->log->about.gpu && *scalar->text)
        log->t->log->about.gpu = arena_strdup(log->t->arena, scalar->text);
    return STATUS_OK;
}

static void end_device(struct json_log *log, int line)
{
    if (log->group == 0 && ++log->table.listed_ranks > MAX_RANKS)
        nccl_refuse(log->t, line, "more than %d devices", MAX_RANKS);
    bool known = log->group != 0 || !log->host;
    for (int i = 0; i < log->hosts.n && !known; i++)
        known = strcmp(log->hosts.at[i], log->host) == 0;
    if (!known)
        vec_push(&log->hosts, log->host);
    log->host = NULL;
    log->group = 0;
}

static enum status take_result(struct json_log *log, const struct json_scalar *scalar)
{
    if (strcmp(scalar->key, "size") == 0) {
        log->has_size = json_int(scalar, &log->row.bytes) && log->row.bytes >= 0;
        if (!log->has_size)
            nccl_refuse(log->t, scalar->line, "'%.40s' is no size in bytes", scalar->text);
    } else if (strcmp(scalar->key, "type") == 0 && !(log->row.dtype = nccl_dtype(scalar->text))) {
        nccl_refuse(
            log->t, scalar->line, "'%.40s' is no number format of nccl-tests", scalar->text);
    }
    return STATUS_OK;
}

static enum status take_block(
    struct json_log *log, const struct json_scalar *scalar, struct nccl_block *block)
{
    double wrong = 0;
    const char *key = scalar->key;
    if (strcmp(key, "cpu_time") == 0)
        nccl_refuse(
            log->t, scalar->line, "these are CPU times (-C 1), not durations; measure without -C");
    if (strcmp(key, "nwrong") == 0) { /* "N/A" without validation */
        log->wrong |= json_number(scalar, &wrong) && wrong > 0;
        return log->t->worst;
    }
    bool holds = (strcmp(key, "time") != 0 || json_number(scalar, &block->time_us)) &&
                 (strcmp(key, "alg_bw") != 0 || json_number(scalar, &block->algbw_GBps)) &&
                 (strcmp(key, "bus_bw") != 0 || json_number(scalar, &block->busbw_GBps));
    if (!holds)
        nccl_refuse(log->t, scalar->line, "'%.40s' is no number for %s", scalar->text, key);
    return log->t->worst;
}

static void begin_result(struct json_log *log)
{
    const struct nccl_block none = {(double)NAN, (double)NAN, (double)NAN};
    log->row = (struct nccl_row){.position = log->row.position + 1, .blocks = {none, none}};
    log->has_size = log->wrong = false;
}

static void end_result(struct json_log *log, int line)
{
    log->row.line = line;
    if (!log->has_size || !log->row.dtype)
        nccl_refuse(log->t, line, "a result without size and type");
    else if (log->wrong)
        log->t->log->wrong++;
    else
        nccl_add_row(log->t, &log->row);
    begin_result(log);
}

static enum status nccl_json_take_scalar(void *self, const struct json_scalar *scalar)
{
    struct json_log *log = self;
    if (!scalar->key && scalar->container != IN_ARGS && scalar->container != IN_ENV)
        return STATUS_OK; /* an array where an object is wanted: no results will be found */
    switch (scalar->container) {
    case IN_ROOT:
        return take_root(log, scalar);
    case IN_ARGS:
        return nccl_json_take_argument(log, scalar);
    case IN_ENV:
        return nccl_json_take_setting(log, scalar);
    case IN_DEVICE:
        return nccl_json_take_device(log, scalar);
    case IN_RESULT:
        return take_result(log, scalar);
    case IN_OUT_OF_PLACE:
        return take_block(log, scalar, &log->row.blocks[0]);
    case IN_IN_PLACE:
        return take_block(log, scalar, &log->row.blocks[1]);
    default:
        return STATUS_OK;
    }
}

static enum status nccl_json_take_close(void *self, int container, int line)
{
    struct json_log *log = self;
    if (container == IN_DEVICE)
        end_device(log, line);
    else if (container == IN_RESULT)
        end_result(log, line);
    return log->t->worst;
}

void nccl_read_json(struct nccl_tables *t)
{
    struct json_log log = {.t = t};
    const struct json_handler handler = {.containers = containers,
        .scalar = nccl_json_take_scalar,
        .close = nccl_json_take_close,
        .self = &log};
    begin_result(&log);
    enum status status = json_read(t->input, &handler, t->diag);
    if (status != STATUS_OK)
        t->worst = status;
    log.table.line = 1;
    log.table.listed_nodes = log.hosts.n;
    vec_push(&t->tables, log.table);
    t->log->ended = log.ended;
    vec_free(&log.hosts);
}
