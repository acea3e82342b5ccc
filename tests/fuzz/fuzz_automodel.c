/* Any bytes as NeMo AutoModel's recipe. */
#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_foreign(CONFIGURATION_AUTOMODEL, data, size);
}
