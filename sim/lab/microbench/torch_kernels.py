"""Kernels of PyTorch on one GPU, alone: microseconds of a call, median of samples of about 1 ms each, operands warm. One CSV row each.

torch_kernels.py OUT SECONDS [SECTION...]"""
import csv, statistics, sys, time
import torch, torch.nn.functional as F
from torch.nn.attention import sdpa_kernel, SDPBackend
out, budget_s = sys.argv[1], float(sys.argv[2])
begun = time.time()
dev, bf16 = "cuda", torch.bfloat16
f = open(out, "w", newline="")
w = csv.writer(f)
w.writerow("kernel,library,dtype,pass,batch,m,n,k,heads,kv_heads,causal,calls,time_us_median,time_us_min,time_us_max,host_us".split(","))

def timed(call):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record(); call(); b.record(); torch.cuda.synchronize()
    n = max(2, min(100, int(1.0 / max(a.elapsed_time(b), 1e-3)) + 1))
    samples = []
    for _ in range(9):
        a.record()
        for _ in range(n):
            call()
        b.record(); torch.cuda.synchronize()
        samples.append(a.elapsed_time(b) * 1e3 / n)
    start = time.perf_counter()
    for _ in range(n):
        call()
    host = (time.perf_counter() - start) / n * 1e6
    torch.cuda.synchronize()
    return n, statistics.median(samples), min(samples), max(samples), host

def row(kernel, library, dtype, which, call, batch="", m="", n="", k="", heads="", kv="", causal=""):
    if time.time() - begun > budget_s:
        return
    try:
        calls, median, least, most, host = timed(call)
    except Exception as e:
        print("left out:", kernel, library, which, m, n, k, type(e).__name__, str(e)[:160].replace("\n", " "), flush=True)
        torch.cuda.empty_cache()
        return
    w.writerow([kernel, library, dtype, which, batch, m, n, k, heads, kv, causal, calls, "%.3f" % median, "%.3f" % least, "%.3f" % most, "%.2f" % host])

def rnd(*shape, dtype=bf16, grad=False):
    return (torch.rand(*shape, device=dev, dtype=torch.float32) * 2 - 1).to(dtype).requires_grad_(grad)

def section(name):
    f.flush(); print("%6.1f s %s" % (time.time() - begun, name), flush=True)

def host():
    x = rnd(64, 64)
    y = rnd(64, 64, grad=True)
    p = torch.nn.Parameter(rnd(64, 64, dtype=torch.float32).detach())
    def chain(t):
        for _ in range(50):
            t = t + 1
        return t
    def linear(t):
        for _ in range(50):
            t = F.linear(t, x)
        return t
    def auto(t):
        with torch.autocast("cuda", dtype=bf16):
            for _ in range(50):
                t = F.linear(t, p)
        return t
    def wall(name, call, ops):
        for _ in range(3):
            call()
        torch.cuda.synchronize(); samples = []
        for _ in range(15):
            start = time.perf_counter(); call(); samples.append((time.perf_counter() - start) * 1e6 / ops); torch.cuda.synchronize()
        w.writerow(["host", "eager", "", name, "", "", "", "", "", "", "", ops, "%.3f" % statistics.median(samples), "%.3f" % min(samples), "%.3f" % max(samples), ""])
    with torch.no_grad():
        wall("add, no gradient", lambda: chain(x), 50)
        wall("linear, no gradient", lambda: linear(x), 50)
    wall("add, recorded", lambda: chain(y), 50)
    wall("linear, recorded", lambda: linear(y), 50)
    wall("linear, recorded, autocast", lambda: auto(p), 50)
    def back(make):
        samples = []
        for i in range(15):
            loss = make().sum(); torch.cuda.synchronize()
            start = time.perf_counter(); loss.backward(); samples.append((time.perf_counter() - start) * 1e6); torch.cuda.synchronize()
        return samples[3:]
    for name, make, ops in (("backward of add", lambda: chain(y), 50), ("backward of linear, weight frozen", lambda: linear(y), 50), ("backward of linear, autocast", lambda: auto(p), 50)):
        s = [t / ops for t in back(make)]
        w.writerow(["host", "eager", "", name, "", "", "", "", "", "", "", ops, "%.3f" % statistics.median(s), "%.3f" % min(s), "%.3f" % max(s), ""])

def attention():
    for backend, name in ((SDPBackend.FLASH_ATTENTION, "flash"), (SDPBackend.CUDNN_ATTENTION, "cudnn"), (SDPBackend.EFFICIENT_ATTENTION, "efficient")):
        for d, h, kv in ((128, 32, 32), (128, 32, 8), (64, 32, 32)):
            if name == "efficient" and kv != h:
                continue
            for s in (512, 1024, 2048, 4096, 8192, 16384, 32768):
                if name == "efficient" and s not in (1024, 4096):
                    continue
                for causal in (True, False):
                    b = max(1, 8192 // s)
                    q, k, v = rnd(b, h, s, d, grad=True), rnd(b, kv, s, d, grad=True), rnd(b, kv, s, d, grad=True)
                    with sdpa_kernel(backend):
                        try:
                            o = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=kv != h)
                        except Exception as e:
                            print("left out: attention", name, d, s, str(e)[:120].replace("\n", " "), flush=True)
                            continue
                        g = rnd(*o.shape)
                        with torch.no_grad():
                            row("attention", name, "bf16", "forward", lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=kv != h), b, s, s, d, h, kv, int(causal))
                        row("attention", name, "bf16", "backward", lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True), b, s, s, d, h, kv, int(causal))
                    del q, k, v, o, g

def experts():
    for experts, k, n, in ((8, 4096, 14336), (8, 7168, 2048), (32, 7168, 2048), (64, 2048, 1408), (16, 2048, 768), (128, 2048, 768), (32, 2880, 2880)):
        for tokens in (64, 256, 1024, 4096):
            m = experts * tokens
            if m * (k + 2 * n) * 2 > 8e9:
                continue
            x, dy = rnd(m, k), rnd(m, n)
            wt = rnd(experts, n, k)
            offs = torch.arange(tokens, m + 1, tokens, device=dev, dtype=torch.int32)
            row("grouped_mm", "torch", "bf16", "forward", lambda: torch._grouped_mm(x, wt.transpose(-2, -1), offs=offs), experts, tokens, n, k)
            row("grouped_mm", "torch", "bf16", "dgrad", lambda: torch._grouped_mm(dy, wt, offs=offs), experts, tokens, k, n)
            row("grouped_mm", "torch", "bf16", "wgrad", lambda: torch._grouped_mm(dy.t(), x, offs=offs), experts, n, k, tokens)
            # tokens drawn unevenly: the same sum, each expert's share between 0 and twice the mean
            cut = torch.sort(torch.randint(0, m // 16 + 1, (experts - 1,)))[0].to(torch.int32) * 16
            uneven = torch.cat([cut, torch.tensor([m], dtype=torch.int32)]).to(dev)
            row("grouped_mm", "torch", "bf16", "forward, tokens cut at random", lambda: torch._grouped_mm(x, wt.transpose(-2, -1), offs=uneven), experts, tokens, n, k)
            del x, dy, wt

def fp8():
    e4m3 = torch.float8_e4m3fn
    for n, k in ((4096, 4096), (6144, 4096), (28672, 4096), (14336, 4096), (4096, 14336), (8192, 8192), (57344, 8192), (8192, 28672), (16384, 16384)):
        for m in (2048, 8192, 16384):
            a, b = rnd(m, k), rnd(n, k)
            one = torch.ones((), device=dev)
            a8, b8 = a.to(e4m3), b.to(e4m3)
            row("scaled_mm", "tensorwise", "fp8", "fast accumulation", lambda: torch._scaled_mm(a8, b8.t(), one, one, out_dtype=bf16, use_fast_accum=True), 1, m, n, k)
            row("scaled_mm", "tensorwise", "fp8", "exact accumulation", lambda: torch._scaled_mm(a8, b8.t(), one, one, out_dtype=bf16, use_fast_accum=False), 1, m, n, k)
            ra, rb = torch.ones(m, 1, device=dev), torch.ones(1, n, device=dev)
            row("scaled_mm", "rowwise", "fp8", "fast accumulation", lambda: torch._scaled_mm(a8, b8.t(), ra, rb, out_dtype=bf16, use_fast_accum=True), 1, m, n, k)
            row("mm", "torch", "bf16", "forward", lambda: a @ b.t(), 1, m, n, k)
            del a, b, a8, b8
    cast = torch.compile(lambda x, s: (x * s).clamp(-448, 448).to(e4m3))
    amax = torch.compile(lambda x: x.abs().amax())
    for m, k in ((8192, 4096), (16384, 4096), (16384, 8192), (16384, 14336)):
        x, s = rnd(m, k), torch.ones((), device=dev)
        row("cast", "inductor", "fp8", "scale, clamp, cast", lambda: cast(x, s), 1, m, k)
        row("amax", "inductor", "bf16", "whole tensor", lambda: amax(x), 1, m, k)
        row("cast", "eager", "fp8", "cast", lambda: x.to(e4m3), 1, m, k)

def pointwise():
    for dtype, name in ((bf16, "bf16"), (torch.float32, "fp32")):
        for m, n in ((8192, 768), (8192, 1024), (8192, 1600), (8192, 2048), (8192, 4096), (8192, 8192)):
            x, wt, b, g = rnd(m, n, dtype=dtype, grad=True), rnd(n, dtype=dtype, grad=True), rnd(n, dtype=dtype, grad=True), rnd(m, n, dtype=dtype)
            y, z = F.layer_norm(x, (n,), wt, b), F.rms_norm(x, (n,), wt)
            with torch.no_grad():
                row("layer_norm", "eager", name, "forward", lambda: F.layer_norm(x, (n,), wt, b), 1, m, n)
                row("rms_norm", "eager", name, "forward", lambda: F.rms_norm(x, (n,), wt), 1, m, n)
            row("layer_norm", "eager", name, "backward", lambda: torch.autograd.grad(y, (x, wt, b), g, retain_graph=True), 1, m, n)
            row("rms_norm", "eager", name, "backward", lambda: torch.autograd.grad(z, (x, wt), g, retain_graph=True), 1, m, n)
            with torch.no_grad():
                row("add", "eager", name, "forward", lambda: x + g, 1, m, n)
                row("gelu", "eager", name, "forward", lambda: F.gelu(x, approximate="tanh"), 1, m, n)
                row("silu", "eager", name, "forward", lambda: F.silu(x), 1, m, n)
                row("dropout", "eager", name, "forward", lambda: F.dropout(x, 0.1), 1, m, n)
                row("cast", "eager", name, "to the other of fp32, bf16", lambda: x.to(torch.float32 if dtype == bf16 else bf16), 1, m, n)
                row("sum of rows", "eager", name, "bias gradient", lambda: g.sum(0), 1, m, n)
    for m, n in ((4096, 50257), (8192, 50257), (4096, 128256), (8192, 128256), (4096, 32128)):
        x, t = rnd(m, n, dtype=torch.float32, grad=True), torch.randint(0, n, (m,), device=dev)
        loss = F.cross_entropy(x, t)
        with torch.no_grad():
            row("cross_entropy", "eager", "fp32", "forward", lambda: F.cross_entropy(x, t), 1, m, n)
        row("cross_entropy", "eager", "fp32", "backward", lambda: torch.autograd.grad(loss, x, retain_graph=True), 1, m, n)
        del x, loss
    for vocab, d in ((50257, 768), (50257, 1600), (128256, 2048), (128256, 4096), (32128, 1024)):
        for dtype, name in ((bf16, "bf16"), (torch.float32, "fp32")):
            table, ids = rnd(vocab, d, dtype=dtype, grad=True), torch.randint(0, vocab, (8192,), device=dev)
            y = F.embedding(ids, table); g = rnd(*y.shape, dtype=dtype)
            with torch.no_grad():
                row("embedding", "eager", name, "forward", lambda: F.embedding(ids, table), 1, 8192, d, vocab)
            row("embedding", "eager", name, "backward", lambda: torch.autograd.grad(y, table, g, retain_graph=True), 1, 8192, d, vocab)
    for b, s in ((8, 512), (8, 1024), (4, 2048)): # naive attention of 16 heads
        x, g = rnd(b, 16, s, s, grad=True), rnd(b, 16, s, s)
        y = F.softmax(x, -1)
        with torch.no_grad():
            row("softmax", "eager", "bf16", "forward", lambda: F.softmax(x, -1), b, s, s, heads=16)
        row("softmax", "eager", "bf16", "backward", lambda: torch.autograd.grad(y, x, g, retain_graph=True), b, s, s, heads=16)
    for numel, tensors in ((124e6, 148), (355e6, 292), (1.24e9, 146)):
        for dtype, name in ((torch.float32, "fp32"), (bf16, "bf16")):
            ps = [torch.nn.Parameter(rnd(int(numel / tensors), dtype=dtype).detach()) for _ in range(tensors)]
            for p in ps:
                p.grad = rnd(p.numel(), dtype=dtype)
            for impl in ("fused", "foreach"):
                opt = torch.optim.AdamW(ps, fused=impl == "fused", foreach=impl == "foreach")
                row("adamw", impl, name, "step", opt.step, tensors, int(numel))
                del opt
            del ps

for s in sys.argv[3:] or ("host", "attention", "experts", "pointwise", "fp8"):
    section(s)
    try:
        globals()[s]()
    except Exception as e:
        import traceback; traceback.print_exc()
    torch.cuda.empty_cache()
section("end")
