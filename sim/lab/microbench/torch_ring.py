"""PyTorch's ring attention and FSDP2 on one GPU with a process group that moves nothing: kernels and host of one rank.

torch_ring.py FOLDER SECONDS: ring.json and traces of the profiler."""
import gzip, json, os, statistics, sys, time, traceback
import torch, torch.nn.functional as F
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.attention import sdpa_kernel, SDPBackend
from torch.profiler import profile, ProfilerActivity
out, budget_s = sys.argv[1], float(sys.argv[2])
begun = time.time()
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
bf16, dev = torch.bfloat16, "cuda"
result = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "ring": [], "fsdp": []}

def kernels(call):
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
        call(); torch.cuda.synchronize()
    sums = {}
    for e in p.events():
        if e.device_type == torch.autograd.DeviceType.CUDA:
            n, t = sums.get(e.name[:120], (0, 0.0))
            sums[e.name[:120]] = (n + 1, t + e.device_time)
    return p, sorted(([k, n, round(t, 2)] for k, (n, t) in sums.items()), key=lambda r: -r[2])

def wall(call, n=10):
    for _ in range(3):
        call()
    torch.cuda.synchronize(); times, hosts = [], []
    for _ in range(n):
        start = time.perf_counter(); call(); hosts.append(time.perf_counter() - start); torch.cuda.synchronize(); times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6, statistics.median(hosts) * 1e6

def ring():
    try:
        from torch.distributed.tensor.experimental._context_parallel._attention import set_rotate_method
    except ImportError:
        from torch.distributed.tensor.experimental._attention import set_rotate_method
    from torch.distributed.tensor.experimental import context_parallel
    for rotate in ("allgather", "alltoall"):
        set_rotate_method(rotate)
        for cp in (1, 2, 4, 8):
            mesh = init_device_mesh("cuda", (8 // cp, cp), mesh_dim_names=("dp", "cp"))["cp"]
            for backend, name in ((SDPBackend.FLASH_ATTENTION, "flash"), (SDPBackend.CUDNN_ATTENTION, "cudnn")):
                for local in (4096, 8192, 32768):
                    if cp == 1 and rotate == "alltoall" or time.time() - begun > budget_s:
                        continue
                    try:
                        q, k, v = (((torch.rand(1, 32, local * cp, 128, device=dev) * 2 - 1).to(bf16)) for _ in range(3))
                        def passes():
                            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                            torch.autograd.grad(o, (q, k, v), o.detach())
                        def forward():
                            with torch.no_grad():
                                F.scaled_dot_product_attention(q, k, v, is_causal=True)
                        with sdpa_kernel(backend):
                            if cp > 1:
                                with context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2]):
                                    for t in (q, k, v):
                                        t.requires_grad_(True)
                                    times, (forward_us, forward_host) = wall(passes, 5), wall(forward, 5)
                                    _, ks = kernels(passes)
                                    shape = list(q.shape)
                                    for t in (q, k, v):
                                        t.requires_grad_(False)
                            else:
                                for t in (q, k, v):
                                    t.requires_grad_(True)
                                times, (forward_us, forward_host) = wall(passes, 5), wall(forward, 5)
                                _, ks = kernels(passes)
                                shape = list(q.shape)
                        result["ring"].append({"rotate": rotate, "cp": cp, "backend": name, "local": local, "shape": shape, "wall_us": times[0], "host_us": times[1],
                            "forward_us": forward_us, "forward_host_us": forward_host, "kernels": ks})
                        print(rotate, cp, name, local, times, forward_us, "gpu %.0f us" % sum(t for _, _, t in ks), flush=True)
                    except Exception as e:
                        print("left out:", rotate, cp, name, local, type(e).__name__, str(e)[:300].replace("\n", " "), flush=True)
                    q = k = v = None
                    torch.cuda.empty_cache()

class Block(torch.nn.Module):
    def __init__(self, d, ff, heads, kv):
        super().__init__()
        self.heads, self.kv = heads, kv
        self.n1, self.n2 = torch.nn.RMSNorm(d), torch.nn.RMSNorm(d)
        lin = lambda a, b: torch.nn.Linear(a, b, bias=False)
        self.wq, self.wk, self.wv, self.wo = lin(d, d), lin(d, d // heads * kv), lin(d, d // heads * kv), lin(d, d)
        self.w1, self.w2, self.w3 = lin(d, ff), lin(ff, d), lin(d, ff)
    def forward(self, x):
        b, s, d = x.shape
        h = self.n1(x)
        split = lambda t, n: t.view(b, s, n, -1).transpose(1, 2)
        o = F.scaled_dot_product_attention(split(self.wq(h), self.heads), split(self.wk(h), self.kv), split(self.wv(h), self.kv), is_causal=True, enable_gqa=True)
        x = x + self.wo(o.transpose(1, 2).reshape(b, s, d))
        h = self.n2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))

def fsdp():
    from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy
    for world in (8,):
        for layers, s in ((8, 2048), (8, 256)):
            with torch.device(dev):
                model = torch.nn.Sequential(*[Block(4096, 14336, 32, 8) for _ in range(layers)])
            policy = MixedPrecisionPolicy(param_dtype=bf16, reduce_dtype=torch.float32)
            for block in model:
                fully_shard(block, mp_policy=policy)
            fully_shard(model, mp_policy=policy)
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)
            x = torch.rand(1, s, 4096, device=dev)
            def step():
                loss = model(x).float().pow(2).mean()
                loss.backward(); optimizer.step(); optimizer.zero_grad()
            times = wall(step)
            p, ks = kernels(step)
            p.export_chrome_trace("%s/fsdp2_fake_%d.json" % (out, s))
            with open("%s/fsdp2_fake_%d.json" % (out, s), "rb") as a, gzip.open("%s/fsdp2_fake_%d.json.gz" % (out, s), "wb") as b:
                b.write(a.read())
            os.remove("%s/fsdp2_fake_%d.json" % (out, s))
            result["fsdp"].append({"world": 8, "layers": layers, "seq": s, "wall_us": times[0], "host_us": times[1], "allocated": torch.cuda.max_memory_allocated(), "kernels": ks})
            print("fsdp2", layers, s, times, "gpu %.0f us" % sum(t for _, _, t in ks), flush=True)
            del model, optimizer
            torch.cuda.empty_cache()

for part in (ring, fsdp):
    try:
        part()
    except Exception:
        traceback.print_exc()
    with open(out + "/ring.json", "w") as f:
        json.dump(result, f)
