/* What ASTRA-sim asserts of a workload, held for what is written: it aborts where one of these does
 * not hold.
 *   groups      CommunicatorGroup::set_id(): id > 0; comm_groups.json names every group of a node,
 *               and its ranks hold the rank of the file
 *   nodes       what a node depends on is in the file
 *   messages    to every send there is one receive of the same source, target, tag and size
 *   system.json endpoint-delay is not 0 */
#include "exchange/chakra.h"
#include "config/config.h"
#include "scenario/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "traces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct messages {
    double sum;
    int n[2]; /* sends, receives */
};

/* Order does not matter: each side adds what it knows of the message. */
static void add_message(struct messages *m, const struct chakra_node *node, int rank)
{
    bool sends = node->type == CHAKRA_SEND;
    double what =
        sin((double)node->source * 1.1 + (double)node->target * 2.3 + (double)node->tag * 3.7) +
        cos(node->comm_bytes * 1e-3);
    assert_true((sends ? node->source : node->target) == rank);
    assert_true(node->comm_bytes > 0);
    m->sum += sends ? what : -what;
    m->n[sends ? 0 : 1]++;
}

static void group_is_there(const struct config_doc *groups, const char *name, int rank)
{
    assert_non_null(name);
    struct config_node list = config_find(config_root(groups), name);
    assert_int_equal(config_kind(list), CONFIG_SEQUENCE);
    bool found = false;
    for (int i = 0; i < config_count(list); i++)
        found |= strtol(config_text(config_item(list, i)), NULL, 10) == rank;
    assert_true(found);
}

static int check_rank(
    const struct chakra_trace *trace, const struct config_doc *groups, int rank, struct messages *m)
{
    int collectives = 0;
    uint64_t last = 0;
    for (int i = 0; i < trace->nodes.n; i++) {
        const struct chakra_node *node = &trace->nodes.at[i];
        assert_true(i == 0 ||
                    node->id > last); /* so that an id below is of a node before, if it is there */
        last = node->id;
        for (int d = node->first_dep; d < node->first_dep + node->n_deps; d++) {
            bool there = false;
            for (int j = i; j > 0 && !there; j--)
                there = trace->nodes.at[j - 1].id == trace->deps.at[d];
            assert_true(there);
        }
        if (node->type == CHAKRA_COLL) {
            group_is_there(groups, node->group, rank);
            collectives++;
        } else if (node->type == CHAKRA_SEND || node->type == CHAKRA_RECV) {
            add_message(m, node, rank);
        }
    }
    return collectives;
}

static void check_groups(const struct config_doc *groups, int ranks)
{
    struct config_node root = config_root(groups);
    assert_true(config_count(root) > 0);
    for (int i = 0; i < config_count(root); i++) {
        assert_true(strtol(config_text(config_key(root, i)), NULL, 10) > 0);
        for (int m = 0; m < config_count(config_item(root, i)); m++)
            assert_true(
                strtol(config_text(config_item(config_item(root, i), m)), NULL, 10) < ranks);
    }
}

static void check_system(const char *folder, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct config_doc *doc = NULL;
    assert_int_equal(
        config_load(&doc, arena_printf(arena, "%s/system.json", folder), &diag), STATUS_OK);
    assert_true(strtod(config_text(config_find(config_root(doc), "endpoint-delay")), NULL) > 0);
    config_free(doc);
}

/* Its bandwidths are in 2^30 bytes a second, of a GPU: NVLink's, then its part of the node's NICs.
 */
static void check_network(const char *folder, const struct hw *hw, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct config_doc *doc = NULL;
    assert_int_equal(
        config_load(&doc, arena_printf(arena, "%s/network.yml", folder), &diag), STATUS_OK);
    struct config_node list = config_find(config_root(doc), "bandwidth");
    assert_int_equal(config_count(list), 2);
    double in_node = strtod(config_text(config_item(list, 0)), NULL) * 0x1p30;
    double of_nics =
        strtod(config_text(config_item(list, 1)), NULL) * 0x1p30 * hw_gpus_per_node(hw);
    assert_true(fabs(in_node / coll_gpu_Bps(hw) - 1) < 1e-5 &&
                fabs(of_nics / coll_node_Bps(hw) - 1) < 1e-5);
    config_free(doc);
}

static void check(
    const char *scenario, const struct scenario_override *overrides, int n_overrides, bool pipeline)
{
    struct arena arena = ARENA_INIT;
    static struct diag diag;
    struct scenario_set set;
    struct plan plan;
    struct messages messages = {0};
    struct config_doc *groups = NULL;
    const char *folder = make_folder(&arena);
    scenario_load(&set, arena_printf(&arena, FLOPCAST_SOURCE_DIR "/scenarios/%s.yaml", scenario),
        overrides, n_overrides, &arena, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(scenario_compile(&plan, &set.points[0], &arena, &diag), STATUS_OK);
    assert_int_equal(chakra_write(folder, "w", &plan, &set.points[0].hw, &diag), STATUS_OK);
    assert_int_equal(
        config_load(&groups, arena_printf(&arena, "%s/comm_groups.json", folder), &diag),
        STATUS_OK);
    int ranks = plan.mesh.ranks;
    check_groups(groups, ranks);
    check_system(folder, &arena);
    check_network(folder, &set.points[0].hw, &arena);
    for (int r = 0; r < ranks; r++) {
        struct chakra_trace trace;
        assert_int_equal(
            chakra_read(&trace, arena_printf(&arena, "%s/w.%d.et", folder, r), &arena, &diag),
            STATUS_OK);
        assert_true(check_rank(&trace, groups, r, &messages) > 0);
        chakra_free(&trace);
    }
    assert_int_equal(messages.n[0], messages.n[1]);
    assert_true((messages.n[0] > 0) == pipeline && fabs(messages.sum) < 1e-6);
    config_free(groups);
    remove_folder(folder, ranks, &arena);
    plan_release(&plan);
    arena_release(&arena);
}
#define CHECK(scenario, pipeline, ...)                                                             \
    check(scenario, (const struct scenario_override[]){__VA_ARGS__},                               \
        sizeof((const struct scenario_override[]){__VA_ARGS__}) /                                  \
            sizeof(struct scenario_override),                                                      \
        pipeline)

static void what_is_written_holds_its_assertions(void **state)
{
    (void)state;
    CHECK("gpt2_ddp_v100", false, {"cluster.gpus", "16"}, {"train.micro_batch", "8"});
    CHECK("llama2_7b_h100_fsdp", false, {"cluster.gpus", "16"},
        {"fsdp.sharding_strategy", "HYBRID_SHARD"});
    CHECK("gpt3_175b", true, {"cluster.gpus", "32"}, {"parallelism.tensor", "2"},
        {"parallelism.pipeline", "4"}, {"parallelism.virtual", "1"}, {"train.micro_batch", "1"},
        {"train.global_batch", "8"});
    CHECK("deepseek_v3", true, {"cluster.gpus", "32"}, {"train.global_batch", "32"},
        {"parallelism.expert", "2"}, {"train.moe_token_dispatcher_type", "alltoall"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_holds_its_assertions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
