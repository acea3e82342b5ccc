/* tune --emit: the best candidates, as settings, to flopcast-interop, which writes the first that
 * the trainer has options for. A candidate's own point is not handed on: its command
 * (tune_overrides()) is the same job. */
#include "cli/tune.h"

#include "options/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIED = 20 }; /* of candidates that a trainer seems to have and then has not */

static const char *const tune_trainers[] = {"torchtitan", "megatron", "automodel", NULL};
enum { MEGATRON = 1 };

void tune_emit_take(void *emit, const struct argument *argument)
{
    const char **trainer = emit;
    *trainer = tune_trainers[argument_name(argument, tune_trainers)];
}

/* What certainly is another trainer's is not handed on. */
static bool may_be(const char *trainer, const struct tune_candidate *candidate)
{
    int kind = candidate->point.options.strategy.kind;
    return kind == (trainer == tune_trainers[MEGATRON] ? STRATEGY_MEGATRON : STRATEGY_FSDP);
}

static char *title(struct arena *arena, const struct tune_command *command,
    const struct tune_candidate *candidate, int place)
{
    const struct tune_rates *rates = candidate->finalist ? &candidate->noisy : &candidate->quiet;
    return arena_printf(arena,
        "By `flopcast tune --emit %s`: %s on %" PRId64 " GPUs; simulated: %.4g tokens/s%s",
        command->emit, tune_name(arena, candidate), candidate->point.options.cluster.gpus,
        rates->tokens_per_s,
        place > 0 ? arena_printf(arena, ", %d that are faster are not this trainer's", place) : "");
}

/* The first of an order; returns how many were added. */
static int add_words(struct program_words *words, const struct tune_command *command,
    const struct scenario_set *set, const struct tune *tune, const int *order, int n, int added)
{
    for (int i = 0; i < n && added < MOST_TRIED; i++) {
        const struct tune_candidate *candidate = &tune->candidates.at[order[i]];
        if (!may_be(command->emit, candidate))
            continue;
        if (added++ > 0)
            vec_push(&words->list, arena_strdup(&words->texts, SCENARIO_EMIT_OR));
        vec_push(&words->list, title(&words->texts, command, candidate, i));
        struct tune_overrides overrides = tune_overrides(command, set, candidate, &words->texts);
        for (int k = 0; k < overrides.list.n; k++)
            vec_push(&words->list, arena_printf(&words->texts, "%s=%s", overrides.list.at[k].key,
                                       overrides.list.at[k].value));
        vec_free(&overrides.list);
    }
    return added;
}

void tune_emit(const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct diag *diag)
{
    if (!command->emit)
        return;
    int *order = tune_indices(tune);
    struct program_words words = {0};
    const char *const first[] = {
        "scenario", "emit", command->emit, command->out ? command->out : "-", command->file};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        vec_push(&words.list, arena_strdup(&words.texts, first[i]));
    int n = add_words(
        &words, command, set, tune, order, tune_rank(order, tune, (enum tune_order)command->by), 0);
    if (n < MOST_TRIED)
        n = add_words(&words, command, set, tune, order,
            tune_rank_quiet(order, tune, (enum tune_order)command->by), n);
    fflush(stdout);
    if (n > 0)
        program_run(PROGRAM_INTEROP, &words, diag);
    else
        diag_input(diag, (struct source_pos){.file = command->file},
            "nothing that ran is %s's: of megatron it is strategy megatron, of torchtitan and "
            "automodel FSDP2, as in --strategy fsdp2",
            command->emit);
    vec_free(&words.list);
    arena_release(&words.texts);
    free(order);
}
