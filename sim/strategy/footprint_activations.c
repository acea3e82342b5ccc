#include "strategy/footprint.h"

#include <math.h>

static bool is_kept(const struct model_program *program, int i)
{
    const struct model_activation *a = &program->activations[i];
    return !a->born_in_backward && (a->backward_last >= 0 || i == program->output);
}

/* Bytes that are still there when the forward pass of the stage is over; its output is the next stage's input. */
static double kept_bytes(const struct model_program *program)
{
    double bytes = 0;
    for (int i = 0; i < program->n_activations; i++)
        if (is_kept(program, i))
            bytes += (double)program->activations[i].bytes;
    return bytes;
}

/* What checkpointing keeps of a block's forward pass until its backward pass is over. */
static double checkpoint_bytes(const struct model_program *program, int checkpointing)
{
    double bytes = (double)program->output_bytes;
    for (int i = 0; i < program->n_activations && checkpointing == CHECKPOINT_SELECTIVE; i++) {
        const struct model_activation *a = &program->activations[i];
        if (!a->born_in_backward && i != program->output && program->forward[a->born].kept)
            bytes += (double)a->bytes;
    }
    return bytes;
}

/* Bytes alive while forward kernel k runs. */
static double alive_in_forward(const struct model_program *program, int k)
{
    double bytes = 0;
    for (int i = 0; i < program->n_activations; i++) {
        const struct model_activation *a = &program->activations[i];
        if (!a->born_in_backward && a->born <= k && (is_kept(program, i) || k <= a->forward_last))
            bytes += (double)a->bytes;
    }
    return bytes;
}

/* Bytes alive while backward kernel k runs. */
static double alive_in_backward(const struct model_program *program, int k)
{
    double bytes = 0;
    for (int i = 0; i < program->n_activations; i++) {
        const struct model_activation *a = &program->activations[i];
        if (k <= a->backward_last && (!a->born_in_backward || a->born <= k))
            bytes += (double)a->bytes;
    }
    return bytes;
}

/* What the forward pass of a stage that is not run again lets go of: the output of the stage before it. */
static double dropped_bytes(const struct model_segment *before, const struct model_program *program, int checkpointing)
{
    const struct model_program *gave = before->program;
    bool again = checkpointing != CHECKPOINT_NONE && gave->reruns;
    bool free = program->drops_input && (again || gave->activations[gave->output].backward_last < 0);
    return free ? (double)gave->output_bytes : 0;
}

static double peak_bytes(const struct model_program *program)
{
    double peak = 0;
    for (int k = 0; k < program->n_forward; k++)
        peak = fmax(peak, alive_in_forward(program, k));
    for (int k = 0; k < program->n_backward; k++)
        peak = fmax(peak, alive_in_backward(program, k));
    return peak;
}

static struct model_workload workload_of(const struct footprint_options *options)
{
    static const enum dtype storage[FOOTPRINT_DTYPE_COUNT] = {
        [FOOTPRINT_FP32] = DTYPE_FP32,
        [FOOTPRINT_TF32] = DTYPE_FP32,
        [FOOTPRINT_BF16_MIXED] = DTYPE_BF16,
        [FOOTPRINT_FP16_MIXED] = DTYPE_FP16,
        [FOOTPRINT_FP8_MIXED] = DTYPE_BF16,
        [FOOTPRINT_BF16_MASTER] = DTYPE_BF16,
        [FOOTPRINT_BF16] = DTYPE_BF16,
        [FOOTPRINT_FP16] = DTYPE_FP16,
        [FOOTPRINT_INT8] = DTYPE_BF16, /* 8-bit weights are multiplied with 16-bit activations */
    };
    enum dtype dtype = storage[options->dtype];
    return (struct model_workload){
        .micro_batch = options->micro_batch,
        .seq_len = options->seq_len,
        .decoder_seq_len = options->decoder_seq_len,
        .math = dtype,
        .storage = dtype,
        .attention = options->attention,
        .cross_entropy = options->cross_entropy,
        .fusion = options->fusion,
        .drops_logits = options->drop_logits,
        .loss_fp32 = true,
        .fp8 = options->dtype == FOOTPRINT_FP8_MIXED,
        .nf4 = options->base != BASE_HALF, /* INT8 is widened too, for the gradient */
    };
}

double footprint_activations(const struct model *model, const struct footprint_options *options, struct arena *scratch)
{
    struct model_workload workload = workload_of(options);
    struct model_segments segments = {0};
    struct model adapted;
    model_adapt(&adapted, model, options->lora_rank, options->lora_targets, scratch);
    model_segments(&segments, &adapted, &workload, scratch);
    double before = 0, peak = 0, own_peak = 0, kept = 0;
    for (int i = 0; i < segments.n; i++) {
        const struct model_program *program = segments.at[i].program;
        bool again = options->checkpointing != CHECKPOINT_NONE && program->reruns;
        if (i == 0 || program != segments.at[i - 1].program) { /* alike blocks follow each other and share a program */
            kept = again ? checkpoint_bytes(program, options->checkpointing) : kept_bytes(program);
            /* A kept tensor may outlive its use within the block. */
            own_peak = peak_bytes(program) + (again ? kept - (double)program->output_bytes : 0);
        }
        peak = fmax(peak, before + own_peak);
        before += kept - (i > 0 && !again ? dropped_bytes(&segments.at[i - 1], program, options->checkpointing) : 0);
    }
    return peak;
}
