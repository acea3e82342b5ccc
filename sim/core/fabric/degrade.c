/* The texts of degraded links and slow GPUs: parsed into entries, matched against names, turned
 * into events.
 *
 * A list has at most DEGRADE_MAX entries and as many times. At each time every name is matched
 * against every entry (fnmatch), and those that hold multiply; an event is made where an entry of
 * that time names the thing, even if nothing changes. So a name's share at a time never depends on
 * earlier events. Times x names x entries: few entries, many names.
 *
 * Links have their names from the fabric, which is built here without events to ask it for them.
 * After each time's events the fabric is probed for a way from each leaf to each other. Subtle:
 * add_links() stops before the links between pairs of GPUs, as these follow the NVLink of their GPU
 * (fabric.c). */
#include "fabric/degrade.h"

#include "base/vec.h"
#include "fabric/fabric.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LONGEST_S = 1e6; /* well before PS_HORIZON */

/* What a list is about. */
struct subject {
    const char *name, *plural;
    const char *property; /* of which a share is left */
    const char *example;
    double least; /* share that may be left */
};
static const struct subject links_subject = {
    "degraded link", "degraded links", "capacity", "node3.nic0.*", 0};

/* Assumed: H100's lowest clock of SMs is a sixth of its highest (345 of 1,980 MHz); less is a slip
 * of the pen. */
static const struct subject gpus_subject = {"slow GPU", "slow GPUs", "speed", "node3.gpu5", 0.01};

struct entry {
    const char *pattern;
    double share;
    ps_t at;
    bool matched; /* something has this name */
};

/* A list as it is written, and the times at which something changes: the start, then ascending,
 * each once. */
struct degradation {
    struct entry list[DEGRADE_MAX];
    int n;
    ps_t times[DEGRADE_MAX + 1];
    int n_times;
};

typedef VEC(struct degrade_event) event_list;

/* Cuts the text at what ends it, and the spaces around. */
static char *trimmed(char *from, char *end)
{
    while (end > from && end[-1] == ' ')
        end--;
    *end = '\0';
    return from + strspn(from, " ");
}

/* One sentence of what is wrong and what would be right. */
static enum status wrong(const struct subject *subject, const char *item, const char *why,
    struct source_pos at, struct diag *diag)
{
    return diag_input(diag, at,
        "%s '%s': %s; write a pattern and what is left, and when, as in '%s=50 %% at 2.5 s'",
        subject->name, item, why, subject->example);
}

static enum status parse_entry(struct entry *out, const struct subject *subject, char *item,
    struct source_pos at, struct diag *diag)
{
    char why[256] = "there is no '='", whole[128], *equals = strchr(item, '=');
    snprintf(whole, sizeof whole, "%s", trimmed(item, item + strlen(item)));
    if (!equals)
        return wrong(subject, whole, why, at, diag);
    char *share = equals + 1, *when = strstr(share, " at "), *end = share + strlen(share);
    double at_s = 0;
    *out = (struct entry){.pattern = item, .share = -1};
    if (when) {
        char *time = trimmed(when + 4, end);
        if (!quantity_parse(&at_s, time, DIM_SECONDS, why, sizeof why) ||
            !(at_s >= 0 && at_s <= LONGEST_S)) {
            snprintf(why, sizeof why, "'%.60s' is no time from 0 to %g s", time, LONGEST_S);
            return wrong(subject, whole, why, at, diag);
        }
        end = when;
    }
    if (!quantity_parse(&out->share, trimmed(share, end), DIM_FRACTION, why, sizeof why))
        return wrong(subject, whole, why, at, diag);
    if (!(out->share >= subject->least && out->share <= 1))
        return diag_input(diag, at, "%s '%s': %g of the %s is left; use %g to 1 (%g to 100 %%)",
            subject->name, whole, out->share, subject->property, subject->least,
            PERCENT * subject->least);
    out->pattern = trimmed(item, equals);
    out->at = ps_from_s(at_s);
    return STATUS_OK;
}

static int degrade_by_time(const void *a, const void *b)
{
    ps_t left = *(const ps_t *)a, right = *(const ps_t *)b;
    return (left > right) - (left < right);
}

static void list_times(struct degradation *out)
{
    ps_t all[DEGRADE_MAX];
    for (int i = 0; i < out->n; i++)
        all[i] = out->list[i].at;
    qsort(all, (size_t)out->n, sizeof *all, degrade_by_time);
    out->n_times = 1; /* times[0] is the start */
    for (int i = 0; i < out->n; i++)
        if (all[i] > out->times[out->n_times - 1])
            out->times[out->n_times++] = all[i];
}

static enum status degrade_parse(struct degradation *out, const struct subject *subject,
    const char *text, struct source_pos at, struct arena *arena, struct diag *diag)
{
    *out = (struct degradation){.n = 0};
    char *rest = NULL, *copy = arena_strdup(arena, text);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        if (out->n == DEGRADE_MAX)
            return diag_input(
                diag, at, "more than %d %s; use patterns", DEGRADE_MAX, subject->plural);
        enum status status = parse_entry(&out->list[out->n], subject, item, at, diag);
        if (status)
            return status;
        out->n++;
    }
    list_times(out);
    return STATUS_OK;
}

/* Whether another entry with the same pattern has taken this one's place. The same pattern, later
 * in time, or as early and later in the list. */
static bool replaced(const struct degradation *degradation, int entry, ps_t time)
{
    const struct entry *old = &degradation->list[entry];
    for (int i = 0; i < degradation->n; i++) {
        const struct entry *e = &degradation->list[i];
        bool later = e->at > old->at || (e->at == old->at && i > entry);
        if (later && e->at <= time && strcmp(e->pattern, old->pattern) == 0)
            return true;
    }
    return false;
}

/* What is left at a time of what has this name; marks the entries that name it. whole: the name of
 * what it is a part of, which names it too ("node3" of "node3.gpu5"); NULL: none. *changes is set
 * if an entry of this time names it. */
static double degrade_share_at(
    struct degradation *degradation, const char *name, const char *whole, ps_t time, bool *changes)
{
    double share = 1;
    for (int i = 0; i < degradation->n; i++) {
        struct entry *e = &degradation->list[i];
        if (fnmatch(e->pattern, name, 0) != 0 && (!whole || fnmatch(e->pattern, whole, 0) != 0))
            continue;
        e->matched = true;
        *changes = *changes || e->at == time;
        if (e->at <= time && !replaced(degradation, i, time))
            share *= e->share;
    }
    return share;
}

/* The first entry from `from` on that named nothing that was asked for. n: there is none. */
static int unmatched(const struct degradation *degradation, int from)
{
    while (from < degradation->n && degradation->list[from].matched)
        from++;
    return from;
}

static void degrade_keep(struct degrade_events *out, event_list *events, struct arena *arena)
{
    struct degrade_event *list = ARENA_ARRAY(arena, struct degrade_event, events->n);
    if (events->n)
        memcpy(list, events->at, sizeof *list * (size_t)events->n);
    *out = (struct degrade_events){list, events->n};
    vec_free(events);
}

static void add_links(
    event_list *events, struct degradation *degradation, const struct fabric *fabric, ps_t time)
{
    char name[64];
    for (int l = 0; l < fabric->first_pair; l++) {
        int cables = fabric_cables(fabric, l);
        double left = 0;
        bool changes = false;
        for (int c = 0; c < cables; c++)
            left += degrade_share_at(degradation,
                fabric_cable_name(name, sizeof name, fabric, l, c), NULL, time, &changes);
        if (changes)
            vec_push(events, (struct degrade_event){time, l, left / cables});
    }
}

/* Each leaf must reach each other, and what has no other way must not fail. */
static enum status check_ways(struct fabric *fabric, const struct degrade_events *events, ps_t time,
    struct source_pos at, struct diag *diag)
{
    enum status status = STATUS_OK;
    char name[64];
    for (int i = 0; i < events->n; i++) {
        const struct degrade_event *event = &events->list[i];
        if (event->at == time && event->target < fabric->first_leaf && event->share == 0)
            status = diag_input(diag, at,
                "%s has failed at %g s: NCCL ends the job; leave its node out, or let some of its "
                "capacity stand",
                fabric_link_name(name, sizeof name, fabric, event->target), s_from_ps(time));
    }
    for (int from = 0; from < fabric->leaves && status == STATUS_OK; from++)
        for (int to = 0; to < fabric->leaves && status == STATUS_OK; to++)
            if (!fabric_add_between(fabric, from, to, 1, 0))
                status = diag_input(diag, at,
                    "the links that have failed at %g s leave no way from leaf%d to leaf%d",
                    s_from_ps(time), from, to);
    memset(fabric->weight, 0, sizeof *fabric->weight * (size_t)fabric->n_links);
    return status;
}

enum status degrade_links(struct degrade_events *out, const struct hw *hw, int ranks,
    const char *text, struct source_pos at, struct arena *arena, struct diag *diag)
{
    *out = (struct degrade_events){NULL, 0};
    if (!text || !*text)
        return STATUS_OK;
    struct degradation *degradation = ARENA_NEW(arena, struct degradation);
    enum status status = degrade_parse(degradation, &links_subject, text, at, arena, diag);
    if (status != STATUS_OK || degradation->n == 0)
        return status;
    struct fabric fabric;
    event_list events = {0};
    fabric_build(&fabric, hw, ranks, NULL, arena);
    for (int i = 0; i < degradation->n_times && status == STATUS_OK; i++) {
        ps_t time = degradation->times[i];
        add_links(&events, degradation, &fabric, time);
        const struct degrade_events so_far = {events.at, events.n};
        fabric_set_time(&fabric, &so_far, time);
        status = check_ways(&fabric, &so_far, time, at, diag);
    }
    degrade_keep(out, &events, arena);
    for (int i = unmatched(degradation, 0); i < degradation->n; i = unmatched(degradation, i + 1))
        status = diag_input(diag, at,
            "no link is called '%s'; names are like gpu0.nvlink, node0.nic0.out, node0.nics.in (a "
            "pooled network), leaf0.up0, pod0.down0, and * stands for anything",
            degradation->list[i].pattern);
    return status;
}

static double gpu_share(
    struct degradation *degradation, int node, int gpu, ps_t time, bool *changes)
{
    char name[64], whole[32];
    snprintf(whole, sizeof whole, "node%d", node);
    snprintf(name, sizeof name, "node%d.gpu%d", node, gpu);
    return degrade_share_at(degradation, name, whole, time, changes);
}

/* Names of GPUs that the cluster has beyond the job are no mistake. */
static enum status degrade_check_gpus(struct degradation *degradation, const struct hw *hw,
    int ranks, struct source_pos at, struct diag *diag)
{
    int nodes = (int)hw->cluster.nodes.value, gpus = hw_gpus_per_node(hw), n = degradation->n;
    enum status status = STATUS_OK;
    bool changes = false;
    for (int node = ranks / gpus; node < nodes && unmatched(degradation, 0) < n; node++)
        for (int gpu = 0; gpu < gpus; gpu++)
            gpu_share(degradation, node, gpu, 0, &changes);
    for (int i = unmatched(degradation, 0); i < n; i = unmatched(degradation, i + 1))
        status = diag_input(diag, at,
            "no GPU of cluster '%s' is called '%s'; names are node0.gpu0 to node%d.gpu%d, node0 "
            "for all GPUs of a node, and * stands for anything",
            hw->cluster.name, degradation->list[i].pattern, nodes - 1, gpus - 1);
    return status;
}

enum status degrade_gpus(struct degrade_events *out, const struct hw *hw, int ranks,
    const char *text, struct source_pos at, struct arena *arena, struct diag *diag)
{
    *out = (struct degrade_events){NULL, 0};
    if (!text || !*text)
        return STATUS_OK;
    struct degradation *degradation = ARENA_NEW(arena, struct degradation);
    enum status status = degrade_parse(degradation, &gpus_subject, text, at, arena, diag);
    if (status != STATUS_OK || degradation->n == 0)
        return status;
    int gpus = hw_gpus_per_node(hw);
    event_list events = {0};
    for (int i = 0; i < degradation->n_times; i++)
        for (int r = 0; r < ranks; r++) {
            bool changes = false;
            double share =
                gpu_share(degradation, r / gpus, r % gpus, degradation->times[i], &changes);
            if (changes)
                vec_push(&events, (struct degrade_event){degradation->times[i], r, share});
        }
    degrade_keep(out, &events, arena);
    return degrade_check_gpus(degradation, hw, ranks, at, diag);
}

bool degrade_uneven(const struct degrade_events *events, int n_targets)
{
    double *share = xcalloc((size_t)n_targets, sizeof *share);
    bool uneven = false;
    for (int t = 0; t < n_targets; t++)
        share[t] = 1;
    for (int i = 0; i < events->n && !uneven; i++) {
        const struct degrade_event *event = &events->list[i];
        share[event->target] = event->share;
        bool last = i + 1 == events->n || event[1].at > event->at;
        for (int t = 1; t < n_targets && last && !uneven; t++)
            uneven = share[t] < share[0] || share[t] > share[0];
    }
    free(share);
    return uneven;
}
