/* Private to coll/: what one algorithm adds to a cost whose max_rate_Bps and sms are set for NVLink inside the node. */
#ifndef FLOPCAST_COLL_ALGORITHM_H
#define FLOPCAST_COLL_ALGORITHM_H

#include "coll/coll.h"

void coll_ring(struct coll_cost *cost, enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw);
void coll_tree(struct coll_cost *cost, enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw);

#endif
