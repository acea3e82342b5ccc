/* Any bytes as operators of a run without a GPU. What must hold: no crash, no leak, a message for every refusal; and
 * what is written is a trace that its reader takes. */
#include "foreign/ops.h"
#include "foreign/trace_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hw_gpu gpu;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT, read = DIAG_INIT;
    struct ops_counts counts;
    char *text = NULL;
    size_t n = 0;
    BUG_IF(hw_load_gpu(&gpu, FLOPCAST_SOURCE_DIR "/topologies/gpus/h100-sxm5-80gb.yaml", &arena, &diag) != STATUS_OK,
        "%s", diag.text);
    const struct ops_options options = {.gpu = &gpu, .issue_s = 1e-5};
    FILE *out = open_memstream(&text, &n);
    enum status status = ops_write_trace_of(&counts, out, (const char *)data, size, &options, &diag);
    fclose(out);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status, diag.n_errors);
    if (status == STATUS_OK) {
        struct trace trace = {.rank = -1};
        struct input *input = input_open_text("fuzz.json", text, n);
        BUG_IF(trace_read_kineto(&trace, input, -1, &arena, &read) != STATUS_OK, "%s", read.text);
        BUG_IF(trace.activities.n != counts.kernels + counts.collectives, "%d activities", trace.activities.n);
        input_close(input);
        trace_free(&trace);
    }
    free(text);
    arena_release(&arena);
    return 0;
}
