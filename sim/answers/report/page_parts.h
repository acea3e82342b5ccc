/* Private to report: the parts of a page about one run. */
#ifndef FLOPCAST_REPORT_PAGE_PARTS_H
#define FLOPCAST_REPORT_PAGE_PARTS_H

#include "report/html.h"
#include "report/page.h"
#include "store/shown.h"

#include <stdbool.h>
#include <stdint.h>

/* What drawing has shown: a picture, or that there can be none, which the page has said. */
struct page_gnuplot {
    bool works, is_missing;
};

struct page_run {
    const struct report_page *page;
    FILE *out;
    struct store *store; /* shows this run only */
    int64_t id;
    const char *scenario, *file, *version;
    long gpu_counts; /* how many differ */
    bool oom;        /* all of its points are out of memory */
    bool explained;  /* the scenario has a waterfall */
    struct page_gnuplot *gnuplot;
    struct arena *arena;
};

/* A figure of the choice, where it stands; from_s = to_s: all of it. A note in its place says why
 * it is not drawn. */
struct page_picture {
    const char *figure;
    struct store_choice choice;
    double from_s, to_s;
};
void page_picture(
    const struct page_run *run, const struct page_picture *picture, struct diag *diag);
/* Of the run. */
void page_figure(const struct page_run *run, const char *figure, struct diag *diag);

/* A query's rows, for html_free() in any case. */
enum status page_ask(
    struct html_rows *rows, struct store *store, const char *sql, struct diag *diag);

/* Each is a section with its heading. */
enum status page_answer(const struct page_run *run, struct diag *diag);
enum status page_results(const struct page_run *run, struct diag *diag);
enum status page_steps(const struct page_run *run, struct diag *diag);
enum status page_losses(const struct page_run *run, struct diag *diag);
enum status page_memory(const struct page_run *run, struct diag *diag);
enum status page_timeline(const struct page_run *run, struct diag *diag);
enum status page_samples(const struct page_run *run, struct diag *diag);
enum status page_dependence(const struct page_run *run, struct diag *diag);
enum status page_months(const struct page_run *run, struct diag *diag);
enum status page_evidence(const struct page_run *run, struct diag *diag);
enum status page_settings(const struct page_run *run, struct diag *diag);
enum status page_repeat(const struct page_run *run, struct diag *diag);

#endif
