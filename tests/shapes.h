/* Small models of each family, for tests: every kind of layer, tensor and tie that the large ones have. */
#ifndef FLOPCAST_TESTS_SHAPES_H
#define FLOPCAST_TESTS_SHAPES_H

#include "model/model.h"

__attribute__((unused)) static const struct model_shape small_gpt = {.name = "gpt",
    .family = MODEL_GPT,
    .d_model = 64,
    .d_ff = 256,
    .d_kv = 16,
    .n_heads = 4,
    .n_kv_heads = 4,
    .n_layers = 3,
    .vocab = 1000,
    .max_positions = 32,
    .tied_embeddings = true,
    .biases = true,
    .dropout = 0.1};
__attribute__((unused)) static const struct model_shape small_t5 = {.name = "t5",
    .family = MODEL_T5,
    .d_model = 64,
    .d_ff = 96,
    .d_kv = 32,
    .n_heads = 4,
    .n_kv_heads = 4,
    .n_layers = 3,
    .n_decoder_layers = 2,
    .vocab = 1000,
    .relative_buckets = 32,
    .tied_embeddings = true,
    .dropout = 0.1};
__attribute__((unused)) static const struct model_shape small_llama = {.name = "llama",
    .family = MODEL_LLAMA,
    .d_model = 64,
    .d_ff = 160,
    .d_kv = 16,
    .n_heads = 4,
    .n_kv_heads = 2,
    .n_layers = 3,
    .vocab = 1000,
    .gated_ffn = true};
__attribute__((unused)) static const struct model_shape small_bert = {.name = "bert",
    .family = MODEL_BERT,
    .d_model = 64,
    .d_ff = 256,
    .d_kv = 16,
    .n_heads = 4,
    .n_kv_heads = 4,
    .n_layers = 3,
    .vocab = 1000,
    .max_positions = 32,
    .token_types = 2,
    .head_share = 1,
    .tied_embeddings = true,
    .biases = true,
    .dropout = 0.1};
__attribute__((unused)) static const struct model_shape small_vit = {.name = "vit",
    .family = MODEL_VIT,
    .d_model = 64,
    .d_ff = 256,
    .d_kv = 16,
    .n_heads = 4,
    .n_kv_heads = 4,
    .n_layers = 3,
    .image_size = 16,
    .patch = 4,
    .classes = 10,
    .biases = true,
    .dropout = 0.1};
__attribute__((unused)) static const struct model_shape small_resnet = {.name = "resnet",
    .family = MODEL_CONVNET,
    .image_size = 64,
    .classes = 10,
    .conv = {.block = CONV_BOTTLENECK,
        .stem_width = 8,
        .stem_pool = true,
        .stages = {{2, 16, 8, 1}, {1, 32, 8, 2}, {2, 64, 16, 4}, {1, 128, 32, 1}}}};

__attribute__((unused)) static const struct model_shape *const small_shapes[MODEL_FAMILY_COUNT] = {
    [MODEL_T5] = &small_t5, [MODEL_GPT] = &small_gpt, [MODEL_LLAMA] = &small_llama, [MODEL_BERT] = &small_bert};

#endif
