#include "cli/arguments.h"

#include "base/threads.h"
#include "cli/cli.h"
#include "coll/coll.h"
#include "import/nccl.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_SAMPLES = 100000 };

/* An option that stands on the command line. */
struct given {
    const struct argp_option *option;
    const char *value; /* of OPTION_KEYS */
};

struct scan {
    VEC(const struct argp_option *) options;
    VEC(struct option) longs;
    VEC(char) shorts;
    VEC(struct given) given;
};

/* As argp_parse() hands them to getopt_long(); an option of the table is found by its index + 1. */
static void describe_options(struct scan *scan, const struct argp *argp)
{
    for (const struct argp_option *option = argp->options; option && (option->name || option->key); option++) {
        if (option->flags & OPTION_DOC)
            continue;
        vec_push(&scan->options, option);
        if (option->name)
            vec_push(
                &scan->longs, (struct option){option->name, option->arg ? required_argument : no_argument, NULL, 0});
        bool is_short = option->key > ' ' && option->key <= '~';
        if (is_short)
            vec_push(&scan->shorts, (char)option->key);
        if (is_short && option->arg)
            vec_push(&scan->shorts, ':');
    }
    for (const struct argp_child *child = argp->children; child && child->argp; child++)
        describe_options(scan, child->argp);
}

static void describe(struct scan *scan, const struct argp *argp, unsigned flags)
{
    vec_push(&scan->shorts, flags & ARGP_IN_ORDER ? '-' : ':');
    describe_options(scan, argp);
    vec_push(&scan->longs, (struct option){0});
    vec_push(&scan->shorts, '\0');
}

static const struct argp_option *find(const struct scan *scan, int found, int index)
{
    for (int i = 0; i < scan->options.n; i++) {
        const struct argp_option *option = scan->options.at[i];
        bool same =
            found == 0 ? option->name && strcmp(option->name, scan->longs.at[index].name) == 0 : option->key == found;
        if (same)
            return option;
    }
    return NULL;
}

/* node.nics and cluster.node.nics are one key, and so are a key and its alias. */
static bool same_key(const char *a, const char *b)
{
    struct arena arena = ARENA_INIT;
    const char *one = scenario_key_path(arena_printf(&arena, "%.*s", (int)strcspn(a, "="), a), &arena);
    const char *other = scenario_key_path(arena_printf(&arena, "%.*s", (int)strcspn(b, "="), b), &arena);
    bool same = strcmp(one, other) == 0;
    arena_release(&arena);
    return same;
}

static _Noreturn void given_twice(const struct argp *argp, char *program, const struct given *given)
{
    const struct argp_option *option = given->option;
    const char *dashes = option->name ? "--" : "-", letter[2] = {(char)option->key, '\0'};
    const char *name = option->name ? option->name : letter;
    if (option->flags & OPTION_KEYS)
        fprintf(stderr, "%s: %s%s %.*s is given twice; which of the values is meant?\n", program, dashes, name,
            (int)strcspn(given->value, "="), given->value);
    else
        fprintf(
            stderr, "%s: %s%s is given twice%s\n", program, dashes, name, option->arg ? "; it takes one value" : "");
    argp_help(argp, stderr, ARGP_HELP_SEE, program);
    exit(argp_err_exit_status);
}

/* Whether the option stood there before, since the last OPTION_NEXT if that matters. */
static bool is_repeated(const struct scan *scan, const struct given *given)
{
    for (int i = scan->given.n - 1; i >= 0; i--) {
        const struct given *before = &scan->given.at[i];
        bool keys = given->option->flags & OPTION_KEYS;
        if (keys && before->option->flags & OPTION_NEXT)
            return false;
        if (before->option == given->option && (!keys || same_key(before->value, given->value)))
            return !(given->option->flags & OPTION_LIST);
    }
    return false;
}

/* Mistakes of other kinds are argp_parse()'s to find. */
static void check_given_once(const struct argp *argp, int argc, char **argv, unsigned flags)
{
    struct scan scan = {0};
    char **copy = xcalloc((size_t)argc + 1, sizeof *copy); /* getopt_long() sorts it */
    memcpy(copy, argv, sizeof *copy * (size_t)argc);
    describe(&scan, argp, flags);
    optind = 0;
    opterr = 0;
    for (int index = 0, found; (found = getopt_long(argc, copy, scan.shorts.at, scan.longs.at, &index)) != -1;) {
        const struct argp_option *option = find(&scan, found, index);
        struct given given = {option, optarg};
        if (option && is_repeated(&scan, &given))
            given_twice(argp, argv[0], &given);
        if (option)
            vec_push(&scan.given, given);
    }
    free(copy);
    vec_free(&scan.options);
    vec_free(&scan.longs);
    vec_free(&scan.shorts);
    vec_free(&scan.given);
}

void arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    check_given_once(argp, argc, argv, flags);
    argp_parse(argp, argc, argv, flags, NULL, input);
}

static int count(const struct argument *argument, int least, int most)
{
    char *end = NULL;
    long n = strtol(argument->text, &end, 10);
    if (end == argument->text || *end || n < least || n > most)
        argp_error(argument->state, "--%s %s: a number from %d to %d is wanted", argument->option, argument->text,
            least, most);
    return (int)n;
}

enum { KEY_WIDE = 1 << 20, KEY_JOBS = 'j' };

static error_t parse_common(
    int key, char *arg /* NOLINT(readability-non-const-parameter): argp's type */, struct argp_state *state)
{
    if (key != KEY_WIDE && key != KEY_JOBS)
        return ARGP_ERR_UNKNOWN;
    if (key == KEY_JOBS)
        threads_limit(count(&(struct argument){"jobs", arg, state}, 1, THREADS_MAX));
    else if (setenv("COLUMNS", "0", 1) != 0) /* which cli/screen.h reads as no limit */
        argp_failure(state, CLI_WORLD, errno, "cannot set COLUMNS");
    return 0;
}

static const struct argp_option common_options[] = {
    {"jobs", KEY_JOBS, "N", 0, "Simulate N points at a time (default: as many as there are cores)", 0},
    {"wide", KEY_WIDE, NULL, 0, "All columns of tables, however narrow the terminal ($COLUMNS) is", 0},
    {0},
};
static const struct argp simulate_argp = {.options = common_options, .parser = parse_common};
static const struct argp table_argp = {.options = common_options + 1, .parser = parse_common};
const struct argp_child arguments_simulate[] = {{&simulate_argp, 0, NULL, 0}, {0}};
const struct argp_child arguments_table[] = {{&table_argp, 0, NULL, 0}, {0}};

double argument_scaled(const char *text)
{
    static const struct {
        char suffix;
        double factor;
    } suffixes[] = {{'\0', 1}, {'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}};
    char *end = NULL;
    if (!isdigit((unsigned char)*text) || strpbrk(text, "xX")) /* strtod would read hexadecimal */
        return 0;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (toupper((unsigned char)*end) == suffixes[i].suffix && (!*end || !end[1]) && isfinite(value))
            return value * suffixes[i].factor;
    return 0;
}

struct scenario_override argument_override(const struct argument *argument, struct arena *arena)
{
    const char *option = argument->option, *text = argument->text;
    size_t length = strcspn(text, "=");
    if (length == 0 || !text[length])
        argp_error(
            argument->state, "--%s %s: KEY=VALUE is wanted, as in --%s train.micro_batch=16", option, text, option);
    return (struct scenario_override){arena_printf(arena, "%.*s", (int)length, text), text + length + 1};
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
    argp_error(argument->state, "--%s %s: %s is wanted", argument->option, argument->text, known);
    return 0; /* argp_error exits */
}

static int forced(const struct argument *argument, const char *const *names, int n, const char *known)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(names[i], argument->text) == 0)
            return i;
    const char *near = nearest_name(argument->text, names, (size_t)n);
    if (near)
        argp_error(
            argument->state, "--%s %s: there is no such; did you mean '%s'?", argument->option, argument->text, near);
    else
        argp_error(argument->state, "--%s %s: %s is wanted", argument->option, argument->text, known);
    return COLL_ANY; /* argp_error exits */
}

void argument_algorithm(void *algorithm, const struct argument *argument)
{
    *(int *)algorithm = forced(argument, coll_algorithm_names, COLL_ALGORITHM_COUNT, FORCE_ALGORITHMS);
}

void argument_protocol(void *protocol, const struct argument *argument)
{
    *(int *)protocol = forced(argument, coll_protocol_names, COLL_PROTOCOL_COUNT, FORCE_PROTOCOLS);
}

void argument_collective(void *name, const struct argument *argument)
{
    const char **out = name;
    *out = nccl_collective(argument->text);
    if (!*out)
        argp_error(argument->state,
            "--collective %s: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_recv, "
            "gather, scatter or hypercube is wanted",
            argument->text);
}

void overrides_free(struct overrides *overrides)
{
    vec_free(&overrides->list);
    arena_release(&overrides->texts);
}

static void take_option(const struct command_option *option, void *member, const struct argument *argument)
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
        *(int *)member = count(argument, 1, option->most);
        break;
    case OPTION_COUNT64:
        *(int64_t *)member = count(argument, 1, option->most);
        break;
    case OPTION_SAMPLES:
        *(int *)member = count(argument, 2, MAX_SAMPLES);
        break;
    case OPTION_NAME:
        *(int *)member = argument_name(argument, option->names);
        break;
    case OPTION_SET:
        vec_push(&overrides->list, argument_override(argument, &overrides->texts));
        break;
    case OPTION_SEED:
        vec_push(&overrides->list, (struct scenario_override){"run.seed", argument->text});
        break;
    case OPTION_TAKE:
        option->take(member, argument);
        break;
    }
}

enum { FIRST_KEY = 256 };

struct parse {
    const struct command_line *line;
    void *command;
};

static int key_of(const struct command_line *line, int i)
{
    return line->options[i].letter ? line->options[i].letter : FIRST_KEY + i;
}

static error_t parse_line(int key, char *text, struct argp_state *state)
{
    const struct parse *parse = state->input;
    const struct command_line *line = parse->line;
    struct argument argument = {line->one, text, state};
    if (key == ARGP_KEY_ARG && line->take) {
        line->take(parse->command, &argument);
        return 0;
    }
    if (key == ARGP_KEY_ARG && line->one) {
        const char **one = (const char **)(void *)((char *)parse->command + line->member);
        if (*one)
            argp_error(state, "one %s at a time; '%s' is a second one", line->one, text);
        *one = text;
        return 0;
    }
    if (key == ARGP_KEY_NO_ARGS && line->missing)
        argp_error(state, "%s", line->missing);
    if (key == ARGP_KEY_END && line->check)
        line->check(parse->command, state);
    for (int i = 0; line->options && line->options[i].name; i++)
        if (key == key_of(line, i)) {
            argument.option = line->options[i].name;
            take_option(&line->options[i], (char *)parse->command + line->options[i].member, &argument);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

void command_line_parse(const struct command_line *line, int argc, char **argv, void *command)
{
    VEC(struct argp_option) options = {0};
    for (int i = 0; line->options && line->options[i].name; i++) {
        const struct command_option *option = &line->options[i];
        int flags = option->flags | (option->kind == OPTION_SET ? OPTION_KEYS : 0);
        vec_push(&options, (struct argp_option){option->name, key_of(line, i), option->value, flags, option->doc, 0});
    }
    vec_push(&options, (struct argp_option){0});
    const struct argp argp = {.options = options.at,
        .parser = parse_line,
        .children = line->children,
        .args_doc = line->args_doc,
        .doc = line->doc};
    arguments_parse(&argp, argc, argv, 0, &(struct parse){line, command});
    vec_free(&options);
}
