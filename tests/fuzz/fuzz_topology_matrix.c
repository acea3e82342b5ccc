/* Any bytes as the matrix of `nvidia-smi topo -m`. */
#include "topology_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_topology("fuzz.txt", data, size);
}
