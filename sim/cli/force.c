#include "cli/force.h"

#include <strings.h>

static int find(const char *option, const char *const *names, const char *arg, struct argp_state *state)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(names[i], arg) == 0)
            return i;
    const char *near =
        nearest_name(arg, names, (size_t)(names == coll_algorithm_names ? COLL_ALGORITHM_COUNT : COLL_PROTOCOL_COUNT));
    if (near)
        argp_error(state, "--%s %s: there is no such; did you mean '%s'?", option, arg, near);
    else
        argp_error(state, "--%s %s: %s is wanted", option, arg,
            names == coll_algorithm_names ? FORCE_ALGORITHMS : FORCE_PROTOCOLS);
    return COLL_ANY; /* argp_error exits */
}

void force_option(struct coll_force *force, int key, const char *arg, struct argp_state *state)
{
    if (key == KEY_ALGO)
        force->algorithm = find("algo", coll_algorithm_names, arg, state);
    else
        force->protocol = find("proto", coll_protocol_names, arg, state);
}
