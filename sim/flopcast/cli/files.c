/* `flopcast files`: the files that come along, each with the first sentence of the comment that
 * it begins with.
 *
 * A model may be one of several sizes in a file; then the comment beside its size is the
 * sentence. Models that stand only for rows of a table of measured runs begin with "Of
 * measured/..."; they come last. What is subtle: a sentence ends at a period before a blank or
 * at the end of a line, so abbreviations inside a comment would cut it. */
#include "cli/cli.h"
#include "options/arguments.h"
#include "rows/rows.h"

#include "base/files.h"

#include <argp.h>
#include <string.h>

COMMAND(cmd_files, 40, "files", 0, "list the scenarios, models and clusters that come along",
    "flopcast files models");

/* The first sentence of the comment that a file begins with: up to a period before a blank or an
 * end of line. */
static const char *first_sentence(const char *path, struct arena *arena)
{
    FILE *in = fopen(path, "r");
    const char *sentence = "";
    char *line = NULL;
    size_t room = 0;
    for (bool ends = !in; !ends && getline(&line, &room, in) > 0 && *line == '#';) {
        const char *text = line + 1 + strspn(line + 1, " ");
        size_t length = strcspn(text, "\n");
        const char *period = strstr(text, ". ");
        if (period)
            length = (size_t)(period - text);
        ends = period || (length > 0 && text[length - 1] == '.');
        length -= !period && ends;
        sentence =
            arena_printf(arena, "%s%s%.*s", sentence, *sentence ? " " : "", (int)length, text);
    }
    free(line);
    if (in)
        fclose(in);
    return sentence;
}

/* Of a file, or a model in one. */
static const char *what_it_is(const char *path, const char *name, struct arena *arena)
{
    const char *holder = files_holder(arena, path);
    if (!holder || holder == path)
        return first_sentence(path, arena);
    const char *comment = files_size_comment(arena, holder, name), *period = strstr(comment, ". ");
    size_t n = period ? (size_t)(period - comment) : strlen(comment);
    return arena_printf(arena, "%.*s", (int)(n - (n > 0 && comment[n - 1] == '.')), comment);
}

/* "measured/nanotron.csv" of models whose file begins with "Of measured/nanotron.csv: ": those that
 * only rows of that table ran. NULL: others. */
static const char *cli_files_table_of(const char *path, struct arena *arena)
{
    static const char of[] = "Of ";
    const char *holder = files_holder(arena, path),
               *sentence = first_sentence(holder ? holder : path, arena);
    size_t n = strlen(of), end = strcspn(sentence, ":");
    if (strncmp(sentence, of, n) != 0 || end < n + 4 || strncmp(sentence + end - 4, ".csv", 4) != 0)
        return NULL;
    return arena_printf(arena, "%.*s", (int)(end - n), sentence + n);
}

/* Those of a table come last. */
static void fill_group(const struct files_group *group, struct rows *rows, struct arena *arena)
{
    struct files_names names = files_names(arena, group->kind);
    for (int last = 0; last <= 1; last++)
        for (int i = 0; i < names.list.n; i++) {
            const char *name = names.list.at[i].name,
                       *file = arena_printf(arena, "%s/%s.yaml", group->folder, name);
            const char *path = files_own(arena, file), *table = cli_files_table_of(path, arena),
                       *what = what_it_is(path, name, arena);
            if ((table != NULL) != last)
                continue;
            rows_next(rows);
            rows_text(rows, COLUMN("file", "file"), file);
            rows_text(rows, COLUMN("also", "also"), files_aliases(arena, group, name));
            rows_text(rows, COLUMN("what_it_is", "what it is"),
                table && strncmp(what, "Of ", 3) != 0
                    ? arena_printf(arena, "of %s: %s", table, what)
                    : what);
        }
    vec_free(&names.list);
}

struct files_command {
    int group;
    enum records_format format;
};

static const struct command_option files_options[] = {RECORDS_OPTION(struct files_command), {0}};

static void cli_files_take_group(void *self, const struct argument *argument)
{
    int *group = &((struct files_command *)self)->group;
    if (*group < FILES_GROUPS)
        argp_error(argument->state, "one group at a time; '%s' is a second one", argument->text);
    for (*group = 0; *group < FILES_GROUPS; ++*group)
        if (strncmp(files_groups[*group].name, argument->text,
                strlen(files_groups[*group].name) - 1) == 0 &&
            strcmp(argument->text + strlen(files_groups[*group].name) - 1, "s") <=
                0) /* the plural, or not */
            return;
    argp_error(argument->state,
        "there is no group '%s'; there are: scenarios, models, stacks, clusters, nodes, gpus",
        argument->text);
}

int cmd_files(int argc, char **argv)
{
    const struct command_line line = {.options = files_options,
        .take = cli_files_take_group,
        .common = COMMON_TABLE,
        .args_doc = "[scenarios|models|stacks|clusters|nodes|gpus]",
        .doc = "List the files that come with flopcast, with the first sentence of each.\v"
               "These names work from every folder, as in 'flopcast run "
               "scenarios/t5_scaling.yaml', and in your own "
               "files, as in 'model: scenarios/models/llama2-7b.yaml'. A file of that name in the "
               "working folder, or beside the file that names it, comes first. If the kind of file "
               "is known, the name without folder and ending is enough ('model: llama2-7b', '--gpu "
               "h200-sxm-141gb'), or an unambiguous beginning of it, up to a '-', '_' or '.' "
               "('--gpu h200'), or a name under 'also'. Copy one to change it, or write a file "
               "that 'extends:' it (clusters, nodes, GPUs); its paths are relative to it, so write "
               "these names for them. Models that share a file stand in it under 'sizes:'. "
               "FLOPCAST_DATA names another folder of the same layout."};
    struct files_command command = {.group = FILES_GROUPS};
    command_line_parse(&line, argc, argv, &command);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    const char *root = files_folder();
    struct rows rows = {0};
    for (int i = 0; i < FILES_GROUPS; i++)
        if (command.group == i || command.group == FILES_GROUPS)
            fill_group(&files_groups[i], &rows, &arena);
    if (rows.n > 0) {
        if (command.format == RECORDS_TABLE)
            printf("in %s\n\n", root);
        rows_print(stdout, &rows, command.format);
    } else {
        diag_io(&diag, (struct source_pos){.file = root},
            "none of flopcast's files is here; FLOPCAST_DATA names the folder that holds "
            "topologies and scenarios");
    }
    rows_free(&rows);
    arena_release(&arena);
    return cli_report(&diag);
}
