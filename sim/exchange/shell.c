#include "exchange/shell_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_argument(const char *text)
{
    return text[0] == '-' && text[1] == '-' && isalpha((unsigned char)text[2]);
}

static void append_value(struct shell *sh, const char *text, const char *unset, struct source_pos at)
{
    struct shell_argument *argument = &sh->out->list.at[sh->out->list.n - 1];
    if (unset)
        argument->unset = unset;
    if (!*text)
        return;
    if (!argument->value)
        argument->value_at = at;
    argument->value =
        argument->value ? arena_printf(sh->arena, "%s %s", argument->value, text) : arena_strdup(sh->arena, text);
}

static void take_program(struct shell *sh, const char *text, struct source_pos at)
{
    size_t n = strlen(text);
    const char *slash = strrchr(text, '/');
    if (n > 3 && strcmp(text + n - 3, ".py") == 0)
        vec_push(&sh->out->programs, (struct shell_program){arena_strdup(sh->arena, slash ? slash + 1 : text), at});
}

static void take_text(struct shell *sh, const char *text, const char *unset, struct source_pos at)
{
    take_program(sh, text, at);
    if (is_argument(text)) {
        size_t n = strcspn(text, "=");
        vec_push(
            &sh->out->list, (struct shell_argument){.name = arena_printf(sh->arena, "%.*s", (int)n, text), .at = at});
        sh->in_argument = true;
        struct source_pos behind = at;
        behind.column += (int)n + 1;
        append_value(sh, text[n] ? text + n + 1 : "", unset, behind);
    } else if (sh->in_argument) {
        append_value(sh, text, unset, at);
    }
}

/* A word in quotes may hold several, as "--fp8-format hybrid" of an array that the command line splits again. */
static void take_word(struct shell *sh, const struct word *word)
{
    static const char blanks[] = " \t\n";
    if (!is_argument(word->text) || word->text[strcspn(word->text, "= \t\n")] == '=') {
        take_text(sh, word->text, word->unset, word->at);
        return;
    }
    for (const char *at = word->text; *at; at += strcspn(at, blanks), at += strspn(at, blanks)) {
        size_t n = strcspn(at, blanks);
        struct source_pos place = word->at;
        place.column += (int)(at - word->text) + 1; /* the quote */
        take_text(sh, arena_printf(sh->arena, "%.*s", (int)n, at), at[n] ? NULL : word->unset,
            at == word->text ? word->at : place);
    }
    /* A variable alone behind the name leaves the word "--name ". */
    size_t length = strlen(word->text);
    if (word->unset && length > 0 && strchr(blanks, word->text[length - 1]))
        append_value(sh, "", word->unset, word->at);
}

static void read_words(struct shell *sh, struct reader *r, char closing);

/* The length of NAME in NAME=, NAME+=; 0: there is none. */
static size_t assigned(const struct reader *r)
{
    size_t n = 0, room = (size_t)(r->end - r->at);
    while (n < room && (isalnum((unsigned char)r->at[n]) || r->at[n] == '_'))
        n++;
    bool name = n > 0 && n < SHELL_MAX_NAME && !isdigit((unsigned char)r->at[0]);
    if (name && n < room && r->at[n] == '=')
        return n;
    return name && n + 1 < room && r->at[n] == '+' && r->at[n + 1] == '=' ? n : 0;
}

/* Whether the quotes that begin here hold arguments. */
static bool quotes_arguments(const struct reader *r)
{
    char quote = *r->at;
    for (const char *at = r->at + 1; at < r->end && *at != quote; at++) {
        if (*at == '\\' && at + 1 < r->end)
            at++;
        else if (r->end - at > 2 && at[0] == '-' && at[1] == '-' && isalpha((unsigned char)at[2]) &&
                 (at == r->at + 1 || isspace((unsigned char)at[-1])))
            return true;
    }
    return false;
}

static void read_assignment(struct shell *sh, struct reader *r, size_t n)
{
    struct variable variable = {.name = arena_printf(sh->arena, "%.*s", (int)n, r->at), .value = ""};
    while (*r->at != '=')
        shell_take(r);
    shell_take(r);
    char open = shell_peek(r, 0);
    sh->in_argument = false;
    if (open == '(' || ((open == '"' || open == '\'') && quotes_arguments(r))) {
        variable.is_arguments = true;
        shell_take(r);
        read_words(sh, r, open == '(' ? ')' : open);
        sh->in_argument = false;
    } else {
        struct word *word = xcalloc(1, sizeof *word);
        shell_read_word(sh, r, word, false);
        variable.value = arena_strdup(sh->arena, word->text);
        variable.unset = word->unset;
        free(word);
    }
    shell_set(sh, variable);
}

/* <<EOT, <<-EOT, <<'EOT' */
static void note_heredoc(struct shell *sh, struct reader *r)
{
    shell_take(r);
    shell_take(r);
    while (r->at < r->end && (*r->at == '-' || *r->at == ' ' || *r->at == '\'' || *r->at == '"'))
        shell_take(r);
    size_t n = 0;
    while (r->at + n < r->end && (isalnum((unsigned char)r->at[n]) || r->at[n] == '_'))
        n++;
    if (n > 0)
        vec_push(&sh->heredocs, arena_printf(sh->arena, "%.*s", (int)n, r->at));
    while (n-- > 0)
        shell_take(r);
    if (r->at < r->end && (*r->at == '\'' || *r->at == '"'))
        shell_take(r);
}

static void skip_heredocs(struct shell *sh, struct reader *r)
{
    for (int i = 0; i < sh->heredocs.n; i++)
        for (bool found = false; !found && r->at < r->end;) {
            const char *line = r->at;
            while (r->at < r->end && *r->at != '\n')
                shell_take(r);
            size_t n = (size_t)(r->at - line), blank = 0;
            while (blank < n && line[blank] == '\t')
                blank++;
            const char *last = sh->heredocs.at[i];
            found = n - blank == strlen(last) && strncmp(line + blank, last, n - blank) == 0;
            if (r->at < r->end)
                shell_take(r);
        }
    sh->heredocs.n = 0;
}

static void skip_comment(struct reader *r)
{
    while (r->at < r->end && *r->at != '\n')
        r->at++;
}

/* A blank, comment or operator: true when it was one. statement: a command may begin. */
static bool read_between(struct shell *sh, struct reader *r, char closing, bool *statement)
{
    char c = *r->at;
    if (c == '\\' && (shell_peek(r, 1) == '\n' || (shell_peek(r, 1) == '\r' && shell_peek(r, 2) == '\n'))) {
        shell_take(r);
        shell_take(r);
    } else if (c == '\n') {
        shell_take(r);
        if (!closing) {
            sh->in_argument = false;
            *statement = true;
            skip_heredocs(sh, r);
        }
    } else if (isspace((unsigned char)c)) {
        shell_take(r);
    } else if (c == '#' && closing != '"') {
        skip_comment(r);
    } else if (!closing && c == '<' && shell_peek(r, 1) == '<' && shell_peek(r, 2) != '<') {
        note_heredoc(sh, r);
    } else if (closing != '"' && closing != '\'' && strchr(";|&()<>", c) && c != closing) {
        shell_take(r);
        sh->in_argument = false;
        *statement = true;
    } else {
        return false;
    }
    return true;
}

static bool is_prefix(const char *text)
{
    static const char *const words[] = {"export", "local", "declare", "readonly", "then", "do", "else", "env"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

/* closing '\0': the whole file; else the words of an array or of quotes, whose end is taken. */
static void read_words(struct shell *sh, struct reader *r, char closing)
{
    struct source_pos begin = shell_place(sh, r, r->at);
    struct word *word = xcalloc(1, sizeof *word);
    bool statement = !closing;
    sh->depth++;
    if (sh->depth > SHELL_MAX_DEPTH)
        shell_refuse(sh, begin, "too many brackets in one another");
    while (r->at < r->end && (!closing || *r->at != closing) && !sh->failed) {
        if (read_between(sh, r, closing, &statement))
            continue;
        size_t name = statement ? assigned(r) : 0;
        if (name > 0) {
            read_assignment(sh, r, name);
            continue;
        }
        if (closing == '\'' || closing == '"') { /* up to the quotes' end */
            struct reader part = *r;
            for (const char *at = r->at; at < r->end; at++)
                if (*at == closing && at[-1] != '\\') {
                    part.end = at;
                    break;
                }
            shell_read_word(sh, &part, word, true);
            r->at = part.at;
            r->line = part.line;
            r->line_start = part.line_start;
        } else {
            shell_read_word(sh, r, word, false);
        }
        take_word(sh, word);
        statement = statement && is_prefix(word->text);
    }
    if (closing && r->at >= r->end)
        shell_refuse(sh, begin,
            closing == ')' ? "the array does not end; its ) is missing"
                           : "the quote does not end; its quote is missing");
    else if (closing)
        shell_take(r);
    sh->depth--;
    free(word);
}

enum status shell_read(
    struct shell_arguments *out, const char *path, const char *text, size_t n, struct arena *arena, struct diag *diag)
{
    struct shell sh = {.path = path, .arena = arena, .diag = diag, .out = out};
    struct reader r = {text, text + n, text, 1};
    const char *zero = memchr(text, '\0', n);
    if (zero)
        shell_refuse(&sh, (struct source_pos){path, 1, 1}, "a NUL byte: this is no text");
    else
        read_words(&sh, &r, '\0');
    vec_free(&sh.variables);
    vec_free(&sh.heredocs);
    return sh.failed ? STATUS_INPUT : STATUS_OK;
}

void shell_free(struct shell_arguments *arguments)
{
    vec_free(&arguments->list);
    vec_free(&arguments->programs);
}
