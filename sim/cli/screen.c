#include "cli/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { USUAL_WIDTH = 80, MOST_WIDTH = 100000 };

static bool is_terminal(FILE *out)
{
    int file = fileno(out); /* -1: memory */
    return file >= 0 && isatty(file);
}

int screen_width(FILE *out)
{
    if (fileno(out) < 0) /* memory */
        return 0;
    const char *columns = getenv("COLUMNS");
    char *end = NULL;
    long width = columns ? strtol(columns, &end, 10) : -1;
    if (columns && end != columns && !*end && width >= 0 && width <= MOST_WIDTH)
        return (int)width;
    if (!is_terminal(out))
        return 0;
    struct winsize size = {0};
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return USUAL_WIDTH;
}

bool screen_colour(FILE *out)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return is_terminal(out) && !(none && *none) && term && *term && strcmp(term, "dumb") != 0;
}
