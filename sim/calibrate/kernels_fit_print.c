#include "calibrate/kernels_fit.h"

static void print_fit(FILE *out, const struct kernels_fit *fit, const char *name)
{
    fit_print_head(out, name);
    for (int i = 0; i < KERNELS_GROUPS; i++) {
        fit_print_parameters(out, &fit->groups[i]);
        fit_print_tied(out, &fit->groups[i]);
    }
    for (int class = 0; class < KERNELS_CLASS_COUNT; class ++)
        for (int use = 0; use < KERNELS_USE_COUNT; use++)
            fit_print_error(out, kernels_class_names[class], kernels_use_names[use],
                kernels_error(fit, (enum kernels_class) class, (enum kernels_use)use));
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
