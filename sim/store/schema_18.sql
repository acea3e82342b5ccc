-- Schema 18 adds what a prediction depends on (`flopcast sensitivity --db`), and months of training (`flopcast goodput --db`).

-- One point; effects are relative standard deviations of its speed.
CREATE TABLE sensitivity (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  scenario TEXT NOT NULL,
  label TEXT NOT NULL,          -- model, strategy, batch, GPUs
  tflops_per_gpu REAL NOT NULL, -- with all numbers as they are
  independent REAL NOT NULL,    -- the root of the sum of squares of all effects
  correlated REAL NOT NULL,     -- with the correlations of fits
  discrepancy REAL NOT NULL,    -- what the model leaves out
  idle INTEGER NOT NULL         -- parameters that change nothing
) STRICT;

-- One parameter, one standard deviation lower and higher; the one with the largest effect first.
CREATE TABLE sensitivity_part (
  sensitivity_id INTEGER NOT NULL REFERENCES sensitivity ON DELETE CASCADE,
  position INTEGER NOT NULL,
  parameter TEXT NOT NULL,      -- as in --set: 'gpu.gemm_sustained'; 'host': what the host costs, all together
  kind TEXT NOT NULL,           -- 'measured', 'fitted', 'assumed'
  spread REAL NOT NULL,         -- one standard deviation, of the logarithm or of that of share / (1 - share)
  low_tflops_per_gpu REAL NOT NULL,
  high_tflops_per_gpu REAL NOT NULL,
  source TEXT NOT NULL,
  PRIMARY KEY (sensitivity_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE goodput (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  scenario TEXT NOT NULL,
  histories INTEGER NOT NULL    -- of each point
) STRICT;

-- Means of the histories; shares of the time. NULL: out of memory.
CREATE TABLE goodput_point (
  goodput_id INTEGER NOT NULL REFERENCES goodput ON DELETE CASCADE,
  position INTEGER NOT NULL,
  label TEXT NOT NULL,          -- model, strategy, batch and what else is swept, without GPUs and checkpoint interval
  gpus INTEGER NOT NULL,
  days REAL,
  step_time_s REAL,
  job_mtbf_s REAL,              -- a failure of the job; NULL: nothing fails
  checkpoint_interval_s REAL,
  searched INTEGER NOT NULL CHECK (searched IN (0, 1)), -- that interval was found; else given
  goodput REAL,                 -- the share that trains; its 5th and 95th percentile over histories
  goodput_p05 REAL,
  goodput_p95 REAL,
  checkpoint REAL, lost_work REAL, detection REAL, waiting REAL, restart REAL, -- shares that do not train
  shrunk REAL,                  -- the same, of elastic jobs: what the nodes that were away would have trained
  step_tflops_per_gpu REAL,     -- while it trains
  PRIMARY KEY (goodput_id, position)
) STRICT, WITHOUT ROWID;
