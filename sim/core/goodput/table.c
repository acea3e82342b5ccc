/* Section `goodput`: its keys, its defaults, and what follows from the size of a job (restarts, hot
 * spares).
 *
 * goodput_numbers is the only place of the defaults, by key, each with kind and source. Rates of
 * failures are those of one run of 16,384 H100 over 54 days, per part: days x parts /
 * interruptions. An MTBF of 0 means that a part never fails. Restart times and hot spares are
 * tables of published points, interpolated in the logarithm of GPUs or nodes. */
#include "goodput/goodput.h"

#include <math.h>

const char *const goodput_cause_names[GOODPUT_CAUSES + 1] = {
    "gpu", "node", "link", "switch", "software", "maintenance", "slow_node", NULL};
const char *const goodput_time_names[GOODPUT_TIMES + 1] = {"training", "checkpoint", "lost_work",
    "detection", "waiting", "restart", "shrunk", "slowed", NULL};

/* Beyond these a value is a slip of the pen. */
enum { MAX_SPARES = 1 << 20 };
#define MAX_TIME_S 1e11 /* 3,000 years */
#define MIN_BANDWIDTH_BPS 1e3
#define MAX_BANDWIDTH_BPS 1e15
#define MAX_BYTES 1e18

#define HOUR 3600.0
#define LLAMA3                                                                                     \
    "Llama 3 (arXiv 2407.21783, table 5): 54 days of 16,384 H100, 2,048 nodes; "                   \
    "results/measured/reliability.csv"
#define BYTEROBUST "ByteRobust (arXiv 2509.16293)"
#define TRAYS                                                                                      \
    "assumed: 2 of 18, as NVIDIA's recipes run 64 of the 72 GPUs of GB200 NVL72 "                  \
    "(dgxc-benchmarking v25.05)"
/* days x hours x parts / interruptions */
#define LLAMA3_MTBF(parts, interruptions) (54.0 * 24 * HOUR * (parts) / (interruptions))

const struct goodput_number goodput_numbers[] = {
    {"gpu_mtbf", {LLAMA3_MTBF(16384, 268), 0, QUANTITY_MEASURED,
                     LLAMA3 ": 268 interruptions by GPUs and their memory", NULL}},
    {"node_mtbf", {LLAMA3_MTBF(2048, 46), 0, QUANTITY_MEASURED, LLAMA3 ": 46 by hosts", NULL}},
    {"link_mtbf", {LLAMA3_MTBF(16384, 42), 0, QUANTITY_MEASURED,
                      LLAMA3 ": 42 by NICs, cables and switches; a link a GPU", NULL}},
    {"software_mtbf",
        {LLAMA3_MTBF(2048, 63), 0, QUANTITY_MEASURED, LLAMA3 ": 63 by software", NULL}},
    {"gpu_detection_time", {10, 0, QUANTITY_MEASURED, BYTEROBUST ": inspection of GPUs", NULL}},
    {"node_detection_time",
        {2, 0, QUANTITY_MEASURED, BYTEROBUST ": inspection of the host's kernel", NULL}},
    {"link_detection_time", {30, 0, QUANTITY_MEASURED, BYTEROBUST ": inspection of NICs", NULL}},
    {"switch_detection_time",
        {60, 0, QUANTITY_MEASURED, BYTEROBUST ": inspection of switches", NULL}},
    {"software_detection_time",
        {10, 0, QUANTITY_ASSUMED, "as long as that of a GPU: a process ends with an error", NULL}},
    {"hang_share", {5506.0 / 45090, 0, QUANTITY_MEASURED,
                       BYTEROBUST ": 5,506 hangs of 45,090 faults that ended a job", NULL}},
    {"nccl_timeout", {600, 0, QUANTITY_DATASHEET,
                         "PyTorch 2.2 and later: timeout of a ProcessGroupNCCL, 10 min", NULL}},
    {"hot_spares",
        {GOODPUT_BY_SIZE, 0, QUANTITY_MEASURED,
            BYTEROBUST
            ": 99 % of the time 2 are enough for 128 nodes, 4 for 1,024; in proportion below, none "
            "below 64 nodes. In each rack of trays " TRAYS,
            NULL}},
    {"replacement_time", {1800, 0, QUANTITY_ASSUMED,
                             "no source: half an hour until a scheduler has another node", NULL}},
    {"checkpoint_bandwidth", {405.85e9 * 14 / 51.06, 0, QUANTITY_MEASURED,
                                 "ByteCheckpoint (arXiv 2407.20143, table 8): 405B, 14 B a "
                                 "parameter, in 51.06 s from 8,960 GPUs",
                                 NULL}},
    {"checkpoint_node_bandwidth",
        {25e9 / 8, 0, QUANTITY_ASSUMED, "no source: 25 Gb/s of a host's front-end NIC", NULL}},
    {"checkpoint_copy_bandwidth",
        {405.85e9 * 14 / 8960 / 0.59, 0, QUANTITY_MEASURED,
            "ByteCheckpoint, the same run: blocked for 0.59 s, each GPU with its share", NULL}},
    {"slow_node_slowdown",
        {0.1, 0, QUANTITY_MEASURED,
            "MegaScale (NSDI 2024): machines that were about 10 % slower; read in a summary",
            NULL}},
    {"slow_node_detection_time",
        {24 * HOUR, 0, QUANTITY_ASSUMED,
            "no source: somebody looks at the times of steps once a day", NULL}},
    {"slow_node_mtbf",
        {0, 0, QUANTITY_ASSUMED,
            "off: no source says how often a node gets slow, only how many are (0.5 %)", NULL}},
    {"switch_mtbf", {0, 0, QUANTITY_ASSUMED,
                        "counted with links, as the source of link_mtbf counts them", NULL}},
    {0},
};

struct goodput_options goodput_default_options(void)
{
    struct goodput_options out = {.sharded_checkpoint = true};
    for (const struct goodput_number *number = goodput_numbers; number->key; number++) {
        size_t at = 0;
        const struct config_field *field = config_field_at(&goodput_table, number->key, &at);
        void *place = (char *)&out + at;
        if (field->type == FIELD_INT)
            *(int64_t *)place = (int64_t)number->number.value;
        else
            *(double *)place = number->number.value;
    }
    return out;
}

/* BYTEROBUST, weak scaling: a full requeue. */
static const struct {
    double gpus, s;
} requeues[] = {{2048, 454}, {4096, 545}, {8192, 635}, {16384, 768}};
enum { N_REQUEUES = sizeof requeues / sizeof *requeues };

double goodput_restart_s(int64_t gpus)
{
    double n = (double)gpus;
    if (n <= requeues[0].gpus)
        return requeues[0].s;
    int i = 1;
    while (i < N_REQUEUES - 1 && n > requeues[i].gpus)
        i++;
    double share = log2(n / requeues[i - 1].gpus) / log2(requeues[i].gpus / requeues[i - 1].gpus);
    return requeues[i - 1].s + share * (requeues[i].s - requeues[i - 1].s);
}

int64_t goodput_hot_spares(const struct goodput_job *job)
{
    static const struct {
        double nodes, spares;
    } small = {128, 2}, large = {1024, 4} /* BYTEROBUST */, rack = {16, 2} /* TRAYS */;
    if (job->options.hot_spares != GOODPUT_BY_SIZE)
        return job->options.hot_spares;
    int64_t nodes = job->parts[GOODPUT_NODE];
    if (job->in_rack > 1) {
        int64_t racks = (nodes + job->in_rack - 1) / job->in_rack;
        return racks *
               (int64_t)floor(rack.spares * fmin((double)nodes, (double)job->in_rack) / rack.nodes);
    }
    double n = (double)nodes, share = log2(n / small.nodes) / log2(large.nodes / small.nodes);
    return (int64_t)(n < small.nodes
                         ? floor(small.spares * n / small.nodes)
                         : floor(small.spares + share * (large.spares - small.spares) + 0.5));
}

#define GOODPUT(key_, type_, member, help_)                                                        \
    CONFIG_FIELD(key_, type_, struct goodput_options, member, help_)
#define TIME(key_, member, help_)                                                                  \
    {                                                                                              \
        GOODPUT(key_, FIELD_NUMBER, member, help_), .dimension = DIM_SECONDS, .min = 0,            \
                                                    .max = MAX_TIME_S                              \
    }
#define BANDWIDTH(key_, member, help_)                                                             \
    {                                                                                              \
        GOODPUT(key_, FIELD_NUMBER, member, help_),                                                \
            .dimension = DIM_BYTES_PER_S, .min = MIN_BANDWIDTH_BPS, .max = MAX_BANDWIDTH_BPS       \
    }
static const struct config_field fields[] = {
    TIME("gpu_mtbf", mtbf_s[GOODPUT_GPU],
        "mean time between failures of a GPU, as in 80000 h; 0 s: it never fails"),
    TIME("node_mtbf", mtbf_s[GOODPUT_NODE],
        "of a host: a node, of a rack a tray, with CPUs, memory, disk, power supply"),
    TIME("link_mtbf", mtbf_s[GOODPUT_LINK], "of a NIC with its cable"),
    TIME("switch_mtbf", mtbf_s[GOODPUT_SWITCH], "of a leaf switch; 0 s: counted with the links"),
    TIME("software_mtbf", mtbf_s[GOODPUT_SOFTWARE], "of the software of a host"),
    TIME("gpu_detection_time", detection_s[GOODPUT_GPU],
        "until a failed GPU that hangs nothing is noticed"),
    TIME("node_detection_time", detection_s[GOODPUT_NODE], "of a host"),
    TIME("link_detection_time", detection_s[GOODPUT_LINK], "of a link"),
    TIME("switch_detection_time", detection_s[GOODPUT_SWITCH], "of a switch"),
    TIME("software_detection_time", detection_s[GOODPUT_SOFTWARE], "of a process that ends"),
    {GOODPUT("hang_share", FIELD_NUMBER, hang_share,
         "share of failures that hang the job until nccl_timeout"),
        .dimension = DIM_FRACTION, .min = 0, .max = 1},
    TIME("nccl_timeout", nccl_timeout_s, "of the watchdog of PyTorch's ProcessGroupNCCL"),
    {GOODPUT("hot_spares", FIELD_INT, hot_spares,
         "hosts that stand by to take the place of one that failed; -1: by the job's size"),
        .min = GOODPUT_BY_SIZE, .max = MAX_SPARES},
    {GOODPUT("elastic_nodes", FIELD_INT, elastic_nodes,
         "hosts of a data-parallel replica, without which the job goes on where no spare is free; "
         "0: it waits"),
        .min = 0, .max = MAX_SPARES},
    {GOODPUT(
         "days", FIELD_NUMBER, days, "that a history lasts, which --days overrides; 0: 30 days"),
        .dimension = DIM_NONE, .min = 0, .max = GOODPUT_MAX_DAYS},
    TIME("replacement_time", replacement_s, "until another host has come where no spare is free"),
    TIME("restart_time", restart_s,
        "from a whole set of hosts to loading the checkpoint; 0 s: by the job's size"),
    TIME("slow_node_mtbf", slow_node_mtbf_s,
        "mean time until a host gets slow, as in 50000 h; 0 s: none does"),
    {GOODPUT("slow_node_slowdown", FIELD_NUMBER, slow_node_slowdown,
         "by how much longer steps take beside a slow host"),
        .dimension = DIM_FRACTION, .min = 0, .max = 100},
    TIME("slow_node_detection_time", slow_node_detection_s,
        "until a slow host is found and replaced after a checkpoint; 0 s: it never is"),
    TIME("maintenance_interval", maintenance_interval_s,
        "mean time between planned interruptions; 0 s: none"),
    TIME("checkpoint_interval", checkpoint_interval_s,
        "of training between two checkpoints; 0 s: the best one"),
    {GOODPUT("checkpoint_size", FIELD_NUMBER, checkpoint_bytes,
         "of one checkpoint; 0 B: parameters and optimizer state of the model"),
        .dimension = DIM_BYTES, .min = 0, .max = MAX_BYTES},
    BANDWIDTH(
        "checkpoint_bandwidth", checkpoint_bandwidth_Bps, "of the storage, for all hosts together"),
    BANDWIDTH(
        "checkpoint_node_bandwidth", checkpoint_node_bandwidth_Bps, "of one host to the storage"),
    BANDWIDTH("checkpoint_copy_bandwidth", checkpoint_copy_bandwidth_Bps,
        "asynchronous checkpoints: of one GPU to host memory"),
    {GOODPUT("async_checkpoint", FIELD_BOOL, async_checkpoint,
        "training goes on when the checkpoint is in host memory "
        "(torch.distributed.checkpoint.async_save)")},
    {GOODPUT("sharded_checkpoint", FIELD_BOOL, sharded_checkpoint,
        "every rank writes its share; else one writes all")},
};
const struct config_table goodput_table = CONFIG_TABLE("'goodput'", fields);
