/* Any bytes as the Chakra trace of both ranks of a job. What must hold: no crash, no leak, a
 * message for every refusal; what is read makes a plan, or is refused. */
#include "exchange/replay.h"

static struct hw hw;
static struct arena topology;

__attribute__((constructor)) static void load(void)
{
    struct diag diag = DIAG_INIT;
    BUG_IF(hw_load(&hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml", &topology,
               &diag) != STATUS_OK,
        "%s", diag.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"x.0.et", "x.0.et"};
    FILE *file = fopen(paths[0], "wb");
    BUG_IF(
        !file || fwrite(data, 1, size, file) != size || fclose(file) != 0, "cannot write x.0.et");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct chakra_trace traces[2];
    enum status status = chakra_read(&traces[0], paths[0], &arena, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    traces[1] = traces[0];
    if (status == STATUS_OK) {
        const struct replay_groups none = {{0}};
        struct plan plan = {0};
        status = chakra_plan(&plan, traces, paths, 2, &none, &hw, size % 2, &arena, &diag);
        BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
            diag.n_errors);
        plan_release(&plan);
    }
    chakra_free(&traces[0]);
    arena_release(&arena);
    return 0;
}
