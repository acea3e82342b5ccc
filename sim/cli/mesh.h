/* Private to cli: a grid of ranks and one group of its axes, as --mesh and --group give them. */
#ifndef FLOPCAST_CLI_MESH_H
#define FLOPCAST_CLI_MESH_H

#include "cli/arguments.h"
#include "mesh/mesh.h"

struct mesh_request {
    struct mesh mesh; /* ranks 0: --mesh is not given */
    const char *axis; /* --group; NULL: not given */
    struct mesh_group group;
};

/* "tp=8,dp=16,pp=4": axes and their sizes, neighbours first. */
void mesh_request_take(void *self, const struct argument *argument);
/* Whether it is given; then the group is set. counts: --gpus or --nodes is given, too. Usage errors exit. */
bool mesh_request_check(struct mesh_request *request, bool counts, struct argp_state *state);

#endif
