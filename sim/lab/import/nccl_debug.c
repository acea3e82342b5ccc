/* What NCCL itself says of its settings: environment variables and lines of NCCL_DEBUG=INFO.
 *
 * Every line of a log goes through nccl_settings_line(); lines without "NCCL" are left at once.
 * Settings are found by the words around them, as NCCL has no other form: "16 coll channels",
 * "Channel 00/16", "via NET/IB/0/GDRDMA", "Using network". Names of variables are read as
 * NAME=value and as NCCL reports them. Each later statement overwrites an earlier one.
 *
 * What is subtle: different numbers of channels in one log are marked (channels_differ), as then
 * no single number holds. "Channel 00/0 : 7[7] -> 8[0]" is a connection, not a count. One
 * connection without GDRDMA says that it is off only while none has said that it is on.
 * NCCL_NVLS_ENABLE other than 0 states nothing, as NVLS may still not be possible. */
#include "import/nccl_debug.h"

#include "reader/input.h"
#include "import/nccl_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHANNELS = 128 };

/* NAME=value, and "NAME set by environment to value"; NULL: the line has it not. */
static const char *nccl_debug_value_of(const char *line, const char *name)
{
    static const char by_environment[] = " set by environment to ";
    for (const char *at = line; (at = strstr(at, name)); at++) {
        const char *after = at + strlen(name);
        if (at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
            continue;
        if (*after == '=')
            return after + 1 + strspn(after + 1, "\"'");
        if (strncmp(after, by_environment, sizeof by_environment - 1) == 0)
            return after + sizeof by_environment - 1;
    }
    return NULL;
}

static int nccl_debug_channels_of(const char *text)
{
    long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 && n <= MOST_CHANNELS ? (int)n : 0;
}

static void take_switch(enum nccl_said *out, const char *value, bool off_is_zero)
{
    if (value && isdigit((unsigned char)*value))
        *out = (*value == '0') == off_is_zero ? NCCL_OFF : NCCL_ON;
}

static void take_environment(struct nccl_settings *out, const char *line)
{
    static const char *const least[] = {"NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", NULL};
    static const char *const most[] = {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", NULL};
    const char *value;
    for (int i = 0; least[i]; i++) {
        if ((value = nccl_debug_value_of(line, least[i])))
            out->min_channels = nccl_debug_channels_of(value);
        if ((value = nccl_debug_value_of(line, most[i])))
            out->max_channels = nccl_debug_channels_of(value);
    }
    value = nccl_debug_value_of(line, "NCCL_NVLS_ENABLE");
    if (value && *value == '0') /* 1 asks for it, and 2 where it can be, which is the default */
        out->nvls = NCCL_OFF;
    if ((value = nccl_debug_value_of(line, "NCCL_ALGO")))
        out->algorithm = nccl_algorithm(value);
    if ((value = nccl_debug_value_of(line, "NCCL_PROTO")))
        out->protocol = nccl_protocol(value);
    if ((value = nccl_debug_value_of(line, "NCCL_IB_DISABLE")) && *value == '1')
        out->rdma = NCCL_OFF;
    if ((value = nccl_debug_value_of(line, "NCCL_NET")) && strncmp(value, "Socket", 6) == 0)
        out->rdma = NCCL_OFF;
    take_switch(&out->p2p, nccl_debug_value_of(line, "NCCL_P2P_DISABLE"), false);
    take_switch(&out->gpudirect, nccl_debug_value_of(line, "NCCL_NET_DISABLE_GDR"), false);
    value = nccl_debug_value_of(line, "NCCL_NET_GDR_LEVEL");
    if (value && (*value == '0' || strncmp(value, "LOC", 3) == 0))
        out->gpudirect = NCCL_OFF;
}

static void set_channels(struct nccl_settings *out, int n)
{
    out->channels_differ |= n > 0 && out->channels > 0 && out->channels != n;
    out->channels = n > 0 ? n : out->channels;
}

/* "16 coll channels": the number before the words; -1: not there. */
static int number_before(const char *line, const char *words)
{
    const char *at = strstr(line, words), *digits = at;
    while (digits && digits > line && isdigit((unsigned char)digits[-1]))
        digits--;
    return digits && digits < at ? atoi(digits) : -1;
}

static void take_network(struct nccl_settings *out, const char *line)
{
    static const char using[] = "Using network ", ib[] = "NET/IB : Using ";
    const char *at = strstr(line, using), *via = strstr(line, "via NET/");
    if (at)
        out->rdma = strncmp(at + sizeof using - 1, "Socket", 6) == 0 ? NCCL_OFF : NCCL_ON;
    if (via) {
        out->rdma = strncmp(via, "via NET/Socket", 14) == 0 ? NCCL_OFF : NCCL_ON;
        if (strstr(via, "/GDRDMA"))
            out->gpudirect = NCCL_ON;
        else if (out->gpudirect == NCCL_NOT_SAID)
            out->gpudirect = NCCL_OFF;
    }
    if (strstr(line, "GPU Direct RDMA Disabled"))
        out->gpudirect = NCCL_OFF;
    if ((at = strstr(line, ib))) {
        int n = 0;
        for (at += sizeof ib - 1; (at = strchr(at, '[')); at++)
            n += isdigit((unsigned char)at[1]) != 0;
        out->nics = n;
    }
}

void nccl_settings_line(struct nccl_settings *out, const char *line, struct arena *arena)
{
    static const char version[] = "NCCL version ";
    const char *at = strstr(line, version);
    if (!strstr(line, "NCCL"))
        return;
    if (at && isdigit((unsigned char)at[sizeof version - 1]) && (at == line || at[-1] != 'R')) {
        at += sizeof version - 1;
        out->version = arena_printf(arena, "%.*s", (int)strspn(at, "0123456789."), at);
    }
    take_environment(out, line);
    if (!strstr(line, "NCCL INFO"))
        return;
    int channels = number_before(line, " coll channels"),
        nvls = number_before(line, " nvls channels");
    set_channels(out, channels > 0 && channels <= MOST_CHANNELS ? channels : 0);
    if (nvls >= 0)
        out->nvls = nvls > 0 ? NCCL_ON : NCCL_OFF;
    if ((at = strstr(line, "Channel ")) && isdigit((unsigned char)at[8])) {
        at += 8 + strspn(at + 8, "0123456789");
        const char *end = at + 1 + strspn(at + (*at != '\0'), "0123456789");
        if (*at == '/' && end > at + 1 &&
            !strstr(line, "->")) /* "Channel 00/0 : 7[7] -> 8[0]" is a connection */
            set_channels(out, nccl_debug_channels_of(at + 1));
    }
    take_network(out, line);
}

enum status nccl_settings_read(
    struct nccl_settings *out, const char *path, struct arena *arena, struct diag *diag)
{
    struct input *input = NULL;
    struct input_line line = {0};
    bool says = false;
    enum status status = input_open(&input, path, diag);
    while (status == STATUS_OK && (status = input_line(input, &line, diag)) == STATUS_OK &&
           line.text) {
        says |= strstr(line.text, "NCCL") != NULL;
        nccl_settings_line(out, line.text, arena);
    }
    if (status == STATUS_OK && !says)
        status = diag_input(diag, (struct source_pos){.file = path},
            "no line of NCCL's in it; what NCCL prints with NCCL_DEBUG=INFO is wanted");
    input_close(input);
    return status;
}
