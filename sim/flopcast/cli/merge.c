/* `flopcast merge`: databases of shards into one (store/merge.h), then a check that no shard is
 * missing.
 *
 * Each source is one transaction, so a merge that is killed can be repeated. A source that is
 * the target itself, by device and inode, is refused. */
#include "cli/cli.h"

#include "base/vec.h"
#include "options/arguments.h"
#include "store/merge.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

COMMAND(cmd_merge, 30, "merge", 0, "put databases of shards together",
    "flopcast run gpt2_ddp_v100 --shard 1/2 --db part1.db &&\n"
    "flopcast run gpt2_ddp_v100 --shard 2/2 --db part2.db &&\n"
    "flopcast merge part1.db part2.db --into my.db");

struct merge {
    VEC(const char *) sources;
    const char *into;
};

static void take_source(void *self, const struct argument *argument)
{
    struct merge *merge = self;
    vec_push(&merge->sources, argument->text);
}

static bool cli_merge_is_same_file(const char *one, const char *two)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(two, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void cli_merge_check(void *self, struct argp_state *state)
{
    const struct merge *merge = self;
    if (!merge->into)
        argp_error(state, "--into C.db is missing: the database that takes what the others have");
    for (int i = 0; i < merge->sources.n && merge->into; i++)
        if (cli_merge_is_same_file(merge->sources.at[i], merge->into))
            argp_error(state, "'%s' is the database that --into names; leave it out",
                merge->sources.at[i]);
}

static const struct command_option merge_options[] = {
    {"into", "PATH", "The database that takes them; created if missing", OPTION_TEXT,
        .member = offsetof(struct merge, into)},
    {0},
};

static void merge_all(const struct merge *merge, struct diag *diag)
{
    struct store *into = NULL;
    struct store_merged all = {0};
    enum status status = store_open(&into, merge->into, STORE_WRITE, diag);
    for (int i = 0; i < merge->sources.n && status == STATUS_OK; i++) {
        struct store_merged one;
        status = store_merge(into, merge->sources.at[i], &one, diag);
        all.runs += one.runs;
        all.points += one.points;
        all.samples += one.samples;
        all.outcomes += one.outcomes;
    }
    if (status == STATUS_OK) {
        printf("%s: %d run%s, %d point%s, %d sample%s and %d outcome%s added\n", merge->into,
            all.runs, plural(all.runs), all.points, plural(all.points), all.samples,
            plural(all.samples), all.outcomes, plural(all.outcomes));
        store_check_shards(into, diag);
    }
    store_close(into);
}

int cmd_merge(int argc, char **argv)
{
    const struct command_line line = {.options = merge_options,
        .args_doc = "FILE.db...",
        .missing = "the databases to merge are missing",
        .take = take_source,
        .check = cli_merge_check,
        .doc = "Put databases of shards together: those of flopcast run, validate and tune with "
               "--shard I/N --db.\vWhat --into has already is not added again, so a merge may be "
               "repeated, and go on after it was killed. A shard that is missing is named, with "
               "exit status 1; what is there is merged. The rows are those of one program that did "
               "all, except when and how long it ran. The same command as the shards', without "
               "--shard and with the merged database, then prints the whole and simulates "
               "nothing.\n\n"
               "    #SBATCH --array=1-64\n"
               "    flopcast run sweep.yaml --shard $SLURM_ARRAY_TASK_ID/64 --db "
               "part$SLURM_ARRAY_TASK_ID.db\n\n"
               "    flopcast merge part*.db --into sweep.db"};
    struct merge merge = {0};
    struct diag diag = DIAG_INIT;
    command_line_parse(&line, argc, argv, &merge);
    merge_all(&merge, &diag);
    vec_free(&merge.sources);
    return cli_report(&diag);
}
