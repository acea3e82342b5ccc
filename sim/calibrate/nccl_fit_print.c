#include "calibrate/nccl_fit.h"

#include <math.h>

static void print_error(FILE *out, struct fit_error error)
{
    if (error.n)
        fprintf(out, " %4d %6.1f %%", error.n, 100 * error.median);
    else
        fprintf(out, " %4s %8s", "", "");
}

static void print_cases(FILE *out, const struct nccl_fit *fit, enum nccl_use use)
{
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *which = &fit->cases.at[i];
        if (which->use != use)
            continue;
        fprintf(
            out, "%-8s %-14s %4d %5d", nccl_use_names[use], coll_kind_names[which->kind], which->nodes, which->ranks);
        print_error(out, nccl_case_error(fit, which, NCCL_LARGE_BYTES, HUGE_VAL));
        print_error(out, nccl_case_error(fit, which, 0, NCCL_SMALL_BYTES));
        fprintf(out, " %-6s", use == NCCL_BAD ? "" : nccl_case_seen(fit, which) ? "seen" : "unseen");
        fprintf(out, "  %s: %s%s%s", *which->topology ? which->topology : "-", which->source, *which->note ? ". " : "",
            which->note);
        struct nccl_contradiction apart = nccl_case_contradiction(fit, which, NCCL_LARGE_BYTES, HUGE_VAL);
        if (apart.with)
            fprintf(out, ". Contradicted, by a factor of %.2f: %s", apart.factor, apart.with->source);
        fputc('\n', out);
    }
}

/* How many left-out tables are predicted as well as is wanted. */
static void print_summary(
    FILE *out, const struct nccl_fit *fit, const char *sizes, double min_bytes, double max_bytes, double wanted)
{
    int n = 0, good = 0, contradicted = 0, n_seen = 0, good_seen = 0;
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *which = &fit->cases.at[i];
        struct fit_error error = nccl_case_error(fit, which, min_bytes, max_bytes);
        if (which->use != NCCL_LEFT_OUT || error.n == 0)
            continue;
        n++;
        good += error.median <= wanted;
        n_seen += nccl_case_seen(fit, which);
        good_seen += error.median <= wanted && nccl_case_seen(fit, which);
        contradicted += error.median > wanted && nccl_case_contradiction(fit, which, min_bytes, max_bytes).with;
    }
    fprintf(out, "left out, %s: %d of %d tables within %.0f %%\n", sizes, good, n, 100 * wanted);
    fprintf(out, "  of the others, contradicted by another table of the same machine: %d\n", contradicted);
    fprintf(out, "  of those whose hardware a fitted table has: %d of %d within\n", good_seen, n_seen);
}

void nccl_fit_print(FILE *out, const struct nccl_fit *fit)
{
    fprintf(out, "|model / measured - 1|, median over sizes%28s%14s\n", ">= 1 MiB", "< 64 KiB");
    fprintf(out, "%-8s %-14s %4s %5s %4s %8s %4s %8s %-6s  topology: table\n", "use", "collective", "nodes", "ranks",
        "n", "error", "n", "error", "hardw.");
    for (int use = 0; use < NCCL_USE_COUNT; use++)
        print_cases(out, fit, (enum nccl_use)use);
    fputc('\n', out);
    print_summary(out, fit, ">= 1 MiB", NCCL_LARGE_BYTES, HUGE_VAL, NCCL_LARGE_WANTED);
    print_summary(out, fit, "< 64 KiB", 0, NCCL_SMALL_BYTES, NCCL_SMALL_WANTED);
    fputc('\n', out);
    fit_print_head(out, "parameters");
    fit_print_parameters(out, &fit->fit);
    fit_print_tied(out, &fit->fit);
}
