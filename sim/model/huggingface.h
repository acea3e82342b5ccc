/* What surrounds the keys of a Hugging Face config.json that give the shape (model/huggingface.c): its architecture,
 * the model types that are not modelled yet, and the keys that nothing reads. */
#ifndef FLOPCAST_MODEL_HUGGINGFACE_H
#define FLOPCAST_MODEL_HUGGINGFACE_H

#include "config/config.h"

#include <stdbool.h>

/* What sort of model a model_type of transformers is that is not modelled yet ("mixture of experts"); NULL: not known
 * here. */
const char *huggingface_unmodelled(const char *model_type);

/* The key "architectures", the class that was trained, must be one of model_type's that are modelled; where the key is
 * absent or null, it is the first of these. *head: of BERT's classes the enum bert_head. */
enum status huggingface_architecture(
    int *head, struct config_node root, const char *model_type, struct arena *arena, struct diag *diag);

/* Keys that neither the table has nor `read`, a NULL-terminated list, names. Some change the computation in a way that
 * is not modelled: an error. Those that change nothing here pass. Others are named in a warning. */
enum status huggingface_check_keys(struct config_node root, const struct config_table *table, const char *const *read,
    struct arena *arena, struct diag *diag);

#endif
