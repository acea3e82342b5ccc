/* Any bytes as DeepSpeed's configuration. */
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_foreign(CONFIGURATION_DEEPSPEED, data, size);
}
