/* example SCENARIO COLUMN... [KEY=VALUE...]: each column of the first point, a line a column. What
 * a program that is linked to libflopcast.so does; tests/cli/library.sh runs it. */
#include "library/flopcast.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct flopcast *f = flopcast_new();
    enum flopcast_status status = FLOPCAST_OK;
    for (int i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            continue;
        *value = '\0';
        status = flopcast_set(f, argv[i], value + 1);
        argv[i] = NULL;
    }
    if (argc < 2)
        status = FLOPCAST_INPUT;
    if (status == FLOPCAST_OK)
        status = flopcast_open(f, argv[1]);
    if (status == FLOPCAST_OK)
        status = flopcast_run(f, 0);
    fputs(flopcast_messages(f), stderr);
    for (int i = 2; i < argc && status == FLOPCAST_OK; i++)
        if (argv[i])
            printf("%s\n", flopcast_text(f, argv[i]) ? flopcast_text(f, argv[i]) : "null");
    flopcast_free(f);
    return (int)status;
}
