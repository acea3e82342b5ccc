/* What `flopcast topology` can do beside showing a file. As commands of cli.h. */
#ifndef FLOPCAST_CLI_TOPOLOGY_H
#define FLOPCAST_CLI_TOPOLOGY_H

int topology_import(int argc, char **argv);

#endif
