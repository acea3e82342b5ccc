-- Schema 19 adds sweeps in parts: `flopcast run --shard`, `flopcast merge`; and what validate and tune keep of simulations.

-- The parts of a run that this database has, or has begun.
CREATE TABLE shard (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  shards INTEGER NOT NULL,   -- of the run
  shard INTEGER NOT NULL CHECK (shard BETWEEN 1 AND shards),
  points INTEGER NOT NULL,   -- of the run that are this shard's
  finished INTEGER NOT NULL CHECK (finished IN (0, 1)),
  PRIMARY KEY (run_id, shards, shard)
) STRICT, WITHOUT ROWID;

-- What came out of a simulation of `flopcast validate` or `flopcast tune`: what these need of it.
CREATE TABLE outcome (
  identity TEXT PRIMARY KEY,      -- as point.identity
  status TEXT NOT NULL CHECK (status IN ('ok', 'oom')),
  wall_s REAL NOT NULL,           -- real time that it took
  step_time_s REAL NOT NULL,      -- 0: out of memory, as in the columns below
  tflops_per_gpu REAL NOT NULL,
  tokens_per_s_per_gpu REAL NOT NULL,
  mfu REAL NOT NULL,
  exposed_comm_s REAL NOT NULL,
  peak_allocated_bytes REAL NOT NULL,
  peak_reserved_bytes REAL NOT NULL,
  alloc_retries_a_step REAL NOT NULL
) STRICT, WITHOUT ROWID;
