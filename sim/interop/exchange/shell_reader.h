/* Private to shell*.c: a script that is being read. */
#ifndef FLOPCAST_EXCHANGE_SHELL_READER_H
#define FLOPCAST_EXCHANGE_SHELL_READER_H

#include "exchange/launch.h"
#include "exchange/shell.h"

#include <stdbool.h>
#include <stdint.h>

struct variable {
    const char *name, *value;
    const char *unset; /* that its value lacks */
    bool is_arguments; /* its words are arguments, which stand in the list already */
};

/* Bytes from `at` on; what stands in quotes or in parentheses is read by a separate reader, which
 * ends where it does. */
struct reader {
    const char *at, *end, *line_start;
    int line;
};

/* The command that is being read: its words up to the program that trains are launchers'. */
struct command {
    const char *name; /* of the last launcher, or of the first word; NULL: none yet, or the program
                         is running */
    const char *variable; /* in whose quotes or array the words stand; NULL: in none's */
    int first;            /* of its arguments in the list */
    bool begun;           /* a word that is no option came first */
    bool options;         /* an option did */
    bool module;          /* -m: the next word is a program, or a launcher in Python */
};

struct shell {
    const char *path;
    struct arena *arena;
    struct diag *diag;
    struct shell_arguments *out;
    VEC(struct variable) variables;
    VEC(const char *) heredocs; /* their last lines, which the line's end begins */
    bool in_argument;           /* words go to the last one */
    bool failed;
    int depth;
    struct command command;
    int64_t counts[LAUNCH_COUNTS]; /* of the scheduler's head */
};

/* A word as the shell would expand it. */
struct word {
    char text[SHELL_MAX_WORD + 1];
    size_t n;
    const char *unset;
    struct source_pos at;
};

struct source_pos shell_place_of(const struct shell *sh, const struct reader *r, const char *at);
/* The first mistake is reported; it ends the reading. */
void shell_refuse(struct shell *sh, struct source_pos at, const char *why);
/* The byte that many after the next; '\0' behind the end. */
char shell_peek(const struct reader *r, int ahead);
void shell_take(struct reader *r);
/* The variable has this value from now on. */
void shell_set(struct shell *sh, struct variable variable);
/* quoted: the reader stands in quotes, whose words are arguments. */
void shell_read_word(struct shell *sh, struct reader *r, struct word *word, bool quoted);

#endif
