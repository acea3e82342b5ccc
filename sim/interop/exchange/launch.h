/* Private to exchange: whose an option on a command line of a script is, and what launchers and
 * schedulers say of the number of GPUs. What stands before the program that trains
 * ("pretrain_gpt.py", or behind -m) is its launchers': numactl, srun, mpirun, nsys, containers,
 * torchrun ... */
#ifndef FLOPCAST_EXCHANGE_LAUNCH_H
#define FLOPCAST_EXCHANGE_LAUNCH_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "python3" of "/usr/bin/python3" */
const char *launch_base(const char *word);
/* A file of Python. */
bool launch_is_program(const char *word);
/* A launcher, or another command that trains nothing, by its name without a folder: all its options
 * are its own. */
bool launch_is_known(const char *base);
/* One that starts Python's processes, whose options Megatron-LM's table has, too: torchrun, python,
 * deepspeed, accelerate. */
bool launch_is_python(const char *base);

enum launch_count {
    LAUNCH_NODES,
    LAUNCH_TASKS,
    LAUNCH_TASKS_PER_NODE,
    LAUNCH_GPUS_PER_NODE,
    LAUNCH_GPUS,
    LAUNCH_CPUS_PER_TASK,
    LAUNCH_COUNTS
};
/* What the option, with its dashes, counts; LAUNCH_COUNTS: nothing that is looked for. launcher: a
 * base name, or "#SBATCH", "#PBS", "#BSUB". */
enum launch_count launch_count_of(const char *launcher, const char *name);
/* "16", "gpu:h100:4", "h100:4": the number; 0: it is none, or a range. */
int64_t launch_number(const char *text);

/* The head of a script for a scheduler, "#SBATCH --nodes=16": an option of a line that counts
 * something. */
struct launch_option {
    const char *launcher, *name, *value;
    size_t at; /* of its first character in the line */
    enum launch_count what;
};
enum { LAUNCH_MOST_OPTIONS = 8 };
/* The options of a line, which begins at '#' and ends before n; how many: at most
 * LAUNCH_MOST_OPTIONS. */
int launch_head(
    struct launch_option out[LAUNCH_MOST_OPTIONS], const char *line, size_t n, struct arena *arena);

/* The i-th variable that Slurm, PBS or LSF makes of these counts (0: not said), and its value;
 * false: there is none more. *value is 0 where the counts do not say it. A script's first process
 * asks: ranks and indices are 0. */
bool launch_variable(int i, const char **name, int64_t *value, const int64_t counts[LAUNCH_COUNTS]);

#endif
