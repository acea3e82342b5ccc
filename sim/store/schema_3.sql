-- Schema 3 adds validations: tables of published runs, simulated (`flopcast validate`).

CREATE TABLE validation (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  file TEXT NOT NULL -- the table of runs
) STRICT;

-- NULL: not published, or not predicted.
CREATE TABLE validation_row (
  validation_id INTEGER NOT NULL REFERENCES validation ON DELETE CASCADE,
  position INTEGER NOT NULL,
  id TEXT NOT NULL,           -- of the run, in the table
  source TEXT NOT NULL,
  model TEXT NOT NULL,
  gpu TEXT NOT NULL,
  strategy TEXT NOT NULL,
  gpus INTEGER NOT NULL,
  curve INTEGER NOT NULL,     -- rows that differ in the number of GPUs only have the same
  used_in_fit TEXT NOT NULL,  -- the file whose numbers rest on this row, or ''
  status TEXT NOT NULL CHECK (status IN ('ok', 'oom', 'not_simulated')),
  reason TEXT NOT NULL,       -- of not_simulated, or ''
  measured_oom INTEGER NOT NULL CHECK (measured_oom IN (0, 1)),
  measured_tokens_per_s_per_gpu REAL, predicted_tokens_per_s_per_gpu REAL,
  measured_tflops_per_gpu REAL, predicted_tflops_per_gpu REAL,
  measured_step_time_s REAL, predicted_step_time_s REAL,
  measured_peak_allocated_bytes REAL, predicted_peak_allocated_bytes REAL,
  measured_peak_reserved_bytes REAL, predicted_peak_reserved_bytes REAL,
  measured_peak_bytes REAL, predicted_peak_bytes REAL, -- that can be compared: reserved where published, else allocated
  error REAL,                 -- predicted / measured - 1 of the speed
  measured_ratio REAL, predicted_ratio REAL, -- of the speed, to the curve's smallest cluster
  PRIMARY KEY (validation_id, position)
) STRICT, WITHOUT ROWID;

-- The newest validation.
CREATE VIEW v_validation AS
  SELECT validation_row.*, file
  FROM validation_row
  JOIN validation ON validation.id = validation_id
  WHERE validation_id = (SELECT max(id) FROM validation);

-- Why a job loses throughput as it grows (`flopcast explain`): one explanation a curve, its parts in order.
CREATE TABLE explanation (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  scenario TEXT NOT NULL,
  label TEXT NOT NULL,            -- model, strategy, batch
  small_gpus INTEGER NOT NULL,
  large_gpus INTEGER NOT NULL,
  small_tflops_per_gpu REAL NOT NULL,
  large_tflops_per_gpu REAL NOT NULL
) STRICT;

CREATE TABLE explanation_part (
  explanation_id INTEGER NOT NULL REFERENCES explanation ON DELETE CASCADE,
  position INTEGER NOT NULL,
  cause TEXT NOT NULL,            -- as in sim/scenario/explain.h; 'rest' is the last
  lost_tflops_per_gpu REAL NOT NULL,
  PRIMARY KEY (explanation_id, position)
) STRICT, WITHOUT ROWID;
