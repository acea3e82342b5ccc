/* The example that each --help and manual page opens with. A test runs every one of them as it
 * stands. */
#include "options/command.h"

#include <stddef.h>
#include <string.h>

/* Lines of at most 68 characters: --help has 79, and "Example: " before them. */
static const struct {
    const char *command, *example;
} examples[] = {
    {"flopcast", "flopcast run llama2_7b_h100_fsdp"},
    {"flopcast run", "flopcast run t5_scaling --set \"cluster.gpus=[8, 64]\""},
    {"flopcast plot",
        "flopcast run gpt2_ddp_v100 --db my.db &&\nflopcast plot scaling --db my.db --out my.png"},
    {"flopcast report",
        "flopcast run gpt2_ddp_v100 --db my.db &&\nflopcast report --db my.db --out my.html"},
    {"flopcast waterfall", "flopcast waterfall llama2_7b_h100_fsdp --from 8 --to 64"},
    {"flopcast sensitivity", "flopcast sensitivity gpt2_ddp_v100 --set cluster.gpus=8"},
    {"flopcast validate", "flopcast validate --source InternEvo"},
    {"flopcast whatif", "flopcast whatif llama2_7b_h100_fsdp --base cluster.gpus=64 \\\n    --set "
                        "train.micro_batch=1"},
    {"flopcast tune", "flopcast tune llama2_7b_h100_fsdp --set cluster.gpus=64"},
    {"flopcast goodput", "flopcast goodput llama2_7b_h100_fsdp --set cluster.gpus=512"},
    {"flopcast memory", "flopcast memory llama2-7b --strategy zero3 --gpus 64 &&\n"
                        "flopcast memory llama3.1-8b --gpu h100 --gpus 8 \\\n    --strategy fsdp2 "
                        "--seq-len 8k --savings"},
    {"flopcast capacity", "flopcast capacity llama2-7b --gpu h100 --seq-len 2048"},
    {"flopcast model", "flopcast model llama3.1-8b"},
    {"flopcast topology", "flopcast topology h100-8x400g"},
    {"flopcast topology import",
        "nvidia-smi topo -m >topo.txt && flopcast topology import topo.txt"},
    {"flopcast collective",
        "flopcast collective all_reduce --topology h100-8x400g \\\n    --gpus 64 --bytes 1M:1G"},
    {"flopcast merge", "flopcast run gpt2_ddp_v100 --shard 1/2 --db part1.db &&\n"
                       "flopcast run gpt2_ddp_v100 --shard 2/2 --db part2.db &&\n"
                       "flopcast merge part1.db part2.db --into my.db"},
    {"flopcast replay", "flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --chakra traces &&\n"
                        "flopcast replay traces --topology dgx-1v-ib"},
#define TRACE_SCALE                                                                                \
    "flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --trace r0.json.gz &&\n"                      \
    "flopcast trace scale r0.json.gz --topology dgx-1v-ib --gpus 8,64"
    {"flopcast trace", TRACE_SCALE},
    {"flopcast trace scale", TRACE_SCALE},
    {"flopcast scenario", "flopcast scenario import llama3_8b.toml \\\n"
                          "    --topology h100-8x400g --gpus 64 --out mine.yaml"},
    {"flopcast scenario import", "flopcast scenario import llama3_8b.toml \\\n"
                                 "    --topology h100-8x400g --gpus 64 --out mine.yaml"},
    {"flopcast calibrate", "flopcast calibrate fit nccl"},
    {"flopcast calibrate fit", "flopcast calibrate fit"},
    {"flopcast calibrate import", "all_reduce_perf -b 1M -e 1G -f 2 -g 8 >all_reduce.log &&\n"
                                  "flopcast calibrate import nccl-tests all_reduce.log --db my.db"},
    {"flopcast calibrate check", "all_reduce_perf -b 1M -e 1G -f 2 -g 8 >all_reduce.log &&\n"
                                 "flopcast calibrate check all_reduce.log --topology h100-8x400g"},
    {"flopcast calibrate check trace",
        "flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --trace r0.json.gz &&\n"
        "flopcast calibrate check trace r0.json.gz --scenario gpt2_ddp_v100 \\\n    --set "
        "cluster.gpus=8"},
    {"flopcast calibrate show",
        "flopcast calibrate fit nccl --db my.db &&\nflopcast calibrate show --db my.db"},
    {"flopcast files", "flopcast files models"},
    {"flopcast help", "flopcast help settings"},
};

const char *command_example(const char *command)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (strcmp(command, examples[i].command) == 0)
            return examples[i].example;
    return NULL;
}
