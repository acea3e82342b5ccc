/* What takes a step's time or a job's throughput: the words, the shares, and the sentences that are
 * made of them.
 *
 * scenario_step() turns a breakdown into parts that add up to the step. Kernels alone, host and
 * bubble are measured by the executor. What collectives cost is measured as one sum: kernels that
 * run slower beside them (contention), and waiting for them (exposed). That sum is divided as the
 * collectives' own time divides: a_second is what a second of collective costs the step, and
 * waiting for the last member, latency and bytes have as many of those seconds as the executor
 * counts for each. Bytes take what is left, so that the parts stay a sum to the last digit. What a
 * pipeline's stages wait for one another is a bubble and is taken out of stragglers first.
 *
 * Sentences name the largest part, and the second where it is more than 15 % of the first; below
 * 0.05 % of the whole a part is not named. */
#include "scenario/causes.h"

#include <math.h>

#define STRAGGLERS "collectives wait for the slowest GPU"
#define LATENCY "a collective passes its hops one after the other, however few bytes it carries"
#define ALLOCATOR "the host stands still in cudaMalloc, longest where one fails and is tried again"
#define HOST_BOUND                                                                                 \
    "the GPU waits until the host has issued its next kernel, or decoded its next batch"
#define BUBBLE                                                                                     \
    "stages of the pipeline wait for one another while it fills and drains, and for the slowest "  \
    "of them"

const struct scenario_cause_words scenario_causes[CAUSE_COUNT + 1] = {
    [CAUSE_ALLOCATOR] = {"allocator", "no cudaMalloc takes time, or is tried again", ALLOCATOR},
    [CAUSE_STRAGGLERS] = {"stragglers", "no noise, no slow GPU: GPUs alike, nothing varies",
        STRAGGLERS},
    [CAUSE_LATENCY] = {"latency", "collectives without hops", LATENCY},
    [CAUSE_BANDWIDTH] = {"bandwidth", "NICs and switches without limit",
        "NICs and switches take their time for the bytes that nodes exchange"},
    [CAUSE_CONTENTION] = {"contention", "kernels beside collectives as if alone",
        "kernels run slower beside collectives, which hold SMs and HBM bandwidth"},
    [CAUSE_HOST] = {"host", "issuing costs the host nothing", HOST_BOUND},
    [CAUSE_BUBBLE] = {"bubble", "stages of the pipeline without waiting for one another", BUBBLE},
    [CAUSE_REST] = {"rest", "all of these: work that changes with the cluster",
        "the work of each GPU itself changes with the cluster"},
};

const struct scenario_part_words scenario_step_parts[STEP_PART_COUNT] = {
    [STEP_KERNELS] = {"kernels", "kernels run as fast as they would alone"},
    [STEP_ALLOCATOR] = {"allocator", ALLOCATOR},
    [STEP_STRAGGLERS] = {"stragglers", STRAGGLERS},
    [STEP_LATENCY] = {"latency", LATENCY},
    [STEP_BYTES] = {"bandwidth and contention",
        "links take their time for the bytes, and kernels beside them have fewer SMs and less HBM "
        "bandwidth"},
    [STEP_HOST] = {"host", HOST_BOUND},
    [STEP_BUBBLE] = {"bubble", BUBBLE},
    [STEP_OTHER] = {"other", "the compute stream waits for another stream's kernels, or for ranks "
                             "that end the step later"},
};

struct scenario_step scenario_step(const struct exec_breakdown *breakdown, double alloc_stall_s)
{
    double straggling_s = breakdown->comm_wait_s - breakdown->stage_wait_s;
    double waited_s = breakdown->exposed_comm_s;
    double collectives_s = breakdown->comm_s + straggling_s,
           lost_s = breakdown->contention_s + waited_s;
    double a_second = collectives_s > 0 ? lost_s / collectives_s : 0;
    struct scenario_step step = {.slowed_s = breakdown->contention_s, .waited_s = waited_s};
    step.part_s[STEP_KERNELS] = breakdown->compute_s - breakdown->contention_s;
    step.part_s[STEP_ALLOCATOR] = fmin(breakdown->host_bound_s, alloc_stall_s);
    step.part_s[STEP_STRAGGLERS] = a_second * straggling_s;
    step.part_s[STEP_LATENCY] = a_second * breakdown->comm_latency_s;
    step.part_s[STEP_BYTES] = lost_s - step.part_s[STEP_STRAGGLERS] - step.part_s[STEP_LATENCY];
    step.part_s[STEP_HOST] = breakdown->host_bound_s - step.part_s[STEP_ALLOCATOR];
    step.part_s[STEP_BUBBLE] = breakdown->bubble_s;
    step.part_s[STEP_OTHER] = breakdown->other_idle_s;
    return step;
}

/* The largest of values from first on, one of them left out (-1: none); -1 when none is above 0. */
static int largest(const double *values, int first, int n, int but)
{
    int found = -1;
    for (int i = first; i < n; i++)
        if (i != but && values[i] > 0 && (found < 0 || values[i] > values[found]))
            found = i;
    return found;
}

/* Below these shares of the whole a part is not worth a word. */
static const double NOTHING = 5e-4, SECOND = 0.15;

static const char *part_words(struct arena *arena, int part, double share)
{
    return arena_printf(arena, " %.1f %% go to %s: %s.", 100 * share,
        scenario_step_parts[part].name, scenario_step_parts[part].means);
}

const char *scenario_step_sentence(struct arena *arena, const struct scenario_step *step)
{
    const double *part = step->part_s;
    double whole = 0, collectives = step->slowed_s + step->waited_s;
    for (int i = 0; i < STEP_PART_COUNT; i++)
        whole += part[i];
    int first = largest(part, STEP_KERNELS + 1, STEP_PART_COUNT, -1);
    int second = largest(part, STEP_KERNELS + 1, STEP_PART_COUNT, first);
    const char *kernels = arena_printf(arena, "kernels alone take %.1f %% of a step of %.4g s",
        100 * part[STEP_KERNELS] / whole, whole);
    if (first < 0 || part[first] < NOTHING * whole)
        return arena_printf(arena, "%s; nothing else takes a share worth naming.", kernels);
    bool two = second >= 0 && part[second] > SECOND * part[first];
    const char *slowed =
        collectives <= NOTHING * whole
            ? ""
            : arena_printf(arena,
                  " Of the %.1f %% that collectives cost in all, %.0f in 100 are kernels that run "
                  "slower beside them, the others waiting for them.",
                  100 * collectives / whole, 100 * step->slowed_s / collectives);
    return arena_printf(arena, "%s.%s%s%s", kernels, part_words(arena, first, part[first] / whole),
        two ? part_words(arena, second, part[second] / whole) : "", slowed);
}

static const char *cause_words(struct arena *arena, const struct scenario_loss *loss, int cause)
{
    return arena_printf(arena, " %.2f (%.1f %%) go to %s: %s.", loss->part[cause],
        100 * loss->part[cause] / loss->small, scenario_causes[cause].name,
        scenario_causes[cause].means);
}

const char *scenario_loss_sentence(struct arena *arena, const struct scenario_loss *loss)
{
    double change = loss->large - loss->small;
    const char *head =
        arena_printf(arena, "From %lld to %lld GPUs a GPU ", loss->small_gpus, loss->large_gpus);
    if (fabs(change) < NOTHING * loss->small)
        head = arena_printf(arena, "%skeeps its %.2f TFLOPS.", head, loss->small);
    else
        head = arena_printf(arena, "%s%s %.2f of its %.2f TFLOPS (%.1f %%).", head,
            change < 0 ? "loses" : "gains", fabs(change), loss->small,
            100 * fabs(change) / loss->small);
    int first = largest(loss->part, 0, CAUSE_COUNT + 1, -1);
    int second = largest(loss->part, 0, CAUSE_COUNT + 1, first);
    if (first < 0 || loss->part[first] < NOTHING * loss->small)
        return head;
    bool two = second >= 0 && loss->part[second] > SECOND * loss->part[first];
    bool saved = -loss->part[CAUSE_REST] > NOTHING * loss->small;
    return arena_printf(arena, "%s%s%s%s", head, cause_words(arena, loss, first),
        two ? cause_words(arena, loss, second) : "",
        saved ? arena_printf(arena,
                    " %.2f come back, because the larger cluster leaves each GPU less work.",
                    -loss->part[CAUSE_REST])
              : "");
}
