/* Ctrl-C while results are stored: SIGINT, SIGTERM and SIGHUP end a command after the points that
 * are being simulated. The first signal is announced on stderr and noted; the next one ends the
 * program at once, as by default. A signal that was ignored before (nohup) stays ignored. */
#ifndef FLOPCAST_OPTIONS_STOP_H
#define FLOPCAST_OPTIONS_STOP_H

#include <stdbool.h>

/* How soon: what is being simulated ends first, or it does not, or there is nothing to show yet:
 * then a sentence says so, and the signal ends the program. */
enum stop_when { STOP_AFTER, STOP_NOW, STOP_WITHOUT_ANSWER };
#define STOP_NOTHING_RANKED                                                                        \
    "flopcast: stopped before a candidate was ranked\n" /* that sentence                           \
                                                         */
void stop_watch(enum stop_when when);                   /* from now on */
bool stop_asked(void);

/* Ends the program by the signal that asked, after its output is written: so a shell sees it (exit
 * status 130 of Ctrl-C, 143 of SIGTERM), and a loop of the shell ends too. */
void stop_leave(void);

#endif
