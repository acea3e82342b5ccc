/* `flopcast help models`: the models that come along, and what a model file can say. */
#ifndef FLOPCAST_CLI_MODELS_H
#define FLOPCAST_CLI_MODELS_H

/* Returns the exit status. */
int models_help(void);

#endif
