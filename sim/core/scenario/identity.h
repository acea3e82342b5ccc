/* What a point's result depends on, as text: two points with the same identity give the same
 * result, bit for bit. A sweep that was stopped goes on by it, and no point is simulated twice
 * (store/run.h). */
#ifndef FLOPCAST_SCENARIO_IDENTITY_H
#define FLOPCAST_SCENARIO_IDENTITY_H

#include "scenario/sample.h"

enum { IDENTITY_BYTES = 33 };

struct scenario_identity {
    char text[IDENTITY_BYTES]; /* 128 bits, hexadecimal */
};

/* Of the program (base/build.h) and of every value that is put in: settings with the seed, model,
 * cluster, node and GPU with what the stack makes of it. Not of names and places of files: what
 * they hold counts; nor of what only accompanies a result: name, description, assumptions,
 * published figures. The point's exec options are those that scenario_load left, except what is
 * traced. */
void scenario_identify(struct scenario_identity *out, const struct scenario_point *point);

/* Beside the identity, what its samples depend on: correlations, and which numbers the
 * scenario leaves to the draw. */
void scenario_identify_samples(struct scenario_identity *out, const struct scenario_point *point,
    const struct scenario_uncertainty *uncertainty);

/* What was put in, without the program: whether a result that is kept is still that of today's
 * files (settings, model, cluster, node, GPU, stack profile, fitted numbers); values alone, not
 * their errors. */
uint64_t scenario_digest_inputs(const struct scenario_point *point);

/* Somebody who keeps results by their identity: summaries (below). */
struct scenario_kept {
    void *self;
    /* False: not known. */
    bool (*find)(void *self, const struct scenario_identity *identity, struct scenario_result *out);
    /* False: no further one is to be simulated. */
    bool (*keep)(
        void *self, const struct scenario_identity *identity, const struct scenario_result *result);
};

/* Which part of a search or a validation is done here, and who keeps its results; {0}: all, nobody.
 */
struct scenario_share {
    const struct scenario_kept *kept; /* NULL: nobody */
    int shard, shards;                /* 0: all */
};

/* A result without what is in an arena; its samples stay. */
struct scenario_result scenario_summary(const struct scenario_result *result);

/* Of everything in the options but the GPU count: points with the same one lie on one scaling
 * curve. */
uint64_t scenario_curve(const struct scenario *options);

/* The rest of a point: how it is called and what it is compared with. */
uint64_t scenario_digest_label(uint64_t digest, const struct scenario_point *point);

#endif
