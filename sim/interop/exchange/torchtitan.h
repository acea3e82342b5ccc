/* Private to exchange: torchtitan's table, which fronts of it use, too. */
#ifndef FLOPCAST_EXCHANGE_TORCHTITAN_H
#define FLOPCAST_EXCHANGE_TORCHTITAN_H

#include "exchange/rules.h"

extern const struct rule torchtitan_rules[];
extern const int torchtitan_n_rules;

#endif
