-- Schema 4 adds how sure a point is (`flopcast run --samples`) and the timeline of a step (`flopcast run --trace`).

-- 5, 50 and 95 % of what samples of a point gave (sim/scenario/sample.h); NULL when every sample was out of memory.
CREATE TABLE band (
  point_id INTEGER PRIMARY KEY REFERENCES point ON DELETE CASCADE,
  samples INTEGER NOT NULL, -- that ran
  tflops_per_gpu_p05 REAL, tflops_per_gpu_p50 REAL, tflops_per_gpu_p95 REAL,
  step_time_s_p05 REAL, step_time_s_p50 REAL, step_time_s_p95 REAL,
  tokens_per_s_per_gpu_p05 REAL, tokens_per_s_per_gpu_p50 REAL, tokens_per_s_per_gpu_p95 REAL
) STRICT;

-- Kernels and collectives of the last measured step, of the ranks that were traced. Times since the step began; what began
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
  PRIMARY KEY (point_id, span)
) STRICT, WITHOUT ROWID;

-- The newest runs with their bands.
CREATE VIEW v_band AS
  SELECT v_scaling.*, samples, tflops_per_gpu_p05, tflops_per_gpu_p50, tflops_per_gpu_p95, step_time_s_p05, step_time_s_p50,
    step_time_s_p95, tokens_per_s_per_gpu_p05, tokens_per_s_per_gpu_p50, tokens_per_s_per_gpu_p95
  FROM v_scaling JOIN band USING (point_id);
