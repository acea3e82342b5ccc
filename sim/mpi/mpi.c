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
    /* OpenMPI warns of fork(), as a process may not share what the network card reads; workers call nothing of MPI. */
    setenv("OMPI_MCA_mpi_warn_on_fork", "0", 0);
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return NULL;
    MPI_Comm machine;
    struct crew_mpi *mpi = xcalloc(1, sizeof *mpi);
    *mpi = (struct crew_mpi){.send = send, .receive = receive, .end = end};
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi->ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Allreduce(&mpi->rank, &mpi->machine, 1, MPI_INT, MPI_MIN, machine);
    MPI_Comm_free(&machine);
    return mpi;
}
