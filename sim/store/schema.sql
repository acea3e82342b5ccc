-- Schema 1 of a flopcast database. A stable interface: columns are only ever added. Times in seconds, sizes in bytes, rates per
-- second, fractions as fractions. NULL: not applicable (an OOM point has no step time) or not given.

-- One row for each scenario file that was run. Nothing is ever deleted; the views show the newest run of each scenario.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  scenario TEXT NOT NULL,    -- its name
  description TEXT,
  file TEXT NOT NULL,        -- as given on the command line
  version TEXT NOT NULL      -- of flopcast
) STRICT;
CREATE INDEX run_by_scenario ON run(scenario);

-- What many points share, as JSON, once: {"cluster": ..., "node": ..., "gpu": ...} or a model's shape; every number with its
-- kind and source.
CREATE TABLE document (
  id INTEGER PRIMARY KEY,
  json TEXT NOT NULL UNIQUE CHECK (json_valid(json))
) STRICT;

-- One row for each simulated point.
CREATE TABLE point (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  position INTEGER NOT NULL,         -- in the sweep, from 0
  config TEXT NOT NULL CHECK (json_valid(config)), -- every option with the place where it was set
  hardware_id INTEGER NOT NULL REFERENCES document,
  model_id INTEGER NOT NULL REFERENCES document,
  wall_s REAL NOT NULL,              -- real time of the simulation
  model TEXT NOT NULL,
  strategy TEXT NOT NULL,            -- "FULL_SHARD", "DDP" ...
  micro_batch INTEGER NOT NULL,      -- sequences a GPU and micro-step
  gpus INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('ok', 'oom')),
  tflops_per_gpu REAL,               -- by the formula of the scenario's source
  hw_tflops_per_gpu REAL,            -- recomputation counted
  published_tflops_per_gpu REAL,
  step_time_s REAL,
  tokens_per_s_per_gpu REAL,
  exposed_comm_s REAL,               -- of a step: compute stream idle for a collective
  peak_allocated_bytes REAL,         -- torch.cuda.max_memory_allocated
  peak_reserved_bytes REAL,          -- torch.cuda.max_memory_reserved
  hbm_capacity_bytes REAL NOT NULL,
  required_bytes REAL,               -- OOM: peak on a GPU without limit, CUDA context and NCCL included
  shortfall_bytes REAL,              -- OOM: required_bytes - hbm_capacity_bytes; not above 0: gaps between tensors are the reason
  oom_category TEXT,                 -- OOM: of the buffer that did not fit
  oom_op TEXT,                       -- OOM: that buffer
  oom_request_bytes REAL,            -- OOM: its size
  alloc_retries REAL,                -- cudaMalloc failures that freeing cached segments cured
  compute_s REAL,                    -- of a step: compute_s + exposed_comm_s + host_bound_s + other_idle_s = step_time_s
  contention_s REAL,                 -- part of compute_s: slower beside collectives than alone
  host_bound_s REAL,
  other_idle_s REAL,
  comm_s REAL,                       -- collectives moving, hidden or not
  comm_latency_s REAL,               -- part of comm_s
  comm_wait_s REAL,                  -- members waiting for the last one to arrive
  step_time_sd_s REAL,
  model_tflops_per_gpu REAL,         -- 3 x forward
  mfu REAL,
  hfu REAL,
  samples_per_s REAL,                -- of the job
  nvlink_utilisation REAL,
  nic_utilisation REAL,
  model_params INTEGER NOT NULL,
  precision TEXT NOT NULL,
  seq_len INTEGER NOT NULL,
  grad_accum INTEGER NOT NULL,
  cluster TEXT NOT NULL,
  gpu TEXT NOT NULL,
  gpus_per_node INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  published_id TEXT,
  published_source TEXT,
  published_peak_allocated_bytes REAL,
  published_peak_reserved_bytes REAL,
  published_oom INTEGER CHECK (published_oom IN (0, 1)),
  events REAL NOT NULL,
  plan_ops REAL NOT NULL,
  ranks_simulated INTEGER NOT NULL,
  curve TEXT NOT NULL,               -- alike for points of a run that differ in nothing but the GPU count
  digest TEXT NOT NULL,              -- of all events, 16 hexadecimal digits
  UNIQUE (run_id, position)
) STRICT;

-- HBM by category; OOM points have required_bytes instead of peak_bytes.
CREATE TABLE memory (
  point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
  category TEXT NOT NULL,
  peak_bytes REAL,     -- at the moment of the peak
  required_bytes REAL,
  PRIMARY KEY (point_id, category)
) STRICT, WITHOUT ROWID;

-- HBM over the last measured step. Wide, because a step has thousands of samples.
CREATE TABLE timeline (
  point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
  sample INTEGER NOT NULL,
  time_s REAL NOT NULL,
  reserved_bytes REAL NOT NULL,
  parameters_bytes REAL NOT NULL,
  gradients_bytes REAL NOT NULL,
  optimizer_bytes REAL NOT NULL,
  activations_bytes REAL NOT NULL,
  gathered_bytes REAL NOT NULL,
  buffers_bytes REAL NOT NULL,
  context_bytes REAL NOT NULL,
  nccl_bytes REAL NOT NULL,
  PRIMARY KEY (point_id, sample)
) STRICT, WITHOUT ROWID;

CREATE VIEW v_newest_run AS
  SELECT * FROM run WHERE id IN (SELECT max(id) FROM run GROUP BY scenario);

-- Throughput against cluster size.
CREATE VIEW v_scaling AS
  SELECT
    run_id, point.id AS point_id, scenario, position, curve, model, model_params, strategy, precision, micro_batch, seq_len,
    cluster, gpu, gpus, status, tflops_per_gpu, hw_tflops_per_gpu, model_tflops_per_gpu, mfu, hfu, step_time_s,
    tokens_per_s_per_gpu, samples_per_s,
    published_tflops_per_gpu, published_oom, published_id, published_source,
    tflops_per_gpu / published_tflops_per_gpu - 1 AS deviation,   -- fraction
    -- Fraction lost since the smallest cluster of the same curve that has a value.
    1 - tflops_per_gpu / first_value(tflops_per_gpu) OVER simulated AS loss,
    1 - published_tflops_per_gpu / first_value(published_tflops_per_gpu) OVER published AS published_loss
  FROM point JOIN v_newest_run AS run ON run.id = run_id
  WINDOW
    simulated AS (PARTITION BY run_id, curve ORDER BY tflops_per_gpu IS NULL, gpus),
    published AS (PARTITION BY run_id, curve ORDER BY published_tflops_per_gpu IS NULL, gpus);

-- HBM of a GPU by category: at the peak, or what would be required where the point is out of memory.
CREATE VIEW v_memory AS
  SELECT
    run_id, point.id AS point_id, scenario, position, curve, model, strategy, precision, micro_batch, gpus, status,
    hbm_capacity_bytes, peak_allocated_bytes, peak_reserved_bytes, required_bytes, shortfall_bytes, oom_category,
    published_peak_allocated_bytes, published_peak_reserved_bytes,
    parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, gathered_bytes, buffers_bytes, context_bytes, nccl_bytes
  FROM point JOIN v_newest_run AS run ON run.id = run_id
  JOIN (
    SELECT
      point_id,
      max(bytes) FILTER (WHERE category = 'parameters') AS parameters_bytes,
      max(bytes) FILTER (WHERE category = 'gradients') AS gradients_bytes,
      max(bytes) FILTER (WHERE category = 'optimizer') AS optimizer_bytes,
      max(bytes) FILTER (WHERE category = 'activations') AS activations_bytes,
      max(bytes) FILTER (WHERE category = 'gathered') AS gathered_bytes,
      max(bytes) FILTER (WHERE category = 'buffers') AS buffers_bytes,
      max(bytes) FILTER (WHERE category = 'context') AS context_bytes,
      max(bytes) FILTER (WHERE category = 'nccl') AS nccl_bytes
    FROM (SELECT point_id, category, coalesce(peak_bytes, required_bytes) AS bytes FROM memory)
    GROUP BY point_id
  ) AS by_category ON by_category.point_id = point.id;

-- Where the time of a step goes: compute_alone_s + contention_s + exposed_comm_s + host_bound_s + other_idle_s = step_time_s.
CREATE VIEW v_breakdown AS
  SELECT
    run_id, point.id AS point_id, scenario, position, curve, model, strategy, precision, micro_batch, gpus, step_time_s,
    compute_s - contention_s AS compute_alone_s, contention_s, exposed_comm_s, host_bound_s, other_idle_s,
    comm_s, comm_latency_s, comm_wait_s
  FROM point JOIN v_newest_run AS run ON run.id = run_id
  WHERE status = 'ok';
