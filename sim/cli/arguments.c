#include "cli/arguments.h"

#include "base/threads.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "scenario/scenario.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

enum { KEY_WIDE = 1 << 20 };

/* cli/screen.h reads COLUMNS, 0 as no limit. */
static error_t parse_wide(
    int key, char *arg /* NOLINT(readability-non-const-parameter): argp's type */, struct argp_state *state)
{
    (void)arg;
    if (key != KEY_WIDE)
        return ARGP_ERR_UNKNOWN;
    if (setenv("COLUMNS", "0", 1) != 0)
        argp_failure(state, CLI_WORLD, errno, "cannot set COLUMNS");
    return 0;
}

static const struct argp_option wide_options[] = {
    {"wide", KEY_WIDE, NULL, 0, "All columns of tables, however narrow the terminal ($COLUMNS) is", 0},
    {0},
};
static const struct argp wide_argp = {.options = wide_options, .parser = parse_wide};
const struct argp_child arguments_table[] = {{&wide_argp, 0, NULL, 0}, {0}};

static error_t parse_jobs(int key, char *arg, struct argp_state *state)
{
    if (key != 'j')
        return ARGP_ERR_UNKNOWN;
    threads_limit(argument_count("jobs", arg, THREADS_MAX, state));
    return 0;
}

static const struct argp_option jobs_options[] = {
    {"jobs", 'j', "N", 0, "Simulate N points at a time (default: as many as there are cores)", 0},
    {0},
};
static const struct argp jobs_argp = {.options = jobs_options, .parser = parse_jobs};
const struct argp_child arguments_simulate[] = {{&wide_argp, 0, NULL, 0}, {&jobs_argp, 0, NULL, 0}, {0}};

static int count(const char *option, const char *text, int least, int most, struct argp_state *state)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < least || n > most)
        argp_error(state, "--%s %s: a number from %d to %d is wanted", option, text, least, most);
    return (int)n;
}

int argument_count(const char *option, const char *text, int most, struct argp_state *state)
{
    return count(option, text, 1, most, state);
}

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

int argument_samples(const char *text, struct argp_state *state)
{
    return count("samples", text, 2, MAX_SAMPLES, state);
}

struct scenario_override argument_override(
    const char *option, const char *text, struct arena *arena, struct argp_state *state)
{
    size_t length = strcspn(text, "=");
    if (length == 0 || !text[length])
        argp_error(state, "--%s %s: KEY=VALUE is wanted, as in --%s train.micro_batch=16", option, text, option);
    return (struct scenario_override){arena_printf(arena, "%.*s", (int)length, text), text + length + 1};
}

int argument_name(const char *option, const char *text, const char *const *names, struct argp_state *state)
{
    char known[128] = "";
    size_t used = 0;
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0)
            return i;
        const char *joint = i == 0 ? "" : names[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", joint, names[i]);
        BUG_IF(used >= sizeof known, "the names of --%s need more room", option);
    }
    argp_error(state, "--%s %s: %s is wanted", option, text, known);
    return 0; /* argp_error exits */
}
