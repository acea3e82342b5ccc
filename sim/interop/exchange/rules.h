/* Private to exchange: what settings of a framework become, by tables of a file of data, and what
 * is left to be worked out. */
#ifndef FLOPCAST_EXCHANGE_RULES_H
#define FLOPCAST_EXCHANGE_RULES_H

#include "exchange/configuration.h"

enum rule_kind {
    RULE_INT,     /* a whole number, also as 5e8: of key */
    RULE_NUMBER,  /* any number: of key */
    RULE_BOOL,    /* true or false: of key. An argument without a value is true */
    RULE_WORDS,   /* words says what of key: "bf16=bf16_mixed no=fp32"; a value that it lacks is not
                     understood */
    RULE_SET,     /* an argument without a value: words is what key becomes */
    RULE_MODEL,   /* a whole number: of key of the model file */
    RULE_SHAPE,   /* of the model: kept for the framework's steps, unless --model says it;
                     words as below */
    RULE_FACT,    /* kept for the framework's steps, which say its fate; it must be one of a
                     list of words, where words is not NULL */
    RULE_MADE,    /* the same: the steps make the settings of it that key lists, with blanks
                     between. A list that begins with '~' names values that are written
                     (exchange/emit.h), others can be, too */
    RULE_HELD,    /* flopcast has it as words says; anything else is not understood */
    RULE_ASIDE,   /* changes neither speed nor memory: words is why */
    RULE_SLIGHT,  /* changes them a little, which is not simulated: words is how, an assumption of
                     the scenario, with the name or key in front */
    RULE_REFUSED, /* changes them, and is not simulated: words is what is simulated. "false",
                     "null", an empty list and "0" ask for nothing */
    RULE_OTHER    /* of another sort of job, which words names: nothing is written */
};

/* An entry of a framework's file, scenarios/import/FRAMEWORK.yaml: "{names: --bf16, kind: set, key:
 * train.precision, words: bf16_mixed}". key and words: NULL where the kind has none. The first
 * entry that has a name holds. */
struct rule {
    const char *names; /* one or several, with blanks between; "a*": all that begin with a */
    enum rule_kind kind;
    const char *key, *words;
};
struct rules {
    const struct rule *list;
    int n;
};

/* What is none of the framework's jobs, or files: name is a part of a program's or a model's name,
 * or keys of a file with blanks between; what it is; model: what --model may name then, NULL:
 * nothing. */
struct importer_other {
    const char *name, *what, *model;
};
struct importer_pair {
    const char *key, *value;
};

/* What several settings say together, as an entry of a list of `steps` in the same file, which are
 * followed in their order: "{names: --partition-activations, when: parallelism.tensor=1, kind:
 * aside, words: of tensor parallelism}". A key that begins with "model." is one of the model file.
 */
enum step_kind {
    /* Of each of the names that the files have: */
    STEP_TAKE, /* key becomes the value, or what words make of it, "true=always false=never", where
                  they have it */
    STEP_SET,  /* key becomes words; without key: words are "key=text key=text" */
    STEP_INT,  /* key becomes the value, a whole number; words where the trainer decides ("auto") */
    STEP_NUMBER,  /* key becomes the value, any number, to six digits */
    STEP_ASIDE,   /* it is left aside, unless it was taken; words is why */
    STEP_REFUSED, /* it is not understood, unless its fate is known; words is why */
    STEP_ASSUME,  /* words is an assumption, {} in it the value; also without names */
    /* Without names: */
    STEP_ASSUMED, /* key becomes words, a default of the framework, with the reason why */
    STEP_REMOVED, /* key is as if nothing had given it */
    STEP_CALL     /* words names a function of the importer, which works out what is no data */
};

/* names: with blanks between, "a|b" the first of these that is there, "a*" all that begin so. when:
 * conditions with blanks between, all of which hold. NAME, a key or "a|b" of settings, is given;
 * NAME? is given, and nothing is said of it yet; NAME=PATTERNS its value is one of "x|y*";
 * NAME!=PATTERNS is not; NAME>NUMBER; "!" in front: it does not hold; without a NAME it is of the
 * step's setting. A degree of parallelism that nothing gives is 1. */
struct step {
    const char *names, *when;
    enum step_kind kind;
    const char *key, *words, *why;
};
struct steps {
    const char *name;
    const struct step *list;
    int n;
};

/* What STEP_CALL calls, by name; a list ends with {NULL, NULL}. */
struct importer_call {
    const char *name;
    void (*call)(struct configuration *config, struct diag *diag);
};
extern const struct importer_call deepspeed_calls[], accelerate_calls[], torchtitan_calls[],
    megatron_calls[], automodel_calls[], primus_calls[];

/* A framework's file. Of Primus rules are its own keys, megatron and torchtitan those that it adds
 * to these two. begins: settings that a written file has in any case. renamed: keys that Megatron's
 * arguments call otherwise. */
struct importer {
    const char *path;
    struct rules rules, megatron, torchtitan;
    const struct steps *steps;
    const struct importer_other *others;
    const struct importer_pair *begins, *renamed;
    int n_steps, n_others, n_begins, n_renamed;
    const struct importer_call *calls;
};

/* importer.c: the file of a format, read once a configuration and kept in its arena; NULL: it has
 * mistakes, which are reported, with their place: a kind that needs a key or words and has none, a
 * key that no scenario or model has. */
const struct importer *importer_open(
    struct configuration *config, enum configuration_format format, struct diag *diag);
/* The same, which was read before. */
const struct importer *importer_of(
    const struct configuration *config, enum configuration_format format);

/* steps.c: follows the list of this name. */
void importer_follow(struct configuration *config, enum configuration_format format,
    const char *name, struct diag *diag);

/* The rule of a name; NULL: there is none. */
const struct rule *rules_find(const struct rules *rules, const char *name);

/* A table's words one by one: the next of them, in the arena; NULL: there is none more. */
const char *rules_word(const char **at, struct arena *arena);
/* What "theirs=ours theirs=ours" makes of a value of theirs; NULL: nothing. */
const char *rules_ours(const char *words, const char *value, struct arena *arena);
/* What a value of ours is called by "theirs=ours theirs=ours"; NULL: nothing. */
const char *rules_theirs(const char *words, const char *ours, struct arena *arena);

/* Applies the table to a setting. Names that are in no rule are not understood. */
enum status rules_apply(struct configuration *config, const struct rules *rules,
    struct configuration_setting *setting, struct diag *diag);

/* Adds all leaves of a document as settings and applies the table. */
enum status rules_apply_document(struct configuration *config, const struct config_doc *doc,
    const struct rules *rules, struct diag *diag);
/* The same of a file of YAML or JSON. */
enum status rules_apply_file(
    struct configuration *config, const char *path, const struct rules *rules, struct diag *diag);

/* The same of the leaves below a mapping, but those below `but` (NULL: all), by any function; names
 * begin there. */
typedef enum status apply_setting(struct configuration *config,
    struct configuration_setting *setting, void *self, struct diag *diag);
enum status rules_visit(struct configuration *config, struct config_node mapping, const char *file,
    const char *but, apply_setting *apply, void *self, struct diag *diag);

/* named.c: what others call models of ours (scenarios/huggingface/called.yaml), in the order of the
 * file: "llama3.1-8b", "meta-llama/Llama-3.1-8B"; of torchtitan "torchtitan/llama3/8B". Free with
 * vec_free(). */
struct called_so {
    const char *ours, *theirs;
};
struct called {
    VEC(struct called_so) list;
};
#define CALLED_TORCHTITAN "torchtitan/"
struct called called_load(struct arena *arena);

/* The setting that names a model becomes flopcast's model of that name, "Qwen/Qwen3-8B",
 * "qwen3_8B.yaml", or it is missing. And the blocks of the model that is put; 0: not known. */
void put_called(
    struct configuration *config, const char *theirs, struct configuration_setting *from);
int64_t model_blocks_named(struct configuration *config);
struct model_shape;
bool model_named(struct configuration *config,
    struct model_shape *shape); /* the shape itself; false: not known */

/* The last setting of a name; NULL: there is none, or its value is left to others; that one alone.
 */
struct configuration_setting *setting_find(struct configuration *config, const char *name);
struct configuration_setting *setting_open(struct configuration *config, const char *name);
bool setting_is(struct configuration *config, const char *name, const char *value);
/* Also where a finish function finds it: an assumption, once for each sentence. */
void assume(struct configuration *config, const char *sentence);
/* Whether the value is one that asks for nothing: "false", "null", "0", "[]", "{}", "". */
bool value_is_off(const char *value);
/* A whole number of at most 2^53, or otherwise. A value that is none is reported. */
int64_t setting_int(
    struct configuration *config, const char *name, int64_t otherwise, struct diag *diag);

/* A setting of the scenario that is said beside those of the trainer; *at names the file. Key and
 * value are checked. */
enum status configuration_say(struct configuration *out, const char *key, const char *value,
    struct source_pos at, struct diag *diag);

/* The key becomes text, because of a setting, which is then taken; NULL: because of what `why`
 * says. */
void put_setting(struct configuration *config, const char *key, const char *text,
    struct configuration_setting *from);
void put_assumed(struct configuration *config, const char *key, const char *text, const char *why);
/* The text of a scenario's key; NULL: not put. */
const char *put_find(const struct configuration *config, const char *key);
int64_t put_int(const struct configuration *config, const char *key, int64_t otherwise);
void put_model(struct configuration *config, const char *key, const char *text,
    struct configuration_setting *from);
void put_model_remove(struct configuration *config, const char *key);
const char *put_model_find(const struct configuration *config, const char *key);
void put_remove(struct configuration *config, const char *key);
/* The fate of a setting, unless it was taken before; why it cannot be understood, unless its fate
 * is known. */
void setting_aside(struct configuration_setting *setting, const char *words);
void setting_refuse(struct configuration_setting *setting, const char *why);

/* a x b, at most 2^53 in size: no settings of a file go beyond that. */
int64_t times(int64_t a, int64_t b);
/* Elements of a token in the model's residual stream, of the files or of the model that is named;
 * 0: not known. */
int64_t model_width(struct configuration *config);
/* Ranks that share one copy of the model, however it is cut. */
int64_t model_ranks(const struct configuration *config);

const char *number_text(struct configuration *config, int64_t number);

/* One .c a framework: how its files are read, and its calls. */
enum status deepspeed_read(struct configuration *config, const char *path, struct diag *diag);
enum status accelerate_read(struct configuration *config, const char *path, struct diag *diag);
enum status torchtitan_read(struct configuration *config, const char *path, struct diag *diag);
enum status automodel_read(struct configuration *config, const char *path, struct diag *diag);
enum status primus_read(struct configuration *config, const char *path, struct diag *diag);
enum status megatron_read(struct configuration *config, const char *path, struct diag *diag);

#endif
