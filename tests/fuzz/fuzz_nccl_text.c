/* Any bytes as a log of nccl-tests (JSON where they begin so). What must hold: no crash, no leak, a
 * message for every refusal, and rows that the database takes. */
#include "import/nccl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct nccl_log log = {0};
    const struct nccl_options options = {.ranks = size % 2 ? 16 : 0};
    struct input *input = input_open_text("fuzz.log", (const char *)data, size);
    enum status status = nccl_read(&log, input, &options, &arena, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    BUG_IF(status == STATUS_OK && log.rows.n == 0, "no rows and no message");
    for (int i = 0; i < log.rows.n; i++) {
        const struct collective_measurement *row = &log.rows.at[i];
        BUG_IF(
            !row->collective || !row->dtype || row->bytes <= 0 || row->ranks < 1 || row->nodes < 0,
            "row %d", i);
        BUG_IF(!(row->out_of_place_s > 0 || row->in_place_s > 0), "row %d without time", i);
        BUG_IF(i > 0 && row->position <= row[-1].position, "positions do not grow");
    }
    vec_free(&log.rows);
    input_close(input);
    arena_release(&arena);
    return 0;
}
