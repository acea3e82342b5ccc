/* How sure a prediction is: where nine of ten measured runs of such jobs are, looked up in one
 * file.
 *
 * The file is topologies/fitted/sure.yaml; validate/sure_fit.h makes it from the published runs of
 * results/ and says how well it holds for a maker of whom it has no run. A user is such a maker, so
 * makers are what is exchangeable: each weighs the same, and quantiles leave room for one more
 * (split-conformal, 1 + 1 / makers).
 *
 * Of a speed the logarithm of measured / predicted is in nine of ten cases between -low and +high,
 * one of twenty beyond each:
 *   low = slower exp(sum of coefficients x terms of that side), high = faster exp(...)
 * with terms that make a prediction hard (enum sure_term). Of a GPU of whose generation no run was
 * measured both are wider by what leaving a whole generation out asks (new_slower, new_faster).
 *
 * Of the ratio of two speeds on one curve (the same job on other numbers of GPUs), what is wrong
 * with both cancels: the logarithm is between -slower and +faster, times the root of the doublings
 * of GPUs; data parallelism alone, and jobs whose ranks share a model, each by its own runs. What
 * curves of DDP and FSDP lose beyond what is predicted, in the mean, stands beside (loss): no
 * mechanism here has it, and flopcast waterfall names it.
 *
 * Of a peak of memory: the logarithm of measured / predicted by quantiles of runs, makers alike.
 *
 * With a measurement of one's own (sure_measure): errors of one maker go together. The file has by
 * how much, of jobs of one maker (enum sure_kin), as the slope of one error over another. Errors
 * over the half widths of their intervals are taken as jointly normal with these correlations, an
 * own part that nothing else shares (measurements vary, too); a prediction is then shifted by the
 * conditional mean, and its interval is narrower by the conditional standard deviation, times what
 * left-out makers ask for (given_wider).
 *
 * Ignored: framework, model, batch and sequence beyond what they do to MFU. Luck of a run and
 * errors of numbers are in the runs' errors themselves. */
#ifndef FLOPCAST_SCENARIO_SURE_H
#define FLOPCAST_SCENARIO_SURE_H

#include "scenario/scenario.h"

enum sure_term {
    SURE_LOW_MFU,   /* slower: ln(40 % / MFU), 0 to 1.5: what waits or is not a product is less well
                       known */
    SURE_FP8,       /* slower: 1 of products in FP8 or FP4 */
    SURE_NODES,     /* slower: doublings from one node to the job's GPUs */
    SURE_BLACKWELL, /* faster: 1 of this generation, whose kernels still become faster */
    SURE_TENSOR,    /* faster: 1 of tensor parallelism */
    SURE_TERMS
};
enum {
    SURE_SLOWER_TERMS = SURE_BLACKWELL
}; /* those below are of the slower side, the others of the faster one */
extern const char *const sure_term_names[SURE_TERMS + 1]; /* "low_mfu", ...: keys of the file */

struct sure_terms {
    double of[SURE_TERMS];
};
/* mfu: a fraction; nodes: of the job, 1 at least in effect; precision and arch as precision_names
 * and hw_archs. */
struct sure_terms sure_terms(
    double mfu, const char *precision, double nodes, const char *arch, bool tensor);

enum sure_kin {
    SURE_MAKER,  /* of one maker, or user */
    SURE_MODEL,  /* of one model, GPU and framework, too */
    SURE_LAYOUT, /* in the same strategy with the same axes of parallelism, too */
    SURE_JOB,    /* which differ in the number of GPUs alone */
    SURE_KINS
};

struct sure_evidence { /* errors |predicted / measured - 1| of runs on one generation */
    const char *generation;
    int64_t runs, makers;
    double median, p90;
};

enum { SURE_QUANTILES = 19 }; /* of 5, 10, ... 95 % */
struct sure_numbers {
    int64_t runs, makers; /* of speeds */
    double slower, faster, of[SURE_TERMS], new_slower, new_faster;
    struct sure_ratios {
        int64_t runs, makers;
        double slower, faster;
    } ratios[2]; /* of data parallelism alone; of jobs whose ranks share a model */
    struct sure_loss {
        int64_t runs, makers;
        double value,
            std_error; /* shares of the speed on the smallest cluster; below 0: curves lose less */
    } loss;
    double alike[SURE_KINS], given_wider; /* of SURE_JOB by one doubling of GPUs */
    int64_t peak_runs, peak_makers;
    double peak[SURE_QUANTILES];
    struct sure_evidence *generations; /* in the arena */
    int n_generations;
};
extern const struct config_table sure_table;
enum status sure_load(
    struct sure_numbers *out, const char *path, struct arena *arena, struct diag *diag);
/* flopcast's own file. False: it cannot be read, and nothing is known. */
bool sure_load_own(struct sure_numbers *out, struct arena *arena);

/* Factors of a prediction: between low and high are nine of ten measurements, half of them above
 * middle, which is 1 unless something was measured. */
struct sure_range {
    bool known;
    double low, high, middle;
};
/* known: runs of the job's generation were measured. */
struct sure_range sure_speed(
    const struct sure_numbers *numbers, const struct sure_terms *terms, bool known);
struct sure_range sure_ratio(const struct sure_numbers *numbers, bool shared, double doublings);
struct sure_range sure_peak(const struct sure_numbers *numbers);
/* The share of cases in which a job with this predicted peak stays within the capacity; between the
 * outermost quantiles, so 5 to 95 %. */
double sure_fits(const struct sure_numbers *numbers, double peak, double capacity);
/* The correlation of the errors of two jobs; doublings: of GPUs between them, of SURE_JOB. */
double sure_alike(const struct sure_numbers *numbers, enum sure_kin kin, double doublings);
/* What n measurements make of a range. scaled: their errors by sure_scaled(); with: how alike they
 * are to the job; among: to each other, n x n. */
void sure_given(struct sure_range *range, const struct sure_numbers *numbers, int n,
    const double *scaled, const double *with, const double *among);
/* ln(measured / predicted) over the half of the range that it lies in. */
double sure_scaled(const struct sure_range *range, double error);
/* Of this generation (hw_archs); NULL: no run. */
const struct sure_evidence *sure_evidence(const struct sure_numbers *numbers, const char *arch);

/* The file, read when it is first asked, and what was asked of it. Zeroed at first; sure_end()
 * frees. Where the file cannot be read, nothing is known. Of one thread. */
struct sure {
    struct arena arena;
    bool read, known;
    struct sure_numbers numbers;
    VEC(struct sure_asked *) asked;  /* each generation once, in the order in which it was asked */
    bool asked_peak, asked_ratio[2]; /* of sure_numbers.ratios */
    VEC(struct sure_measured) measured;
};
struct sure_measured {
    const struct scenario_point *point;
    double ratio;            /* measured / predicted speed */
    struct sure_range range; /* without any measurement */
};
struct sure_asked {
    const char *arch;
    const struct sure_evidence *evidence; /* NULL: no run */
    struct sure_range narrowest, widest;  /* of the points that were asked for */
    int64_t narrowest_gpus, widest_gpus;  /* their GPUs */
    bool given;                           /* what was measured */
};
/* A measurement of one's own, for all that is asked for afterwards. The point must live as long as
 * sure. Returns its range without any measurement. */
struct sure_range sure_measure(struct sure *sure, const struct scenario_point *point,
    const struct scenario_result *predicted, double ratio);
/* Lives as long as sure. mfu: what the point's simulation gave. */
const struct sure_range *sure_of_speed(
    struct sure *sure, const struct scenario_point *point, double mfu);
const struct sure_range *sure_of_peak(struct sure *sure);
/* What a run takes of a GPU at its fullest: reserved by the allocator, with CUDA context and NCCL.
 */
double sure_peak_bytes(const struct exec_memory *memory);
/* sure_fits(); 0 or 1 by the peak alone where nothing is known. */
double sure_of_fit(struct sure *sure, double peak, double capacity);
/* Of the ratio of the point's speed to that on a cluster of this many doublings fewer GPUs. */
struct sure_range sure_of_ratio(
    struct sure *sure, const struct scenario_point *point, double doublings);
/* Whether sure_numbers.loss is of such jobs: DDP or FSDP, alone. */
bool sure_is_data_parallel(const struct scenario *options);
/* Sets the results' interval of speeds. */
void sure_set(
    struct sure *sure, const struct scenario_point *points, struct scenario_result *results, int n);
void sure_end(struct sure *sure);

/* "9 of 10 measured speeds of such jobs lay -14 to +13 % beside the prediction: 2289 runs of ...":
 * the intervals that were asked for on a generation, and what they rest on. */
const char *sure_sentence(
    struct arena *arena, const struct sure_numbers *numbers, const struct sure_asked *asked);
const char *sure_peak_sentence(struct arena *arena, const struct sure_numbers *numbers);
const char *sure_ratio_sentence(
    struct arena *arena, const struct sure_numbers *numbers, bool shared);

/* Digits behind the point, below 0 before it, `most` at most, of which the last is worth at most a
 * twentieth of half the interval. */
int sure_digits(double low, double high, int most);

#endif
