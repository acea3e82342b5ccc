/* Private to cli: words and numbers that several commands print alike. */
#ifndef FLOPCAST_ROWS_WORDS_H
#define FLOPCAST_ROWS_WORDS_H

#include "base/arena.h"
#include "scenario/scenario.h"

#include <stdio.h>

/* What the throughput of a model counts: "tokens", "images", "samples" (of features). */
const char *words_counted(const struct model_shape *shape);
/* The same for all points of a set: of several kinds "tokens, images" or "tokens, samples". */
const char *words_counted_all(const struct scenario_set *set);

/* The number with this many decimals. If signs are wanted and it does not round to zero, with its
 * sign: "+1.50", "0.00". */
const char *words_number(struct arena *arena, double value, int digits, bool sign);

/* The text as screen_wrap() breaks it. */
void words_paragraph(FILE *out, const char *text);
void words_paragraph_of(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "1,234,567": counts that are read, not computed with. */
const char *words_count(struct arena *arena, double value);

/* "gpt2 DDP, batch 8, 16 GPUs". */
const char *words_point(const struct scenario_point *point, struct arena *arena);

/* "trace scale: 3 of 12 runs" on a terminal that one waits at (stderr), again and again in one
 * line; ends it with the last. */
void words_progress(const char *command, const char *what, int done, int total);

/* What a scenario assumes: its lines as a list below a head. */
void words_assumptions(FILE *out, const char *lines);

/* Lines that are longer than the screen is wide go on below, four characters further in. text is
 * taken apart. */
void words_lines(FILE *out, char *text);

/* The same of what is written into the file that begin returns, up to end. */
struct words_gathered {
    FILE *file;
    char *text;
    size_t n;
};
FILE *words_gather(struct words_gathered *gathered);
void words_gathered(FILE *out, struct words_gathered *gathered);

/* "runs/ds_config.json" -> "ds_config". */
const char *words_stem(const char *path, struct arena *arena);

/* A command behind head: on several lines, as a shell takes them, where it is longer than the
 * screen is wide. */
void words_command(FILE *out, const char *head, const char *command);

/* How a command names a scenario's file: one of flopcast's own by its short name. */
const char *words_file(struct arena *arena, const char *path);

/* The text as one word of a shell. */
const char *words_shell(const char *text, struct arena *arena);

/* Why a point is out of memory: what it needs and has, the op that was first, and what is needed by
 * category; of a pipeline which stage ran out, and which others would. Two or three indented lines.
 */
void words_oom(FILE *to, const struct exec_result *result);

#endif
