/* flopcast-mpi.so: what crew/mpi.h asks for, by MPI. One thread calls it. */
#include "crew/mpi.h"

#include "base/status.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

enum { TAG = 1 };

/* MPI's default for errors is to end all ranks with a message, so calls have no status to look at. */
static void send(int to, const void *bytes, size_t n)
{
    BUG_IF(n > INT_MAX, "a message of %zu bytes is longer than MPI sends", n);
    MPI_Send(bytes, (int)n, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

static bool receive(int *from, struct pack *out)
{
    int there = 0, n = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &status);
    if (!there)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &n);
    pack_reserve(out, (size_t)n);
    out->n = (size_t)n;
    *from = status.MPI_SOURCE;
    MPI_Recv(out->at, n, MPI_BYTE, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return true;
}

static void end(void)
{
    MPI_Finalize();
}

__attribute__((visibility("default"))) crew_mpi_begin flopcast_mpi_begin;

struct crew_mpi *flopcast_mpi_begin(void)
{
    int provided = MPI_THREAD_SINGLE; /* threads compute, one of them calls MPI */
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED)
        return NULL;
    struct crew_mpi *mpi = xcalloc(1, sizeof *mpi);
    *mpi = (struct crew_mpi){.send = send, .receive = receive, .end = end};
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi->ranks);
    return mpi;
}
