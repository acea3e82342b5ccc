/* Any bytes as torchtitan's configuration, TOML. */
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_foreign(CONFIGURATION_TORCHTITAN, data, size);
}
