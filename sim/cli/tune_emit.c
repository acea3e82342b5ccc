#include "cli/tune.h"

#include "base/file_write.h"
#include "exchange/emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIED = 20 }; /* of candidates that a trainer seems to have and then has not */

void tune_emit_take(void *emit, const struct argument *argument)
{
    static const char *const names[] = {"torchtitan", "megatron", "automodel", NULL};
    const char *name = names[argument_name(argument, names)];
    int *format = emit;
    for (*format = 0; strcmp(configuration_format_names[*format], name) != 0;)
        ++*format;
}

static const char *title(const struct tune_command *command, const struct tune_candidate *candidate, int place)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    const struct tune_rates *rates = candidate->finalist ? &candidate->noisy : &candidate->quiet;
    fprintf(out, "By `flopcast tune --emit %s`: ", configuration_format_names[command->emit]);
    tune_name(out, candidate);
    fprintf(out, " on %" PRId64 " GPUs; simulated: %.4g tokens/s", candidate->point.options.cluster.gpus,
        rates->tokens_per_s);
    if (place > 0)
        fprintf(out, ", %d that are faster are not this trainer's", place);
    fclose(out);
    return text;
}

/* The first of an order that can be written; false: none, and why the first could not. */
static bool emit_first(
    FILE *out, const struct tune_command *command, const struct tune *tune, const int *order, int n, struct diag *why)
{
    int tried = 0;
    for (int i = 0; i < n && tried < MOST_TRIED; i++) {
        const struct tune_candidate *candidate = &tune->candidates.at[order[i]];
        struct diag own = DIAG_INIT;
        enum configuration_format format = (enum configuration_format)command->emit;
        if (!emit_can(format, &candidate->point))
            continue;
        const char *head = title(command, candidate, i);
        enum status status = emit_configuration(out, format, &candidate->point, head, &own);
        free((char *)(uintptr_t)head);
        if (status == STATUS_OK)
            return true;
        if (tried++ == 0)
            diag_merge(why, &own);
    }
    if (tried == 0)
        diag_input(why, (struct source_pos){.file = command->file},
            "nothing that ran is %s's: of megatron it is strategy megatron, of torchtitan and automodel FSDP2, as in "
            "--strategy fsdp2",
            configuration_format_names[command->emit]);
    return false;
}

void tune_emit(const struct tune_command *command, const struct tune *tune, struct diag *diag)
{
    if (command->emit == CONFIGURATION_FORMAT_COUNT)
        return;
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    struct diag why = DIAG_INIT, again = DIAG_INIT;
    bool found =
        emit_first(out, command, tune, order, tune_rank(order, tune, (enum tune_order)command->by), &why) ||
        emit_first(out, command, tune, order, tune_rank_quiet(order, tune, (enum tune_order)command->by), &again);
    fclose(out);
    if (!found)
        diag_merge(diag, &again);
    else if (command->out)
        file_write(command->out, text, n, diag);
    else
        fwrite(text, 1, n, stdout);
    free(text);
    free(order);
}
