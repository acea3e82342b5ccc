/* `flopcast help WORD`: what terms, settings and columns of results say of a word.
 *
 * Terms that have no other place stand here; settings are searched in the text of their
 * reference, two lines each, columns in store/record.h. A word is found as a whole word in
 * sentences, and as any part of a setting's path or a column's name. */
#include "cli/dictionary.h"

#include "base/arena.h"
#include "rows/words.h"
#include "store/record.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What tables print that is no setting and has no other sentence. */
static const struct {
    const char *names, *meaning;
} terms[] = {
    {"MFU, mfu, model FLOP utilization",
        "the model's FLOP (GEMMs and attention of forward and backward, half of causal "
        "attention) of a step over what the GPUs' dense peak of the precision does in "
        "its time; recomputation does not count"},
    {"HFU, hfu, hardware FLOP utilization", "the same of what is executed: recomputation counts"},
    {"KV cache, kv, past_key_values",
        "keys and values of the tokens so far, which generation reads again: 2 x layers x KV heads "
        "x head size x bytes a token; training has none, except T5's default (train.use_cache). "
        "`flopcast memory MODEL --teach` has its size"},
    {"GQA, MQA, KV heads",
        "fewer heads of keys and values than of queries: n_kv_heads of a model file"},
    {"exposed comm, exposed_comm_s",
        "time in which compute waits for the network; hidden: collectives beside compute"},
    {"bubble, bubble_s",
        "time in which a pipeline's stage waits for another stage to come to a message"},
    {"straggler, straggler_wait_s",
        "a slow GPU, host or node; time in which the others wait for it in a collective"},
    {"HBM peak, peak_allocated_bytes", "the most that tensors take (max_memory_allocated)"},
    {"reserved, peak_reserved_bytes",
        "the most that PyTorch's allocator holds (max_memory_reserved)"},
    {"goodput", "the share of months that trains; failures, checkpoints, lost work and restarts "
                "have the rest"},
    {"accum", "micro-batches to an optimizer step (train.grad_accum)"},
    {"90 %, how sure",
        "nine of ten measured runs should lie in it, by how predictions of runs alike came out"},
    {"busbw, algbw", "bytes a second as nccl-tests count: times the factor that makes algorithms "
                     "comparable; of the buffer"},
};

bool dictionary_has(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)); at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

bool dictionary_settings(FILE *out, const char *heading, const char *prefix,
    const struct config_table *table, const void *defaults, const char *word)
{
    char *text = NULL;
    size_t size = 0;
    bool any = false;
    FILE *lines = xmemstream(&text, &size);
    config_print_reference(lines, table, defaults);
    fclose(lines);
    struct arena arena = ARENA_INIT;
    for (char *at = text; *at;) { /* "path: default" and, indented, its sentence */
        size_t head = strcspn(at, "\n");
        const char *line = arena_printf(&arena, "%s%.*s", prefix, (int)head, at);
        const char *path = arena_printf(&arena, "%.*s", (int)strcspn(line, ":"), line);
        at += head + (at[head] == '\n');
        size_t n = 0;
        while (at[n] == ' ')
            n += strcspn(at + n, "\n") + 1;
        const char *sentence = arena_printf(&arena, "%.*s", (int)n, at);
        at += n;
        if (!strcasestr(path, word) && !dictionary_has(sentence, word))
            continue;
        fprintf(out, "%s%s%s\n%s", any ? "" : heading, any ? "" : "\n\n", line, sentence);
        any = true;
    }
    fputs(any ? "\n" : "", out);
    arena_release(&arena);
    free(text);
    return any;
}

bool dictionary_columns(FILE *out, const char *word)
{
    bool any = false;
    for (int i = 0; i < n_record_columns; i++) {
        const struct record_column *column = &record_columns[i];
        const char *heading = column->shown.heading ? column->shown.heading : "";
        const char *about = column->about ? column->about : "";
        if (!strcasestr(column->name, word) && !dictionary_has(heading, word) &&
            !dictionary_has(about, word))
            continue;
        const char *unit = *heading && column->shown.unit ? column->shown.unit : "";
        fprintf(out, "%s%s%s%s%s%s\n",
            any ? "" : "columns of results, in CSV, JSON and databases:\n\n", column->name,
            *heading ? ": " : "", heading, *unit ? ", " : "", unit);
        if (*about)
            fprintf(out, "    %s\n", about);
        any = true;
    }
    fputs(any ? "\n" : "", out);
    return any;
}

bool dictionary_terms(FILE *out, const char *word)
{
    struct arena arena = ARENA_INIT;
    bool any = false;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        if (!dictionary_has(terms[i].names, word) && !dictionary_has(terms[i].meaning, word))
            continue;
        words_paragraph(out, arena_printf(&arena, "%s: %s", terms[i].names, terms[i].meaning));
        any = true;
    }
    fputs(any ? "\n" : "", out);
    arena_release(&arena);
    return any;
}
