/* What Megatron-LM, torchtitan, DeepSpeed, GPT-NeoX, InternEvo and accelerate call the degrees of the section
 * 'parallelism': tensor_parallel_degree, pp, ep_size, sequence_parallel, ulysses_degree ... */
#include "scenario/file.h"

#include <ctype.h>
#include <string.h>

enum form { TENSOR, PIPELINE, CONTEXT, SEQUENCE, EXPERT, FORM_COUNT };
static const struct {
    const char *word, *letters, *message;
} forms[FORM_COUNT] = {
    [EXPERT] = {"expert", "ep", "expert parallelism is 'expert' of the section 'parallelism' here"},
    [PIPELINE] = {"pipe", "pp",
        "pipeline parallelism is 'pipeline', 'virtual' and 'schedule' of the section 'parallelism' here"},
    [CONTEXT] = {"context", "cp",
        "context parallelism is 'context' and 'context_kind' of the section 'parallelism' here"},
    [SEQUENCE] = {"sequence", "sp",
        "sequence parallelism is of the section 'parallelism' here: 'sequence' as Megatron-LM has it, 'context' with "
        "context_kind a2a as DeepSpeed-Ulysses has it"},
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

const char *parallelism_elsewhere(const char *key)
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
