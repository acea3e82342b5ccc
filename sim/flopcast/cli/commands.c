/* The commands of flopcast: the table of them, dispatch, help, completion for shells, and manual
 * pages. Commands that need other libraries are in programs beside this one (lab, interop); the
 * table elsewhere[] says which, and program_become() replaces this process by them. Commands with
 * actions (calibrate fit) parse their first argument here and hand on the rest with the whole name
 * as argv[0]. Help, completion and manual pages are made of the same option tables that parse:
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
#include <stdio.h>
#include <string.h>

/* ---- commands that another program has ---- */

static const struct {
    const char *command, *program;
} elsewhere[] = {
    {"validate", PROGRAM_LAB},
    {"calibrate fit", PROGRAM_LAB},
    {"calibrate import", PROGRAM_LAB},
    {"calibrate check", PROGRAM_LAB},
    {"calibrate check trace", PROGRAM_INTEROP},
    {"calibrate show", PROGRAM_LAB},
    {"scenario import", PROGRAM_INTEROP},
    {"topology import", PROGRAM_INTEROP},
    {"trace scale", PROGRAM_INTEROP},
    {"replay", PROGRAM_INTEROP},
};

static const char *program_of(const char *command)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i].command, command) == 0)
            return elsewhere[i].program;
    return NULL;
}

/* Whether the program that has it is installed; of flopcast's own it is. */
static bool is_here(const char *command)
{
    struct arena arena = ARENA_INIT;
    const char *program = program_of(command);
    bool here = !program || files_program(&arena, program);
    arena_release(&arena);
    return here;
}

/* "calibrate check trace" is another program's than "calibrate check". */
int cmd_elsewhere(int argc, char **argv)
{
    const char *command = argv[0] + strlen("flopcast ");
    char longer[64]; /* its first argument may be a part of its name */
    snprintf(longer, sizeof longer, "%s %s", command, argc > 1 ? argv[1] : "");
    const char *program = program_of(longer);
    return program_become(program ? program : program_of(command), argc, argv);
}

/* ---- commands whose first argument names an action, which is a command with its own options ----
 */

enum { MOST_ACTIONS = 4 };

struct actions {
    const char *command, *names; /* names: for messages */
    struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } list[MOST_ACTIONS];
    int status;
};

static error_t parse_action(int key, char *arg, struct argp_state *state)
{
    struct actions *actions = state->input;
    const char *are = strchr(actions->names, ',') ? "are" : "is";
    if (key == ARGP_KEY_NO_ARGS)
        argp_error(state, "what to do is missing; there %s: %s", are, actions->names);
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    for (int i = 0; i < MOST_ACTIONS && actions->list[i].name; i++)
        if (strcmp(arg, actions->list[i].name) == 0) {
            int first = state->next - 1; /* the action's own name is its argv[0] */
            char whole[64];
            snprintf(whole, sizeof whole, "flopcast %s %s", actions->command, arg);
            state->argv[first] = whole;
            actions->status = actions->list[i].run(state->argc - first, state->argv + first);
            state->next = state->argc;
            return 0;
        }
    argp_error(state, "'%s' is nothing to do; there %s: %s", arg, are, actions->names);
    return 0;
}

static int act(
    struct actions *actions, int argc, char **argv, const char *args_doc, const char *doc)
{
    const struct argp argp = {.parser = parse_action, .args_doc = args_doc, .doc = doc};
    arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, actions);
    return actions->status;
}

int cmd_calibrate(int argc, char **argv)
{
    struct actions actions = {.command = "calibrate",
        .names = "fit, import, check, show",
        .list = {{"fit", cmd_elsewhere}, {"import", cmd_elsewhere}, {"check", cmd_elsewhere},
            {"show", cmd_elsewhere}}};
    return act(&actions, argc, argv, "fit|import|check|show [ARGUMENT...]",
        "Work with measurements.\v"
        "  fit         compute the parameters in topologies from measurements\n"
        "  import      put measurements into a database\n"
        "  check       compare a log of nccl-tests, or a trace, with what is predicted\n"
        "  show        print a fit that is in a database\n\n"
        "'flopcast calibrate fit --help' and so on explain each.");
}

int cmd_scenario(int argc, char **argv)
{
    struct actions actions = {
        .command = "scenario", .names = "import", .list = {{"import", cmd_elsewhere}}};
    return act(&actions, argc, argv, "import [ARGUMENT...]",
        "Work with scenario files.\v"
        "  import      make one of a configuration of DeepSpeed, accelerate, torchtitan or "
        "Megatron-LM\n\n"
        "'flopcast scenario import --help' explains it.");
}

int cmd_trace(int argc, char **argv)
{
    struct actions actions = {
        .command = "trace", .names = "scale", .list = {{"scale", cmd_elsewhere}}};
    return act(&actions, argc, argv, "scale [ARGUMENT...]",
        "Work with a trace of a real step.\v"
        "  scale       run it on any number of GPUs of a cluster\n\n"
        "'flopcast trace scale --help' explains it.");
}

static int cmd_help(int argc, char **argv);

static const struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
    bool ranks; /* of MPI can share its work (crew/ranks.h) */
} commands[] = {
    {"run", "simulate scenarios; print, and store in a database", cmd_run, true},
    {"plot", "draw a figure from a database", cmd_plot, false},
    {"report", "write stored runs as one HTML page", cmd_report, false},
    {"waterfall", "say why a job loses throughput as it grows", cmd_waterfall, false},
    {"sensitivity", "find the numbers that a prediction depends on", cmd_sensitivity, false},
    {"validate", "simulate published runs; compare with what was measured", cmd_elsewhere, true},
    {"whatif", "compare a scenario with changed ones, side by side", cmd_whatif, false},
    {"tune", "search the fastest and the cheapest way to train a model", cmd_tune, true},
    {"goodput", "months of training: what failures and checkpoints cost", cmd_goodput, false},
    {"memory", "estimate the memory that training a model takes", cmd_memory, false},
    {"capacity", "find the largest micro-batch and the fewest GPUs that fit", cmd_capacity, false},
    {"model", "show the layers and tensors of a model file", cmd_model, false},
    {"topology", "show a cluster, node or GPU with sources; import a node", cmd_topology, false},
    {"collective", "predict a collective as nccl-tests prints it", cmd_collective, false},
    {"merge", "put databases of shards together", cmd_merge, false},
    {"replay", "simulate a workload of Chakra traces, as ASTRA-sim takes it", cmd_elsewhere, false},
    {"trace", "scale a profiler's trace of a real step to more GPUs", cmd_trace, false},
    {"calibrate", "import measurements, fit hardware parameters to them", cmd_calibrate, false},
    {"scenario", "make a scenario of another framework's configuration", cmd_scenario, false},
    {"files", "list the scenarios, models and clusters that come along", cmd_files, false},
    {"help", "explain a command", cmd_help, false},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

/* NULL: there is none of that name. */
static const struct command *command_of(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

/* A scenario, or a model, by its name or path. */
static bool is_scenario(const char *name, struct arena *arena)
{
    return files_holder(arena, files_find(arena, FILES_SCENARIOS, name)) ||
           files_holder(arena, files_find(arena, FILES_MODELS, name));
}

/* Does not come back where there is none. */
static const struct command *commands_find(const char *name, struct argp_state *state)
{
    const char *names[N_COMMANDS];
    const struct command *found = command_of(name);
    if (found)
        return found;
    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    struct arena arena = ARENA_INIT;
    const char *near = nearest_name(name, names, N_COMMANDS);
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
        const struct command *command = commands_find(arg, state);
        int first = state->next - 1; /* the command's own name is its argv[0] */
        char whole[64];
        if (ranks_launched() > 1 && !command->ranks)
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
    const struct command *command;
    const char *topic, *word; /* of the topic settings, or alone */
};

/* What is said of a word; in settings alone, or everywhere. */
static bool look_up(const char *word, bool settings)
{
    struct scenario defaults = scenario_default();
    bool any = !settings && dictionary_terms(stdout, word), named = false;
    for (int i = 0; i < N_COMMANDS && !settings; i++)
        if (dictionary_has(commands[i].summary, word)) {
            printf("%sflopcast %s: %s\n", named ? "" : "commands:\n\n", commands[i].name,
                commands[i].summary);
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
static int cmd_help(int argc, char **argv)
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
    const struct command *command = help.command;
    char whole[64], option[] = "--help", *rewritten[] = {whole, option, NULL};
    snprintf(whole, sizeof whole, "flopcast%s%s", command ? " " : "", command ? command->name : "");
    return command ? command->run(2, rewritten) : cli_main(2, rewritten);
}

/* ---- for shells and packages: flopcast __complete WORD..., flopcast __man [PAGE [DATE]] ---- */

/* Of commands that have them, each with a page. */
static const struct action {
    const char *command, *name, *summary;
} actions[] = {
    {"calibrate", "fit", "compute the parameters in topologies from measurements"},
    {"calibrate", "import", "put measurements into a database"},
    {"calibrate", "check", "compare a log of nccl-tests, or a trace, with what is predicted"},
    {"calibrate", "show", "print a fit that is in a database"},
    {"scenario", "import", "make a scenario of another framework's configuration"},
    {"trace", "scale", "run a traced step on any number of GPUs of a cluster"},
    {"topology", "import", "describe a node from what a machine says about itself"},
};
enum { N_ACTIONS = sizeof actions / sizeof *actions };

static int run_described(const char *name, const char *action)
{
    const struct command *command = command_of(name);
    if (!command)
        return CLI_INPUT;
    char whole[64], first[64], *argv[] = {whole, first, NULL};
    snprintf(whole, sizeof whole, "flopcast %s", command->name);
    snprintf(first, sizeof first, "%s", action);
    return command->run(*action ? 2 : 1, argv);
}

/* help needs none, and these have those of their actions. */
static bool has_page(const struct command *command)
{
    return command->run != cmd_help && command->run != cmd_calibrate &&
           command->run != cmd_scenario && command->run != cmd_trace;
}

/* What the last of the words after the program's name may become. words: what stands behind
 * `flopcast`; the last one is under the cursor and may be empty. */
static int commands_complete(int n, const char *const *words)
{
    const char *last = n > 0 ? words[n - 1] : "", *name = n > 1 ? words[0] : "", *action = "";
    for (int i = 0; i < N_COMMANDS && n <= 1; i++)
        describe_candidate(commands[i].name, last, commands[i].summary);
    for (int i = 0; i < N_COMMANDS && n == 2 && strcmp(name, "help") == 0; i++)
        describe_candidate(commands[i].name, last, commands[i].summary);
    for (int i = 0; i < N_TOPICS && n == 2 && strcmp(name, "help") == 0; i++)
        describe_candidate(topics[i], last, "");
    if (n <= 1 || strcmp(name, "help") == 0 || !command_of(name))
        return CLI_OK;
    for (int i = 0; i < N_ACTIONS; i++) {
        if (strcmp(actions[i].command, name) != 0)
            continue;
        if (n == 2)
            describe_candidate(actions[i].name, last, actions[i].summary);
        else if (strcmp(actions[i].name, words[1]) == 0)
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
    for (int i = 0; i < N_COMMANDS; i++)
        if (has_page(&commands[i]))
            printf(".TP\n\\fBflopcast\\-%s\\fR(1)\n%s\n", commands[i].name, commands[i].summary);
    for (int i = 0; i < N_ACTIONS; i++)
        printf(".TP\n\\fBflopcast\\-%s\\-%s\\fR(1)\n%s\n", actions[i].command, actions[i].name,
            actions[i].summary);
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
    for (int i = 0; i < N_COMMANDS + N_ACTIONS; i++) {
        const struct command *command = i < N_COMMANDS ? &commands[i] : NULL;
        const struct action *action = command ? NULL : &actions[i - N_COMMANDS];
        const char *of = command ? command->name : action->command;
        if (command && !has_page(command))
            continue;
        snprintf(name, sizeof name, "%s%s%s", of, action ? " " : "", action ? action->name : "");
        bool here = is_here(name);
        snprintf(name, sizeof name, "flopcast-%s%s%s.1", of, action ? "-" : "",
            action ? action->name : "");
        if (!page && here)
            puts(name);
        if (page && strcmp(name, page) == 0) {
            describe_as_manual(command ? command->summary : action->summary);
            return run_described(of, action ? action->name : "");
        }
    }
    return page ? CLI_INPUT : CLI_OK;
}

int cli_main(int argc, char **argv)
{
    char doc[2048];
    size_t n = (size_t)snprintf(doc, sizeof doc,
        "Predicts how the throughput of multi-GPU training changes with the cluster.\vCommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        n += (size_t)snprintf(
            doc + n, sizeof doc - n, "  %-12s%s\n", commands[i].name, commands[i].summary);
    n += (size_t)snprintf(doc + n, sizeof doc - n,
        "\n'flopcast COMMAND --help' explains each; 'flopcast help settings' lists what\na "
        "scenario can set, 'help models' the models, 'help clusters' what a cluster file holds "
        "(nodes, gpus, stacks).");
    BUG_IF(n >= sizeof doc, "the list of commands needs more room");
    char name[] = "flopcast";
    argv[0] = name;
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
