/* The table of commands that this program has been given, and the status that messages mean. */
#include "options/command.h"

#include "rows/table.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct command_row *command_table;

void command_take(const struct command_row *table)
{
    command_table = table;
}

/* The program itself has the name "". */
const char *command_example(const char *command)
{
    static const char program[] = "flopcast";
    const char *name = command + strlen(program);
    name += *name == ' ';
    for (const struct command_row *at = command_table; at && at->name; at++)
        if (strcmp(name, at->name) == 0)
            return at->example;
    return NULL;
}

/* In colour, the word that says how bad a message is. */
static void print_diag(const struct diag *diag)
{
    static const struct {
        const char *word, *colour;
    } kinds[] = {{" error: ", SCREEN_RED}, {" warning: ", SCREEN_YELLOW}};
    bool colour = screen_colour(stderr);
    for (const char *line = diag->text; *line;) {
        int n = (int)strcspn(line, "\n"), at = 0, length = 0;
        const char *begin = "";
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && colour && !length; i++) {
            const char *found = strstr(line, kinds[i].word);
            if (!found || found - line >= n)
                continue;
            at = (int)(found - line);
            length = (int)strlen(kinds[i].word);
            begin = kinds[i].colour;
        }
        fprintf(stderr, "%.*s%s%.*s%s%.*s\n", at, line, begin, length, line + at,
            *begin ? SCREEN_PLAIN : "", n - at - length, line + at + length);
        line += n + (line[n] == '\n');
    }
}

int cli_report(const struct diag *diag)
{
    print_diag(diag);
    return diag->worst == STATUS_OK ? CLI_OK : diag->worst == STATUS_IO ? CLI_WORLD : CLI_INPUT;
}
