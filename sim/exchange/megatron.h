/* Private to megatron*.c: the table of arguments, and the model that they describe. */
#ifndef FLOPCAST_EXCHANGE_MEGATRON_H
#define FLOPCAST_EXCHANGE_MEGATRON_H

#include "exchange/rules.h"

extern const struct rule megatron_rules[]; /* megatron.c */
extern const int megatron_n_rules;

void megatron_model(struct configuration *config, struct diag *diag);   /* megatron_model.c */
void megatron_experts(struct configuration *config, struct diag *diag); /* also latent attention */

#endif
