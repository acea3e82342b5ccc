/* `flopcast scenario import`: configurations of other frameworks as a scenario file, with lists
 * of what became of each setting.
 *
 * Files are read by their formats into one struct configuration (exchange/configuration.h),
 * which decides the fate of every setting: taken, left aside, open, not understood. The scenario
 * is written, with the model beside it where the files describe one, and then loaded back, so
 * that what does not go together is reported where it stands. What is subtle: paths of the
 * command line are named from the folder of the new file; the exit status is 1 where something
 * is missing or was not understood and may change speed or memory, as a scenario that leaves it
 * out would answer another question. */
#include "options/arguments.h"
#include "options/command.h"
#include "rows/words.h"

#include "base/files.h"
#include "exchange/configuration.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

COMMAND(scenario_import, 52, "scenario import", 0,
    "make a scenario of another framework's configuration",
    "flopcast scenario import llama3_8b.toml \\\n"
    "    --topology h100-8x400g --gpus 64 --out mine.yaml");

struct import {
    VEC(const char *) files;
    const char *out;
    enum configuration_format from;
    bool has_from, force;
    struct configuration_given given;
    struct overrides overrides;
    struct arena arena;
};

static void scenario_import_take_file(void *self, const struct argument *argument)
{
    struct import *import = self;
    vec_push(&import->files, argument->text);
}

static void take_from(void *self, const struct argument *argument)
{
    struct import *import = self;
    import->from = (enum configuration_format)argument_name(argument, configuration_format_names);
    import->has_from = true;
}

static void scenario_import_check(void *self, struct argp_state *state)
{
    const struct import *import = self;
    if (import->files.n == 0)
        argp_error(state, "a file is missing");
}

static const struct command_option scenario_import_options[] = {
    {"out", "FILE", "The scenario file (default: stdout, and the lists to stderr)", OPTION_TEXT,
        AT(import, out)},
    {"from", "FORMAT",
        "deepspeed, accelerate, automodel, primus, torchtitan or megatron (default: by the ending, "
        ".json, .yaml, .toml, all else megatron, and by the keys of YAML)",
        OPTION_TAKE, .take = take_from},
    {"name", "NAME", "What the scenario is called (default: as the first file)", OPTION_TEXT,
        AT(import, given.name)},
    {"model", "NAME", "The model, where the files do not say it", OPTION_TEXT,
        AT(import, given.model)},
    {"topology", "NAME", "The cluster, which no file says", OPTION_TEXT,
        AT(import, given.topology)},
    {"gpus", "N", "The number of GPUs, in place of what the files say", OPTION_COUNT,
        AT(import, given.gpus), .most = 1 << 24},
    SETTING_OPTION(struct import, "seq-len", "T", "train.seq_len", "Tokens of a sequence"),
    SETTING_OPTION(
        struct import, "micro-batch", "B", "train.micro_batch", "Sequences on a GPU at once"),
    {"stack", "NAME", "The stack profile, in place of the one that is assumed; none: of none",
        OPTION_TEXT, AT(import, given.stack)},
    {"set", "KEY=VALUE", "A setting of the scenario, as of flopcast run", OPTION_SET,
        AT(import, overrides)},
    {"force", NULL,
        "Take the scenario although settings are not understood that may change speed or memory, "
        "and a config.json of --model although it has such keys",
        OPTION_FLAG, AT(import, force)},
    {0},
};

/* ---- the lists ---- */

static void scenario_import_print_settings(
    FILE *out, const struct configuration *config, enum configuration_fate fate)
{
    for (int i = 0; i < config->settings.n; i++) {
        const struct configuration_setting *setting = &config->settings.at[i];
        if (setting->fate != fate)
            continue;
        fprintf(out, "  %s:%d:%d: %s%s%s", setting->at.file, setting->at.line, setting->at.column,
            setting->name, setting->bare ? "" : " = ", setting->value);
        fprintf(out, setting->words ? fate == FATE_TAKEN ? " -> %s\n" : " (%s)\n" : "%s\n",
            setting->words ? setting->words : "");
    }
}

static void print_sentences(FILE *out, const char *head, const char *const *sentences, int n)
{
    if (n > 0)
        fprintf(out, "%s: %d\n", head, n);
    for (int i = 0; i < n; i++)
        fprintf(out, "  %s\n", sentences[i]);
}

static void print_lists(FILE *out, const struct configuration *config)
{
    static const struct {
        enum configuration_fate fate;
        const char *head;
    } parts[] = {{FATE_TAKEN, "understood"},
        {FATE_ASIDE, "left aside, as it changes neither speed nor memory here"},
        {FATE_OPEN, "left open by the files"}, {FATE_NOT_UNDERSTOOD, "not understood"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int n = configuration_count(config, parts[i].fate);
        if (n == 0 && parts[i].fate == FATE_OPEN)
            continue;
        fprintf(out, "%s: %d\n", parts[i].head, n);
        scenario_import_print_settings(out, config, parts[i].fate);
    }
    print_sentences(out, "assumed", config->assumptions.at, config->assumptions.n);
    print_sentences(out, "missing", config->missing.at, config->missing.n);
}

/* ---- the files ---- */

/* A path of the working folder as the scenario file will name it; short names stay. */
static const char *named_from(struct import *import, const char *path)
{
    bool there = path && import->out && access(path, F_OK) == 0;
    return there ? files_name_from(&import->arena, import->out, path) : path;
}

static void name_from_out(struct import *import)
{
    struct configuration_given *given = &import->given;
    given->model = named_from(import, given->model);
    given->topology = named_from(import, given->topology);
    given->stack = named_from(import, given->stack);
    for (int i = 0; i < import->overrides.list.n; i++) {
        struct scenario_override *set = &import->overrides.list.at[i];
        size_t offset = 0;
        const struct config_field *field =
            config_field_at(&scenario_table, scenario_key_path(set->key, &import->arena), &offset);
        if (field && field->type == FIELD_PATH)
            set->value = named_from(import, set->value);
    }
}

/* Removed again where it cannot be written whole. */
static enum status finish_file(FILE *file, const char *path, struct diag *diag)
{
    bool ok = file && ferror(file) == 0;
    ok = file && fclose(file) == 0 && ok;
    if (ok)
        return STATUS_OK;
    int why = errno;
    if (file)
        unlink(path);
    return diag_io(diag, (struct source_pos){.file = path}, "cannot write: %s", strerror(why));
}

/* The model beside the scenario, as the scenario calls it; NULL: none. */
static const char *write_model(
    struct import *import, const struct configuration *config, struct diag *diag)
{
    const char *out = import->out, *slash = strrchr(out, '/');
    const char *name = words_stem(out, &import->arena);
    const char *file = arena_printf(&import->arena, "%s.model.yaml", name);
    const char *path =
        slash ? arena_printf(&import->arena, "%.*s%s", (int)(slash - out + 1), out, file) : file;
    FILE *stream = fopen(path, "w");
    if (stream)
        configuration_write_model(stream, config, name);
    return finish_file(stream, path, diag) == STATUS_OK ? file : NULL;
}

/* The scenario as flopcast reads it: what does not go together is reported where it stands there.
 */
static void load_back(const char *path, struct arena *arena, struct diag *diag)
{
    struct scenario_set set;
    scenario_load(&set, path, NULL, 0, arena, diag);
}

/* A scenario that is not whole, or leaves out what may matter, is not taken for one that says
 * what the files say. --force takes responsibility for what was not understood, not for what is
 * missing. */
static void scenario_import_judge(
    const struct import *import, const struct configuration *config, struct diag *diag)
{
    const char *names = "";
    const struct configuration_setting *first = NULL;
    int n = configuration_count(config, FATE_NOT_UNDERSTOOD), shown = 0;
    enum { MOST_SHOWN = 5 };
    for (int i = 0; i < config->settings.n; i++) {
        const struct configuration_setting *setting = &config->settings.at[i];
        if (setting->fate != FATE_NOT_UNDERSTOOD || shown++ >= MOST_SHOWN)
            continue;
        first = first ? first : setting;
        names = arena_printf(config->arena, "%s%s%s", names, *names ? ", " : "", setting->name);
    }
    if (config->missing.n > 0)
        diag_io(diag, (struct source_pos){.file = import->files.at[0]},
            "the scenario does not run yet; what is missing (%d): %s%s", config->missing.n,
            config->missing.at[0], config->missing.n > 1 ? " ..." : "");
    if (first && !import->force)
        diag_io(diag, first->at,
            "not understood, and may change speed or memory (%d): %s%s; the scenario leaves it "
            "out, and its assumptions say so; --set says what it means, --force takes the scenario "
            "as it is",
            n, names, n > MOST_SHOWN ? " ..." : "");
}

/* On standard output there is the scenario alone; the lists then go to standard error. */
static void write_scenario(struct import *import, struct configuration *config, struct diag *diag)
{
    const char *model = NULL;
    if (configuration_has_model(config) && import->out)
        model = write_model(import, config, diag);
    else if (configuration_has_model(config))
        vec_push(&config->missing,
            "model: --out FILE, so that it can be written beside the scenario, or --model NAME");
    if (diag->worst != STATUS_OK)
        return;
    FILE *out = import->out ? fopen(import->out, "w") : stdout;
    if (out)
        configuration_write(out, config, model);
    print_lists(import->out ? stdout : stderr, config);
    if (import->out && finish_file(out, import->out, diag) == STATUS_OK && config->missing.n == 0)
        load_back(import->out, &import->arena, diag);
    scenario_import_judge(import, config, diag);
}

static void scenario_import_run(struct import *import, struct diag *diag)
{
    struct configuration config = {.arena = &import->arena, .given = &import->given};
    for (int i = 0; i < import->files.n; i++)
        configuration_read(&config, import->files.at[i],
            import->has_from ? import->from : configuration_format_of(import->files.at[i]), diag);
    if (!import->given.name)
        import->given.name = words_stem(import->files.at[0], &import->arena);
    name_from_out(import);
    if (import->force && import->given.model)
        overrides_push(&import->overrides, NULL, (struct scenario_override){"force", "true"});
    import->given.sets = import->overrides.list.at;
    import->given.n_sets = import->overrides.list.n;
    if (diag->worst == STATUS_OK &&
        configuration_finish(&config, &import->given, diag) == STATUS_OK)
        write_scenario(import, &config, diag);
    configuration_free(&config);
}

int scenario_import(int argc, char **argv)
{
    const struct command_line line = {.options = scenario_import_options,
        .take = scenario_import_take_file,
        .check = scenario_import_check,
        .args_doc = "FILE...",
        .doc = "Make a scenario of configurations of other frameworks: DeepSpeed's JSON, YAML of "
               "accelerate, NeMo AutoModel and Primus, torchtitan's TOML, arguments of Megatron-LM "
               "in a shell script or a text file.\vSeveral files are one job. Of a script, options "
               "before the program are its launchers' (srun, mpirun, numactl, nsys, containers "
               "...), of which the numbers of nodes, processes and GPUs are taken, as of its head "
               "for Slurm, PBS or LSF. Every "
               "setting is listed: what it became, whether it was left aside as it changes neither "
               "speed nor memory, or that it was not understood; then what is assumed and what is "
               "missing. Where something is missing, or was not understood and may change speed or "
               "memory, the exit status is 1. The model that arguments of Megatron-LM describe is "
               "written beside FILE.yaml as FILE.model.yaml, unless --model is given."};
    struct import import = {.arena = ARENA_INIT};
    command_line_parse(&line, argc, argv, &import);
    struct diag diag = DIAG_INIT;
    scenario_import_run(&import, &diag);
    vec_free(&import.files);
    overrides_free(&import.overrides);
    arena_release(&import.arena);
    return cli_report(&diag);
}
