/* Sentences and pieces of text that several commands print: numbers, paths, commands, out of
 * memory.
 *
 * Paragraphs go through screen_wrap(); words_lines() wraps single lines and indents what follows
 * of each by four blanks more than its own. words_command() breaks a long command only before an
 * option, with a backslash, so it can be pasted.
 *
 * What is subtle: words_number() prints no "-0.0": a text without a digit other than 0 is that
 * of 0. words_stem() keeps a leading dot as part of the name. words_shell() puts a text in
 * single quotes only where it has a character that a shell may read. A stage other than the
 * fullest was not simulated to its end when that one ran out of memory, so other_stages() goes
 * by what it needs at one time. */
#include "rows/words.h"

#include "base/files.h"
#include "base/utf8.h"
#include "rows/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double MiB = 0x1p20;

const char *words_counted(const struct model_shape *shape)
{
    return shape->image_size > 0 ? "images" : model_sample_tokens(shape) > 0 ? "samples" : "tokens";
}

const char *words_counted_all(const struct scenario_set *set)
{
    const char *first = words_counted(&set->points[0].model.shape);
    bool images = strcmp(first, "images") == 0, alike = true;
    for (int i = 1; i < set->n_points; i++) {
        const char *word = words_counted(&set->points[i].model.shape);
        alike = alike && strcmp(word, first) == 0;
        images = images || strcmp(word, "images") == 0;
    }
    return alike ? first : images ? "tokens, images" : "tokens, samples";
}

const char *words_number(struct arena *arena, double value, int digits, bool sign)
{
    const char *text = arena_printf(arena, sign ? "%+.*f" : "%.*f", digits, value);
    return strpbrk(text, "123456789nN") ? text : arena_printf(arena, "%.*f", digits, 0.0);
}

const char *words_point(const struct scenario_point *point, struct arena *arena)
{
    return arena_printf(arena, "%s %s, batch %" PRId64 ", %" PRId64 " GPU%s",
        point->model.shape.name, strategy_label(&point->options.strategy),
        point->options.strategy.train.micro_batch, point->options.cluster.gpus,
        plural(point->options.cluster.gpus));
}

void words_lines(FILE *out, char *text)
{
    enum { MOST_INDENT = 32, FURTHER = 4 };
    int width = screen_width(out);
    for (char *line; (line = strsep(&text, "\n"));) {
        int n = (int)strlen(line), taken = n, indent = (int)strspn(line, " ") + FURTHER;
        if (width > 0 && utf8_width(line, n) > width) {
            for (taken = utf8_bytes(line, width); taken > indent && line[taken] != ' ';)
                taken--;
            taken = taken > indent ? taken : n;
        }
        fprintf(out, "%.*s%s", taken, line, text || taken < n ? "\n" : "");
        if (taken < n)
            screen_wrap(out,
                &"                                "[MOST_INDENT -
                                                    (indent < MOST_INDENT ? indent : MOST_INDENT)],
                line + taken + 1);
    }
}

FILE *words_gather(struct words_gathered *gathered)
{
    *gathered = (struct words_gathered){0};
    gathered->file = xmemstream(&gathered->text, &gathered->n);
    return gathered->file;
}

void words_gathered(FILE *out, struct words_gathered *gathered)
{
    fclose(gathered->file);
    words_lines(out, gathered->text);
    free(gathered->text);
}

static void short_by(FILE *out, double bytes)
{
    if (bytes < GIB / 10)
        fprintf(out, "%.1f MiB", bytes / MiB);
    else
        fprintf(out, "%.1f GiB", bytes / GIB);
}

/* Where one stage has run out, the others were not asked: by what they need at one time. */
static void other_stages(FILE *out, const struct exec_result *result)
{
    const char *separator = "  also short: ";
    for (int p = 0; p < result->n_programs; p++) {
        const struct exec_memory *memory = &result->programs[p].memory;
        if (p == result->fullest || !(memory->required_bytes > memory->capacity_bytes))
            continue;
        fprintf(out, "%sstage %d by ", separator, p);
        short_by(out, memory->required_bytes - memory->capacity_bytes);
        separator = ", ";
    }
    fputs(*separator == ',' ? "\n" : "", out);
}

void words_oom(FILE *to, const struct exec_result *result)
{
    const struct exec_memory *memory = &result->memory;
    struct words_gathered lines;
    FILE *out = words_gather(&lines);
    double short_bytes = memory->required_bytes - memory->capacity_bytes;
    fputs("  ", out);
    if (result->n_programs > 1)
        fprintf(out, "stage %d of %d (from 0) ", result->fullest, result->n_programs);
    fprintf(out, "needs %.1f GiB, has %.1f GiB: ", memory->required_bytes / GIB,
        memory->capacity_bytes / GIB);
    if (short_bytes > 0) {
        short_by(out, short_bytes);
        fputs(" short", out);
    } else {
        fputs("what is free lies in gaps between tensors, or with other streams "
              "(run.expandable_segments: true closes gaps)",
            out);
    }
    fprintf(out, "; first at %s (%s, %.3f GiB)\n", memory->oom_op,
        hbm_category_names[memory->oom_category], memory->oom_request_bytes / GIB);
    fputs("  needed:", out);
    const char *separator = " ";
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        if (memory->required_category_bytes[c] > 0) {
            fprintf(out, "%s%s %.1f", separator, hbm_category_names[c],
                memory->required_category_bytes[c] / GIB);
            separator = ", ";
        }
    fputs(" GiB\n", out);
    other_stages(out, result);
    words_gathered(to, &lines);
}

void words_paragraph(FILE *out, const char *text)
{
    screen_wrap(out, "", text);
}

void words_command(FILE *out, const char *head, const char *command)
{
    static const char before[] = " --", joint[] = " \\\n    ";
    size_t screen = (size_t)screen_width(out), at = strlen(head);
    fputs(head, out);
    while (*command) {
        const char *next = strstr(command + 1, before);
        size_t n = next ? (size_t)(next - command) : strlen(command);
        bool is_new = screen > 0 && at > 4 && *command == ' ' && at + n + 2 > screen;
        fprintf(out, "%s%.*s", is_new ? joint : "", (int)(n - is_new), command + is_new);
        at = is_new ? 4 + n : at + n;
        command += n;
    }
    fputc('\n', out);
}

void words_paragraph_of(FILE *out, const char *format, ...)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = xmemstream(&text, &n);
    va_list values;
    va_start(values, format);
    vfprintf(memory, format, values);
    va_end(values);
    fclose(memory);
    words_paragraph(out, text);
    free(text);
}

const char *words_count(struct arena *arena, double value)
{
    const char *digits = arena_printf(arena, "%.0f", value), *text = "";
    for (size_t n = strlen(digits), i = 0; i < n; i++)
        text = arena_printf(arena, "%s%s%c", text,
            i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-' ? "," : "", digits[i]);
    return text;
}

void words_assumptions(FILE *out, const char *lines)
{
    struct arena arena = ARENA_INIT;
    fputs("\nassumed, where the source says nothing:\n", out);
    while (*lines) {
        int n = (int)strcspn(lines, "\n");
        screen_wrap(out, "  - ", arena_printf(&arena, "%.*s", n, lines));
        lines += n + (lines[n] == '\n');
    }
    arena_release(&arena);
}

const char *words_stem(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path,
               *dot = strrchr(file, '.');
    return arena_printf(
        arena, "%.*s", (int)(dot && dot > file ? dot - file : (long)strlen(file)), file);
}

const char *words_file(struct arena *arena, const char *path)
{
    static const enum files_kind kinds[] = {FILES_SCENARIOS, FILES_MODELS};
    const char *stem = words_stem(path, arena);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *own = files_short(arena, kinds[i], stem);
        if (own && strcmp(files_own(arena, own), path) == 0)
            return stem;
    }
    return words_shell(path, arena);
}

const char *words_shell(const char *text, struct arena *arena)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=+-,:@%";
    if (*text && strspn(text, plain) == strlen(text))
        return text;
    const char *word = "'";
    for (; *text; text++)
        word = arena_printf(arena, *text == '\'' ? "%s'\\''" : "%s%c", word, *text);
    return arena_printf(arena, "%s'", word);
}

void words_progress(const char *command, const char *what, int done, int total)
{
    if (isatty(STDERR_FILENO))
        fprintf(
            stderr, "\r%s: %d of %d %s%s", command, done, total, what, done == total ? "\n" : "");
}
