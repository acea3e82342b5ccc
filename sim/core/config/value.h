/* Private to config: one scalar of a document as one typed value. */
#ifndef FLOPCAST_CONFIG_VALUE_H
#define FLOPCAST_CONFIG_VALUE_H

#include "config/config.h"

/* quantity_kind names from QUANTITY_DATASHEET on; NULL-terminated. */
extern const char *const config_kind_names[];

/* Join names as "a, b, c" for a message; if they do not fit, it ends in "...". Returns buffer. */
const char *config_join_names(char *buffer, size_t size, const char *const *names, size_t n);

/* Read the scalar into *at, which has the type that field->type says. Not for FIELD_SOURCED,
 * FIELD_SECTION and FIELD_NODE. */
enum status config_read_scalar(struct config_node node, const struct config_field *field, void *at,
    struct arena *arena, struct diag *diag);

/* Reports that the node is of another kind than the field wants. */
enum status config_wrong_kind(
    struct config_node node, const struct config_field *field, struct diag *diag);

#endif
