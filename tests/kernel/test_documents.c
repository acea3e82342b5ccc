/* Documents of packed sequences: what is drawn, what is expected of it, and what attention makes of
 * it. */
#include "kernel/attention.h"
#include "kernel/documents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"
#include "../number.h"

#include <string.h>

static struct documents read(struct document_options options, int64_t seq_len, struct arena *arena)
{
    struct documents documents;
    char why[DOCUMENTS_WHY] = "";
    if (!documents_read(&documents, &options, seq_len, arena, why))
        fail_msg("%s", why);
    return documents;
}

static double drawn(const struct documents *documents, uint64_t number)
{
    struct rng_stream stream = rng_stream(1, 1, number);
    return documents_draw(documents, &stream);
}

/* n documents of s / n tokens leave 1 / n of the pairs; what is left over at the end is a document,
 * too: 1,000 tokens are 3 x 300 + 100. */
static void documents_alike_have_one_share(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const struct {
        double mean;
        int64_t seq_len;
        double share;
    } cases[] = {{4096, 4096, 1}, {2048, 4096, 0.5}, {512, 4096, 0.125}, {1, 64, 1.0 / 64},
        {300, 1000, 0.28}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct documents documents =
            read((struct document_options){.mean = cases[c].mean}, cases[c].seq_len, &arena);
        assert_int_equal(documents.n, 1);
        assert_true(drawn(&documents, 7) == cases[c].share);
        assert_true(documents_mean(&documents) == cases[c].share);
    }
    struct documents none = read((struct document_options){0}, 4096, &arena);
    assert_int_equal(none.n, 0);
    arena_release(&arena);
}

/* A fixed number N of documents, with c their coefficient of variation: tokens vary by c / sqrt(N),
 * their mean is 1; pairs are E(l^2) / (m seq_len). By hand of lengths 32 and 64, alike often: m =
 * 48, E(l^2) = 2560, c = 1/3; 12 sequences of 64 tokens have N = 16. Log-normal ones of 1024 and
 * 768: 2 sequences of 16384 tokens have N = 32. */
static void a_fixed_number_of_documents(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct documents two =
        read((struct document_options){.lengths = "32, 64", .packing = DOCUMENTS_FIXED_NUMBER}, 64,
            &arena);
    assert_near(two.fixed_number, 48, 1e-6);
    assert_near(documents_mean(&two), 2560.0 / (48 * 64), 1e-6);
    struct documents wide =
        read((struct document_options){.mean = 1024, .sd = 768, .packing = DOCUMENTS_FIXED_NUMBER},
            16384, &arena);
    const struct {
        const struct documents *documents;
        int32_t sequences;
        double deviation; /* c / sqrt(N) */
    } cases[] = {{&two, 12, 1.0 / 3 / 4}, {&two, 3, 1.0 / 3 / 2}, {&wide, 2, 0.75 / 5.656854},
        {&wide, 8, 0.75 / 11.313708}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int draws = 20000;
        double sum = 0, squares = 0, pairs = 0;
        for (int i = 0; i < draws; i++) {
            struct rng_stream stream = rng_stream(1, 1, (uint64_t)i);
            double tokens = 0;
            pairs +=
                documents_draw_number(cases[c].documents, &stream, cases[c].sequences, &tokens) /
                draws;
            sum += tokens / draws;
            squares += tokens * tokens / draws;
        }
        assert_near(sum, 1, 0.005);
        assert_near(sqrt(squares - sum * sum) / cases[c].deviation, 1, 0.03);
        assert_near(pairs / documents_mean(cases[c].documents), 1, 0.01);
    }
    arena_release(&arena);
}

/* Halves with probability p, else whole sequences: a sequence that begins with a half is two of
 * them, as what follows is cut. Thirds and two thirds, alike: 2 1, 1 1 1, 1 2 and 1 1 with a cut 2.
 */
static void means_of_two_lengths(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct documents halves = read((struct document_options){.lengths = "32=3, 64=1"}, 64, &arena);
    assert_near(documents_mean(&halves), 0.75 * 0.5 + 0.25, 1e-9);
    struct documents thirds =
        read((struct document_options){.lengths = " 30 , 60 = 1 "}, 90, &arena);
    assert_near(documents_mean(&thirds), (0.5 * 5 + 0.25 * 3 + 0.125 * 0 + 0.25 * 5) / 9, 1e-9);
    arena_release(&arena);
}

/* Many draws have the mean; each is one of the sums of squares that there are. */
static void draws_have_the_mean(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    struct arena arena = ARENA_INIT;
    const struct document_options cases[] = {
        {.mean = 300, .sd = 50}, {.mean = 800, .sd = 1600}, {.lengths = "7, 900"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct documents documents = read(cases[c], 2048, &arena);
        double sum = 0, squares = 0;
        for (int i = 0; i < DRAWS; i++) {
            double share = drawn(&documents, (uint64_t)i);
            assert_true(share > 0 && share <= 1);
            sum += share;
            squares += share * share;
        }
        double mean = sum / DRAWS, error = sqrt((squares / DRAWS - mean * mean) / DRAWS);
        assert_near(mean, documents_mean(&documents), 4 * error);
    }
    arena_release(&arena);
}

/* The list has the moments that were asked for, where nothing is cut: long sequences have E(l^2) /
 * E(l) keys a position, and edges. */
static void log_normal_lengths_have_their_moments(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const double deviations[] = {20, 500, 1000, 2000};
    for (size_t c = 0; c < sizeof deviations / sizeof *deviations; c++) {
        struct documents documents = read(
            (struct document_options){.mean = 1000, .sd = deviations[c]}, INT64_C(1) << 24, &arena);
        double mean = 0, square = 0, before = 0;
        for (int i = 0; i < documents.n; i++) {
            double p = documents.lengths[i].up_to - before,
                   tokens = (double)documents.lengths[i].tokens;
            mean += p * tokens;
            square += p * tokens * tokens;
            before = documents.lengths[i].up_to;
        }
        assert_near(mean, 1000, 0.5);
        assert_near(sqrt(square - mean * mean), deviations[c], 0.002 * deviations[c] + 0.1);
    }
    arena_release(&arena);
}

static void bad_documents_are_refused(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const struct {
        struct document_options options;
        const char *why;
    } cases[] = {
        {{.mean = 4097}, "documents of 4097 tokens in sequences of 4096; use at most that many"},
        {{.mean = 8, .lengths = "8"}, "leave one of them out"},
        {{.lengths = "8, x"}, "'x' is no length"}, {{.lengths = "4097"}, "1 to seq_len, 4096"},
        {{.lengths = "0"}, "'0' is no"}, {{.lengths = "8=0"}, "'8=0' is no"},
        {{.lengths = "8=-1"}, "'8=-1' is no"}, {{.lengths = "8.5"}, "whole tokens"},
        {{.lengths = ""}, "'' is no"}, {{.lengths = "8,"}, "'' is no"},
        {{.lengths = "8 16"}, "'8 16' is no"}, {{.lengths = "8=nan"}, "is no length"},
        {{.lengths = "8=1e308, 9=1e308"}, "'8=1e308, 9=1e308' is no"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct documents documents;
        char why[DOCUMENTS_WHY] = "";
        if (documents_read(&documents, &cases[c].options, 4096, &arena, why) ||
            !strstr(why, cases[c].why))
            fail_msg("case %zu: %s", c, why);
        assert_int_equal(documents.n, 0);
    }
    arena_release(&arena);
}

static const struct hw_gpu gpu = {
    .name = "ten SMs",
    .sms = NUMBER(10),
    .hbm_bandwidth = NUMBER(200e9),
    .hbm_efficiency = NUMBER(1),
    .vector_flops = NUMBER(1e12),
    .memory_sms = NUMBER(10),
    .attention_efficiency = NUMBER(0.5),
    .attention_overhead = NUMBER(100),
    .gemm[DTYPE_BF16] = {.peak = NUMBER(1e12), .efficiency = NUMBER(1)},
};

static struct kernel_work attention(int64_t seq_len, int64_t batch, double pairs)
{
    double left = (double)batch * (double)seq_len * (double)seq_len * (pairs > 0 ? pairs : 1);
    return (struct kernel_work){.kind = KERNEL_ATTENTION,
        .math = DTYPE_BF16,
        .flop = 2 * left * 64,
        .m = seq_len,
        .n = seq_len,
        .k = 64,
        .batch = batch,
        .pairs = pairs,
        .causal = true};
}

/* Documents alike take what as many sequences of their length take; one document what the sequence
 * takes, to the bit. */
static void attention_of_documents_is_that_of_sequences(void **state)
{
    (void)state;
    struct kernel_work whole = attention(4096, 8, 0), one = attention(4096, 8, 1);
    assert_true(attention_compute_s(&whole, &gpu, 10) == attention_compute_s(&one, &gpu, 10));
    for (int64_t n = 2; n <= 32; n *= 2) {
        struct kernel_work packed = attention(4096, 8, 1 / (double)n),
                           apart = attention(4096 / n, 8 * n, 0);
        assert_near(attention_compute_s(&packed, &gpu, 10) / attention_compute_s(&apart, &gpu, 10),
            1, 1e-12);
    }
}

/* Three quarters or a quarter of the pairs, where the kernel counts a half. */
static void compute_goes_with_the_pairs(void **state)
{
    (void)state;
    struct kernel_work mean = attention(4096, 8, 0.5);
    double share = attention_pairs_share(&mean, &gpu),
           mean_s = attention_compute_s(&mean, &gpu, 10);
    assert_near(share, 2048.0 / (2048 + 128 + 200), 1e-12);
    for (int quarters = 1; quarters < 4; quarters += 2) {
        struct kernel_work other = attention(4096, 8, quarters / 4.0);
        assert_near(attention_compute_s(&other, &gpu, 10) / mean_s,
            1 + share * (other.pairs / mean.pairs - 1), 1e-12);
    }
    struct kernel_work whole = attention(4096, 8, 0);
    assert_true(attention_pairs_share(&whole, &gpu) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_alike_have_one_share),
        cmocka_unit_test(a_fixed_number_of_documents),
        cmocka_unit_test(means_of_two_lengths),
        cmocka_unit_test(draws_have_the_mean),
        cmocka_unit_test(log_normal_lengths_have_their_moments),
        cmocka_unit_test(bad_documents_are_refused),
        cmocka_unit_test(attention_of_documents_is_that_of_sequences),
        cmocka_unit_test(compute_goes_with_the_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
