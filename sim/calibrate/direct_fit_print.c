#include "calibrate/direct_fit.h"

/* What no file has; nothing where it was not found. */
static void print_own(FILE *out, const char *format, const char *name, struct quantity q, enum dimension dimension)
{
    if (q.kind == QUANTITY_FITTED || q.kind == QUANTITY_MEASURED)
        fit_print_number(out, format, name, (struct quantity){0}, q, dimension, "");
}

static void print_gpu(FILE *out, const char *name, const struct hw_gpu *filed, const struct direct_fit *fit)
{
    fit_print_head(out, name);
    fit_print_fields(out, &hw_gpu_table, filed, &fit->gpu, "", NULL);
    print_own(out, "", "cast_floor", fit->cast_floor_s, DIM_SECONDS);
    print_own(out, "", "amax_floor", fit->amax_floor_s, DIM_SECONDS);
    print_own(out, "", "amax_share", fit->amax_share, DIM_FRACTION);
    for (int i = 0; i < DTYPE_COUNT; i++) {
        print_own(out, dtype_names[i], "settled", fit->settled[i], DIM_FRACTION);
        print_own(out, dtype_names[i], "grouped_share", fit->grouped_share[i], DIM_FRACTION);
        print_own(out, dtype_names[i], "moved_share", fit->moved_share[i], DIM_FRACTION);
        print_own(out, dtype_names[i], "layer_floor", fit->layer_floor_s[i], DIM_SECONDS);
    }
    for (int i = 0; i < DTYPE_COUNT; i++)
        fit_print_error(out, dtype_names[i], "held out", fit->product_error[i]);
    for (int i = DIRECT_ATTENTION; i < DIRECT_KIND_COUNT; i++)
        fit_print_error(out, direct_kind_names[i], "held out", fit->error[i]);
}

enum status direct_fit_print(
    FILE *out, const char *measured_folder, const char *gpus_folder, struct arena *arena, struct diag *diag)
{
    const char *table = arena_printf(arena, "%s/direct.csv", measured_folder);
    enum status status = STATUS_OK;
    for (int i = 0; i < DIRECT_GPUS && status == STATUS_OK; i++) {
        struct hw_gpu filed;
        struct direct_fit fit = {0};
        status = hw_load_gpu(&filed, arena_printf(arena, "%s/%s.yaml", gpus_folder, direct_gpus[i]), arena, diag);
        if (status == STATUS_OK)
            status = direct_fit_solve(&fit, &filed, direct_gpus[i], table, diag);
        if (status == STATUS_OK)
            print_gpu(out, direct_gpus[i], &filed, &fit);
        direct_fit_free(&fit);
    }
    return status;
}
