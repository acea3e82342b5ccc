#include "fabric/degrade.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LONGEST_S = 1e6; /* well before PS_HORIZON */
static const double PERCENT = 100;

/* Cuts the text at what ends it, and the spaces around. */
static char *trimmed(char *from, char *end)
{
    while (end > from && end[-1] == ' ')
        end--;
    *end = '\0';
    return from + strspn(from, " ");
}

const struct degrade_subject degrade_link = {"degraded link", "degraded links", "capacity", "node3.nic0.*", 0};

/* Assumed: H100's lowest clock of SMs is a sixth of its highest (345 of 1,980 MHz); less is a slip of the pen. */
const struct degrade_subject degrade_gpu = {"slow GPU", "slow GPUs", "speed", "node3.gpu5", 0.01};

/* One sentence of what is wrong and what would be right. */
static enum status wrong(
    const struct degrade_subject *subject, const char *item, const char *why, struct source_pos at, struct diag *diag)
{
    return diag_input(diag, at, "%s '%s': %s; write a pattern and what is left, and when, as in '%s=50 %% at 2.5 s'",
        subject->name, item, why, subject->example);
}

static enum status parse_entry(struct degrade_entry *out, const struct degrade_subject *subject, char *item,
    struct source_pos at, struct diag *diag)
{
    char why[256] = "there is no '='", whole[128], *equals = strchr(item, '=');
    snprintf(whole, sizeof whole, "%s", trimmed(item, item + strlen(item)));
    if (!equals)
        return wrong(subject, whole, why, at, diag);
    char *share = equals + 1, *when = strstr(share, " at "), *end = share + strlen(share);
    double at_s = 0;
    *out = (struct degrade_entry){.share = -1};
    if (when) {
        char *time = trimmed(when + 4, end);
        if (!quantity_parse(&at_s, time, DIM_SECONDS, why, sizeof why) || !(at_s >= 0 && at_s <= LONGEST_S)) {
            snprintf(why, sizeof why, "'%.60s' is no time from 0 to %g s", time, LONGEST_S);
            return wrong(subject, whole, why, at, diag);
        }
        end = when;
    }
    if (!quantity_parse(&out->share, trimmed(share, end), DIM_FRACTION, why, sizeof why))
        return wrong(subject, whole, why, at, diag);
    if (!(out->share >= subject->least && out->share <= 1))
        return diag_input(diag, at, "%s '%s': %g of the %s is left; use %g to 1 (%g to 100 %%)", subject->name, whole,
            out->share, subject->property, subject->least, PERCENT * subject->least);
    out->pattern = trimmed(item, equals);
    out->at = ps_from_s(at_s);
    return STATUS_OK;
}

static int by_time(const void *a, const void *b)
{
    ps_t left = *(const ps_t *)a, right = *(const ps_t *)b;
    return (left > right) - (left < right);
}

static void list_changes(struct degradation *out)
{
    ps_t all[DEGRADE_MAX];
    for (int i = 0; i < out->n; i++)
        all[i] = out->list[i].at;
    qsort(all, (size_t)out->n, sizeof *all, by_time);
    for (int i = 0; i < out->n; i++)
        if (all[i] > (out->n_changes ? out->changes[out->n_changes - 1] : 0))
            out->changes[out->n_changes++] = all[i];
}

enum status degrade_parse(struct degradation *out, const struct degrade_subject *subject, const char *text,
    struct source_pos at, struct arena *arena, struct diag *diag)
{
    *out = (struct degradation){.n = 0};
    char *rest = NULL, *copy = arena_strdup(arena, text ? text : "");
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        if (out->n == DEGRADE_MAX)
            return diag_input(diag, at, "more than %d %s; use patterns", DEGRADE_MAX, subject->plural);
        enum status status = parse_entry(&out->list[out->n], subject, item, at, diag);
        if (status)
            return status;
        out->n++;
    }
    list_changes(out);
    return STATUS_OK;
}

/* Whether another entry with the same pattern has taken this one's place. */
static bool replaced(const struct degradation *degradation, int entry, ps_t time)
{
    const struct degrade_entry *old = &degradation->list[entry];
    for (int i = 0; i < degradation->n; i++) {
        const struct degrade_entry *e = &degradation->list[i];
        bool later = e->at > old->at || (e->at == old->at && i > entry);
        if (later && e->at <= time && strcmp(e->pattern, old->pattern) == 0)
            return true;
    }
    return false;
}

double degrade_share(struct degradation *degradation, const char *name, const char *whole, ps_t time)
{
    double share = 1;
    for (int i = 0; i < degradation->n; i++) {
        struct degrade_entry *e = &degradation->list[i];
        if (fnmatch(e->pattern, name, 0) != 0 && (!whole || fnmatch(e->pattern, whole, 0) != 0))
            continue;
        e->matched = true;
        if (e->at <= time && !replaced(degradation, i, time))
            share *= e->share;
    }
    return share;
}

int degrade_unmatched(const struct degradation *degradation, int from)
{
    while (from < degradation->n && degradation->list[from].matched)
        from++;
    return from;
}
