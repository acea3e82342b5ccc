/* The tables of the command line, put in words for others than --help: manual pages in man(7)'s
 * macros, and what a shell may complete a word to. Both come from the tables that commands are
 * parsed by, so they cannot say anything else.
 *
 * A command's table is in its function, which calls command_line_parse(). After one of
 * describe_as_...() that prints what was asked of the table instead, and ends the program. */
#ifndef FLOPCAST_OPTIONS_DESCRIBE_H
#define FLOPCAST_OPTIONS_DESCRIBE_H

#include "options/arguments.h"
#include "config/config.h"

#include <stdio.h>

/* The date that manual pages bear; NULL: none. */
void describe_date(const char *date);

/* The next command is printed as a manual page; summary: for the line of its name. */
void describe_as_manual(const char *summary);

/* The next command completes the last of n words, those after its name: "word\tmeaning" lines on
 * standard output. Of a word that is a path nothing is printed; a shell then takes files. */
void describe_as_completions(const char *const *words, int n);

/* The same for another program, which has the command: words that go before its name, and how many
 * of the words it gets are such; it is then asked. */
struct program_words {
    VEC(char *) list;
    struct arena texts;
};
void describe_hand_on(struct program_words *words);
int describe_take(int argc, char **argv);

/* By command_line_parse(); options: all of it. Returns when nothing was asked. */
void describe_line(const struct command_line *line, const char *name,
    const struct command_option *const *options, int n);

/* Names of a list that begin with a word. */
void describe_candidate(const char *word, const char *begin, const char *meaning);

/* Parts of other manual pages. name: as "flopcast-run"; section 1 or 5. */
void describe_head(FILE *out, const char *name, int section, const char *summary);
/* Text with paragraphs between empty lines; lines that begin with a blank stay as they are. */
void describe_text(FILE *out, const char *text);
/* What config_print_reference() says of a table. */
void describe_reference(FILE *out, const struct config_table *table, const void *defaults);

#endif
