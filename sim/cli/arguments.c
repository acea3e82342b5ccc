#include "cli/arguments.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SAMPLES = 100000 };

static int count(const char *option, const char *text, int least, int most, struct argp_state *state)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < least || n > most)
        argp_error(state, "--%s %s: a number from %d to %d is wanted", option, text, least, most);
    return (int)n;
}

int argument_count(const char *option, const char *text, int most, struct argp_state *state)
{
    return count(option, text, 1, most, state);
}

int argument_samples(const char *text, struct argp_state *state)
{
    return count("samples", text, 2, MAX_SAMPLES, state);
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
