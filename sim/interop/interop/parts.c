/* What `flopcast run` leaves to this program. Its scenario has been loaded and simulated there, so only what goes wrong
 * here is said here. */
#include "exchange/chakra.h"
#include "interop/interop.h"
#include "rows/words.h"
#include "scenario/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static enum status write_point(
    const char *folder, const struct scenario_point *point, struct arena *arena, struct diag *diag)
{
    struct plan plan = {0};
    enum status status = scenario_compile(&plan, point, arena, diag);
    if (status == STATUS_OK)
        status = chakra_write(folder, words_stem(point->file, arena), &plan, &point->hw, diag);
    plan_release(&plan);
    return status;
}

int chakra_export(int argc, char **argv)
{
    struct arena arena = ARENA_INIT;
    struct diag loaded = DIAG_INIT, diag = DIAG_INIT;
    struct scenario_set set = {0};
    VEC(struct scenario_override) overrides = {0};
    if (argc < 3) {
        fputs("flopcast chakra export: error: FOLDER FILE [KEY=VALUE...] is wanted\n", stderr);
        return CLI_INPUT;
    }
    for (int i = 3; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        const char *key = arena_printf(&arena, "%.*s", value ? (int)(value - argv[i]) : 0, argv[i]);
        vec_push(&overrides, (struct scenario_override){key, value ? value + 1 : argv[i]});
    }
    scenario_load(&set, argv[2], overrides.at, overrides.n, &arena, &loaded);
    if (loaded.worst == STATUS_OK)
        write_point(argv[1], &set.points[0], &arena, &diag);
    int status = cli_report(loaded.worst == STATUS_OK ? &diag : &loaded);
    vec_free(&overrides);
    arena_release(&arena);
    return status;
}

int interop_compress(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    char bytes[1 << 16];
    ssize_t n = 0;
    errno = 0;
    gzFile out = gzdopen(dup(STDOUT_FILENO), "wb"); /* it closes what it gets */
    int why = out ? 0 : errno ? errno : ENOMEM;
    while ((n = read(STDIN_FILENO, bytes, sizeof bytes)) != 0) { /* to its end, whatever has failed */
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (why == 0 && gzwrite(out, bytes, (unsigned)n) != n)
            why = errno ? errno : EIO;
    }
    errno = 0;
    if (out && gzclose(out) != Z_OK && why == 0)
        why = errno ? errno : EIO;
    return why;
}
