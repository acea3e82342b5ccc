-- Schema 13 adds the host thread to timelines, and traces of real runs beside their simulation (`flopcast calibrate check trace --db`).

-- What the host thread does (stream 'host'); NULL: a kernel or collective. 'waits': blocked for an op; 'queue': as the launch queue is full;
-- 'allocates': in cudaMalloc.
ALTER TABLE span ADD COLUMN host TEXT CHECK (host IN ('issues', 'works', 'waits', 'queue', 'allocates'));

CREATE TABLE trace_check (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  measured TEXT NOT NULL -- the file of the trace
) STRICT;

-- One row: the mean step of the trace. Times of the simulated one are those of its spans.
CREATE TABLE trace_check_step (
  fit_id INTEGER PRIMARY KEY REFERENCES trace_check ON DELETE CASCADE,
  point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE, -- the simulation
  gpu TEXT,                    -- as the trace calls it
  rank INTEGER,                -- NULL: not stated, as in the columns below
  steps INTEGER NOT NULL,
  found TEXT NOT NULL CHECK (found IN ('annotations', 'repetition', 'none')),
  step_time_s REAL NOT NULL, simulated_step_time_s REAL NOT NULL,
  compute_s REAL NOT NULL, simulated_compute_s REAL NOT NULL,           -- a kernel runs
  exposed_comm_s REAL NOT NULL, simulated_exposed_comm_s REAL NOT NULL, -- a collective runs and no kernel
  hidden_comm_s REAL NOT NULL, simulated_hidden_comm_s REAL NOT NULL,   -- both
  host_copy_s REAL NOT NULL, simulated_host_copy_s REAL NOT NULL,       -- a copy from or to the host alone runs
  idle_s REAL NOT NULL, simulated_idle_s REAL NOT NULL
) STRICT;
CREATE INDEX trace_check_by_point ON trace_check_step(point_id);

-- Of the mean step: classes of kernels (sim/kernel/kernel.h, 'other', 'collective').
CREATE TABLE trace_check_class (
  fit_id INTEGER NOT NULL REFERENCES trace_check ON DELETE CASCADE,
  class TEXT NOT NULL,
  count REAL NOT NULL, simulated_count REAL NOT NULL,
  time_s REAL NOT NULL, simulated_time_s REAL NOT NULL,
  PRIMARY KEY (fit_id, class)
) STRICT, WITHOUT ROWID;

-- Of the mean step: collectives that are alike. NULL: not known, or none on that side.
CREATE TABLE trace_check_collective (
  fit_id INTEGER NOT NULL REFERENCES trace_check ON DELETE CASCADE,
  place INTEGER NOT NULL,
  collective TEXT,
  ranks INTEGER,
  bytes REAL,
  bus_bytes REAL,              -- busbw = bus_bytes x count / time
  count REAL, simulated_count REAL,
  time_s REAL, simulated_time_s REAL, -- of all of them
  PRIMARY KEY (fit_id, place)
) STRICT, WITHOUT ROWID;

-- Kernels, copies and collectives of the measured step of median length. Times since it began.
CREATE TABLE trace_check_span (
  fit_id INTEGER NOT NULL REFERENCES trace_check ON DELETE CASCADE,
  span INTEGER NOT NULL,
  stream INTEGER NOT NULL,     -- of CUDA
  class TEXT NOT NULL,
  phase TEXT,                  -- by the thread that launched it
  name TEXT NOT NULL,
  collective TEXT,
  ranks INTEGER,
  bytes REAL,
  start_s REAL NOT NULL,
  end_s REAL NOT NULL,
  PRIMARY KEY (fit_id, span)
) STRICT, WITHOUT ROWID;

-- What `plot timeline` draws: the spans of a point, below those that were measured, where a trace was checked against it (the newest).
CREATE VIEW v_timeline AS
  SELECT
    point_id, 1 AS place, rank, CASE stream WHEN 'host' THEN 0 WHEN 'compute' THEN 1 WHEN 'comm' THEN 2 ELSE 3 END AS stream_place, stream,
    iif(point_id IN (SELECT point_id FROM trace_check_step), 'simulated ', 'rank ' || rank || ' ') || stream AS label,
    phase, name, is_collective, host, start_s, moving_s, end_s
  FROM span
  UNION ALL
  SELECT
    point_id, 0, coalesce(rank, 0), stream, CAST(stream AS TEXT), 'measured stream ' || stream,
    phase, iif(class = 'collective', coalesce(collective, class), class), class = 'collective', NULL, start_s, start_s, end_s
  FROM trace_check_span JOIN trace_check_step AS step USING (fit_id)
  WHERE fit_id = (SELECT max(fit_id) FROM trace_check_step WHERE point_id = step.point_id);
