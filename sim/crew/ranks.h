/* Private to sim/crew: the other ranks of MPI, and what is said between them. */
#ifndef FLOPCAST_CREW_RANKS_H
#define FLOPCAST_CREW_RANKS_H

#include "crew/crew.h"
#include "crew/mpi.h"

enum rank_message_kind {
    RANK_HELLO,  /* to rank 0: a struct rank_hello */
    RANK_LEAVES, /* to rank 0: the command has ended there */
    RANK_JOB,    /* from rank 0: do it */
    RANK_RESULT, /* to rank 0: the bytes of a result follow */
    RANK_END,    /* from rank 0: the loop has ended; value: how many results follow, of a loop for everyone */
    RANK_QUIT    /* from rank 0: the command has ended there */
};

struct rank_message {
    int kind, loop, job, value;
};

struct rank_hello {
    uint64_t build; /* results of another program would be others */
    int threads;
    char host[64];
};

struct rank {
    struct rank_hello hello;
    bool known, left;
    int busy; /* jobs that it has, of the loop under way */
};

struct crew {
    struct crew_mpi *mpi; /* NULL: without */
    struct rank *ranks;   /* rank 0's */
    int loops;
    struct pack in, out; /* kept */
};

/* A message with bytes behind it. By the thread that began MPI. */
void rank_send(struct crew *crew, int to, const struct rank_message *message, const void *bytes, size_t n);
/* The next message that has come, with what follows it in *rest until the next call; false: none has. */
bool rank_receive(struct crew *crew, int *from, struct rank_message *message, struct unpack *rest);
/* A moment, between two looks for messages of MPI, which wake nobody. */
void rank_doze(void);

/* Rank 0: until every rank has said hello or left. Ranks of another build, and those that have left, are errors. */
enum status ranks_greet(struct crew *crew, struct diag *diag);
/* Another rank: rank 0 has ended its command, and so does this process. */
_Noreturn void rank_quit(struct crew *crew);

#endif
