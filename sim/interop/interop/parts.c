/* What `flopcast run` and `tune` leave to this program: chakra export, scenario emit, compress.
 * A scenario has been loaded and simulated there, so only what goes wrong here is said here.
 *
 *     chakra export FOLDER FILE [KEY=VALUE...]    of `run --chakra FOLDER` of one point
 *     scenario emit TRAINER OUT FILE TITLE KEY=VALUE... [+ TITLE KEY=VALUE...]...
 *                                                 of `tune --emit TRAINER`; OUT -: standard output
 *     compress                                    of `run --trace FILE.json.gz`
 *
 * Settings come as words KEY=VALUE. `emit` gets several candidates, each a title and its
 * settings, parted by SCENARIO_EMIT_OR, and writes the first that the trainer has options for;
 * if it has none, the reason of the first candidate is reported. `compress` is a filter: its
 * exit status is an errno, as its parent sees nothing else of it, and it reads to the end even
 * after a failure, so that the parent does not block. */
#include "base/file_write.h"
#include "exchange/chakra.h"
#include "exchange/emit.h"
#include "options/command.h"
#include "options/program.h"
#include "rows/words.h"
#include "scenario/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

COMMAND(chakra_export, 60, "chakra export", COMMAND_PART, "", NULL);
COMMAND(scenario_emit, 62, "scenario emit", COMMAND_PART, "", NULL);
COMMAND(interop_compress, 64, "compress", COMMAND_PART, "", NULL);

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

struct overrides_read {
    VEC(struct scenario_override) list;
};

static void take_override(struct overrides_read *out, const char *text, struct arena *arena)
{
    const char *value = strchr(text, '=');
    const char *key = arena_printf(arena, "%.*s", value ? (int)(value - text) : 0, text);
    vec_push(&out->list, (struct scenario_override){key, value ? value + 1 : text});
}

int chakra_export(int argc, char **argv)
{
    struct arena arena = ARENA_INIT;
    struct diag loaded = DIAG_INIT, diag = DIAG_INIT;
    struct scenario_set set = {0};
    struct overrides_read overrides = {0};
    if (argc < 3) {
        fputs("flopcast chakra export: error: FOLDER FILE [KEY=VALUE...] is wanted\n", stderr);
        return CLI_INPUT;
    }
    for (int i = 3; i < argc; i++)
        take_override(&overrides, argv[i], &arena);
    scenario_load(&set, argv[2], overrides.list.at, overrides.list.n, &arena, &loaded);
    if (loaded.worst == STATUS_OK)
        write_point(argv[1], &set.points[0], &arena, &diag);
    int status = cli_report(loaded.worst == STATUS_OK ? &diag : &loaded);
    vec_free(&overrides.list);
    arena_release(&arena);
    return status;
}

/* ---- of tune ---- */

static enum status parts_write_text(const char *path, const char *text, size_t n, struct diag *diag)
{
    if (strcmp(path, "-") == 0)
        return fwrite(text, 1, n, stdout) == n
                   ? STATUS_OK
                   : diag_io(diag, (struct source_pos){.file = path}, "cannot write it");
    return file_write(path, text, n, diag);
}

/* One candidate, as a text; false: the trainer has no option for some of it, which is said in diag.
 */
static bool emit_one(char **text, size_t *n, enum configuration_format trainer, const char *file,
    const char *title, const struct overrides_read *overrides, struct arena *arena,
    struct diag *diag)
{
    struct scenario_set set = {0};
    struct diag loaded = DIAG_INIT;
    if (scenario_load(&set, file, overrides->list.at, overrides->list.n, arena, &loaded) !=
        STATUS_OK) {
        diag_merge(diag, &loaded);
        return false;
    }
    if (!emit_can(trainer, &set.points[0])) {
        diag_input(diag, (struct source_pos){.file = file},
            "nothing that ran is %s's: of megatron it is strategy megatron, of torchtitan and "
            "automodel FSDP2, as in --strategy fsdp2",
            configuration_format_names[trainer]);
        return false;
    }
    FILE *out = xmemstream(text, n);
    enum status status = emit_configuration(out, trainer, &set.points[0], title, diag);
    fclose(out);
    return status == STATUS_OK;
}

int scenario_emit(int argc, char **argv)
{
    struct arena arena = ARENA_INIT;
    struct diag why = DIAG_INIT, diag = DIAG_INIT;
    int trainer = 0;
    while (argc > 1 && trainer < CONFIGURATION_FORMAT_COUNT &&
           strcmp(configuration_format_names[trainer], argv[1]) != 0)
        trainer++;
    if (argc < 5 || trainer == CONFIGURATION_FORMAT_COUNT) {
        fputs("flopcast scenario emit: error: TRAINER OUT FILE TITLE KEY=VALUE... is wanted\n",
            stderr);
        return CLI_INPUT;
    }
    bool found = false;
    for (int i = 4, tried = 0; i < argc && !found; i++, tried++) {
        struct overrides_read overrides = {0};
        struct diag own = DIAG_INIT;
        char *text = NULL;
        size_t n = 0;
        const char *title = argv[i];
        while (i + 1 < argc && strcmp(argv[++i], SCENARIO_EMIT_OR) != 0)
            take_override(&overrides, argv[i], &arena);
        found = emit_one(&text, &n, (enum configuration_format)trainer, argv[3], title, &overrides,
            &arena, &own);
        if (found)
            parts_write_text(argv[2], text, n, &diag);
        else if (tried == 0)
            diag_merge(&why, &own);
        free(text);
        vec_free(&overrides.list);
    }
    int status = cli_report(found ? &diag : &why);
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
    while (
        (n = read(STDIN_FILENO, bytes, sizeof bytes)) != 0) { /* to its end, whatever has failed */
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
