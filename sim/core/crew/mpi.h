/* What the program asks of MPI. flopcast-mpi.so (mpi) has it; the program itself is not linked to
 * MPI and loads that file when mpirun has started it.
 *
 * It is searched for beside the program and in ../lib/flopcast, or is $FLOPCAST_MPI. */
#ifndef FLOPCAST_CREW_MPI_H
#define FLOPCAST_CREW_MPI_H

#include <stdbool.h>
#include <stddef.h>

struct crew_mpi {
    int rank, ranks;
    /* Messages of two ranks come in the order in which they were sent. Of any length. */
    void (*send)(int to, const void *bytes, size_t n);
    unsigned char *(*receive)(
        int *from, size_t *n); /* the next message that has come, for free(); NULL: none has */
    void (*end)(void);
};

/* The one function of flopcast-mpi.so: begins MPI. The thread that calls it alone calls the others.
 * NULL: that failed, and MPI has said why. For free(). */
#define CREW_MPI_BEGIN "flopcast_mpi_begin"
typedef struct crew_mpi *crew_mpi_begin(void);

#endif
