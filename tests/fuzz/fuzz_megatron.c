/* Any bytes as a script with arguments of Megatron-LM. */
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_foreign(CONFIGURATION_MEGATRON, data, size);
}
