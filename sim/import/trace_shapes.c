/* Shapes of GEMMs and attention by the operators that launched them: with record_shapes an operator has "Input Dims"
 * and "Input type", and what it launches has its "External id". Assumed: the result is of the inputs' type, FP32 is not
 * multiplied as TF32, attention is causal where there are as many queries as keys. */
#include "import/trace_file.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum dtype dtype;
} types[] = {{"float", DTYPE_FP32}, {"c10::BFloat16", DTYPE_BF16}, {"c10::Half", DTYPE_FP16},
    {"c10::Float8_e4m3fn", DTYPE_FP8}, {"c10::Float8_e5m2", DTYPE_FP8}, {"signed char", DTYPE_INT8}};

/* Sizes beyond are nonsense, and their products would overflow. */
static bool is_sane(int64_t size)
{
    enum { MOST = 1 << 28 };
    return size > 0 && size <= MOST;
}

static struct kernel_work attention(const struct kineto_event *event, enum dtype math)
{
    enum { PRODUCTS = 2, FLOP_OF_PAIR = 2 };
    bool causal = event->m == event->n;
    double of_head = (double)event->k * (double)event->batch, bytes = (double)dtype_bytes(math);
    double pairs = (double)event->m * (double)event->n * (causal ? ATTENTION_CAUSAL_SHARE : 1);
    return (struct kernel_work){.kind = KERNEL_ATTENTION,
        .math = math,
        .flop = PRODUCTS * FLOP_OF_PAIR * pairs * of_head,
        .read_bytes = (double)(event->m + 2 * event->n) * of_head * bytes,
        .write_bytes = (double)event->m * of_head * bytes,
        .m = event->m,
        .n = event->n,
        .k = event->k,
        .batch = event->batch,
        .causal = causal};
}

struct sought {
    const struct trace *trace;
    const struct kernel_work *work;
};

static bool same_product(const void *self, int32_t item)
{
    const struct sought *sought = self;
    return kernel_same(&sought->trace->products.at[item], sought->work);
}

static int32_t number_of(struct trace_shapes *shapes, struct trace *trace, const struct kernel_work *work)
{
    const struct sought sought = {trace, work};
    int32_t found = index_find(&shapes->products, kernel_digest(work), same_product, &sought);
    if (found >= 0)
        return found;
    index_add(&shapes->products, kernel_digest(work), trace->products.n);
    vec_push(&trace->products, *work);
    return trace->products.n - 1;
}

void trace_shapes_take(struct trace_shapes *shapes, struct trace *trace, const struct kineto_event *event)
{
    if (event->external <= 0 || !is_sane(event->batch) || !is_sane(event->m) || !is_sane(event->n) ||
        !is_sane(event->k))
        return;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        enum dtype math = types[i].dtype;
        int64_t bytes = dtype_bytes(math);
        if (strcmp(event->dtype, types[i].name) != 0)
            continue;
        struct kernel_work work = event->attends
                                      ? attention(event, math)
                                      : kernel_gemm(event->m, event->n, event->k, event->batch, math, bytes, bytes);
        vec_push(&shapes->list, (struct trace_shape){event->external, number_of(shapes, trace, &work)});
    }
}

static int by_external(const void *a, const void *b)
{
    const struct trace_shape *x = a, *y = b;
    return (x->external > y->external) - (x->external < y->external);
}

int trace_shapes_find(struct trace_shapes *shapes, int64_t external)
{
    const struct trace_shape wanted = {.external = external};
    if (external <= 0 || shapes->list.n == 0)
        return -1;
    if (!shapes->sorted)
        qsort(shapes->list.at, (size_t)shapes->list.n, sizeof wanted, by_external);
    shapes->sorted = true;
    const struct trace_shape *found =
        bsearch(&wanted, shapes->list.at, (size_t)shapes->list.n, sizeof wanted, by_external);
    return found ? found->product : -1;
}

void trace_shapes_free(struct trace_shapes *shapes)
{
    vec_free(&shapes->list);
    index_free(&shapes->products);
}
