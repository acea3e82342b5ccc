/* Arguments that shell scripts define: expected values are what bash 5.2 hands to the command. */
#include "exchange/shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static struct shell_arguments read_text(const char *text, struct arena *arena)
{
    struct shell_arguments arguments = {0};
    struct diag diag = DIAG_INIT;
    shell_read(&arguments, "s.sh", text, strlen(text), arena, &diag);
    assert_string_equal(diag.text, "");
    return arguments;
}

static void expect(
    const struct shell_arguments *arguments, int i, const char *name, const char *value)
{
    assert_true(i < arguments->list.n);
    assert_string_equal(arguments->list.at[i].name, name);
    if (value)
        assert_string_equal(arguments->list.at[i].value, value);
    else
        assert_null(arguments->list.at[i].value);
}

/* Each text defines --a with this value. */
static void words_are_expanded_as_the_shell_does(void **state)
{
    (void)state;
    static const struct {
        const char *text, *value;
    } cases[] = {{"x --a 1", "1"}, {"x --a=1", "1"}, {"x --a 'b c' d", "b c d"},
        {"x --a \\\n  2 # three", "2"}, {"N=3\nx --a $N", "3"}, {"export N=3; x --a ${N}", "3"},
        {"x --a ${N:-4}", "4"}, {"N=\"3\"\nx --a \"$N\"4", "34"},
        {"N=8 M=6\nx --a $(($N*M))", "48"}, {"x --a $((2 * (3 + 4) - 10 / 3))", "11"},
        {"x --a $((17 % 4 + 20 / 6))", "4"}, {"A=(--a 5\n)\n", "5"}, {"A=( --a 5 ) # --a 6\n", "5"},
        {"A=\" \\\n --a 'p|q' \\\n\"", "p|q"}, {"x --a 1 | tee log --", "1"},
        {"x --a 1 > file", "1"}, {"cat <<E > f\n--b 2\nE\nx --a 1", "1"},
        {"N='a b'\nx --a \"$N\"", "a b"}, {"x --a ${N:-\"1\"}", "1"}, {"x --a \"${N:-'1'}\"", "1"},
        {"x --a ${N-2}", "2"}, {"A=(\n \"--a hybrid\")", "hybrid"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct shell_arguments arguments = read_text(cases[i].text, &arena);
        if (arguments.list.n != 1)
            fail_msg("%s: %d arguments", cases[i].text, arguments.list.n);
        expect(&arguments, 0, "--a", cases[i].value);
        assert_null(arguments.list.at[0].unset);
        shell_free(&arguments);
        arena_release(&arena);
    }
}

/* What the file does not say is named, and is no value. */
static void what_is_not_set_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *unset;
    } cases[] = {{"x --a $N", "$N"}, {"x --a $1/b", "$1"},
        {"N=$(hostname)\nx --a $N", "$(hostname)"}, {"x --a `pwd`", "`pwd`"},
        {"x --a $((N * 2))", "$N"}, {"x --a $((1 / 0))", "$((1 / 0))"},
        {"x --a ${N%.yaml}", "${N%.yaml}"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct shell_arguments arguments = read_text(cases[i].text, &arena);
        assert_int_equal(arguments.list.n, 1);
        assert_string_equal(arguments.list.at[0].unset, cases[i].unset);
        shell_free(&arguments);
        arena_release(&arena);
    }
}

static void places_are_those_of_the_file(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct shell_arguments arguments =
        read_text("A=\" \\\n  --b 1 \\\n  --c \"\nB=(\n\t--d 2)\nx $A ${B[@]} --e=3\n", &arena);
    assert_int_equal(arguments.list.n, 4);
    expect(&arguments, 0, "--b", "1");
    expect(&arguments, 1, "--c", NULL);
    expect(&arguments, 2, "--d", "2");
    expect(&arguments, 3, "--e", "3");
    static const int lines[] = {2, 3, 5, 6}, columns[] = {3, 3, 2, 14};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(arguments.list.at[i].at.line, lines[i]);
        assert_int_equal(arguments.list.at[i].at.column, columns[i]);
    }
    assert_int_equal(arguments.list.at[0].value_at.column, 7);
    shell_free(&arguments);
    arena_release(&arena);
}

/* Whose --a is: what stands before the program of Python is its launchers'. */
static void options_before_the_program_are_its_launchers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *launcher, *value;
    } cases[] = {{"numactl --a=0-3 torchrun x.py", "numactl", "0-3"},
        {"numactl --a 0-3 torchrun x.py", "numactl", "0-3"},
        {"C=\"numactl --a torchrun x.py --c\"", "numactl", NULL},
        {"C=\"numactl torchrun x.py --a 1\"", NULL, "1"},
        {"P=\"numactl --a=1\"\n$P torchrun x.py", "numactl", "1"},
        {"N=\"--a 1\"\nnsys profile $N python x.py", "nsys", "1"},
        {"N=(--a 1)\ntorchrun x.py ${N[@]}", NULL, "1"},
        {"T=\"torchrun x.py --a 1\"\nsrun $T", NULL, "1"},
        {"./wrap --a 1 python x.py", "wrap", "1"}, {"./wrap --a 1", NULL, "1"},
        {"python -m mod --a 1", NULL, "1"},
        {"python -m torch.distributed.run --a 1 x.py", "torchrun", "1"},
        {"X=1 Y=2 srun --a 1 x.py", "srun", "1"},
        {"srun bash -c \"torchrun x.py --a 1\"", NULL, "1"}, {"mkdir --a d; x --b", "mkdir", "d"},
        {"apptainer exec --a i.sif python x.py", "exec", "i.sif"},
        {"x.py --a numactl", NULL, "numactl"}, {"A=(--a time nice)", NULL, "time nice"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct shell_arguments arguments = read_text(cases[i].text, &arena);
        const char *launcher = arguments.list.n > 0 ? arguments.list.at[0].launcher : "?";
        if (!launcher != !cases[i].launcher ||
            (launcher && strcmp(launcher, cases[i].launcher) != 0))
            fail_msg("%s: %s", cases[i].text, launcher ? launcher : "the program's");
        expect(&arguments, 0, "--a", cases[i].value);
        shell_free(&arguments);
        arena_release(&arena);
    }
}

/* sbatch(1): what the scheduler makes of the head. */
static void a_head_sets_the_schedulers_variables(void **state)
{
    (void)state;
    static const struct {
        const char *text, *value;
    } cases[] = {{"#SBATCH --nodes=16\nx.py --a $SLURM_NNODES", "16"},
        {"#SBATCH -N 4\nx.py --a $SLURM_JOB_NUM_NODES", "4"},
        {"#SBATCH -N4 --ntasks-per-node=8 # eight\nx.py --a $SLURM_NTASKS", "32"},
        {"#SBATCH --ntasks 16\n#SBATCH --nodes 2\nx.py --a ${SLURM_NTASKS_PER_NODE}", "8"},
        {"#SBATCH --gres=gpu:h100:4\nx.py --a $SLURM_GPUS_ON_NODE", "4"},
        {"#SBATCH --gpus-per-node=4\n#SBATCH --nodes=2\nx.py --a $SLURM_GPUS", "8"},
        {"#SBATCH -c 64\nx.py --a $((SLURM_CPUS_PER_TASK / 2)) $SLURM_PROCID", "32 0"},
        {"#SBATCH --nodes=2\nSLURM_NNODES=3\nx.py --a $SLURM_NNODES", "3"},
        {"#PBS -l select=4:ncpus=8:ngpus=8\nx.py --a $PBS_NUM_NODES", "4"},
        {"#BSUB -n 32\nx.py --a $LSB_DJOB_NUMPROC", "32"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct shell_arguments arguments = read_text(cases[i].text, &arena);
        assert_true(arguments.list.n > 1 || strstr(cases[i].text, "NNODES=3"));
        expect(&arguments, arguments.list.n - 1, "--a", cases[i].value);
        shell_free(&arguments);
        arena_release(&arena);
    }
}

static void mistakes_have_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {{"x \"--a", "s.sh:1:3: error: the quote does not end"},
        {"A=(--a 1", "s.sh:1:4: error: the array does not end"},
        {"x\n --a ${N", "s.sh:2:6: error: it does not end"},
        {"x 'a", "s.sh:1:3: error: it does not end"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct shell_arguments arguments = {0};
        struct diag diag = DIAG_INIT;
        assert_int_equal(
            shell_read(&arguments, "s.sh", cases[i].text, strlen(cases[i].text), &arena, &diag),
            STATUS_INPUT);
        if (strncmp(diag.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s, not %s", diag.text, cases[i].message);
        shell_free(&arguments);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_expanded_as_the_shell_does),
        cmocka_unit_test(what_is_not_set_is_named),
        cmocka_unit_test(places_are_those_of_the_file),
        cmocka_unit_test(options_before_the_program_are_its_launchers),
        cmocka_unit_test(a_head_sets_the_schedulers_variables),
        cmocka_unit_test(mistakes_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
