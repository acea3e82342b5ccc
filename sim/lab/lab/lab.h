/* The commands of measurements and fits. argv[0] is the whole name, as in "flopcast calibrate
 * import". Return the exit status; usage errors exit. */
#ifndef FLOPCAST_LAB_LAB_H
#define FLOPCAST_LAB_LAB_H

#include "options/command.h"

int calibrate_fit(int argc, char **argv);
int calibrate_import(int argc, char **argv);
int calibrate_check(int argc, char **argv);
int calibrate_show(int argc, char **argv);
int cmd_validate(int argc, char **argv);

#endif
