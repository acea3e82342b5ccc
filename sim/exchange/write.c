#include "exchange/configuration.h"

#include "base/utf8.h"
#include "scenario/scenario.h"

#include <string.h>

/* What a file of the user's says cannot end the comment: control characters and what is no UTF-8 are written as '?'. */
static void put_words(FILE *out, const char *text)
{
    const char *end = text + strlen(text);
    for (size_t bytes; text < end; text += bytes) {
        uint32_t c = 0;
        bytes = utf8_character(text, (size_t)(end - text), &c);
        if (bytes == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || (c & 0xfffe) == 0xfffe)
            fputc('?', out);
        else
            fwrite(text, 1, bytes, out);
        bytes = bytes > 0 ? bytes : 1;
    }
}

static void put_line(FILE *out, int depth, const char *key, const struct configuration_put *put, bool quoted)
{
    fprintf(out, "%*s%s: ", 2 * depth, "", key);
    bool yaml = put->from && strcmp(put->from, "--set") == 0 && *put->text == '"'; /* as --set takes it */
    if (quoted && !yaml)
        json_write_string(out, put->text);
    else
        fputs(put->text, out);
    if (put->from) {
        fputs(" # ", out);
        put_words(out, put->from);
    }
    fputc('\n', out);
}

/* The puts below a section, in the order of its table. */
static void put_section(
    FILE *out, const struct configuration *config, const struct config_table *table, const char *prefix, int depth)
{
    for (int f = 0; f < table->n_fields; f++) {
        const struct config_field *field = &table->fields[f];
        char path[160];
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", field->key);
        size_t n = strlen(path);
        bool begun = false;
        for (int i = 0; i < config->puts.n; i++) {
            const struct configuration_put *put = &config->puts.at[i];
            bool below = strncmp(put->path, path, n) == 0 && put->path[n] == '.';
            if (field->type == FIELD_SECTION && below && !begun) {
                fprintf(out, "%*s%s:\n", 2 * depth, "", field->key);
                put_section(out, config, field->section, path, depth + 1);
                begun = true;
            } else if (strcmp(put->path, path) == 0 && field->type != FIELD_SECTION) {
                put_line(out, depth, field->key, put, field->type == FIELD_STRING || field->type == FIELD_PATH);
            }
        }
    }
}

void configuration_write(FILE *out, const struct configuration *config, const char *model_file)
{
    fputs("# By `flopcast scenario import`. Behind each setting: where it comes from; without: a default of the "
          "framework, see assumptions.\n",
        out);
    for (int i = 0; i < config->missing.n; i++) {
        fputs("# missing: ", out);
        put_words(out, config->missing.at[i]);
        fputc('\n', out);
    }
    if (model_file) {
        fputs("model: ", out);
        json_write_string(out, model_file);
        fputc('\n', out);
    }
    put_section(out, config, &scenario_table, "", 0);
    if (config->assumptions.n > 0)
        fputs("assumptions:\n", out);
    for (int i = 0; i < config->assumptions.n; i++) {
        fputs("  - ", out);
        json_write_string(out, config->assumptions.at[i]);
        fputc('\n', out);
    }
}

void configuration_write_model(FILE *out, const struct configuration *config, const char *name)
{
    fputs("# By `flopcast scenario import`.\nname: ", out);
    json_write_string(out, name);
    fputs("\nsource: \"arguments of Megatron-LM; without a place behind it: its default\"\n", out);
    static const char *const sections[] = {"", "moe.", "mla."};
    for (int s = 0; s < 3; s++) {
        size_t n = strlen(sections[s]);
        bool begun = s == 0;
        for (int i = 0; i < config->model.n; i++) {
            const struct configuration_put *put = &config->model.at[i];
            if (s == 0 ? strchr(put->path, '.') != NULL : strncmp(put->path, sections[s], n) != 0)
                continue;
            if (!begun)
                fprintf(out, "%.*s:\n", (int)n - 1, sections[s]);
            begun = true;
            put_line(out, s > 0, put->path + n, put, false);
        }
    }
}
