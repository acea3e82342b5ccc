/* `flopcast trace import`: a trace of a step that ran without a GPU (foreign/ops.h). A file that
 * could not be written whole, or that holds mistakes, is removed. Collectives take no time in
 * it; `trace scale` gives them theirs. */
#include "options/arguments.h"
#include "interop/interop.h"
#include "report/trace.h"
#include "rows/words.h"

#include "base/files.h"
#include "foreign/ops.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *ops, *gpu, *out;
    double issue_s;
};

/* host.kernel_issue of PyTorch, see `flopcast help settings`. */
static const double ISSUE_S = 10e-6, MS = 1e3, MOST_ISSUE_S = 1;

static void take_issue(void *member, const struct argument *argument)
{
    char why[128];
    if (!quantity_parse(member, argument->text, DIM_SECONDS, why, sizeof why))
        argp_error(argument->state, "--issue %s: %s", argument->text, why);
    if (*(double *)member < 0 || *(double *)member > MOST_ISSUE_S)
        argp_error(argument->state, "--issue %s: a time from 0 to 1 s is wanted", argument->text);
}

static void check(void *self, struct argp_state *state)
{
    const struct command *command = self;
    if (!command->gpu)
        argp_error(state, "--gpu NAME is needed: whose tables say how long kernels take");
    if (!command->out || !trace_can_write(command->out))
        argp_error(state, "--out FILE.json or FILE.json.gz is needed: the trace");
}

#define AT(at) .member = offsetof(struct command, at)
static const struct command_option options[] = {
    {"gpu", "FILE", "The GPU: a file of topologies/gpus; always needed", OPTION_TEXT, AT(gpu)},
    {"out", "FILE", "The trace, .json or .json.gz; always needed", OPTION_TEXT, AT(out)},
    {"issue", "TIME", "Of the host for a kernel or collective (default: 10us)", OPTION_TAKE, AT(issue_s),
        .take = take_issue},
    {0},
};

static void print(const struct command *command, const struct ops_counts *counts, const struct hw_gpu *gpu)
{
    printf("%s: %" PRId64 " kernels, %.3f ms on %s; %" PRId64 " collectives, of %d rank%s; %" PRId64 " views\n",
        command->out, counts->kernels, counts->kernels_s * MS, gpu->name, counts->collectives, counts->ranks,
        plural(counts->ranks), counts->views);
    puts("collectives take no time in it; next: flopcast trace scale FILE --topology NAME --gpus N");
}

static enum status run(const struct command *command, struct arena *arena, struct diag *diag)
{
    struct hw_gpu gpu;
    struct ops_counts counts;
    const struct ops_options ops = {.gpu = &gpu, .issue_s = command->issue_s};
    enum status status = hw_load_gpu(&gpu, files_find(arena, FILES_GPUS, command->gpu), arena, diag);
    if (status != STATUS_OK)
        return status;
    FILE *out = trace_open(command->out);
    bool written = out != NULL;
    if (out)
        status = ops_write_trace(&counts, out, command->ops, &ops, diag);
    written = written && ferror(out) == 0;
    written = out && fclose(out) == 0 && written;
    int why = errno;
    if (out && (status != STATUS_OK || !written))
        unlink(command->out);
    if (status != STATUS_OK)
        return status;
    if (!written)
        return diag_io(diag, (struct source_pos){.file = command->out}, "cannot write: %s", strerror(why));
    print(command, &counts, &gpu);
    return STATUS_OK;
}

int trace_import(int argc, char **argv)
{
    const struct command_line line = {.options = options,
        .check = check,
        .args_doc = "OPS",
        .one = "file of operators",
        AT(ops),
        .missing = "a file of operators is missing",
        .doc = "Make a trace of the operators that a step of your code calls on one rank, without a GPU: JSON lines as "
               "scenarios/fake_step.py writes them (.jsonl, also gzipped). Kernels take what the tables of the GPU "
               "say.\v"
               "torch.distributed's fake process group and FakeTensorMode run the code of any number of ranks on a "
               "laptop; nothing is computed. A line is an operator with the shapes and the number format of its "
               "tensors, or a collective with its ranks (sim/interop/foreign/ops.h)."};
    struct command command = {.issue_s = ISSUE_S};
    command_line_parse(&line, argc, argv, &command);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    run(&command, &arena, &diag);
    arena_release(&arena);
    return cli_report(&diag);
}
