/* Manual pages and completions of a shell, from the same tables of options that commands parse.
 *
 * `asked` is set once, before the command runs. command_line_parse() then calls describe_line(),
 * which prints and ends the program. Commands in other programs get the request as words before
 * their name ("__man", "__complete"), which describe_take() reads there.
 *
 * What is subtle: text for roff has hyphens, backslashes and lines that begin with a dot escaped
 * (describe_put_line()); indented lines are printed as they are. A word is completed by the option
 * before it (values by the kind of option or its name), then as an option, a file, a figure, or one
 * of the choices in args_doc. A candidate is a line: word, tab, the first sentence of its meaning.
 */
#include "options/describe.h"

#include "base/files.h"
#include "options/command.h"

#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

static struct {
    enum { NOTHING, MANUAL, COMPLETIONS } kind;
    const char *summary, *date;
    const char *const *words;
    int n;
} asked;

void describe_date(const char *date)
{
    asked.date = date;
}

void describe_as_manual(const char *summary)
{
    asked.kind = MANUAL;
    asked.summary = summary;
}

void describe_as_completions(const char *const *words, int n)
{
    asked.kind = COMPLETIONS;
    asked.words = words;
    asked.n = n;
}

/* "__man SUMMARY DATE", "__complete N WORD..." */
void describe_hand_on(struct program_words *words)
{
    struct arena *arena = &words->texts;
    if (asked.kind == MANUAL) {
        vec_push(&words->list, arena_strdup(arena, "__man"));
        vec_push(&words->list, arena_strdup(arena, asked.summary));
        vec_push(&words->list, arena_strdup(arena, asked.date ? asked.date : ""));
    } else if (asked.kind == COMPLETIONS) {
        vec_push(&words->list, arena_strdup(arena, "__complete"));
        vec_push(&words->list, arena_printf(arena, "%d", asked.n));
        for (int i = 0; i < asked.n; i++)
            vec_push(&words->list, arena_strdup(arena, asked.words[i]));
    }
}

int describe_take(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[0], "__man") == 0) {
        describe_date(*argv[2] ? argv[2] : NULL);
        describe_as_manual(argv[1]);
        return 3;
    }
    int n = argc > 2 && strcmp(argv[0], "__complete") == 0 ? atoi(argv[1]) : 0;
    if (n < 1 || n > argc - 2)
        return 0;
    describe_as_completions((const char *const *)argv + 2, n);
    return 2 + n;
}

/* ---- manual pages ---- */

/* As roff takes it: a hyphen that is typed, a backslash, a control character at the beginning of a
 * line. */
static void describe_put_line(FILE *out, const char *text, size_t length)
{
    if (length > 0 && (*text == '.' || *text == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '\\')
            fputs("\\e", out);
        else
            fputc(text[i], out);
    }
    fputc('\n', out);
}

void describe_head(FILE *out, const char *name, int section, const char *summary)
{
    fprintf(out, ".TH %s %d \"%s\" \"flopcast %s\" \"\"\n.SH NAME\n%s \\- ", name, section,
        asked.date ? asked.date : "", FLOPCAST_VERSION, name);
    describe_put_line(out, summary, strlen(summary));
}

void describe_text(FILE *out, const char *text)
{
    bool as_it_is = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool indented = *text == ' ';
        if (indented != as_it_is)
            fputs(indented ? ".nf\n" : ".fi\n", out);
        as_it_is = indented;
        if (length == 0)
            fputs(".PP\n", out);
        else
            describe_put_line(out, text, length);
        text += length + (text[length] == '\n');
    }
    if (as_it_is)
        fputs(".fi\n", out);
}

/* Two lines a key: "key: default" and, indented, what it is. */
void describe_reference(FILE *out, const struct config_table *table, const void *defaults)
{
    char *text = NULL;
    size_t size = 0;
    FILE *lines = xmemstream(&text, &size);
    config_print_reference(lines, table, defaults);
    fclose(lines);
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "\n"), blanks = strspn(at, " "), key = strcspn(at, ":");
        if (blanks == 0) {
            fputs(".TP\n\\fB", out);
            for (size_t i = 0; i < key; i++)
                fputc(at[i], out);
            fputs("\\fR", out);
            describe_put_line(out, at + key, length - key);
        } else {
            describe_put_line(out, at + blanks, length - blanks);
        }
        at += length + (at[length] == '\n');
    }
    free(text);
}

static void manual_option(FILE *out, const struct command_option *option)
{
    fputs(".TP\n", out);
    if (option->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", out);
    for (const char *at = option->name; *at; at++)
        fputs(*at == '-' ? "\\-" : (const char[]){*at, '\0'}, out);
    fprintf(out, "\\fR%s%s%s%s\n", option->value ? "=" : "", option->value ? "\\fI" : "",
        option->value ? option->value : "", option->value ? "\\fR" : "");
    describe_put_line(out, option->doc, strlen(option->doc));
}

static void describe_manual(FILE *out, const struct command_line *line, const char *name,
    const struct command_option *const *options, int n)
{
    struct arena arena = ARENA_INIT;
    char *page = arena_strdup(&arena, name);
    for (char *at = page; *at; at++)
        *at = *at == ' ' ? '-' : *at;
    const char *rest = strchr(line->doc, '\v');
    describe_head(out, page, 1, asked.summary);
    fprintf(out, ".SH SYNOPSIS\n\\fB%s\\fR [\\fIOPTION\\fR...] \\fI%s\\fR\n.SH DESCRIPTION\n", name,
        line->args_doc ? line->args_doc : "");
    describe_text(out, arena_printf(&arena, "%.*s",
                           (int)(rest ? rest - line->doc : (long)strlen(line->doc)), line->doc));
    const char *example = command_example(name);
    fputs(example ? ".SH EXAMPLE\n.nf\n" : "", out);
    while (example) {
        describe_put_line(out, example, strcspn(example, "\n"));
        example = strchr(example, '\n');
        example = example ? example + 1 : NULL;
        fputs(example ? "" : ".fi\n", out);
    }
    fputs(".SH OPTIONS\n", out);
    for (int i = 0; i < n; i++)
        if (!(options[i]->flags & OPTION_HIDDEN))
            manual_option(out, options[i]);
    fputs(".TP\n\\fB\\-?\\fR, \\fB\\-\\-help\\fR, \\fB\\-\\-usage\\fR\nOptions, long and short.\n",
        out);
    if (rest) {
        fputs(".SH NOTES\n", out);
        describe_text(out, rest + 1);
    }
    fputs(".SH EXIT STATUS\n0: done. 1: a file cannot be read or written, or the disk is full. 2: "
          "the input or the command line has a mistake. Out of memory on a simulated GPU is a "
          "result.\n"
          ".SH SEE ALSO\n\\fBflopcast\\fR(1), \\fBflopcast\\-scenario\\fR(5), "
          "\\fBflopcast\\-topology\\fR(5)\n",
        out);
    arena_release(&arena);
}

/* ---- completions ---- */

void describe_candidate(const char *word, const char *begin, const char *meaning)
{
    if (strncmp(word, begin, strlen(begin)) == 0)
        printf("%s\t%.*s\n", word, (int)strcspn(meaning, ".;:\n"), meaning);
}

/* The names, without folder and ending, of flopcast's files in a folder. */
static void complete_names(const char *folder, const char *ending, const char *begin)
{
    struct arena arena = ARENA_INIT;
    glob_t found = {0};
    if (glob(files_own(&arena, arena_printf(&arena, "%s/*%s", folder, ending)), 0, NULL, &found) ==
        0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *name = strrchr(found.gl_pathv[i], '/') + 1;
            describe_candidate(
                arena_printf(&arena, "%.*s", (int)(strlen(name) - strlen(ending)), name), begin,
                "");
        }
    globfree(&found);
    arena_release(&arena);
}

static void complete_files(enum files_kind kind, const char *begin)
{
    struct arena arena = ARENA_INIT;
    struct files_names names = files_names(&arena, kind);
    for (int i = 0; i < names.list.n; i++)
        describe_candidate(names.list.at[i].name, begin, "");
    vec_free(&names.list);
    arena_release(&arena);
}

static void complete_keys(
    const char *prefix, const struct config_table *table, const char *begin, struct arena *arena)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *path =
            arena_printf(arena, "%s%s%s", prefix, *prefix && *field->key ? "." : "", field->key);
        if (field->type == FIELD_SECTION || field->type == FIELD_OVERRIDES)
            complete_keys(path, field->section, begin, arena);
        else if (field->type == FIELD_ENUM && strncmp(begin, path, strlen(path)) == 0 &&
                 begin[strlen(path)] == '=')
            for (int n = 0; field->names[n]; n++)
                describe_candidate(arena_printf(arena, "%s=%s", path, field->names[n]), begin, "");
        else
            describe_candidate(arena_printf(arena, "%s=", path), begin, field->help);
    }
}

/* What stands for an option's value, by its name in the help where the kind leaves it open. */
static void complete_value(const struct command_option *option, const char *begin)
{
    static const struct {
        const char *option;
        enum files_kind kind;
    } files[] = {{"topology", FILES_CLUSTERS}, {"gpu", FILES_GPUS}, {"model", FILES_MODELS},
        {"stack", FILES_STACKS}};
    struct arena arena = ARENA_INIT;
    size_t at = 0;
    const struct config_field *field =
        option->path ? config_field_at(&scenario_table, option->path, &at) : NULL;
    const char *const *names = field && field->type == FIELD_ENUM ? field->names : option->names;
    if (names)
        for (int i = 0; names[i]; i++)
            describe_candidate(names[i], begin, "");
    else if (option->kind == OPTION_SET || option->flags & OPTION_KEYS)
        complete_keys("", &scenario_table, begin, &arena);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(option->name, files[i].option) == 0)
            complete_files(files[i].kind, begin);
    arena_release(&arena);
}

static const struct command_option *describe_named(
    const struct command_option *const *options, int n, const char *word, size_t length)
{
    for (int i = 0; i < n && length > 0; i++)
        if (strlen(options[i]->name) == length && strncmp(options[i]->name, word, length) == 0)
            return options[i];
    return NULL;
}

/* "[scenarios|models]", "nsys|kineto FILE..." */
static void complete_choice(const char *args_doc, const char *begin, struct arena *arena)
{
    for (const char *at = args_doc + strspn(args_doc, "["); islower((unsigned char)*at);) {
        size_t length = strcspn(at, "|] ");
        describe_candidate(arena_printf(arena, "%.*s", (int)length, at), begin, "");
        at += length + (at[length] == '|');
    }
}

static void describe_complete(
    const struct command_line *line, const struct command_option *const *options, int n)
{
    const char *word = asked.words[asked.n - 1],
               *before = asked.n > 1 ? asked.words[asked.n - 2] : "";
    const struct command_option *option =
        strncmp(before, "--", 2) == 0 ? describe_named(options, n, before + 2, strlen(before + 2))
                                      : NULL;
    struct arena arena = ARENA_INIT;
    if (option && option->value) {
        complete_value(option, word);
    } else if (*word == '-') {
        for (int i = 0; i < n; i++)
            if (!(options[i]->flags & OPTION_HIDDEN))
                describe_candidate(
                    arena_printf(&arena, "--%s", options[i]->name), word, options[i]->doc);
    } else if (line->files != FILES_ANY) {
        complete_files(line->files, word);
    } else if (line->one && strcmp(line->one, "figure") == 0) {
        complete_names("plots", ".sql", word);
    } else if (line->args_doc && strchr(line->args_doc, '|')) {
        complete_choice(line->args_doc, word, &arena);
    }
    arena_release(&arena);
}

void describe_line(const struct command_line *line, const char *name,
    const struct command_option *const *options, int n)
{
    if (asked.kind == NOTHING)
        return;
    if (asked.kind == MANUAL)
        describe_manual(stdout, line, name, options, n);
    else
        describe_complete(line, options, n);
    exit(ferror(stdout) || fflush(stdout) != 0 ? CLI_WORLD : CLI_OK);
}
