/* What Megatron-LM, torchtitan, DeepSpeed, GPT-NeoX, InternEvo and accelerate call the forms of parallelism that are
 * not modelled: tensor_model_parallel_size, tensor_parallel_degree, pp, context_parallel_size, ep_size ... */
#include "scenario/file.h"

#include <ctype.h>
#include <string.h>

#define UNTIL_THEN " is not modelled yet; DDP, FSDP and ZeRO are: 'strategy' chooses one"

enum form { TENSOR, PIPELINE, CONTEXT, SEQUENCE, EXPERT, FORM_COUNT };
static const struct {
    const char *word, *letters, *message;
} forms[FORM_COUNT] = {
    [EXPERT] = {"expert", "ep", "expert parallelism" UNTIL_THEN},
    [PIPELINE] = {"pipe", "pp", "pipeline parallelism" UNTIL_THEN},
    [CONTEXT] = {"context", "cp", "context parallelism" UNTIL_THEN},
    [SEQUENCE] = {"sequence", "sp", "sequence parallelism" UNTIL_THEN},
    [TENSOR] = {"tensor", "tp", "tensor parallelism" UNTIL_THEN},
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

const char *parallelism_unmodelled(const char *key)
{
    char name[64]; /* in small letters and without what separates words; a longer key is none of these */
    size_t n = 0;
    for (; *key && n + 1 < sizeof name; key++)
        if (*key != '_' && *key != '-')
            name[n++] = (char)tolower((unsigned char)*key);
    name[n] = '\0';
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return forms[others[i].form].message;
    /* An expert's tensor parallelism is of experts, so these come first. */
    static const enum form order[FORM_COUNT] = {EXPERT, PIPELINE, CONTEXT, SEQUENCE, TENSOR};
    for (int i = 0; i < FORM_COUNT; i++)
        if (is_short(name, forms[order[i]].letters) || (strstr(name, "parallel") && strstr(name, forms[order[i]].word)))
            return forms[order[i]].message;
    return NULL;
}
