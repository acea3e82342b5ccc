/* What `flopcast calibrate` can do: argv[0] is the whole name, as in "flopcast calibrate import". As commands of cli.h.
 */
#ifndef FLOPCAST_CLI_CALIBRATE_H
#define FLOPCAST_CLI_CALIBRATE_H

int calibrate_fit(int argc, char **argv);
int calibrate_import(int argc, char **argv);
int calibrate_check(int argc, char **argv);
int calibrate_check_trace(int argc, char **argv); /* "flopcast calibrate check trace" */
int calibrate_show(int argc, char **argv);

#endif
