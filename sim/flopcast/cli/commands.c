/* The commands of flopcast: dispatch, help, completion for shells, and manual
 * pages. Commands that need other libraries are in programs beside this one (lab, interop);
 * their rows in the table, which is made of all COMMAND()s, say which, and program_become()
 * replaces this process by them. Commands with actions (calibrate fit) parse their first argument
 * here and hand on the rest with the whole name as argv[0]. Help, completion and manual pages are
 * made of the same option tables that parse:
 * __complete and __man set a mode (options/describe.h), run the command, and its parser prints
 * instead of parsing.
 *
 * What is subtle: argp is called with ARGP_IN_ORDER, so options behind a command belong to the
 * command; a command that cannot share its work refuses to run under mpirun with several ranks; an
 * unknown command is compared with names, and with files, as people leave out `run`. */
#include "base/files.h"
#include "options/arguments.h"
#include "cli/cli.h"
#include "options/describe.h"
#include "options/program.h"
#include "cli/dictionary.h"
#include "rows/table.h"
#include "rows/words.h"
#include "crew/ranks.h"
#include "scenario/scenario.h"
#include "scenario/stack.h"

#include <argp.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

COMMAND(cli_main, 0, "", COMMAND_PART, "predict the throughput of multi-GPU training",
    "flopcast run llama2_7b_h100_fsdp");
COMMAND(cmd_group, 34, "trace", COMMAND_GROUP,
    "scale a profiler's trace of a real step to more GPUs",
    "flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --trace r0.json.gz &&\n"
    "flopcast trace scale r0.json.gz --topology dgx-1v-ib --gpus 8,64");
COMMAND(cmd_group, 36, "calibrate", COMMAND_GROUP,
    "import measurements, fit hardware parameters to them", "flopcast calibrate fit nccl");
COMMAND(cmd_group, 38, "scenario", COMMAND_GROUP,
    "make a scenario of another framework's configuration",
    "flopcast scenario import llama3_8b.toml \\\n"
    "    --topology h100-8x400g --gpus 64 --out mine.yaml");
COMMAND(cmd_help, 42, "help", COMMAND_NO_PAGE, "explain a command", "flopcast help settings");

/* Made by options/commands.cmake. */
extern const struct command_row flopcast_commands[];

/* From `at` on the first that is in lists, a command or an action of one; NULL: there is no more.
 */
static const struct command_row *next_listed(const struct command_row *at, bool action)
{
    while (at->name && (at->flags & COMMAND_PART || (strchr(at->name, ' ') != NULL) != action))
        at++;
    return at->name ? at : NULL;
}
#define EACH_LISTED(at, action)                                                                    \
    const struct command_row *at = next_listed(flopcast_commands, action);                         \
    at;                                                                                            \
    at = next_listed(at + 1, action)

/* NULL: there is none of that name. */
static const struct command_row *command_of(const char *name)
{
    for (const struct command_row *at = flopcast_commands; at->name; at++)
        if (strcmp(name, at->name) == 0)
            return at;
    return NULL;
}

/* "scale" of "trace scale", where the group is trace; NULL: it is none of its actions. */
static const char *action_of(const struct command_row *command, const char *group)
{
    size_t n = strlen(group);
    return strncmp(command->name, group, n) == 0 && command->name[n] == ' ' ? command->name + n + 1
                                                                            : NULL;
}

/* Whether the program that has it is installed; of flopcast's own it is. */
static bool is_here(const struct command_row *command)
{
    struct arena arena = ARENA_INIT;
    bool here = !command->program || files_program(&arena, command->program);
    arena_release(&arena);
    return here;
}

/* "calibrate check trace" is another program's than "calibrate check". */
int cmd_elsewhere(int argc, char **argv)
{
    const char *name = argv[0] + strlen("flopcast ");
    char longer[64]; /* its first argument may be a part of its name */
    snprintf(longer, sizeof longer, "%s %s", name, argc > 1 ? argv[1] : "");
    const struct command_row *command = command_of(longer);
    command = command && command->program ? command : command_of(name);
    return program_become(command->program, argc, argv);
}

/* ---- commands whose first argument names an action, which is a command with its own options ----
 */

struct group {
    const char *name, *names; /* names: of its actions, for messages */
    int status;
};

static error_t parse_action(int key, char *arg, struct argp_state *state)
{
    struct group *group = state->input;
    const char *are = strchr(group->names, ',') ? "are" : "is";
    if (key == ARGP_KEY_NO_ARGS)
        argp_error(state, "what to do is missing; there %s: %s", are, group->names);
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    for (EACH_LISTED(at, true)) {
        const char *action = action_of(at, group->name);
        if (!action || strcmp(arg, action) != 0)
            continue;
        int first = state->next - 1; /* the action's own name is its argv[0] */
        char whole[64];
        snprintf(whole, sizeof whole, "flopcast %s", at->name);
        state->argv[first] = whole;
        group->status = at->run(state->argc - first, state->argv + first);
        state->next = state->argc;
        return 0;
    }
    argp_error(state, "'%s' is nothing to do; there %s: %s", arg, are, group->names);
    return 0;
}

int cmd_group(int argc, char **argv)
{
    struct arena arena = ARENA_INIT;
    struct group group = {.name = argv[0] + strlen("flopcast "), .names = ""};
    const char *does = command_of(group.name)->summary,
               *doc = arena_printf(&arena, "%c%s.\v", toupper((unsigned char)*does), does + 1),
               *args = "", *first = NULL;
    for (EACH_LISTED(at, true)) {
        const char *action = action_of(at, group.name);
        if (!action)
            continue;
        args = arena_printf(&arena, "%s%s%s", args, first ? "|" : "", action);
        group.names = arena_printf(&arena, "%s%s%s", group.names, first ? ", " : "", action);
        doc = arena_printf(&arena, "%s  %-12s%s\n", doc, action, at->summary);
        first = first ? first : at->name;
    }
    const struct argp argp = {.parser = parse_action,
        .args_doc = arena_printf(&arena, "%s [ARGUMENT...]", args),
        .doc = arena_printf(&arena, "%s\n'flopcast %s --help' explains it.", doc, first)};
    arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &group);
    arena_release(&arena);
    return group.status;
}

/* A scenario, or a model, by its name or path. */
static bool is_scenario(const char *name, struct arena *arena)
{
    return files_holder(arena, files_find(arena, FILES_SCENARIOS, name)) ||
           files_holder(arena, files_find(arena, FILES_MODELS, name));
}

/* Does not come back where there is none. */
static const struct command_row *commands_find(const char *name, struct argp_state *state)
{
    enum { MOST = 100 };
    const char *names[MOST];
    size_t n = 0;
    for (EACH_LISTED(at, false)) {
        if (strcmp(name, at->name) == 0)
            return at;
        BUG_IF(n == MOST, "more than %d commands", MOST);
        names[n++] = at->name;
    }
    struct arena arena = ARENA_INIT;
    const char *near = nearest_name(name, names, n);
    if (is_scenario(name, &arena))
        argp_error(state, "'%s' is no command but a file; flopcast run %s", name,
            words_shell(name, &arena));
    if (near)
        argp_error(state, "there is no command '%s'; did you mean '%s'?", name, near);
    else
        argp_error(state, "there is no command '%s'; `flopcast --help` lists them", name);
    return NULL; /* argp_error exits */
}

static error_t commands_parse(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_ARG: {
        const struct command_row *command = commands_find(arg, state);
        int first = state->next - 1; /* the command's own name is its argv[0] */
        char whole[64];
        if (ranks_launched() > 1 && !(command->flags & COMMAND_SHARES))
            argp_error(state,
                "%s is started %d times by mpirun, but its work cannot be shared; run, validate "
                "and tune share theirs",
                command->name, ranks_launched());
        snprintf(whole, sizeof whole, "flopcast %s", command->name);
        state->argv[first] = whole;
        *(int *)state->input = command->run(state->argc - first, state->argv + first);
        state->next = state->argc;
        return 0;
    }
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a command is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Every line of it holds from everywhere: a test runs it. */
static const char example[] =
    "    name: mine\n"
    "    model: scenarios/models/llama2-7b.yaml\n"
    "    cluster: {topology: topologies/clusters/h100-8x400g.yaml, gpus: 64}\n"
    "    train: {micro_batch: 2, seq_len: 4096, attention: flash}\n"
    "    strategy: fsdp\n"
    "    sweep:\n"
    "      - fsdp.sharding_strategy: [FULL_SHARD, HYBRID_SHARD]\n"
    "        train.activation_checkpointing: [none, full]\n"
    "      - cluster.gpus: [64, 256]\n";

static void commands_print_settings(void)
{
    struct scenario defaults = scenario_default();
    puts("What a scenario can set, --set too, and 'sweep' by lists: the default (-: none), what it "
         "is, what is allowed.\n"
         "A scenario needs name, model, cluster.topology, cluster.gpus, train.micro_batch and, "
         "unless it trains on images,\n"
         "train.seq_len. Lists of one item of a sweep go together, items are crossed. So a whole "
         "one may be:\n");
    puts(example);
    config_print_reference(stdout, &scenario_table, &defaults);
}

/* Files that scenarios name, called as `flopcast files` groups them. */
static const struct reference {
    const char *name, *folder;
    const struct config_table *table;
    const char *setting; /* what its numbers are called in a scenario; NULL: they are not */
    const char *prefix, *heading; /* of these settings, for people */
} references[] = {{"clusters", "topologies/clusters", &hw_cluster_table, "cluster", "cluster.",
                      "numbers of a cluster's file:"},
    {"nodes", "topologies/nodes", &hw_node_table, "cluster.node", "cluster.node.",
        "numbers of a node's file:"},
    {"gpus", "topologies/gpus", &hw_gpu_table, "gpu", "gpu.", "numbers of a GPU's file:"},
    {"stacks", "scenarios/stacks", &stack_table, NULL, NULL, NULL}};
enum { N_REFERENCES = sizeof references / sizeof *references };

static void print_reference(const struct reference *reference)
{
    union {
        struct hw_cluster cluster;
        struct hw_node node;
        struct hw_gpu gpu;
        struct stack stack;
    } defaults = {0};
    if (reference->table == &stack_table)
        defaults.stack = stack_default();
    printf("The keys of %s file of %s: needed or the default (-: none), meaning, what is allowed.\n"
           "Copy an existing one (`flopcast files %s`). Every number says where it is from:\n\n"
           "    {value: 400 Gb/s, kind: datasheet, source: \"who says so\"}\n\n"
           "kind: datasheet, measured, fitted (then with std_error) or assumed (the source says "
           "why). A key that a section\n"
           "needs, as network.kind, is needed only in a file that has the section.\n\n",
        reference->table->what, reference->folder, reference->name);
    if (reference->setting)
        printf("A file that says 'extends: NAME', another file of its kind, states only what "
               "differs.\n"
               "A scenario or --set may replace any of these numbers, and sweep them: "
               "%s.KEY=VALUE.\n\n",
            reference->setting);
    config_print_reference(stdout, reference->table, &defaults);
}

static const char *const topics[] = {"settings", "models", "clusters", "nodes", "gpus", "stacks"};
enum { N_TOPICS = sizeof topics / sizeof *topics };

struct help {
    const struct command_row *command;
    const char *topic, *word; /* of the topic settings, or alone */
};

/* What is said of a word; in settings alone, or everywhere. */
static bool look_up(const char *word, bool settings)
{
    struct scenario defaults = scenario_default();
    bool any = !settings && dictionary_terms(stdout, word), named = false;
    for (EACH_LISTED(at, false))
        if (!settings && dictionary_has(at->summary, word)) {
            printf("%sflopcast %s: %s\n", named ? "" : "commands:\n\n", at->name, at->summary);
            named = true;
        }
    fputs(named ? "\n" : "", stdout);
    any |= named;
    any |= dictionary_settings(
        stdout, "settings of a scenario, and of --set:", "", &scenario_table, &defaults, word);
    for (int i = 0; i < N_REFERENCES; i++)
        if (references[i].setting)
            any |= dictionary_settings(stdout, references[i].heading, references[i].prefix,
                references[i].table, NULL, word);
    return any | (!settings && dictionary_columns(stdout, word));
}

/* Order of meanings: a command, a topic, a misspelled topic, then any word that terms, settings
 * or columns know. */
static error_t parse_help(int key, char *arg, struct argp_state *state)
{
    struct help *help = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (help->command)
        argp_error(state, "one command at a time, not '%s' too; see 'flopcast %s %s --help'", arg,
            help->command->name, arg);
    if (help->topic && strcmp(help->topic, "settings") == 0 && !help->word) {
        help->word = arg;
        if (!look_up(arg, true))
            argp_error(state, "no setting says anything of '%s'", arg);
        return 0;
    }
    if (help->topic || help->word)
        argp_error(
            state, "'%s' stands alone, without '%s'", help->topic ? help->topic : help->word, arg);
    const char *near = command_of(arg) ? NULL : nearest_name(arg, topics, N_TOPICS);
    if (!command_of(arg) && !near && look_up(arg, false)) {
        help->word = arg;
        return 0;
    }
    if (near && strcmp(near, arg) != 0)
        argp_error(state, "there is no '%s' to explain; did you mean '%s'?", arg, near);
    help->topic = near;
    help->command = near ? NULL : commands_find(arg, state);
    return 0;
}

/* help COMMAND is COMMAND --help, help alone is --help, help settings the reference of scenarios,
 * help clusters that of cluster files. */
int cmd_help(int argc, char **argv)
{
    const struct argp argp = {.parser = parse_help,
        .args_doc = "[COMMAND|settings|models|clusters|nodes|gpus|stacks|WORD]",
        .doc =
            "Explain a command, list the commands, all settings of a scenario with their defaults, "
            "the models that come along, or what files of models, clusters, nodes, GPUs and stack "
            "profiles hold. Of any other WORD, as mfu, kv or checkpointing: what terms, commands, "
            "settings and columns say of it; 'settings WORD' looks in settings alone."};
    struct help help = {0};
    arguments_parse(&argp, argc, argv, 0, &help);
    if (help.word)
        return CLI_OK;
    if (help.topic && strcmp(help.topic, "models") == 0)
        return models_help();
    if (help.topic && strcmp(help.topic, "settings") == 0)
        commands_print_settings();
    for (int i = 0; i < N_REFERENCES && help.topic; i++)
        if (strcmp(help.topic, references[i].name) == 0)
            print_reference(&references[i]);
    if (help.topic)
        return CLI_OK;
    const struct command_row *command = help.command;
    char whole[64], option[] = "--help", *rewritten[] = {whole, option, NULL};
    snprintf(whole, sizeof whole, "flopcast%s%s", command ? " " : "", command ? command->name : "");
    return command ? command->run(2, rewritten) : cli_main(2, rewritten);
}

/* ---- for shells and packages: flopcast __complete WORD..., flopcast __man [PAGE [DATE]] ---- */

static int run_described(const char *name, const char *action)
{
    const struct command_row *command = command_of(name);
    if (!command)
        return CLI_INPUT;
    char whole[64], first[64], *argv[] = {whole, first, NULL};
    snprintf(whole, sizeof whole, "flopcast %s", command->name);
    snprintf(first, sizeof first, "%s", action);
    return command->run(*action ? 2 : 1, argv);
}

static bool has_page(const struct command_row *command)
{
    return !(command->flags & (COMMAND_GROUP | COMMAND_NO_PAGE));
}

/* What the last of the words after the program's name may become. words: what stands behind
 * `flopcast`; the last one is under the cursor and may be empty. */
static int commands_complete(int n, const char *const *words)
{
    const char *last = n > 0 ? words[n - 1] : "", *name = n > 1 ? words[0] : "", *action = "";
    for (EACH_LISTED(at, false))
        if (n <= 1 || (n == 2 && strcmp(name, "help") == 0))
            describe_candidate(at->name, last, at->summary);
    for (int i = 0; i < N_TOPICS && n == 2 && strcmp(name, "help") == 0; i++)
        describe_candidate(topics[i], last, "");
    if (n <= 1 || strcmp(name, "help") == 0 || !command_of(name))
        return CLI_OK;
    for (EACH_LISTED(at, true)) {
        const char *of = action_of(at, name);
        if (of && n == 2)
            describe_candidate(of, last, at->summary);
        else if (of && strcmp(of, words[1]) == 0)
            action = words[1];
    }
    if (command_of(name) && !has_page(command_of(name)) && !*action)
        return CLI_OK;
    describe_as_completions(words + 1 + (*action != '\0'), n - 1 - (*action != '\0'));
    return run_described(name, action);
}

/* The page of all commands, as cli_main's --help. */
static void manual_of_all(void)
{
    describe_head(stdout, "flopcast", 1, "predict the throughput of multi-GPU training");
    puts(".SH SYNOPSIS\n\\fBflopcast\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR...]\n.SH DESCRIPTION\n"
         "A discrete\\-event simulator of multi\\-GPU training: how TFLOPS per GPU change with the "
         "cluster, whether a job fits into memory, and what would make it faster.\n.SH COMMANDS");
    for (EACH_LISTED(at, false))
        if (has_page(at))
            printf(".TP\n\\fBflopcast\\-%s\\fR(1)\n%s\n", at->name, at->summary);
    for (EACH_LISTED(at, true)) {
        int group = (int)strcspn(at->name, " ");
        printf(".TP\n\\fBflopcast\\-%.*s\\-%s\\fR(1)\n%s\n", group, at->name, at->name + group + 1,
            at->summary);
    }
    puts(".SH EXAMPLE\n.nf\nflopcast run t5_scaling\nflopcast memory llama3.1\\-8b \\-\\-gpu "
         "h100\n.fi\n"
         ".SH ENVIRONMENT\n.TP\n\\fBFLOPCAST_DATA\\fR\nThe folder of scenarios, models and "
         "clusters, in place of the installed one.\n.TP\n\\fBFLOPCAST_SILENT_S\\fR\nSeconds before "
         "a command that still runs says on standard error how far it is (default: 4; on a "
         "terminal 1).\n.TP\n\\fBFLOPCAST_PLOTS\\fR\nA folder of figures that come before the "
         "installed ones.\n"
         ".TP\n\\fBCOLUMNS\\fR\nThe width of tables; 0: no limit.\n"
         ".SH SEE ALSO\n\\fBflopcast\\-scenario\\fR(5), \\fBflopcast\\-topology\\fR(5)");
}

static void manual_of_scenario(void)
{
    struct scenario defaults = scenario_default();
    describe_head(stdout, "flopcast-scenario", 5, "what a scenario file can set");
    puts(".SH DESCRIPTION");
    describe_text(stdout,
        "A YAML file. It needs name, model, cluster.topology, cluster.gpus, "
        "train.micro_batch and, unless it trains on images, train.seq_len. 'sweep' sets "
        "lists of values: those of one item go together, items are crossed. Keys with a "
        "dot are sections, or written as here; --set KEY=VALUE takes them, too.");
    puts(".SH EXAMPLE");
    describe_text(stdout, example);
    puts(".SH SETTINGS\nThe default (\\-: none), what it is, what is allowed.");
    describe_reference(stdout, &scenario_table, &defaults);
    puts(".SH SEE ALSO\n\\fBflopcast\\-run\\fR(1), \\fBflopcast\\-topology\\fR(5)");
}

static void manual_of_topology(void)
{
    static const struct hw_cluster cluster;
    static const struct hw_node node;
    static const struct hw_gpu gpu;
    const void *const defaults[] = {&cluster, &node, &gpu};
    describe_head(stdout, "flopcast-topology", 5, "files of clusters, nodes and GPUs");
    puts(".SH DESCRIPTION");
    describe_text(stdout, "YAML files: a cluster names its node, a node its GPU. Every number says "
                          "where it is from:\n\n"
                          "    {value: 400 Gb/s, kind: datasheet, source: \"who says so\"}\n\n"
                          "kind is datasheet, measured, fitted (then with std_error) or assumed "
                          "(the source says why). A file that says 'extends: NAME', another file "
                          "of its kind, states only what differs.");
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        printf(".SH %s\n", references[i].name);
        describe_reference(stdout, references[i].table, defaults[i]);
    }
    puts(".SH SEE ALSO\n\\fBflopcast\\-topology\\fR(1), \\fBflopcast\\-calibrate\\-fit\\fR(1), "
         "\\fBflopcast\\-scenario\\fR(5)");
}

/* A page by its name, as flopcast-calibrate-fit.1; without one the names of all. Names are
 * printed only of commands whose program is installed; a page that is asked for is looked for
 * among all. */
static int commands_manual(const char *page)
{
    static const struct {
        const char *page;
        void (*print)(void);
    } others[] = {{"flopcast.1", manual_of_all}, {"flopcast-scenario.5", manual_of_scenario},
        {"flopcast-topology.5", manual_of_topology}};
    char name[64];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!page)
            puts(others[i].page);
        else if (strcmp(others[i].page, page) == 0)
            return others[i].print(), CLI_OK;
    for (const struct command_row *at = flopcast_commands; at->name; at++) {
        if (at->flags & COMMAND_PART || !has_page(at))
            continue;
        int group = (int)strcspn(at->name, " ");
        const char *action = at->name[group] ? at->name + group + 1 : "";
        snprintf(
            name, sizeof name, "flopcast-%.*s%s%s.1", group, at->name, *action ? "-" : "", action);
        if (!page && is_here(at))
            puts(name);
        if (page && strcmp(name, page) == 0) {
            describe_as_manual(at->summary);
            snprintf(name, sizeof name, "%.*s", group, at->name);
            return run_described(name, action);
        }
    }
    return page ? CLI_INPUT : CLI_OK;
}

int cli_main(int argc, char **argv)
{
    char doc[2048];
    size_t n = (size_t)snprintf(doc, sizeof doc,
        "Predicts how the throughput of multi-GPU training changes with the cluster.\vCommands:\n");
    for (EACH_LISTED(at, false))
        n += (size_t)snprintf(doc + n, sizeof doc - n, "  %-12s%s\n", at->name, at->summary);
    n += (size_t)snprintf(doc + n, sizeof doc - n,
        "\n'flopcast COMMAND --help' explains each; 'flopcast help settings' lists what\na "
        "scenario can set, 'help models' the models, 'help clusters' what a cluster file holds "
        "(nodes, gpus, stacks).");
    BUG_IF(n >= sizeof doc, "the list of commands needs more room");
    static char name[] = "flopcast";
    argv[0] = name;
    command_take(flopcast_commands);
    const struct argp argp = {
        .parser = commands_parse, .args_doc = "COMMAND [ARGUMENT...]", .doc = doc};
    int status = CLI_OK;
    if (argc > 1 && strcmp(argv[1], "__complete") == 0)
        return commands_complete(argc - 2, (const char *const *)argv + 2);
    if (argc > 1 && strcmp(argv[1], "__man") == 0)
        return describe_date(argc > 3 ? argv[3] : NULL), commands_manual(argc > 2 ? argv[2] : NULL);
    arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &status);
    return status;
}
