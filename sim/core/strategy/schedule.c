/* Schedules as lists of cells, by closed rules and not by simulation: warm-up, pairs, cool-down.
 *
 * nth_forward() says which micro-batch and chunk the k-th forward cell is; backward cells go
 * through the same ones with the chunks reversed. Schedules in a V come from a writer that counts
 * the cells of each kind and chunk. Cells of micro-batches that a step does not have are left out,
 * so that a schedule laid out for more micro-batches stays right for fewer.
 *
 * Subtle: all stages must agree, as the k-th send of one meets the k-th receive of the next;
 * plan_check() proves it for each plan. */
#include "strategy/schedule.h"

const char *const pipeline_schedule_names[] = {
    "1F1B", "GPipe", "ZBH1", "ZBVZeroBubble", "DualPipeV", 0};
const char *const cell_pass_names[CELL_KIND_COUNT] = {
    "forward", "backward", "backward_input", "backward_weight"};

int schedule_place(const struct schedule *s, int chunk)
{
    if (schedule_is_v(s->kind) && chunk == 1)
        return 2 * s->stages - 1 - s->stage;
    return chunk * s->stages + s->stage;
}

int schedule_most_cells(const struct schedule *schedule)
{
    bool splits = schedule->kind == SCHEDULE_ZBH1 || schedule_is_v(schedule->kind);
    return (splits ? 3 : 2) * schedule->micro_batches * schedule->chunks;
}

/* The k-th forward cell of a stage: groups of as many micro-batches as there are stages go through
 * chunk after chunk. */
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
            : s->chunks > 1 ? 2 * before_last + (s->chunks - 1) * s->stages
                            : before_last;
    n += s->merges ? 1 : 0;
    return n < all ? n : all;
}

/* DualPipeV: 2 p forward cells come first, and the first pair of the last stage stays two. */
bool schedule_merges(const struct schedule *s, const struct cell *cells, int n, int i)
{
    int first =
        s->kind == SCHEDULE_DUALPIPEV && s->stages > 1 ? 2 * s->stages + 1 : schedule_warm_up(s);
    return s->merges && i >= first && i + 1 < n && cells[i].kind == CELL_FORWARD &&
           cells[i + 1].kind == CELL_BACKWARD;
}

/* ---- in a V ---- */

/* Cells that are written one after the other: each kind goes through the micro-batches of a chunk
 * in their order. */
struct writer {
    struct cell *cells;
    int n, micro_batches;
    int next[CELL_KIND_COUNT]
            [SCHEDULE_V_CHUNKS]; /* both kinds of backward cells with inputs count as one */
    int weights;                 /* cells before it whose weights' gradients are written */
};

static int *schedule_next_of(struct writer *w, enum cell_kind kind, int chunk)
{
    return &w->next[kind == CELL_BACKWARD ? CELL_BACKWARD_INPUT : kind][chunk];
}

/* Of a micro-batch that is not there: nothing. */
static void schedule_add(struct writer *w, enum cell_kind kind, int chunk)
{
    int micro_batch = (*schedule_next_of(w, kind, chunk))++;
    if (micro_batch < w->micro_batches)
        w->cells[w->n++] = (struct cell){kind, micro_batch, chunk};
}

static void add_split_backward(struct writer *w, int chunk)
{
    schedule_add(w, CELL_BACKWARD_INPUT, chunk);
    schedule_add(w, CELL_BACKWARD_WEIGHT, chunk);
}

/* Laid out for 2 p - 1 micro-batches at least, of which those that are not there are left out. */
static void write_zbv(struct writer *w, const struct schedule *s)
{
    int least = 2 * s->stages - 1, all = s->micro_batches > least ? s->micro_batches : least,
        behind = s->stage;
    int ahead = s->stages - s->stage;
    for (int k = 0; k < 2 * ahead - 1; k++)
        schedule_add(w, CELL_FORWARD, 0);
    for (int k = 0; k < behind; k++) {
        schedule_add(w, CELL_FORWARD, 1);
        schedule_add(w, CELL_FORWARD, 0);
    }
    for (int k = 0; k < ahead; k++) {
        schedule_add(w, CELL_FORWARD, 1);
        add_split_backward(w, 1);
    }
    while (*schedule_next_of(w, CELL_FORWARD, 1) < all) {
        if (*schedule_next_of(w, CELL_FORWARD, 0) < all)
            schedule_add(w, CELL_FORWARD, 0);
        add_split_backward(w, 0);
        schedule_add(w, CELL_FORWARD, 1);
        add_split_backward(w, 1);
    }
    for (int k = 0; k < behind; k++) {
        schedule_add(w, CELL_BACKWARD_INPUT, 0);
        schedule_add(w, CELL_BACKWARD_INPUT, 1);
    }
    for (int k = 0; k < ahead; k++)
        add_split_backward(w, 0);
    for (int chunk = 1; chunk >= 0; chunk--)
        while (*schedule_next_of(w, CELL_BACKWARD_WEIGHT, chunk) < all)
            schedule_add(w, CELL_BACKWARD_WEIGHT, chunk);
}

/* The weights' gradients that have waited longest; none: nothing. */
static void add_oldest_weights(struct writer *w)
{
    while (w->weights < w->n && w->cells[w->weights].kind != CELL_BACKWARD_INPUT)
        w->weights++;
    if (w->weights == w->n)
        return;
    const struct cell *input = &w->cells[w->weights++];
    w->cells[w->n++] = (struct cell){CELL_BACKWARD_WEIGHT, input->micro_batch, input->chunk};
}

static void schedule_add_pair(struct writer *w, int forward, int backward)
{
    schedule_add(w, CELL_FORWARD, forward);
    schedule_add(w, CELL_BACKWARD, backward);
}

/* Backward cells without pairs: the first half whole, the other split, from a cell of the first
 * chunk on where the stage's number is even, else from one of the second. */
static void add_last_backward(struct writer *w, const struct schedule *s)
{
    int n = s->stage + 1, split_from = n / 2 * 2 + (s->stage % 2 == 0);
    for (int k = 0; k < 2 * n; k++)
        schedule_add(w, k >= split_from ? CELL_BACKWARD_INPUT : CELL_BACKWARD, 1 - k % 2);
}

/* The eight steps of deepseek-ai/DualPipe's dualpipev.py. */
static void write_dualpipev(struct writer *w, const struct schedule *s)
{
    int ahead = s->stages - s->stage - 1, behind = s->stage + 1;
    for (int k = 0; k < 2 * ahead; k++)
        schedule_add(w, CELL_FORWARD, 0);
    for (int k = 0; k < behind; k++) {
        schedule_add(w, CELL_FORWARD, 0);
        schedule_add(w, CELL_FORWARD, 1);
    }
    for (int k = 0; k < ahead; k++) {
        schedule_add(w, CELL_BACKWARD_INPUT, 1);
        add_oldest_weights(w);
        schedule_add(w, CELL_FORWARD, 1);
    }
    for (int k = 0; k < s->micro_batches - 2 * s->stages + behind; k++) {
        schedule_add_pair(w, 0, 1);
        schedule_add_pair(w, 1, 0);
    }
    for (int k = 0; k < ahead; k++) {
        schedule_add(w, CELL_BACKWARD, 1);
        schedule_add_pair(w, 1, 0);
    }
    add_last_backward(w, s);
    for (int k = 0; k < ahead; k++) {
        add_oldest_weights(w);
        schedule_add(w, CELL_BACKWARD_INPUT, 0);
    }
    for (int k = 0; k < behind; k++)
        add_oldest_weights(w);
}

static int cells_in_v(struct cell *cells, const struct schedule *s)
{
    struct writer w = {.cells = cells, .micro_batches = s->micro_batches};
    (s->kind == SCHEDULE_ZBV ? write_zbv : write_dualpipev)(&w, s);
    return w.n;
}

/* ---- all ---- */

int schedule_cells(struct cell *cells, const struct schedule *s)
{
    if (schedule_is_v(s->kind) && s->stages > 1)
        return cells_in_v(cells, s);
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
