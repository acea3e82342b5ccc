/* Private to reader: JSON of any size as a stream of scalars, in constant memory. The only code
 * that sees yajl.
 *
 * A reader names the containers that it wants by their paths: "" is the root, "a.b" the object (or
 * array) b in a, "a[]" an object (or array) in array a. Scalars directly in such a container are
 * passed on, with their key (NULL in an array); all else is checked for syntax and forgotten.
 * Errors say file:line:column. At most JSON_MAX_DEPTH levels; a text is passed on up to
 * JSON_TEXT_BYTES, the rest of it is left out; a value of more than JSON_MAX_VALUE bytes is an
 * error (yajl would hold it whole). */
#ifndef FLOPCAST_READER_JSON_H
#define FLOPCAST_READER_JSON_H

#include "reader/input.h"

enum { JSON_MAX_DEPTH = 64, JSON_TEXT_BYTES = 1024, JSON_MAX_VALUE = 16 << 20 };

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING };

struct json_scalar {
    int container;   /* index into containers */
    const char *key; /* NULL in an array */
    enum json_kind kind;
    const char *text; /* as written, of a string unescaped; valid during the call */
    int line;
};

struct json_handler {
    const char *const *containers; /* NULL-terminated */
    /* Anything but STATUS_OK ends the reading. */
    enum status (*scalar)(void *self, const struct json_scalar *scalar);
    enum status (*close)(void *self, int container, int line); /* the container ended */
    void *self;
    bool lines; /* values come one after another, as in JSON lines */
};

enum status json_read(struct input *input, const struct json_handler *handler, struct diag *diag);

/* The number of a scalar: of a string too, since writers put numbers, also "nan", into strings; NAN
 * for null. false: no number. */
bool json_number(const struct json_scalar *scalar, double *out);
bool json_int(const struct json_scalar *scalar, int64_t *out);

#endif
