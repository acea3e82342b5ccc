#include "cli/mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ORDER = 64, MAX_RANKS = 1 << 20 };

/* "dp" is both axes of data parallelism; 0: no axis. */
static unsigned named_axes(const char *text, size_t length)
{
    for (int a = 0; a < AXIS_COUNT; a++)
        if (strlen(mesh_axis_names[a]) == length && strncmp(text, mesh_axis_names[a], length) == 0)
            return 1U << a;
    return length == 2 && strncmp(text, "dp", 2) == 0 ? AXES_DP : 0;
}

static int first_axis(unsigned axes)
{
    int axis = 0;
    while (axis < AXIS_COUNT && !(axes & 1U << axis))
        axis++;
    return axis;
}

void mesh_request_take(void *self, const struct argument *argument)
{
    struct mesh_request *request = self;
    int size[AXIS_COUNT] = {0};
    char order[MAX_ORDER] = "";
    long ranks = 1;
    unsigned seen = 0;
    for (const char *at = argument->text; *at;) {
        size_t length = strcspn(at, "="), used = strlen(order);
        char none[] = "", *end = none;
        long here = at[length] == '=' ? strtol(at + length + 1, &end, 10) : 0;
        unsigned axes = named_axes(at, length);
        ranks = here > 0 && here <= MAX_RANKS ? ranks * here : 0;
        if (axes == 0 || axes & seen || ranks < 1 || ranks > MAX_RANKS || (*end && *end != ','))
            argp_error(argument->state,
                "--mesh %s: axes and their sizes are wanted, each once, neighbours first, as in tp=8,dp=16,pp=4; there "
                "are tp, cp, ep, dp (or dp_shard and dp_replicate) and pp",
                argument->text);
        seen |= axes;
        size[first_axis(axes)] = (int)here;
        snprintf(order + used, sizeof order - used, "%s%.*s", used ? "-" : "", (int)length, at);
        at = *end ? end + 1 : end;
    }
    const char *bad;
    if (!mesh_build(&request->mesh, size, order, &bad))
        argp_error(argument->state, "--mesh: axes are missing, as in tp=8,dp=16,pp=4");
}

/* "dp", "cp+dp"; 0: something else. */
static unsigned axes_of(const char *text)
{
    unsigned axes = 0;
    for (size_t length; *text; text += length + (text[length] == '+')) {
        length = strcspn(text, "+");
        unsigned named = named_axes(text, length);
        if (named == 0 || axes & named)
            return 0;
        axes |= named;
    }
    return axes;
}

bool mesh_request_check(struct mesh_request *request, bool counts, struct argp_state *state)
{
    if (request->mesh.ranks == 0 && !request->axis)
        return false;
    if (request->mesh.ranks == 0 || !request->axis)
        argp_error(state, "--mesh and --group belong together, as in --mesh tp=8,dp=16 --group dp");
    if (counts)
        argp_error(state, "--mesh says how many ranks there are, which fill the nodes one by one; leave --gpus and "
                          "--nodes out");
    unsigned axes = axes_of(request->axis ? request->axis : "");
    if (axes == 0)
        argp_error(state, "--group %s: axes of --mesh are wanted, as in dp, or cp+dp for both together", request->axis);
    if (!mesh_axes_are_side_by_side(&request->mesh, axes))
        argp_error(
            state, "--group %s: these axes do not lie side by side in --mesh, which is not simulated", request->axis);
    request->group = mesh_group(&request->mesh, axes);
    if (request->group.size == 1)
        argp_error(state, "--group %s: has one rank in --mesh; a collective takes two", request->axis);
    return true;
}
