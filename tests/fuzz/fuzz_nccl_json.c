/* The same reader as in fuzz_nccl_text, which recognises JSON by its first character, with another
 * corpus. */
#include "fuzz_nccl_text.c"
