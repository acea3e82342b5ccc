/* JSON as a stream of scalars, each with the container that it lies in.
 *
 * A handler lists the paths of containers that it wants ("traceEvents[].args"); yajl parses
 * chunk by chunk, and frames hold the path of each open container and whether it is wanted, so
 * memory does not grow with the file. Nothing is built: the handler sees scalars in their order,
 * and the close of each wanted container. What is subtle: yajl knows bytes only, so lines are
 * counted up to what it has consumed, for messages; a value without a token for JSON_MAX_VALUE
 * bytes is refused, as yajl would gather all of it; texts and keys beyond their room are cut,
 * not refused. With `lines` the file is a sequence of values (JSON lines). */
#include "reader/json.h"

#include "base/arena.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum { PATH_BYTES = 1024, KEY_BYTES = 128 };

struct frame {
    size_t path;   /* length of the container's path */
    int container; /* -1: not wanted */
    bool is_array;
};

struct reader {
    struct input *input;
    const struct json_handler *handler;
    struct diag *diag;
    yajl_handle yajl;
    enum status status; /* why a callback ended the reading */
    struct frame frames[JSON_MAX_DEPTH];
    int depth;
    char path[PATH_BYTES], key[KEY_BYTES], text[JSON_TEXT_BYTES];
    const char *chunk;       /* being parsed */
    size_t chunk_n, counted; /* of the chunk: bytes whose line breaks are in `line` */
    int line;
    size_t line_start; /* of the chunk, where the line begins; 0 when before it */
    size_t silent;     /* bytes since the last token */
};

static int line_at(struct reader *r, size_t offset)
{
    for (; r->counted < offset && r->counted < r->chunk_n; r->counted++)
        if (r->chunk[r->counted] == '\n') {
            r->line++;
            r->line_start = r->counted + 1;
        }
    return r->line;
}

static int line_now(struct reader *r)
{
    return line_at(r, yajl_get_bytes_consumed(r->yajl));
}

/* Callbacks return nonzero to go on. */
static int go_on(struct reader *r, enum status status)
{
    r->status = status;
    return status == STATUS_OK;
}

/* A scalar at the top of the file, or in a container that is not wanted, is passed over. */
static int scalar(struct reader *r, enum json_kind kind, const char *text, size_t n)
{
    r->silent = 0;
    const struct frame *in = r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
    if (!in || in->container < 0)
        return 1;
    if (n >= JSON_TEXT_BYTES)
        n = JSON_TEXT_BYTES - 1;
    memcpy(r->text, text, n);
    r->text[n] = '\0';
    struct json_scalar value = {
        in->container, in->is_array ? NULL : r->key, kind, r->text, line_now(r)};
    return go_on(r, r->handler->scalar(r->handler->self, &value));
}

static int take_null(void *self)
{
    return scalar(self, JSON_NULL, "null", 4);
}

static int json_take_bool(void *self, int truth)
{
    return scalar(self, JSON_BOOL, truth ? "true" : "false", truth ? 4 : 5);
}

static int json_take_number(void *self, const char *text, size_t n)
{
    return scalar(self, JSON_NUMBER, text, n);
}

static int take_string(void *self, const unsigned char *text, size_t n)
{
    return scalar(self, JSON_STRING, (const char *)text, n);
}

static int take_key(void *self, const unsigned char *text, size_t n)
{
    struct reader *r = self;
    r->silent = 0;
    if (n >= KEY_BYTES)
        n = KEY_BYTES - 1;
    memcpy(r->key, text, n);
    r->key[n] = '\0';
    return 1;
}

static int find_container(const struct reader *r)
{
    for (int i = 0; r->handler->containers[i]; i++)
        if (strcmp(r->path, r->handler->containers[i]) == 0)
            return i;
    return -1;
}

/* The path of an element of an array is that of the array with "[]", the same for all elements. */
static int open_container(struct reader *r, bool is_array)
{
    r->silent = 0;
    struct source_pos at = {input_name(r->input), line_now(r), 1};
    const struct frame *in = r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
    const char *step = !in ? "" : in->is_array ? "[]" : r->key;
    size_t path = in ? in->path : 0, n = strlen(step);
    bool dot = in && !in->is_array && path > 0;
    if (r->depth == JSON_MAX_DEPTH || path + dot + n >= PATH_BYTES)
        return go_on(r, diag_input(r->diag, at, "nested more than %d levels deep", JSON_MAX_DEPTH));
    if (dot)
        r->path[path++] = '.';
    memcpy(r->path + path, step, n);
    path += n;
    r->path[path] = '\0';
    r->frames[r->depth++] = (struct frame){path, find_container(r), is_array};
    return 1;
}

static int open_map(void *self)
{
    return open_container(self, false);
}

static int open_array(void *self)
{
    return open_container(self, true);
}

static int close_container(void *self)
{
    struct reader *r = self;
    r->silent = 0;
    const struct frame closed = r->frames[--r->depth];
    r->path[r->depth > 0 ? r->frames[r->depth - 1].path : 0] = '\0';
    return closed.container < 0 ||
           go_on(r, r->handler->close(r->handler->self, closed.container, line_now(r)));
}

static const yajl_callbacks callbacks = {.yajl_null = take_null,
    .yajl_boolean = json_take_bool,
    .yajl_number = json_take_number,
    .yajl_string = take_string,
    .yajl_start_map = open_map,
    .yajl_map_key = take_key,
    .yajl_end_map = close_container,
    .yajl_start_array = open_array,
    .yajl_end_array = close_container};

/* yajl's own words, without the lines in which it draws the place. */
static enum status syntax_error(struct reader *r)
{
    unsigned char *why = yajl_get_error(r->yajl, 0, NULL, 0);
    char text[128];
    strncpy(text, (const char *)why, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    yajl_free_error(r->yajl, why);
    text[strcspn(text, ".\n")] = '\0';
    size_t at = yajl_get_bytes_consumed(r->yajl);
    int line = line_at(r, at);
    int column = at > r->line_start ? (int)(at - r->line_start) : 1;
    return diag_input(r->diag, (struct source_pos){input_name(r->input), line, column},
        "%s; a whole file of JSON is wanted", text);
}

static enum status json_feed(struct reader *r)
{
    for (;;) {
        enum status status = input_chunk(r->input, &r->chunk, &r->chunk_n, r->diag);
        if (status != STATUS_OK)
            return status;
        r->counted = r->line_start = 0;
        yajl_status code = r->chunk_n > 0
                               ? yajl_parse(r->yajl, (const unsigned char *)r->chunk, r->chunk_n)
                               : yajl_complete_parse(r->yajl);
        if (code == yajl_status_client_canceled)
            return r->status;
        if (code != yajl_status_ok)
            return syntax_error(r);
        if (r->chunk_n == 0)
            return STATUS_OK;
        line_at(r, r->chunk_n);
        r->silent += r->chunk_n;
        if (r->silent > JSON_MAX_VALUE)
            return diag_input(r->diag, (struct source_pos){input_name(r->input), r->line, 1},
                "a value of more than %d MiB", JSON_MAX_VALUE >> 20);
    }
}

enum status json_read(struct input *input, const struct json_handler *handler, struct diag *diag)
{
    struct reader *r = xcalloc(1, sizeof *r);
    *r = (struct reader){.input = input, .handler = handler, .diag = diag, .line = 1};
    r->yajl = yajl_alloc(&callbacks, NULL, r);
    BUG_IF(!r->yajl, "out of memory");
    if (handler->lines)
        yajl_config(r->yajl, yajl_allow_multiple_values, 1);
    enum status status = json_feed(r);
    yajl_free(r->yajl);
    free(r);
    return status;
}

bool json_number(const struct json_scalar *scalar, double *out)
{
    char *end = NULL;
    if (scalar->kind == JSON_NULL)
        *out = (double)NAN;
    else if (scalar->kind == JSON_BOOL)
        return false;
    else
        *out = strtod(scalar->text, &end);
    return !end || (end != scalar->text && *end == '\0');
}

bool json_int(const struct json_scalar *scalar, int64_t *out)
{
    char *end = NULL;
    if (scalar->kind != JSON_NUMBER && scalar->kind != JSON_STRING)
        return false;
    errno = 0;
    *out = strtoll(scalar->text, &end, 10);
    return errno == 0 && end != scalar->text && *end == '\0';
}
