/* Measurements of real machines in the database: imported files, the collectives and kernels in
 * them.
 *
 * An import is one transaction: all files of a command or none of them, so an error leaves the
 * database as it was.
 *
 *     store_import_begin
 *       for each file: store_import_source, unless already there: rows, store_import_about
 *     store_import_end */
#ifndef FLOPCAST_STORE_MEASUREMENT_H
#define FLOPCAST_STORE_MEASUREMENT_H

#include "store/store.h"

#include <stdint.h>

/* What a file says about the machine. All texts are borrowed; NULL: not stated. */
struct measurement_about {
    const char *source, *gpu, *network, *nccl_version, *note;
    bool unhealthy, partial;
};

struct collective_measurement {
    int64_t position;                  /* unique in its file */
    const char *collective, *dtype;    /* never NULL */
    const char *algorithm, *protocol;  /* NULL: NCCL's own choice, or not stated */
    int ranks, nodes;                  /* nodes 0: not known */
    int64_t bytes;                     /* > 0 */
    double out_of_place_s, in_place_s; /* 0: not measured; one of them is > 0 */
};

struct kernel_measurement {
    int64_t position;
    const char *name, *collective; /* collective NULL: no NCCL kernel */
    int64_t device, stream;
    double start_s, duration_s;
};

struct store_import;

/* On failure *out is NULL. */
enum status store_import_begin(struct store_import **out, struct store *store, struct diag *diag);

/* What stands in the database of a file with the same content. */
struct store_known {
    bool known;
    char file[256], created_utc[32];
};

/* The rows that follow belong to this file. When one with the same content is there, known is
 * filled and nothing else happens. */
enum status store_import_source(struct store_import *import, const char *format, const char *file,
    uint64_t digest, struct store_known *known, struct diag *diag);
enum status store_import_collective(
    struct store_import *import, const struct collective_measurement *row, struct diag *diag);
enum status store_import_kernel(
    struct store_import *import, const struct kernel_measurement *row, struct diag *diag);
enum status store_import_about(
    struct store_import *import, const struct measurement_about *about, struct diag *diag);

/* Commits when status is STATUS_OK, else (or when that fails) rolls back. Frees import. */
enum status store_import_end(struct store_import *import, enum status status, struct diag *diag);

/* All kernels of a Nsight Systems export (`nsys export --type sqlite`), with GPU and innermost NVTX
 * range, read from the file by SQLite itself: the file is attached read-only and immutable, and
 * only its ordinary tables are read (a view could run anything). Tables and columns that Nsight
 * leaves out when they would be empty may be missing. Faults of the file are STATUS_INPUT, reported
 * at its path. To be called once in an open store, between store_import_source and
 * store_import_end. */
struct store_nsys {
    int64_t kernels, collectives; /* rows put in; how many of them are NCCL's */
};
enum status store_import_nsys(
    struct store_import *import, const char *path, struct store_nsys *result, struct diag *diag);

#endif
