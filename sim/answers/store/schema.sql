-- A flopcast database: all its tables and views. Times in seconds, sizes in bytes, rates per second, fractions as fractions.
-- NULL: not applicable (an OOM point has no step time) or not given.

-- One row for each scenario file that was run. Nothing is ever deleted; the views show the newest run of each scenario.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  scenario TEXT NOT NULL,    -- its name
  description TEXT,
  file TEXT NOT NULL,        -- as given on the command line
  version TEXT NOT NULL,     -- of flopcast
  points INTEGER NOT NULL,   -- of its sweep; it has fewer while it is under way or was stopped
  sweep TEXT NOT NULL        -- alike for runs of the same points in the same order
) STRICT;
CREATE INDEX run_by_scenario ON run(scenario);

-- What many points share, as JSON, once: {"cluster": ..., "node": ..., "gpu": ...} or a model's shape; every number with its
-- kind and source.
CREATE TABLE document (
  id INTEGER PRIMARY KEY,
  json TEXT NOT NULL UNIQUE CHECK (json_valid(json))
) STRICT;

-- The parts of a run that this database has, or has begun (`flopcast run --shard`, `flopcast merge`).
CREATE TABLE shard (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  shards INTEGER NOT NULL,   -- of the run
  shard INTEGER NOT NULL CHECK (shard BETWEEN 1 AND shards),
  points INTEGER NOT NULL,   -- of the run that are this shard's
  finished INTEGER NOT NULL CHECK (finished IN (0, 1)),
  PRIMARY KEY (run_id, shards, shard)
) STRICT, WITHOUT ROWID;

-- One row for each simulated point, stored when it is finished (sim/answers/store/run.h).
CREATE TABLE point (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  position INTEGER NOT NULL,         -- in the sweep, from 0
  config TEXT NOT NULL CHECK (json_valid(config)), -- every option with the place where it was set
  hardware_id INTEGER NOT NULL REFERENCES document,
  model_id INTEGER NOT NULL REFERENCES document,
  identity TEXT,                     -- what the result depends on (sim/core/scenario/identity.h), 32 hexadecimal digits
  simulated_id INTEGER,              -- the point that these results were taken from; NULL: simulated for this run
  slow_share REAL,                   -- of clusters like this one: those with a slow host (sim/core/scenario/lottery.h); NULL: none has one
  slow_none_s REAL, slow_some_s REAL, -- step times on the others, and on these in the mean
  @point
  UNIQUE (run_id, position)
) STRICT;
CREATE INDEX point_by_identity ON point(identity) WHERE identity IS NOT NULL;

-- Jobs whose ranks run several programs (pipeline stages): time and memory of each of them. A job of one
-- program has no row here: its numbers are the point's. Means over a program's ranks and measured steps.
CREATE TABLE program (
  point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
  program INTEGER NOT NULL,
  fullest INTEGER NOT NULL CHECK (fullest IN (0, 1)), -- 1: its memory is the point's
  @program
  PRIMARY KEY (point_id, program)
) STRICT, WITHOUT ROWID;

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

-- Kernels, collectives and the host thread in the last measured step (`flopcast run --trace`), of the ranks that were traced. Times since the step began; what began
-- before it is below 0.
CREATE TABLE span (
  point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
  span INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  stream TEXT NOT NULL,      -- "compute", "comm" ...
  phase TEXT NOT NULL,       -- "forward", "backward" ...
  name TEXT NOT NULL,
  is_collective INTEGER NOT NULL CHECK (is_collective IN (0, 1)),
  start_s REAL NOT NULL,
  moving_s REAL NOT NULL,    -- of a collective: its last member had arrived; of a kernel: start_s
  end_s REAL NOT NULL,
  alone_s REAL,              -- of a kernel: how long it takes without collectives beside it
  -- What the host thread does (stream 'host'); NULL: a kernel or collective. 'waits': blocked for an op; 'queue': as the launch queue is
  -- full; 'allocates': in cudaMalloc.
  host TEXT CHECK (host IN ('issues', 'works', 'waits', 'queue', 'allocates')),
  -- The cell of a schedule that a kernel or message is for; NULL: of no cell (host, optimizer).
  program INTEGER,           -- that the rank runs: its stage; NULL: there is one
  micro_batch INTEGER,       -- from 0
  chunk INTEGER,             -- of the model, of an interleaved schedule; from 0
  pass TEXT CHECK (pass IN ('forward', 'backward', 'backward_input', 'backward_weight')),
  PRIMARY KEY (point_id, span)
) STRICT, WITHOUT ROWID;

-- Samples (`flopcast run --samples`, sim/core/scenario/sample.h), each as it is finished; bands are made of them.
CREATE TABLE sample (
  identity TEXT NOT NULL,    -- of the point
  draw TEXT NOT NULL,        -- what the draws depend on beside it
  sample INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('ok', 'oom')),
  tflops_per_gpu REAL,       -- NULL: out of memory, as in the columns below
  step_time_s REAL,
  tokens_per_s_per_gpu REAL,
  PRIMARY KEY (identity, draw, sample)
) STRICT, WITHOUT ROWID;

-- 5, 50 and 95 % of what samples of a point gave; NULL when every sample was out of memory.
CREATE TABLE band (
  point_id INTEGER PRIMARY KEY REFERENCES point ON DELETE CASCADE,
  samples INTEGER NOT NULL, -- that ran
  tflops_per_gpu_p05 REAL, tflops_per_gpu_p50 REAL, tflops_per_gpu_p95 REAL,
  step_time_s_p05 REAL, step_time_s_p50 REAL, step_time_s_p95 REAL,
  tokens_per_s_per_gpu_p05 REAL, tokens_per_s_per_gpu_p50 REAL, tokens_per_s_per_gpu_p95 REAL
) STRICT;

-- What the newest `flopcast run --measured` (or a scenario's list `measured`) makes of a point: the speed as shifted by what was measured of the
-- job, and its interval (sim/core/scenario/sure.h, sure_given()). A point of a run without any has no row; the point itself is as simulated.
CREATE TABLE given (
  point_id INTEGER PRIMARY KEY REFERENCES point ON DELETE CASCADE,
  measured REAL,             -- of this very point, over what is simulated; NULL: another one was measured
  middle REAL NOT NULL,      -- over what is simulated, as the next: half of such jobs are faster
  low REAL NOT NULL, high REAL NOT NULL -- 90 % of such jobs are between
) STRICT;

-- What came out of a simulation of `flopcast validate` or `flopcast tune`: what these need of it. 0: out of memory.
CREATE TABLE outcome (
  identity TEXT NOT NULL,         -- as point.identity
  status TEXT NOT NULL CHECK (status IN ('ok', 'oom')),
  @outcome
  PRIMARY KEY (identity)
) STRICT, WITHOUT ROWID;

CREATE VIEW v_newest_run AS
  SELECT * FROM run WHERE id IN (SELECT max(id) FROM run GROUP BY scenario);

-- Runs that were stopped, or are under way, with what they have.
CREATE VIEW v_unfinished AS
  SELECT run.id AS run_id, scenario, file, points, count(point.id) AS finished
  FROM run JOIN point ON run_id = run.id
  GROUP BY run.id
  HAVING count(point.id) < points;

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
    parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, gathered_bytes, buffers_bytes, context_bytes, nccl_bytes,
    peak_allocated_bytes / published_peak_allocated_bytes - 1 AS peak_allocated_deviation, -- fraction
    peak_reserved_bytes / published_peak_reserved_bytes - 1 AS peak_reserved_deviation     -- fraction
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

-- Where the time of a step goes: compute_alone_s + contention_s + exposed_comm_s + bubble_s + host_bound_s + other_idle_s = step_time_s.
CREATE VIEW v_breakdown AS
  SELECT
    run_id, point.id AS point_id, scenario, position, curve, model, strategy, precision, micro_batch, gpus, step_time_s,
    compute_s - contention_s AS compute_alone_s, contention_s, exposed_comm_s, coalesce(bubble_s, 0.0) AS bubble_s, host_bound_s,
    other_idle_s, comm_s, comm_latency_s, comm_wait_s
  FROM point JOIN v_newest_run AS run ON run.id = run_id
  WHERE status = 'ok';

-- The newest runs with their bands.
CREATE VIEW v_band AS
  SELECT v_scaling.*, samples, tflops_per_gpu_p05, tflops_per_gpu_p50, tflops_per_gpu_p95, step_time_s_p05, step_time_s_p50,
    step_time_s_p95, tokens_per_s_per_gpu_p05, tokens_per_s_per_gpu_p50, tokens_per_s_per_gpu_p95
  FROM v_scaling JOIN band USING (point_id);

-- Settings that differ between points which are alike in model, strategy, micro-batch and GPUs; sequence length, number format and cluster
-- also where they differ at all: "attention flash, topology h100-8x400g-rail". A point that nothing tells apart has no row.
CREATE VIEW v_varied AS
  WITH setting AS (
    SELECT
      run_id, point.id AS point_id, model, strategy, micro_batch, gpus, replace(substr(json_tree.path, 3), '"', '') AS path, json_tree.id AS place,
      CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE coalesce(CAST(atom AS TEXT), '-') END AS value
    FROM point JOIN v_newest_run AS run ON run.id = run_id JOIN json_tree(point.config)
    -- Not what a stack's or cluster's file brings, which stands without a line: the file itself tells it.
    WHERE json_tree.key = 'value' AND json_extract(point.config, json_tree.path || '.origin') NOT LIKE '%.yaml'
  ),
  compared AS (
    SELECT *,
      min(value) OVER alike <> max(value) OVER alike
        OR (path IN ('train.seq_len', 'train.precision', 'cluster.topology') AND min(value) OVER whole <> max(value) OVER whole) AS tells
    FROM setting
    WHERE path NOT IN ('model', 'strategy', 'fsdp.sharding_strategy', 'deepspeed.zero_optimization.stage', 'train.micro_batch', 'cluster.gpus')
      AND path NOT LIKE 'published.%'
    WINDOW alike AS (PARTITION BY run_id, model, strategy, micro_batch, gpus, path), whole AS (PARTITION BY run_id, path)
  )
  SELECT run_id, point_id, group_concat(part, ', ') AS varied
  FROM (
    SELECT run_id, point_id,
      CASE path
        WHEN 'train.seq_len' THEN value || ' tokens'
        WHEN 'train.precision' THEN value
        -- The last name of a dotted path; of a file the name without folder and ending.
        ELSE replace(path, rtrim(path, replace(path, '.', '')), '') || ' '
          || iif(value LIKE '%.yaml', replace(replace(value, rtrim(value, replace(value, '/', '')), ''), '.yaml', ''), value)
      END AS part
    FROM compared
    WHERE tells
    ORDER BY point_id, place
  )
  GROUP BY run_id, point_id;

-- What commands found out: studies of a scenario, validations, fits and checks. Each is a head and its rows, in parts; their columns are
-- JSON objects, which the views below name.
CREATE TABLE answer (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  kind TEXT NOT NULL,        -- 'sensitivity' ...; of fits and checks 'nccl', 'gemm', 'nccl_check', 'trace_check'
  cells TEXT NOT NULL CHECK (json_valid(cells)),
  scenario TEXT AS (cells ->> 'scenario') -- that it is about; NULL: about none
) STRICT;

CREATE TABLE answer_row (
  answer_id INTEGER NOT NULL REFERENCES answer ON DELETE CASCADE,
  position INTEGER NOT NULL, -- in the answer
  part TEXT NOT NULL,        -- 'row'; of fits and checks 'parameter', 'point' ...
  cells TEXT NOT NULL CHECK (json_valid(cells)),
  PRIMARY KEY (answer_id, position)
) STRICT, WITHOUT ROWID;

CREATE VIEW v_answer_row AS
  SELECT kind, answer_id, position, part, answer_row.cells AS cells FROM answer_row JOIN answer ON answer.id = answer_id;

-- Tables of published runs, simulated (`flopcast validate`): file is the table. NULL: not published, or not predicted.
CREATE VIEW validation AS
  SELECT id, created_utc, version, @file FROM answer WHERE kind = 'validation';

CREATE VIEW validation_row AS
  SELECT
    answer_id AS validation_id, position,
    @id,           -- of the run, in the table
    @source, @model, @gpu, @strategy, @gpus,
    @curve,        -- rows that differ in the number of GPUs only have the same
    @used_in_fit,  -- the file whose numbers rest on this row, or ''
    @status,       -- 'ok', 'oom', 'not_simulated'
    @reason,       -- of not_simulated, or ''
    @measured_oom,
    @measured_tokens_per_s_per_gpu, @predicted_tokens_per_s_per_gpu,
    @measured_tflops_per_gpu, @predicted_tflops_per_gpu,
    @measured_step_time_s, @predicted_step_time_s,
    @measured_peak_allocated_bytes, @predicted_peak_allocated_bytes,
    @measured_peak_reserved_bytes, @predicted_peak_reserved_bytes,
    @measured_peak_bytes, @predicted_peak_bytes, -- that can be compared: reserved where published, else allocated
    @error,        -- predicted / measured - 1 of the speed
    @measured_ratio, @predicted_ratio, -- of the speed, to the curve's smallest cluster
    @predicted_low, @predicted_high, -- 90 % interval of tokens/s per GPU, by runs of other makers (sim/lab/validate/sure_fit.h)
    @table_file,   -- of a validation of several tables
    @framework,    -- the stack profile's name, or ''
    @layout,       -- axes with more than one rank: 'TP+PP+DP'
    @waiting_share -- exposed communication and bubble, of the predicted step
  FROM v_answer_row WHERE kind = 'validation';

-- The newest validation.
CREATE VIEW v_validation AS
  SELECT validation_row.*, file
  FROM validation_row
  JOIN validation ON validation.id = validation_id
  WHERE validation_id = (SELECT max(id) FROM validation);

-- Why a job loses throughput as it grows (`flopcast waterfall`): one explanation a curve, its parts in order.
CREATE VIEW explanation AS
  SELECT
    id, created_utc, version, scenario,
    @label,   -- model, strategy, batch
    @small_gpus, @large_gpus, @small_tflops_per_gpu, @large_tflops_per_gpu,
    @first_id -- the first explanation of the command, as a figure shows its curves together; NULL: this is it
  FROM answer WHERE kind = 'explanation';

-- cause: as in sim/flopcast/study/explain.h; 'rest' is the last.
CREATE VIEW explanation_part AS
  SELECT answer_id AS explanation_id, position, @cause, @lost_tflops_per_gpu FROM v_answer_row WHERE kind = 'explanation';

-- command: one id for all curves of a command, the newest has the largest; curve: which of them.
CREATE VIEW v_explanation AS
  SELECT *, coalesce(first_id, id) AS command, row_number() OVER (PARTITION BY coalesce(first_id, id) ORDER BY id) AS curve
  FROM explanation;

-- What a prediction depends on (`flopcast sensitivity --db`): one point; effects are relative standard deviations of its speed.
CREATE VIEW sensitivity AS
  SELECT
    id, created_utc, version, scenario,
    @label,          -- model, strategy, batch, GPUs
    @tflops_per_gpu, -- with all numbers as they are
    @independent,    -- the root of the sum of squares of all effects
    @correlated,     -- with the correlations of fits
    @idle            -- parameters that change nothing
  FROM answer WHERE kind = 'sensitivity';

-- One parameter, one standard deviation lower and higher; the one with the largest effect first.
CREATE VIEW sensitivity_part AS
  SELECT
    answer_id AS sensitivity_id, position,
    @parameter, -- as in --set: 'gpu.gemm_sustained'; 'host': what the host costs, all together
    @kind,      -- 'measured', 'fitted', 'assumed'
    @spread,    -- one standard deviation, over the number
    @low_tflops_per_gpu, @high_tflops_per_gpu, @source
  FROM v_answer_row AS r WHERE r.kind = 'sensitivity';

-- Months of training (`flopcast goodput --db`).
CREATE VIEW goodput AS
  SELECT
    id, created_utc, version, scenario,
    @histories, -- of each point
    @tokens     -- to train on (images, samples); NULL: not said
  FROM answer WHERE kind = 'goodput';

-- Means of the histories; shares of the time. NULL: out of memory.
CREATE VIEW goodput_point AS
  SELECT
    answer_id AS goodput_id, position,
    @label,                 -- model, strategy, batch and what else is swept, without GPUs and checkpoint interval
    @gpus, @days, @step_time_s,
    @mtbf_s,                -- a failure of the job; NULL: nothing fails
    @checkpoint_interval_s,
    @searched,              -- 1: that interval was found; else given
    @goodput,               -- the share that trains; its 5th and 95th percentile over histories
    @goodput_p05, @goodput_p95,
    @checkpoint_share, @lost_work_share, @detection_share, @waiting_share, @restart_share, -- that do not train
    @shrunk_share,          -- the same, of elastic jobs: what the nodes that were away would have trained
    @tflops_per_gpu,        -- while it trains
    @slowed_share,          -- beside hosts that get slow: the share of the time by which steps took longer
    @spare_gpus,            -- of hot spares, which are paid for and idle
    @price_usd_per_gpu_hour, -- NULL: not known
    -- What the tokens take, at 5 and 95 % by failures and by how sure the step is; with spares. NULL: no tokens; of the last ones, nothing trains
    @training_days, @training_days_p05, @training_days_p95,
    @cost_usd, @cost_usd_p05, @cost_usd_p95,
    @energy_kwh, @energy_kwh_p05, @energy_kwh_p95
  FROM v_answer_row WHERE kind = 'goodput';

-- A traced step on other numbers of GPUs (`flopcast trace scale --db`); scenario: the file of the trace; samples: of each point; 0: no
-- interval.
CREATE VIEW trace_scale AS
  SELECT id, created_utc, version, scenario, @cluster, @samples FROM answer WHERE kind = 'trace_scale';

CREATE VIEW trace_scale_point AS
  SELECT
    answer_id AS trace_scale_id, position,
    @gpus, @step_time_s, @step_time_sd_s,
    @step_time_low_s, @step_time_high_s, -- 5 and 95 % of the samples
    @traced_gpus, @traced_step_time_s,
    @compute_s, @contention_s, @comm_s,  -- as in point
    @exposed_comm_s, @rank_wait_s,       -- idle for what moves; for what waits for other ranks
    @bubble_s, @host_bound_s, @other_idle_s
  FROM v_answer_row WHERE kind = 'trace_scale';

-- Measurements of real machines (`flopcast calibrate import`).

-- One row for each file that was imported. The digest is of the file's content (after gunzip), so the same file is noticed under
-- any name.
CREATE TABLE measurement_source (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  format TEXT NOT NULL CHECK (format IN ('nccl-tests', 'nsys', 'kineto')),
  file TEXT NOT NULL,        -- as given on the command line
  digest TEXT NOT NULL UNIQUE,
  source TEXT,               -- where it was published; NULL: not stated, as in the columns below
  gpu TEXT,
  network TEXT,
  nccl_version TEXT,
  note TEXT,
  healthy INTEGER NOT NULL DEFAULT 1 CHECK (healthy IN (0, 1)), -- 0: the source shows it as a fault
  partial INTEGER NOT NULL DEFAULT 0 CHECK (partial IN (0, 1))  -- 1: an excerpt
) STRICT;

-- Collectives by size. Of nccl-tests a row is the mean over its iterations. Of a Kineto trace a row is one kernel on one rank, which
-- includes waiting for the last rank to arrive: the shortest of alike rows is nearest to the transfer itself.
CREATE TABLE collective_measurement (
  source_id INTEGER NOT NULL REFERENCES measurement_source ON DELETE CASCADE,
  position INTEGER NOT NULL, -- line of a text file; number of the result or event elsewhere
  collective TEXT NOT NULL,  -- "all_reduce", "all_gather" ...
  ranks INTEGER NOT NULL CHECK (ranks >= 1),
  nodes INTEGER CHECK (nodes >= 1),
  algorithm TEXT,            -- NULL: NCCL's own choice, or not stated
  protocol TEXT,
  dtype TEXT NOT NULL,       -- as the file names it
  bytes INTEGER NOT NULL CHECK (bytes > 0), -- the larger of what a rank sends and receives, as nccl-tests counts
  out_of_place_s REAL CHECK (out_of_place_s > 0),
  in_place_s REAL CHECK (in_place_s > 0),
  PRIMARY KEY (source_id, position),
  CHECK (coalesce(out_of_place_s, in_place_s) IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernel_name (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- GPU kernels of a profile. An NCCL kernel has the collective but not algorithm and protocol: NCCL's kernels are generic, and the
-- "RING_LL" in a kernel's name does not say which of them ran.
CREATE TABLE kernel_measurement (
  source_id INTEGER NOT NULL REFERENCES measurement_source ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name_id INTEGER NOT NULL REFERENCES kernel_name,
  process INTEGER,           -- its id in the profile; NULL in a trace of one process
  device INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  start_s REAL NOT NULL,     -- on the clock of the file
  duration_s REAL NOT NULL CHECK (duration_s >= 0),
  collective TEXT,           -- of an NCCL kernel
  nvtx_range TEXT,           -- innermost push/pop range around its launch
  PRIMARY KEY (source_id, position)
) STRICT, WITHOUT ROWID;

-- Bandwidths as nccl-tests prints them, bytes per second.
CREATE VIEW v_collective_measurement AS
  SELECT
    source_id, position, file, source, gpu, network, nccl_version, healthy, partial,
    collective, ranks, nodes, algorithm, protocol, dtype, bytes, out_of_place_s, in_place_s,
    bytes / out_of_place_s AS algbw_Bps, bytes / out_of_place_s * bus_factor AS busbw_Bps,
    bytes / in_place_s AS in_place_algbw_Bps, bytes / in_place_s * bus_factor AS in_place_busbw_Bps
  FROM (
    SELECT *, CASE
      WHEN collective = 'all_reduce' THEN 2.0 * (ranks - 1) / ranks
      WHEN collective IN ('all_gather', 'reduce_scatter', 'all_to_all', 'gather', 'scatter') THEN 1.0 * (ranks - 1) / ranks
      ELSE 1.0 END AS bus_factor
    FROM collective_measurement
  ) JOIN measurement_source ON measurement_source.id = source_id;

CREATE VIEW v_kernel_measurement AS
  SELECT source_id, position, file, gpu, name, process, device, stream, start_s, duration_s, collective, nvtx_range
  FROM kernel_measurement
  JOIN kernel_name ON kernel_name.id = name_id
  JOIN measurement_source ON measurement_source.id = source_id;

-- Fits of parameters to measurements, and checks of logs and traces (`flopcast calibrate fit`, `check`): what was done, on which
-- measurements (a folder, a log or a trace), and its rows. The views below name their columns.
CREATE VIEW fit AS
  SELECT id, created_utc, version, kind, @measured FROM answer WHERE measured IS NOT NULL;

CREATE VIEW fit_row AS
  SELECT answer_id AS fit_id, position, part, answer_row.cells FROM answer_row JOIN fit ON fit.id = answer_id;

-- The rows of the newest fit of each kind.
CREATE VIEW v_fit_row AS
  SELECT kind, measured, part, fit_row.position, cells
  FROM fit_row JOIN fit ON fit.id = fit_id
  WHERE fit_id IN (SELECT max(id) FROM fit GROUP BY kind);

-- A table of nccl-tests in a fit of NCCL's parameters.
CREATE VIEW v_nccl_table AS
  SELECT
    @place,
    @use,         -- 'fit', 'left_out', 'bad'
    @family, @source, @gpu,
    @topology,    -- cluster file; '' when none describes the machine
    @collective,
    @nodes,       -- NVLink domains
    @ranks, @note,
    @large_error, -- median |predicted / measured - 1| over sizes from 1 MiB; NULL: none
    @small_error  -- the same below 64 KiB
  FROM v_fit_row WHERE kind = 'nccl' AND part = 'table';

-- Its sizes: busbw = bus_bytes / time.
CREATE VIEW v_nccl_point AS
  WITH ran AS MATERIALIZED (SELECT * FROM v_nccl_table)
  SELECT ran.*, bytes, measured_s, predicted_s, predicted_s / measured_s - 1 AS error,
    bus_bytes / measured_s AS measured_busbw, bus_bytes / predicted_s AS predicted_busbw, algorithm, protocol
  FROM (
    SELECT @place, @bytes, @measured_s, @predicted_s, @bus_bytes, @algorithm, @protocol
    FROM v_fit_row WHERE kind = 'nccl' AND part = 'point'
  ) JOIN ran USING (place);

-- The parameters, and how many tables and sizes each rests on. Part 'covariance' is of the logarithms of two of them, 'rest' has the
-- tables (place) that a parameter (parameter) rests on.
CREATE VIEW v_nccl_parameter AS
  WITH rest AS MATERIALIZED (
    SELECT @parameter, @place FROM v_fit_row WHERE kind = 'nccl' AND part = 'rest'
  ), point AS MATERIALIZED (
    SELECT @place, count(*) AS sizes FROM v_fit_row WHERE kind = 'nccl' AND part = 'point' GROUP BY place
  )
  SELECT
    fit.@parameter,   -- its number
    fit.@key,         -- of node and cluster files
    fit.@family,      -- the hardware that has it: of its id in the files what follows the fit's name
    fit.@unit, fit.@value,
    fit.@std_error,   -- same unit
    fit.@filed_value, -- in the files
    count(rest.place) AS tables, coalesce(sum(sizes), 0) AS sizes, group_concat(rest.place) AS places
  FROM v_fit_row AS fit
  LEFT JOIN rest ON rest.parameter = fit.cells ->> 'parameter'
  LEFT JOIN point USING (place)
  WHERE kind = 'nccl' AND part = 'parameter'
  GROUP BY fit.position
  ORDER BY fit.position;

-- Every measured GEMM beside its prediction.
CREATE VIEW v_gemm_row AS
  SELECT *, predicted_s / measured_s - 1 AS error
  FROM (
    SELECT
      @gpu, @dtype,
      @use,        -- 'fitted', 'held out'; 'narrow': outside the model
      @m, @n, @k, @batch,
      @row_pieces, -- kernel/gemm.h
      @measured_s, @predicted_s
    FROM v_fit_row WHERE kind = 'gemm' AND part = 'row'
  );

-- A log of nccl-tests, measured beside predicted; columns as in v_nccl_point.
CREATE VIEW v_nccl_check AS
  SELECT
    point.measured AS log, ran.@topology, ran.@gpu, ran.@collective, ran.@nodes, ran.@ranks, ran.@large_error, ran.@small_error,
    point.@bytes, point.@measured_s, point.@predicted_s,
    (point.cells ->> 'predicted_s') / (point.cells ->> 'measured_s') - 1 AS error,
    (point.cells ->> 'bus_bytes') / (point.cells ->> 'measured_s') AS measured_busbw,
    (point.cells ->> 'bus_bytes') / (point.cells ->> 'predicted_s') AS predicted_busbw,
    point.@algorithm, point.@protocol
  FROM v_fit_row AS point JOIN v_fit_row AS ran ON ran.kind = point.kind AND ran.part = 'table'
  WHERE point.kind = 'nccl_check' AND point.part = 'point'
  ORDER BY bytes;

-- The mean step of a trace that was checked against a point (all checks, the newest last): part 'step'. 'class', 'collective' and
-- 'span' are classes of kernels, collectives that are alike, and what ran when in the measured step of median length.
CREATE VIEW v_trace_step AS
  SELECT
    fit_id,
    @point_id, -- the simulation
    @rank,     -- NULL: not stated
    @steps, @step_time_s
  FROM fit_row JOIN fit ON fit.id = fit_id
  WHERE kind = 'trace_check' AND part = 'step';

-- What `plot timeline` draws: the spans of a point, below those that were measured, where a trace was checked against it (the newest).
CREATE VIEW v_timeline AS
  WITH checked AS MATERIALIZED (SELECT point_id, max(fit_id) AS fit_id, rank FROM v_trace_step GROUP BY point_id)
  SELECT
    point_id, 1 AS place, rank, CASE stream WHEN 'host' THEN 0 WHEN 'compute' THEN 1 WHEN 'comm' THEN 2 ELSE 3 END AS stream_place, stream,
    iif(point_id IN (SELECT point_id FROM checked), 'simulated ', 'rank ' || rank || ' ') || stream AS label,
    phase, name, is_collective, host, start_s, moving_s, end_s, program, micro_batch, chunk, pass
  FROM span
  UNION ALL
  SELECT
    step.point_id, 0, coalesce(step.rank, 0), cells ->> 'stream', CAST(cells ->> 'stream' AS TEXT), 'measured stream ' || (cells ->> 'stream'),
    cells ->> 'phase', iif(cells ->> 'class' = 'collective', coalesce(cells ->> 'collective', cells ->> 'class'), cells ->> 'class'),
    cells ->> 'class' = 'collective', NULL, cells ->> 'start_s', cells ->> 'start_s', cells ->> 'end_s', NULL, NULL, NULL, NULL
  FROM checked AS step CROSS JOIN fit_row ON fit_row.fit_id = step.fit_id
  WHERE part = 'span';

-- What `plot timeline` draws of a pipeline: the compute stream of a rank of each stage, cell by cell, where a trace has several stages.
-- What is of no cell is a box as long as nothing is waited for. number: NULL: of no cell.
CREATE VIEW v_cell AS
  SELECT
    point_id, rank, program AS stage, coalesce(pass, phase) AS pass, micro_batch + 1 AS number, chunk, min(start_s) AS start_s,
    max(end_s) AS end_s, sum(end_s - start_s) AS busy_s
  FROM (
    SELECT *, iif(pass IS NULL, sum(start_s > before_s + 1e-5) OVER (PARTITION BY point_id, rank ORDER BY start_s), 0) AS part
    FROM (
      SELECT *, lag(end_s, 1, -1) OVER (PARTITION BY point_id, rank ORDER BY start_s) AS before_s
      FROM span
      WHERE stream = 'compute' AND point_id IN (SELECT point_id FROM span GROUP BY point_id HAVING count(DISTINCT program) > 1)
    )
  )
  GROUP BY point_id, rank, program, coalesce(pass, phase), micro_batch, chunk, part;
