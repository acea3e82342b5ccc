#include "cli/words.h"

#include "cli/table.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const double MiB = 0x1p20, GiB = 0x1p30; /* what PyTorch and nvidia-smi count in */

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
    return arena_printf(arena, "%s %s, batch %" PRId64 ", %" PRId64 " GPU%s", point->model.shape.name,
        strategy_label(&point->options.strategy), point->options.strategy.train.micro_batch,
        point->options.cluster.gpus, plural(point->options.cluster.gpus));
}

void words_lines(FILE *out, char *text)
{
    static const char cut[] = "..";
    int width = screen_width(out);
    for (char *line; (line = strsep(&text, "\n"));) {
        int n = (int)strlen(line);
        bool is_cut = width > 0 && n > width;
        fprintf(out, "%.*s%s%s", is_cut ? width - (int)strlen(cut) : n, line, is_cut ? cut : "", text ? "\n" : "");
    }
}

static void short_by(FILE *out, double bytes)
{
    if (bytes < GiB / 10)
        fprintf(out, "%.1f MiB", bytes / MiB);
    else
        fprintf(out, "%.1f GiB", bytes / GiB);
}

/* Where one stage has run out, the others were not asked: by what they need at one time. */
static void other_stages(FILE *out, const struct exec_result *result)
{
    const char *separator = "  also short: ";
    for (int p = 0; p < result->n_programs; p++) {
        const struct exec_memory *memory = &result->programs[p].memory;
        if (p == result->fullest || !(memory->required_bytes > memory->capacity_bytes))
            continue;
        fprintf(out, result->kinds ? "%sGPUs of kind %d by " : "%sstage %d by ", separator, p + result->kinds);
        short_by(out, memory->required_bytes - memory->capacity_bytes);
        separator = ", ";
    }
    fputs(*separator == ',' ? "\n" : "", out);
}

void words_oom(FILE *out, const struct exec_result *result)
{
    const struct exec_memory *memory = &result->memory;
    double short_bytes = memory->required_bytes - memory->capacity_bytes;
    fputs("  ", out);
    if (result->n_programs > 1)
        fprintf(out, result->kinds ? "a GPU of kind %d of %d " : "stage %d of %d (from 0) ",
            result->fullest + result->kinds, result->n_programs);
    fprintf(out, "needs %.1f GiB, has %.1f GiB: ", memory->required_bytes / GiB, memory->capacity_bytes / GiB);
    if (short_bytes > 0) {
        short_by(out, short_bytes);
        fputs(" short", out);
    } else {
        fputs("what is free lies in gaps between tensors, or with other streams (run.expandable_segments: true closes "
              "gaps)",
            out);
    }
    fprintf(out, "; first at %s (%s, %.3f GiB)\n", memory->oom_op, hbm_category_names[memory->oom_category],
        memory->oom_request_bytes / GiB);
    fputs("  needed:", out);
    const char *separator = " ";
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        if (memory->required_category_bytes[c] > 0) {
            fprintf(out, "%s%s %.1f", separator, hbm_category_names[c], memory->required_category_bytes[c] / GiB);
            separator = ", ";
        }
    fputs(" GiB\n", out);
    other_stages(out, result);
}

enum { LINE = 100 };

void words_paragraph(FILE *out, const char *text)
{
    size_t screen = (size_t)screen_width(out), line = screen > 0 && screen < LINE ? screen : LINE;
    while (*text) {
        size_t n = strlen(text);
        if (n > line) {
            n = line;
            while (n > 0 && text[n] != ' ')
                n--;
            n = n > 0 ? n : strcspn(text, " ");
        }
        fprintf(out, "%.*s\n", (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
}

void words_assumptions(FILE *out, const char *lines)
{
    fputs("\nassumed, where the source says nothing:\n", out);
    while (*lines) {
        int n = (int)strcspn(lines, "\n");
        fprintf(out, "  - %.*s\n", n, lines);
        lines += n + (lines[n] == '\n');
    }
}

const char *words_stem(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *dot = strrchr(file, '.');
    return arena_printf(arena, "%.*s", (int)(dot && dot > file ? dot - file : (long)strlen(file)), file);
}

const char *words_shell(const char *text, struct arena *arena)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=+-,:@%";
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
        fprintf(stderr, "\r%s: %d of %d %s%s", command, done, total, what, done == total ? "\n" : "");
}
