/* What a log of nccl-tests says of its cluster, in words.
 *
 * The sizes are cut into those below 1 MiB, and of the others middle and large, at
 * NCCL_FULL_BYTES or an eighth of the largest size, whichever is more. of_links() asks in a
 * fixed order, and the first that fits is said: sockets, agreement, above the prediction, only
 * the largest sizes met, another algorithm that explains it, more ranks than any fit rests on,
 * and at last a slow network or NVLink with where to look. of_small() adds a sentence about
 * latency, or a constant that one process launching on all GPUs would add.
 *
 * What is subtle: an error below 0 means that time is predicted too short; `share` is 1 + the
 * median error, which is the measured busbw over the predicted one. Each threshold below stands
 * with its source. */
#include "calibrate/nccl_check.h"

#include "calibrate/nccl_fit.h"

#include <math.h>

/* Measured over predicted busbw, from which down TCP is suspected: IPoIB and TCP of 200 Gb/s
 * networks reach 2 to 10 % (logs of Azure NDv4, Alps and g4dn), a network with one NIC of eight
 * 12.5. */
static const double SOCKETS = 0.12;
/* Assumed: no error of the prediction, but other hardware. */
static const double FAR_ABOVE = 1.25;
/* Small sizes whose times are all within this share of their median are a constant; one process
 * that launches on 8 GPUs in turn takes 35 to 90 us (SuperBench's logs of A100). Assumed: less than
 * 20 us above the prediction is none. */
static const double CONSTANT = 0.25, LAUNCHES_S = 20e-6;
/* NCCL lays at most twice the channels that it takes by default (coll.h). */
static const double MOST_BY_CHANNELS = 2;
/* The largest table that a fit rests on (nccl-tests#322). The two beyond it are off at their
 * largest sizes: 1,440 GB200 by -28 %, 1,984 H200 by +26. */
enum { MOST_RANKS = 1024 };
static const double OFF_BEYOND = 0.4;

int nccl_explaining(double chosen_error, const double errors[COLL_ALGORITHM_COUNT])
{
    int best = COLL_ANY;
    for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
        if (coll_is_nccls((enum coll_algorithm)a) && errors[a] >= 0 &&
            (best == COLL_ANY || errors[a] < errors[best]))
            best = a;
    bool explains = best != COLL_ANY && chosen_error > NCCL_LARGE_WANTED &&
                    errors[best] <= NCCL_LARGE_WANTED && errors[best] < chosen_error * 2 / 3;
    return explains ? best : COLL_ANY;
}

struct parts {
    double from_bytes; /* the large ones */
    struct fit_error all, middle, large,
        small;    /* from 1 MiB on, of which middle and large; below */
    double share; /* of the busbw that is predicted of the large sizes, or of all */
};

static struct parts nccl_verdict_parts_of(const struct nccl_check *check)
{
    double from_bytes = NCCL_FULL_BYTES;
    for (int i = 0; i < check->rows.n; i++)
        from_bytes = fmax(from_bytes, check->rows.at[i].bytes / 8);
    struct parts parts = {.from_bytes = from_bytes,
        .all = nccl_check_error(check, NCCL_LARGE_BYTES, HUGE_VAL),
        .middle = nccl_check_error(check, NCCL_LARGE_BYTES, from_bytes),
        .large = nccl_check_error(check, from_bytes, HUGE_VAL),
        .small = nccl_check_error(check, 0, NCCL_LARGE_BYTES)};
    parts.share = 1 + (parts.large.n > 0 ? parts.large.bias : parts.all.bias);
    return parts;
}

/* What mostly makes a healthy-looking cluster slow: the usual list of NCCL's own documentation. */
static const char *where_to_look(const struct nccl_check *check, struct arena *arena)
{
    static const char gpudirect[] =
        "GPUDirect RDMA (NCCL_DEBUG=INFO shows GDRDMA; nvidia-peermem, NCCL_NET_GDR_LEVEL), ";
    return check->nodes > 1 ? arena_printf(arena,
                                  "look at %sthe number of NICs that NCCL uses (NCCL_IB_HCA), "
                                  "their links (ib_write_bw) and other jobs on the network",
                                  check->said.gpudirect == NCCL_ON ? "" : gpudirect)
                            : "look at NVLink (nvidia-smi topo -m, nvidia-smi nvlink -s), "
                              "NCCL_P2P_DISABLE and NCCL_P2P_LEVEL";
}

static double busbw_GBps(const struct nccl_checked *row)
{
    return row->predicted.bus_bytes / row->measured_s * 1e-9;
}

/* The first size from which on all are above the prediction by more than half of what is allowed;
 * NULL: not the last one. */
static const struct nccl_checked *first_above(const struct nccl_check *check)
{
    const struct nccl_checked *first = NULL;
    for (int i = check->rows.n - 1; i >= 0; i--) {
        const struct nccl_checked *row = &check->rows.at[i];
        if (coll_isolated_s(row->predicted) < (1 + NCCL_LARGE_WANTED / 2) * row->measured_s)
            break;
        first = row;
    }
    return first;
}

static const char *nccl_verdict_size_text(double bytes, struct arena *arena)
{
    bool GiB = bytes >= 0x1p30;
    return arena_printf(arena, "%.4g %s", bytes / (GiB ? 0x1p30 : 0x1p20), GiB ? "GiB" : "MiB");
}

static const char *as_other(const struct nccl_check *check, int as, double error,
    const char *share_text, struct arena *arena)
{
    const char *choice =
        coll_algorithm_names[check->rows.at[check->rows.n - 1].predicted.algorithm];
    return arena_printf(arena,
        "reaches %s, and agrees as %s within %.1f %% (with NCCL's choice, %s at the largest size, "
        "it is %.1f %% off). Is %s off (NCCL_NVLS_ENABLE=0, NCCL_ALGO)? NCCL_DEBUG=INFO says what "
        "NCCL takes. If it takes %s: %s.",
        share_text, coll_algorithm_names[as], 100 * check->errors[as], choice, 100 * error, choice,
        choice, where_to_look(check, arena));
}

/* More than is predicted at the largest sizes. */
static const char *above(
    const struct nccl_check *check, const struct parts *parts, struct arena *arena)
{
    const struct nccl_checked *first = first_above(check),
                              *last = &check->rows.at[check->rows.n - 1];
    double times = coll_isolated_s(last->predicted) / last->measured_s;
    const char *what =
        arena_printf(arena, "above the prediction from %s on: %.0f %% of it at the largest size",
            nccl_verdict_size_text(first ? first->bytes : parts->from_bytes, arena), 100 * times);
    const char *why = "";
    if (check->nodes > 1 && times > MOST_BY_CHANNELS)
        why = arena_printf(arena,
            " No number of channels gives that: are these %d nodes, and is the topology the right "
            "one?",
            check->nodes);
    else if (check->nodes > 1)
        why = arena_printf(arena,
            " More channels than %.0f (NCCL_MIN_CTAS, NCCL_MIN_NCHANNELS; --set "
            "cluster.nccl_channels=N)?",
            check->channels);
    else if (parts->share > FAR_ABOVE)
        why = " Is the topology the right one?";
    return parts->middle.n > 0 && parts->middle.bias < -NCCL_LARGE_WANTED
               ? arena_printf(arena, "%s; %.0f %% below %s. So the links are whole.%s", what,
                     100 * (1 + parts->middle.bias),
                     nccl_verdict_size_text(parts->from_bytes, arena), why)
               : arena_printf(arena, "%s.%s", what, why);
}

/* Of the sizes of 1 MiB and more. */
static const char *of_links(
    const struct nccl_check *check, const struct parts *parts, struct arena *arena)
{
    bool large_met = parts->large.n > 0 && parts->share >= 1 - NCCL_LARGE_WANTED;
    double error = parts->all.median,
           share = 1 + parts->all.bias; /* of the predicted over the measured time */
    int as = nccl_explaining(error, check->errors);
    const char *share_text = arena_printf(
        arena, "%.0f %% of the busbw that is predicted of sizes of 1 MiB and more", 100 * share);
    const struct nccl_checked *last = &check->rows.at[check->rows.n - 1];
    if (check->nodes > 1 && parts->share <= SOCKETS)
        return arena_printf(arena,
            "reaches %s: %.1f GB/s looks like sockets (TCP): NET/Socket in NCCL_DEBUG=INFO? Then "
            "NCCL finds no InfiniBand, RoCE or plugin (NCCL_NET, NCCL_IB_DISABLE, NCCL_IB_HCA, "
            "devices of the container).",
            share_text, busbw_GBps(last));
    bool agrees = error <= NCCL_LARGE_WANTED && fabs(parts->share - 1) <= 1.5 * NCCL_LARGE_WANTED;
    if (agrees)
        return arena_printf(
            arena, "agrees: median error %.1f %% at sizes of 1 MiB and more.", 100 * error);
    if (parts->share > 1 + NCCL_LARGE_WANTED / 2)
        return above(check, parts, arena);
    if (large_met && fabs(parts->middle.bias) > NCCL_LARGE_WANTED)
        return arena_printf(arena,
            "the largest sizes meet the prediction (%.0f %% of its busbw): the links are whole. "
            "From 1 MiB to %s it reaches %.0f %%: latency, or the choice of algorithm, protocol "
            "and channels (NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=TUNING).",
            100 * parts->share, nccl_verdict_size_text(parts->from_bytes, arena),
            100 * (1 + parts->middle.bias));
    if (large_met)
        return arena_printf(arena,
            "the largest sizes meet the prediction (%.0f %% of its busbw); median error %.1f %% at "
            "sizes of 1 MiB and more.",
            100 * parts->share, 100 * error);
    if (as != COLL_ANY)
        return as_other(check, as, error, share_text, arena);
    if (check->ranks > MOST_RANKS && fabs(parts->share - 1) < OFF_BEYOND)
        return arena_printf(arena,
            "reaches %s, which says nothing of the network: no fit rests on a table of more than "
            "%d GPUs, and the two at hand are off by a quarter at their largest sizes.",
            share_text, MOST_RANKS);
    return share < 1 || parts->share < 1
               ? arena_printf(arena, "reaches %s: %s slow; %s.",
                     share < 1
                         ? share_text
                         : arena_printf(arena, "%.0f %% at the largest sizes", 100 * parts->share),
                     check->nodes > 1 ? "the network is" : "NVLink, or what stands for it, is",
                     where_to_look(check, arena))
               : arena_printf(arena, "reaches %s: is the topology the right one?", share_text);
}

/* Of the sizes below 1 MiB; "": as predicted, or none. */
static const char *of_small(
    const struct nccl_check *check, const struct parts *parts, struct arena *arena)
{
    double least = HUGE_VAL, most = 0, predicted_s = 0;
    int n = 0;
    for (int i = 0; i < check->rows.n; i++) {
        const struct nccl_checked *row = &check->rows.at[i];
        if (row->bytes >= NCCL_SMALL_BYTES)
            continue;
        n++;
        least = fmin(least, row->measured_s);
        most = fmax(most, row->measured_s);
        predicted_s = fmax(predicted_s, coll_isolated_s(row->predicted));
    }
    double middle_s = (least + most) / 2;
    if (n > 1 && most - middle_s <= CONSTANT * middle_s && least > predicted_s + LAUNCHES_S &&
        check->ranks > check->nodes)
        return arena_printf(arena,
            " Small sizes take %.0f us each, %.0f at most are predicted: one process for all GPUs "
            "of a node (nccl-tests -g), which launches on one after the other?",
            middle_s * 1e6, predicted_s * 1e6);
    if (parts->small.n == 0 || parts->small.median <= 3 * NCCL_LARGE_WANTED)
        return "";
    return arena_printf(arena, " Below 1 MiB the median error is %.0f %%: latency, not bandwidth.",
        100 * parts->small.median);
}

const char *nccl_check_verdict(const struct nccl_check *check, struct arena *arena)
{
    struct parts parts = nccl_verdict_parts_of(check);
    if (parts.all.n == 0)
        return NULL;
    return arena_printf(
        arena, "%s%s", of_links(check, &parts, arena), of_small(check, &parts, arena));
}
