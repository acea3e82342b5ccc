/* `flopcast help WORD`: what settings, columns, terms, commands and keys of files say about a word.
 */
#ifndef FLOPCAST_CLI_DICTIONARY_H
#define FLOPCAST_CLI_DICTIONARY_H

#include "config/config.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints those of the table's settings (config_print_reference()) whose path has the word in it, or
 * whose sentence has it as a word, in any case; under the heading, where there are any. prefix: of
 * their paths. True: there are. */
bool dictionary_settings(FILE *out, const char *heading, const char *prefix,
    const struct config_table *table, const void *defaults, const char *word);
/* The same of columns of results, and of terms that are neither. */
bool dictionary_columns(FILE *out, const char *word);
bool dictionary_terms(FILE *out, const char *word);
/* Whether a text has it, as a word. */
bool dictionary_has(const char *text, const char *word);

#endif
