/* Private to emit*.c: a configuration of options and comments, and its file. */
#ifndef FLOPCAST_EXCHANGE_EMIT_FILE_H
#define FLOPCAST_EXCHANGE_EMIT_FILE_H

#include "exchange/emit.h"

struct emit_option {
    const char *name, *value; /* as struct configuration_setting has them */
    bool bare;
};
struct emit_said {
    const char *key, *value;
};
struct emit_draft {
    VEC(struct emit_option) options;
    VEC(struct emit_said) said;
    const char *unsaid; /* of the shape: keys that no argument gives, "moe.latent, mtp_layers";
                           NULL: none */
};

/* emit_shape.c: adds Megatron-LM's arguments that give this shape. */
struct model_shape;
struct importer;
void emit_shape(struct emit_draft *draft, const struct importer *importer,
    const struct model_shape *shape, struct arena *arena);

/* emit_file.c: TOML, YAML, or a script that begins torchrun. */
void emit_write(
    FILE *out, enum configuration_format format, const struct emit_draft *draft, const char *title);

#endif
