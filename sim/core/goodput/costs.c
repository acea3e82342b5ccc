/* Costs of checkpoints and failures without chance, and the closed forms of Young and Daly on them.
 *
 * The storage is shared by all nodes, so a sharded checkpoint goes at the lower of the storage's
 * and all nodes' bandwidth, and an unsharded one at that of one node. Asynchronous: training waits
 * only for the copy to host memory, by all ranks or by the one that writes. Failure rates of parts
 * add up; the mean time between failures is the inverse of their sum, and the detection time is the
 * mean over parts by their rates. */
#include "goodput/goodput.h"

#include <math.h>

static double rate_of(const struct goodput_job *job, int part)
{
    double mtbf_s = job->options.mtbf_s[part];
    return mtbf_s > 0 ? (double)job->parts[part] / mtbf_s : 0;
}

struct goodput_costs goodput_costs(const struct goodput_job *job)
{
    const struct goodput_options *o = &job->options;
    struct goodput_costs costs = {
        .bytes = o->checkpoint_bytes > 0 ? o->checkpoint_bytes : job->state_bytes};
    double nodes = (double)job->parts[GOODPUT_NODE], gpus = (double)job->parts[GOODPUT_GPU];
    double of_all = fmin(o->checkpoint_bandwidth_Bps, nodes * o->checkpoint_node_bandwidth_Bps);
    double writers = o->sharded_checkpoint ? gpus : 1;
    double write_s =
        costs.bytes /
        (o->sharded_checkpoint ? of_all : fmin(of_all, o->checkpoint_node_bandwidth_Bps));
    costs.stall_s =
        o->async_checkpoint ? costs.bytes / (writers * o->checkpoint_copy_bandwidth_Bps) : write_s;
    costs.write_s = o->async_checkpoint ? write_s : 0;
    costs.load_s = costs.bytes / of_all;
    costs.restart_s = o->restart_s > 0 ? o->restart_s : goodput_restart_s(job->parts[GOODPUT_GPU]);
    double rate = 0, detection = 0;
    for (int part = 0; part < GOODPUT_PARTS; part++) {
        rate += rate_of(job, part);
        detection += rate_of(job, part) * (o->hang_share * o->nccl_timeout_s +
                                              (1 - o->hang_share) * o->detection_s[part]);
    }
    costs.mtbf_s = rate > 0 ? 1 / rate : (double)INFINITY;
    costs.recovery_s = (rate > 0 ? detection / rate : 0) + costs.restart_s + costs.load_s;
    return costs;
}

double goodput_young_s(const struct goodput_costs *costs)
{
    return sqrt(2 * costs->stall_s * costs->mtbf_s);
}

/* Where a checkpoint takes twice the time between failures or longer, Daly's series does not hold;
 * he takes that time. */
double goodput_daly_s(const struct goodput_costs *costs)
{
    double ratio = costs->stall_s / (2 * costs->mtbf_s);
    if (ratio >= 1)
        return costs->mtbf_s;
    return goodput_young_s(costs) * (1 + sqrt(ratio) / 3 + ratio / 9) - costs->stall_s;
}

double goodput_daly_share(const struct goodput_costs *costs, double interval_s)
{
    double m = costs->mtbf_s;
    if (isinf(m))
        return interval_s / (interval_s + costs->stall_s);
    return interval_s / (m * exp(costs->recovery_s / m) * expm1((interval_s + costs->stall_s) / m));
}
