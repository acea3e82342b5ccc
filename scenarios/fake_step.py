"""The operators of a training step of your own code on one rank of many, without a GPU: JSON lines for `flopcast trace import`.

    python fake_step.py >ops.jsonl
    flopcast trace import ops.jsonl --gpu h100-sxm --out step.json.gz
    flopcast trace scale step.json.gz --topology h100-8x400g --gpus 64,512

torch.distributed's fake process group answers every collective at once, FakeTensorMode gives tensors shapes and no numbers. Put your model, its
wrapping (fully_shard, tensor parallelism) and its optimizer into step(). Written by reading PyTorch 2.6 to 2.9 and not run: flopcast has no
PyTorch to try it with. Data-dependent code (a loss that is printed, dropless experts) fails in FakeTensorMode; leave it out.
"""
import json
import sys

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

RANKS = 8
KINDS = {"allreduce": "allreduce", "all_reduce": "allreduce", "allgather": "allgather", "all_gather": "allgather", "reduce_scatter": "reduce_scatter",
         "broadcast": "broadcast", "reduce": "reduce", "alltoall": "all_to_all", "all_to_all": "all_to_all"}


class Operators(TorchDispatchMode):
    def __init__(self, out):
        super().__init__()
        self.out, self.line, self.phase, self.pending = out, 0, "forward", {}  # pending: a collective's line by the storage of its results

    def write(self, **said):
        print(json.dumps(said), file=self.out)
        self.line += 1

    def group_of(self, args):
        for arg in tree_leaves(args):
            if isinstance(arg, torch.ScriptObject) and "ProcessGroup" in str(arg._type()):
                return dist.ProcessGroup.unbox(arg)
        names = [arg for arg in tree_leaves(args) if isinstance(arg, str)]  # functional collectives end with the name of their group
        return dist.distributed_c10d._resolve_process_group(names[-1])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        results = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        storage = lambda x: x.untyped_storage()._cdata
        for line in sorted({self.pending.pop(storage(x)) for x in inputs if storage(x) in self.pending}):
            self.write(wait=line)
        name = func.overloadpacket.__name__.strip("_").removesuffix("_base").removesuffix("_coalesced")
        said = {"op": str(func), "dtype": str((results or inputs or [torch.empty(0)])[0].dtype), "phase": self.phase}
        if func.namespace in ("c10d", "_c10d_functional"):
            kind = next((KINDS[k] for k in sorted(KINDS, key=len, reverse=True) if name.startswith(k)), None)
            if kind is None:  # wait_tensor, barrier
                return result
            group = self.group_of((args, kwargs))
            said.update(collective=kind, group=group.group_name, ranks=dist.get_process_group_ranks(group))
            for x in results:
                self.pending[storage(x)] = self.line + 1
        self.write(**said, **{"in": [list(x.shape) for x in inputs], "out": [list(x.shape) for x in results]})
        return result


def step(operators):
    """Yours: everything that is made in here is fake."""
    device = torch.device("cuda", 0)
    with torch.device(device):
        model = torch.nn.TransformerEncoderLayer(4096, 32, 16384, dropout=0.0, batch_first=True, dtype=torch.bfloat16)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        batch = torch.empty(4, 4096, 4096, dtype=torch.bfloat16)
    with operators:
        loss = model(batch).sum()
        operators.phase = "backward"
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        operators.phase = "optimizer"
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    with FakeTensorMode(allow_non_fake_inputs=True):
        step(Operators(sys.stdout))
    dist.destroy_process_group()
