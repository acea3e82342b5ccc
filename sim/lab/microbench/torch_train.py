"""Training steps of Hugging Face models on one GPU: seconds of a step and peaks of PyTorch's allocator, a CSV row a run.

torch_train.py TABLE OUT SECONDS [ID...]: the rows of results/measured/one_gpu.csv, or these of them, until the SECONDS are over."""
import csv, gc, statistics, sys, time, traceback
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

table, out, budget_s, only = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
begun = time.time()
dev = "cuda"

def gpt2(d, heads, layers):
    return GPT2LMHeadModel, GPT2Config(n_embd=d, n_head=heads, n_layer=layers, use_cache=False)

def llama(d, ff, heads, kv, layers, tied):
    return LlamaForCausalLM, LlamaConfig(vocab_size=128256, hidden_size=d, intermediate_size=ff, num_attention_heads=heads,
        num_key_value_heads=kv, num_hidden_layers=layers, tie_word_embeddings=tied, max_position_embeddings=131072, use_cache=False)

def t5(d, ff, kv, heads, layers):
    return T5ForConditionalGeneration, T5Config(d_model=d, d_ff=ff, d_kv=kv, num_heads=heads, num_layers=layers, vocab_size=32128, use_cache=False,
        decoder_start_token_id=0, pad_token_id=0, attn_implementation="eager")

MODELS = {
    "gpt2": gpt2(768, 12, 12), "gpt2-medium": gpt2(1024, 16, 24), "gpt2-large": gpt2(1280, 20, 36), "gpt2-xl": gpt2(1600, 25, 48),
    "llama3.2-1b": llama(2048, 8192, 32, 8, 16, True), "llama3.2-3b": llama(3072, 8192, 24, 8, 28, True),
    "llama3.1-8b": llama(4096, 14336, 32, 8, 32, False),
    "t5-611m": t5(1024, 2816, 64, 16, 24), "t5-2.28b": t5(2048, 5120, 64, 32, 24),
}

def build(name, dtype):
    cls, config = MODELS[name]
    torch.set_default_dtype(dtype)
    try:
        with torch.device(dev):
            model = cls(config)
    finally:
        torch.set_default_dtype(torch.float32)
    return model.train()

def run(row):
    torch.cuda.empty_cache(); gc.collect(); torch.cuda.reset_peak_memory_stats()
    torch.backends.cuda.matmul.allow_tf32 = row["precision"] == "tf32"
    torch.backends.cudnn.allow_tf32 = row["precision"] == "tf32"
    model = build(row["model"], torch.bfloat16 if row["precision"] == "bf16" else torch.float32)
    if row["train.lora_rank"]:
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(r=int(row["train.lora_rank"]), lora_alpha=16, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"),
            autocast_adapter_dtype=False)
    if row["activation_checkpointing"] == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if row["train.lora_rank"]:
            model.enable_input_require_grads()
    if row["train.compiled"] == "blocks":
        for block in model.model.layers if hasattr(model, "model") else model.transformer.h:
            block.compile()
    elif row["train.compiled"] == "model":
        model.compile()
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=1e-5, fused=row["optimizer_impl"] == "fused", foreach=row["optimizer_impl"] == "foreach")
    vocab = MODELS[row["model"]][1].vocab_size
    ids = torch.randint(0, vocab, (int(row["micro_batch"]), int(row["seq_len"])), device=dev)
    autocast = row["precision"] == "bf16_mixed"
    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss
    for _ in range(4):
        loss = step()
    torch.cuda.synchronize()
    times = []
    start_all = time.perf_counter()
    for _ in range(10):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        if time.perf_counter() - start_all > 12:
            break
    # the host's own time: of a step that does not wait for the GPU
    start = time.perf_counter(); step(); host_s = time.perf_counter() - start
    torch.cuda.synchronize()
    # several steps in a row, as training runs
    start = time.perf_counter(); n = 5
    for _ in range(n):
        step()
    torch.cuda.synchronize()
    row.update(params=sum(p.numel() for p in model.parameters()), trained=sum(p.numel() for p in params), step_s=statistics.median(times), step_min_s=min(times),
        step_max_s=max(times), row_step_s=(time.perf_counter() - start) / n, host_s=host_s, allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(),
        retries=torch.cuda.memory_stats().get("num_alloc_retries", 0), attention=getattr(model.config, "_attn_implementation", ""), loss=float(loss), oom="n")

def rows():
    with open(table) as f:
        every = {r["id"]: r for r in csv.DictReader(line for line in f if not line.startswith("#"))}
    return [every[i] for i in only or every]

fields = ["id", "model", "precision", "optimizer_impl", "micro_batch", "seq_len", "activation_checkpointing", "train.compiled", "train.lora_rank", "params", "trained", "step_s", "step_min_s", "step_max_s", "row_step_s",
    "host_s", "allocated", "reserved", "retries", "attention", "loss", "oom", "error", "gpu", "torch", "transformers"]
with open(out, "w", newline="") as f:
    w = csv.DictWriter(f, fields, extrasaction="ignore"); w.writeheader()
    for row in rows():
        if time.time() - begun > budget_s:
            print("no time left at", row["id"], flush=True)
            break
        start = time.time()
        row.update(gpu=torch.cuda.get_device_name(), torch=torch.__version__, transformers=transformers.__version__)
        try:
            run(row)
        except torch.OutOfMemoryError as e:
            row.update(oom="y", error=str(e)[:300].replace("\n", " "))
        except Exception as e:
            traceback.print_exc()
            row.update(error=(type(e).__name__ + " " + str(e))[:300].replace("\n", " "))
        torch._dynamo.reset()
        gc.collect(); torch.cuda.empty_cache()
        w.writerow(row); f.flush()
        print(row["id"], row["model"], row.get("step_s"), row.get("row_step_s"), row.get("host_s"), row.get("allocated"), row.get("oom"), row.get("error", "")[:200], "%.1f s" % (time.time() - start), flush=True)
