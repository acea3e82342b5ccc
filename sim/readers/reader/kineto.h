/* Private to reader: the events of a trace of PyTorch's profiler (Kineto's Chrome trace, .json or
 * .json.gz) one after the other, in constant memory: traces of a million events are common.
 *
 * Only complete events ("ph": "X") are passed on. Times are taken as they are written, in
 * microseconds: nanoseconds since whatever the file counts from are exact, where a double of 1.7e15
 * us would not hold them. */
#ifndef FLOPCAST_READER_KINETO_H
#define FLOPCAST_READER_KINETO_H

#include "base/arena.h"
#include "reader/input.h"

enum kineto_category {
    KINETO_OTHER,
    KINETO_KERNEL,
    KINETO_MEMCPY,         /* gpu_memcpy */
    KINETO_MEMSET,         /* gpu_memset */
    KINETO_CPU_OP,         /* record_param_comms is one */
    KINETO_ANNOTATION,     /* user_annotation: "ProfilerStep#4", "nccl:all_reduce" */
    KINETO_GPU_ANNOTATION, /* gpu_user_annotation: the same, from its first kernel's start to its
                              last one's end */
    KINETO_RUNTIME, /* cuda_runtime, cuda_driver (so also of HIP): a call that may have launched
                       something */
    KINETO_SYNC,    /* cuda_sync, with enable_cuda_sync_events: what waited, and for which
                       cudaEventRecord */
};

/* What a call of the host does, or a wait of KINETO_SYNC is. CUDA's runtime and driver and HIP's
 * have one name each for it: "cudaLaunchKernel_ptsz", "cuLaunchKernelEx",
 * "hipExtModuleLaunchKernel". */
enum kineto_call {
    CALL_OTHER,
    CALL_LAUNCH, /* of a kernel, kernels or a graph */
    CALL_EVENT_RECORD,
    CALL_STREAM_WAIT, /* a stream waits for an event */
    CALL_EVENT_SYNC,  /* the host waits, as in the next two */
    CALL_STREAM_SYNC,
    CALL_DEVICE_SYNC, /* free() does so, too */
    CALL_MALLOC,
};

/* Texts are cut to their room. */
struct kineto_event {
    enum kineto_category category;
    enum kineto_call call;
    int64_t position; /* of the event in the file, from 1 */
    int line;
    char name[512];
    int64_t start_ns, duration_ns;
    double duration_us;      /* as written */
    int64_t process, thread; /* 0 where it is no number */
    /* Arguments; 0 or "" where there are none. */
    int64_t device, stream, correlation;
    char kind[32], phase[32]; /* of a kernel, as flopcast itself writes it */
    /* Of a collective, by PyTorch 2.2 and later: its kernel or its record_param_comms. */
    char collective[64], dtype[32];
    int64_t in_elements, out_elements, ranks;
    bool has_peer;
    int64_t peer; /* of "send" its "Dst Rank", of "recv" its "Src Rank": in the job */
    char group[64], group_ranks[256],
        group_says[64]; /* "Process Group Name", "... Ranks", "... Description" */
    /* KINETO_SYNC: the stream that an event was recorded on, and the correlation of the call that
     * did. */
    int64_t waited_stream, waited_record;
    double alone_us; /* of a kernel, as flopcast itself writes it: without what ran beside it */
    /* Of an operator or annotation that was recorded with shapes: bytes of all its inputs; 0: not
     * known. */
    double input_bytes;
    int64_t external; /* "External id": of an operator, and of what it launched */
    /* Of an operator with shapes: of the first two matrices among its inputs that can be
     * multiplied, as mm, addmm and bmm have them; or of attention (attends), queries, keys, head
     * dimension, heads of all sequences, of the first two inputs of four dimensions. batch 0: there
     * are none. dtype is then that of the first. */
    bool attends;
    int64_t m, n, k, batch;
};

/* What the file says beside its events. */
struct kineto_about {
    const char *gpu, *nccl_version; /* in the arena; NULL: not stated */
    int64_t rank, world_size;       /* -1, 0: not stated */
    int64_t events;                 /* with "ph": "X" */
};

/* Anything but STATUS_OK ends the reading. */
typedef enum status (*kineto_take)(void *self, const struct kineto_event *event, struct diag *diag);

/* Times that are no numbers, and a file without traceEvents, are errors. */
enum status kineto_scan(struct kineto_about *out, struct input *input, kineto_take take, void *self,
    struct arena *arena, struct diag *diag);

/* A kernel's mistakes: no name, a negative duration. */
enum status kineto_check_kernel(
    const struct kineto_event *event, const char *file, struct diag *diag);

/* What PyTorch calls a collective: by ProcessGroupNCCL's name ("_allgather_base") or that of its
 * annotation ("all_gather", without "nccl:"). NULL: none, as barrier and wait are none. */
struct kineto_collective {
    const char *torch, *name; /* PyTorch's, and that of coll_kind_names or nccl-tests */
    bool in_place;
};
const struct kineto_collective *kineto_find_collective(const char *name);

/* Of the collective that the arguments describe, the whole message as nccl-tests counts: the larger
 * of what goes in and out; 0: not known. */
int64_t kineto_message_bytes(const struct kineto_event *event);

#endif
