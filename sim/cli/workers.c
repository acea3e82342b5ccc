#include "cli/workers.h"

#include <stdio.h>

static const double GIB = 1024 * 1024 * 1024;

void workers_say(void *said, const struct crew_plan *plan)
{
    int *last = said;
    if (plan->at_once >= plan->machine_workers || plan->at_once == *last)
        return;
    *last = plan->at_once;
    fprintf(stderr,
        "flopcast: at first %d of %d workers: a %s takes at most %.2f GiB of memory, of which %.2f GiB are available\n",
        plan->at_once, plan->machine_workers, plan->noun, plan->largest_bytes / GIB, plan->available_bytes / GIB);
}

struct scenario_share workers_share(
    struct crew *crew, const struct scenario_kept *kept, const struct shard *shard, int *said)
{
    return (struct scenario_share){.crew = crew,
        .kept = kept,
        .shard = shard->shard,
        .shards = shard->shards,
        .plan = workers_say,
        .plan_self = said};
}
