/* A number with its provenance. Everything that describes real hardware or software is one of
 * these: the value in base SI, what kind of number it is, its standard error where that is known,
 * and where it comes from. */
#ifndef FLOPCAST_BASE_QUANTITY_H
#define FLOPCAST_BASE_QUANTITY_H

enum quantity_kind {
    QUANTITY_UNSET = 0, /* not given; value is 0 */
    QUANTITY_DATASHEET,
    QUANTITY_MEASURED,
    QUANTITY_FITTED,  /* std_error is set */
    QUANTITY_ASSUMED, /* source says why */
};

struct quantity {
    double value;     /* base SI */
    double std_error; /* same unit; of a fit, or how far off the source may be; 0: not known
                         (hw/draw.h has a default) */
    enum quantity_kind kind;
    const char *source; /* NULL when unset */
    const char
        *fit; /* id of the fitted parameter that it is, "nccl/hopper-nodes"; NULL: none is given */
};

/* Numbers of one key and this text are one parameter (hw/draw.h). */
static inline const char *quantity_parameter(struct quantity q)
{
    return q.fit ? q.fit : q.source;
}

static inline int quantity_is_set(struct quantity q)
{
    return q.kind != QUANTITY_UNSET;
}

#endif
