-- Schema 12 stores each point when it is finished, so that a sweep that was stopped goes on with what is missing (sim/store/run.h).

ALTER TABLE run ADD COLUMN points INTEGER; -- of its sweep; it has fewer while it is under way or was stopped. NULL: all, as before schema 12
ALTER TABLE run ADD COLUMN sweep TEXT;     -- alike for runs of the same points in the same order; NULL before schema 12

-- What the result depends on (sim/scenario/identity.h), 32 hexadecimal digits: settings, seed, model, hardware and program. NULL before schema 12.
ALTER TABLE point ADD COLUMN identity TEXT;
ALTER TABLE point ADD COLUMN simulated_id INTEGER; -- the point that these results were taken from; NULL: simulated for this run
CREATE INDEX point_by_identity ON point(identity) WHERE identity IS NOT NULL;

-- Samples (`flopcast run --samples`, sim/scenario/sample.h), each as it is finished; bands are made of them.
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

-- Runs that were stopped, or are under way, with what they have.
CREATE VIEW v_unfinished AS
  SELECT run.id AS run_id, scenario, file, points, count(point.id) AS finished
  FROM run JOIN point ON run_id = run.id
  GROUP BY run.id
  HAVING count(point.id) < points;
