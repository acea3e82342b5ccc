#include "strategy/schedule.h"

const char *const pipeline_schedule_names[] = {"1F1B", "GPipe", "ZBH1", 0};
const char *const cell_pass_names[CELL_KIND_COUNT] = {"forward", "backward", "backward_input", "backward_weight"};

int schedule_place(const struct schedule *s, int chunk)
{
    return chunk * s->stages + s->stage;
}

int schedule_most_cells(const struct schedule *schedule)
{
    return (schedule->kind == SCHEDULE_ZBH1 ? 3 : 2) * schedule->micro_batches * schedule->chunks;
}

/* The k-th forward cell of a stage: groups of as many micro-batches as there are stages go through chunk after chunk.
 */
static struct cell nth_forward(const struct schedule *s, int k)
{
    int group = s->chunks == 1 ? s->micro_batches : s->stages, of_group = k % (group * s->chunks);
    int first = k / (group * s->chunks) * group;
    return (struct cell){CELL_FORWARD, first + of_group % group, of_group / group};
}

/* Backward goes through the same micro-batches, and through the chunks from the last one on. */
static struct cell nth_backward(const struct schedule *s, int k, enum cell_kind kind)
{
    struct cell cell = nth_forward(s, k);
    return (struct cell){kind, cell.micro_batch, s->chunks - 1 - cell.chunk};
}

int schedule_warm_up(const struct schedule *s)
{
    int all = s->micro_batches * s->chunks, before_last = s->stages - s->stage - 1;
    int n = s->kind == SCHEDULE_GPIPE && s->stages > 1 ? all
            : s->chunks > 1                            ? 2 * before_last + (s->chunks - 1) * s->stages
                                                       : before_last;
    n += s->merges ? 1 : 0;
    return n < all ? n : all;
}

bool schedule_merges(const struct schedule *s, const struct cell *cells, int n, int i)
{
    return s->merges && i >= schedule_warm_up(s) && i + 1 < n && cells[i].kind == CELL_FORWARD &&
           cells[i + 1].kind == CELL_BACKWARD;
}

int schedule_cells(struct cell *cells, const struct schedule *s)
{
    bool splits = s->kind == SCHEDULE_ZBH1 && s->stages > 1;
    enum cell_kind backward = splits ? CELL_BACKWARD_INPUT : CELL_BACKWARD;
    int all = s->micro_batches * s->chunks, n = 0, warm = schedule_warm_up(s), weights = 0;
    for (int k = 0; k < warm; k++)
        cells[n++] = nth_forward(s, k);
    for (int k = 0; k < all; k++) {
        if (warm + k < all)
            cells[n++] = nth_forward(s, warm + k);
        cells[n++] = nth_backward(s, k, backward);
        if (splits && k >= s->stage)
            cells[n++] = nth_backward(s, weights++, CELL_BACKWARD_WEIGHT);
    }
    while (splits && weights < all)
        cells[n++] = nth_backward(s, weights++, CELL_BACKWARD_WEIGHT);
    return n;
}

int schedule_in_flight(const struct cell *cells, int n)
{
    int now = 0, most = 0;
    for (int i = 0; i < n; i++) {
        now += cells[i].kind == CELL_FORWARD;
        now -= cells[i].kind == CELL_BACKWARD || cells[i].kind == CELL_BACKWARD_INPUT;
        most = now > most ? now : most;
    }
    return most;
}
