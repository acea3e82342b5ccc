#include "cli/output.h"

void output_plans(const struct scenario_set *set, struct diag *diag)
{
    for (int i = 0; i < set->n_points && diag->worst == STATUS_OK; i++) {
        const struct scenario_point *point = &set->points[i];
        struct arena arena = ARENA_INIT;
        struct plan plan;
        if (scenario_compile(&plan, point, &arena, diag) == STATUS_OK) {
            printf("%s%s: %s %s, batch %lld, %lld GPU%s\n", i ? "\n" : "", point->options.name, point->model.shape.name,
                strategy_label(&point->options.strategy), (long long)point->options.strategy.train.micro_batch,
                (long long)point->options.cluster.gpus, plural(point->options.cluster.gpus));
            plan_explain(stdout, &plan, &point->hw);
            plan_release(&plan);
        }
        arena_release(&arena);
    }
}
