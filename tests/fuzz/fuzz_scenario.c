/* Any bytes as a scenario file beside the project's own models and topologies. What must hold: no
 * crash, no leak, a message for every refusal; what loads has points that compile or say why not,
 * and a configuration that is written as JSON. */
#include "scenario/scenario.h"

#include <stdlib.h>
#include <unistd.h>

static void leave(void)
{
    unlink("models");
    unlink("topologies");
    unlink("x.yaml");
}

/* The scenario is written where the fuzzer runs; links lead to its inputs. */
__attribute__((constructor)) static void enter(void)
{
    leave();
    BUG_IF(
        symlink(FLOPCAST_SOURCE_DIR "/scenarios/models", "models") != 0, "cannot link the models");
    BUG_IF(symlink(FLOPCAST_SOURCE_DIR "/topologies", "topologies") != 0,
        "cannot link the topologies");
    BUG_IF(atexit(leave) != 0, "cannot clean up");
}

static void check_point(const struct scenario_point *point)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct plan plan = {0};
    bool small = point->options.strategy.train.grad_accum <= 2 && point->model.n_layers <= 16;
    enum status status = small ? scenario_compile(&plan, point, &arena, &diag) : STATUS_OK;
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    char why[256];
    BUG_IF(small && status == STATUS_OK && !plan_check(&plan, why, sizeof why), "%s", why);
    plan_release(&plan);
    char *json = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&json, &n);
    config_write_json(out, &scenario_table, &point->options, &point->origins);
    fclose(out);
    free(json);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *file = fopen("x.yaml", "wb");
    BUG_IF(
        !file || fwrite(data, 1, size, file) != size || fclose(file) != 0, "cannot write x.yaml");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    enum status status = scenario_load(&set, "x.yaml", NULL, 0, &arena, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    BUG_IF(
        (status == STATUS_OK) != (set.n_points > 0), "status %d, %d points", status, set.n_points);
    if (set.n_points > 0)
        check_point(&set.points[set.n_points - 1]);
    arena_release(&arena);
    return 0;
}
