/* The identity of this program, on which results depend besides their inputs. */
#ifndef FLOPCAST_BASE_BUILD_H
#define FLOPCAST_BASE_BUILD_H

#include <stdint.h>

/* Of the version, and of the GNU build ids of the program itself and of the libraries that calculate for it (libm,
 * GSL). The linker makes such an id from all that it links, so it changes with every change of the program; it does not
 * change when the program is copied, installed or stripped. */
uint64_t build_digest(void);

#endif
