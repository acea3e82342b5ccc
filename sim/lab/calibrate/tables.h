/* What `flopcast calibrate show` prints of a database: tables/NAME.sql, scripts of rows/sheet.h. */
#ifndef FLOPCAST_CALIBRATE_TABLES_H
#define FLOPCAST_CALIBRATE_TABLES_H

#include "base/texts.h"

extern const struct text calibrate_tables[];

#endif
