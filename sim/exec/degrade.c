#include "exec/degrade.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LONGEST_S = 1e6; /* well before PS_HORIZON */

/* Cuts the text at what ends it, and the spaces around. */
static char *trimmed(char *from, char *end)
{
    while (end > from && end[-1] == ' ')
        end--;
    *end = '\0';
    return from + strspn(from, " ");
}

static enum status parse_entry(struct degrade_entry *out, char *item, struct source_pos at, struct diag *diag)
{
    static const char form[] = "write a pattern and what is left, and when, as in 'node3.nic0.*=50 % at 2.5 s'";
    char why[256] = "there is no '='", whole[128], *equals = strchr(item, '=');
    snprintf(whole, sizeof whole, "%s", trimmed(item, item + strlen(item)));
    if (!equals)
        return diag_input(diag, at, "degraded link '%s': %s; %s", whole, why, form);
    char *share = equals + 1, *when = strstr(share, " at "), *end = share + strlen(share);
    double at_s = 0;
    *out = (struct degrade_entry){.share = -1};
    if (when) {
        char *time = trimmed(when + 4, end);
        if (!quantity_parse(&at_s, time, DIM_SECONDS, why, sizeof why) || !(at_s >= 0 && at_s <= LONGEST_S))
            return diag_input(
                diag, at, "degraded link '%s': '%s' is no time from 0 to %g s; %s", whole, time, LONGEST_S, form);
        end = when;
    }
    if (!quantity_parse(&out->share, trimmed(share, end), DIM_FRACTION, why, sizeof why))
        return diag_input(diag, at, "degraded link '%s': %s; %s", whole, why, form);
    if (!(out->share >= 0 && out->share <= 1))
        return diag_input(diag, at, "degraded link '%s': %g of the capacity is left; use 0 to 1", whole, out->share);
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

enum status degrade_parse(
    struct degradation *out, const char *text, struct source_pos at, struct arena *arena, struct diag *diag)
{
    *out = (struct degradation){.n = 0};
    char *rest = NULL, *copy = arena_strdup(arena, text ? text : "");
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        if (out->n == DEGRADE_MAX)
            return diag_input(diag, at, "more than %d degraded links; use patterns", DEGRADE_MAX);
        enum status status = parse_entry(&out->list[out->n], item, at, diag);
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

double degrade_share(struct degradation *degradation, const char *name, ps_t time)
{
    double share = 1;
    for (int i = 0; i < degradation->n; i++) {
        struct degrade_entry *e = &degradation->list[i];
        if (fnmatch(e->pattern, name, 0) != 0)
            continue;
        e->matched = true;
        if (e->at <= time && !replaced(degradation, i, time))
            share *= e->share;
    }
    return share;
}

enum status degrade_check_matched(const struct degradation *degradation, struct source_pos at, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < degradation->n; i++)
        if (!degradation->list[i].matched)
            status = diag_input(diag, at,
                "no link is called '%s'; names are like gpu0.nvlink, node0.nic0.out, node0.nics.in (a pooled network), "
                "leaf0.up0, pod0.down0, and * stands for anything",
                degradation->list[i].pattern);
    return status;
}
