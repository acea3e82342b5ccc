/* Private to base: what base/files.h calls a short name. */
#ifndef FLOPCAST_BASE_NAMES_H
#define FLOPCAST_BASE_NAMES_H

#include <stdbool.h>

bool files_is_short(const char *path);

#endif
