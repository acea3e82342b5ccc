/* What the program asks of MPI. flopcast-mpi.so (mpi) has it; the program itself is not linked to MPI and loads
 * that file when mpirun has started it.
 *
 * It is searched for beside the program and in ../lib/flopcast, or is $FLOPCAST_MPI. */
#ifndef FLOPCAST_CREW_MPI_H
#define FLOPCAST_CREW_MPI_H

#include "crew/pack.h"

#include <stdbool.h>

struct crew_mpi {
    int rank, ranks;
    /* Messages of two ranks come in the order in which they were sent. */
    void (*send)(int to, const void *bytes, size_t n);
    bool (*receive)(int *from, struct pack *out); /* the next message that has come; false: none has */
    void (*end)(void);
};

/* The one function of flopcast-mpi.so: begins MPI. The thread that calls it alone calls the others. NULL: that failed,
 * and MPI has said why. For free(). */
#define CREW_MPI_BEGIN "flopcast_mpi_begin"
typedef struct crew_mpi *crew_mpi_begin(void);

#endif
