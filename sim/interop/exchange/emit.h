/* A scenario's point as the configuration of a trainer, the way back of configuration.h:
 * torchtitan's TOML, a shell script with Megatron-LM's arguments, NeMo AutoModel's YAML.
 *
 * What is written is what the importer reads: an option stands in the file because, imported, it
 * gives the point's settings (by the tables of rules, walked from setting to option, and by trial
 * where a setting follows from several options). What the trainer has no option for, the topology
 * first, is a comment "# flopcast: KEY=VALUE", which the importer reads. So importing the file
 * gives the same point: the digest of all its inputs (scenario/identity.h) is compared.
 *
 * The point is taken as its trainer would say it: SHARD_GRAD_OP of FSDP2 is FULL_SHARD that does
 * not reshard after forward, which is the same program. STATUS_INPUT: the trainer has no option for
 * a setting that makes the layout (strategy, degrees, batch, checkpointing).
 *
 * Ignored: data, learning rates, checkpoints; options that an importer leaves aside. The arguments
 * that describe a model to Megatron-LM are those that give its shape; where some of it has no
 * argument, a comment counts what is left. */
#ifndef FLOPCAST_EXCHANGE_EMIT_H
#define FLOPCAST_EXCHANGE_EMIT_H

#include "exchange/configuration.h"

/* Whose strategy it is: Megatron-LM's, or FSDP2 of torchtitan and AutoModel. False also of formats
 * that are only read. */
bool emit_can(enum configuration_format format, const struct scenario_point *point);

/* title: a line of comment. Nothing is written on an error. */
enum status emit_configuration(FILE *out, enum configuration_format format,
    const struct scenario_point *point, const char *title, struct diag *diag);

#endif
