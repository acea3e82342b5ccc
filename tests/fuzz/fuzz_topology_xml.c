/* Any bytes as NCCL's topology XML; those that do not begin so are put into a gpu, which reaches
 * deeper. */
#include "topology_dump.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char head[] =
        "<system version='1'><cpu><pci busid='0' class='0x030200'><gpu sm='80'>";
    if (size > 0 && data[0] == '<')
        return fuzz_topology("fuzz.xml", data, size);
    uint8_t *text = xrealloc(NULL, sizeof head - 1 + size);
    memcpy(text, head, sizeof head - 1);
    if (size > 0)
        memcpy(text + sizeof head - 1, data, size);
    int result = fuzz_topology("fuzz.xml", text, sizeof head - 1 + size);
    free(text);
    return result;
}
