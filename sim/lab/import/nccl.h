/* Logs of nccl-tests (github.com/NVIDIA/nccl-tests, and RCCL's) as measurements: the text that the
 * programs print, and the JSON that -J writes (file format versions 1 to 3).
 *
 * Text. Columns are found by their names and numbers by strtod, never by position, so all versions
 * are read: with and without redop and root (blank in some), with "error" or "#wrong", "N/A", the
 * four more columns of -I 1, timestamps at the end, and whatever a launcher writes before a line
 * ("[1,0]<stdout>:", "0: "). Also read:
 * - "# key: value" at the start of a line, as a person may put before a log: source, collective,
 *   gpu, n_nodes, n_gpus, network, nccl_version, algo, proto, healthy (n: a fault is shown),
 *   partial (y: an excerpt), note. They go before
 * what the log says itself;
 * - the banner: Rank lines (ranks, hosts, GPU), "NCCL version", NCCL_ALGO and NCCL_PROTO where they
 * name one choice, the command (..._perf) for the collective;
 * - what NCCL says with NCCL_DEBUG=INFO, and "# env: NCCL_..." (import/nccl_debug.h);
 * - a first column "nodes", as someone put before a table of several clusters.
 *
 * Ranks are taken from the caller, the comments, a complete list of ranks, or the ratio of busbw to
 * algbw, whichever comes first. Every row is checked: algbw is size over time, and busbw over algbw
 * fits the ranks (nccl-tests doc/PERFORMANCE.md has the factors); where not, columns were mistaken
 * or the header is wrong, and that is an error, as is a row that is cut. Left out and counted: rows
 * of 0 bytes, which move nothing, and rows whose results were wrong.
 *
 * JSON. The same, from the fields of the file; the collective's name is that of the program in
 * args[0]. Of the environment block, which holds everything the user's shell had, only what begins
 * with NCCL_ is looked at.
 *
 * A table of CPU times (-C 1) is refused: it says how long the call took, not the collective. */
#ifndef FLOPCAST_IMPORT_NCCL_H
#define FLOPCAST_IMPORT_NCCL_H

#include "base/arena.h"
#include "base/vec.h"
#include "reader/input.h"
#include "import/nccl_debug.h"
#include "store/measurement.h"

struct nccl_options { /* what the caller knows better than the file; NULL and 0: nothing */
    const char *collective;
    int ranks, nodes;
};

struct nccl_log {
    struct measurement_about about;
    struct nccl_settings said;
    VEC(struct collective_measurement) rows;
    int empty, wrong; /* rows left out: of 0 bytes; with wrong results */
    bool ended;       /* the closing lines are there; an excerpt often lacks them */
};

/* Text or JSON, as the first character says. No row at all is an error. Texts live in arena. Free
 * with vec_free(&out->rows), also after an error. */
enum status nccl_read(struct nccl_log *out, struct input *input, const struct nccl_options *options,
    struct arena *arena, struct diag *diag);

/* Our name of a collective as nccl-tests names its programs ("alltoall" is all_to_all), or NULL. */
const char *nccl_collective(const char *name);

#endif
