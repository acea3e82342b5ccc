/* Any text is a model, whose layers and kernels can then be laid out and printed, or a list of
 * errors. */
#include "model/model.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct diag diag;
    diag = DIAG_INIT;
    struct arena arena = ARENA_INIT;
    struct model_shape shape;
    enum status status = model_parse(&shape, "fuzz", (const char *)data, n, &arena, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d with %d errors", (int)status,
        diag.n_errors);
    if (status == STATUS_OK) {
        struct model model;
        model_build(&model, &shape, &arena);
        BUG_IF(model.params <= 0, "a model of %ld parameters", (long)model.params);
        char *text = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);
        model_print(out, &model);
        fclose(out);
        free(text);
    }
    arena_release(&arena);
    return 0;
}
