/* A shell script as the arguments that its commands would have, without running it.
 *
 * One pass over the bytes: read_words() finds words, assignments, comments, heads of schedulers
 * and here-documents; shell_words.c expands each word. A word "--name" begins an argument, other
 * words behind it are its value, a word that is no option may be a command. Launchers come
 * before the program: options so far are theirs once a program or an interpreter appears, and
 * options behind it are the program's. Variables whose quotes or arrays hold arguments are read
 * like commands, at their assignment.
 *
 * What is subtle: nothing is executed, so $(...) and variables that are not set make a value
 * unknown (`unset`), which the importer lists; conditions and loops are not followed, all
 * branches count; the last assignment that stands above holds. Here-documents are skipped. */
#include "exchange/shell_reader.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- commands ---- */

static bool is_argument(const char *text)
{
    return text[0] == '-' && text[1] == '-' && isalpha((unsigned char)text[2]);
}

static void append_value(
    struct shell *sh, const char *text, const char *unset, struct source_pos at)
{
    struct shell_argument *argument = &sh->out->list.at[sh->out->list.n - 1];
    if (unset)
        argument->unset = unset;
    if (!*text)
        return;
    if (!argument->value)
        argument->value_at = at;
    argument->value = argument->value ? arena_printf(sh->arena, "%s %s", argument->value, text)
                                      : arena_strdup(sh->arena, text);
}

static void begin_command(struct shell *sh, const char *variable)
{
    sh->command = (struct command){.variable = variable, .first = sh->out->list.n};
    sh->in_argument = false;
}

/* What stood before a program, or before what starts one, were launchers' options. */
static void claim_before(struct shell *sh)
{
    for (int i = sh->command.first; i < sh->out->list.n && sh->command.name; i++)
        if (!sh->out->list.at[i].launcher)
            sh->out->list.at[i].launcher = sh->command.name;
}

static void end_launchers(struct shell *sh)
{
    claim_before(sh);
    sh->command.name = NULL;
    sh->command.begun = true;
    sh->in_argument = false;
}

static void shell_take_program(struct shell *sh, const char *text, struct source_pos at)
{
    vec_push(
        &sh->out->programs, (struct shell_program){arena_strdup(sh->arena, launch_base(text)), at});
    end_launchers(sh);
}

/* NAME=VALUE before or among launchers' words: what the command's environment gets. */
static bool is_environment(const struct shell *sh, const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    bool launching = !sh->command.begun || sh->command.name;
    return n > 0 && text[n] == '=' && !isdigit((unsigned char)*text) && launching;
}

/* Variables that change what is simulated. */
static void note_environment(
    struct shell *sh, const char *name, size_t n, const char *value, struct source_pos at)
{
    static const char *const names[] = {
        "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0)
            vec_push(&sh->out->list, (struct shell_argument){.name = names[i],
                                         .value = arena_strdup(sh->arena, value),
                                         .at = at,
                                         .value_at = at,
                                         .launcher = SHELL_ENVIRONMENT});
}

/* A word that is no option: true where it is a command's name, or a program. `later` words are
 * values, unless a launcher runs another known launcher. */
static bool take_command(struct shell *sh, const char *text, struct source_pos at)
{
    struct command *command = &sh->command;
    const char *base = launch_base(text);
    bool module = command->module && command->name;
    command->module = command->name && launch_is_python(command->name) && strcmp(text, "-m") == 0;
    if (launch_is_program(text)) {
        shell_take_program(sh, text, at);
        return true;
    }
    if (command->module) {
        sh->in_argument = false;
        return true;
    }
    if (module) {
        bool launcher = strncmp(text, "torch.distributed", strlen("torch.distributed")) == 0;
        if (launcher)
            command->name = "torchrun";
        else
            end_launchers(sh);
        return true;
    }
    bool later = command->begun && !(command->name && launch_is_known(base));
    if (!*text || *text == '-' || later || (command->options && !command->begun))
        return false;
    if (is_environment(sh, text)) {
        size_t n = strcspn(text, "=");
        note_environment(sh, text, n, text + n + 1, at);
        return true;
    }
    if (launch_is_python(base))
        claim_before(sh);
    command->begun = true;
    command->name = arena_strdup(sh->arena, base);
    sh->in_argument = false;
    return true;
}

static void add_argument(struct shell *sh, const char *text, size_t n, const char *launcher,
    const char *unset, struct source_pos at)
{
    size_t behind = n + (text[n] == '=');
    vec_push(&sh->out->list,
        (struct shell_argument){.name = arena_printf(sh->arena, "%.*s", (int)n, text),
            .at = at,
            .launcher = launcher,
            .variable = sh->command.begun ? NULL : sh->command.variable});
    sh->in_argument = sh->command.options = true;
    at.column += (int)behind;
    append_value(sh, text + behind, unset, at);
}

/* "-np", "-N16" of a launcher: kept where it counts something. */
static void take_short(struct shell *sh, const char *text, struct source_pos at)
{
    size_t n = isdigit((unsigned char)text[2]) ? 2 : strlen(text);
    const char *name = arena_printf(sh->arena, "%.*s", (int)n, text);
    sh->in_argument = false;
    if (launch_count_of(sh->command.name, name) != LAUNCH_COUNTS)
        add_argument(sh, text, n, sh->command.name, NULL, at);
}

static void take_text(struct shell *sh, const char *text, const char *unset, struct source_pos at)
{
    const char *launcher = sh->command.name;
    if (is_argument(text))
        add_argument(sh, text, strcspn(text, "="),
            launcher && launch_is_known(launcher) ? launcher : NULL, unset, at);
    else if (launcher && text[0] == '-' && isalpha((unsigned char)text[1]) &&
             strcmp(text, "-m") != 0)
        take_short(sh, text, at);
    else if (!take_command(sh, text, at) && sh->in_argument)
        append_value(sh, text, unset, at);
}

/* A word in quotes may hold several, as "--fp8-format hybrid" of an array that the command line
 * splits again. */
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

/* The words of quotes or of an array, which are a command. The outer command is put aside
 * meanwhile. */
static void read_inner(struct shell *sh, struct reader *r, const char *variable)
{
    struct command outer = sh->command;
    char open = *r->at;
    begin_command(sh, variable);
    shell_take(r);
    read_words(sh, r, open == '(' ? ')' : open);
    sh->in_argument = false;
    sh->command = outer;
}

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

/* Whether the quotes that begin here hold arguments. Quotes with an option in them are
 * arguments; quotes without one are a value. */
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
    struct variable variable = {
        .name = arena_printf(sh->arena, "%.*s", (int)n, r->at), .value = ""};
    while (*r->at != '=')
        shell_take(r);
    shell_take(r);
    char open = shell_peek(r, 0);
    sh->in_argument = false;
    if (open == '(' || ((open == '"' || open == '\'') && quotes_arguments(r))) {
        variable.is_arguments = true;
        read_inner(sh, r, variable.name);
    } else {
        struct word *word = xcalloc(1, sizeof *word);
        shell_read_word(sh, r, word, false);
        variable.value = arena_strdup(sh->arena, word->text);
        variable.unset = word->unset;
        if (!word->unset)
            note_environment(sh, variable.name, n, variable.value, word->at);
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

static void set_number(struct shell *sh, const char *name, int64_t value)
{
    shell_set(sh, (struct variable){
                      .name = name, .value = arena_printf(sh->arena, "%lld", (long long)value)});
}

/* What a scheduler's head counts is an option like a launcher's, and in the variables that the
 * scheduler sets. The script's process is the first one. */
static void shell_read_head(struct shell *sh, const struct reader *r)
{
    struct launch_option options[LAUNCH_MOST_OPTIONS];
    const char *line_end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    size_t length = (size_t)((line_end ? line_end : r->end) - r->at);
    int n = r->at == r->line_start ? launch_head(options, r->at, length, sh->arena) : 0;
    for (int i = 0; i < n; i++) {
        struct source_pos at = shell_place_of(sh, r, r->at + options[i].at);
        sh->counts[options[i].what] = launch_number(options[i].value);
        vec_push(&sh->out->list, (struct shell_argument){.name = options[i].name,
                                     .value = options[i].value,
                                     .at = at,
                                     .value_at = at,
                                     .launcher = options[i].launcher});
    }
    const char *name = NULL;
    int64_t value = 0;
    for (int i = 0; n > 0 && launch_variable(i, &name, &value, sh->counts); i++)
        if (value > 0)
            set_number(sh, name, value);
    static const char *const first[] = {"SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID"};
    for (size_t i = 0; n > 0 && i < sizeof first / sizeof *first; i++)
        set_number(sh, first[i], 0);
}

static void shell_skip_comment(struct shell *sh, struct reader *r)
{
    shell_read_head(sh, r);
    while (r->at < r->end && *r->at != '\n')
        r->at++;
}

/* A blank, comment or operator: true when it was one. statement: a command may begin. A line end
 * ends a command, except inside quotes and arrays. */
static bool read_between(struct shell *sh, struct reader *r, char closing, bool *statement)
{
    char c = *r->at;
    if (c == '\\' &&
        (shell_peek(r, 1) == '\n' || (shell_peek(r, 1) == '\r' && shell_peek(r, 2) == '\n'))) {
        shell_take(r);
        shell_take(r);
    } else if (c == '\n') {
        shell_take(r);
        if (!closing) {
            begin_command(sh, NULL);
            *statement = true;
            skip_heredocs(sh, r);
        }
    } else if (isspace((unsigned char)c)) {
        shell_take(r);
    } else if (c == '#' && closing != '"') {
        shell_skip_comment(sh, r);
    } else if (!closing && c == '<' && shell_peek(r, 1) == '<' && shell_peek(r, 2) != '<') {
        note_heredoc(sh, r);
    } else if (closing != '"' && closing != '\'' && strchr(";|&()<>", c) && c != closing) {
        shell_take(r);
        begin_command(sh, NULL);
        *statement = true;
    } else {
        return false;
    }
    return true;
}

static bool is_prefix(const char *text)
{
    static const char *const words[] = {
        "export", "local", "declare", "readonly", "then", "do", "else", "env"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

static bool is_shell(const char *command)
{
    return command && (strcmp(command, "bash") == 0 || strcmp(command, "sh") == 0 ||
                          strcmp(command, "zsh") == 0);
}

/* closing '\0': the whole file; else the words of an array or of quotes, whose end is taken. */
static void read_words(struct shell *sh, struct reader *r, char closing)
{
    struct source_pos begin = shell_place_of(sh, r, r->at);
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
        if (!closing && is_shell(sh->command.name) && (*r->at == '"' || *r->at == '\'') &&
            quotes_arguments(r)) {
            read_inner(sh, r, NULL); /* bash -c "torchrun ..." */
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
        bool prefix = statement && is_prefix(word->text);
        if (!prefix)
            take_word(sh, word);
        statement = prefix;
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

enum status shell_read(struct shell_arguments *out, const char *path, const char *text, size_t n,
    struct arena *arena, struct diag *diag)
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
