#include "hw/table.h"

#include <math.h>

/* As short as quantity_format makes it, where that loses nothing that matters. */
static void write_value(FILE *out, double value, enum dimension dimension)
{
    char text[64], why[160];
    static const double same = 1e-12; /* relative: 8.4 us reads back as another double than 8.4e-6, nearer than this */
    double back = 0;
    quantity_format(text, sizeof text, value, dimension);
    if (quantity_parse(&back, text, dimension, why, sizeof why) && fabs(back - value) <= same * fabs(value))
        fputs(text, out);
    else
        fprintf(out, "%.17g %s", value, dimension_unit(dimension));
}

static void write_quantity(FILE *out, struct quantity q, enum dimension dimension)
{
    fputs("{value: ", out);
    write_value(out, q.value, dimension);
    fprintf(out, ", kind: %s", hw_kind_name(q.kind));
    if (q.std_error > 0) {
        fputs(", std_error: ", out);
        write_value(out, q.std_error, dimension);
    }
    fputs(", source: ", out);
    json_write_string(out, q.source);
    fputc('}', out);
}

void hw_write_node(FILE *out, const struct hw_node *node)
{
    for (int i = 0; i < hw_node_table.n_fields; i++) {
        const struct config_field *field = &hw_node_table.fields[i];
        const void *at = (const char *)node + field->offset;
        bool sourced = field->type == FIELD_SOURCED;
        if (sourced && !quantity_is_set(*(const struct quantity *)at))
            continue;
        fprintf(out, "%s: ", field->key);
        if (sourced)
            write_quantity(out, *(const struct quantity *)at, field->dimension);
        else if (field->type == FIELD_ENUM)
            fputs(field->names[*(const int *)at], out);
        else
            json_write_string(out, *(const char *const *)at);
        fputc('\n', out);
    }
}
