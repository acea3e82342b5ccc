/* The terminal that people read tables on: how wide it is and whether it shows colour. */
#ifndef FLOPCAST_CLI_SCREEN_H
#define FLOPCAST_CLI_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

/* Characters of a line of out: $COLUMNS, a terminal or not; else what the terminal says, else 80. 0: no limit, for what
 * is no terminal and where COLUMNS is 0, which is what --wide sets. */
int screen_width(FILE *out);

/* out is a terminal that shows colour: not TERM=dumb, and NO_COLOR (no-color.org) is not set. */
bool screen_colour(FILE *out);

/* Escape sequences of ANSI terminals. */
#define SCREEN_RED "\033[31m"
#define SCREEN_YELLOW "\033[33m"
#define SCREEN_PLAIN "\033[0m"

#endif
