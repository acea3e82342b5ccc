/* flopcast-mpi.so: what crew/mpi.h asks for, by MPI. One thread calls it. A message is its length
 * and then its bytes in pieces, since MPI counts in int. */
#include "crew/mpi.h"

#include "base/arena.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

enum { TAG_LENGTH = 1, TAG_BYTES = 2, PIECE = 1 << 28 };

static int mpi_piece(uint64_t left)
{
    return left < PIECE ? (int)left : PIECE;
}

/* MPI's default for errors is to end all ranks with a message, so calls have no status to look at.
 */
static void mpi_send(int to, const void *bytes, size_t n)
{
    uint64_t left = n;
    const unsigned char *next = bytes;
    MPI_Send(&left, 1, MPI_UINT64_T, to, TAG_LENGTH, MPI_COMM_WORLD);
    for (int piece; (piece = mpi_piece(left)) > 0; next += piece, left -= (uint64_t)piece)
        MPI_Send(next, piece, MPI_BYTE, to, TAG_BYTES, MPI_COMM_WORLD);
}

static unsigned char *mpi_receive(int *from, size_t *n)
{
    int there = 0;
    uint64_t left = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_LENGTH, MPI_COMM_WORLD, &there, &status);
    if (!there)
        return NULL;
    *from = status.MPI_SOURCE;
    MPI_Recv(&left, 1, MPI_UINT64_T, *from, TAG_LENGTH, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *n = left;
    unsigned char *bytes = xcalloc(left + 1, 1), *next = bytes;
    for (int piece; (piece = mpi_piece(left)) > 0; next += piece, left -= (uint64_t)piece)
        MPI_Recv(next, piece, MPI_BYTE, *from, TAG_BYTES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return bytes;
}

static void mpi_end(void)
{
    MPI_Finalize();
}

__attribute__((visibility("default"))) crew_mpi_begin flopcast_mpi_begin;

struct crew_mpi *flopcast_mpi_begin(void)
{
    int provided = MPI_THREAD_SINGLE; /* threads compute, one of them calls MPI */
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_FUNNELED)
        return NULL;
    struct crew_mpi *mpi = xcalloc(1, sizeof *mpi);
    *mpi = (struct crew_mpi){.send = mpi_send, .receive = mpi_receive, .end = mpi_end};
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi->ranks);
    return mpi;
}
