/* A step of hand-written ops on a GPU in round numbers: every time follows with pen and paper.
 * Include after cmocka.h. */
#ifndef FLOPCAST_TESTS_EXEC_STEP_H
#define FLOPCAST_TESTS_EXEC_STEP_H

#include "exec/exec.h"

#include <math.h>
#include <string.h>

/* A GPU in round numbers: 100 SMs, 1 GB of HBM of which 1 TB/s can be used, no launch floor: a
 * kernel that moves 1 GB takes 1 ms. Two GPUs a node, 100 GB/s between them; collectives hold 20
 * SMs, cost 100 us once and 10 us a hop. */
static inline struct hw test_hw(void)
{
    struct hw hw = {0};
    hw.gpu.name = "test";
    hw.gpu.sms.value = 100;
    hw.gpu.hbm_capacity.value = 1e9;
    hw.gpu.hbm_bandwidth.value = 1e12;
    hw.gpu.hbm_efficiency.value = 1;
    hw.gpu.vector_flops.value = 1e12;
    hw.gpu.memory_sms.value = 1;
    hw.node.gpus.value = hw.node.nics.value = 2;
    hw.node.gpu_bandwidth.value = 100e9;
    hw.node.nic_bandwidth.value = 50e9;
    hw.node.nccl_efficiency.value = hw.cluster.nccl_efficiency.value =
        hw.cluster.oversubscription.value = 1;
    hw.node.nccl_base_latency.value = 100e-6;
    hw.gpu.arch = "Volta";
    hw.node.fabric = HW_PCIE; /* no LL128: all of this is about Simple */
    hw.cluster.nccl_protocols = HW_PROTOCOLS_SIMPLE;
    hw.node.nccl_hop_latency.value = 10e-6;
    hw.node.nccl_channels.value = 20;
    hw.cluster.nodes.value = 8;
    return hw;
}

struct fixture {
    struct hw hw;
    struct arena arena;
    struct plan plan;
    struct plan_builder builder;
    struct exec_options options;
    struct exec_result result;
};

static inline void begin(struct fixture *f, int ranks)
{
    memset(f, 0, sizeof *f);
    f->hw = test_hw();
    f->options =
        (struct exec_options){.steps = 1, .seed = 1, .fold = FOLD_OFF, .from_the_start = true};
    plan_begin(&f->builder, &f->plan, ranks);
}

static inline void run(struct fixture *f)
{
    plan_end(&f->builder);
    exec_run(&f->result, &f->plan, &f->hw, &f->options, &f->arena);
}

static inline void end(struct fixture *f)
{
    plan_release(&f->plan);
    arena_release(&f->arena);
}

/* A kernel of `ms` milliseconds that only moves bytes, or only computes (on the vector units). */
static inline int mover(struct fixture *f, int stream, double ms, double host_s)
{
    return plan_kernel(
        &f->builder, stream, "move", kernel_stream(KERNEL_COPY, ms * 1e9, 0, 0), host_s);
}
static inline int computer(struct fixture *f, double ms)
{
    return plan_kernel(&f->builder, STREAM_COMPUTE, "compute",
        kernel_stream(KERNEL_ELEMENTWISE, 0, 0, ms * 1e9), 0);
}

static inline void near(double got, double want)
{
    if (fabs(got - want) > 1e-9) /* a nanosecond */
        fail_msg("got %.12g s, want %.12g s", got, want);
}

#endif
