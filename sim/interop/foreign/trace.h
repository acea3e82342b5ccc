/* What one GPU did during some training steps, measured or simulated: the same form for a trace of
 * PyTorch's profiler, a profile of Nsight Systems and the spans of exec/, so that one code sums all
 * of them up (trace_sum.h).
 *
 * Steps are found
 * - by annotations "ProfilerStep#N" of the host, of a profile of Nsight Systems by those NVTX
 *   ranges that a regular expression names (of nested ones the outermost). A kernel belongs to the
 *   step in which the host launched it; one
 * whose launch is not in a trace that has launches was launched before the profile began, and
 * belongs to none. On the GPU a step begins when the host has begun it and the kernels of the step
 * before have ended (collectives and copies from and to the host may run over). Of the step before
 * the first the trace may show nothing; then a gpu_user_annotation of the step, where there is one,
 * says when the GPU began it;
 * - else by repetition: the sequence of kernels on the busiest stream repeats after a fixed number
 * of kernels. The rarest kernel that repeats marks where a step begins, which may be anywhere in
 * the loop;
 * - else not: the whole trace counts as one.
 *
 * A kernel's class follows from its name (trace_class.c), a rule of thumb: a name that it does not
 * know is `other`. */
#ifndef FLOPCAST_FOREIGN_TRACE_H
#define FLOPCAST_FOREIGN_TRACE_H

#include "base/index.h"
#include "base/vec.h"
#include "exec/exec.h"
#include "store/measurement.h"

/* enum kernel_kind, then: */
enum { TRACE_OTHER = KERNEL_KIND_COUNT, TRACE_COLLECTIVE, TRACE_CLASS_COUNT };
const char *trace_class_name(int class);

enum { TRACE_NO_STEP = -1, TRACE_UNKNOWN_KIND = -1 };

struct trace_activity {
    ps_t start, end; /* since the trace's origin */
    int32_t name;    /* index of trace.names */
    int32_t stream;
    int32_t step; /* or TRACE_NO_STEP */
    uint8_t class;
    uint8_t phase; /* enum plan_phase by the thread that launched it; PHASE_COUNT: not known */
    /* Of a collective: */
    int8_t kind;   /* enum coll_kind, or TRACE_UNKNOWN_KIND */
    int32_t ranks; /* of its group, of a message 2; 0: not known */
    int32_t group; /* of trace.groups; -1: not said */
    double bytes;  /* the whole message, as coll.h has it; 0: not known */
    int32_t message,
        n_messages; /* of a COLL_SEND_RECV: from here on in trace.messages; 0 of them: not known */
    /* The host's call that launched it; PS_NEVER: not in the trace. */
    ps_t launched, returned;
    int32_t product; /* of a GEMM or attention: in trace.products; -1: its shape is not known */
    int32_t line;    /* of the file; 0: not known */
    ps_t alone;      /* how long it would have taken with nothing beside it; 0: not said */
};

/* A send or a receive. A kernel has several where the calls lay between ncclGroupStart and
 * ncclGroupEnd. */
struct trace_message {
    bool sends;
    int32_t peer;  /* the rank in the job; -1: not said */
    int32_t group; /* of trace.groups; -1: not said */
    double bytes;  /* 0: not known */
};

/* A process group, as PyTorch names it: ranks first, first + stride ..., `ranks` of them. */
struct trace_group_of_ranks {
    const char *name, *says;      /* "1"; "mesh_tp", or NULL */
    int32_t ranks, first, stride; /* stride 0: they are not said, or not evenly apart */
};

/* Where the host waits for the GPU, or makes a stream wait for another (cudaStreamWaitEvent). */
struct trace_wait {
    ps_t start, end; /* of the host's call */
    ps_t recorded;   /* when the host recorded the event that is waited for; PS_NEVER: not in the
                        trace, or none */
    int32_t stream;  /* that waits; TRACE_HOST: the host itself */
    int32_t on; /* the stream that is waited for; TRACE_ANY_STREAM: not said, TRACE_ALL_STREAMS:
                   all, TRACE_LAUNCH_QUEUE: room for a launch; TRACE_SLOW_CALL: perhaps that: an
                   event's call took long */
};
enum {
    TRACE_HOST = -1,
    TRACE_ANY_STREAM = -2,
    TRACE_ALL_STREAMS = -3,
    TRACE_LAUNCH_QUEUE = -4,
    TRACE_SLOW_CALL = -5
};

struct trace_interval {
    ps_t start, end;
};

struct trace_step {
    ps_t start, end;           /* on the GPU */
    ps_t host_start, host_end; /* TRACE_ANNOTATED: of the annotation */
    int64_t number;            /* its N */
};

enum trace_found { TRACE_ANNOTATED, TRACE_REPEATED, TRACE_WHOLE };

/* A text in the names of kernels of a class. */
struct trace_kernel_name {
    const char *text;
    enum kernel_kind kind;
};

struct trace {
    const struct trace_kernel_name *kernel_names; /* for those who fill it */
    int n_kernel_names;
    struct measurement_about about; /* texts in the arena */
    int64_t rank, world_size;       /* -1, 0: not stated */
    int64_t device;                 /* whose activities these are */
    int64_t next_device;            /* the next higher number in the file; -1: there is none */
    VEC(struct trace_activity) activities; /* by start */
    VEC(const char *) names;               /* in the arena */
    struct index name_index;
    VEC(struct trace_step) steps; /* at least one; one begins where the other ends */
    enum trace_found found;
    int devices; /* of how many there are some in the file */
    VEC(struct trace_group_of_ranks) groups;
    VEC(struct trace_message) messages;
    VEC(struct kernel_work) products;   /* by the shapes of the operators that launched them */
    VEC(struct trace_wait) waits;       /* by start; only what is known of them: see trace_file.h */
    VEC(struct trace_interval) loading; /* the host's, in the data loader of the loop */
    bool has_launches;                  /* of most activities */
    bool says_waits;     /* by cuda_sync events: each wait of a stream is in waits, with all that is
                            said of it */
    bool without_copies; /* memcpy and memset are not read from the source */
    int period;          /* TRACE_REPEATED: kernels of a step */
    double alike;        /* TRACE_REPEATED: share of kernels that are those of a step later */
    int outside;         /* activities in no step */
    int ranks_assumed;   /* collectives whose group was taken to be the world, for want of another
                            communicator */
};

void trace_free(struct trace *trace);

/* By the name of a file: SQLite is a profile of Nsight Systems, all else a trace of PyTorch's
 * profiler. device: whose activities are wanted; -1: those of the lowest number. steps: the regular
 * expression (POSIX, extended) of NVTX ranges that are steps; NULL: none is given. Free with
 * trace_free(), also after an error. */
enum status trace_load(struct trace *out, const char *path, int64_t device, const char *steps,
    struct arena *arena, struct diag *diag);

/* The last step of a simulated rank. */
void trace_of_run(struct trace *out, const struct exec_result *exec, int rank, struct arena *arena);

/* The stream that is busiest with kernels. */
int32_t trace_compute_stream(const struct trace *trace);

/* ---- for those who fill it ---- */

int trace_name(struct trace *trace, const char *name, struct arena *arena); /* its index */

/* Which texts in a kernel's name say its class: scenarios/import/kernels.yaml. What is wrong there
 * has its place. */
enum status trace_names_load(struct trace *trace, struct arena *arena, struct diag *diag);
/* What a kernel of this name is, by the first of these texts that is in it, whatever the case; of
 * NCCL's kernels also the kind. TRACE_OTHER: nothing of it is known. */
int trace_classify(const struct trace *trace, const char *name, int8_t *kind);

/* Steps of the host; all times since the origin. */
struct trace_mark {
    ps_t host_start, host_end;
    ps_t gpu_start; /* PS_NEVER: not stated */
    int64_t number;
};
struct trace_marks {
    VEC(struct trace_mark) steps; /* by host_start */
};

/* Sorts activities, finds the steps, and puts activities into them. */
void trace_find_steps(struct trace *trace, const struct trace_marks *marks);

#endif
