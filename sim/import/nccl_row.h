/* Private to sim/import: one line of a text table of nccl-tests. */
#ifndef FLOPCAST_IMPORT_NCCL_ROW_H
#define FLOPCAST_IMPORT_NCCL_ROW_H

#include "import/nccl_table.h"

enum { NCCL_MAX_WORDS = 64, NCCL_MAX_TRAIL = 32 };

struct nccl_words {
    char *at[NCCL_MAX_WORDS]; /* the first words of the line, split in place */
    int n;
};
void nccl_split(struct nccl_words *out, char *line);

/* size and count stand before the type, perhaps after "nodes"; then redop and root where the version has them; then,
 * from the first "time" on, the trail: both blocks. */
struct nccl_columns {
    int before_type, middle;
    enum nccl_column { NCCL_TIME, NCCL_ALGBW, NCCL_BUSBW, NCCL_WRONG, NCCL_OTHER } trail[NCCL_MAX_TRAIL];
    int n_trail;
    bool has_nodes, cpu_time;
};

/* Whether the line holds the column names; *out is then filled. */
bool nccl_columns(struct nccl_columns *out, const struct nccl_words *words);

/* columns NULL: no table has begun. terminated: as in struct input_line. NCCL_ROW_BROKEN: why (n bytes) says why. */
enum nccl_row_kind { NCCL_ROW_NONE, NCCL_ROW_FIGURES, NCCL_ROW_WRONG, NCCL_ROW_BROKEN };
enum nccl_row_kind nccl_row(struct nccl_row *out, const struct nccl_words *words, const struct nccl_columns *columns,
    bool terminated, char *why, size_t n);

/* The name of a number format as nccl-tests has it, or NULL. */
const char *nccl_dtype(const char *word);

#endif
