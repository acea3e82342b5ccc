#include "model/huggingface.h"

#include "model/model.h"

#include <string.h>

/* model_types of transformers by what keeps them from being read. resnet is that of transformers; ours is the family
 * convnet. */
static const struct {
    const char *what, *model_types[64]; /* up to NULL */
} unmodelled[] = {
    {"a mixture of experts", {"qwen3_next", "olmoe", "dbrx", "phimoe", "granitemoe", "jetmoe", "arctic", "minimax",
                                 "gpt_oss", "glm4_moe", "ernie4_5_moe", "deepseek", "kimi_k2", "llama4", "llama4_text",
                                 "grok-1", "switch_transformers", "nllb-moe"}},
    {"another decoder",
        {"qwen", "phi", "gpt_neo", "gpt_bigcode", "gptj", "mpt", "stablelm", "starcoder2", "codegen", "olmo", "olmo2",
            "cohere", "cohere2", "granite", "internlm", "internlm2", "internlm3", "baichuan", "chatglm", "glm", "glm4",
            "minicpm", "nemotron", "exaone", "exaone4", "helium", "smollm3", "ministral", "seed_oss", "ctrl",
            "openai-gpt", "transfo-xl", "xlnet", "xglm", "biogpt", "persimmon"}},
    {"a model of several modalities",
        {"gemma3", "gemma3n", "fuyu", "clip", "siglip", "blip", "blip-2", "llava", "llava_next", "mllama", "idefics",
            "idefics2", "idefics3", "mistral3", "pixtral", "paligemma", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"}},
    {"another encoder",
        {"roberta", "xlm-roberta", "xlm", "camembert", "albert", "distilbert", "electra", "deberta", "deberta-v2",
            "modernbert", "nomic_bert", "mobilebert", "roformer", "convbert", "squeezebert", "longformer", "big_bird",
            "funnel", "mpnet", "layoutlm", "esm", "bert-generation"}},
    {"another encoder-decoder", {"bart", "mbart", "mt5", "umt5", "longt5", "pegasus", "marian", "m2m_100", "blenderbot",
                                    "led", "prophetnet", "encoder-decoder", "t5gemma"}},
    {"a state-space or recurrent model",
        {"mamba", "mamba2", "falcon_mamba", "jamba", "zamba", "zamba2", "bamba", "recurrent_gemma", "rwkv"}},
    {"another model of images", {"deit", "beit", "swin", "swinv2", "dinov2", "vit_mae", "vit_msn", "convnext",
                                    "convnextv2", "resnet", "regnet", "efficientnet", "detr", "segformer"}},
    {"a model of speech", {"whisper", "wav2vec2", "hubert", "speecht5"}},
};

const char *huggingface_unmodelled(const char *model_type)
{
    for (size_t i = 0; i < sizeof unmodelled / sizeof *unmodelled; i++)
        for (const char *const *one = unmodelled[i].model_types; *one; one++)
            if (strcmp(*one, model_type) == 0)
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
    {"MixtralForCausalLM", "mixtral", 0},
    {"Qwen2ForCausalLM", "qwen2", 0},
    {"Qwen2MoeForCausalLM", "qwen2_moe", 0},
    {"Qwen3MoeForCausalLM", "qwen3_moe", 0},
    {"DeepseekV2ForCausalLM", "deepseek_v2", 0},
    {"DeepseekV3ForCausalLM", "deepseek_v3", 0},
    {"OPTForCausalLM", "opt", 0},
    {"BloomForCausalLM", "bloom", 0},
    {"GPTNeoXForCausalLM", "gpt_neox", 0},
    {"FalconForCausalLM", "falcon", 0},
    {"Qwen3ForCausalLM", "qwen3", 0},
    {"GemmaForCausalLM", "gemma", 0},
    {"Gemma2ForCausalLM", "gemma2", 0},
    {"Gemma3ForCausalLM", "gemma3_text", 0},
    {"Phi3ForCausalLM", "phi3", 0},
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
