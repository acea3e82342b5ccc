#include "exchange/shell.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct variable {
    const char *name, *value;
    const char *unset; /* that its value lacks */
    bool is_arguments; /* its words are arguments, which stand in the list already */
};

/* Bytes from `at` on; what stands in quotes or in parentheses is read by a separate reader, which ends where it
 * does. */
struct reader {
    const char *at, *end, *line_start;
    int line;
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
};

/* A word as the shell would expand it. */
struct word {
    char text[SHELL_MAX_WORD + 1];
    size_t n;
    const char *unset;
    struct source_pos at;
};

static struct source_pos place_of(const struct shell *sh, const struct reader *r, const char *at)
{
    return (struct source_pos){sh->path, r->line, (int)(at - r->line_start) + 1};
}

/* The first mistake is reported; it ends the reading. */
static void refuse(struct shell *sh, struct source_pos at, const char *why)
{
    if (!sh->failed)
        diag_input(sh->diag, at, "%s", why);
    sh->failed = true;
}

/* The byte that many after the next; '\0' behind the end. */
static char peek(const struct reader *r, int ahead)
{
    return r->end - r->at > ahead ? r->at[ahead] : '\0';
}

static void take(struct reader *r)
{
    if (*r->at++ == '\n') {
        r->line++;
        r->line_start = r->at;
    }
}

static void add(struct shell *sh, struct word *word, char c)
{
    if (word->n == SHELL_MAX_WORD)
        refuse(sh, word->at, "a word of more than 4096 characters: this is no list of arguments");
    else
        word->text[word->n++] = c;
    word->text[word->n] = '\0';
}

static void add_text(struct shell *sh, struct word *word, const char *text)
{
    for (; *text && !sh->failed; text++)
        add(sh, word, *text);
}

/* ---- variables ---- */

static const struct variable *find(const struct shell *sh, const char *name)
{
    for (int i = sh->variables.n - 1; i >= 0; i--)
        if (strcmp(sh->variables.at[i].name, name) == 0)
            return &sh->variables.at[i];
    return NULL;
}

/* The variable has this value from now on. */
static void set(struct shell *sh, struct variable variable)
{
    for (int i = 0; i < sh->variables.n; i++)
        if (strcmp(sh->variables.at[i].name, variable.name) == 0) {
            sh->variables.at[i] = variable;
            return;
        }
    vec_push(&sh->variables, variable);
}

static void expand_name(struct shell *sh, struct word *word, const char *name, const char *otherwise)
{
    const struct variable *variable = find(sh, name);
    if (variable && variable->is_arguments)
        return;
    if (variable && !variable->unset)
        add_text(sh, word, variable->value);
    else if (otherwise)
        add_text(sh, word, otherwise);
    else
        word->unset = variable ? variable->unset : arena_printf(sh->arena, "$%s", name);
}

/* ---- $((arithmetic)): + - * / % and parentheses over whole numbers and variables ---- */

struct sum {
    struct shell *sh;
    const char *at;
    bool bad;
    int depth;
    const char *unset;
};

static int64_t add_up(struct sum *s);

static void blanks(struct sum *s)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
}

static int64_t sum_name(struct sum *s)
{
    char name[SHELL_MAX_NAME + 1];
    size_t n = 0;
    while (*s->at == '$' || *s->at == '{')
        s->at++;
    while ((isalnum((unsigned char)*s->at) || *s->at == '_') && n < SHELL_MAX_NAME)
        name[n++] = *s->at++;
    name[n] = '\0';
    if (*s->at == '}')
        s->at++;
    const struct variable *variable = n ? find(s->sh, name) : NULL;
    if (!variable || variable->unset)
        s->unset = arena_printf(s->sh->arena, "$%s", name);
    char *end = NULL;
    int64_t value = variable && !variable->unset ? strtoll(variable->value, &end, 10) : 0;
    s->bad |= n == 0 || (end && (*end || end == variable->value));
    return value;
}

static int64_t factor(struct sum *s)
{
    blanks(s);
    if (*s->at == '(' && s->depth < SHELL_MAX_DEPTH) {
        s->at++;
        s->depth++;
        int64_t value = add_up(s);
        s->depth--;
        blanks(s);
        s->bad |= *s->at != ')';
        s->at += *s->at == ')';
        return value;
    }
    if (!isdigit((unsigned char)*s->at))
        return sum_name(s);
    char *end = NULL;
    int64_t value = strtoll(s->at, &end, 10);
    s->at = end;
    return value;
}

static int64_t multiply(struct sum *s)
{
    int64_t value = factor(s);
    for (blanks(s); !s->bad && (*s->at == '*' || *s->at == '/' || *s->at == '%'); blanks(s)) {
        char operation = *s->at++;
        int64_t other = factor(s);
        if (operation == '*')
            s->bad |= __builtin_mul_overflow(value, other, &value);
        else if (other <= 0) /* also a number that is not known */
            s->bad |= !s->unset;
        else
            value = operation == '/' ? value / other : value % other;
    }
    return value;
}

static int64_t add_up(struct sum *s)
{
    int64_t value = multiply(s);
    for (blanks(s); !s->bad && (*s->at == '+' || *s->at == '-'); blanks(s)) {
        char operation = *s->at++;
        int64_t other = multiply(s);
        s->bad |= operation == '+' ? __builtin_add_overflow(value, other, &value)
                                   : __builtin_sub_overflow(value, other, &value);
    }
    return value;
}

static void expand_sum(struct shell *sh, struct word *word, const char *text)
{
    struct sum s = {.sh = sh, .at = text};
    int64_t value = add_up(&s);
    blanks(&s);
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    if (s.unset)
        word->unset = s.unset;
    else if (s.bad || *s.at)
        word->unset = arena_printf(sh->arena, "$((%s))", text);
    else
        add_text(sh, word, digits);
}

/* ---- words ---- */

/* What stands up to the character that closes what `open` opens, which is taken, too. The text has no quotes' ends
 * worth knowing: commands are not run. */
static const char *up_to(struct shell *sh, struct reader *r, char open, char close, struct source_pos at)
{
    const char *begin = r->at;
    int depth = 1;
    while (r->at < r->end && depth > 0) {
        depth += *r->at == open && open != close ? 1 : *r->at == close ? -1 : 0;
        take(r);
    }
    if (depth > 0) {
        refuse(sh, at, "it does not end; the closing bracket or quote is missing");
        return "";
    }
    return arena_printf(sh->arena, "%.*s", (int)(r->at - begin - 1), begin);
}

/* A default as the shell would expand it: quotes go. */
static const char *plain(struct shell *sh, const char *text)
{
    char *out = arena_strdup(sh->arena, text), *to = out;
    for (const char *at = text; *at; at++) {
        bool escaped = *at == '\\' && at[1];
        if (escaped)
            *to++ = *++at;
        else if (*at != '"' && *at != '\'')
            *to++ = *at;
    }
    *to = '\0';
    return out;
}

/* ${NAME}, ${NAME:-default}, ${NAME[@]} */
static void expand_braces(struct shell *sh, struct word *word, const char *text)
{
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    const char *name = arena_printf(sh->arena, "%.*s", (int)n, text);
    const char *rest = text + n;
    bool colon = strncmp(rest, ":-", 2) == 0 || strncmp(rest, ":=", 2) == 0;
    if (!colon && (*rest == '-' || *rest == '=')) /* ${NAME-default} */
        expand_name(sh, word, name, strchr(rest, '$') ? NULL : plain(sh, rest + 1));
    else if (colon)
        expand_name(sh, word, name, strchr(rest, '$') ? NULL : plain(sh, rest + 2));
    else if (!*rest || strcmp(rest, "[@]") == 0 || strcmp(rest, "[*]") == 0)
        expand_name(sh, word, name, NULL);
    else
        word->unset = arena_printf(sh->arena, "${%s}", text);
}

static void expand_dollar(struct shell *sh, struct reader *r, struct word *word)
{
    struct source_pos at = place_of(sh, r, r->at);
    take(r);
    if (peek(r, 0) == '(' && peek(r, 1) == '(') {
        take(r);
        take(r);
        const char *text = up_to(sh, r, '(', ')', at);
        if (peek(r, 0) == ')')
            take(r);
        expand_sum(sh, word, text);
    } else if (peek(r, 0) == '(') {
        take(r);
        word->unset = arena_printf(sh->arena, "$(%s)", up_to(sh, r, '(', ')', at));
    } else if (peek(r, 0) == '{') {
        take(r);
        expand_braces(sh, word, up_to(sh, r, '{', '}', at));
    } else {
        char name[SHELL_MAX_NAME + 1];
        size_t n = 0;
        bool digit = isdigit((unsigned char)peek(r, 0));
        while (
            r->at < r->end && n < (digit ? 1 : SHELL_MAX_NAME) && (isalnum((unsigned char)*r->at) || *r->at == '_')) {
            name[n++] = *r->at;
            take(r);
        }
        if (n == 0 && r->at < r->end && strchr("@*#?$!", *r->at)) {
            name[n++] = *r->at;
            take(r);
        }
        name[n] = '\0';
        if (n == 0)
            add(sh, word, '$');
        else
            expand_name(sh, word, name, NULL);
    }
}

static void read_double_quotes(struct shell *sh, struct reader *r, struct word *word)
{
    struct source_pos at = place_of(sh, r, r->at);
    take(r);
    while (r->at < r->end && *r->at != '"' && !sh->failed) {
        if (*r->at == '\\' && peek(r, 1) == '\n') {
            take(r);
            take(r);
        } else if (*r->at == '\\' && peek(r, 1) && strchr("\"\\$`", peek(r, 1))) {
            take(r);
            add(sh, word, *r->at);
            take(r);
        } else if (*r->at == '$') {
            expand_dollar(sh, r, word);
        } else if (*r->at == '`') {
            take(r);
            word->unset = arena_printf(sh->arena, "`%s`", up_to(sh, r, '`', '`', at));
        } else {
            add(sh, word, *r->at);
            take(r);
        }
    }
    if (r->at >= r->end)
        refuse(sh, at, "the quote does not end; its \" is missing");
    else
        take(r);
}

static bool ends_word(char c, bool quoted)
{
    return isspace((unsigned char)c) || (!quoted && strchr(";|&()<>", c));
}

/* quoted: the reader stands in quotes, whose words are arguments. */
static void read_word(struct shell *sh, struct reader *r, struct word *word, bool quoted)
{
    word->n = 0;
    word->text[0] = '\0';
    word->unset = NULL;
    word->at = place_of(sh, r, r->at);
    while (r->at < r->end && !ends_word(*r->at, quoted) && !sh->failed) {
        char c = *r->at;
        if (c == '\\' && r->end - r->at > 1) {
            take(r);
            if (*r->at != '\n')
                add(sh, word, *r->at);
            take(r);
        } else if (c == '\'') {
            take(r);
            add_text(sh, word, up_to(sh, r, '\'', '\'', word->at));
        } else if (c == '"') {
            read_double_quotes(sh, r, word);
        } else if (c == '$') {
            expand_dollar(sh, r, word);
        } else if (c == '`') {
            take(r);
            word->unset = arena_printf(sh->arena, "`%s`", up_to(sh, r, '`', '`', word->at));
        } else {
            add(sh, word, c);
            take(r);
        }
    }
}

/* ---- commands ---- */

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
        take(r);
    take(r);
    char open = peek(r, 0);
    sh->in_argument = false;
    if (open == '(' || ((open == '"' || open == '\'') && quotes_arguments(r))) {
        variable.is_arguments = true;
        take(r);
        read_words(sh, r, open == '(' ? ')' : open);
        sh->in_argument = false;
    } else {
        struct word *word = xcalloc(1, sizeof *word);
        read_word(sh, r, word, false);
        variable.value = arena_strdup(sh->arena, word->text);
        variable.unset = word->unset;
        free(word);
    }
    set(sh, variable);
}

/* <<EOT, <<-EOT, <<'EOT' */
static void note_heredoc(struct shell *sh, struct reader *r)
{
    take(r);
    take(r);
    while (r->at < r->end && (*r->at == '-' || *r->at == ' ' || *r->at == '\'' || *r->at == '"'))
        take(r);
    size_t n = 0;
    while (r->at + n < r->end && (isalnum((unsigned char)r->at[n]) || r->at[n] == '_'))
        n++;
    if (n > 0)
        vec_push(&sh->heredocs, arena_printf(sh->arena, "%.*s", (int)n, r->at));
    while (n-- > 0)
        take(r);
    if (r->at < r->end && (*r->at == '\'' || *r->at == '"'))
        take(r);
}

static void skip_heredocs(struct shell *sh, struct reader *r)
{
    for (int i = 0; i < sh->heredocs.n; i++)
        for (bool found = false; !found && r->at < r->end;) {
            const char *line = r->at;
            while (r->at < r->end && *r->at != '\n')
                take(r);
            size_t n = (size_t)(r->at - line), blank = 0;
            while (blank < n && line[blank] == '\t')
                blank++;
            const char *last = sh->heredocs.at[i];
            found = n - blank == strlen(last) && strncmp(line + blank, last, n - blank) == 0;
            if (r->at < r->end)
                take(r);
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
    if (c == '\\' && (peek(r, 1) == '\n' || (peek(r, 1) == '\r' && peek(r, 2) == '\n'))) {
        take(r);
        take(r);
    } else if (c == '\n') {
        take(r);
        if (!closing) {
            sh->in_argument = false;
            *statement = true;
            skip_heredocs(sh, r);
        }
    } else if (isspace((unsigned char)c)) {
        take(r);
    } else if (c == '#' && closing != '"') {
        skip_comment(r);
    } else if (!closing && c == '<' && peek(r, 1) == '<' && peek(r, 2) != '<') {
        note_heredoc(sh, r);
    } else if (closing != '"' && closing != '\'' && strchr(";|&()<>", c) && c != closing) {
        take(r);
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
    struct source_pos begin = place_of(sh, r, r->at);
    struct word *word = xcalloc(1, sizeof *word);
    bool statement = !closing;
    sh->depth++;
    if (sh->depth > SHELL_MAX_DEPTH)
        refuse(sh, begin, "too many brackets in one another");
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
            read_word(sh, &part, word, true);
            r->at = part.at;
            r->line = part.line;
            r->line_start = part.line_start;
        } else {
            read_word(sh, r, word, false);
        }
        take_word(sh, word);
        statement = statement && is_prefix(word->text);
    }
    if (closing && r->at >= r->end)
        refuse(sh, begin,
            closing == ')' ? "the array does not end; its ) is missing"
                           : "the quote does not end; its quote is missing");
    else if (closing)
        take(r);
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
        refuse(&sh, (struct source_pos){path, 1, 1}, "a NUL byte: this is no text");
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
