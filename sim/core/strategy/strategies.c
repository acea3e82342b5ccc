/* The table of strategies, in a separate file: a test that defines a longer one replaces it. */
#include "strategy/emit.h"

#define STRATEGY_HOOKS(kind, name, hooks) &hooks,
const struct data_parallel *const strategies[] = {STRATEGIES(STRATEGY_HOOKS)};
