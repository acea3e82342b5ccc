/* What launchers and schedulers say about the number of nodes, processes and GPUs.
 *
 * count_options[] says which option of which launcher counts what; launch_head() reads the lines
 * #SBATCH, #PBS and #BSUB of a script, with the forms in which an option may have its value;
 * launch_variable() gives the variables that a scheduler would set from these counts. Sources:
 * sbatch(1) and srun(1), "OUTPUT ENVIRONMENT VARIABLES"; pbs_resources(7B), Torque's and LSF's
 * documentation; mpirun(1) of Open MPI and of MPICH. What is subtle: one name means different
 * things to different launchers (-n, -N), so the launcher is part of the key; a number of GPUs
 * may stand behind its kind (gpu:h100:4). */
#include "exchange/launch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *launch_base(const char *word)
{
    const char *slash = strrchr(word, '/');
    return slash ? slash + 1 : word;
}

bool launch_is_program(const char *word)
{
    size_t n = strlen(word);
    return n > 3 && strcmp(word + n - 3, ".py") == 0;
}

static bool launch_listed(const char *words, const char *word, size_t n)
{
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == n && strncmp(at, word, n) == 0)
            return true;
    return false;
}

bool launch_is_python(const char *base)
{
    static const char python[] = "python";
    size_t n = strlen(python);
    bool version =
        strncmp(base, python, n) == 0 && strspn(base + n, "0123456789.") == strlen(base + n);
    return version || launch_listed("torchrun accelerate deepspeed", base, strlen(base));
}

bool launch_is_known(const char *base)
{
    static const char names[] =
        "numactl taskset hwloc-bind likwid-pin setarch chrt ionice nice time timeout stdbuf "
        "unbuffer nohup exec env sudo xargs parallel pdsh ssh srun sbatch salloc mpirun mpiexec "
        "mpiexec.hydra prun prterun jsrun aprun flux nsys ncu rocprof rocprofv2 rocprofv3 omniperf "
        "perf strace bash sh zsh apptainer singularity enroot "
        "docker podman nerdctl shifter conda mamba micromamba poetry uv pipenv ray kubectl module "
        "spack echo printf mkdir rm cp mv ls cat tee find grep sed awk pip pip3 git source set "
        "ulimit scontrol hostname curl wget";
    return launch_is_python(base) || launch_listed(names, base, strlen(base));
}

static const struct {
    const char *launchers, *names;
    enum launch_count what;
} count_options[] = {
    {"srun salloc sbatch #SBATCH", "--nodes -N", LAUNCH_NODES},
    {"srun salloc sbatch #SBATCH", "--ntasks -n", LAUNCH_TASKS},
    {"srun salloc sbatch #SBATCH", "--ntasks-per-node --tasks-per-node", LAUNCH_TASKS_PER_NODE},
    {"srun salloc sbatch #SBATCH", "--gpus-per-node --gres", LAUNCH_GPUS_PER_NODE},
    {"srun salloc sbatch #SBATCH", "--gpus -G", LAUNCH_GPUS},
    {"srun salloc sbatch #SBATCH", "--cpus-per-task -c", LAUNCH_CPUS_PER_TASK},
    {"mpirun mpiexec mpiexec.hydra prun prterun aprun", "-np --np -n --n", LAUNCH_TASKS},
    {"mpirun mpiexec mpiexec.hydra prun prterun aprun", "-N -npernode --npernode -ppn --ppn",
        LAUNCH_TASKS_PER_NODE},
    {"deepspeed", "--num-gpus --num_gpus", LAUNCH_GPUS_PER_NODE},
    {"deepspeed", "--num-nodes --num_nodes", LAUNCH_NODES},
    {"accelerate", "--num-processes --num_processes", LAUNCH_TASKS},
    {"accelerate", "--num-machines --num_machines", LAUNCH_NODES},
    {"#PBS", "select nodes", LAUNCH_NODES},
    {"#PBS", "ngpus gpus", LAUNCH_GPUS_PER_NODE},
    {"#PBS", "mpiprocs ppn", LAUNCH_TASKS_PER_NODE},
    {"#BSUB", "-nnodes", LAUNCH_NODES},
    {"#BSUB", "-n", LAUNCH_TASKS},
    {"#BSUB", "num", LAUNCH_GPUS_PER_NODE},
};

enum launch_count launch_count_of(const char *launcher, const char *name)
{
    for (size_t i = 0; i < sizeof count_options / sizeof *count_options; i++)
        if (launch_listed(count_options[i].launchers, launcher, strlen(launcher)) &&
            launch_listed(count_options[i].names, name, strlen(name)))
            return count_options[i].what;
    return LAUNCH_COUNTS;
}

/* Of several counts in a list the one of gpu, else the first. */
int64_t launch_number(const char *text)
{
    const char *gpu = strstr(text, "gpu:"), *from = gpu ? gpu : text; /* --gres=nvme:1,gpu:h100:4 */
    size_t n = strcspn(from, ", ");
    const char *last = from + n;
    while (last > from && last[-1] != ':')
        last--;
    char *end = NULL;
    long long number = strtoll(last, &end, 10);
    return end > last && end == from + n && number > 0 && number < INT64_C(1) << 32 ? number : 0;
}

/* ---- the head ---- */

struct head {
    struct launch_option *out;
    int n;
    const char *launcher, *line;
    struct arena *arena;
};

static void exchange_launch_add(
    struct head *head, const char *name, size_t name_n, const char *value, size_t value_n)
{
    struct launch_option option = {.launcher = head->launcher,
        .name = arena_printf(head->arena, "%.*s", (int)name_n, name),
        .value = arena_printf(head->arena, "%.*s", (int)value_n, value),
        .at = (size_t)(name - head->line)};
    option.what = launch_count_of(option.launcher, option.name);
    if (option.what < LAUNCH_COUNTS && head->n < LAUNCH_MOST_OPTIONS)
        head->out[head->n++] = option;
}

/* "select=4:ncpus=32:ngpus=4", "num=8:mode=shared": each part that is an option by its name. */
static void add_parts(struct head *head, const char *text, size_t n)
{
    for (const char *at = text; at < text + n;) {
        size_t part = 0;
        while (at + part < text + n && !strchr(":,\"'", at[part]))
            part++;
        const char *equals = memchr(at, '=', part);
        if (equals)
            exchange_launch_add(
                head, at, (size_t)(equals - at), equals + 1, part - (size_t)(equals - at) - 1);
        at += part + 1;
    }
}

static size_t word_at(const char *at, const char *end)
{
    size_t n = 0;
    while (at + n < end && !isspace((unsigned char)at[n]))
        n++;
    return n;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    return at;
}

static bool is_letter_number(const char *word, size_t n)
{
    return n > 2 && isalpha((unsigned char)word[1]) && isdigit((unsigned char)word[2]);
}

/* An option, "--nodes=16", "--nodes 16", "-N 16", "-N16"; where the next one may begin. */
static const char *read_option(struct head *head, const char *at, const char *end)
{
    size_t n = word_at(at, end);
    const char *equals = memchr(at, '=', n);
    if (*at == '-' && equals) {
        exchange_launch_add(
            head, at, (size_t)(equals - at), equals + 1, n - (size_t)(equals - at) - 1);
    } else if (*at == '-' && is_letter_number(at, n)) {
        exchange_launch_add(head, at, 2, at + 2, n - 2);
    } else if (*at == '-') {
        const char *value = skip_blanks(at + n, end);
        size_t value_n = value < end && *value != '-' ? word_at(value, end) : 0;
        bool parts = strncmp(at, "-l", n) == 0 || strncmp(at, "-gpu", n) == 0;
        if (parts)
            add_parts(head, value, value_n);
        else
            exchange_launch_add(head, at, n, value, value_n);
        return value + value_n;
    }
    return at + n;
}

int launch_head(
    struct launch_option out[LAUNCH_MOST_OPTIONS], const char *line, size_t n, struct arena *arena)
{
    static const char *const heads[] = {"#SBATCH", "#PBS", "#BSUB"};
    struct head head = {.out = out, .line = line, .arena = arena};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (word_at(line, line + n) == strlen(heads[i]) &&
            strncmp(line, heads[i], strlen(heads[i])) == 0)
            head.launcher = heads[i];
    const char *end = line + n;
    for (const char *at = line + (head.launcher ? strlen(head.launcher) : n); at < end;) {
        at = skip_blanks(at, end);
        if (at == end || *at == '#')
            break;
        at = read_option(&head, at, end);
    }
    return head.n;
}

/* ---- what a scheduler makes of it ---- */

static int64_t launch_product(int64_t a, int64_t b)
{
    return a < INT64_C(1) << 31 && b < INT64_C(1) << 31 ? a * b : 0;
}

/* What was not given follows from the others: tasks from nodes and tasks a node, and the other
 * way round. */
bool launch_variable(int i, const char **name, int64_t *value, const int64_t counts[LAUNCH_COUNTS])
{
    static const struct {
        const char *name;
        enum launch_count what;
    } variables[] = {{"SLURM_NNODES", LAUNCH_NODES}, {"SLURM_JOB_NUM_NODES", LAUNCH_NODES},
        {"PBS_NUM_NODES", LAUNCH_NODES}, {"SLURM_NTASKS", LAUNCH_TASKS},
        {"SLURM_NPROCS", LAUNCH_TASKS}, {"PBS_NP", LAUNCH_TASKS},
        {"LSB_DJOB_NUMPROC", LAUNCH_TASKS}, {"SLURM_NTASKS_PER_NODE", LAUNCH_TASKS_PER_NODE},
        {"SLURM_TASKS_PER_NODE", LAUNCH_TASKS_PER_NODE}, {"PBS_NUM_PPN", LAUNCH_TASKS_PER_NODE},
        {"SLURM_GPUS_PER_NODE", LAUNCH_GPUS_PER_NODE}, {"SLURM_GPUS_ON_NODE", LAUNCH_GPUS_PER_NODE},
        {"SLURM_GPUS", LAUNCH_GPUS}, {"SLURM_CPUS_PER_TASK", LAUNCH_CPUS_PER_TASK}};
    int n = (int)(sizeof variables / sizeof *variables);
    if (i >= n)
        return false;
    int64_t nodes = counts[LAUNCH_NODES], tasks = counts[LAUNCH_TASKS],
            here = counts[LAUNCH_TASKS_PER_NODE];
    int64_t gpus = counts[LAUNCH_GPUS], gpus_here = counts[LAUNCH_GPUS_PER_NODE];
    int64_t values[LAUNCH_COUNTS] = {[LAUNCH_NODES] = nodes,
        [LAUNCH_TASKS] = tasks > 0 ? tasks : launch_product(nodes, here > 0 ? here : 1),
        [LAUNCH_TASKS_PER_NODE] = here > 0                          ? here
                                  : nodes > 0 && tasks % nodes == 0 ? tasks / nodes
                                                                    : 0,
        [LAUNCH_GPUS] = gpus > 0 ? gpus : launch_product(nodes, gpus_here),
        [LAUNCH_GPUS_PER_NODE] = gpus_here > 0                    ? gpus_here
                                 : nodes > 0 && gpus % nodes == 0 ? gpus / nodes
                                                                  : 0,
        [LAUNCH_CPUS_PER_TASK] = counts[LAUNCH_CPUS_PER_TASK]};
    *name = variables[i].name;
    *value = values[variables[i].what];
    return true;
}
