/* A draft of options as a trainer's file: TOML of torchtitan, YAML of NeMo AutoModel, a shell
 * script of Megatron-LM.
 *
 * Sections come in the order in which their first option was found, their options below them;
 * there is no tree, each level is found by comparing prefixes of names. Settings that the
 * trainer has no option for are comments "# flopcast: KEY=VALUE", which the importer reads back.
 * What is subtle: a list is written item by item in quotes; torchrun's options stand before the
 * program, all others behind it. */
#include "exchange/emit_file.h"

#include <string.h>

static bool is_plain(const char *value)
{
    bool number = *value && strspn(value, "0123456789.") == strlen(value);
    return number || strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

/* A list's items are words: [a,b]. */
static void emit_file_write_value(FILE *out, const char *value)
{
    bool list = *value == '[';
    if (is_plain(value))
        fputs(value, out);
    else if (!list)
        json_write_string(out, value);
    for (const char *at = value + 1; list && *at; at += strcspn(at, ",]"), at += strspn(at, ",]")) {
        char word[128];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ",]"), at);
        fputs(at == value + 1 ? "[" : ", ", out);
        json_write_string(out, word);
    }
    if (list)
        fputc(']', out);
}

static void write_toml(FILE *out, const struct emit_draft *draft)
{
    for (int i = 0; i < draft->options.n; i++) {
        const char *name = draft->options.at[i].name;
        size_t n = (size_t)(strrchr(name, '.') - name);
        bool begun = false;
        for (int k = 0; k < i; k++)
            begun = begun || (strncmp(draft->options.at[k].name, name, n + 1) == 0 &&
                                 !strchr(draft->options.at[k].name + n + 1, '.'));
        for (int k = i; k < draft->options.n && !begun; k++) {
            const struct emit_option *option = &draft->options.at[k];
            if (strncmp(option->name, name, n + 1) != 0 || strchr(option->name + n + 1, '.'))
                continue;
            if (k == i)
                fprintf(out, "\n[%.*s]\n", (int)n, name);
            fprintf(out, "%s = ", option->name + n + 1);
            emit_file_write_value(out, option->value);
            fputc('\n', out);
        }
    }
}

/* Those below a prefix of n characters, which ends in a dot. */
static void write_yaml(
    FILE *out, const struct emit_draft *draft, const char *prefix, size_t n, int depth)
{
    for (int i = 0; i < draft->options.n; i++) {
        const char *name = draft->options.at[i].name, *rest = name + n;
        size_t key = strncmp(name, prefix, n) == 0 ? strcspn(rest, ".") : 0;
        bool begun = key == 0;
        for (int k = 0; k < i && !begun; k++)
            begun = strncmp(draft->options.at[k].name, name, n + key) == 0 &&
                    (rest[key] == '\0' || draft->options.at[k].name[n + key] == '.');
        if (begun)
            continue;
        fprintf(out, "%*s%.*s:", 2 * depth, "", (int)key, rest);
        if (rest[key] == '.') {
            fputc('\n', out);
            write_yaml(out, draft, name, n + key + 1, depth + 1);
            continue;
        }
        fputc(' ', out);
        emit_file_write_value(out, draft->options.at[i].value);
        fputc('\n', out);
    }
}

static bool is_torchrun(const char *name)
{
    return strcmp(name, "--nnodes") == 0 || strcmp(name, "--nproc-per-node") == 0;
}

static void write_script(FILE *out, const struct emit_draft *draft)
{
    fputs("\ntorchrun", out);
    for (int before = 1; before >= 0; before--) {
        for (int i = 0; i < draft->options.n; i++) {
            const struct emit_option *option = &draft->options.at[i];
            if (is_torchrun(option->name) != before)
                continue;
            fprintf(out, before ? " %s" : " \\\n    %s", option->name);
            if (!option->bare)
                fprintf(out, " %s", option->value);
        }
        fputs(before ? " pretrain_gpt.py" : "\n", out);
    }
}

void emit_write(
    FILE *out, enum configuration_format format, const struct emit_draft *draft, const char *title)
{
    if (format == CONFIGURATION_MEGATRON)
        fputs("#!/bin/bash\n", out);
    fprintf(out,
        "# %s\n# `flopcast scenario import` of this file gives the same step. What has no option "
        "here:\n",
        title);
    for (int i = 0; i < draft->said.n; i++)
        fprintf(out, "# flopcast: %s=%s\n", draft->said.at[i].key, draft->said.at[i].value);
    if (draft->unsaid)
        fprintf(out, "# of the model no argument gives: %s\n", draft->unsaid);
    if (format == CONFIGURATION_TORCHTITAN)
        write_toml(out, draft);
    else if (format == CONFIGURATION_AUTOMODEL)
        write_yaml(out, draft, "", 0, 0);
    else
        write_script(out, draft);
}
