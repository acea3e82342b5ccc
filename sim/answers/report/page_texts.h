/* Private to report: files of this folder that are made C strings by the build: the page's style
 * and script, and the queries behind its parts, after store_show(). */
#ifndef FLOPCAST_REPORT_PAGE_TEXTS_H
#define FLOPCAST_REPORT_PAGE_TEXTS_H

extern const char page_css[], page_js[], page_answer_sql[], page_run_sql[], page_results_sql[],
    page_steps_sql[], page_losses_sql[], page_waterfall_sql[], page_memory_sql[],
    page_samples_sql[], page_settings_sql[], page_given_sql[], page_points_sql[], page_job_sql[],
    page_trace_sql[], page_months_sql[], page_totals_sql[];

#endif
