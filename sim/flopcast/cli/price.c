/* --price NAME=DOLLARS: prices of GPUs by their names, for tune and goodput.
 *
 * A name fits a GPU if each of its words is one of the GPU's words, in order: "h100" is called
 * by "H100 SXM 80GB". A name that fits several GPUs of the scenario is an error, one that fits
 * none a warning. The price replaces that of the topology file, with the option as its source. */
#include "cli/price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void argument_price(void *self, const struct argument *argument)
{
    struct prices *prices = self;
    const char *text = argument->text;
    size_t length = strcspn(text, "=");
    char *end = NULL, why[256];
    double value = text[length] ? strtod(text + length + 1, &end) : 0;
    if (end && *end &&
        !quantity_parse(&value, text + length + 1, DIM_USD_PER_HOUR, why, sizeof why))
        value = 0;
    if (length == 0 || !(value > 0 && isfinite(value)))
        argp_error(argument->state,
            "--price %s: NAME=DOLLARS an hour is wanted, as in --price h100=3.2", text);
    const char *name = arena_printf(&prices->texts, "%.*s", (int)length, text);
    vec_push(&prices->list, (struct gpu_price){name, text, value});
}

static const char word_end[] = "- _";

/* Every word of the name is one of the GPU's, in that order. */
static bool price_is_called(const char *gpu, const char *name)
{
    while (*name) {
        size_t n = strcspn(name, word_end), length = strcspn(gpu, word_end);
        if (!*gpu)
            return false;
        if (n == length && strncasecmp(gpu, name, n) == 0)
            name += n + strspn(name + n, word_end);
        gpu += length + strspn(gpu + length, word_end);
    }
    return true;
}

/* The GPUs of the set, each once: those that are called so, or all (name NULL). */
static const char *gpus_called(
    const struct scenario_set *set, const char *name, int *n, struct arena *arena)
{
    const char *names = "";
    *n = 0;
    for (int i = 0; i < set->n_points; i++) {
        const struct hw_gpu *gpu = &set->points[i].hw.gpu;
        bool known = false;
        for (int k = 0; k < i && !known; k++)
            known = strcmp(set->points[k].hw.gpu.name, gpu->name) == 0;
        if (!known && (!name || price_is_called(gpu->name, name)))
            names = arena_printf(arena, "%s%s%s", names, (*n)++ ? ", " : "", gpu->name);
    }
    return names;
}

enum status prices_set(
    const struct prices *prices, struct scenario_set *set, struct arena *arena, struct diag *diag)
{
    for (int p = 0; p < prices->list.n; p++) {
        const struct gpu_price *price = &prices->list.at[p];
        const char *from = arena_printf(arena, "--price %s", price->text);
        struct source_pos at = {.file = from};
        int n = 0, all = 0;
        const char *called = gpus_called(set, price->name, &n, arena);
        const char *known = gpus_called(set, NULL, &all, arena);
        if (n == 0)
            diag_warn(
                diag, at, "no GPU here is called so; there %s %s", all == 1 ? "is" : "are", known);
        if (n > 1)
            diag_input(diag, at,
                "several GPUs of this search are called so: %s; give more of the name", called);
        for (int i = 0; i < set->n_points && n == 1; i++) {
            struct hw_gpu *gpu = &set->points[i].hw.gpu;
            if (price_is_called(gpu->name, price->name))
                gpu->price =
                    (struct quantity){price->usd_per_hour, 0, QUANTITY_ASSUMED, from, NULL};
        }
    }
    return diag->worst;
}

void prices_free(struct prices *prices)
{
    vec_free(&prices->list);
    arena_release(&prices->texts);
}
