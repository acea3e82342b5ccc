#include "calibrate/kernels_fit.h"
#include "calibrate/robust.h"

#include <math.h>

static void print_group(FILE *out, const struct kernels_group *group)
{
    for (int i = 0; i < group->n; i++) {
        char value[64], error[64];
        quantity_format(value, sizeof value, group->value[i].value, group->dimension[i]);
        quantity_format(error, sizeof error, group->value[i].std_error, group->dimension[i]);
        fprintf(out, "  %-22s %14s  +- %s\n", group->name[i], value, error);
    }
    for (size_t i = 0; i < (size_t)group->n; i++)
        for (size_t j = 0; j < i; j++) {
            double both = sqrt(gsl_matrix_get(group->covariance, i, i) * gsl_matrix_get(group->covariance, j, j));
            double correlation = gsl_matrix_get(group->covariance, i, j) / both;
            if (fabs(correlation) >= CALIBRATE_TIED)
                fprintf(out, "  correlation of %s and %s: %.2f\n", group->name[j], group->name[i], correlation);
        }
}

static void print_fit(FILE *out, const struct kernels_fit *fit, const char *name)
{
    fprintf(out, "%s\n", name);
    for (int i = 0; i < KERNELS_GROUPS; i++)
        print_group(out, &fit->groups[i]);
    fprintf(out, "  |model / measured - 1|            n   median      p90\n");
    for (int class = 0; class < KERNELS_CLASS_COUNT; class ++)
        for (int use = 0; use < KERNELS_USE_COUNT; use++) {
            struct kernels_error error = kernels_error(fit, (enum kernels_class) class, (enum kernels_use)use);
            if (error.n > 0)
                fprintf(out, "  %-14s %-14s %5d %6.1f %% %6.1f %%\n", kernels_class_names[class],
                    kernels_use_names[use], error.n, 100 * error.median, 100 * error.p90);
        }
}

enum status kernels_fit_print(
    FILE *out, const char *measured_folder, const char *gpus_folder, struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < KERNELS_GPUS && status == STATUS_OK; i++) {
        struct hw_gpu filed;
        struct kernels_fit fit = {0};
        status = hw_load_gpu(&filed, arena_printf(arena, "%s/%s.yaml", gpus_folder, kernels_gpus[i]), arena, diag);
        if (status == STATUS_OK)
            status = kernels_fit_solve(
                &fit, &filed, kernels_gpus[i], arena_printf(arena, "%s/kernels.csv", measured_folder), diag);
        if (status == STATUS_OK)
            print_fit(out, &fit, kernels_gpus[i]);
        kernels_fit_free(&fit);
    }
    return status;
}
