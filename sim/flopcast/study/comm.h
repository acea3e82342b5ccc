/* What the collectives of a step do, and what binds them (coll_bound): those that are alike
 * together, and all by what binds them. From the spans of one rank (exec_options.trace_ranks) in
 * the last measured step.
 *
 * Exposed: the compute stream was idle, not for the host, while the collective was under way; where
 * several were, the one that ended first. Exposed time before the last member had arrived is
 * waiting for other ranks, which no link binds. Waiting for another stage of a pipeline is its
 * bubble, and not exposed (exec_breakdown.bubble_s). */
#ifndef FLOPCAST_STUDY_COMM_H
#define FLOPCAST_STUDY_COMM_H

#include "base/arena.h"
#include "coll/coll.h"
#include "exec/exec.h"

#include <stdio.h>

/* Collectives of one kind, size and group. */
struct scenario_comm_item {
    enum coll_kind kind;
    double bytes;
    int group_size;
    enum coll_algorithm algorithm;
    enum coll_protocol protocol;
    int times;
    double moving_s; /* all of them, each from the arrival of its last member on */
    double exposed_s, bus_bytes;
    double bound_s[COLL_BOUND_COUNT]; /* parts of moving_s */
};

struct scenario_comm {
    struct scenario_comm_item *items; /* longest moving_s first; in the arena */
    int n_items;
    double step_s;
    double moving_s;                  /* of all; of two at a time both count */
    double latency_s;                 /* part of moving_s: hops and steps, whatever binds */
    double exposed_s, exposed_wait_s; /* all that is exposed; part of it: waiting for other ranks */
    double bound_s[COLL_BOUND_COUNT]; /* parts of moving_s */
    double exposed_bound_s[COLL_BOUND_COUNT]; /* parts of exposed_s, without the waiting */
};

/* All 0 for a run without spans (out of memory). */
void scenario_comm(
    struct scenario_comm *out, const struct exec_result *result, struct arena *arena);

/* What ended just then on another stream than compute, which the compute stream may have waited
 * for: the first of these; NULL: nothing did. Here and below spans are those of one rank. */
const struct exec_span *scenario_comm_awaited(const struct exec_result *result, ps_t at);

/* A pipeline's host may be blocked until a message has come (batch_p2p_comm's synchronize), and
 * issues the next kernel after that: the last such message that came in an interval in which the
 * compute stream was idle; NULL: none did. */
const struct exec_span *scenario_comm_blocked(const struct exec_result *result, ps_t from, ps_t to);

/* "all_gather of 386.1 MiB on 256" */
const char *scenario_comm_name(struct arena *arena, const struct scenario_comm_item *item);

/* What binds most of a time by bounds; COLL_BOUND_NONE: nothing does. */
enum coll_bound scenario_comm_most(const double bound_s[COLL_BOUND_COUNT]);

/* In plain words: how long collectives take, how much of that is hidden behind compute, and what
 * binds them and what is exposed of them. label: whose step. */
const char *scenario_comm_sentence(
    struct arena *arena, const char *label, const struct scenario_comm *comm, const struct hw *hw);

/* In plain words: where channels across nodes bind most, how many NCCL lays and why, and on which
 * number of what kind that rests; NULL where they do not bind. */
const char *scenario_channels_sentence(
    struct arena *arena, const struct scenario_comm *comm, const struct hw *hw);

/* For people: how many channels NCCL lays across nodes and why, and whether they fill the NICs. */
void scenario_channels_print(FILE *out, const struct hw *hw);

/* A step after a change over that before: its time and the tokens that it trains on, of the whole
 * job. Where these differ, speeds are compared and not steps. counted: "tokens", or "images". */
struct scenario_change {
    double time, tokens;
    const char *counted;
};
/* "shortens the step (-5.0 %)"; "trains 6.2 % more tokens/s (a step has 2 times the tokens and
 * takes 88.3 % longer)". */
const char *scenario_change_sentence(struct arena *arena, const struct scenario_change *change);

/* In plain words: what a change of the step has to do with its collectives, with what binds them
 * before and after. label: of the change. */
const char *scenario_comm_change(struct arena *arena, const char *label,
    const struct scenario_comm *before, const struct scenario_comm *after,
    const struct scenario_change *change);

#endif
