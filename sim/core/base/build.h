/* The identity of this program, on which results depend besides their inputs. */
#ifndef FLOPCAST_BASE_BUILD_H
#define FLOPCAST_BASE_BUILD_H

#include <stdint.h>

/* Of the version, and of the GNU build ids of the program itself and of the libraries that
 * calculate for it (libm, GSL). The linker makes such an id from all that it links, so it changes
 * with every change of the program; it does not change when the program is copied, installed or
 * stripped. */
uint64_t build_digest(void);

enum { BUILD_COMMIT_SIZE = 48 };

/* The commit that the program was linked from: 40 hexadecimal digits, then "-dirty" where tracked
 * files were changed, as `git describe --dirty` says it. Without git, which sees changes, the
 * digits alone. "unknown" outside a checkout, and in a program into which no build writes it
 * (tests). It is written after the link (commit.cmake): build_digest() does not depend on it, so a
 * commit that changes no code leaves results valid. */
void build_commit(char text[BUILD_COMMIT_SIZE]);

#endif
