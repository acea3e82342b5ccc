#include "model/huggingface.h"

#include "model/model.h"

#include <string.h>

static const struct {
    const char *model_type, *what;
} unmodelled[] = {
#define EXPERTS "a mixture of experts"
#define DECODER "another decoder"
#define ENCODER "another encoder"
#define STACKS "another encoder-decoder"
#define STATES "a state-space or recurrent model"
#define SEVERAL "a model of several modalities"
#define IMAGES "another model of images"
#define SPEECH "a model of speech"
    {"mixtral", EXPERTS},
    {"qwen2_moe", EXPERTS},
    {"qwen3_moe", EXPERTS},
    {"qwen3_next", EXPERTS},
    {"olmoe", EXPERTS},
    {"dbrx", EXPERTS},
    {"phimoe", EXPERTS},
    {"granitemoe", EXPERTS},
    {"jetmoe", EXPERTS},
    {"arctic", EXPERTS},
    {"minimax", EXPERTS},
    {"gpt_oss", EXPERTS},
    {"glm4_moe", EXPERTS},
    {"ernie4_5_moe", EXPERTS},
    {"deepseek", EXPERTS},
    {"deepseek_v2", EXPERTS},
    {"deepseek_v3", EXPERTS},
    {"kimi_k2", EXPERTS},
    {"llama4", EXPERTS},
    {"llama4_text", EXPERTS},
    {"grok-1", EXPERTS},
    {"switch_transformers", EXPERTS},
    {"nllb-moe", EXPERTS},
    {"qwen", DECODER},
    {"qwen3", DECODER},
    {"gemma", DECODER},
    {"gemma2", DECODER},
    {"gemma3", SEVERAL},
    {"gemma3_text", DECODER},
    {"gemma3n", SEVERAL},
    {"phi", DECODER},
    {"phi3", DECODER},
    {"gpt_neo", DECODER},
    {"gpt_neox", DECODER},
    {"gpt_bigcode", DECODER},
    {"gptj", DECODER},
    {"opt", DECODER},
    {"bloom", DECODER},
    {"falcon", DECODER},
    {"mpt", DECODER},
    {"stablelm", DECODER},
    {"starcoder2", DECODER},
    {"codegen", DECODER},
    {"olmo", DECODER},
    {"olmo2", DECODER},
    {"cohere", DECODER},
    {"cohere2", DECODER},
    {"granite", DECODER},
    {"internlm", DECODER},
    {"internlm2", DECODER},
    {"internlm3", DECODER},
    {"baichuan", DECODER},
    {"chatglm", DECODER},
    {"glm", DECODER},
    {"glm4", DECODER},
    {"minicpm", DECODER},
    {"nemotron", DECODER},
    {"exaone", DECODER},
    {"exaone4", DECODER},
    {"helium", DECODER},
    {"smollm3", DECODER},
    {"ministral", DECODER},
    {"seed_oss", DECODER},
    {"ctrl", DECODER},
    {"openai-gpt", DECODER},
    {"transfo-xl", DECODER},
    {"xlnet", DECODER},
    {"xglm", DECODER},
    {"biogpt", DECODER},
    {"persimmon", DECODER},
    {"fuyu", SEVERAL},
    {"roberta", ENCODER},
    {"xlm-roberta", ENCODER},
    {"xlm", ENCODER},
    {"camembert", ENCODER},
    {"albert", ENCODER},
    {"distilbert", ENCODER},
    {"electra", ENCODER},
    {"deberta", ENCODER},
    {"deberta-v2", ENCODER},
    {"modernbert", ENCODER},
    {"nomic_bert", ENCODER},
    {"mobilebert", ENCODER},
    {"roformer", ENCODER},
    {"convbert", ENCODER},
    {"squeezebert", ENCODER},
    {"longformer", ENCODER},
    {"big_bird", ENCODER},
    {"funnel", ENCODER},
    {"mpnet", ENCODER},
    {"layoutlm", ENCODER},
    {"esm", ENCODER},
    {"bert-generation", ENCODER},
    {"bart", STACKS},
    {"mbart", STACKS},
    {"mt5", STACKS},
    {"umt5", STACKS},
    {"longt5", STACKS},
    {"pegasus", STACKS},
    {"marian", STACKS},
    {"m2m_100", STACKS},
    {"blenderbot", STACKS},
    {"led", STACKS},
    {"prophetnet", STACKS},
    {"encoder-decoder", STACKS},
    {"t5gemma", STACKS},
    {"mamba", STATES},
    {"mamba2", STATES},
    {"falcon_mamba", STATES},
    {"jamba", STATES},
    {"zamba", STATES},
    {"zamba2", STATES},
    {"bamba", STATES},
    {"recurrent_gemma", STATES},
    {"rwkv", STATES},
    {"clip", SEVERAL},
    {"siglip", SEVERAL},
    {"blip", SEVERAL},
    {"blip-2", SEVERAL},
    {"llava", SEVERAL},
    {"llava_next", SEVERAL},
    {"mllama", SEVERAL},
    {"idefics", SEVERAL},
    {"idefics2", SEVERAL},
    {"idefics3", SEVERAL},
    {"mistral3", SEVERAL},
    {"pixtral", SEVERAL},
    {"paligemma", SEVERAL},
    {"qwen2_vl", SEVERAL},
    {"qwen2_5_vl", SEVERAL},
    {"qwen3_vl", SEVERAL},
    {"deit", IMAGES},
    {"beit", IMAGES},
    {"swin", IMAGES},
    {"swinv2", IMAGES},
    {"dinov2", IMAGES},
    {"vit_mae", IMAGES},
    {"vit_msn", IMAGES},
    {"convnext", IMAGES},
    {"convnextv2", IMAGES},
    {"resnet", IMAGES}, /* of transformers; ours is the family convnet */
    {"regnet", IMAGES},
    {"efficientnet", IMAGES},
    {"detr", IMAGES},
    {"segformer", IMAGES},
    {"whisper", SPEECH},
    {"wav2vec2", SPEECH},
    {"hubert", SPEECH},
    {"speecht5", SPEECH},
};

const char *huggingface_unmodelled(const char *model_type)
{
    for (size_t i = 0; i < sizeof unmodelled / sizeof *unmodelled; i++)
        if (strcmp(unmodelled[i].model_type, model_type) == 0)
            return unmodelled[i].what;
    return NULL;
}

static const struct {
    const char *name, *model_type;
    int head;
} architectures[] = {
    {"T5ForConditionalGeneration", "t5", 0},
    {"T5WithLMHeadModel", "t5", 0}, /* the same class before transformers 3 */
    {"GPT2LMHeadModel", "gpt2", 0},
    {"LlamaForCausalLM", "llama", 0},
    {"MistralForCausalLM", "mistral", 0},
    {"Qwen2ForCausalLM", "qwen2", 0},
    {"BertForPreTraining", "bert", BERT_PRETRAINING},
    {"BertForMaskedLM", "bert", BERT_MASKED_LM},
    {"BertForSequenceClassification", "bert", BERT_CLASSIFICATION},
    {"BertModel", "bert", BERT_NO_HEAD},
    {"ViTForImageClassification", "vit", 0},
};
enum { N_ARCHITECTURES = sizeof architectures / sizeof *architectures };

static enum status unknown(struct config_node at, const char *model_type, struct arena *arena, struct diag *diag)
{
    const char *known = "";
    for (int i = 0; i < N_ARCHITECTURES; i++)
        if (strcmp(architectures[i].model_type, model_type) == 0)
            known = arena_printf(arena, "%s%s%s", known, *known ? ", " : "", architectures[i].name);
    return diag_input(diag, config_pos(at),
        "the architecture '%.60s' is not modelled; of model_type '%s' these are: %s", config_text(at), model_type,
        known);
}

enum status huggingface_architecture(
    int *head, struct config_node root, const char *model_type, struct arena *arena, struct diag *diag)
{
    struct config_node list = config_find(root, "architectures");
    if (!list.doc || config_kind(list) == CONFIG_NULL || (config_kind(list) == CONFIG_SEQUENCE && !config_count(list)))
        return STATUS_OK;
    if (config_kind(list) != CONFIG_SEQUENCE || config_count(list) != 1 ||
        config_kind(config_item(list, 0)) != CONFIG_SCALAR)
        return diag_input(diag, config_pos(list), "'architectures' names one class, as in [\"BertForMaskedLM\"]");
    struct config_node item = config_item(list, 0);
    for (int i = 0; i < N_ARCHITECTURES; i++)
        if (strcmp(architectures[i].name, config_text(item)) == 0 &&
            strcmp(architectures[i].model_type, model_type) == 0) {
            *head = architectures[i].head;
            return STATUS_OK;
        }
    return unknown(item, model_type, arena, diag);
}
