/* A 64-bit fingerprint of a run: every word that decides the outcome is folded in, in order. Two
 * runs with the same digest did the same things at the same picosecond. Not cryptographic. FNV-1a
 * on words, with a final mix by the caller's choice of words. */
#ifndef FLOPCAST_BASE_DIGEST_H
#define FLOPCAST_BASE_DIGEST_H

#include <stdint.h>

#define DIGEST_INIT UINT64_C(0xcbf29ce484222325)

static inline uint64_t digest_word(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x100000001b3);
    return digest ^ (digest >> 29);
}

#endif
