/* Private to exchange: the arguments "--name value" that a shell script defines, wherever they
 * stand: on a command's line, in a variable's quotes, in an array, where one element may hold
 * several words. Variables that the script sets to plain words are expanded, also ${NAME:-default}
 * and $((arithmetic)); what it takes from elsewhere is marked. Comments and here-documents are
 * passed over, except the head of a scheduler (exchange/launch.h), whose counts are options and set
 * the variables that the scheduler makes of them. A file of arguments alone is such a script, too.
 *
 * What stands on a command's line before the program of Python is its launchers'. */
#ifndef FLOPCAST_EXCHANGE_SHELL_H
#define FLOPCAST_EXCHANGE_SHELL_H

#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

struct shell_argument {
    const char *name;     /* "--num-layers" */
    const char *value;    /* the words behind it, joined by blanks; NULL: none */
    struct source_pos at; /* of the name */
    struct source_pos value_at;
    const char
        *unset; /* a variable in the value that the script does not set, as "$1"; NULL: none */
    /* Whose option it is where it is not the program's: "numactl", "srun", "#SBATCH" of the
     * scheduler's head, or SHELL_ENVIRONMENT of a variable that changes what is simulated; NULL:
     * the program's, or not known. */
    const char *launcher;
    const char *variable; /* in whose quotes or array it stands, before any command; NULL: none's */
};
#define SHELL_ENVIRONMENT "the environment's"
/* A word that ends in ".py", wherever it stands: the programs that the script may run. */
struct shell_program {
    const char *name; /* without its folder: "pretrain_gpt.py" */
    struct source_pos at;
};
struct shell_arguments {
    VEC(struct shell_argument) list;
    VEC(struct shell_program) programs;
};

enum { SHELL_MAX_NAME = 128, SHELL_MAX_WORD = 4096, SHELL_MAX_DEPTH = 16 };

enum status shell_read(struct shell_arguments *out, const char *path, const char *text, size_t n,
    struct arena *arena, struct diag *diag);
void shell_free(struct shell_arguments *arguments);

#endif
