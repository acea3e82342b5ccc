/* What tables of embeddings add to plans. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

static int64_t kept(const struct plan *plan, const char *name)
{
    int64_t bytes = 0;
    for (int i = 0; i < plan->programs->setup.n; i++) {
        const struct plan_buffer *buffer = &plan->programs->buffers.at[plan->programs->setup.at[i]];
        bytes += strcmp(buffer->name, name) == 0 ? buffer->bytes : 0;
    }
    return bytes;
}

/* DHEN's tables lie on the ranks in equal shares, with the optimizer's state; an all_to_all of
 * features a micro-step each way under every strategy, over all ranks; none on one. It shares
 * FSDP's NCCL stream where FSDP shares the default process group: unless there are replicas, here
 * from 16 ranks on, whose nodes shard. */
static void tables_exchange_features(void **state)
{
    (void)state;
    enum { MICRO_STEPS = 2, NODE = 8 };
    static const int counts[] = {1, NODE, 2 * NODE};
    for (int kind = 0; kind < STRATEGY_INTERNEVO; kind++)
        for (int sharding = 0; sharding < (kind == STRATEGY_FSDP ? SHARDING_COUNT : 1); sharding++)
            for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
                int ranks = counts[n];
                struct strategy_options options = options_of(sharding);
                options.kind = kind;
                options.fsdp.sharding_group_size = ranks < NODE ? ranks : 0;
                options.train.grad_accum = MICRO_STEPS;
                options.train.seq_len = small_dhen.dhen.features;
                bool hybrid = kind == STRATEGY_FSDP &&
                              (sharding == HYBRID_SHARD || sharding == HYBRID_SHARD_ZERO2);
                bool replicas = hybrid && ranks > NODE;
                struct compiled c;
                char why[256] = "";
                compile(&c, &options, &small_dhen, ranks);
                if (!plan_check(&c.plan, why, sizeof why))
                    fail_msg("%s, %d ranks: %s", strategy_label(&options), ranks, why);
                assert_true(kept(&c.plan, "tables") == model_table_bytes(&small_dhen, ranks));
                assert_true(kept(&c.plan, "tables/rowwise_adagrad") ==
                            model_table_state_bytes(&small_dhen, ranks));
                assert_int_equal(count(&c.plan, COLL_ALL_TO_ALL), ranks > 1 ? 2 * MICRO_STEPS : 0);
                for (int o = 0; o < c.plan.programs[0].ops.n; o++) {
                    const struct plan_op *op = &c.plan.programs[0].ops.at[o];
                    if (op->kind != OP_COLLECTIVE)
                        continue;
                    const struct plan_collective *at = &c.plan.collectives.at[op->index];
                    if (at->kind != COLL_ALL_TO_ALL)
                        continue;
                    assert_int_equal(c.plan.groups.at[at->group].ranks.size, ranks);
                    assert_int_equal(op->stream, replicas ? STREAM_REPLICATE : STREAM_COMM);
                }
                drop(&c);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_exchange_features)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
