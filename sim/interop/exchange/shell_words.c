/* Words of a shell script as the shell would expand them: quotes, escapes, variables with
 * defaults, arithmetic.
 *
 * An expansion that cannot be known (commands in $( ) and backquotes, unset variables) does not
 * fail: the word remembers the text of it (`unset`), and the argument is then open. What is
 * subtle: a variable that holds arguments expands to nothing here, as its arguments were taken
 * at its assignment; the launcher in front of it claims them. Arithmetic is
 * expression.c's. Depth and lengths are bounded, because scripts come from elsewhere. */
#include "exchange/expression.h"
#include "exchange/shell_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source_pos shell_place_of(const struct shell *sh, const struct reader *r, const char *at)
{
    return (struct source_pos){sh->path, r->line, (int)(at - r->line_start) + 1};
}

/* The first mistake is reported; it ends the reading. */
void shell_refuse(struct shell *sh, struct source_pos at, const char *why)
{
    if (!sh->failed)
        diag_input(sh->diag, at, "%s", why);
    sh->failed = true;
}

/* The byte that many after the next; '\0' behind the end. */
char shell_peek(const struct reader *r, int ahead)
{
    return r->end - r->at > ahead ? r->at[ahead] : '\0';
}

void shell_take(struct reader *r)
{
    if (*r->at++ == '\n') {
        r->line++;
        r->line_start = r->at;
    }
}

static void shell_words_add(struct shell *sh, struct word *word, char c)
{
    if (word->n == SHELL_MAX_WORD)
        shell_refuse(
            sh, word->at, "a word of more than 4096 characters: this is no list of arguments");
    else
        word->text[word->n++] = c;
    word->text[word->n] = '\0';
}

static void shell_words_add_text(struct shell *sh, struct word *word, const char *text)
{
    for (; *text && !sh->failed; text++)
        shell_words_add(sh, word, *text);
}

/* ---- variables ---- */

static const struct variable *shell_words_find(const struct shell *sh, const char *name)
{
    for (int i = sh->variables.n - 1; i >= 0; i--)
        if (strcmp(sh->variables.at[i].name, name) == 0)
            return &sh->variables.at[i];
    return NULL;
}

/* The variable has this value from now on. */
void shell_set(struct shell *sh, struct variable variable)
{
    for (int i = 0; i < sh->variables.n; i++)
        if (strcmp(sh->variables.at[i].name, variable.name) == 0) {
            sh->variables.at[i] = variable;
            return;
        }
    vec_push(&sh->variables, variable);
}

/* Options that stood alone in a variable's quotes or array are those of the launcher behind which
 * it is expanded. */
static void claim(struct shell *sh, const char *variable)
{
    const char *launcher = sh->command.name;
    for (int i = 0; i < sh->out->list.n && launcher && launch_is_known(launcher); i++) {
        struct shell_argument *argument = &sh->out->list.at[i];
        if (!argument->launcher && argument->variable && strcmp(argument->variable, variable) == 0)
            argument->launcher = launcher;
    }
}

static void expand_name(
    struct shell *sh, struct word *word, const char *name, const char *otherwise)
{
    const struct variable *variable = shell_words_find(sh, name);
    if (variable && variable->is_arguments) {
        claim(sh, name);
        return;
    }
    if (variable && !variable->unset)
        shell_words_add_text(sh, word, variable->value);
    else if (otherwise)
        shell_words_add_text(sh, word, otherwise);
    else
        word->unset = variable ? variable->unset : arena_printf(sh->arena, "$%s", name);
}

/* ---- $((arithmetic)) over whole numbers and variables ---- */

struct sum {
    struct shell *sh;
    const char *unset; /* the last variable that is */
};

static int64_t sum_name(struct expression *e, void *self)
{
    struct sum *sum = self;
    char name[SHELL_MAX_NAME + 1];
    size_t n = 0;
    while (*e->at == '$' || *e->at == '{')
        e->at++;
    while ((isalnum((unsigned char)*e->at) || *e->at == '_') && n < SHELL_MAX_NAME)
        name[n++] = *e->at++;
    name[n] = '\0';
    if (*e->at == '}')
        e->at++;
    const struct variable *variable = n ? shell_words_find(sum->sh, name) : NULL;
    bool known = variable && !variable->unset;
    if (!known)
        sum->unset = arena_printf(sum->sh->arena, "$%s", name);
    char *end = NULL;
    int64_t value = known ? strtoll(variable->value, &end, 10) : 0;
    e->unknown |= !known;
    e->bad |= n == 0 || (end && (*end || end == variable->value));
    return value;
}

static void expand_sum(struct shell *sh, struct word *word, const char *text)
{
    struct sum sum = {.sh = sh};
    struct expression expression = {.at = text, .name = sum_name, .self = &sum, .arena = sh->arena};
    struct expression_value value;
    bool good = expression_read(&value, &expression) && !value.items;
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)value.number);
    if (sum.unset)
        word->unset = sum.unset;
    else if (!good)
        word->unset = arena_printf(sh->arena, "$((%s))", text);
    else
        shell_words_add_text(sh, word, digits);
}

/* ---- words ---- */

/* What stands up to the character that closes what `open` opens, which is taken, too. The text has
 * no quotes' ends worth knowing: commands are not run. Brackets nest, quotes do not. */
static const char *up_to(
    struct shell *sh, struct reader *r, char open, char close, struct source_pos at)
{
    const char *begin = r->at;
    int depth = 1;
    while (r->at < r->end && depth > 0) {
        depth += *r->at == open && open != close ? 1 : *r->at == close ? -1 : 0;
        shell_take(r);
    }
    if (depth > 0) {
        shell_refuse(sh, at, "it does not end; the closing bracket or quote is missing");
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
    struct source_pos at = shell_place_of(sh, r, r->at);
    shell_take(r);
    if (shell_peek(r, 0) == '(' && shell_peek(r, 1) == '(') {
        shell_take(r);
        shell_take(r);
        const char *text = up_to(sh, r, '(', ')', at);
        if (shell_peek(r, 0) == ')')
            shell_take(r);
        expand_sum(sh, word, text);
    } else if (shell_peek(r, 0) == '(') {
        shell_take(r);
        word->unset = arena_printf(sh->arena, "$(%s)", up_to(sh, r, '(', ')', at));
    } else if (shell_peek(r, 0) == '{') {
        shell_take(r);
        expand_braces(sh, word, up_to(sh, r, '{', '}', at));
    } else {
        char name[SHELL_MAX_NAME + 1];
        size_t n = 0;
        bool digit = isdigit((unsigned char)shell_peek(r, 0));
        while (r->at < r->end && n < (digit ? 1 : SHELL_MAX_NAME) &&
               (isalnum((unsigned char)*r->at) || *r->at == '_')) {
            name[n++] = *r->at;
            shell_take(r);
        }
        if (n == 0 && r->at < r->end && strchr("@*#?$!", *r->at)) {
            name[n++] = *r->at;
            shell_take(r);
        }
        name[n] = '\0';
        if (n == 0)
            shell_words_add(sh, word, '$');
        else
            expand_name(sh, word, name, NULL);
    }
}

static void read_double_quotes(struct shell *sh, struct reader *r, struct word *word)
{
    struct source_pos at = shell_place_of(sh, r, r->at);
    shell_take(r);
    while (r->at < r->end && *r->at != '"' && !sh->failed) {
        if (*r->at == '\\' && shell_peek(r, 1) == '\n') {
            shell_take(r);
            shell_take(r);
        } else if (*r->at == '\\' && shell_peek(r, 1) && strchr("\"\\$`", shell_peek(r, 1))) {
            shell_take(r);
            shell_words_add(sh, word, *r->at);
            shell_take(r);
        } else if (*r->at == '$') {
            expand_dollar(sh, r, word);
        } else if (*r->at == '`') {
            shell_take(r);
            word->unset = arena_printf(sh->arena, "`%s`", up_to(sh, r, '`', '`', at));
        } else {
            shell_words_add(sh, word, *r->at);
            shell_take(r);
        }
    }
    if (r->at >= r->end)
        shell_refuse(sh, at, "the quote does not end; its \" is missing");
    else
        shell_take(r);
}

static bool ends_word(char c, bool quoted)
{
    return isspace((unsigned char)c) || (!quoted && strchr(";|&()<>", c));
}

/* quoted: the reader stands in quotes, whose words are arguments. */
void shell_read_word(struct shell *sh, struct reader *r, struct word *word, bool quoted)
{
    word->n = 0;
    word->text[0] = '\0';
    word->unset = NULL;
    word->at = shell_place_of(sh, r, r->at);
    while (r->at < r->end && !ends_word(*r->at, quoted) && !sh->failed) {
        char c = *r->at;
        if (c == '\\' && r->end - r->at > 1) {
            shell_take(r);
            if (*r->at != '\n')
                shell_words_add(sh, word, *r->at);
            shell_take(r);
        } else if (c == '\'') {
            shell_take(r);
            shell_words_add_text(sh, word, up_to(sh, r, '\'', '\'', word->at));
        } else if (c == '"') {
            read_double_quotes(sh, r, word);
        } else if (c == '$') {
            expand_dollar(sh, r, word);
        } else if (c == '`') {
            shell_take(r);
            word->unset = arena_printf(sh->arena, "`%s`", up_to(sh, r, '`', '`', word->at));
        } else {
            shell_words_add(sh, word, c);
            shell_take(r);
        }
    }
}
