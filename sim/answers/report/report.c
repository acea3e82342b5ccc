/* A figure: a script for gnuplot from a database, its picture to a file or stdout.
 *
 * The name of the file says what is drawn. With keep_script the script goes to OUT.gp, with the
 * picture's name in it. An SVG is scaled by width and height of its root, as gnuplot scales
 * neither its points nor its lines. The picture is held in memory and written last, so a failure
 * of gnuplot leaves an old file as it was. */
#include "report/report.h"

#include "base/arena.h"
#include "base/file_write.h"
#include "report/gnuplot.h"
#include "report/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* OUT.gp: the same script, with the picture's name put in (in single quotes gnuplot evaluates
 * nothing but '' ). */
static enum status keep_script(const char *out_path, const char *script, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&text, &n);
    fputs("set output '", out);
    for (const char *c = out_path; *c; c++)
        fputs(*c == '\'' ? "''" : (char[]){*c, '\0'}, out);
    fprintf(out, "'\n%s", script);
    fclose(out);
    enum status status = file_write(arena_printf(&arena, "%s.gp", out_path), text, n, diag);
    free(text);
    arena_release(&arena);
    return status;
}

/* gnuplot scales neither points nor lines of an SVG; a viewer scales all of it. */
static void set_svg_size(char **svg, size_t *n, struct report_size size)
{
    char *at = strstr(*svg, "<svg "), *scaled = NULL;
    if (!at)
        return;
    FILE *out = xmemstream(&scaled, n);
    at += strlen("<svg");
    fprintf(out, "%.*s width=\"%.6g\" height=\"%.6g\"%s", (int)(at - *svg), *svg, size.width,
        size.height, at);
    fclose(out);
    free(*svg);
    *svg = scaled;
}

enum status report_plot(const struct report_plot *plot, struct diag *diag)
{
    bool to_stdout = strcmp(plot->out, "-") == 0;
    enum script_kind kind;
    if (!script_draws(plot->out, &kind))
        return diag_input(diag, (struct source_pos){.file = plot->out},
            "this name does not say what to draw; it must end in .png, .svg or .pdf, or be -");
    if (strchr(plot->figure, '/'))
        return diag_input(diag, (struct source_pos){0},
            "'%s' is no figure; give a name as in: flopcast plot t5_scaling", plot->figure);
    if (to_stdout && plot->keep_script)
        return diag_input(diag, (struct source_pos){0},
            "--keep-script needs a picture file beside which to put the script; give --out FILE");
    char *script = NULL, *picture = NULL;
    size_t n = 0;
    enum status status = script_make(&script, plot, diag);
    if (status == STATUS_OK && plot->keep_script)
        status = keep_script(plot->out, script, diag);
    if (status == STATUS_OK)
        status = gnuplot_run(&picture, &n, script, diag);
    if (status == STATUS_OK && kind == SCRIPT_SVG && plot->size.width > 0)
        set_svg_size(&picture, &n, plot->size);
    if (status == STATUS_OK && to_stdout)
        fwrite(picture, 1, n, stdout); /* the caller sees to errors of stdout when it closes it */
    else if (status == STATUS_OK)
        status = file_write(plot->out, picture, n, diag);
    free(script);
    free(picture);
    return status;
}
