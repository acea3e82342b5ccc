/* Documents (YAML or JSON) as C structs, by declarative tables. The only code that sees libyaml.
 *
 * A document keeps the place of every node, so every error says file:line:column, what is wrong and
 * what would be right. All mistakes of a document are reported in one go, up to the first that
 * breaks its syntax. Rules that close YAML's traps: booleans are only true and false; null is only
 * null and ~, and a missing value is an error; anchors, aliases, tags, duplicate keys, keys of more
 * than 128 bytes, several documents in a file and tabs as indentation are errors; at most
 * CONFIG_MAX_DEPTH levels, CONFIG_MAX_NODES nodes and CONFIG_MAX_BYTES bytes of UTF-8. JSON is read
 * by the same loader, except for escaped surrogate pairs.
 *
 * A table says what may stand in a mapping: config_read() fills a struct from it, config_assign()
 * sets one field by its dotted path (what --set and sweeps use), config_write_json() prints the
 * struct back with the origin of every value. */
#ifndef FLOPCAST_CONFIG_CONFIG_H
#define FLOPCAST_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/files.h"
#include "base/quantity.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/units.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CONFIG_MAX_DEPTH = 32, CONFIG_MAX_NODES = 200000, CONFIG_MAX_BYTES = 16 << 20 };

struct config_doc;

/* A place in a document; valid as long as the document. doc NULL: no node. */
struct config_node {
    const struct config_doc *doc;
    int id;
};

/* Who gave a value. Values read from a document have the kind of the document. */
enum origin_kind {
    ORIGIN_DEFAULT,      /* nobody: it is the program's */
    ORIGIN_FILE,         /* the file that was asked for */
    ORIGIN_COMMAND_LINE, /* an option, as --set */
    ORIGIN_TABLE,        /* a cell of a table */
    ORIGIN_CLUSTER,      /* the cluster's file */
    ORIGIN_STACK,        /* a stack profile */
};

enum config_kind { CONFIG_NONE, CONFIG_NULL, CONFIG_SCALAR, CONFIG_SEQUENCE, CONFIG_MAPPING };

/* On success *out owns everything (free with config_free). On failure *out is NULL and diag says
 * why. path is used as given in messages; "name" stands for the file where the text comes from
 * elsewhere. An empty document is an error. */
enum status config_load(struct config_doc **out, const char *path, struct diag *diag);
/* The same of a file of this kind: where there is none, the message names the one that may have
 * been meant. Of a file that holds several models (base/files.h) the root is the one that path
 * names, or the file itself, without "sizes". */
enum status config_load_kind(
    struct config_doc **out, enum files_kind kind, const char *path, struct diag *diag);
enum status config_parse(
    struct config_doc **out, const char *name, const char *text, size_t n, struct diag *diag);
void config_free(struct config_doc *doc);

/* A whole text file in memory. At most CONFIG_MAX_BYTES; a larger one is an error, so that a wrong
 * path (a database, a trace) ends in a sentence and not in a long wait. On success *out holds the
 * *n bytes and a NUL behind them (free() it), else it is NULL. */
enum status config_read_file(
    char **out, size_t *n, enum files_kind kind, const char *path, struct diag *diag);

/* Documents are of ORIGIN_FILE until this is called. Paths of the command line have no folder. */
void config_set_origin(struct config_doc *doc, enum origin_kind from);

struct config_node config_root(const struct config_doc *doc);
enum config_kind config_kind(struct config_node node);
struct source_pos config_pos(struct config_node node);
enum origin_kind config_origin_kind(struct config_node node); /* of its document */
const char *config_text(struct config_node node);             /* of a scalar; "" for others */
bool config_quoted(struct config_node node); /* a scalar written in quotes: always a string */
int config_count(struct config_node node);   /* items of a sequence, pairs of a mapping, else 0 */
struct config_node config_item(
    struct config_node node, int i);                           /* item, or value of the i-th pair */
struct config_node config_key(struct config_node node, int i); /* key of the i-th pair */
struct config_node config_find(
    struct config_node mapping, const char *key); /* value, or CONFIG_NONE */

/* ---- tables ---- */

/* null fits no field but FIELD_NODE: leave the key out for the default. */
enum field_type {
    FIELD_STRING, /* const char *, never NULL after a read when required; default NULL */
    FIELD_PATH, /* const char *, joined to the folder of the file that names it; kept when absolute,
                   and in a document of ORIGIN_COMMAND_LINE; where there is no such file, flopcast's
                   own of that name, or short name of its kind (base/files.h) */
    FIELD_INT,  /* int64_t; "8", "1_000", "1e6", "8k": as count_parse() reads it (base/units.h) */
    FIELD_NUMBER,  /* double in base SI, written with the unit of dimension, then also in quotes (as
                      JSON must) */
    FIELD_BOOL,    /* bool */
    FIELD_ENUM,    /* int, index into names */
    FIELD_SOURCED, /* struct quantity: {value: 2.039 TB/s, kind: datasheet, source: "...",
                      std_error: ...}; value, kind and source required, std_error required when
                      fitted */
    FIELD_SECTION, /* a nested struct, described by section */
    FIELD_OVERRIDES, /* a nested struct that section describes, of a file that is read elsewhere:
                        any of its numbers, integers and choices may be given, none must. A
                        FIELD_SOURCED may then be its value alone, which is of kind assumed, with
                        the place where it stands as its source. Before a read integers and choices
                        are -1, quantities unset: what stays so is not given, and
                        config_write_json() leaves it out. Where key is "", the keys of the section
                        stand beside this field */
    FIELD_NODE,      /* struct config_node: kept as it stands for the caller to read */
};

struct config_table;

struct config_field {
    const char *key;
    const char
        *alias; /* another name that is accepted for key, such as another program's; NULL: none */
    enum field_type type;
    enum files_kind files;    /* FIELD_PATH: what kind of file it is; FILES_ANY: no short names */
    size_t offset;            /* offsetof in the struct */
    const char *help;         /* one sentence, for the reference */
    enum dimension dimension; /* FIELD_NUMBER, FIELD_SOURCED */
    int kilo;                 /* FIELD_INT: what its k stands for, as in 8k; 0: 1000 */
    bool required;
    double min, max; /* FIELD_INT, FIELD_NUMBER, FIELD_SOURCED: inclusive, base SI; not checked when
                        both are 0 */
    const char *const *names; /* FIELD_ENUM: NULL-terminated */
    const char *when;         /* where the setting counts, config_condition(); NULL: everywhere */
    const struct config_table *section; /* FIELD_SECTION, FIELD_OVERRIDES */
};

struct config_table {
    const char *what; /* "a scenario", for messages */
    const struct config_field *fields;
    int n_fields;
    /* The message for a key that the table, or a section of it, does not know: a sentence that says
     * why there is no such key; NULL: nothing. The root table's; may be NULL. */
    const char *(*unmodelled)(const char *key);
};

/* An entry of a table, with what else belongs to it behind, and a table of a list of entries. */
#define CONFIG_FIELD(key_, type_, owner, member, help_)                                            \
    .key = (key_), .type = (type_), .offset = offsetof(owner, member), .help = (help_)
#define CONFIG_TABLE(what_, list)                                                                  \
    {                                                                                              \
        .what = (what_), .fields = (list), .n_fields = sizeof(list) / sizeof *(list)               \
    }
/* Entries of a list of settings, SETTING_FIELD (base/settings.h). */
#define SETTING_FIELD_(kind_, key_, owner, member, ...)                                            \
    {.key = (key_),                                                                                \
        .type = FIELD_##kind_,                                                                     \
        .offset = offsetof(struct owner, member),                                                  \
        .help = __VA_ARGS__},
#define SETTING_FIELD_OF(kind, key, owner, member, ...)                                            \
    SETTING_FIELD_(kind, key, owner, member, __VA_ARGS__)
#define SETTING_FIELD_AS(kind, key, member, value, ...)                                            \
    SETTING_FIELD_OF(kind, key, SETTINGS_OF, member, __VA_ARGS__)
#define SETTING_FIELD(kind, member, value, ...)                                                    \
    SETTING_FIELD_OF(kind, #member, SETTINGS_OF, member, __VA_ARGS__)
#define SETTING_FIELD_IN SETTING_FIELD_AS

/* Where each value that was set comes from. Paths are dotted ("train.micro_batch") and made of
 * keys, never of aliases; a later entry wins over an earlier one. */
struct config_origin {
    const char *path;
    struct source_pos at;
    enum origin_kind kind;
};
struct config_origins {
    VEC(struct config_origin) list;
};

/* Fill *into (a struct that the table describes, already holding the defaults) from a mapping.
 * Unknown keys are errors with "did you mean", also where the key belongs into a section; a missing
 * required key is reported at the mapping's place. Strings are copied into arena, those of origins
 * (which may be NULL) too, so only a FIELD_NODE needs the document to live on. Returns the worst
 * status; *into may be partly filled. */
enum status config_read(struct config_node mapping, const struct config_table *table, void *into,
    struct arena *arena, struct config_origins *origins, struct diag *diag);

/* The same for one of several documents that are read into the same struct: nothing is required of
 * it. When all are read, config_check_required() reports at `at` the required keys that none of
 * them had, by their origins. */
enum status config_read_part(struct config_node mapping, const struct config_table *table,
    void *into, struct arena *arena, struct config_origins *origins, struct diag *diag);
enum status config_check_required(const struct config_table *table,
    const struct config_origins *origins, struct source_pos at, struct diag *diag);

/* A struct of FIELD_OVERRIDES before anything is given. */
void config_give_nothing(void *into, const struct config_table *section);

/* Copy into the struct what `given`, a struct of FIELD_OVERRIDES with the same table, has. */
void config_take_given(void *into, const void *given, const struct config_table *section);

/* Whether such a struct has the field at `at`; of a section: any of its fields. */
bool config_is_given(const struct config_field *field, const void *at);

/* A list of mappings that the table describes: *n zeroed structs of this size, filled one by one,
 * in the arena. No node is an empty list; mistakes go to diag. */
void *config_read_list(struct config_node list, const struct config_table *table, size_t size,
    int *n, struct arena *arena, struct diag *diag);

/* The field that a dotted path of keys names, and where it is in structs of the table; NULL, or
 * BUG: there is none. */
const struct config_field *config_field_find(
    const struct config_table *table, const char *path, size_t *offset);
const struct config_field *config_field_at(
    const struct config_table *table, const char *path, size_t *offset);
/* The field's value at `at` as --set takes it; "" where it has none. */
const char *config_value_text(
    const struct config_field *field, const void *at, struct arena *arena);

/* ---- where a setting counts ---- */

/* What does not hold of a condition: "train.optimizer" is "adamw", "muon" is wanted. */
struct config_unmet {
    const char *path, *value, *wanted;
};
/* Of a part of a condition that no setting decides: whether it holds, and where not, the rest of
 * *unmet. */
enum config_decided { CONFIG_NOT_DECIDED, CONFIG_MET, CONFIG_UNMET };
typedef enum config_decided config_decide(
    struct config_unmet *unmet, const char *part, const void *self);

/* Whether a condition holds of the table's struct `from`: "PATH = VALUE | VALUE", "PATH > NUMBER",
 * or several of them with " & ". Of the first part that does not, *unmet. decide, with self, sees
 * each part first; NULL: nobody does. */
bool config_condition(struct config_unmet *unmet, const char *condition,
    const struct config_table *table, const void *from, config_decide *decide, const void *self,
    struct arena *arena);

/* Copy the value of one field, which the dotted path names, between structs of the table. Strings
 * are shared. */
void config_copy(void *into, const void *from, const char *path, const struct config_table *table);

/* The path with the key of every field that it names by its alias; as it is where the table does
 * not know it. */
const char *config_key_path(
    const struct config_table *table, const char *path, struct arena *arena);

/* The number of keys of the mapping that the table knows. It shows which of several tables a
 * document is for. */
int config_fit(struct config_node mapping, const struct config_table *table);

/* Set the one field that the dotted path names. Errors of the value are reported at its place,
 * errors of the path at path_at. A path that ends at a section is an error. */
enum status config_assign(const char *path, struct source_pos path_at, struct config_node value,
    const struct config_table *table, void *into, struct arena *arena,
    struct config_origins *origins, struct diag *diag);

/* The struct as JSON: {"train": {"micro_batch": {"value": 8, "origin": "scenarios/x.yaml:12:16"},
 * ...}}; "origin" is "default" where no entry names the path; numbers of a dimension also carry
 * "unit"; sourced ones "kind", "source", "std_error". */
void config_write_json(FILE *out, const struct config_table *table, const void *from,
    const struct config_origins *origins);

/* Folds every value of the struct, with its key, into the digest (base/digest.h): structs with
 * alike values have alike ones. Of a sourced number its kind, error and source count, too. Not for
 * tables with a FIELD_NODE. */
uint64_t config_digest(uint64_t digest, const struct config_table *table, const void *from);

/* The same of the values alone, without kind, error and source, and of those that are not 0, false,
 * none or their enum's first: a field that is added and means nothing there changes no digest that
 * was kept. */
uint64_t config_digest_values(uint64_t digest, const struct config_table *table, const void *from);

/* The file at path with other texts for the values of some keys, each in YAML on one line; what
 * else stands there, comments too, stays as it is. A key that is not there is added, with the
 * sections around it: to the root at its end, to a section before its first key. No path is inside
 * another of the list. Nothing is written on an error. */
struct config_change {
    const char *path; /* dotted */
    const char *text;
};
enum status config_write_changed(
    FILE *out, const char *path, const struct config_change *changes, int n, struct diag *diag);
/* The same of a text of n bytes, which messages call name. */
enum status config_change_text(FILE *out, const char *name, const char *text, size_t n,
    const struct config_change *changes, int n_changes, struct diag *diag);

/* Every setting of the table by its dotted path, with its default ("-": not set; or "needed"), its
 * sentence and what is allowed. Every field must have a sentence. defaults NULL: the sentences
 * state the defaults. */
void config_print_reference(FILE *out, const struct config_table *table, const void *defaults);

/* text as a JSON string, quotes included. */
void json_write_string(FILE *out, const char *text);

#endif
