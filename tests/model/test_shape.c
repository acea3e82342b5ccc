/* Model files: defaults, and the sentence for every kind of mistake. */
#include "config/config.h"
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define REST "name: x\nsource: y\nvocab: 100\nn_layers: 2\nd_ff: 32\nd_model: 16\nn_heads: 4\n"
#define LLAMA "family: llama\nname: x\nsource: y\nvocab: 100\nn_layers: 2\nd_ff: 32\n"
#define GPT "family: gpt\nname: x\nsource: y\nvocab: 100\nn_layers: 2\nd_ff: 32\n"
#define LLAMA4 "{\"model_type\": \"llama4_text\", \"num_hidden_layers\": 4,\n "
#define NAS                                                                                        \
    "{\"model_type\": \"nemotron-nas\", \"num_hidden_layers\": 1, \"num_attention_heads\": 4, "    \
    "\"hidden_size\": 64,\n "                                                                      \
    "\"block_configs\": "
#define NEMOTRON                                                                                   \
    "{\"model_type\": \"nemotron_h\", \"num_hidden_layers\": 4,\n \"hybrid_override_pattern\": "
#define BERT "family: bert\nname: x\nsource: y\nvocab: 100\nn_layers: 2\nd_ff: 32\n"
#define DHEN "family: dhen\nname: x\nsource: y\nn_layers: 2\nd_ff: 32\nd_model: 16\nn_heads: 4\n"
#define VIT "family: vit\nname: x\nsource: y\nn_layers: 2\nd_ff: 32\nd_model: 16\n"
#define CONVNET "family: convnet\nname: x\nsource: y\n"
#define STAGES(...)                                                                                \
    "stage1: {blocks: 1, width: 8}, stage2: {blocks: 1, width: " #__VA_ARGS__ "}, "                \
    "stage3: {blocks: 1, width: 32}, stage4: {blocks: 1, width: 64}"
#define T5 "family: t5\nname: x\nsource: y\nvocab: 100\nn_layers: 2\nd_ff: 32\n"

/* Short files leave sizes to defaults: a warning that other tests are not of. */
static void forget_sizes(struct diag *diag)
{
    char *at = strstr(diag->text, "m:1:1: warning: the file does not say "),
         *end = at ? strchr(at, '\n') : NULL;
    if (end)
        memmove(at, end + 1, strlen(end + 1) + 1);
    diag->used = strlen(diag->text);
}

static void defaults_follow_the_family(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model_shape shape;
    const char *text = T5 "d_model: 16\nn_heads: 4\n";
    assert_int_equal(model_parse(&shape, "m", text, strlen(text), &arena, &diag), STATUS_OK);
    assert_int_equal(shape.n_decoder_layers, 2);
    assert_int_equal(shape.d_kv, 4);
    assert_int_equal(shape.n_kv_heads, 4);
    assert_int_equal(shape.relative_buckets, 32);
    assert_true(shape.tied_embeddings && !shape.gated_ffn && !shape.biases);
    assert_true(shape.dropout > 0.09 && shape.dropout < 0.11);
    text = LLAMA "d_model: 16\nn_heads: 4\nn_kv_heads: 2\n";
    assert_int_equal(model_parse(&shape, "m", text, strlen(text), &arena, &diag), STATUS_OK);
    assert_int_equal(shape.n_decoder_layers, 0);
    assert_int_equal(shape.n_kv_heads, 2);
    assert_true(!shape.tied_embeddings && shape.gated_ffn && !shape.biases && !(shape.dropout > 0));
    arena_release(&arena);
}

static void config_json_defaults_are_those_of_transformers(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model_shape shape;
    /* T5Config(): 6 + 6 layers, d_model 512, 8 heads of 64, d_ff 2048, vocabulary 32128, ReLU,
     * tied, dropout 0.1. */
    const char *text = "{\"model_type\": \"t5\"}";
    assert_int_equal(model_parse(&shape, "c.json", text, strlen(text), &arena, &diag), STATUS_OK);
    assert_int_equal(shape.n_layers, 6);
    assert_int_equal(shape.n_decoder_layers, 6);
    assert_int_equal(shape.d_model, 512);
    assert_int_equal(shape.n_heads * shape.d_kv, 512);
    assert_int_equal(shape.d_ff, 2048);
    assert_int_equal(shape.vocab, 32128);
    assert_true(shape.tied_embeddings && !shape.gated_ffn && !shape.composed_gelu);
    assert_string_equal(shape.name, "c.json");
    /* GPT2Config(): n_inner None is 4 n_embd; activation gelu_new. */
    text = "{\"model_type\": \"gpt2\", \"n_embd\": 1600, \"n_head\": 25, \"n_inner\": null}";
    assert_int_equal(model_parse(&shape, "c.json", text, strlen(text), &arena, &diag), STATUS_OK);
    assert_int_equal(shape.d_ff, 6400);
    assert_int_equal(shape.d_kv, 64);
    assert_int_equal(shape.max_positions, 1024);
    assert_true(shape.composed_gelu && shape.biases && shape.tied_embeddings);
    /* MistralConfig(): 8 key heads when the key is absent, as many as heads when it is null. */
    text = "{\"model_type\": \"mistral\"}";
    assert_int_equal(model_parse(&shape, "c.json", text, strlen(text), &arena, &diag), STATUS_OK);
    assert_int_equal(shape.n_kv_heads, 8);
    text = "{\"model_type\": \"mistral\", \"num_key_value_heads\": null}";
    assert_int_equal(model_parse(&shape, "c.json", text, strlen(text), &arena, &diag), STATUS_OK);
    assert_int_equal(shape.n_kv_heads, 32);
    arena_release(&arena);
}

static void mistakes_are_reported_where_they_are(void **state)
{
    (void)state;
    const struct {
        const char *text, *place, *sentence;
    } cases[] = {
        {LLAMA "d_model: 16\nn_heads: 4\nn_kv_heads: 3\n",
            "m:9:13: error: ", "multiple of the number of key heads"},
        {LLAMA "d_model: 16\nn_heads: 3\n", "m:8:10: error: ", "3 heads do not divide d_model 16"},
        {LLAMA "d_model: 16\nn_heads: 4\nd_kv: 3\n", "m:9:7: error: ", "even head dimension"},
        {LLAMA "d_model: 16\nn_heads: 4\ngated_ffn: false\n",
            "m:9:12: error: ", "feed-forward layer is gated"},
        {LLAMA "d_model: 16\nn_heads: 4\nmax_positions: 5\n",
            "m:9:16: error: ", "no learned positions"},
        {LLAMA "d_model: 0\nn_heads: 4\n", "m:7:10: error: ", "0"},
        {LLAMA "d_model: -16\nn_heads: 4\n", "m:7:10: error: ", "-16"},
        {LLAMA "d_model: 99999999999\nn_heads: 4\n", "m:7:10: error: ", "99999999999"},
        {LLAMA "d_model: 99999999999999999999999\nn_heads: 4\n",
            "m:7:10: error: ", "99999999999999999999999"},
        {LLAMA "d_model: 16\n", "m:1:1: error: ", "'n_heads'"},
        {LLAMA "d_model: 16\nn_heads: 4\nheads: 4\n", "m:9:1: error: ", "unknown key 'heads'"},
        {"family: lama\n" REST, "m:1:9: error: ", "llama"},
        {REST, "m:1:1: error: ", "'family'"},
        {GPT "d_model: 16\nn_heads: 4\nd_kv: 8\n",
            "m:8:10: error: ", "heads x head dimension is d_model"},
        {GPT "d_model: 16\nn_heads: 4\nn_kv_heads: 2\n", "m:9:13: error: ", "as many key heads"},
        {GPT "d_model: 16\nn_heads: 4\ngated_ffn: true\n",
            "m:9:12: error: ", "no gated feed-forward"},
        {GPT "d_model: 16\nn_heads: 4\nn_decoder_layers: 2\n", "m:9:19: error: ", "one stack"},
        {DHEN, "m:1:1: error: ", "has no 'dhen'"},
        {DHEN "dhen: {features: 4, inputs: 4, cross: true}\n", "m:8:7: error: ", "'tables'"},
        {DHEN "dhen: {features: 4, inputs: 4, tables: {params: 1e9}}\n",
            "m:8:7: error: ", "at least one module"},
        {DHEN "dhen: {features: 4, inputs: 4, dot: true, tables: {params: 1e9, format: fp8}}\n",
            "m:8:73: error: ", "fp16, fp32"},
        {DHEN "vocab: 9\ndhen: {features: 4, inputs: 4, dot: true, tables: {params: 1e9}}\n",
            "m:8:8: error: ", "leave it out"},
        {GPT "d_model: 16\nn_heads: 4\ndhen: {features: 4, inputs: 4, dot: true, tables: {params: "
             "1e9}}\n",
            "m:9:7: error: ", "family 'gpt' has no 'dhen'"},
        {BERT "d_model: 16\nn_heads: 4\n", "m:1:1: error: ", "learned positions"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\ntied_embeddings: false\n",
            "m:10:18: error: ", "uses the word embedding"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\ngated_ffn: true\n",
            "m:10:12: error: ", "no gated"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\nhead: words\n",
            "m:10:7: error: ", "masked_lm"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\nhead: none\nhead_share: 0.5\n",
            "m:11:13: error: ", "a head that predicts words"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\nhead: classification\n",
            "m:1:1: error: ", "needs 'classes'"},
        {GPT "d_model: 16\nn_heads: 4\nhead: none\n",
            "m:9:7: error: ", "family 'gpt' has no 'head'"},
        {GPT "d_model: 16\nn_heads: 4\nsliding_window: 8\n",
            "m:9:17: error: ", "has no 'sliding_window'"},
        {LLAMA "d_model: 16\nn_heads: 4\nmax_window_layers: 1\n",
            "m:9:20: error: ", "which is not given"},
        {LLAMA "d_model: 16\nn_heads: 4\nfull_attention_every: 2\n",
            "m:9:23: error: ", "which is not given"},
        {GPT "d_model: 16\nn_heads: 4\nqk_norm: true\n",
            "m:9:10: error: ", "family 'gpt' has no 'qk_norm'"},
        {"{\"model_type\": \"gemma2\", \"num_hidden_layers\": 2,\n \"layer_types\": "
         "[\"full_attention\", \"full_attention\"]}",
            "m:2:18: error: ", "in every 2-th block"},
        {"{\"model_type\": \"phi3\", \"resid_pdrop\": 0.1}",
            "m:1:39: error: ", "modelled as 0 only"},
        {"{\"model_type\": \"gemma2\",\n \"hidden_activation\": \"relu\"}",
            "m:2:23: error: ", "gelu_pytorch_tanh"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\nhead_share: 2\n",
            "m:10:13: error: ", "2"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\nn_kv_heads: 2\n",
            "m:10:13: error: ", "as many key heads"},
        {"{\"model_type\": \"bert\",\n \"hidden_dropout_prob\": 0.2}",
            "m:1:1: error: ", "attention_probs_dropout_prob"},
        {"{\"model_type\": \"bert\",\n \"hidden_act\": \"relu\"}", "m:2:16: error: ", "gelu"},
        {"{\"architectures\": [\"LlamaForCausalLM\"]}",
            "m:1:1: error: ", "without the key 'model_type' (t5, gpt2"},
        {"{\"model_type\": \"llama4\"}", "m:1:16: error: ", "'text_config', which is not there"},
        {LLAMA4 "\"no_rope_layers\": [1, 1, 0, 0]}", "m:2:27: error: ", "0 in every 4-th block"},
        {LLAMA4 "\"no_rope_layers\": [1, 1, 1]}", "m:2:20: error: ", "for each of the 4 layers"},
        {LLAMA4 "\"moe_layers\": [0, 1, 2]}", "m:2:16: error: ", "experts in every 1-th block"},
        {LLAMA4 "\"moe_layers\": [0, 1, 2, 3, 4]}",
            "m:2:29: error: ", "blocks that have no experts"},
        {"{\"hidden_size\": 64}", "m:1:1: error: ", "without the key 'model_type'"},
        {"{\"model_type\": \"bart\"}",
            "m:1:16: error: ", "'bart', another encoder-decoder, is not modelled yet"},
        {"{\"model_type\": \"bert\",\n \"architectures\": [\"BertForQuestionAnswering\"]}",
            "m:2:20: error: ",
            "'BertForQuestionAnswering' is not modelled; of model_type 'bert' these are: "
            "BertForPreTraining, BertForMaskedLM, BertForSequenceClassification, BertModel\n"},
        {"{\"model_type\": \"mistral\",\n \"architectures\": [\"LlamaForCausalLM\"]}",
            "m:2:20: error: ", "of model_type 'mistral' these are: MistralForCausalLM\n"},
        {"{\"model_type\": \"gpt2\",\n \"architectures\": [\"GPT2LMHeadModel\", \"GPT2Model\"]}",
            "m:2:19: error: ", "names one class"},
        {"{\"model_type\": \"gpt2\",\n \"architectures\": \"GPT2LMHeadModel\"}",
            "m:2:19: error: ", "names one class"},
        {"{\"model_type\": \"llama\",\n \"num_local_experts\": 8}", "m:2:23: error: ",
            "num_local_experts: a mixture of experts is modelled for other model_types"},
        {"{\"model_type\": \"mixtral\",\n \"router_jitter_noise\": 0.1}",
            "m:2:25: error: ", "is not modelled"},
        {"{\"model_type\": \"mixtral\",\n \"output_router_logits\": true}",
            "m:2:26: error: ", "load-balancing loss"},
        {"{\"model_type\": \"mixtral\",\n \"num_experts_per_tok\": 9}",
            "m:1:1: error: ", "more experts than there are"},
        {"{\"model_type\": \"qwen2_moe\",\n \"mlp_only_layers\": [1]}",
            "m:2:22: error: ", "the first blocks"},
        {"{\"model_type\": \"qwen2_moe\",\n \"decoder_sparse_step\": 25}",
            "m:1:1: error: ", "no block is left"},
        {"{\"model_type\": \"qwen3_moe\",\n \"use_sliding_window\": true}",
            "m:2:24: error: ", "windows of Qwen3-MoE"},
        {"{\"model_type\": \"deepseek_v3\",\n \"topk_method\": \"greedy\"}",
            "m:2:17: error: ", "noaux_tc"},
        {"{\"model_type\": \"deepseek_v3\",\n \"scoring_func\": \"softmax\"}",
            "m:2:18: error: ", "sigmoid"},
        {"{\"model_type\": \"deepseek_v3\",\n \"moe_layer_freq\": 2}",
            "m:2:20: error: ", "every n-th block"},
        {"{\"model_type\": \"deepseek_v2\",\n \"first_k_dense_replace\": 0}",
            "m:1:1: error: ", "needs the experts that"},
        {"{\"model_type\": \"deepseek_v3\",\n \"num_key_value_heads\": 8}",
            "m:2:25: error: ", "as many key heads"},
        {"{\"model_type\": \"deepseek_v3\",\n \"v_head_dim\": null}",
            "m:2:16: error: ", "v_head_dim"},
        {LLAMA "d_model: 16\nn_heads: 4\nmoe: {experts: 4, d_ff: 8}\n",
            "m:9:6: error: ", "experts_per_token"},
        {LLAMA "d_model: 16\nn_heads: 4\nmoe: {experts: 4, experts_per_token: 2, d_ff: 8, groups: "
               "3}\n",
            "m:9:6: error: ", "multiple of their groups"},
        {LLAMA "d_model: 16\nn_heads: 4\ngelu_gate: true\nmoe: {experts: 4, experts_per_token: 2, "
               "d_ff: 8}\n",
            "m:10:6: error: ", "SwiGLU"},
        {LLAMA "d_model: 16\nn_heads: 4\nmla: {kv_lora_rank: 4, qk_nope_head_dim: 5, "
               "qk_rope_head_dim: 3, v_head_dim: 4}\n",
            "m:9:6: error: ", "even qk_rope_head_dim"},
        {GPT "d_model: 16\nn_heads: 4\nmoe: {experts: 4, experts_per_token: 2, d_ff: 8}\n",
            "m:9:6: error: ", "family 'gpt' has no 'moe'"},
        {GPT "d_model: 16\nn_heads: 4\nmtp_layers: 1\n",
            "m:9:13: error: ", "family 'gpt' has no 'mtp_layers'"},
        {NEMOTRON "\"M-*X\"}", "m:2:29: error: ", "block 4 of the pattern is 'X'; modelled are M"},
        {NEMOTRON "\"M-*E\"}",
            "m:2:29: error: ", "blocks 'E' of a pattern need a mixture of experts"},
        {NEMOTRON "\"M-*-\",\n \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 8,\n "
                  "\"n_routed_experts\": 4}",
            "m:4:22: error: ", "no block of the pattern is 'E'"},
        {NEMOTRON "\"M-*E\", \"moe_intermediate_size\": 8,\n \"n_routed_experts\": 4}",
            "m:3:22: error: ", "the experts that a token goes through"},
        {NEMOTRON "\"M-*-M\"}", "m:2:29: error: ", "the pattern has 5 blocks, and the model 4"},
        {NEMOTRON "null}", "m:2:29: error: ", "hybrid_override_pattern"},
        {LLAMA "d_model: 16\nn_heads: 4\npattern: 'M*'\n",
            "m:9:10: error: ", "'M' of a pattern need a mixer"},
        {LLAMA "d_model: 16\nn_heads: 4\npattern: '*-'\nmtp_layers: 1\n",
            "m:9:10: error: ", "without norms behind sub-layers and multi-token prediction"},
        {LLAMA "d_model: 16\nn_heads: 4\npattern: '*E'\nmoe: {experts: 4, experts_per_token: 2, "
               "d_ff: 8, every: 2}\n",
            "m:10:6: error: ", "leave dense_layers and every out"},
        {LLAMA "d_model: 16\nn_heads: 4\ngated_ffn: false\n", "m:9:12: error: ", "squared_relu"},
        {LLAMA "d_model: 16\nn_heads: 4\nsquared_relu: true\n", "m:1:1: error: ", "squared_relu"},
        {GPT "d_model: 16\nn_heads: 4\npattern: '*-'\n",
            "m:9:10: error: ", "family 'gpt' has no 'pattern'"},
        {"{\"model_type\": \"bert\",\n \"is_decoder\": true}",
            "m:2:16: error: ", "causal mask is not modelled"},
        {"{\"model_type\": \"bert\",\n \"position_embedding_type\": \"relative_key\"}",
            "m:2:29: error: ", "'absolute' is"},
        {"{\"model_type\": \"mistral\",\n \"sliding_window\": 0}", "m:2:20: error: ", "0"},
        {"{\"model_type\": \"qwen2\", \"num_hidden_layers\": 2,\n \"layer_types\": "
         "[\"sliding_attention\", \"full_attention\"]}",
            "m:2:39: error: ", "blocks of 'full_attention', then such of 'sliding_attention'"},
        {"{\"model_type\": \"qwen2\", \"num_hidden_layers\": 2,\n \"layer_types\": "
         "[\"full_attention\"]}",
            "m:2:17: error: ", "one type for each of the 2 layers"},
        {"{\"model_type\": \"minimax_m2\",\n \"qk_norm_type\": \"per_head\"}",
            "m:2:18: error: ", "per_layer"},
        {"{\"model_type\": \"mimo_v2_flash\", \"num_hidden_layers\": 2,\n "
         "\"hybrid_layer_pattern\": [0, 2]}",
            "m:2:30: error: ", "'2' is not modelled"},
        {"{\"model_type\": \"mimo_v2_flash\", \"num_hidden_layers\": 2,\n \"moe_layer_freq\": [1, "
         "0]}",
            "m:2:24: error: ", "a dense layer behind one with experts"},
        {"{\"model_type\": \"gemma4_text\",\n \"num_kv_shared_layers\": 20}",
            "m:2:26: error: ", "share keys and values"},
        {"{\"model_type\": \"gemma4_text\",\n \"hidden_size_per_layer_input\": 256}",
            "m:2:33: error: ", "embeddings of each layer"},
        {"{\"model_type\": \"llama\",\n \"rope_parameters\": {\"partial_rotary_factor\": 0.5}}",
            "m:2:47: error: ", "a part of each head"},
        {"{\"model_type\": \"glm_moe_dsa\", \"num_hidden_layers\": 2,\n \"indexer_types\": "
         "[\"full\", \"shared\"]}",
            "m:2:28: error: ", "'shared' is not modelled; 'full' is"},
        {"{\"model_type\": \"deepseek_v4\", \"num_hidden_layers\": 2,\n \"compress_ratios\": [0, "
         "8]}",
            "m:2:25: error: ", "'8' is not modelled"},
        {"{\"model_type\": \"deepseek_v4\", \"num_hidden_layers\": 3,\n \"compress_ratios\": [0, "
         "4]}",
            "m:1:1: error: ", "a character for each block"},
        {NAS "[{\"attention\": {\"no_op\": true}}]}",
            "m:2:20: error: ", "has the keys 'attention' and 'ffn'"},
        {NAS "[{\"attention\": {\"no_op\": true}, \"ffn\": {\"no_op\": true}}]}",
            "m:2:19: error: ", "leave no attention"},
        {NAS "[{\"attention\": {\"replace_with_linear\": true}, \"ffn\": {\"no_op\": true}}]}",
            "m:2:58: error: ", "replace_with_linear is not modelled"},
        {NAS "[{\"attention\": {\"n_heads_in_group\": 3}, \"ffn\": {\"no_op\": true}}]}",
            "m:2:55: error: ", "3 does not divide num_attention_heads, 4"},
        {LLAMA "d_model: 16\nn_heads: 4\nblocks: '2x8 4x'\n",
            "m:9:9: error: ", "a list of key heads and widths"},
        {LLAMA "d_model: 16\nn_heads: 4\nblocks: '2x8'\n",
            "m:9:9: error: ", "all blocks of the model"},
        {LLAMA "d_model: 16\nn_heads: 4\nfull: {n_kv_heads: 2}\n",
            "m:9:7: error: ", "neither is given"},
        {LLAMA "d_model: 16\nn_heads: 4\nsliding_window: 4\nattention_pattern: 'fx'\n",
            "m:10:20: error: ", "a character for each block"},
        {T5 "d_model: 16\nn_heads: 4\nbiases: true\n", "m:9:9: error: ", "no biases"},
        {T5 "d_model: 16\nn_heads: 4\nrelative_buckets: 0\n",
            "m:9:19: error: ", "relative position buckets"},
        {T5 "d_model: 16\nn_heads: 4\nn_kv_heads: 2\n", "m:9:13: error: ", "as many key heads"},
        {T5 "d_model: 16\nn_heads: 4\nn_decoder_layers: 0\n",
            "m:9:19: error: ", "at least one layer"},
        {T5 "d_model: 16\nn_heads: 4\nmax_positions: 8\n",
            "m:9:16: error: ", "no learned positions"},
        {GPT "d_model: 16\nn_heads: 4\nrelative_buckets: 8\n",
            "m:9:19: error: ", "no relative position"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\nd_kv: 8\n",
            "m:8:10: error: ", "heads x head dimension"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\nn_decoder_layers: 2\n",
            "m:10:19: error: ", "one stack"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\ntoken_types: 0\n",
            "m:10:14: error: ", "0"},
        {BERT "d_model: 16\nn_heads: 4\nmax_positions: 8\nbiases: false\n",
            "m:10:9: error: ", "have biases"},
        {LLAMA "d_model: 16\nn_heads: 4\nn_decoder_layers: 2\n", "m:9:19: error: ", "one stack"},
        {LLAMA "d_model: 16\nn_heads: 4\nrelative_buckets: 8\n",
            "m:9:19: error: ", "no relative position"},
        {LLAMA "d_model: 16\nn_heads: 4\ncomposed_gelu: true\n", "m:9:16: error: ", "no GELU"},
        {VIT "n_heads: 4\nd_kv: 8\n", "m:7:10: error: ", "heads x head dimension"},
        {VIT "n_heads: 4\nn_kv_heads: 2\n", "m:7:10: error: ", "for keys too"},
        {VIT "n_heads: 4\npatch: 15\n", "m:8:8: error: ", "patches divide"},
        {VIT "n_heads: 4\nvocab: 9\n", "m:8:8: error: ", "no 'vocab'"},
        {DHEN "d_kv: 8\ndhen: {features: 4, inputs: 4, dot: true, tables: {params: 1e9}}\n",
            "m:7:10: error: ", "heads x head dimension"},
        {CONVNET "conv: {block: basic, squeeze: 0.5, " STAGES(16) "}\n",
            "m:4:7: error: ", "belongs to bottleneck"},
        {CONVNET "conv: {block: basic, stage1: {blocks: 1, width: 8}}\n",
            "m:4:7: error: ", "stage1 to stage4"},
        {CONVNET "conv: {block: basic, " STAGES(8) "}\n",
            "m:4:7: error: ", "wider than the one before"},
        {CONVNET "conv: {block: bottleneck, " STAGES(16, inner : 8, groups : 3) "}\n",
            "m:4:7: error: ", "divide"},
        /* 4 x 4096 layers of 8 d^2 and more, with d = 2^20: 3e16 parameters, which is too many
         * though each field is in range. */
        {"family: llama\nname: x\nsource: y\nvocab: 100\nn_layers: 4096\nd_ff: 1000\nd_model: "
         "1048576\nn_heads: 64\n",
            "m:7:10: error: ", "parameters; a model has at most 1e+15"},
        {"{\"model_type\": \"t6\"}",
            "m:1:16: error: ", "'t6' is not modelled; modelled are t5, gpt2, opt"},
        {"{\"model_type\": \"llama\", \"hidden_size\": null}", "m:1:40: error: ", "hidden_size"},
        {"{\"model_type\": \"llama\",\n \"num_attention_heads\": 0}", "m:2:25: error: ", "0"},
        {"{\"model_type\": \"llama\",\n \"num_key_value_heads\": 5}",
            "m:2:25: error: ", "multiple of the number of key heads"},
        {"{\"model_type\": \"llama\",\n \"attention_bias\": true}",
            "m:2:20: error: ", "not modelled"},
        {"{\"model_type\": \"llama\",\n \"hidden_act\": \"relu\"}", "m:2:16: error: ", "silu"},
        {"{\"model_type\": \"gpt2\",\n \"attn_pdrop\": 0.2}",
            "m:1:1: error: ", "attn_pdrop differ"},
        {"{\"model_type\": \"gpt2\",\n \"n_embd\": 770}",
            "m:1:1: error: ", "12 heads do not divide d_model 770"},
    };
    struct arena arena = ARENA_INIT;
    static struct diag diag;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_shape shape;
        diag = DIAG_INIT;
        if (model_parse(&shape, "m", cases[i].text, strlen(cases[i].text), &arena, &diag) !=
            STATUS_INPUT)
            fail_msg("accepted: %s", cases[i].text);
        forget_sizes(&diag);
        if (strncmp(diag.text, cases[i].place, strlen(cases[i].place)) != 0 ||
            !strstr(diag.text, cases[i].sentence))
            fail_msg("%s\ngave %swanted %s ... %s", cases[i].text, diag.text, cases[i].place,
                cases[i].sentence);
        assert_int_equal(diag.n_errors, 1);
    }
    arena_release(&arena);
}

/* Each of these would be read as a family of another size: gemma3, of several modalities, as gemma.
 */
static void a_family_that_is_not_modelled_is_never_taken_for_another(void **state)
{
    (void)state;
    const char *const names[] = {"deepseek", "qwen2_5_vl", "falcon_mamba", "gemma3", "phi", "gptj",
        "gpt_neo", "roberta", "mt5", "mllama", "mistral3", "Llama", "llama5"};
    struct arena arena = ARENA_INIT;
    static struct diag diag;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model_shape shape;
        const char *text = arena_printf(&arena, "{\"model_type\": \"%s\"}", names[i]);
        diag = DIAG_INIT;
        assert_int_equal(model_parse(&shape, "m", text, strlen(text), &arena, &diag), STATUS_INPUT);
        if (strstr(diag.text, "did you mean") || !strstr(diag.text, "not modelled") ||
            !strstr(diag.text, names[i]))
            fail_msg("%s", diag.text);
    }
    arena_release(&arena);
}

/* What derives from others (d_ff of GPT-2, which may be absent) and what is null is no size that a
 * default gives. */
static void sizes_that_a_file_leaves_to_defaults_are_named(void **state)
{
    (void)state;
    const struct {
        const char *text, *warning;
    } cases[] = {
        {"{\"model_type\": \"llama\", \"hidden_size\": 2048, \"num_attention_heads\": 16}",
            "m:1:1: warning: the file does not say num_hidden_layers 32, intermediate_size 11008, "
            "vocab_size 32000: transformers' defaults are taken\n"},
        {"{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, "
         "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 256}",
            ""},
        {"{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, "
         "\"vocab_size\": 256, \"n_positions\": 128}",
            ""},
        {"{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4}",
            "m:1:1: warning: the file does not say vocab_size 50257: transformers' defaults are "
            "taken\n"},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_shape shape;
        struct diag diag = DIAG_INIT;
        model_parse(&shape, "m", cases[i].text, strlen(cases[i].text), &arena, &diag);
        assert_string_equal(diag.text, cases[i].warning);
    }
    arena_release(&arena);
}

static void keys_that_nothing_reads_are_warned_of(void **state)
{
    (void)state;
    const struct {
        const char *text, *warning;
    } cases[] = {
        {"{\"model_type\": \"llama\", \"rope_theta\": 5e5, \"use_cache\": true, \"pad_token_id\": "
         "null}",
            ""},
        {"{\"model_type\": \"llama\", \"num_experts\": null, \"partial_rotary_factor\": 1.0}", ""},
        {"{\"model_type\": \"llama\",\n \"clip_qkv\": 8, \"logit_scale\": 0.5}",
            "m:2:2: warning: 2 keys are not known here and ignored: clip_qkv, logit_scale; if they "
            "change the computation"},
        /* What a name or a value takes away. */
        {"{\"model_type\": \"llama\", \"num_global_heads\": null, \"n_latents\": 0, \"moe_gate\": "
         "false, \"ffn_ratios\": [], \"hidden_multiplier\": 1.0, \"extra_ratio\": 1, "
         "\"image_size\": 448, \"vision_config\": {\"depth\": 4}, \"boi_token_id\": 5, "
         "\"rope_type\": \"yarn\", \"pad_vocab_size_multiple\": 64, \"mtp_num_layers\": 1}",
            ""},
        {"{\"model_type\": \"llama\",\n \"sliding_window\": 4096}",
            "m:2:20: warning: sliding_window is ignored"},
        {"{\"model_type\": \"llama\",\n \"quantization_config\": {\"bits\": 4}}",
            "m:2:25: warning: quantization_config is ignored"},
        {"{\"model_type\": \"llama\",\n \"auto_map\": {}}", "m:2:14: warning: auto_map"},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_shape shape;
        struct diag diag = DIAG_INIT;
        assert_int_equal(
            model_parse(&shape, "m", cases[i].text, strlen(cases[i].text), &arena, &diag),
            STATUS_OK);
        forget_sizes(&diag);
        if (strncmp(diag.text, cases[i].warning, strlen(cases[i].warning)) != 0 ||
            (!*cases[i].warning && *diag.text))
            fail_msg("%s\ngave %swanted %s", cases[i].text, diag.text, cases[i].warning);
    }
    arena_release(&arena);
}

static void windows_are_those_of_transformers(void **state)
{
    (void)state;
    /* MistralConfig(): 4096 where the key is absent. Qwen2Config(): none without
     * use_sliding_window; blocks before max_window_layers (28 by default, of 32) see all. */
    const struct {
        const char *text;
        int64_t window, whole;
    } cases[] = {
        {"{\"model_type\": \"mistral\"}", 4096, 0},
        {"{\"model_type\": \"mistral\", \"sliding_window\": null}", 0, 0},
        {"{\"model_type\": \"mistral\", \"sliding_window\": 1024}", 1024, 0},
        {"{\"model_type\": \"qwen2\"}", 0, 0},
        {"{\"model_type\": \"qwen2\", \"sliding_window\": 131072, \"use_sliding_window\": false}",
            0, 0},
        {"{\"model_type\": \"qwen2\", \"use_sliding_window\": true}", 4096, 28},
        {"{\"model_type\": \"qwen2\", \"use_sliding_window\": true, \"max_window_layers\": 0}",
            4096, 0},
        {"{\"model_type\": \"qwen2\", \"use_sliding_window\": true, \"num_hidden_layers\": 24}", 0,
            0},
        {"{\"model_type\": \"qwen2\", \"use_sliding_window\": true, \"num_hidden_layers\": 3, "
         "\"sliding_window\": 8, \"layer_types\": [\"full_attention\", \"sliding_attention\", "
         "\"sliding_attention\"]}",
            8, 1},
        {"{\"model_type\": \"qwen2\", \"num_hidden_layers\": 1, \"layer_types\": "
         "[\"full_attention\"]}",
            0, 0},
        {"{\"model_type\": \"qwen3\"}", 0, 0},
        {"{\"model_type\": \"phi3\", \"sliding_window\": 2047}", 2047, 0},
        {"{\"model_type\": \"phi3\"}", 0, 0},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_shape shape;
        struct diag diag = DIAG_INIT;
        model_parse(&shape, "m", cases[i].text, strlen(cases[i].text), &arena, &diag);
        forget_sizes(&diag);
        assert_string_equal(diag.text, "");
        assert_int_equal(shape.sliding_window, cases[i].window);
        assert_int_equal(shape.max_window_layers, cases[i].whole);
        assert_int_equal(model_window(&shape, (int)cases[i].whole),
            0); /* the root's or the last whole block's */
        assert_int_equal(model_window(&shape, (int)cases[i].whole + 1), cases[i].window);
    }
    arena_release(&arena);
}

/* Gemma2Config: even blocks, counted from 0, have the window. Gemma3TextConfig: all but every
 * sixth. */
static void every_nth_block_of_gemma_sees_all(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t windows[6];
    } cases[] = {
        {"{\"model_type\": \"gemma\"}", {0, 0, 0, 0, 0, 0}},
        {"{\"model_type\": \"gemma2\"}", {4096, 0, 4096, 0, 4096, 0}},
        {"{\"model_type\": \"gemma2\", \"num_hidden_layers\": 2, \"layer_types\": "
         "[\"sliding_attention\", \"full_attention\"], \"sliding_window\": 7}",
            {7, 0, 7, 0, 7, 0}},
        {"{\"model_type\": \"gemma3_text\", \"sliding_window\": 512}",
            {512, 512, 512, 512, 512, 0}},
        {"{\"model_type\": \"gemma3_text\", \"sliding_window_pattern\": 3}",
            {4096, 4096, 0, 4096, 4096, 0}},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_shape shape;
        struct diag diag = DIAG_INIT;
        model_parse(&shape, "m", cases[i].text, strlen(cases[i].text), &arena, &diag);
        forget_sizes(&diag);
        assert_string_equal(diag.text, "");
        for (int block = 0; block < 6; block++)
            assert_int_equal(model_window(&shape, block + 1), cases[i].windows[block]);
    }
    arena_release(&arena);
}

/* What a file says of the computation and no type reads, by the key's name or by a list of one
 * entry a layer; those of Nemotron 3 Super and of MiniMax M2 among them. A model without would be
 * another one. */
static void keys_that_say_the_computation_are_not_dropped(void **state)
{
    (void)state;
    static const char *const keys[] = {"\"moe_latent_size\": 1024", "\"num_memory_heads\": 4",
        "\"n_latents\": 2", "\"swa_head_dim\": 192", "\"o_lora_rank\": 1024",
        "\"qk_norm_type\": \"per_layer\"", "\"layer_types\": [\"a\", \"b\"]",
        "\"hybrid_layer_pattern\": \"MM*\"", "\"ffn_multiplier\": 2.5", "\"sparse_freq\": 4",
        "\"linear_attn_config\": {\"head_dim\": 128}", "\"which\": [0, 1, 1]",
        "\"resid_dropout\": 0.1", "\"use_qk_norm\": true", "\"lm_head_bias\": true",
        "\"moe_layers\": \"3,4\"", "\"d_state\": 16", "\"compress_ratios\": [4, 128]"};
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct model_shape shape;
        struct diag diag = DIAG_INIT;
        const char *text = arena_printf(
            &arena, "{\"model_type\": \"llama\", \"num_hidden_layers\": 3,\n%s}", keys[i]);
        int name = (int)strcspn(keys[i] + 1, "\"");
        if (model_parse(&shape, "m", text, strlen(text), &arena, &diag) != STATUS_INPUT ||
            diag.n_errors != 1 ||
            !strstr(diag.text, arena_printf(&arena, "error: %.*s", name, keys[i] + 1)) ||
            !strstr(diag.text, "says what the model computes; --force"))
            fail_msg("%s\n%s", text, diag.text);
    }
    arena_release(&arena);
}

/* layers_block_type stands for the pattern; both say the same. */
static void layers_by_their_kinds_are_a_pattern(void **state)
{
    (void)state;
    static const char types[] =
        "\"model_type\": \"nemotron_h\", \"n_routed_experts\": 8, \"num_experts_per_tok\": 2, "
        "\"moe_intermediate_size\": 64, \"n_shared_experts\": 1,\n\"layers_block_type\": "
        "[\"mamba\", \"moe\", \"attention\", \"mlp\"]";
    const struct {
        const char *more, *error; /* NULL: none */
    } cases[] = {{"", NULL}, {", \"num_hidden_layers\": 4", NULL},
        {", \"hybrid_override_pattern\": \"ME*-\"", NULL},
        {", \"num_hidden_layers\": 5", "the pattern has 4 blocks, and the model 5"},
        {", \"hybrid_override_pattern\": \"MM*-\"",
            "2:22: error: layers_block_type says ME*-, not what hybrid_override_pattern says"}};
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_shape shape;
        struct diag diag = DIAG_INIT;
        const char *text = arena_printf(&arena, "{%s%s}", types, cases[i].more);
        enum status status = model_parse(&shape, "m", text, strlen(text), &arena, &diag);
        if (cases[i].error ? !strstr(diag.text, cases[i].error)
                           : status || strcmp(shape.pattern, "ME*-") != 0 || shape.n_layers != 4)
            fail_msg("%s\n%s", text, diag.text);
    }
    arena_release(&arena);
}

/* The file of types with one more entry, in another folder: no code knows the type. */
static void a_new_decoder_is_an_entry_of_the_file_of_types(void **state)
{
    (void)state;
    static const char entry[] =
        "types:\n"
        "  thirdllama:\n"
        "    what: a ThirdLlama config.json\n"
        "    classes: [ThirdLlamaForCausalLM]\n"
        "    keys: [decoder, silu, {width: d_model, ff: d_ff, heads: n_heads, depth: n_layers}]\n"
        "    shape: {family: llama, rotary_share: 1, gated_ffn: true, vocab: 100, qk_norm: true}\n";
    const char *text =
        "{\"model_type\": \"thirdllama\", \"architectures\": [\"ThirdLlamaForCausalLM\"],\n"
        " \"width\": 16, \"ff\": 24, \"heads\": 4, \"num_key_value_heads\": 2, \"depth\": 3}";
    const char *wrong =
        "{\"model_type\": \"thirdllama\",\n \"width\": 15, \"ff\": 24, \"heads\": 4, \"depth\": 3}";
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model_shape shape;
    struct model model;
    char folder[] = "/tmp/flopcast types XXXXXX", *types = NULL;
    size_t n = 0;
    assert_non_null(mkdtemp(folder));
    const char *scenarios = arena_printf(&arena, "%s/scenarios", folder);
    const char *below = arena_printf(&arena, "%s/huggingface", scenarios);
    const char *file = arena_printf(&arena, "%s/types.yaml", below);
    assert_int_equal(config_read_file(&types, &n, FILES_ANY,
                         FLOPCAST_SOURCE_DIR "/scenarios/huggingface/types.yaml", &diag),
        STATUS_OK);
    assert_true(mkdir(scenarios, 0700) == 0 && mkdir(below, 0700) == 0);
    const char *at = strstr(types, "\ntypes:\n") + 1;
    FILE *out = fopen(file, "w");
    const char *rest = at + strlen("types:\n");
    fprintf(out, "%.*s%s%.*s", (int)(at - types), types, entry, (int)(n - (size_t)(rest - types)),
        rest);
    fclose(out);
    setenv("FLOPCAST_DATA", folder, 1);
    enum status status = model_parse(&shape, "m", text, strlen(text), &arena, &diag);
    forget_sizes(&diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(model_parse(&shape, "m", wrong, strlen(wrong), &arena, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "m:2:34: error: 4 heads do not divide d_model 15"));
    diag = DIAG_INIT;
    model_parse(&shape, "m", text, strlen(text), &arena, &diag);
    unsetenv("FLOPCAST_DATA");
    assert_true(
        remove(file) == 0 && rmdir(below) == 0 && rmdir(scenarios) == 0 && rmdir(folder) == 0);
    model_build(&model, &shape, &arena);
    /* 2 V d + d, and of a block d (2 n + 2 g) d_head + 3 d f + 2 d + 2 d_head. */
    assert_int_equal(
        model.params, 2 * 100 * 16 + 16 + 3 * (16 * (8 + 4) * 4 + 3 * 16 * 24 + 2 * 16 + 2 * 4));
    assert_int_equal(model_parse(&shape, "m", text, strlen(text), &arena, &diag), STATUS_INPUT);
    free(types);
    arena_release(&arena);
}

static void several_mistakes_are_reported_at_once(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model_shape shape;
    const char *text = "{\"model_type\": \"llama\", \"hidden_size\": -1, \"vocab_size\": 0}";
    assert_int_equal(model_parse(&shape, "m", text, strlen(text), &arena, &diag), STATUS_INPUT);
    assert_int_equal(diag.n_errors, 2);
    arena_release(&arena);
}

static void a_missing_file_is_a_mistake_of_the_input(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model_shape shape;
    assert_int_equal(model_load(&shape, "/nowhere/model.yaml", false, &arena, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "/nowhere/model.yaml"));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_follow_the_family),
        cmocka_unit_test(config_json_defaults_are_those_of_transformers),
        cmocka_unit_test(mistakes_are_reported_where_they_are),
        cmocka_unit_test(a_family_that_is_not_modelled_is_never_taken_for_another),
        cmocka_unit_test(sizes_that_a_file_leaves_to_defaults_are_named),
        cmocka_unit_test(keys_that_say_the_computation_are_not_dropped),
        cmocka_unit_test(layers_by_their_kinds_are_a_pattern),
        cmocka_unit_test(keys_that_nothing_reads_are_warned_of),
        cmocka_unit_test(windows_are_those_of_transformers),
        cmocka_unit_test(every_nth_block_of_gemma_sees_all),
        cmocka_unit_test(a_new_decoder_is_an_entry_of_the_file_of_types),
        cmocka_unit_test(several_mistakes_are_reported_at_once),
        cmocka_unit_test(a_missing_file_is_a_mistake_of_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
