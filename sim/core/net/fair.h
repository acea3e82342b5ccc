/* Private to net/: the rates of flows after a change, looked for where it happened.
 *
 * Of max-min fair rates every flow is at its rate cap or has a bottleneck: a full link on which no
 * flow is faster. The other way round, rates of which that holds are the max-min fair ones, as
 * there is one such allocation only (Bertsekas and Gallager, Data Networks, 6.5.2). So flows far
 * from a change keep their rates, and need not be looked at: the flows that changed are solved
 * beside what the others have; then those whose bottleneck this moves, or that would have to give
 * way, are solved with them, until there is none. A message that comes to one of a thousand links
 * of a collective mostly leaves the collective's rate as it is.
 *
 * The numbers are those of maxmin_solve() over all flows to the last bit, as a rate follows from
 * its bottleneck alone: what slower flows leave of the link, by the weights of the rest, both
 * summed in the order of flows' ids. (Where two bottlenecks are within 1e-12 of each other, the
 * last bits may differ.) */
#ifndef FLOPCAST_NET_FAIR_H
#define FLOPCAST_NET_FAIR_H

#include "net/net.h"

/* Finds `fair` of all flows for those listed in net->changed, which is empty then. Flows whose
 * `fair` may differ from their rate are listed in net->solved, in no order. */
void fair_solve(struct net *net);

/* Flows of which this is the bottleneck are to be solved again. */
void fair_relieved(struct net *net, int link);

void fair_set_changed(struct net *net, int id);

#endif
