/* The same reader as in fuzz_nccl_text, which tells JSON by its first character, with a corpus of its own. */
#include "fuzz_nccl_text.c"
