/* A command's table of options, parsed by argp.
 *
 * argp runs twice. The first pass works on a copy of the words, as argp sorts them, and only
 * looks for options that are given too often; the second takes the values. So a mistake of that
 * sort is reported before anything is done. An option that is no list is a usage error the
 * second time; of lists of KEY=VALUE the same key again is a warning, and the last one holds.
 * Keys are compared by their whole path (same_key()), so short names and aliases are the same
 * key. OPTION_NEXT begins a new group of keys.
 *
 * What is subtle: each option's key for argp is its letter or FIRST_KEY + its place.
 * argp_error() ends the program, so code behind it is never reached. describe_line() leaves too,
 * where a manual page or completions were asked for; then nothing is parsed. */
#include "options/arguments.h"

#include "crew/ranks.h"
#include "base/threads.h"
#include "base/units.h"
#include "options/command.h"
#include "options/describe.h"
#include "coll/coll.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_SAMPLES = 100000, MAX_SHARDS = 1000000, ARGP_FLAGS = OPTION_LIST - 1 };

/* node.nics and cluster.node.nics are one key, and so are a key and its alias. */
static bool same_key(const char *a, const char *b)
{
    struct arena arena = ARENA_INIT;
    const char *one =
        scenario_key_path(arena_printf(&arena, "%.*s", (int)strcspn(a, "="), a), &arena);
    const char *other =
        scenario_key_path(arena_printf(&arena, "%.*s", (int)strcspn(b, "="), b), &arena);
    bool same = strcmp(one, other) == 0;
    arena_release(&arena);
    return same;
}

static int arguments_count(const struct argument *argument, int kilo, int least, int most)
{
    int64_t n = 0;
    if (count_parse(&n, argument->text, kilo ? kilo : 1000) != COUNT_OK || n < least || n > most)
        argp_error(argument->state, "--%s %s: a number from %d to %d is wanted", argument->option,
            argument->text, least, most);
    return (int)n;
}

void argument_tokens(void *token_count, const struct argument *argument)
{
    struct token_count *tokens = token_count;
    int64_t n = 0;
    bool read = count_parse(&n, argument->text, 1000) == COUNT_OK && n >= 1;
    *tokens = (struct token_count){(double)n, argument->text};
    if (!read)
        argp_error(argument->state, "--tokens %s: a number of tokens is wanted, as in 15T or 300B",
            argument->text);
}

struct scenario_override argument_override(const struct argument *argument, struct arena *arena)
{
    const char *option = argument->option, *text = argument->text;
    size_t length = strcspn(text, "=");
    if (length == 0 || !text[length])
        argp_error(argument->state, "--%s %s: KEY=VALUE is wanted, as in --%s train.micro_batch=16",
            option, text, option);
    return (struct scenario_override){
        arena_printf(arena, "%.*s", (int)length, text), text + length + 1};
}

int argument_name(const struct argument *argument, const char *const *names)
{
    char known[128] = "";
    size_t used = 0;
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], argument->text) == 0)
            return i;
        const char *joint = i == 0 ? "" : names[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", joint, names[i]);
        BUG_IF(used >= sizeof known, "the names of --%s need more room", argument->option);
    }
    size_t n = 0;
    while (names[n])
        n++;
    const char *near = nearest_name(argument->text, names, n);
    argp_error(argument->state, "--%s %s: %s is wanted%s%s%s", argument->option, argument->text,
        known, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return 0; /* argp_error exits */
}

void argument_shard(void *shard, const struct argument *argument)
{
    struct shard *out = shard;
    int n = 0;
    const char *text = argument->text;
    if (ranks_launched() > 1)
        argp_error(argument->state,
            "--shard %s: the %d programs that mpirun has started share the work by themselves; "
            "leave --shard out",
            text, ranks_launched());
    bool read = isdigit((unsigned char)*text) &&
                sscanf(text, "%d/%d%n", &out->shard, &out->shards, &n) == 2;
    if (!read || text[n] || out->shard < 1 || out->shards < out->shard || out->shards > MAX_SHARDS)
        argp_error(argument->state,
            "--shard %s: I/N is wanted, part I of N from 1/N to N/N, as in 2/8", text);
}

static int forced(
    const struct argument *argument, const char *const *names, int n, const char *known)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(names[i], argument->text) == 0)
            return i;
    const char *near = nearest_name(argument->text, names, (size_t)n);
    if (near)
        argp_error(argument->state, "--%s %s: there is no such; did you mean '%s'?",
            argument->option, argument->text, near);
    else
        argp_error(
            argument->state, "--%s %s: %s is wanted", argument->option, argument->text, known);
    return COLL_ANY; /* argp_error exits */
}

void argument_algorithm(void *algorithm, const struct argument *argument)
{
    *(int *)algorithm =
        forced(argument, coll_algorithm_names, COLL_ALGORITHM_COUNT, FORCE_ALGORITHMS);
}

void argument_protocol(void *protocol, const struct argument *argument)
{
    *(int *)protocol = forced(argument, coll_protocol_names, COLL_PROTOCOL_COUNT, FORCE_PROTOCOLS);
}

void overrides_free(struct overrides *overrides)
{
    vec_free(&overrides->list);
    vec_free(&overrides->names);
    arena_release(&overrides->texts);
}

void overrides_push(struct overrides *overrides, const char *name, struct scenario_override one)
{
    vec_push(&overrides->list, one);
    vec_push(&overrides->names, name);
}

enum status overrides_load(struct scenario_set *out, const char *path,
    const struct overrides *overrides, struct arena *arena, struct diag *diag)
{
    return scenario_load_from(out, path, overrides->list.at, overrides->names.at,
        ORIGIN_COMMAND_LINE, overrides->list.n, arena, diag);
}

/* Adds what an option other than --set says. */
static void push_setting(
    struct overrides *overrides, const char *option, const char *path, const char *text)
{
    overrides_push(overrides, arena_printf(&overrides->texts, "--%s", option),
        (struct scenario_override){path, text});
}

/* --gpus 8,64: [8,64]. */
static const char *setting_text(const char *text, struct arena *arena)
{
    return strchr(text, ',') && *text != '[' ? arena_printf(arena, "[%s]", text) : text;
}

static void take_option(
    const struct command_option *option, void *member, const struct argument *argument)
{
    struct overrides *overrides = member;
    switch (option->kind) {
    case OPTION_TEXT:
        *(const char **)member = argument->text;
        break;
    case OPTION_FLAG:
        *(bool *)member = true;
        break;
    case OPTION_COUNT:
        *(int *)member = arguments_count(argument, option->kilo, 1, option->most);
        break;
    case OPTION_COUNT64:
        *(int64_t *)member = arguments_count(argument, option->kilo, 1, option->most);
        break;
    case OPTION_SAMPLES:
        *(int *)member = arguments_count(argument, 0, 2, MAX_SAMPLES);
        break;
    case OPTION_NAME:
        *(int *)member = argument_name(argument, option->names);
        break;
    case OPTION_SET:
        overrides_push(overrides, NULL, argument_override(argument, &overrides->texts));
        break;
    case OPTION_SEED:
        push_setting(overrides, option->name, "run.seed", argument->text);
        break;
    case OPTION_SETTING:
        push_setting(overrides, option->name, option->path,
            option->text ? option->text : setting_text(argument->text, &overrides->texts));
        break;
    case OPTION_TAKE:
        option->take(member, argument);
        break;
    }
}

/* --wide and --jobs, of which a command has the first ones that it asks for (enum common_options).
 */
static void take_wide(void *command, const struct argument *argument)
{
    (void)command;
    if (setenv("COLUMNS", "0", 1) != 0) /* which rows/table.h reads as no limit */
        argp_failure(argument->state, CLI_WORLD, errno, "cannot set COLUMNS");
}

static void take_jobs(void *command, const struct argument *argument)
{
    (void)command;
    threads_limit(arguments_count(argument, 0, 1, THREADS_MAX));
}

static const struct command_option common[] = {
    {"wide", NULL, "All columns of tables, however narrow the terminal ($COLUMNS) is", OPTION_TAKE,
        .take = take_wide},
    {"jobs", "N", "Simulate N points at a time (default: as many as there are cores)", OPTION_TAKE,
        .take = take_jobs, .letter = 'j'},
};

enum { FIRST_KEY = 256 };

/* An option that stands on the command line. */
struct given {
    const struct command_option *option;
    const char *text;
};

struct parse {
    const struct command_line *line;
    void *command; /* NULL: only look for options that are given too often */
    VEC(const struct command_option *) options;
    VEC(struct given) given;
};

static int arguments_key_of(const struct parse *parse, int i)
{
    return parse->options.at[i]->letter ? parse->options.at[i]->letter : FIRST_KEY + i;
}

static bool is_of_keys(const struct command_option *option)
{
    return option->kind == OPTION_SET || option->flags & OPTION_KEYS;
}

/* Whether the option stood there before, since the last OPTION_NEXT if that matters. */
static bool is_repeated(
    const struct parse *parse, const struct command_option *option, const char *text)
{
    for (int i = parse->given.n - 1; i >= 0; i--) {
        const struct given *before = &parse->given.at[i];
        if (is_of_keys(option) && before->option->flags & OPTION_NEXT)
            return false;
        if (before->option == option && (!is_of_keys(option) || same_key(before->text, text)))
            return !(option->flags & OPTION_LIST);
    }
    return false;
}

static void check_given_once(
    struct parse *parse, const struct command_option *option, const struct argument *argument)
{
    bool repeated = is_repeated(parse, option, argument->text);
    if (repeated && is_of_keys(option))
        fprintf(stderr, "%s: warning: --%s %.*s is given twice; the last holds: %s\n",
            argument->state->name, option->name, (int)strcspn(argument->text, "="), argument->text,
            strchrnul(argument->text, '=') + 1);
    else if (repeated)
        argp_error(argument->state, "--%s is given twice%s", option->name,
            option->value ? "; it takes one value" : "");
    vec_push(&parse->given, (struct given){option, argument->text});
}

static void parse_argument(struct parse *parse, const struct argument *argument)
{
    const struct command_line *line = parse->line;
    const char **one = (const char **)(void *)((char *)parse->command + line->member);
    if (line->take) {
        line->take(parse->command, argument);
        return;
    }
    if (*one)
        argp_error(
            argument->state, "one %s at a time; '%s' is a second one", line->one, argument->text);
    *one = argument->text;
}

static error_t parse_line(int key,
    char *text /* NOLINT(readability-non-const-parameter): argp's type */, struct argp_state *state)
{
    struct parse *parse = state->input;
    const struct command_line *line = parse->line;
    struct argument argument = {line->one, text, state};
    bool takes = parse->command != NULL;
    if (key == ARGP_KEY_ARG && (line->take || line->one || !takes)) {
        if (takes)
            parse_argument(parse, &argument);
        return 0;
    }
    if (key == ARGP_KEY_NO_ARGS && line->missing && takes)
        argp_error(state, "%s", line->missing);
    if (key == ARGP_KEY_END && line->check && takes)
        line->check(parse->command, state);
    for (int i = 0; i < parse->options.n; i++) {
        const struct command_option *option = parse->options.at[i];
        if (key != arguments_key_of(parse, i))
            continue;
        argument.option = option->name;
        if (takes)
            take_option(option, (char *)parse->command + option->member, &argument);
        else
            check_given_once(parse, option, &argument);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* The text of --help: the command's example, then what it does. */
static const char *help_text(struct arena *arena, const char *command, const char *doc)
{
    static const char head[] = "Example: ";
    const char *example = command_example(command);
    if (!example)
        return doc;
    const char *text = head;
    for (;;) {
        int n = (int)strcspn(example, "\n");
        text = arena_printf(arena, "%s%.*s\n", text, n, example);
        if (!example[n])
            return arena_printf(arena, "%s\n%s", text, doc);
        text = arena_printf(arena, "%s%*s", text, (int)sizeof head - 1, "");
        example += n + 1;
    }
}

void command_line_parse(const struct command_line *line, int argc, char **argv, void *command)
{
    struct parse parse = {.line = line};
    VEC(struct argp_option) options = {0};
    struct arena arena = ARENA_INIT;
    for (const struct command_option *option = line->options; option && option->name; option++)
        vec_push(&parse.options, option);
    for (int i = 0; i < (int)line->common; i++)
        vec_push(&parse.options, &common[i]);
    describe_line(line, argv[0], parse.options.at, parse.options.n);
    char **copy = xcalloc((size_t)argc + 1, sizeof *copy); /* argp sorts it */
    memcpy(copy, argv, sizeof *copy * (size_t)argc);
    for (int i = 0; i < parse.options.n; i++) {
        const struct command_option *option = parse.options.at[i];
        int key = arguments_key_of(&parse, i);
        vec_push(&options, (struct argp_option){option->name, key, option->value,
                               option->flags & ARGP_FLAGS, option->doc, 0});
    }
    vec_push(&options, (struct argp_option){0});
    const struct argp argp = {.options = options.at,
        .parser = parse_line,
        .args_doc = line->args_doc,
        .doc = help_text(&arena, argv[0], line->doc)};
    argp_parse(&argp, argc, copy, 0, NULL, &parse);
    parse.command = command;
    argp_parse(&argp, argc, argv, 0, NULL, &parse);
    free(copy);
    vec_free(&options);
    vec_free(&parse.options);
    vec_free(&parse.given);
    arena_release(&arena);
}

void arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    struct arena arena = ARENA_INIT;
    struct argp with_example = *argp;
    with_example.doc = help_text(&arena, argv[0], argp->doc);
    argp_parse(&with_example, argc, argv, flags, NULL, input);
    arena_release(&arena);
}
