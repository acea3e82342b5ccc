/* Predictions that are made before anybody has seen the measurements.
 *
 * A prediction file has the ids of the rows of a table (validate.h) in which nothing is measured,
 * what is predicted in the columns of what is measured, and two columns more (files until
 * 2026-11-23 have the table's settings, too):
 * - predicted_by: version and build digest (base/build.h) of the program
 * - inputs: digest of the program and of every value that went in (scenario/identity.h) Its head
 * has the commit that the program was built from, so that anybody can build it again, and see the
 * settings: a program with uncommitted changes, or of an unknown commit, predicts only where it is
 * said, and what it writes is no first sight. It never changes. Once the measurements are known,
 * they go into the table, whose column first_sight names the prediction file (a path from the
 * table's folder); rows are the same by id. The first-sight error of a row is that of this
 * prediction, by the same rule as its error of today. A row that ran, and was predicted to run out
 * of memory or not at all, has none and is counted as missed.
 *
 * Ignored: whether a table's settings were changed after the prediction; the commit of the file is
 * the witness of its date. */
#ifndef FLOPCAST_VALIDATE_FIRST_SIGHT_H
#define FLOPCAST_VALIDATE_FIRST_SIGHT_H

#include "validate/validate.h"

/* Keep the rows of which nothing is measured. */
void validate_keep_unmeasured(struct validate_table *table);

/* An error if this program was not built from a commit (build_commit()), unless uncommitted says
 * that this is meant. */
enum status validate_can_predict(const char *path, bool uncommitted, struct diag *diag);

/* The rows, after validate_run(), as a prediction file; an error where validate_can_predict() has
 * one. path must not exist: predictions are not made twice. uncommitted: the file says so, and
 * validate_first_sight() refuses it. */
enum status validate_predict(
    const struct validate_table *table, const char *path, bool uncommitted, struct diag *diag);

/* First-sight errors of the rows that name a prediction file, after validate_run(). A file that
 * cannot be read, lacks the row or was predicted with uncommitted changes is an error, at the row.
 */
void validate_first_sight(struct validate_table *table, struct diag *diag);

#endif
