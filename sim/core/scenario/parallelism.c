/* What Megatron-LM, torchtitan, DeepSpeed, GPT-NeoX, InternEvo and accelerate call the degrees of
 * the section 'parallelism': tensor_parallel_degree, pp, ep_size, sequence_parallel, ulysses_degree
 * ...; and other settings that have other names here: batch_size, max_seq_length,
 * gradient_checkpointing ... */
#include "scenario/file.h"

#include <ctype.h>
#include <string.h>

enum form { TENSOR, PIPELINE, CONTEXT, SEQUENCE, EXPERT, FORM_COUNT };
static const struct {
    const char *word, *letters, *message;
} forms[FORM_COUNT] = {
    [EXPERT] = {"expert", "ep", "expert parallelism is 'expert' of the section 'parallelism' here"},
    [PIPELINE] = {"pipe", "pp",
        "pipeline parallelism is 'pipeline', 'virtual' and 'schedule' of the section 'parallelism' "
        "here"},
    [CONTEXT] = {"context", "cp",
        "context parallelism is 'context' and 'context_kind' of the section 'parallelism' here"},
    [SEQUENCE] = {"sequence", "sp",
        "sequence parallelism is of the section 'parallelism' here: 'sequence' as Megatron-LM has "
        "it, 'context' with context_kind a2a as DeepSpeed-Ulysses has it"},
    [TENSOR] = {"tensor", "tp", "tensor parallelism is 'tensor' of the section 'parallelism' here"},
};
/* Names that the rule below does not find. */
static const struct {
    const char *name;
    enum form form;
} others[] = {
    {"modelparallel", TENSOR},
    {"modelparallelsize", TENSOR},
    {"modelparallelism", TENSOR},
    {"mpsize", TENSOR},
    {"autotpsize", TENSOR},
    {"etp", EXPERT},
    {"vpp", PIPELINE},
    {"numlayerspervirtualpipelinestage", PIPELINE},
    {"pipelinestages", PIPELINE},
    {"pipelineschedule", PIPELINE},
    {"ulysses", SEQUENCE},
    {"ulyssessize", SEQUENCE},
    {"ulyssesdegree", SEQUENCE},
    {"ringattention", CONTEXT},
};

/* "pp", "pp_size", "pp_degree", "pp_world_size". */
static bool is_short(const char *name, const char *letters)
{
    static const char *const ends[] = {"", "size", "degree", "worldsize"};
    size_t n = strlen(letters);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strncmp(name, letters, n) == 0 && strcmp(name + n, ends[i]) == 0)
            return true;
    return false;
}

/* What transformers, accelerate, Lightning, DeepSpeed, torchtitan and Megatron-LM call other
 * settings, in the same form, and what it is here. */
#define SEQUENCES "sequences that a GPU computes on at once are train.micro_batch here"
#define LENGTH "tokens of a sequence are train.seq_len here"
#define RECOMPUTED                                                                                 \
    "recomputation is train.activation_checkpointing here: full, selective, core_attn or none"
#define FORMAT "number formats are train.precision here, as in bf16_mixed or fp8_mixed"
#define ALL_GPUS "GPUs of the whole job, all nodes together, are cluster.gpus here"
#define STEP_BATCH "sequences of all GPUs to an optimizer step are train.global_batch here"
#define ACCUMULATED "micro-batches to an optimizer step are train.grad_accum here"
#define FLASH "attention kernels are train.attention here: flash or naive"
static const struct {
    const char *name, *message;
} synonyms[] = {
    {"batchsize", SEQUENCES},
    {"perdevicetrainbatchsize", SEQUENCES},
    {"perdevicebatchsize", SEQUENCES},
    {"trainmicrobatchsizepergpu", SEQUENCES},
    {"devicetrainmicrobatchsize", SEQUENCES},
    {"mbs", SEQUENCES},
    {"trainbatchsize", STEP_BATCH},
    {"globaltrainbatchsize", STEP_BATCH},
    {"totalbatchsize", STEP_BATCH},
    {"gbs", STEP_BATCH},
    {"maxseqlength", LENGTH},
    {"maxseqlen", LENGTH},
    {"maxlength", LENGTH},
    {"seqlength", LENGTH},
    {"sequencelength", LENGTH},
    {"contextlength", LENGTH},
    {"blocksize", LENGTH},
    {"modelmaxlength", LENGTH},
    {"gradientcheckpointing", RECOMPUTED},
    {"usegradientcheckpointing", RECOMPUTED},
    {"activationcheckpoint", RECOMPUTED},
    {"activationcheckpointmode", RECOMPUTED},
    {"recompute", RECOMPUTED},
    {"recomputegranularity", RECOMPUTED},
    {"gradientaccumulation", ACCUMULATED},
    {"gradaccumsteps", ACCUMULATED},
    {"accumulategradbatches", ACCUMULATED},
    {"bf16", FORMAT},
    {"fp16", FORMAT},
    {"fp8", FORMAT},
    {"dtype", FORMAT},
    {"torchdtype", FORMAT},
    {"mixedprecision", FORMAT},
    {"worldsize", ALL_GPUS},
    {"numgpus", ALL_GPUS},
    {"ngpus", ALL_GPUS},
    {"numprocesses", ALL_GPUS},
    {"numnodes", ALL_GPUS},
    {"nnodes", ALL_GPUS},
    {"nprocpernode", ALL_GPUS},
    {"attnimplementation", FLASH},
    {"flashattention", FLASH},
    {"useflashattn", FLASH},
    {"useflashattention", FLASH},
    {"zerostage", "ZeRO is the strategy here: zero1, zero2 or zero3"},
    {"optim", "the optimizer is train.optimizer here, as in adamw"},
    {"modelname", "the model is 'model' here, a file or a name"},
    {"modelnameorpath", "the model is 'model' here, a file or a name"},
};

const char *parallelism_elsewhere(const char *key)
{
    char name[64]; /* in small letters and without what separates words; a longer key is none of
                      these */
    size_t n = 0;
    for (; *key && n + 1 < sizeof name; key++)
        if (*key != '_' && *key != '-')
            name[n++] = (char)tolower((unsigned char)*key);
    name[n] = '\0';
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return forms[others[i].form].message;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i].name, name) == 0)
            return synonyms[i].message;
    /* An expert's tensor parallelism is of experts, so these come first. */
    static const enum form order[FORM_COUNT] = {EXPERT, PIPELINE, CONTEXT, SEQUENCE, TENSOR};
    for (int i = 0; i < FORM_COUNT; i++)
        if (is_short(name, forms[order[i]].letters) ||
            (strstr(name, "parallel") && strstr(name, forms[order[i]].word)))
            return forms[order[i]].message;
    return NULL;
}
