/* Any bytes as a cluster, node and GPU file, beside the project's own. What must hold: no crash, no
 * leak, a message for every refusal; what loads is printed, and a number that changes is written
 * into a file that reads back with it. */
#include "hw/override.h"

#include <stdlib.h>
#include <unistd.h>

static void leave(void)
{
    unlink("topologies");
    unlink("x.yaml");
    unlink("changed.yaml");
}

__attribute__((constructor)) static void enter(void)
{
    leave();
    BUG_IF(symlink(FLOPCAST_SOURCE_DIR "/topologies", "topologies") != 0,
        "cannot link the topologies");
    BUG_IF(atexit(leave) != 0, "cannot clean up");
}

static void check_print(const struct hw *hw, const struct hw_sources *sources)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    hw_print(out, hw, sources);
    fclose(out);
    free(text);
}

/* A file whose text cannot take a change (tabs, say) is refused with a message. */
static void check_change(const struct hw_gpu *gpu, struct arena *arena)
{
    struct hw_gpu now = *gpu, back;
    struct diag diag = DIAG_INIT;
    now.tdp = (struct quantity){123, 0, QUANTITY_MEASURED, "fuzz", NULL};
    now.gemm[DTYPE_BF16].tile_share = (struct quantity){0.25, 0, QUANTITY_MEASURED, "fuzz", NULL};
    FILE *out = fopen("changed.yaml", "w");
    enum status status = hw_write_changed(out, "x.yaml", &hw_gpu_table, &now, &diag);
    BUG_IF(fclose(out) != 0, "cannot write changed.yaml");
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    if (status != STATUS_OK)
        return;
    status = hw_load_gpu(&back, "changed.yaml", arena, &diag);
    /* a format of which only tile_share is given is refused; what else is read back is what was
     * written */
    BUG_IF(status == STATUS_OK &&
               (back.tdp.value != 123 || back.gemm[DTYPE_BF16].tile_share.value != 0.25),
        "another number came back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *file = fopen("x.yaml", "wb");
    BUG_IF(
        !file || fwrite(data, 1, size, file) != size || fclose(file) != 0, "cannot write x.yaml");
    for (int kind = 0; kind < 3; kind++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct hw hw = {0};
        struct hw_sources sources = {0};
        enum status status =
            kind == 0   ? hw_load_from(&hw, &sources, "x.yaml", &arena, &diag)
            : kind == 1 ? hw_load_node_from(&hw.node, &sources.node, "x.yaml", &arena, &diag)
                        : hw_load_gpu_from(&hw.gpu, &sources.gpu, "x.yaml", &arena, &diag);
        BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
            diag.n_errors);
        if (status == STATUS_OK && kind != 1)
            check_print(&hw, &sources);
        if (status == STATUS_OK && kind == 2)
            check_change(&hw.gpu, &arena);
        hw_sources_free(&sources);
        arena_release(&arena);
    }
    return 0;
}
