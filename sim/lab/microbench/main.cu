/* flopcast_measure: its command line. sim/lab/microbench/README.md says what it measures and how.
 */
#include "microbench/microbench.h"

#include <algorithm>
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

namespace {

const int EXIT_NO_GPU = 77; /* what automake and CTest take for "skipped" */
const int EXIT_USAGE = 2;   /* as flopcast's own commands */

const struct category {
    const char *name, *what;
    void (*measure)(measure_session &);
} categories[] = {
    {"launch", "what the host pays to launch, to wait and to order streams", measure_launching},
    {"allocation", "cudaMalloc, cudaFree, a refusal and its retry", measure_allocation},
    {"memory", "what the context and cuBLAS take", measure_memory},
    {"hbm", "copy, scale and triad by size and by the number of SMs that draw", measure_hbm},
    {"transfer", "copies between host and GPU, pinned and pageable, and between GPUs",
        measure_transfer},
    {"norm", "layer norm and RMS norm", measure_norm},
    {"elementwise", "add, GELU, dropout, cast", measure_elementwise},
    {"embedding", "rows of a table, gathered", measure_embedding},
    {"loss", "cross-entropy with its gradient", measure_loss},
    {"attention", "the passes of naive attention over its scores, one by one and fused",
        measure_attention},
    {"optimizer", "steps of AdamW, fused and as the passes of _foreach operations, SGD and Lion",
        measure_optimizer},
    {"gemm", "matrix products of the project's models: fp32, tf32, bf16, fp16, fp8, int8",
        measure_gemm},
    {"overlap", "a GEMM and a copy beside a copy that holds some SMs", measure_overlap},
    {"nccl",
        "collectives on all GPUs, alone and beside a GEMM (rows of overlap); the communicator's "
        "memory",
        measure_nccl},
    {"sustained", "one large GEMM for half a minute, with clocks, against the same after a rest",
        measure_sustained},
};

struct command {
    const char *out, *date;
    bool list, dry_run;
    double sustain_s;
    std::vector<std::string> only;
};

enum { KEY_OUT = 256, KEY_DATE, KEY_ONLY, KEY_LIST, KEY_DRY_RUN, KEY_SUSTAIN };

const argp_option options[] = {
    {"out", KEY_OUT, "FILE", 0, "Write the CSV here (default: standard output)", 0},
    {"date", KEY_DATE, "YYYY-MM-DD", 0, "The date that every row shall carry", 0},
    {"only", KEY_ONLY, "CATEGORY", 0, "Measure this category only; may be repeated", 0},
    {"sustain", KEY_SUSTAIN, "SECONDS", 0, "How long each sustained run lasts (default: 30)", 0},
    {"list", KEY_LIST, NULL, 0, "Print the categories and stop", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Write every row without measuring; needs no GPU", 0},
    {},
};

bool is_category(const char *name)
{
    return std::any_of(std::begin(categories), std::end(categories),
        [=](const category &c) { return strcmp(c.name, name) == 0; });
}

bool is_date(const char *text)
{
    const char *pattern = "dddd-dd-dd";
    if (strlen(text) != strlen(pattern))
        return false;
    for (; *pattern; pattern++, text++)
        if (*pattern == 'd' ? *text < '0' || *text > '9' : *text != *pattern)
            return false;
    return true;
}

error_t parse(int key, char *arg, argp_state *state)
{
    auto c = (command *)state->input;
    char *end = NULL;
    switch (key) {
    case KEY_OUT:
        c->out = arg;
        return 0;
    case KEY_DATE:
        if (!is_date(arg))
            argp_error(state, "--date %s: a date as 2026-01-31 is wanted", arg);
        c->date = arg;
        return 0;
    case KEY_ONLY:
        if (!is_category(arg))
            argp_error(state, "--only %s: there is no such category; --list names them", arg);
        c->only.push_back(arg);
        return 0;
    case KEY_SUSTAIN:
        c->sustain_s = strtod(arg, &end);
        if (end == arg || *end || !(c->sustain_s >= 1 && c->sustain_s <= 3600))
            argp_error(state, "--sustain %s: 1 to 3600 seconds are wanted", arg);
        return 0;
    case KEY_LIST:
        c->list = true;
        return 0;
    case KEY_DRY_RUN:
        c->dry_run = true;
        return 0;
    case ARGP_KEY_END:
        if (!c->list && !c->dry_run && !c->date)
            argp_error(state, "--date is missing: a measurement without a date is no record");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int measure(const command &c, FILE *out)
{
    measure_session session = {};
    session.out = out;
    session.dry_run = c.dry_run;
    session.sustain_s = c.sustain_s;
    snprintf(session.date, sizeof session.date, "%s", c.date ? c.date : "");
    measure_begin(session);
    measure_header(session);
    for (const category &each : categories)
        if (c.only.empty() || std::find(c.only.begin(), c.only.end(), each.name) != c.only.end())
            each.measure(session);
    measure_end(session);
    return ferror(out) ? 1 : 0;
}

} // namespace

int main(int argc, char **argv)
{
    argp_err_exit_status = EXIT_USAGE;
    const argp parser = {options, parse, NULL,
        "Measure this machine's GPU 0 (collectives: all GPUs) for flopcast and write one CSV, "
        "which `flopcast calibrate import measure` reads.\vExit status: 0 measured, 77 no GPU, 2 "
        "usage, 1 any other fault. Let nothing else run on the GPU. All categories take some ten "
        "minutes (estimated).",
        NULL, NULL, NULL};
    command c = {NULL, NULL, false, false, 30, {}};
    int gpus = 0;
    argp_parse(&parser, argc, argv, 0, NULL, &c);
    if (c.list) {
        for (const category &each : categories)
            printf("%-11s %s\n", each.name, each.what);
        return 0;
    }
    cudaError_t found = c.dry_run ? cudaSuccess : cudaGetDeviceCount(&gpus);
    if (!c.dry_run && (found != cudaSuccess || gpus == 0)) {
        fprintf(stderr, "flopcast_measure: no GPU here (%s); nothing measured\n",
            found == cudaSuccess ? "CUDA finds none" : cudaGetErrorString(found));
        return EXIT_NO_GPU;
    }
    FILE *out = c.out ? fopen(c.out, "w") : stdout;
    if (!out) {
        fprintf(stderr, "flopcast_measure: error: cannot write %s: %s\n", c.out, strerror(errno));
        return 1;
    }
    int status = measure(c, out);
    if (fclose(out) != 0 || status != 0) {
        fprintf(stderr, "flopcast_measure: error: cannot write %s\n",
            c.out ? c.out : "standard output");
        return 1;
    }
    return 0;
}
