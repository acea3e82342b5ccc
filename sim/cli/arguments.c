#include "cli/arguments.h"

#include <stdlib.h>
#include <string.h>

int argument_count(const char *option, const char *text, int most, struct argp_state *state)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > most)
        argp_error(state, "--%s %s: a number from 1 to %d is wanted", option, text, most);
    return (int)n;
}

struct scenario_override argument_override(
    const char *option, const char *text, struct arena *arena, struct argp_state *state)
{
    size_t length = strcspn(text, "=");
    if (length == 0 || !text[length])
        argp_error(state, "--%s %s: KEY=VALUE is wanted, as in --%s train.micro_batch=16", option, text, option);
    return (struct scenario_override){arena_printf(arena, "%.*s", (int)length, text), text + length + 1};
}

int argument_name(const char *option, const char *text, const char *const *names, struct argp_state *state)
{
    char known[128] = "";
    size_t used = 0;
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0)
            return i;
        const char *joint = i == 0 ? "" : names[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", joint, names[i]);
        BUG_IF(used >= sizeof known, "the names of --%s need more room", option);
    }
    argp_error(state, "--%s %s: %s is wanted", option, text, known);
    return 0; /* argp_error exits */
}
