/* Private to import: tables of nccl-tests as they were read, before it is known what they belong
 * to. */
#ifndef FLOPCAST_IMPORT_NCCL_TABLE_H
#define FLOPCAST_IMPORT_NCCL_TABLE_H

#include "import/nccl.h"

struct nccl_block {
    double time_us, algbw_GBps, busbw_GBps; /* NAN: N/A, or no such block */
};

struct nccl_row {
    int position, line;
    const char *dtype;
    int64_t bytes;
    int nodes;                   /* of a column "nodes", else 0 */
    struct nccl_block blocks[2]; /* out of place, in place */
};

/* Rows that belong together, and what was known when they began. */
struct nccl_table {
    int line, first_row;
    const char *collective;         /* NULL: not known */
    bool ambiguous;                 /* two programs were named */
    int stated_ranks, stated_nodes; /* by the comments; 0: not */
    int listed_ranks, listed_nodes; /* by a complete list; 0: none */
    const char *algorithm, *protocol;
};

struct nccl_tables {
    struct nccl_log *log;
    struct input *input;
    const struct nccl_options *options;
    struct arena *arena;
    struct diag *diag;
    enum status worst;
    VEC(struct nccl_table) tables;
    VEC(struct nccl_row) rows;
};

enum { NCCL_MAX_ROWS = 100000 };

/* Reports a mistake; reading goes on. */
#define nccl_refuse(t, line, ...)                                                                  \
    ((t)->worst = diag_input(                                                                      \
         (t)->diag, (struct source_pos){input_name((t)->input), (line), 1}, __VA_ARGS__))

/* Adds a row of the newest table, checked by itself; at most NCCL_MAX_ROWS. */
void nccl_add_row(struct nccl_tables *t, const struct nccl_row *row);

/* The one choice that a value of NCCL_ALGO or NCCL_PROTO, or a person's words ("Simple (OFI
 * plugin)"), begin with; NULL when they leave the choice to NCCL. */
const char *nccl_algorithm(const char *text);
const char *nccl_protocol(const char *text);

/* The name of a number format as nccl-tests has it, or NULL. */
const char *nccl_dtype(const char *word);

void nccl_read_text(struct nccl_tables *t);
void nccl_read_json(struct nccl_tables *t);

#endif
