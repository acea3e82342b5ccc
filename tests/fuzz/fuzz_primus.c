/* Any bytes as Primus' configuration. */
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_foreign(CONFIGURATION_PRIMUS, data, size);
}
