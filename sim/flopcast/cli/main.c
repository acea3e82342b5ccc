#include "cli/cli.h"

#include "base/build.h"
#include "crew/crew.h"

#include <argp.h>
#include <errno.h>
#include <gsl/gsl_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_version(FILE *out, struct argp_state *state)
{
    char commit[BUILD_COMMIT_SIZE];
    build_commit(commit);
    (void)state;
    fprintf(out, "flopcast " FLOPCAST_VERSION " (commit %s)\n", commit);
}

/* Visible, as the C library looks for it. */
__attribute__((visibility("default"))) void (*argp_program_version_hook)(FILE *, struct argp_state *) = print_version;

/* Output that did not reach its file (full disk, closed pipe) is a failure, also of --help, which leaves by exit(). */
static void close_stdout(void)
{
    bool failed = ferror(stdout) != 0; /* a write before this one failed; why is not known any more */
    if (fclose(stdout) == 0 && !failed)
        return;
    fprintf(stderr, "flopcast: error: cannot write the output: %s\n", failed ? "a write failed" : strerror(errno));
    _exit(CLI_WORLD);
}

int main(int argc, char **argv)
{
    if (atexit(close_stdout) != 0)
        return CLI_WORLD;
    argp_err_exit_status = CLI_INPUT;
    crew_set_up();
    gsl_set_error_handler_off(); /* its default handler aborts; here return values are checked */
    return cli_main(argc, argv);
}
