/* Private to megatron*.c: which arguments set something, what launchers say, and the model that the
 * arguments describe. */
#ifndef FLOPCAST_EXCHANGE_MEGATRON_H
#define FLOPCAST_EXCHANGE_MEGATRON_H

#include "exchange/rules.h"
#include "exchange/shell.h"

/* megatron_launch.c: an option of a launcher, a scheduler's head or the environment has its fate,
 * or is kept for what follows; false: it is the program's. */
bool megatron_launcher(struct configuration *config, struct configuration_setting *setting,
    const struct shell_argument *argument);
void megatron_gpus(struct configuration *config, struct diag *diag);
void megatron_allocator(struct configuration *config, struct diag *diag);
/* megatron.c: the argument sets something, wherever it stands. */
bool megatron_sets(const struct configuration *config, const char *name);

/* megatron_model.c: follows the steps `model` of Megatron-LM's file, and what of them is no data.
 */
void megatron_model(struct configuration *config, struct diag *diag);
void megatron_family(struct configuration *config, struct diag *diag);
void megatron_rotary(struct configuration *config, struct diag *diag);
void megatron_vocab(struct configuration *config, struct diag *diag);
void megatron_width(struct configuration *config, struct diag *diag);
void megatron_positions(struct configuration *config, struct diag *diag);
void megatron_window(struct configuration *config, struct diag *diag);
void megatron_dropout(struct configuration *config, struct diag *diag);
void megatron_experts(struct configuration *config, struct diag *diag); /* also latent attention */

#endif
